package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// A plan says which column holds what. Columns are named, not numbered, so that it
// outlives the reader.
type plan struct {
	fields     [len(fieldNames)]string // by fieldNames, "" = none
	categories []categoryPlan          // by Schema.Categories
	separator  string
	keys       bool // an id may be ID/N, as outcomes.csv and the dataset name the image N of a gallery
}

// A categoryPlan is a category's column, or one column per label ("" = none).
type categoryPlan struct {
	column string
	oneHot []string
}

// The places of fieldNames in plan.fields.
const (
	fieldID = iota
	fieldSplit
	fieldImage
	fieldSHA256
	fieldPHash
	fieldSubreddit
)

// names gives every column that the plan uses.
func (p *plan) names() []string {
	var names []string
	for _, name := range p.fields {
		names = append(names, name)
	}
	for _, c := range p.categories {
		names = append(append(names, c.column), c.oneHot...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// aliases gives the names under which people keep a field, the likeliest first. They
// are compared as plain does.
func aliases(field int) []string {
	return [...][]string{
		fieldID:        {"id", "post_id", "postid", "submission_id", "submissionid", "reddit_id", "redditid", "link_id", "fullname", "permalink", "post_url", "url", "link"},
		fieldSplit:     {"split", "set", "subset", "partition"},
		fieldImage:     {"image", "image_index", "image_number", "gallery_index"},
		fieldSHA256:    {"sha256", "image_sha256"},
		fieldPHash:     {"phash", "image_phash", "perceptual_hash"},
		fieldSubreddit: {"subreddit", "subreddit_name"},
	}[field]
}

func categoryAliases(c *Category) []string { return []string{plain(c.Name), plain(c.Title)} }

// plain is a column name as aliases are written: folded, with _ between the words.
func plain(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(fold(name))
}

// A matcher finds the columns of the fields and categories: those that are set, by
// exact name; the others by alias.
type matcher struct {
	settings *settings
	file     string
	columns  []string
	open     bool // columns are only those met so far (JSONL)

	problems []Problem
	used     map[string]bool
}

func (m *matcher) match() (plan, error) {
	p := plan{separator: m.settings.separator}
	m.used = make(map[string]bool)
	for name := range m.settings.named {
		m.used[name] = true
	}
	for field, name := range fieldNames[:fieldSubreddit] {
		p.fields[field] = m.find(name, aliases(field))
	}
	if p.fields[fieldID] == "" && len(m.problems) == 0 {
		m.missing("no column of post ids was found", "id", m.delimiterHint())
	}
	for i := range m.settings.schema.Categories {
		c := &m.settings.schema.Categories[i]
		if oneHot, ok := m.settings.oneHot[c.Name]; ok {
			for _, name := range oneHot {
				m.check(name)
			}
			p.categories = append(p.categories, categoryPlan{oneHot: oneHot})
			continue
		}
		column := m.find(c.Name, categoryAliases(c))
		if column == "" {
			m.missing(fmt.Sprintf("no column was found for category %s (%s)", c.Name, c.Title), c.Name, "")
		}
		p.categories = append(p.categories, categoryPlan{column: column})
	}
	// Last, because a release may have made the subreddit a label.
	p.fields[fieldSubreddit] = m.find(fieldNames[fieldSubreddit], aliases(fieldSubreddit))
	return p, m.err()
}

// err gives the problems of release.toml, then those of the manifest.
func (m *matcher) err() error {
	var all Problems
	if t := m.settings.toml; t != nil {
		all = t.found()
	}
	all.add(m.problems...)
	return all.err()
}

// find gives the column of a key, "" when there is none.
func (m *matcher) find(key string, aliases []string) string {
	if name, set := m.settings.columns[key]; set {
		m.check(name)
		return name
	}
	for _, alias := range aliases {
		var found []string
		for _, column := range m.columns {
			if plain(column) == alias && !m.used[column] {
				found = append(found, column)
			}
		}
		if len(found) > 1 {
			m.missing(fmt.Sprintf("columns %s and %s could both be %s", quote(found[0]), quote(found[1]), key), key, "")
		}
		if len(found) > 0 {
			m.used[found[0]] = true
			return found[0]
		}
	}
	return ""
}

// check reports a column that release.toml names and the manifest does not have.
func (m *matcher) check(name string) {
	// Keys of JSON lines need not be in the first lines: they are checked while reading.
	if name == "" || m.open || slices.Contains(m.columns, name) {
		return
	}
	hint := "its columns are " + quotedList(m.columns)
	if near := Nearest(name, m.columns); near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	m.settings.toml.Add(m.settings.named[name], fmt.Sprintf("the manifest has no column %s", quote(name)), hint)
}

// missing reports what the header should have.
func (m *matcher) missing(message, key, hint string) {
	switch {
	case hint != "":
	case m.settings.toml == nil:
		hint = "rehydrate init DIR --manifest FILE makes a release of this file, in which its columns are named"
	default:
		hint = fmt.Sprintf(`name it in release.toml, under [columns]: %s = "..."`, key)
	}
	m.problems = append(m.problems, Problem{File: m.file, Line: 1, Message: message + "; the columns are " + quotedList(m.columns), Hint: hint})
}

// delimiterHint is for a file whose fields are separated by another sign.
func (m *matcher) delimiterHint() string {
	if len(m.columns) == 1 {
		if i := strings.IndexAny(m.columns[0], ";\t,"); i >= 0 {
			return fmt.Sprintf("the fields seem to be separated by %q: save the file as .csv with commas or as .tsv with tabs", m.columns[0][i:i+1])
		}
	}
	return ""
}
