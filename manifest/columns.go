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

func (c categoryPlan) found() bool { return c.column != "" || c.oneHot != nil }

// The places of fieldNames in plan.fields.
const (
	fieldID = iota
	fieldSplit
	fieldImage
	fieldSHA256
	fieldStripped
	fieldPixels
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
		fieldStripped:  {"sha256_stripped"},
		fieldPixels:    {"sha256_pixels"},
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
	*settings
	file     string
	header   []string // the file's columns; of JSONL only those met so far
	used     map[string]bool
	problems []Problem
}

// match plans how the file with these columns is read. Its error is *Problems.
func (s *settings) match(file string, header []string) (plan, error) {
	m := matcher{settings: s, file: file, header: header, used: make(map[string]bool)}
	p := plan{separator: m.separator, keys: m.isTable}
	for name := range m.named {
		m.used[name] = true
	}
	for field, name := range fieldNames[:fieldSubreddit] {
		p.fields[field] = m.find(name, aliases(field))
	}
	if p.fields[fieldID] == "" && len(m.problems) == 0 {
		m.missing("no column of post ids was found", "id")
	}
	for i := range m.schema.Categories {
		c := &m.schema.Categories[i]
		if oneHot, ok := m.oneHot[c.Name]; ok {
			for _, name := range oneHot {
				m.check(name)
			}
			p.categories = append(p.categories, categoryPlan{oneHot: oneHot})
			continue
		}
		column := m.find(c.Name, categoryAliases(c))
		if column == "" && !m.isTable {
			m.missing(fmt.Sprintf("no column was found for category %s (%s)", c.Name, c.Title), c.Name)
		}
		p.categories = append(p.categories, categoryPlan{column: column})
	}
	if m.isTable && len(m.problems) == 0 && !slices.ContainsFunc(p.categories, categoryPlan.found) {
		m.missing("no column of labels was found", "")
	}
	// Last, because a release may have made the subreddit a label.
	p.fields[fieldSubreddit] = m.find(fieldNames[fieldSubreddit], aliases(fieldSubreddit))
	// The problems of release.toml come first.
	var all Problems
	if m.toml != nil {
		all = m.toml.found()
	}
	all.add(m.problems...)
	return p, all.err()
}

// find gives the column of a key, "" when there is none.
func (m *matcher) find(key string, aliases []string) string {
	if name, set := m.columns[key]; set {
		m.check(name)
		return name
	}
	for _, alias := range aliases {
		var found []string
		for _, column := range m.header {
			if plain(column) == alias && !m.used[column] {
				found = append(found, column)
			}
		}
		if len(found) > 1 {
			m.missing(fmt.Sprintf("columns %s and %s could both be %s", quote(found[0]), quote(found[1]), key), key)
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
	if name == "" || m.settings.file.Format == JSONL || slices.Contains(m.header, name) {
		return
	}
	hint := "its columns are " + quotedList(m.header)
	if near := Nearest(name, m.header); near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	m.toml.Add(m.named[name], fmt.Sprintf("the manifest has no column %s", quote(name)), hint)
}

// missing reports what the header should have.
func (m *matcher) missing(message, key string) {
	hint := "rehydrate init DIR --manifest FILE makes a release of this file, in which its columns are named"
	switch {
	case len(m.header) == 1 && strings.ContainsAny(m.header[0], ";\t,"):
		hint = "the fields seem to have another separator: save the file as .csv with commas or as .tsv with tabs"
	case m.isTable:
		hint = "name the columns id and " + list(m.schema.names())
	case m.toml != nil:
		hint = fmt.Sprintf(`name it in release.toml, under [columns]: %s = "..."`, key)
	}
	message += "; the columns are " + quotedList(m.header)
	m.problems = append(m.problems, Problem{File: m.file, Line: 1, Message: message, Hint: hint})
}
