package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
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
// (an image, a map, a time) are left out of Columns. Numbers are written in decimal.
// Memory is bounded by one page per column. A damaged or forged file gives an error, of
// Open or of Next. A row with a value that cannot be used gives a *manifest.Problem, after
// which reading goes on.
func OpenManifest(path string) (manifest.RowReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open parquet manifest: %w", err)
	}
	t, err := openTable(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open parquet manifest %s: %w", path, err)
	}
	return t, nil
}

func openTable(f *os.File) (t *tableReader, err error) {
	defer recovered(&err)()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case size > maxManifestBytes:
		return nil, fmt.Errorf("%d bytes, more than the %d that a manifest may have: keep ids and labels, leave out images", size, maxManifestBytes)
	}
	g := &guard{r: f, size: info.Size()}
	if err := g.footer(); err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	columns := tableColumns(pf.Root())
	if len(columns) == 0 {
		return nil, errors.New("it has no column of text, numbers, booleans or lists of them")
	}
	t = &tableReader{file: f, guard: g, parquet: pf, columns: columns, cells: make([]manifest.Cell, len(columns))}
	for _, c := range columns {
		t.names = append(t.names, c.name)
	}
	return t, nil
}

// recovered turns a panic of the library into an error, also one for a memory access out
// of bounds. Use: defer recovered(&err)().
func recovered(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("damaged file: %v", p)
		}
	}
}

// A tableReader is the manifest.RowReader of a Parquet file.
type tableReader struct {
	file    *os.File
	guard   *guard
	parquet *parquet.File
	names   []string
	columns []tableColumn
	cells   []manifest.Cell

	group   int       // row groups begun
	left    int64     // rows left in the current one
	cursors []*cursor // into its column chunks
	row     int       // rows begun
	err     error     // final, once set
}

func (t *tableReader) Columns() []string { return t.names }

func (t *tableReader) Close() error {
	t.closeCursors()
	t.err = os.ErrClosed
	return t.file.Close()
}

func (t *tableReader) Next() ([]manifest.Cell, error) {
	if t.err != nil {
		return nil, t.err
	}
	problem, err := t.next()
	if err != nil {
		t.err = err
		return nil, err
	}
	if problem != nil {
		return nil, problem
	}
	return t.cells, nil
}

func (t *tableReader) next() (problem *manifest.Problem, err error) {
	defer recovered(&err)()
	for t.left == 0 {
		if err := t.endGroup(); err != nil {
			return nil, err
		}
		if t.group == len(t.parquet.RowGroups()) {
			return nil, io.EOF
		}
		if err := t.beginGroup(); err != nil {
			return nil, fmt.Errorf("row group %d: %w", t.group+1, err)
		}
	}
	t.left--
	t.row++
	// Every column is read even after a problem, so that the next row starts in step.
	for i := range t.columns {
		cell, complaint, err := t.columns[i].cell(t.cursors[i])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", t.names[i], err)
		}
		t.cells[i] = cell
		if complaint != "" && problem == nil {
			problem = &manifest.Problem{File: t.file.Name(), Line: t.row, Column: i + 1, Message: fmt.Sprintf("column %q %s", t.names[i], complaint),
				Hint: "correct the value, or leave the column out of the file"}
		}
	}
	return problem, nil
}

func (t *tableReader) beginGroup() error {
	group, meta := t.parquet.RowGroups()[t.group], &t.parquet.Metadata().RowGroups[t.group]
	t.left = group.NumRows()
	if t.left < 0 {
		return fmt.Errorf("it claims %d rows", t.left)
	}
	chunks := group.ColumnChunks()
	var memory int64
	for _, c := range t.columns {
		if c.leaf.Index() >= len(chunks) {
			return fmt.Errorf("it lacks column %q", c.name)
		}
		cost, err := t.guard.chunk(c.leaf, &meta.Columns[c.leaf.Index()].MetaData)
		if err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		if memory += cost; memory > maxGroupMemory {
			return fmt.Errorf("reading it takes more than %d bytes of memory: write the file with smaller pages", maxGroupMemory)
		}
		t.cursors = append(t.cursors, &cursor{pages: chunks[c.leaf.Index()].Pages()})
	}
	t.group++
	return nil
}

// endGroup makes sure that no value is left over: the row count of a group is only a claim.
func (t *tableReader) endGroup() error {
	for i, c := range t.cursors {
		if _, ok, err := c.peek(); err != nil || ok {
			return fmt.Errorf("column %q holds more values than row group %d has rows (%w)", t.names[i], t.group, errors.Join(err, parquet.ErrCorrupted))
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
	name string
	leaf *parquet.Column
	text func(parquet.Value) string
	list bool
	base int // definition level at which a list is there, if empty
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
			if t.leaf = listElement(c); t.leaf == nil {
				continue
			}
			t.list, t.base = true, c.MaxDefinitionLevel()
		}
		if t.text = textOf(t.leaf.Type()); t.text != nil {
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

// cell reads the column's value of the next row. A complaint is about a value that no
// manifest can have.
func (t *tableColumn) cell(c *cursor) (cell manifest.Cell, complaint string, err error) {
	v, ok, err := c.peek()
	if err != nil || !ok {
		return cell, "", errors.Join(err, io.ErrUnexpectedEOF)
	}
	if v.RepetitionLevel() != 0 {
		return cell, "", fmt.Errorf("a row begins inside a list (%w)", parquet.ErrCorrupted)
	}
	c.skip()
	top := t.leaf.MaxDefinitionLevel()
	if !t.list {
		if v.DefinitionLevel() < top {
			return manifest.Cell{Null: true}, "", nil
		}
		cell.Text = t.text(v)
		return cell, fault(cell.Text), nil
	}
	cell.IsList = true
	if v.DefinitionLevel() < t.base {
		cell.Null = true
		return cell, "", nil
	}
	cell.List = []string{}
	for v.DefinitionLevel() > t.base { // not the mark of an empty list
		switch item := ""; {
		case v.DefinitionLevel() < top:
			complaint = "has a list with a null in it"
		case len(cell.List) == maxListItems:
			complaint = fmt.Sprintf("has a list of more than %d items", maxListItems)
		default:
			item = t.text(v)
			cell.List = append(cell.List, item)
			if f := fault(item); f != "" {
				complaint = f
			}
		}
		if v, ok, err = c.peek(); err != nil {
			return cell, "", err
		}
		if !ok || v.RepetitionLevel() == 0 {
			break
		}
		c.skip()
	}
	return cell, complaint, nil
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

func (c *cursor) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.pages.Close()
}
