package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// BuiltIn gives a release without files that has FigSIM's labels: what OpenTable, Labels and
// CategoryOf go by without a release.
func BuiltIn() *Release {
	r := &Release{Schema: FigSIM(), plan: plan{separator: separators[0]}}
	for i := range r.Schema.Categories {
		r.vocabularies = append(r.vocabularies, newVocabulary(&r.Schema.Categories[i]))
		r.plan.categories = append(r.plan.categories, categoryPlan{})
	}
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
	labels, message, hint := r.vocabularies[category].read(texts)
	if message != "" {
		return nil, &Problem{Message: message, Hint: hint}
	}
	return labels, nil
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
	r := &Release{Name: stem(path), ManifestPath: path, Format: format, openParquet: o.OpenParquet, mayBeEmpty: o.MayBeEmpty}
	r.plan.separator, r.plan.keys, r.Schema.Name = like.plan.separator, true, like.Schema.Name
	columns, err := r.readColumns(nil)
	if err != nil {
		return nil, err
	}
	m := matcher{settings: &settings{}, file: path, columns: columns, used: make(map[string]bool)}
	r.plan.fields[fieldID] = m.as(like.plan.fields[fieldID], "id", aliases(fieldID))
	if like.plan.fields[fieldImage] != "" {
		r.plan.fields[fieldImage] = m.as(like.plan.fields[fieldImage], "image", aliases(fieldImage))
	}
	if r.plan.fields[fieldID] == "" && len(m.problems) == 0 {
		m.missing("no column of post ids was found", "id", cmp.Or(m.delimiterHint(), "name the column id"))
	}
	for i, c := range like.Schema.Categories {
		found := like.plan.categories[i]
		if !m.hasAll(found.oneHot) {
			found = categoryPlan{column: m.as(found.column, c.Name, categoryAliases(&c))}
		}
		if found.column == "" && found.oneHot == nil {
			continue
		}
		r.Schema.Categories = append(r.Schema.Categories, c)
		r.vocabularies = append(r.vocabularies, like.vocabularies[i])
		r.plan.categories = append(r.plan.categories, found)
	}
	if len(r.Schema.Categories) == 0 && len(m.problems) == 0 {
		m.missing("no column of labels was found", "", fmt.Sprintf("name the columns as the categories: %s", list(like.Schema.names())))
	}
	return r, m.err()
}

// as gives the column called name if the file has it, else the one that is known by an alias.
func (m *matcher) as(name, key string, aliases []string) string {
	if name != "" && slices.Contains(m.columns, name) {
		return name
	}
	return m.find(key, aliases)
}

// hasAll reports whether the file has every one of a label's columns that is named, and one is.
func (m *matcher) hasAll(names []string) bool {
	absent := func(name string) bool { return name != "" && !slices.Contains(m.columns, name) }
	return strings.Join(names, "") != "" && !slices.ContainsFunc(names, absent)
}

func (s Schema) names() []string {
	var names []string
	for _, c := range s.Categories {
		names = append(names, c.Name)
	}
	return names
}
