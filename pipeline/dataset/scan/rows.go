package scan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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
// ("true", "false"), times (RFC 3339) and lists of them; columns of any other kind (an image, a map) are left out of
// Columns. Where the footer says that the numbers of a column are ClassLabels, as Hugging Face datasets and
// WriteParquet have it, its cells hold the names of the labels, and null for -1, which datasets writes for no label.
// Only the columns named by want are read, and checked; nil is all of them. The cells of the others are Null.
//
// A file that cannot be read as Parquet gives a *manifest.Problem, what is damaged or forged within it a final error
// of Next. A value that cannot be used is told in its cell.
func OpenManifest(path string, want []string) (manifest.RowReader, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return f.Cells(want)
}

// Cells reads a file of OpenFile as OpenManifest does. What it returns closes the file, and so does an error.
func (f *File) Cells(want []string) (manifest.RowReader, error) {
	f.guard.most = mostOfTable
	t, features := &table{File: f}, f.Features()
	for _, c := range f.Columns {
		text := asText(c.leaf.Type())
		if c.nested || text == nil {
			continue
		}
		if want == nil || slices.Contains(want, c.Top) {
			t.columns = append(t.columns, textColumn{f.read(c), len(t.row), features[c.Top].Labels(), text})
		}
		// Every column has its place among the cells, also those that are not read.
		t.names, t.row = append(t.names, c.Top), append(t.row, manifest.Cell{Null: true})
	}
	if len(t.row) == 0 {
		f.Close()
		return nil, &manifest.Problem{File: f.disk.Name(),
			Message: "it has no column of text, numbers, booleans or lists of them",
			Hint:    "write ids as text, and labels as text or lists of text"}
	}
	return t, nil
}

// A table gives rows as cells of text.
type table struct {
	*File
	names   []string
	row     []manifest.Cell
	columns []textColumn // those that are read
}

// A textColumn is a scalar or a list of scalars that can be written as text.
type textColumn struct {
	*cursor
	at     int      // its place in a row
	labels []string // the names of its numbers; nil for none
	text   func(parquet.Value) string
}

// Close closes the file.
func (t *table) Close() error {
	for _, c := range t.columns {
		c.close()
	}
	return t.File.Close()
}

func (t *table) Columns() []string { return t.names }

// Next returns the cells of the next row, io.EOF after the last.
func (t *table) Next() ([]manifest.Cell, error) {
	err := error(io.EOF) // of a table of which nothing is read
	for _, c := range t.columns {
		cell := manifest.Cell{IsList: c.list}
		err = c.row(func(v parquet.Value) {
			// After a fault to the end of the list all the same, so that the next row starts in step.
			if cell.Fault == "" {
				cell.Fault = c.take(&cell, v)
			}
		})
		if err != nil {
			break
		}
		if cell.Fault != "" {
			cell = manifest.Cell{Fault: cell.Fault}
		}
		t.row[c.at] = cell
	}
	return t.row, err
}

// asText returns how values of a type are written as text, nil where they cannot be.
func asText(t parquet.Type) func(parquet.Value) string {
	kind, unsigned := t.Kind(), false
	if lt := t.LogicalType(); lt != nil {
		switch lt := lt.Value.(type) {
		case nil, *format.StringType, *format.EnumType, *format.JsonType:
		case *format.IntType:
			unsigned = !lt.IsSigned
		case *format.TimestampType:
			at := time.UnixMilli
			switch lt.Unit.Value.(type) {
			case *format.MilliSeconds:
			case *format.MicroSeconds:
				at = time.UnixMicro
			default: // nanoseconds
				at = func(n int64) time.Time { return time.Unix(0, n) }
			}
			form := manifest.TimeForm
			if !lt.IsAdjustedToUTC { // nobody says in which time zone it stands
				form = strings.TrimSuffix(form, "Z")
			}
			return func(v parquet.Value) string { return at(v.Int64()).UTC().Format(form) }
		default:
			return nil
		}
	}
	switch {
	case kind == parquet.Int32 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) }
	case kind == parquet.Int64 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }
	case kind == parquet.Float:
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32) }
	case kind == parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'f', -1, 64) }
	case kind == parquet.ByteArray: // one byte more than is taken is enough to refuse it
		return func(v parquet.Value) string { return string(v.ByteArray()[:min(len(v.ByteArray()), maxCellBytes+1)]) }
	case kind == parquet.Boolean, kind == parquet.Int32, kind == parquet.Int64:
		return parquet.Value.String
	}
	return nil
}

// take adds a value to a cell, or says why it cannot be used.
func (c *textColumn) take(cell *manifest.Cell, v parquet.Value) (fault string) {
	level, empty := v.DefinitionLevel(), 0 // the level of an empty list; below it the value is null
	if c.optional {
		empty = 1
	}
	switch {
	case level < empty, v.IsNull() && !c.list:
		cell.Null = true
		return ""
	case level == empty && c.list:
		cell.List = []string{}
		return ""
	case v.IsNull():
		return "is a list with a null in it"
	case len(cell.List) == maxListItems:
		return fmt.Sprintf("is a list of more than %d items", maxListItems)
	}
	text := c.text(v)
	switch {
	case c.labels != nil && !c.list && text == "-1":
		cell.Null = true
		return ""
	case len(text) > maxCellBytes:
		return fmt.Sprintf("has a text of more than %d bytes", maxCellBytes)
	case !utf8.ValidString(text):
		return "has a text that is not UTF-8"
	case c.labels != nil:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(c.labels) {
			return fmt.Sprintf("is the label number %q, and the file's footer names %d labels", text, len(c.labels))
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
	return ""
}
