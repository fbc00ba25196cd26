package manifest

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// openBare opens an annotations file without release.toml: FigSIM's schema, columns by
// name, and the separator that fits its codes.
func openBare(path string, o Options) (*Release, error) {
	s := &settings{file: settingsFile{Name: stem(path)}, schema: FigSIM(), separator: separators[0]}
	for i := range s.schema.Categories {
		s.vocabularies = append(s.vocabularies, newVocabulary(&s.schema.Categories[i]))
	}
	var p *Problem
	if s.file.Format, p = formatOf(path); p != nil {
		return nil, one(p)
	}
	r := newRelease(s, o)
	r.ManifestPath = path
	if err := r.bind(s, nil); err != nil {
		return nil, err
	}
	if err := r.guessSeparator(); err != nil {
		return nil, err
	}
	return r, nil
}

// stem is the file's name without its extension.
func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// separators are the signs that part labels in people's files, the usual one first.
var separators = [...]string{"|", ";", ","}

// A fit counts how a category's cells read under each separator.
type fit struct {
	filled  int
	matched [len(separators)]int
	example string // the first cell, and where it stands
	line    int
	column  int
}

func (f *fit) add(c Cell, v vocabulary, at func() (line, column int)) {
	if c.Null || c.Fault != "" || !c.IsList && strings.TrimSpace(c.Text) == "" {
		return
	}
	f.filled++
	if f.filled == 1 {
		f.example = c.Text + strings.Join(c.List, ", ")
		f.line, f.column = at()
	}
	f.match(c, v, 1)
}

// match counts the cell n times for each separator under which it is labels.
func (f *fit) match(c Cell, v vocabulary, n int) {
	_, whole := v.find(c.Text)
	for i, sign := range separators {
		if !c.IsList && whole || labelsOf(c, sign, v) {
			f.matched[i] += n
		}
	}
}

// labelsOf reports whether the cell holds labels of the category and nothing else.
func labelsOf(c Cell, separator string, v vocabulary) bool {
	if c.nested {
		return false
	}
	if c.IsList {
		return v.all(c.List)
	}
	return v.all(split(c.Text, separator, v))
}

// guessSeparator sets the separator under which most cells are FigSIM's codes, and
// refuses a file of which a whole column is something else.
func (r *Release) guessSeparator() error {
	fits, err := r.fits()
	if err != nil {
		return err
	}
	best, most := 0, -1
	for i := range separators {
		matched := 0
		for _, f := range fits {
			matched += f.matched[i]
		}
		if matched > most {
			best, most = i, matched
		}
	}
	r.plan.separator = separators[best]
	var problems Problems
	for c, f := range fits {
		if f.filled > 0 && f.matched[best] == 0 {
			problems.add(Problem{
				File: r.ManifestPath, Line: f.line, Column: f.column,
				Message: fmt.Sprintf("column %s has no FigSIM code of category %s; the first value is %s", quote(r.plan.categories[c].column), r.Schema.Categories[c].Name, quote(f.example)),
				Hint:    "rehydrate init DIR --manifest FILE makes a release of this file with labels of its own",
			})
		}
	}
	return problems.err()
}

// fits reads the label columns. Rows that cannot be read are left to Check.
func (r *Release) fits() ([]fit, error) {
	rows, err := r.openRows(r.plan.names(), false)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	d, err := newDecoder(r, rows.Columns())
	if err != nil {
		return nil, err
	}
	fits := make([]fit, len(r.plan.categories))
	for range maxRows {
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		var p *Problem
		if errors.As(err, &p) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for c, columns := range d.categories {
			at := func() (int, int) { return rows.at(columns.column) }
			fits[c].add(cells[columns.column], r.vocabularies[c], at)
		}
	}
	return fits, nil
}
