package scan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Table reads what two datasets are compared by, row by row, from a Parquet file that anybody may have
// written: everything but the images.
type Table struct {
	table table
	path  string

	Has        map[string]bool     // whether a column of that name is read
	Labels     []string            // the label columns, in the file's order: every column that is not a standard one
	LabelNames map[string][]string // the names of a label column's values, as far as the file tells them
	Columns    map[string]string   // the type of every column, of those that are not read too
	Provenance map[string]string   // what the footer says of the file's origin, by the keys of rehydrate.*
}

// A TableRow is one row of a Table.
type TableRow struct {
	ID                         string // "" where the row has none
	SHA256, PHash, Text, Split string // empty for null and without such a column
	// Labels has, for each column of Table.Labels, the values, as OpenLabelled gives them. nil means that no
	// label was given.
	Labels [][]string
}

// maxRowID is the longest id that is taken, in bytes.
const maxRowID = 100

// OpenTable opens a Parquet file that has its rows' ids in a column id. The error, a *manifest.Problem
// where the file is there, says why it cannot be read.
func OpenTable(path string) (*Table, error) {
	t := &Table{path: path, Has: map[string]bool{}, LabelNames: map[string][]string{},
		Columns: map[string]string{}, Provenance: map[string]string{}}
	return t, t.table.open(path, tableLimits, t.choose)
}

func (t *Table) choose() error {
	t.table.choose(true, func(name string) bool {
		// The first of two columns of one name counts.
		if t.Has[name] || slices.Contains([]string{"ocr_confidence", "width", "height", "filter"}, name) {
			return false
		}
		t.Has[name] = true
		if new(TableRow).field(name) == nil {
			t.Labels = append(t.Labels, name)
		}
		return true
	})
	if !t.Has["id"] {
		return hinted{errors.New("it has no column id, by which rows could be compared"),
			"name a dataset that rehydrate wrote, or a Parquet with such a column"}
	}
	for _, c := range t.table.columns {
		t.LabelNames[c.name] = c.labels
	}
	for _, c := range t.table.parquet.Root().Columns() {
		t.Columns[c.Name()] = columnType(c)
	}
	for _, kv := range t.table.parquet.Metadata().KeyValueMetadata {
		if key, ours := strings.CutPrefix(kv.Key, "rehydrate."); ours {
			t.Provenance[key] = kv.Value
		}
	}
	return nil
}

func columnType(c *parquet.Column) string {
	switch {
	case c.Leaf():
		return strings.ToLower(c.Type().String())
	case listElement(c) != nil:
		return "list of " + strings.ToLower(listElement(c).Type().String())
	}
	return "struct"
}

// Close closes the file.
func (t *Table) Close() error { return t.table.Close() }

// field is where the text of a standard column goes; nil for a column of labels.
func (r *TableRow) field(column string) *string {
	switch column {
	case "id":
		return &r.ID
	case "sha256":
		return &r.SHA256
	case "phash":
		return &r.PHash
	case "ocr_text":
		return &r.Text
	case "split":
		return &r.Split
	}
	return nil
}

// Next returns the next row, io.EOF after the last. Every other error is final: the file is damaged or
// forged.
func (t *Table) Next() (row TableRow, err error) {
	cells, err := t.table.Next()
	if err == io.EOF {
		return TableRow{}, err
	}
	for i, c := range t.table.columns {
		cell, field := cells[i], row.field(c.name)
		switch {
		case err != nil:
		case c.cursor == nil:
		// A cell that cannot be used would pass as a difference between two datasets.
		case cell.Fault != "":
			err = fmt.Errorf("a value of column %q %s", c.name, cell.Fault)
		case field != nil:
			*field = cell.Text
		case cell.Null:
			row.Labels = append(row.Labels, nil)
		case cell.IsList:
			row.Labels = append(row.Labels, cell.List)
		default:
			row.Labels = append(row.Labels, []string{cell.Text})
		}
	}
	// Ids are kept for all rows of a file.
	if err == nil && len(row.ID) > maxRowID {
		err = fmt.Errorf("an id has %d bytes, at most %d are taken", len(row.ID), maxRowID)
	}
	if err != nil {
		return TableRow{}, asProblem(t.path, err)
	}
	return row, nil
}
