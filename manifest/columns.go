package manifest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"rehydrate/manifest/table"
)

func (r *Release) used() []string {
	names := slices.Concat(r.without.Columns, r.asides, slices.Collect(maps.Values(r.columns)),
		slices.Concat(slices.Collect(maps.Values(r.oneHot))...))
	slices.Sort(names) // so that problems stand in the same order each time
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

func categoryAliases(c *Category) []string { return []string{FoldColumn(c.Name), FoldColumn(c.Title)} }

// A matcher finds the columns of the fields and categories: those that are set, by exact name; the others by alias.
type matcher struct {
	*Release
	header   []string // the file's columns; of JSONL only those met so far
	taken    map[string]bool
	problems []Problem
}

func (r *Release) match(header []string) error {
	m := matcher{Release: r, header: header, taken: make(map[string]bool)}
	// What release.toml gives to one key cannot be another's by its usual name.
	for name := range r.named {
		m.taken[name] = true
	}
	for field, key := range fieldNames[:FieldSubreddit] {
		r.columns[key] = m.find(key, Field(field).Names())
	}
	// After two candidates, or a name that the file lacks, this would only repeat it.
	if r.columns["id"] == "" && len(m.problems) == 0 {
		m.missing("no column of post ids was found", "id")
	}
	var lacking []Category
	for _, c := range r.Schema.Categories {
		if oneHot, ok := r.oneHot[c.Name]; ok {
			for _, name := range oneHot {
				m.check(name)
			}
			continue
		}
		r.columns[c.Name] = m.find(c.Name, categoryAliases(&c))
		if r.columns[c.Name] == "" && !r.isTable {
			lacking = append(lacking, c)
		}
	}
	m.lacks(lacking)
	for _, c := range r.Schema.Columns {
		r.columns[c.Name] = m.find(c.Name, []string{FoldColumn(c.Name)})
		if r.columns[c.Name] == "" {
			m.missing("no column was found for "+c.Name, c.Name)
		}
	}
	if len(m.problems) == 0 && len(r.Schema.Categories) > 0 && !slices.ContainsFunc(r.Schema.Categories, r.hasColumn) {
		m.missing("no column of labels was found", "")
	}
	// Last, because a release may have made the subreddit a label.
	r.columns["subreddit"] = m.find("subreddit", FieldSubreddit.Names())
	// The problems of release.toml come first.
	var all Problems
	if r.toml != nil {
		all = r.toml.found()
	}
	all.Add(m.problems...)
	return all.Err()
}

func (r *Release) hasColumn(c Category) bool {
	return r.columns[c.Name] != "" || r.oneHot[c.Name] != nil
}

func (m *matcher) find(key string, aliases []string) string {
	if name, set := m.columns[key]; set {
		m.check(name)
		return name
	}
	for _, alias := range aliases {
		var found []string
		for _, column := range m.header {
			if FoldColumn(column) == alias && !m.taken[column] {
				found = append(found, column)
			}
		}
		// A wrong guess would give wrong ids or labels in silence.
		if len(found) > 1 {
			m.missing(fmt.Sprintf("columns %s and %s could both be %s", table.Quote(found[0]), table.Quote(found[1]), key),
				key)
		}
		if len(found) > 0 {
			m.taken[found[0]] = true
			return found[0]
		}
	}
	return ""
}

// check reports a column that release.toml names and the manifest does not have.
func (m *matcher) check(name string) {
	// Keys of JSON lines need not be in the first lines: they are checked while reading.
	if name == "" || m.hasKeys() || slices.Contains(m.header, name) {
		return
	}
	for _, unread := range m.unread {
		if unread.Name == name {
			m.toml.Add(m.named[name], fmt.Sprintf("column %s cannot be used: %s", table.Quote(name), unread.Why()),
				table.ReadTypes)
			return
		}
	}
	hint := "its columns are " + ListColumns(m.header, m.unread)
	if near := Nearest(name, m.header); near != "" {
		hint = "did you mean " + table.Quote(near) + "?"
	}
	m.toml.Add(m.named[name], fmt.Sprintf("the manifest has no column %s", table.Quote(name)), hint)
}

// lacks reports categories without a column. A file without a release.toml has the columns of FigSIM or is another
// dataset: then one line says so, for its reader never asked for FigSIM's categories.
func (m *matcher) lacks(categories []Category) {
	if m.toml == nil && len(categories) > 0 {
		var names []string
		for _, c := range categories {
			names = append(names, c.Name)
		}
		m.missing("a file without release.toml needs FigSIM's columns, and this one lacks "+List(names), "")
		return
	}
	for _, c := range categories {
		m.missing(fmt.Sprintf("no column was found for category %s (%s)", c.Name, c.Title), c.Name)
	}
}

// ListColumns lists the columns of a file for a message, and says which are not read.
func ListColumns(columns []string, unread []Unread) string {
	text := QuotedList(columns)
	for _, u := range unread {
		text += fmt.Sprintf("; not %s: %s", table.Quote(u.Name), u.Why())
	}
	return text
}

func (m *matcher) missing(message, key string) {
	file := m.ManifestPath
	if strings.ContainsFunc(file, unicode.IsSpace) {
		file = table.Quote(file)
	}
	hint := "make a release of this file, which names its columns: rehydrate init DIR --manifest " + file
	switch {
	case len(m.header) == 1 && strings.ContainsAny(m.header[0], ";\t,"):
		hint = "the fields seem to have another separator: save the file as .csv with commas or as .tsv with tabs"
	case m.isTable && len(m.Schema.Categories) == 0:
		hint = "name the column of post ids id"
	case m.isTable:
		hint = "name the columns id and " + List(m.Schema.names())
		if m.builtIn {
			hint += " (FigSIM's; for your own labels: --release RELEASE)"
		}
	case m.toml != nil:
		hint = fmt.Sprintf(`name it in release.toml, under [columns]: %s = "..."`, key)
	}
	message += "; the columns are " + ListColumns(m.header, m.unread)
	m.problems = append(m.problems, Problem{File: m.ManifestPath, Line: 1, Message: message, Hint: hint})
}

func fileRelease(path string, o Options) (*Release, error) {
	format, p := table.FormatOf(path)
	if p != nil {
		return nil, table.One(p)
	}
	r := newRelease(o)
	r.ManifestPath, r.files = path, []inputFile{{path: path, format: format}}
	r.Name = table.Stem(path)
	return r, nil
}

// BuiltIn gives a release without files that has FigSIM's labels: what OpenTable, Labels and
// CategoryOf go by without a release.
func BuiltIn() *Release {
	r := WithLabels(FigSIM())
	r.builtIn = true
	return r
}

// WithLabels gives a release without files that has these labels.
func WithLabels(schema Schema) *Release {
	r := newRelease(Options{})
	r.setSchema(schema)
	return r
}

// CategoryOf returns the place in Schema of the category that a column or question of that name
// is about, or -1: by the name that release.toml gives its column, its own name or its title.
func (r *Release) CategoryOf(name string) int {
	// The maintainers' own name for it comes first: it may be the title of another category.
	called := func(c Category) bool { return name != "" && r.columns[c.Name] == name }
	if i := slices.IndexFunc(r.Schema.Categories, called); i >= 0 {
		return i
	}
	return slices.IndexFunc(r.Schema.Categories, func(c Category) bool {
		return slices.Contains(categoryAliases(&c), FoldColumn(name))
	})
}

// ColumnOf gives the file's column of a category or column that passes through, "" for none and for one column a label.
func (r *Release) ColumnOf(name string) string { return r.columns[name] }

// Labels finds the labels of a category by code, name or mapped spelling, in the order given. The *Problem, which
// has no place, is about a text that is not a label, or labels that may not stand together.
func (r *Release) Labels(category int, texts []string) ([]int, *Problem) {
	return r.vocabularies[category].read(texts)
}

// A Spelling is a text that means a label of a category, both by their places.
type Spelling struct {
	Text            string
	Category, Label int
}

// Spelling returns a release by which other files are read that may say more than the labels of r, such as the name of
// two that count as one. A text that means a label already goes on to mean it.
func (r *Release) Spelling(more []Spelling) *Release {
	out := *r
	out.vocabularies = slices.Clone(r.vocabularies)
	for i, v := range out.vocabularies {
		out.vocabularies[i].index = maps.Clone(v.index)
	}
	for _, s := range more {
		if v := out.vocabularies[s.Category]; !v.knows(s.Text) {
			v.add(s.Text, s.Label)
		}
	}
	return &out
}

// Naming returns a release by which other files are read that have categories in these columns, by category.
func (r *Release) Naming(columns map[string]string) *Release {
	out := *r
	out.columns, out.oneHot = maps.Clone(r.columns), maps.Clone(r.oneHot)
	for category, column := range columns {
		out.columns[category] = column
		delete(out.oneHot, category)
	}
	return &out
}

// Only returns a release by which other files are read for one category, which stands at that place in Schema.
func (r *Release) Only(category int) *Release {
	out := *r
	out.Schema.Categories, out.vocabularies = r.Schema.Categories[category:][:1:1], r.vocabularies[category:][:1:1]
	return &out
}

// Uses reports whether the column of a table means an id, a label, or something else that the table is read by.
func (r *Release) Uses(column string) bool { return slices.Contains(r.used(), column) }

// Joined gives the release by whose labels its dataset is read, which has a row for each image (Schema.Joined).
func (r *Release) Joined() *Release {
	if !r.Schema.Many {
		return r
	}
	out := *r
	out.Schema, out.vocabularies = r.Schema.Joined(), slices.Clone(r.vocabularies)
	for i := range out.vocabularies {
		out.vocabularies[i].category, out.vocabularies[i].joined = &out.Schema.Categories[i], true
	}
	return &out
}

// OpenTable opens another file of labels than a manifest, such as an annotator's or a model's, with columns,
// spellings and separator as like has them, or else the names that Open knows. An id may be ID/N, the name of image N
// of a gallery, and a column image beside it names it too (Images). With Options.Unanswered, rows that are no answer
// are left out. The result has one split and those categories that the file has columns for. The error is *Problems.
func OpenTable(path string, like *Release, o Options) (*Release, error) {
	r, err := fileRelease(path, o)
	if err != nil {
		return nil, err
	}
	r.isTable, r.numbered, r.builtIn = true, true, like.builtIn
	r.Schema, r.vocabularies, r.separator = like.Schema, like.vocabularies, like.separator
	r.Schema.Columns = nil // another table is about labels
	header, err := r.readHeader(nil)
	if err != nil {
		return nil, err
	}
	lacks := func(name string) bool { return !slices.Contains(header, name) }
	for key, name := range like.columns {
		if !lacks(name) {
			r.columns[key], r.named[name] = name, key
		}
	}
	// The splits and digests of another table say nothing of the release's entries.
	for _, key := range fieldNames {
		if key != "id" && (key != "image" || like.columns[key] == "") && r.Schema.index(key) < 0 {
			r.columns[key] = ""
		}
	}
	for category, oneHot := range like.oneHot {
		// One column a label counts only where all that are named are there.
		columns := slices.DeleteFunc(slices.Clone(oneHot), func(name string) bool { return name == "" })
		if !slices.ContainsFunc(columns, lacks) {
			r.oneHot[category] = oneHot
		}
	}
	if err := r.match(header); err != nil {
		return nil, err
	}
	if r.hasKeys() && o.Unanswered != nil {
		header, err = r.allKeys()
		if err != nil {
			return nil, err
		}
	}
	r.findAsides(header)
	// New slices, because like keeps its own.
	r.Schema.Categories, r.vocabularies = nil, nil
	for i, c := range like.Schema.Categories {
		if r.hasColumn(c) {
			r.Schema.Categories = append(r.Schema.Categories, c)
			r.vocabularies = append(r.vocabularies, like.vocabularies[i])
		}
	}
	return r, nil
}

// allKeys gives the keys of all records. Those by which one says that it is no answer need not be in the first.
func (r *Release) allKeys() ([]string, error) {
	rows, err := r.openRows(nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for {
		_, err := rows.Next()
		if _, isProblem := table.AsProblem(err); err == nil || isProblem { // which the reading will say
			continue
		}
		if err == io.EOF {
			err = nil
		}
		return rows.Columns(), err
	}
}

// findAsides finds the columns beside fields and categories that say something of a row. Keys of JSON need not be in
// the first lines: those of the usual spelling are read wherever they are. In a manifest a column says only which thing
// a row is about, and where several rows are about one image nothing does: they can be its comments.
func (r *Release) findAsides(header []string) {
	if r.hasKeys() {
		header = slices.Concat(header, FieldImage.Names(), FieldID.Names(), markNames())
	}
	used := r.used()
	for _, name := range header {
		image := ImageNamed(name) && r.isTable && r.columns[FieldImage.String()] == ""
		answer := AnswerNamed(name) && r.options.Unanswered != nil
		is := image || answer || !ImageNamed(name) && !AnswerNamed(name) && AboutNamed(name) && !r.Schema.Many
		if is && !slices.Contains(used, name) && !slices.Contains(r.asides, name) {
			r.asides = append(r.asides, name)
		}
	}
}
