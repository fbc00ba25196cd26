package manifest

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// openBare opens an annotations file without release.toml: FigSIM's schema, columns by
// name, and the separator that fits its codes.
func openBare(path string, o Options) (*Release, error) {
	format, p := formatOf(path)
	if p != nil {
		return nil, one(p)
	}
	s := figsimSettings(stem(path), format)
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

// figsimSettings are those of a file without release.toml.
func figsimSettings(name string, format Format) *settings {
	s := &settings{file: settingsFile{Name: name, Format: format}, schema: FigSIM(), separator: separators[0], columns: make(map[string]string), named: make(map[string]string)}
	for i := range s.schema.Categories {
		s.vocabularies = append(s.vocabularies, newVocabulary(&s.schema.Categories[i]))
	}
	return s
}

// stem is the file's name without its extension.
func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// separators are the signs that part labels in people's files, the usual one first.
var separators = [...]string{"|", ";", ","}

// separatorRows is how many rows tell which separator a bare file has.
const separatorRows = 10_000

// guessSeparator sets the separator under which most cells are FigSIM's codes, and refuses a
// file in which a whole column is something else.
func (r *Release) guessSeparator() error {
	rows, err := r.openRows(r.plan.names(), false)
	if err != nil {
		return err
	}
	defer rows.close()
	d, err := newDecoder(r, rows.Columns())
	if err != nil {
		return err
	}
	matched := make([][len(separators)]int, len(d.categories)) // cells, by category and sign
	others := make([]*Problem, len(d.categories))              // the first filled cell of each category
	for range separatorRows {
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		if _, ok := asProblem(err); ok {
			continue // Check will report it
		}
		if err != nil {
			return err
		}
		for c, columns := range d.categories {
			cell, v := cells[columns.column], r.vocabularies[c]
			if cell.Null || cell.Fault != "" || !cell.IsList && strings.TrimSpace(cell.Text) == "" {
				continue
			}
			// Named only if no cell of the column turns out to be a code.
			if others[c] == nil {
				line, column := rows.at(columns.column)
				others[c] = &Problem{
					File: r.ManifestPath, Line: line, Column: column,
					Message: fmt.Sprintf("column %s does not have a FigSIM code of category %s; the first value is %s", quote(r.plan.categories[c].column), r.Schema.Categories[c].Name, quote(cell.Text+strings.Join(cell.List, ", "))),
					Hint:    "rehydrate init DIR --manifest FILE makes a release of this file with labels of its own",
				}
			}
			for i, sign := range separators {
				parts := cell.List
				if !cell.IsList {
					parts = split(cell.Text, sign, v)
				}
				if !cell.nested && v.all(parts) {
					matched[c][i]++
				}
			}
		}
	}
	best, most := 0, -1
	for i := range separators {
		sum := 0
		for c := range matched {
			sum += matched[c][i]
		}
		if sum > most {
			best, most = i, sum
		}
	}
	r.plan.separator = separators[best]
	var problems Problems
	for c, p := range others {
		if p != nil && matched[c][best] == 0 {
			problems.add(*p)
		}
	}
	return problems.err()
}
