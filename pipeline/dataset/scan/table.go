package scan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Table reads what two datasets are compared by, row by row, from a Parquet file that anybody may have
// written: everything but the images. Memory is bounded by one page of each column.
type Table struct {
	labelledReader
	name   string         // of the file
	place  map[string]int // column -> its cell
	labels []string       // the label columns
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

// OpenTable opens a Parquet file that has its rows' ids in a column id. The error, a *manifest.Problem,
// says why it cannot be read.
func OpenTable(f *os.File) (*Table, error) {
	t, err := openComparable(f)
	if err != nil {
		return nil, asProblem(f.Name(), err)
	}
	return t, nil
}

func openComparable(f *os.File) (t *Table, err error) {
	defer recovered(&err)()
	rows, err := openTableReader(f, tableLimits)
	if err != nil {
		return nil, err
	}
	t = &Table{labelledReader{rows, labelNames(rows.file.Features())}, f.Name(), map[string]int{}, nil}
	for _, c := range tableColumns(rows.file.parquet.Root()) {
		if t.Has(c.name) || slices.Contains([]string{"ocr_confidence", "width", "height", "filter"}, c.name) {
			continue
		}
		t.place[c.name] = len(rows.names)
		rows.add(c, true)
		if !slices.Contains([]string{"id", "sha256", "phash", "ocr_text", "split"}, c.name) {
			t.labels = append(t.labels, c.name)
		}
	}
	if !t.Has("id") {
		return nil, hinted{errors.New("it has no column id, by which rows could be compared"), "name a dataset that rehydrate wrote, or a Parquet with such a column"}
	}
	return t, rows.checkCodecs()
}

// Has reports whether there is a column of that name that is read.
func (t *Table) Has(column string) bool {
	_, ok := t.place[column]
	return ok
}

// Labels are the columns of labels, in the file's order: every column that is not a standard one.
func (t *Table) Labels() []string { return t.labels }

// LabelNames are the names of a label column's values; nil where the file does not tell.
func (t *Table) LabelNames(column string) []string { return t.names[column] }

// Columns gives the type of every column of the file, of those that are not read too.
func (t *Table) Columns() map[string]string {
	out := map[string]string{}
	for _, c := range t.file.parquet.Root().Columns() {
		out[c.Name()] = columnType(c)
	}
	return out
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

// Provenance is what the footer says of the file's origin, by the keys of rehydrate.*.
func (t *Table) Provenance() map[string]string {
	out := map[string]string{}
	for _, kv := range t.file.parquet.Metadata().KeyValueMetadata {
		if key, ours := strings.CutPrefix(kv.Key, "rehydrate."); ours {
			out[key] = kv.Value
		}
	}
	return out
}

// Next returns the next row, io.EOF after the last. Every other error is final: the file is damaged or
// forged.
func (t *Table) Next() (TableRow, error) {
	cells, err := t.labelledReader.Next()
	if err == io.EOF {
		return TableRow{}, err
	}
	if err != nil {
		return TableRow{}, asProblem(t.name, err)
	}
	// A cell that cannot be used would pass as a difference between two datasets.
	for column, i := range t.place {
		if f := cells[i].Fault; f != "" {
			return TableRow{}, asProblem(t.name, fmt.Errorf("a value of column %q %s", column, f))
		}
	}
	text := func(column string) string {
		if i, ok := t.place[column]; ok && !cells[i].IsList {
			return cells[i].Text
		}
		return ""
	}
	row := TableRow{ID: text("id"), SHA256: text("sha256"), PHash: text("phash"), Text: text("ocr_text"), Split: text("split")}
	// Ids are kept for all rows of a file.
	if len(row.ID) > maxRowID {
		return TableRow{}, asProblem(t.name, fmt.Errorf("an id has %d bytes, at most %d are taken", len(row.ID), maxRowID))
	}
	for _, column := range t.labels {
		var values []string
		switch c := cells[t.place[column]]; {
		case c.Null:
		case c.IsList:
			values = slices.Clone(c.List)
		default:
			values = []string{c.Text}
		}
		row.Labels = append(row.Labels, values)
	}
	return row, nil
}
