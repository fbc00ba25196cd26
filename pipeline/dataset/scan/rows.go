package scan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/manifest"
)

// What is taken of a cell. A million posts with labels need far less.
const (
	maxCellBytes = 64 << 10 // a text; the longest line of a CSV manifest has as much
	maxListItems = 10_000
)

// OpenManifest opens a Parquet file for reading as a manifest, row by row. It gives text, integers, floats, booleans
// ("true", "false"), times (RFC 3339) and lists of them; columns of any other kind (an image, a map) are left out of Columns.
// Only the columns named by want are read, and checked; nil is all of them. The cells of the others are Null.
//
// A file that cannot be read as Parquet gives a *manifest.Problem, what is damaged or forged within it a final error
// of Next. A value that cannot be used is told in its cell.
func OpenManifest(path string, want []string) (manifest.RowReader, error) {
	return openManifest(path, want, false)
}

// OpenLabelled is OpenManifest for a dataset: where the footer says that the numbers of a column
// are ClassLabels, as Hugging Face datasets and WriteParquet have it, the column's cells hold the
// names of the labels. The number -1, which datasets writes for no label, is null.
func OpenLabelled(path string, want []string) (manifest.RowReader, error) {
	return openManifest(path, want, true)
}

func openManifest(path string, want []string, labelled bool) (manifest.RowReader, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	f.guard.most = tableLimits
	t := &table{File: f}
	switch err := t.choose(want, labelled); {
	case err != nil:
		f.Close()
		return nil, Damaged(path, err)
	case len(t.columns) == 0:
		f.Close()
		return nil, &manifest.Problem{File: path, Message: "it has no column of text, numbers, booleans or lists of them",
			Hint: "write ids as text, and labels as text or lists of text"}
	}
	return t, nil
}

// A table gives rows as cells of text.
type table struct {
	*File
	columns []*textColumn
	cells   []manifest.Cell
}

// A textColumn is a scalar or a list of scalars that can be written as text.
type textColumn struct {
	*cursor  // nil where it is not read
	name     string
	leaf     *parquet.Column
	labels   []string // the names of its numbers; nil for none
	unsigned bool
	time     func(int64) time.Time // what its numbers are, nil where they are no times
	list     bool
	present  int // the definition level from which it is not null; of a list, that of an empty one
}

// choose finds the columns that can be written as text, and reads those that are wanted.
func (t *table) choose(want []string, labelled bool) (err error) {
	// The layout is a claim too, and the library is asked about it.
	defer recovered(&err)()
	features := map[string]Feature{}
	if labelled {
		features = t.Features()
	}
	for _, c := range t.parquet.Root().Columns() {
		column := &textColumn{name: c.Name(), leaf: c, labels: features[c.Name()].Labels(), present: c.MaxDefinitionLevel()}
		switch {
		case c.Leaf() && c.Repeated(): // as files before the LIST type have it
			column.list, column.present = true, 0
		case !c.Leaf():
			column.leaf, column.list = listElement(c), true
		}
		if column.leaf == nil || !column.readable() {
			continue
		}
		if want == nil || slices.Contains(want, column.name) {
			column.cursor = &cursor{file: t.File, leaf: column.leaf}
		}
		// Every column has its place among the cells, also those that are not read.
		t.columns = append(t.columns, column)
		t.cells = append(t.cells, manifest.Cell{Null: true})
	}
	return nil
}

// Close closes the file.
func (t *table) Close() error {
	for _, c := range t.columns {
		if c.cursor != nil {
			c.close()
		}
	}
	return t.File.Close()
}

func (t *table) Columns() []string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// Next returns the cells of the next row, io.EOF after the last.
func (t *table) Next() ([]manifest.Cell, error) {
	err := error(io.EOF) // of a table of which nothing is read
	for i, c := range t.columns {
		if c.cursor == nil {
			continue
		}
		t.cells[i], err = c.cell()
		if err != nil {
			break
		}
	}
	return t.cells, err
}

// listElement gives the leaf of a list of scalars, or nil. Not every writer says of a list that it is one.
func listElement(c *parquet.Column) *parquet.Column {
	if c.Leaf() || c.Repeated() || len(c.Columns()) != 1 || !c.Columns()[0].Repeated() {
		return nil
	}
	element := c.Columns()[0]
	// Older writers leave out the group between a list and its elements.
	if !element.Leaf() && len(element.Columns()) == 1 && !element.Columns()[0].Repeated() {
		element = element.Columns()[0]
	}
	if !element.Leaf() {
		return nil
	}
	return element
}

// readable reports whether the values can be written as text, and finds out whether they have a sign.
func (c *textColumn) readable() bool {
	if lt := c.leaf.Type().LogicalType(); lt != nil {
		switch lt := lt.Value.(type) {
		case nil, *format.StringType, *format.EnumType, *format.JsonType:
		case *format.IntType:
			c.unsigned = !lt.IsSigned
		case *format.TimestampType:
			switch lt.Unit.Value.(type) {
			case *format.MilliSeconds:
				c.time = time.UnixMilli
			case *format.MicroSeconds:
				c.time = time.UnixMicro
			default:
				return false // nanoseconds, which no annotation has
			}
		default:
			return false
		}
	}
	kinds := []parquet.Kind{parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.ByteArray}
	return slices.Contains(kinds, c.leaf.Type().Kind())
}

// cell reads the column's value of the next row.
func (c *textColumn) cell() (cell manifest.Cell, err error) {
	cell.IsList = c.list
	err = c.row(func(v parquet.Value) {
		level := v.DefinitionLevel()
		switch {
		case cell.Fault != "": // to the end of the list all the same, so that the next row starts in step
		case level < c.present:
			cell.Null = true
		case level == c.present && c.list:
			cell.List = []string{}
		case level < c.leaf.MaxDefinitionLevel():
			cell = manifest.Cell{Fault: "is a list with a null in it"}
		case len(cell.List) == maxListItems:
			cell = manifest.Cell{Fault: fmt.Sprintf("is a list of more than %d items", maxListItems)}
		default:
			c.take(&cell, v)
		}
	})
	return cell, err
}

// take adds a value to a cell.
func (c *textColumn) take(cell *manifest.Cell, v parquet.Value) {
	text := c.text(v)
	switch {
	case c.labels != nil && !c.list && text == "-1":
		*cell = manifest.Cell{Null: true}
		return
	case len(text) > maxCellBytes:
		*cell = manifest.Cell{Fault: fmt.Sprintf("has a text of more than %d bytes", maxCellBytes)}
		return
	case !utf8.ValidString(text):
		*cell = manifest.Cell{Fault: "has a text that is not UTF-8"}
		return
	case c.labels != nil:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(c.labels) {
			*cell = manifest.Cell{Fault: fmt.Sprintf("is the label number %q, and the file's footer names %d labels", text, len(c.labels))}
			return
		}
		text = c.labels[n]
	}
	// A number of floating point may have been an id once, before some program took it for a number.
	cell.Float = v.Kind() == parquet.Float || v.Kind() == parquet.Double
	if c.list {
		cell.List = append(cell.List, text)
	} else {
		cell.Text = text
	}
}

// text writes a value as text.
func (c *textColumn) text(v parquet.Value) string {
	switch kind := v.Kind(); {
	case c.time != nil && kind == parquet.Int64:
		return c.time(v.Int64()).UTC().Format(manifest.TimeForm)
	case kind == parquet.Int32 && c.unsigned:
		return strconv.FormatUint(uint64(v.Uint32()), 10)
	case kind == parquet.Int64 && c.unsigned:
		return strconv.FormatUint(v.Uint64(), 10)
	case kind == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32)
	case kind == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'f', -1, 64)
	case kind == parquet.ByteArray:
		// One byte more than is taken is enough to refuse it.
		return string(v.ByteArray()[:min(len(v.ByteArray()), maxCellBytes+1)])
	}
	return v.String()
}
