// Package scan reads Parquet files that anybody may have written: manifests, pictures, datasets to compare
// or to audit. What a file claims is checked before it is believed (guard.go), memory is bounded by a page
// of each column that is read, and a panic of the library is an error.
package scan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/manifest"
	"rehydrate/pipeline/given"
)

// A File is an open Parquet file. Its columns are read one by one, without knowing its layout (Values), or
// row by row (Rows, OpenManifest). It is for one goroutine.
type File struct {
	guard   *guard
	parquet *parquet.File
	disk    *os.File // nil where the caller opened it
	held    int64    // memory that all columns take that are being read
}

// A Value is one value of a column.
type Value struct {
	Row  int64 // counted from 0; a list gives several values of one row
	Data any   // int64, or []byte, which is good until the next value is asked for
}

// Open opens a Parquet file of size bytes. The error says why it cannot be read.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer recovered(&err)()
	g := &guard{r: r, size: size, most: pictureLimits}
	// Before the library sees the file: it believes what a footer claims.
	if err := g.footer(); err != nil {
		return nil, err
	}
	// The indexes and filters are claims as well, and nothing here needs them.
	file, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return &File{guard: g, parquet: file}, nil
}

// OpenFile opens the Parquet file at path. The error is a *manifest.Problem where there is a file that cannot be read.
func OpenFile(path string) (*File, error) {
	disk, size, err := given.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the Parquet: %w", err)
	}
	f, err := Open(disk, size)
	if err != nil {
		disk.Close()
		return nil, Damaged(path, err)
	}
	f.disk = disk
	return f, nil
}

// Damaged says of the file at path that it cannot be read, and what to try.
func Damaged(path string, err error) *manifest.Problem {
	return &manifest.Problem{File: path, Message: "not a Parquet file that can be read: " + err.Error(),
		Hint: "if it is a Parquet file, it is damaged or cut off: copy it again, or write it again; if not, give it the extension of its format (.csv, .tsv, .jsonl)"}
}

// Close closes the file of OpenFile.
func (f *File) Close() error { return f.disk.Close() }

// recovered turns a panic of the library into an error. Use: defer recovered(&err)().
func recovered(err *error) func() {
	// A forged offset may also lead to memory that is not there, which would end the program.
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("damaged file: %v", p)
		}
	}
}

// Schema is the layout of the file's columns.
func (f *File) Schema() *parquet.Schema { return f.parquet.Schema() }

// NumRows is how many rows the file says it has.
func (f *File) NumRows() int { return int(max(f.parquet.NumRows(), 0)) }

// Footer returns a key-value of the footer.
func (f *File) Footer(key string) (value string, ok bool) { return f.parquet.Lookup(key) }

// A Feature is one Hugging Face feature. Sequence, not List: datasets before version 4 does not know it.
type Feature struct {
	Feature *Feature `json:"feature,omitempty"`
	Names   []string `json:"names,omitempty"`
	DType   string   `json:"dtype,omitempty"`
	Type    string   `json:"_type"`
}

// Labels are the names of a ClassLabel's numbers, or of those of a list of them.
func (f Feature) Labels() []string {
	if f.Feature != nil {
		f = *f.Feature
	}
	if f.Type != "ClassLabel" || len(f.Names) == 0 {
		return nil
	}
	return f.Names
}

// Features returns what the footer tells Hugging Face of the columns, by name. A column whose feature is not
// as datasets writes it is left out.
func (f *File) Features() map[string]Feature {
	var footer struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	text, _ := f.Footer("huggingface")
	if json.Unmarshal([]byte(text), &footer) != nil {
		return nil
	}
	out := map[string]Feature{}
	for column, raw := range footer.Info.Features {
		var short []Feature // of a list: [feature]
		var feature Feature
		switch {
		// Versions of datasets differ in how they write a list.
		case json.Unmarshal(raw, &short) == nil && len(short) == 1:
			out[column] = Feature{Feature: &short[0], Type: "Sequence"}
		case json.Unmarshal(raw, &feature) == nil:
			out[column] = feature
		}
	}
	return out
}

// A Span is a part of a file, from its first byte to behind its last.
type Span struct{ From, To int64 }

// Unclaimed returns the parts of the file that belong to no column chunk, index or filter that its footer names.
// A reader sees none of them, and rows can be hidden there. Zeros are padding.
func (f *File) Unclaimed() (unclaimed []Span) {
	end := f.FooterAt().From
	parts := []Span{{0, int64(len("PAR1"))}, {end, end}}
	add := func(at, n int64) {
		if at > 0 && n > 0 {
			parts = append(parts, Span{at, at + n})
		}
	}
	for _, g := range f.parquet.Metadata().RowGroups {
		for i := range g.Columns {
			c, m := &g.Columns[i], &g.Columns[i].MetaData
			begin := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				begin = min(begin, m.DictionaryPageOffset)
			}
			add(begin, m.TotalCompressedSize)
			add(c.ColumnIndexOffset, int64(c.ColumnIndexLength))
			add(c.OffsetIndexOffset, int64(c.OffsetIndexLength))
			add(m.BloomFilterOffset, int64(m.BloomFilterLength))
		}
	}
	slices.SortFunc(parts, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	pos := int64(0)
	for _, p := range parts {
		if from := min(p.From, end); from > pos {
			unclaimed = append(unclaimed, Span{pos, from})
		}
		pos = max(pos, p.To)
	}
	return unclaimed
}

// FooterAt returns where the footer lies. It names the columns, and has key-values and bounds of what the columns hold.
func (f *File) FooterAt() Span {
	end := f.guard.size - 8
	return Span{end - f.guard.footerBytes, end}
}

// KeyValues are those of the footer. A key may stand there twice.
func (f *File) KeyValues() []format.KeyValue { return f.parquet.Metadata().KeyValueMetadata }

// Columns returns the names of the columns that Values reads, in the file's order. A member of
// a struct has the struct's name before it: image.bytes.
func (f *File) Columns() []string {
	var names []string
	for _, leaf := range f.valued() {
		names = append(names, nameOf(leaf))
	}
	return names
}

// Bytes reports whether a column holds one string of bytes a row, and whether the file says that it is text: some writers
// do not say so of a text.
func (f *File) Bytes(column string) (yes, text bool) {
	c := named(leaves(f.parquet.Root()), column)
	if c == nil || c.MaxRepetitionLevel() > 0 || c.Type().Kind() != parquet.ByteArray {
		return false, false
	}
	if lt := c.Type().LogicalType(); lt != nil {
		return true, lt.Value != nil
	}
	return true, c.Type().ConvertedType() != nil
}

// A Column is one at the top of a file's layout.
type Column struct {
	Name string
	Type string // such as byte_array, list of int64 or struct, for people
}

// Layout returns the columns at the top, of any type, in the file's order.
func (f *File) Layout() (columns []Column) {
	for _, c := range f.parquet.Root().Columns() {
		kind := "struct"
		if c.Leaf() {
			kind = strings.ToLower(c.Type().String())
		} else if element := listElement(c); element != nil {
			kind = "list of " + strings.ToLower(element.Type().String())
		}
		columns = append(columns, Column{c.Name(), kind})
	}
	return columns
}

// valued are the columns of bytes or whole numbers.
func (f *File) valued() []*parquet.Column {
	kinds := []parquet.Kind{parquet.ByteArray, parquet.FixedLenByteArray, parquet.Int32, parquet.Int64}
	return slices.DeleteFunc(leaves(f.parquet.Root()), func(c *parquet.Column) bool {
		return !slices.Contains(kinds, c.Type().Kind())
	})
}

// leaves are the columns below c that have values.
func leaves(c *parquet.Column) (out []*parquet.Column) {
	for _, child := range c.Columns() {
		if child.Leaf() {
			out = append(out, child)
		} else if len(child.Path()) <= maxDepth { // a footer can nest columns without end
			out = append(out, leaves(child)...)
		}
	}
	return out
}

func nameOf(c *parquet.Column) string { return strings.Join(c.Path(), ".") }

// named returns the first column of that name, or nil.
func named(all []*parquet.Column, name string) *parquet.Column {
	if i := slices.IndexFunc(all, func(c *parquet.Column) bool { return nameOf(c) == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Values yields the values of a column in the order of the rows, nulls left out. An error is
// yielded last: the file is damaged, forged or packed as it is not read here.
func (f *File) Values(ctx context.Context, column string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		leaf := named(f.valued(), column)
		if leaf == nil {
			yield(Value{}, fmt.Errorf("it lacks the column %q of text, bytes or whole numbers", column))
			return
		}
		c := cursor{file: f, leaf: leaf}
		defer c.close()
		for row, more := int64(0), true; more; row++ {
			err := ctx.Err()
			if err == nil {
				err = c.row(func(v parquet.Value) {
					// Below the highest level it is the mark of a null or of an empty list.
					more = more && (v.DefinitionLevel() != c.leaf.MaxDefinitionLevel() || yield(newValue(row, v), nil))
				})
			}
			if err == nil || !more {
				continue
			}
			if err != io.EOF {
				yield(Value{}, err)
			}
			return
		}
	}
}

func newValue(row int64, v parquet.Value) Value {
	switch v.Kind() {
	case parquet.Int32:
		return Value{row, int64(v.Int32())}
	case parquet.Int64:
		return Value{row, v.Int64()}
	}
	return Value{row, v.ByteArray()}
}

// Rows yields whole rows, or of each row the values of these columns in their order. The rows are the caller's. An error
// comes last.
func (f *File) Rows(columns ...string) iter.Seq2[parquet.Row, error] {
	return func(yield func(parquet.Row, error) bool) {
		all := leaves(f.parquet.Root())
		picked := all
		if columns != nil {
			picked = make([]*parquet.Column, len(columns))
		}
		cursors := make([]cursor, len(picked))
		for i := range picked {
			if columns != nil {
				picked[i] = named(all, columns[i])
			}
			if picked[i] == nil {
				yield(nil, fmt.Errorf("it lacks the column %q", columns[i]))
				return
			}
			cursors[i] = cursor{file: f, leaf: picked[i]}
			defer cursors[i].close()
		}
		for more := len(cursors) > 0; more; { // without columns there would be no end
			var row parquet.Row
			var err error
			for i := 0; i < len(cursors) && err == nil; i++ {
				err = cursors[i].row(func(v parquet.Value) { row = append(row, v.Clone()) })
			}
			more = err != io.EOF && yield(row, err) && err == nil
		}
	}
}

// A cursor gives the values of a column one by one, through all row groups.
type cursor struct {
	file *File
	leaf *parquet.Column

	group  int   // row groups begun
	left   int64 // rows of the current one that did not begin yet
	cost   int64 // what of the file's held is for its chunk
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    [128]parquet.Value
	n, i   int
	err    error // final, once set
}

// peek gives the next value without going past it, io.EOF at the end. The value is good until the next call.
func (c *cursor) peek() (parquet.Value, error) {
	for c.i == c.n && c.err == nil {
		c.err = c.fill()
		if c.err != nil && c.err != io.EOF {
			// What came with the error is not to be believed.
			c.n, c.err = c.i, fmt.Errorf("column %q, row group %d: %w", nameOf(c.leaf), c.group, c.err)
		}
	}
	if c.i == c.n {
		return parquet.Value{}, c.err
	}
	return c.buf[c.i], nil
}

// next gives the next value and goes past it.
func (c *cursor) next() (parquet.Value, error) {
	v, err := c.peek()
	if err == nil {
		c.i++
	}
	return v, err
}

// row calls take with all values of the next row; io.EOF says that there is none.
func (c *cursor) row(take func(parquet.Value)) error {
	v, err := c.next()
	for err == nil {
		take(v)
		// A column without lists has one value a row, and the next page is not asked for before it is needed.
		if c.leaf.MaxRepetitionLevel() == 0 {
			return nil
		}
		ahead, end := c.peek()
		if end == io.EOF || end == nil && ahead.RepetitionLevel() == 0 {
			return nil
		}
		v, err = c.next()
	}
	return err
}

// fill gets the next values, page or row group from the library. Everything that may panic is called here.
func (c *cursor) fill() (err error) {
	defer recovered(&err)()
	switch {
	case c.values != nil:
		c.n, err = c.values.ReadValues(c.buf[:])
		c.i = 0
		if err == nil || err == io.EOF {
			err = c.count()
		}
		if c.n == 0 {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
		return err
	case c.pages != nil:
		c.page, err = c.pages.ReadPage()
		if err == nil {
			c.values = c.page.Values()
		}
		if err != io.EOF {
			return err
		}
		c.close()
		if c.left != 0 {
			return fmt.Errorf("it holds %d rows less than the footer counts (%w)", c.left, io.ErrUnexpectedEOF)
		}
		return nil
	case c.group == len(c.file.parquet.RowGroups()):
		return io.EOF
	}
	return c.begin()
}

// count takes the rows that begin in buf off those of the group. The footer's count is only a claim, and a row too
// many in one column would shift all that follow.
func (c *cursor) count() error {
	for i, v := range c.buf[:c.n] {
		if v.RepetitionLevel() == 0 {
			c.left--
		} else if i == 0 && c.left == c.file.parquet.RowGroups()[c.group-1].NumRows() {
			return fmt.Errorf("a row begins inside a list (%w)", parquet.ErrCorrupted)
		}
	}
	if c.left < 0 {
		return fmt.Errorf("it holds more rows than the footer counts (%w)", parquet.ErrCorrupted)
	}
	return nil
}

// begin checks all pages of the column in the next row group before the first is read, so that no value of a forged
// chunk is handed out.
func (c *cursor) begin() error {
	group, meta := c.file.parquet.RowGroups()[c.group], c.file.parquet.Metadata().RowGroups[c.group].Columns
	c.group++
	i := c.leaf.Index()
	if i >= len(meta) || i >= len(group.ColumnChunks()) {
		return errors.New("the column is not there")
	}
	cost, err := c.file.guard.chunk(c.leaf, &meta[i].MetaData)
	if err != nil {
		return err
	}
	c.cost = cost
	c.file.held += cost
	if most := c.file.guard.most.group; c.file.held > most {
		return fmt.Errorf("reading it takes more than %d bytes of memory: write the file with smaller pages", most)
	}
	c.left, c.pages = group.NumRows(), group.ColumnChunks()[i].Pages()
	return nil
}

// close gives the memory of the group back to the library.
func (c *cursor) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		c.pages.Close()
	}
	c.file.held -= c.cost
	c.page, c.values, c.pages, c.cost = nil, nil, nil, 0
}
