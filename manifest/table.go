package manifest

import (
	"path/filepath"
	"slices"
	"strings"
)

// openBare opens an annotations file without release.toml: FigSIM's schema, columns by name, and in
// each cell the separator that it has.
func openBare(path string, o Options) (*Release, error) {
	format, p := formatOf(path)
	if p != nil {
		return nil, one(p)
	}
	s := figsimSettings(stem(path), format)
	r := newRelease(s, o)
	r.ManifestPath = path
	return r, r.bind(s, nil)
}

func figsimSettings(name string, format Format) *settings {
	s := newSettings()
	s.file.Name, s.file.Format = name, format
	s.setSchema(FigSIM())
	return s
}

// stem is the file's name without its extension.
func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// BuiltIn gives a release without files that has FigSIM's labels: what OpenTable, Labels and
// CategoryOf go by without a release.
func BuiltIn() *Release {
	r := newRelease(figsimSettings("", ""), Options{})
	r.plan.categories = make([]categoryPlan, len(r.Schema.Categories))
	return r
}

// CategoryOf returns the place in Schema of the category that a column or question of that name
// is about, or -1: by the name that release.toml gives its column, its own name or its title.
func (r *Release) CategoryOf(name string) int {
	for i, c := range r.plan.categories {
		if c.column != "" && c.column == name {
			return i
		}
	}
	return slices.IndexFunc(r.Schema.Categories, func(c Category) bool {
		return slices.Contains(categoryAliases(&c), plain(name))
	})
}

// Labels finds the labels of a category by code, name or mapped spelling, in the order given. The
// *Problem, which has no place, is about a text that is not a label, or labels that may not stand
// together.
func (r *Release) Labels(category int, texts []string) ([]int, *Problem) {
	return r.vocabularies[category].read(texts)
}

// OpenTable opens another file of labels than a manifest, such as an annotator's or a model's:
// CSV, TSV, JSONL or Parquet with ids and columns of labels as like has them, by the same column
// names, spellings and separator, or else by the names that Open knows. An id may be ID/N too, the
// name of image N of a gallery in outcomes.csv and the dataset. The result's entries have
// one split, and its Schema only those categories that the file has columns for; there must be
// one at least. What is wrong comes as *Problems.
func OpenTable(path string, like *Release, o Options) (*Release, error) {
	format, p := formatOf(path)
	if p != nil {
		return nil, one(p)
	}
	s := newSettings()
	s.file.Name, s.file.Format, s.isTable = stem(path), format, true
	s.schema, s.vocabularies, s.separator = like.Schema, like.vocabularies, like.plan.separator
	r := newRelease(s, o)
	r.ManifestPath = path
	header, err := r.readColumns(nil)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool { return slices.Contains(header, name) }
	for field, name := range like.plan.fields {
		switch {
		case field != fieldID && (field != fieldImage || name == ""):
			s.columns[fieldNames[field]] = ""
		case has(name):
			s.columns[fieldNames[field]], s.named[name] = name, fieldNames[field]
		}
	}
	for i, c := range like.plan.categories {
		name := like.Schema.Categories[i].Name
		// One column a label counts only where all that are named are there.
		columns := slices.DeleteFunc(slices.Clone(c.oneHot), func(name string) bool { return name == "" })
		if len(columns) > 0 && !slices.ContainsFunc(columns, func(name string) bool { return !has(name) }) {
			s.oneHot[name] = c.oneHot
		} else if has(c.column) {
			s.columns[name], s.named[c.column] = c.column, name
		}
	}
	r.plan, err = s.match(path, header)
	if err != nil {
		return nil, err
	}
	all := r.plan.categories
	r.Schema.Categories, r.vocabularies, r.plan.categories = nil, nil, nil
	for i, c := range all {
		if c.found() {
			r.Schema.Categories = append(r.Schema.Categories, like.Schema.Categories[i])
			r.vocabularies = append(r.vocabularies, like.vocabularies[i])
			r.plan.categories = append(r.plan.categories, c)
		}
	}
	return r, nil
}

func (s Schema) names() []string {
	var names []string
	for _, c := range s.Categories {
		names = append(names, c.Name)
	}
	return names
}
