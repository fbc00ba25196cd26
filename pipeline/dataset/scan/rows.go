package scan

import (
	"cmp"
	"fmt"
	"io"
	"math/big"
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
	maxCellBytes = 1 << 20 // a text; the longest record of a JSON manifest has as much
	maxListItems = 10_000
)

// OpenManifest opens a Parquet file for reading as a manifest, row by row. It gives text, integers, floats, decimals,
// booleans ("true", "false"), times (RFC 3339), dates, times of day, UUIDs and lists of them; columns of any other kind
// (an image, a map) are left out of Columns, and Unread names them. Where the footer says that the numbers of a column
// are ClassLabels, as Hugging Face datasets and WriteParquet have it, its cells hold the names of the labels, and null
// for -1, which datasets writes for no label. Only the columns named by want are read, and checked; nil is all of them.
// The cells of the others are Null.
//
// A file that cannot be read as Parquet gives a *manifest.Problem, what is damaged or forged within it a final error
// of Next. A value that cannot be used is told in its cell.
func OpenManifest(path string, want []string) (manifest.RowReader, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return f.cells(want, false)
}

// Cells reads all columns of a file of OpenFile as OpenManifest does, and a list as a dataset has it of the rows about
// an image: of any length, with manifest.NoValue for a null. What it returns closes the file, and so does an error.
func (f *File) Cells() (manifest.RowReader, error) { return f.cells(nil, true) }

func (f *File) cells(want []string, joined bool) (manifest.RowReader, error) {
	f.guard.most = mostOfTable
	t, features := &table{File: f}, f.Features()
	for _, c := range f.Columns {
		if !c.isRead() {
			continue
		}
		if text := c.text; text != nil && (want == nil || slices.Contains(want, c.Top)) {
			t.columns = append(t.columns, textColumn{f.read(c), len(t.row), features[c.Top].Labels(), joined})
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

// AsRead returns what gives the cells of a row, whose values have their columns and levels, as Cells would read them in
// this file. All of the file's columns are such as Cells reads.
func (f *File) AsRead() func(parquet.Row) []manifest.Cell {
	var columns []textColumn
	features := f.Features()
	for i, c := range f.Columns {
		columns = append(columns, textColumn{&cursor{Column: c}, i, features[c.Top].Labels(), true})
	}
	return func(row parquet.Row) []manifest.Cell {
		cells := make([]manifest.Cell, len(columns))
		for _, v := range row {
			c := &columns[v.Column()]
			cell := &cells[c.at]
			cell.IsList = c.list
			if fault := c.take(cell, v); fault != "" {
				cell.Fault = cmp.Or(cell.Fault, fault)
			}
		}
		return cells
	}
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
	// A list is that of the rows about an image: of any length, and a null in it is a manifest.NoValue.
	joined bool
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

// A writer gives a value as text, or says why it cannot be used, to go on from "the value".
type writer func(parquet.Value) (text, fault string)

// always is a writer of values that can all be used.
func always(text func(parquet.Value) string) writer {
	return func(v parquet.Value) (string, string) { return text(v), "" }
}

// asText returns how values of a type are written as text, nil where they cannot be, and whether they are numbers with
// a fraction.
func asText(t parquet.Type) (text writer, fraction bool) {
	kind, unsigned := t.Kind(), false
	if lt := t.LogicalType(); lt != nil {
		switch lt := lt.Value.(type) {
		case nil, *format.StringType, *format.EnumType, *format.JsonType:
		case *format.IntType:
			unsigned = !lt.IsSigned
		case *format.DecimalType:
			return decimal(kind, int(lt.Scale)), lt.Scale > 0
		case *format.UUIDType:
			return always(func(v parquet.Value) string {
				hex := fmt.Sprintf("%032x", v.ByteArray())
				return strings.Join([]string{hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:]}, "-")
			}), false
		case *format.DateType:
			return always(func(v parquet.Value) string {
				return time.Unix(0, 0).UTC().AddDate(0, 0, int(v.Int32())).Format(time.DateOnly)
			}), false
		case *format.TimeType:
			return timeOfDay(kind, unitOf(lt.Unit)), false
		case *format.TimestampType:
			at := time.UnixMilli
			switch unitOf(lt.Unit) {
			case time.Microsecond:
				at = time.UnixMicro
			case time.Nanosecond:
				at = func(n int64) time.Time { return time.Unix(0, n) }
			}
			form := manifest.TimeForm
			if !lt.IsAdjustedToUTC {
				form = nowhere
			}
			return always(func(v parquet.Value) string { return at(v.Int64()).UTC().Format(form) }), false
		default:
			return nil, false
		}
	}
	switch {
	case kind == parquet.Int32 && unsigned:
		text = always(func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) })
	case kind == parquet.Int64 && unsigned:
		text = always(func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) })
	case kind == parquet.Float:
		return always(func(v parquet.Value) string {
			return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32)
		}), true
	case kind == parquet.Double:
		return always(func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'f', -1, 64) }), true
	case kind == parquet.ByteArray: // one byte more than is taken is enough to refuse it
		text = always(func(v parquet.Value) string {
			return string(v.ByteArray()[:min(len(v.ByteArray()), maxCellBytes+1)])
		})
	case kind == parquet.Int96: // as older programs write times
		text = always(func(v parquet.Value) string {
			words := v.Int96() // nanoseconds of the day, and the Julian day
			days, ns := int64(words[2])-julianOf1970, int64(words[1])<<32|int64(words[0])
			return time.Unix(days*24*60*60, ns).UTC().Format(nowhere)
		})
	case kind == parquet.Boolean, kind == parquet.Int32, kind == parquet.Int64:
		text = always(parquet.Value.String)
	}
	return text, false
}

// nowhere is how a time is written of which nobody says in which time zone it stands.
var nowhere = strings.TrimSuffix(manifest.TimeForm, "Z")

const julianOf1970 = 2440588

func unitOf(u format.TimeUnit) time.Duration {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return time.Millisecond
	case *format.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

// timeOfDay writes times as 15:04:05. Many programs say UTC of each, whatever it is.
func timeOfDay(kind parquet.Kind, unit time.Duration) writer {
	return func(v parquet.Value) (text, fault string) {
		n := v.Int64()
		if kind == parquet.Int32 {
			n = int64(v.Int32())
		}
		if n < 0 || n >= int64(24*time.Hour/unit) {
			return "", "is no time of a day"
		}
		return time.Unix(0, 0).UTC().Add(time.Duration(n) * unit).Format("15:04:05.999999999"), ""
	}
}

// The largest decimals that databases have fit.
const (
	maxDecimalBytes = 32
	maxDecimalScale = 76
)

// decimal writes decimals without zeros at their end: 1.50 is the number that a DOUBLE gives as 1.5. nil for a scale
// that no number has.
func decimal(kind parquet.Kind, scale int) writer {
	if scale < 0 || scale > maxDecimalScale {
		return nil
	}
	return func(v parquet.Value) (text, fault string) {
		n := new(big.Int)
		switch kind {
		case parquet.Int32:
			n.SetInt64(int64(v.Int32()))
		case parquet.Int64:
			n.SetInt64(v.Int64())
		default:
			b := v.ByteArray()
			if len(b) > maxDecimalBytes {
				return "", fmt.Sprintf("is a decimal of more than %d bytes", maxDecimalBytes)
			}
			n.SetBytes(b)
			if len(b) > 0 && b[0] > 0x7f { // in two's complement
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		sign, digits := "", new(big.Int).Abs(n).String()
		if n.Sign() < 0 {
			sign = "-"
		}
		if scale == 0 {
			return sign + digits, ""
		}
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		whole, rest := digits[:len(digits)-scale], digits[len(digits)-scale:]
		return sign + strings.TrimSuffix(whole+"."+strings.TrimRight(rest, "0"), "."), ""
	}
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
	case v.IsNull() && !c.joined:
		return "is a list with a null in it"
	case len(cell.List) == maxListItems && !c.joined:
		return fmt.Sprintf("is a list of more than %d items", maxListItems)
	case v.IsNull():
		cell.List = append(cell.List, manifest.NoValue)
		return ""
	}
	text, fault := c.text(v)
	switch {
	case fault != "":
		return fault
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
	cell.Float = c.fraction
	if c.list {
		cell.List = append(cell.List, text)
	} else {
		cell.Text = text
	}
	return ""
}
