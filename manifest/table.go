package manifest

import (
	"path/filepath"
	"slices"
	"strings"
)

// fileRelease starts a release of a file without release.toml.
func fileRelease(path string, o Options) (*Release, error) {
	format, p := formatOf(path)
	if p != nil {
		return nil, one(p)
	}
	r := newRelease(o)
	r.ManifestPath, r.Format = path, format
	r.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return r, nil
}

// BuiltIn gives a release without files that has FigSIM's labels: what OpenTable, Labels and
// CategoryOf go by without a release.
func BuiltIn() *Release {
	r := newRelease(Options{})
	r.setSchema(FigSIM())
	return r
}

// CategoryOf returns the place in Schema of the category that a column or question of that name
// is about, or -1: by the name that release.toml gives its column, its own name or its title.
func (r *Release) CategoryOf(name string) int {
	called := func(c Category) bool { return name != "" && r.columns[c.Name] == name }
	if i := slices.IndexFunc(r.Schema.Categories, called); i >= 0 {
		return i
	}
	return slices.IndexFunc(r.Schema.Categories, func(c Category) bool {
		return slices.Contains(categoryAliases(&c), plain(name))
	})
}

// Labels finds the labels of a category by code, name or mapped spelling, in the order given. The *Problem, which
// has no place, is about a text that is not a label, or labels that may not stand together.
func (r *Release) Labels(category int, texts []string) ([]int, *Problem) {
	return r.vocabularies[category].read(texts)
}

// OpenTable opens another file of labels than a manifest, such as an annotator's or a model's, with columns, spellings
// and separator as like has them, or else the names that Open knows. An id may be ID/N, the name of image N of a
// gallery. The result has one split and those categories that the file has columns for. The error is *Problems.
func OpenTable(path string, like *Release, o Options) (*Release, error) {
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.isTable = true
	r.Schema, r.vocabularies, r.separator = like.Schema, like.vocabularies, like.separator
	header, err := r.readHeader(nil)
	if err != nil {
		return nil, err
	}
	lacks := func(name string) bool { return !slices.Contains(header, name) }
	for key, name := range like.columns {
		if name != "" && !lacks(name) {
			r.columns[key], r.named[name] = name, key
		}
	}
	for _, key := range fieldNames {
		if key != "id" && (key != "image" || like.columns[key] == "") && r.Schema.index(key) < 0 {
			r.columns[key] = ""
		}
	}
	for category, oneHot := range like.oneHot {
		// One column a label counts only where all that are named are there.
		columns := slices.DeleteFunc(slices.Clone(oneHot), func(name string) bool { return name == "" })
		if len(columns) > 0 && !slices.ContainsFunc(columns, lacks) {
			r.oneHot[category] = oneHot
		}
	}
	if err := r.match(header); err != nil {
		return nil, err
	}
	r.Schema.Categories, r.vocabularies = nil, nil
	for i, c := range like.Schema.Categories {
		if r.hasColumn(c) {
			r.Schema.Categories = append(r.Schema.Categories, c)
			r.vocabularies = append(r.vocabularies, like.vocabularies[i])
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
