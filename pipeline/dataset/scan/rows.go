package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/manifest"
)

// Limits of a Parquet manifest. They are far above what a million posts with labels need,
// and low enough that a forged file costs an error instead of the machine's memory.
const (
	maxManifestBytes = 1 << 30  // length of the file
	maxCellBytes     = 64 << 10 // a text; the longest line of a CSV manifest has as much
	maxListItems     = 10_000
)

// OpenManifest opens a Parquet file for reading as a manifest, row by row. It gives text,
// integers, floats, booleans ("true", "false") and lists of them; columns of any other kind
// (an image, a map, a time) are left out of Columns. Numbers are written in decimal, and
// those of floating point are marked so.
//
// Only the columns named by want are read, and checked; nil is all of them. The cells of
// the others are Null. Memory is bounded by one page per column that is read.
//
// A file that cannot be read as Parquet gives a *manifest.Problem, what is damaged or
// forged within it a final error of Next. A value that cannot be used is told in its cell.
func OpenManifest(path string, want []string) (manifest.RowReader, error) {
	return openRows(path, want)
}

func openRows(path string, want []string) (*tableReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open parquet manifest: %w", err)
	}
	t, err := openManifest(f, want)
	if err != nil {
		f.Close()
		return nil, asProblem(path, err)
	}
	return t, nil
}

// A hinted error is one for which there is something better to try than to get the file
// once more.
type hinted struct {
	error
	hint string
}

func asProblem(path string, err error) *manifest.Problem {
	p := &manifest.Problem{File: path, Message: "not a Parquet file that can be read: " + err.Error(),
		Hint: "if it is a Parquet file, it is damaged or cut off: copy it again, or write it again; if not, give it the extension of its format (.csv, .tsv, .jsonl)"}
	var h hinted
	if errors.As(err, &h) {
		p.Message, p.Hint = h.Error(), h.hint
	}
	return p
}

func openManifest(f *os.File, want []string) (t *tableReader, err error) {
	defer recovered(&err)()
	// A pipe would block, and a file of many gigabytes is a dataset by mistake.
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if size := info.Size(); !info.Mode().IsRegular() {
		return nil, hinted{errors.New("it is not a regular file"), "name a file, not a folder or a pipe"}
	} else if size > maxManifestBytes {
		return nil, hinted{fmt.Errorf("the file has %d bytes, more than the %d that a manifest may have", size, maxManifestBytes), "keep ids and labels, leave out images"}
	}
	t, err = openTableReader(f, tableLimits)
	if err != nil {
		return nil, err
	}
	for _, c := range tableColumns(t.file.parquet.Root()) {
		// Every column has its place among the cells, also those that are not read.
		t.add(c, want == nil || slices.Contains(want, c.name))
	}
	if len(t.names) == 0 {
		return nil, hinted{errors.New("it has no column of text, numbers, booleans or lists of them"), "write ids as text, and labels as text or lists of text"}
	}
	return t, t.checkCodecs()
}

// openTableReader opens a file and reads no column yet.
func openTableReader(f *os.File, most limits) (*tableReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := open(f, info.Size(), most)
	if err != nil {
		return nil, err
	}
	return &tableReader{closer: f, file: file}, nil
}

// add adds a column to the names, and to those that are read.
func (t *tableReader) add(c tableColumn, read bool) {
	c.place = len(t.names)
	t.names = append(t.names, c.name)
	t.cells = append(t.cells, manifest.Cell{Null: true})
	if read {
		t.read(c)
	}
}

// read adds a column to those that are read, and returns its place among them.
func (t *tableReader) read(c tableColumn) int {
	t.columns = append(t.columns, c)
	return len(t.columns) - 1
}

// checkCodecs refuses a column that is packed as the guard cannot unpack it.
func (t *tableReader) checkCodecs() error {
	for _, group := range t.file.parquet.Metadata().RowGroups {
		for _, c := range t.columns {
			// A group that lacks the column is an error only once it is read.
			if c.leaf.Index() >= len(group.Columns) {
				continue
			}
			switch codec := group.Columns[c.leaf.Index()].MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
			default:
				return hinted{fmt.Errorf("column %q has the compression %v, which is not read here", c.name, codec),
					"write the file with the compression zstd, snappy or gzip, or with none"}
			}
		}
	}
	return nil
}

// A tableReader is the manifest.RowReader of a Parquet file.
type tableReader struct {
	closer  io.Closer
	file    *File
	names   []string
	columns []tableColumn   // those that are read
	cells   []manifest.Cell // by names

	group   int       // row groups begun
	left    int64     // rows left in the current one
	cursors []*cursor // into its column chunks, by columns
	err     error     // final, once set
}

func (t *tableReader) Columns() []string { return t.names }

func (t *tableReader) Close() error {
	t.closeCursors()
	t.err = os.ErrClosed
	return t.closer.Close()
}

func (t *tableReader) Next() ([]manifest.Cell, error) {
	if t.err != nil {
		return nil, t.err
	}
	if err := t.next(); err != nil {
		t.err = err
		return nil, err
	}
	return t.cells, nil
}

func (t *tableReader) next() (err error) {
	defer recovered(&err)()
	if err := t.advance(); err != nil {
		return err
	}
	for i := range t.columns {
		c := &t.columns[i]
		t.cells[c.place], err = c.cell(t.cursors[i])
		if err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return nil
}

// advance goes to the next row, io.EOF after the last.
func (t *tableReader) advance() error {
	for t.left == 0 {
		if err := t.endGroup(); err != nil {
			return err
		}
		if t.group == len(t.file.parquet.RowGroups()) {
			return io.EOF
		}
		if err := t.beginGroup(); err != nil {
			return fmt.Errorf("row group %d: %w", t.group+1, err)
		}
	}
	t.left--
	return nil
}

func (t *tableReader) beginGroup() (err error) {
	t.left = t.file.parquet.RowGroups()[t.group].NumRows()
	// The count is a claim: rows without values would go on for ever.
	if t.left < 0 || t.left > maxChunkValues {
		return fmt.Errorf("it claims %d rows, at most %d are read", t.left, maxChunkValues)
	}
	t.cursors, err = t.file.cursors(t.group, t.columns)
	t.group++
	return err
}

// endGroup makes sure that no value is left over: the row count of a group is only a claim.
func (t *tableReader) endGroup() error {
	for i, c := range t.cursors {
		if _, ok, err := c.peek(); err != nil || ok {
			return fmt.Errorf("column %q holds more values than row group %d has rows (%w)", t.columns[i].name, t.group, errors.Join(err, parquet.ErrCorrupted))
		}
	}
	t.closeCursors()
	return nil
}

func (t *tableReader) closeCursors() {
	for _, c := range t.cursors {
		c.close()
	}
	t.cursors = t.cursors[:0]
}

// A tableColumn is a column that can be read: a scalar or a list of scalars.
type tableColumn struct {
	name  string
	place int // among all columns that can be read
	leaf  *parquet.Column
	text  func(parquet.Value) string
	float bool
	list  bool
	base  int // definition level at which a list is there, if empty
}

func tableColumns(root *parquet.Column) []tableColumn {
	var out []tableColumn
	for _, c := range root.Columns() {
		t := tableColumn{name: c.Name(), leaf: c}
		switch {
		case c.Leaf() && c.Repeated(): // as files before the LIST type have it
			t.list = true
		case c.Leaf():
		default:
			t.leaf = listElement(c)
			if t.leaf == nil {
				continue
			}
			t.list, t.base = true, c.MaxDefinitionLevel()
		}
		kind := t.leaf.Type().Kind()
		t.float = kind == parquet.Float || kind == parquet.Double
		t.text = textOf(t.leaf.Type())
		if t.text != nil {
			out = append(out, t)
		}
	}
	return out
}

// listElement gives the leaf of a LIST of scalars, in its three-level form and in the older
// two-level one, or nil.
func listElement(c *parquet.Column) *parquet.Column {
	lt, ct := c.Type().LogicalType(), c.Type().ConvertedType()
	isList := ct != nil && *ct == deprecated.List
	if lt != nil {
		_, ok := lt.Value.(*format.ListType)
		isList = isList || ok
	}
	if !isList || c.Repeated() || len(c.Columns()) != 1 || !c.Columns()[0].Repeated() {
		return nil
	}
	repeated := c.Columns()[0]
	if repeated.Leaf() {
		return repeated
	}
	if len(repeated.Columns()) != 1 || !repeated.Columns()[0].Leaf() || repeated.Columns()[0].Repeated() {
		return nil
	}
	return repeated.Columns()[0]
}

// textOf gives the function that writes values of a type as text, or nil where the package
// reads no such type.
func textOf(t parquet.Type) func(parquet.Value) string {
	var logical any
	if lt := t.LogicalType(); lt != nil {
		logical = lt.Value
	}
	switch lt := logical.(type) {
	case nil, *format.StringType, *format.EnumType, *format.JsonType:
	case *format.IntType:
		if !lt.IsSigned {
			return unsignedText(t.Kind())
		}
	default:
		return nil
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) string { return strconv.FormatBool(v.Boolean()) }
	case parquet.Int32:
		return func(v parquet.Value) string { return strconv.FormatInt(int64(v.Int32()), 10) }
	case parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(v.Int64(), 10) }
	case parquet.Float:
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32) }
	case parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'f', -1, 64) }
	case parquet.ByteArray:
		return func(v parquet.Value) string { return string(v.ByteArray()[:min(len(v.ByteArray()), maxCellBytes+1)]) }
	}
	return nil
}

func unsignedText(k parquet.Kind) func(parquet.Value) string {
	if k == parquet.Int32 {
		return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) }
	}
	return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }
}

// cell reads the column's value of the next row.
func (t *tableColumn) cell(c *cursor) (manifest.Cell, error) {
	v, err := c.first()
	if err != nil {
		return manifest.Cell{}, err
	}
	if t.list {
		return t.listCell(c, v)
	}
	if v.DefinitionLevel() < t.leaf.MaxDefinitionLevel() {
		return manifest.Cell{Null: true}, nil
	}
	text := t.text(v)
	if f := fault(text); f != "" {
		return manifest.Cell{Fault: f}, nil
	}
	return manifest.Cell{Text: text, Float: t.float}, nil
}

// listCell reads on from v, the list's first value. It goes to the list's end even after
// a fault, so that the next row starts in step.
func (t *tableColumn) listCell(c *cursor, v parquet.Value) (manifest.Cell, error) {
	if v.DefinitionLevel() < t.base {
		return manifest.Cell{IsList: true, Null: true}, nil
	}
	cell := manifest.Cell{IsList: true, List: []string{}, Float: t.float}
	for v.DefinitionLevel() > t.base { // not the mark of an empty list
		switch {
		case cell.Fault != "":
		case v.DefinitionLevel() < t.leaf.MaxDefinitionLevel():
			cell = manifest.Cell{Fault: "is a list with a null in it"}
		case len(cell.List) == maxListItems:
			cell = manifest.Cell{Fault: fmt.Sprintf("is a list of more than %d items", maxListItems)}
		default:
			text := t.text(v)
			cell.List = append(cell.List, text)
			if f := fault(text); f != "" {
				cell = manifest.Cell{Fault: f}
			}
		}
		next, ok, err := c.peek()
		if err != nil {
			return manifest.Cell{}, err
		}
		if !ok || next.RepetitionLevel() == 0 {
			break
		}
		v = next
		c.skip()
	}
	return cell, nil
}

func fault(text string) string {
	switch {
	case len(text) > maxCellBytes:
		return fmt.Sprintf("has a text of more than %d bytes", maxCellBytes)
	case !utf8.ValidString(text):
		return "has a text that is not UTF-8"
	}
	return ""
}

// A cursor gives the values of a column chunk one by one.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    [128]parquet.Value
	n, i   int
}

// peek gives the next value without going past it; false at the end. The value is valid
// until the next call.
func (c *cursor) peek() (parquet.Value, bool, error) {
	for c.i == c.n {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err == io.EOF {
				return parquet.Value{}, false, nil
			}
			if err != nil {
				return parquet.Value{}, false, err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buf[:])
		c.n, c.i = n, 0
		if err != nil && err != io.EOF {
			return parquet.Value{}, false, err
		}
		if n == 0 {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
	}
	return c.buf[c.i], true, nil
}

func (c *cursor) skip() { c.i++ }

// first goes past the first value of a row.
func (c *cursor) first() (parquet.Value, error) {
	v, ok, err := c.peek()
	if err != nil || !ok {
		return v, errors.Join(err, io.ErrUnexpectedEOF)
	}
	if v.RepetitionLevel() != 0 {
		return v, fmt.Errorf("a row begins inside a list (%w)", parquet.ErrCorrupted)
	}
	c.skip()
	return v, nil
}

// each calls f with the values that are left, until it returns false, and closes the cursor. An error comes
// last. Only the calls into the library are guarded against its panics: what f does is its own.
func (c *cursor) each(ctx context.Context, f func(parquet.Value, error) bool) bool {
	defer c.close()
	next := func() (v parquet.Value, ok bool, err error) {
		defer recovered(&err)()
		return c.peek()
	}
	for {
		v, ok, err := next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			f(v, err)
			return false
		}
		if !ok {
			return true
		}
		c.skip()
		if !f(v, nil) {
			return false
		}
	}
}

func (c *cursor) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.pages.Close()
}
