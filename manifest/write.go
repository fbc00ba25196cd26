package manifest

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// A Writer writes entries as a manifest that has nothing but what a release's columns hold: ids in lower case without
// t3_, labels by their codes, digests in lower case.
type Writer struct {
	schema Schema
	fields []Field // those that are written
	sign   string  // between the labels of a cell
	table  *csv.Writer
	lines  *bufio.Writer
	err    error // a line that no reader would take
}

// NewWriter starts a manifest in CSV, or else in JSON Lines, with the id and these other fields. The separator
// parts the labels of a cell of CSV.
func NewWriter(w io.Writer, f Format, s Schema, separator string, fields ...Field) *Writer {
	m := &Writer{schema: s, sign: separator, fields: append([]Field{FieldID}, fields...)}
	if f != CSV {
		m.lines = bufio.NewWriter(w)
		return m
	}
	m.table = csv.NewWriter(w)
	columns := each(s.Columns, func(c Column) string { return c.Name })
	// a failed write is remembered until the end
	_ = m.table.Write(slices.Concat(each(m.fields, Field.String), s.names(), columns))
	return m
}

// Write adds an entry.
func (m *Writer) Write(e Entry) {
	if m.table != nil {
		row := each(m.fields, func(f Field) string { return f.Of(e) })
		for i, c := range m.schema.Categories {
			row = append(row, strings.Join(c.Codes(e.Labels[i]), m.sign))
		}
		for _, values := range e.Values {
			row = append(row, strings.Join(values, m.sign))
		}
		_ = m.table.Write(row)
		return
	}
	line := []byte("{")
	put := func(key string, of any) {
		// Strings, numbers and lists of strings: marshalling them cannot fail.
		if len(line) > 1 {
			line = append(line, ',')
		}
		line = append(append(append(line, value.TOML(key)...), ':'), value.TOML(of)...)
	}
	fields := func(digests bool) {
		for _, field := range m.fields {
			text := field.Of(e)
			switch {
			case field == FieldImage:
				if !digests {
					put(field.String(), e.Image)
				}
			case text != "" && digests == (field.Digits() > 0):
				put(field.String(), text)
			}
		}
	}
	fields(false)
	for i, c := range m.schema.Categories {
		codes := c.Codes(e.Labels[i])
		switch {
		case e.Labels[i] == nil || c.Kind != Multi && len(codes) == 0:
			put(c.Name, nil)
		case c.Kind == Multi:
			put(c.Name, codes)
		default:
			put(c.Name, codes[0])
		}
	}
	for i, c := range m.schema.Columns {
		of := c.JSON(e.Values[i])
		if c.Type == TypeJSON { // in a file of JSON it stands as it was
			of = unquoted(of)
		}
		put(c.Name, of)
	}
	fields(true) // the long ones last
	if len(line) >= table.MaxRecord && m.err == nil {
		m.err = fmt.Errorf("post %s: its line would have %d bytes, and the reader takes %d: leave out a column of "+
			"long texts", e.ID, len(line)+1, table.MaxRecord)
	}
	_, _ = m.lines.Write(append(line, "}\n"...))
}

// Flush ends the manifest, and gives the first error of writing it.
func (m *Writer) Flush() error {
	if m.table != nil {
		m.table.Flush()
		return m.table.Error()
	}
	return cmp.Or(m.err, m.lines.Flush())
}

// unquoted gives values of JSON that are held as texts, one or a list of them, as themselves.
func unquoted(of any) any {
	switch of := of.(type) {
	case string:
		return json.RawMessage(of)
	case []any:
		for i := range of {
			of[i] = unquoted(of[i])
		}
	}
	return of
}

// Codes gives the codes of labels.
func (c Category) Codes(labels []int) []string {
	return each(labels, func(l int) string { return c.Labels[l].Code })
}

// JSON gives values as JSON has them. Only a column of lists has an empty list.
func (c Column) JSON(values []string) any {
	if values == nil || !c.List && len(values) == 0 {
		return nil
	}
	list := make([]any, len(values))
	for i, text := range values {
		switch {
		case text == NoValue: // null
		case c.Type == TypeInteger, c.Type == TypeNumber:
			list[i] = json.Number(text)
		case c.Type == TypeBoolean:
			list[i] = text == "true"
		default:
			list[i] = text
		}
	}
	if c.List {
		return list
	}
	return list[0]
}
