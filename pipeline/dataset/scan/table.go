package scan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"rehydrate/manifest"
)

// A Table reads what two datasets are compared by, row by row, from a Parquet file that anybody may have
// written: everything but the images. Memory is bounded by one page of each column.
type Table struct {
	rows   *tableReader
	name   string         // of the file
	place  map[string]int // column -> its cell
	labels []string       // the label columns
	names  map[string][]string
}

// A TableRow is one row of a Table.
type TableRow struct {
	ID                         string // "" where the row has none
	SHA256, PHash, Text, Split string // empty for null and without such a column
	// Labels has, for each column of Table.Labels, the values: names where the file tells the names of its
	// labels, else as they stand. nil means that no label was given.
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
	rows, err := openTableReader(f, limits{})
	if err != nil {
		return nil, err
	}
	t = &Table{rows: rows, name: f.Name(), place: map[string]int{}, names: labelNames(rows.file.Features())}
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
	for _, c := range t.rows.file.parquet.Root().Columns() {
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
	for _, kv := range t.rows.file.parquet.Metadata().KeyValueMetadata {
		if key, ours := strings.CutPrefix(kv.Key, "rehydrate."); ours {
			out[key] = kv.Value
		}
	}
	return out
}

// Close closes the file.
func (t *Table) Close() error { return t.rows.Close() }

// Next returns the next row, io.EOF after the last. Every other error is final: the file is damaged or
// forged.
func (t *Table) Next() (TableRow, error) {
	cells, err := t.rows.Next()
	if err == io.EOF {
		return TableRow{}, err
	}
	if err != nil {
		return TableRow{}, asProblem(t.name, err)
	}
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
	if len(row.ID) > maxRowID {
		return TableRow{}, asProblem(t.name, fmt.Errorf("an id has %d bytes, at most %d are taken", len(row.ID), maxRowID))
	}
	for _, column := range t.labels {
		row.Labels = append(row.Labels, t.values(column, cells[t.place[column]]))
	}
	return row, nil
}

func (t *Table) values(column string, c manifest.Cell) []string {
	if c.Null {
		return nil
	}
	list := []string{c.Text}
	if c.IsList {
		list = slices.Clone(c.List)
	}
	for i, v := range list {
		if id, err := strconv.Atoi(v); err == nil && id >= 0 && id < len(t.names[column]) {
			list[i] = t.names[column][id]
		}
	}
	return list
}
