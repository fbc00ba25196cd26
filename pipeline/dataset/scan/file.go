// Package scan reads Parquet files that anybody may have written: manifests, pictures, datasets to compare
// or to audit. What a file claims is checked before it is believed (guard.go), memory is bounded by a page
// of each column that is read, and a panic of the library is an error.
package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/internal/userfile"
	"rehydrate/manifest"
)

// A File is an open Parquet file. Any of its columns are read row by row. It is for one goroutine.
type File struct {
	Columns []*Column // in the file's order

	footer  int64 // where the footer begins
	guard   *guard
	parquet *parquet.File
	disk    *os.File // nil where the caller opened it
	held    int64    // memory that all columns take that are being read
}

// Open opens a Parquet file of size bytes. The error says why it cannot be read.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer recovered(&err)()
	g := &guard{r: r, size: size, most: mostOfFile(size), bounds: map[string]bool{},
		longest: map[int]int{}}
	// Before the library sees the file: it believes what a footer claims.
	footer, err := g.footer()
	if err != nil {
		return nil, err
	}
	// The indexes and filters are claims as well, and nothing here needs them.
	file, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	f = &File{footer: footer.From, guard: g, parquet: file}
	for _, top := range file.Root().Columns() {
		f.Columns = append(f.Columns, columnsOf(top)...)
	}
	return f, nil
}

// OpenFile opens the Parquet file at path. The error is a *manifest.Problem where there is a file that cannot be read.
func OpenFile(path string) (*File, error) {
	disk, size, err := userfile.Open(path)
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
	other := "give it the extension of its format (.csv, .tsv, .jsonl)"
	if slices.Contains([]string{".csv", ".tsv", ".jsonl"}, strings.ToLower(filepath.Ext(path))) {
		other = "give another file: here it has to be a Parquet file"
	}
	return &manifest.Problem{File: path, Message: "not a Parquet file that can be read: " + err.Error(),
		Hint: "if it is a Parquet file, it is damaged or cut off: copy it again, or write it again; if not, " + other}
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

// Features returns what the footer tells Hugging Face of the columns, by name, as far as datasets writes it so.
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
		var feature Feature
		// Versions of datasets differ in how they write a list: some as [feature].
		inner, list := bytes.CutPrefix(raw, []byte("["))
		if json.Unmarshal(bytes.TrimSuffix(inner, []byte("]")), &feature) != nil {
			continue
		}
		if list {
			feature = Feature{Feature: new(feature), Type: "Sequence"}
		}
		out[column] = feature
	}
	return out
}

// A Span is a part of a file, from its first byte to behind its last.
type Span struct{ From, To int64 }

// Unclaimed returns the parts of the file that belong to no column chunk, index or filter that its footer names.
// A reader sees none of them, and rows can be hidden there. Zeros are padding.
func (f *File) Unclaimed() []Span {
	var parts []Span
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
	return Between(parts, int64(len("PAR1")), f.footer)
}

// Between returns what is between parts of a file, from a byte of it to behind another.
func Between(parts []Span, from, to int64) (between []Span) {
	slices.SortFunc(parts, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, p := range append(parts, Span{to, to}) {
		if next := min(p.From, to); next > from {
			between = append(between, Span{from, next})
		}
		from = max(from, p.To)
	}
	return between
}

// Notes yields what the file says beside its rows and KeyValues: who wrote it, notes on a column, and the least and the
// largest text of a column, which may be cut short, as the footer, the indexes and the pages that were read have them.
// What is but the beginning of a value that Rows gave is left out of those that stand alone.
func (f *File) Notes() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := f.notes(func(note string) bool { return yield(note, nil) }); err != nil {
			yield("", err)
		}
	}
}

// notes is Notes. Everything that may panic is called here.
func (f *File) notes(yield func(string) bool) (err error) {
	defer recovered(&err)()
	meta := f.parquet.Metadata()
	notes := []string{meta.CreatedBy}
	for i := range meta.RowGroups {
		for _, column := range f.Columns {
			c := &meta.RowGroups[i].Columns[column.leaf.Index()]
			f.guard.note(column.leaf, c.MetaData.Statistics)
			for _, kv := range c.MetaData.KeyValueMetadata {
				notes = append(notes, kv.Key, kv.Value)
			}
			// A list of bounds, as bytes with their lengths.
			if at, n := c.ColumnIndexOffset, int64(c.ColumnIndexLength); at > 0 && n > 0 && n <= maxFooterBytes {
				index, err := f.guard.read(at, n)
				if err != nil {
					return fmt.Errorf("index of a column: %w", err)
				}
				if !yield(string(index)) {
					return nil
				}
			}
		}
	}
	bounds := maps.Clone(f.guard.bounds)
	maps.DeleteFunc(bounds, func(_ string, alone bool) bool { return !alone })
	for _, note := range append(notes, slices.Sorted(maps.Keys(bounds))...) {
		if !yield(note) {
			return nil
		}
	}
	return nil
}

// KeyValues are those of the footer. A key may stand there twice.
func (f *File) KeyValues() []format.KeyValue { return f.parquet.Metadata().KeyValueMetadata }

// A Column is one that has values: a list has one of what it lists, a struct one for each member.
type Column struct {
	Name string // with the names of the groups around it: image.bytes, labels.list.element
	Top  string // the first of them
	Type string // of the column at the top, for people: byte_array, list of int64 or struct

	Bytes  bool // a row has one string of bytes
	Text   bool // the file says that its bytes are text, which some writers leave out
	Valued bool // it has bytes or numbers that may be ids

	leaf     *parquet.Column
	list     bool // a row may have several values
	nested   bool // the column at the top is neither a value nor a list of values
	optional bool // the column at the top may be null
	null     bool // the file says that there is no value in it
	text     writer
	fraction bool // its values are numbers with one
	decimal  bool // its values are decimals
}

// columnsOf lists what has values in a column at the top of a file's layout, in the file's order.
func columnsOf(top *parquet.Column) (columns []*Column) {
	all := leaves(top)
	for _, leaf := range all {
		typ, kind, depth := leaf.Type(), leaf.Type().Kind(), len(leaf.Path())
		c := &Column{Name: strings.Join(leaf.Path(), "."), Top: top.Name(), Type: strings.ToLower(typ.String()),
			leaf: leaf, list: leaf.MaxRepetitionLevel() > 0, optional: top.Optional()}
		// Not every writer says of a list that it is one. Older ones leave out the group between it and what it lists.
		isList := len(all) == 1 && leaf.MaxRepetitionLevel() == 1 && !top.Repeated() &&
			(depth == 2 || depth == 3 && !leaf.Repeated())
		switch {
		case !top.Leaf() && !isList:
			c.Type, c.nested = groupOf(top), true
		case c.list:
			c.Type = "list of " + c.Type
		}
		logical := typ.LogicalType()
		if logical != nil {
			_, c.null = logical.Value.(*format.NullType)
			_, c.decimal = logical.Value.(*format.DecimalType)
		}
		c.text, c.fraction = asText(typ)
		c.decimal = c.decimal && c.text != nil
		c.Bytes = kind == parquet.ByteArray && !c.list
		c.Text = c.Bytes && (logical != nil && logical.Value != nil || logical == nil && typ.ConvertedType() != nil)
		c.Valued = kind == parquet.ByteArray || kind == parquet.FixedLenByteArray ||
			kind == parquet.Int32 || kind == parquet.Int64 ||
			(kind == parquet.Double || kind == parquet.Float) && !c.list // else they are embeddings
		columns = append(columns, c)
	}
	return columns
}

// groupOf says for people what a column is that is neither a value nor a list of values.
func groupOf(top *parquet.Column) string {
	if logical := top.Type().LogicalType(); logical != nil {
		switch logical.Value.(type) {
		case *format.MapType:
			return "map"
		case *format.ListType:
			return "list of lists or structs"
		}
	}
	return "struct"
}

// isRead reports whether Cells gives the column's values as cells.
func (c *Column) isRead() bool { return !c.nested && (c.null || c.text != nil) }

// Unread names the columns whose values Cells does not give, each with its type, in the file's order.
func (f *File) Unread() (all []manifest.Unread) {
	for _, c := range f.Columns {
		if !c.isRead() {
			all = append(all, manifest.Unread{Name: c.Top, Type: c.Type})
		}
	}
	return slices.Compact(all) // a struct has several columns
}

// leaves are the columns in c that have values, or c itself.
func leaves(c *parquet.Column) (all []*parquet.Column) {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	for _, child := range c.Columns() {
		all = append(all, leaves(child)...)
	}
	return all
}

// Named returns the first column of that name that has one text, or bytes, a row; nil for none.
func (f *File) Named(name string) *Column {
	i := slices.IndexFunc(f.Columns, func(c *Column) bool { return c.Bytes && c.Name == name })
	if i < 0 {
		return nil
	}
	return f.Columns[i]
}

// Rows yields the values of columns by rows, which are the caller's; those of a nil column are null. An error comes
// last.
func (f *File) Rows(columns ...*Column) iter.Seq2[parquet.Row, error] {
	return func(yield func(parquet.Row, error) bool) {
		cursors := make([]*cursor, len(columns))
		for i, c := range columns {
			if c != nil {
				cursors[i] = f.read(c)
				defer cursors[i].close()
			}
		}
		for more := len(cursors) > 0; more; { // without columns there would be no end
			var row parquet.Row
			var err error
			for i := 0; i < len(cursors) && err == nil; i++ {
				if cursors[i] == nil {
					row = append(row, parquet.Value{})
				} else {
					err = cursors[i].row(func(v parquet.Value) {
						row = append(row, v.Clone())
						f.guard.stands(columns[i].leaf, v)
					})
				}
			}
			more = err != io.EOF && yield(row, err) && err == nil
		}
	}
}

// Data is what a value of a column that is Valued is in Go: an int64, a float64, or bytes, of which a null has none.
func (c *Column) Data(v parquet.Value) any {
	if c.decimal && !v.IsNull() {
		text, _ := c.text(v)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	}
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	case parquet.Float:
		return float64(v.Float())
	case parquet.Double:
		return v.Double()
	}
	return v.ByteArray()
}

// A cursor gives the values of a column one by one, through all row groups.
type cursor struct {
	*Column
	fill  func() ([]parquet.Value, bool)
	close func()          // gives the memory back
	ahead []parquet.Value // what is not taken yet; good until fill is called
	err   error           // what comes after the last value
}

// read begins to read a column. The cursor has to be closed.
func (f *File) read(column *Column) *cursor {
	c := &cursor{Column: column}
	c.fill, c.close = iter.Pull(func(yield func([]parquet.Value) bool) {
		c.err = io.EOF
		for i := range f.parquet.RowGroups() {
			if err := f.group(i, column.leaf, yield); err != nil {
				c.err = fmt.Errorf("column %q, row group %d: %w", column.Name, i+1, err)
				return
			}
		}
	})
	return c
}

// row calls take with all values of the next row, each good until take returns; io.EOF says that there is no row.
func (c *cursor) row(take func(parquet.Value)) error {
	for n := range maxRowValues + 1 {
		for more := true; len(c.ahead) == 0; c.ahead, more = c.fill() {
			if !more && n > 0 && c.err == io.EOF {
				return nil
			} else if !more {
				return c.err
			}
		}
		if n > 0 && c.ahead[0].RepetitionLevel() == 0 {
			return nil
		}
		take(c.ahead[0])
		c.ahead = c.ahead[1:]
		// A column without lists has one value a row, and the next page is not asked for before it is needed.
		if !c.list {
			return nil
		}
	}
	return fmt.Errorf("column %q: a row of more than %d values", c.Name, maxRowValues)
}

// Unused yields the values in the dictionaries of a column that no row has, as Data gives them, which are the caller's:
// writers keep all levels of a category. An error comes last.
func (f *File) Unused(c *Column) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := range f.parquet.RowGroups() {
			stopped, err := f.unused(i, c.leaf, func(v parquet.Value) bool { return yield(c.Data(v.Clone()), nil) })
			if err != nil {
				yield(nil, fmt.Errorf("column %q, row group %d: %w", c.Name, i+1, err))
			}
			if stopped || err != nil {
				return
			}
		}
	}
}

// unused is Unused for a row group. Everything that may panic is called here.
func (f *File) unused(i int, leaf *parquet.Column, yield func(parquet.Value) bool) (stopped bool, err error) {
	defer recovered(&err)()
	meta := &f.parquet.Metadata().RowGroups[i].Columns[leaf.Index()].MetaData
	if has, err := f.guard.hasDictionary(meta); err != nil || !has {
		return false, err
	}
	pages, _, done, err := f.pages(i, leaf)
	if err != nil {
		return false, err
	}
	defer done()
	all, err := pages.(*parquet.FilePages).ReadDictionary()
	if err != nil {
		return false, err
	}
	used := make([]bool, all.Len())
	page, err := pages.ReadPage()
	for ; err == nil; page, err = pages.ReadPage() {
		if page.Dictionary() != nil {
			indexes := page.Data()
			for _, at := range indexes.Int32() {
				used[at] = true
			}
		}
		parquet.Release(page)
	}
	if err != io.EOF {
		return false, err
	}
	for at, is := range used {
		if !is && !yield(all.Index(int32(at))) {
			return true, nil
		}
	}
	return false, nil
}

// pages opens a column of a row group, of whose data pages each has at most so many values that are not null. What is
// done with it gives the memory back.
func (f *File) pages(i int, leaf *parquet.Column) (pages parquet.Pages, rooms []int64, done func(), err error) {
	// All pages are checked before the first is read, so that no value of a forged chunk is handed out.
	cost, rooms, err := f.guard.chunk(leaf, &f.parquet.Metadata().RowGroups[i].Columns[leaf.Index()].MetaData)
	if err != nil {
		return nil, nil, nil, err
	}
	if most := 2 * f.guard.most; f.held+cost > most {
		return nil, nil, nil, fmt.Errorf("reading it takes more than %d bytes of memory: write the file with smaller pages",
			most)
	}
	f.held += cost
	pages = f.parquet.RowGroups()[i].ColumnChunks()[leaf.Index()].Pages()
	return pages, rooms, func() { pages.Close(); f.held -= cost }, nil
}

// group yields the values of a column in a row group, some at a time. Everything that may panic is called here.
func (f *File) group(i int, leaf *parquet.Column, yield func([]parquet.Value) bool) (err error) {
	defer recovered(&err)()
	group := f.parquet.RowGroups()[i]
	pages, rooms, done, err := f.pages(i, leaf)
	if err != nil {
		return err
	}
	defer done()
	left := group.NumRows()
	var buf [128]parquet.Value
	page, err := pages.ReadPage()
	for ; err == nil; page, err = pages.ReadPage() {
		// What a page lacks, the library would take from memory that another page had.
		if page.NumValues()-page.NumNulls() > rooms[0] {
			return fmt.Errorf("a page of %d values, and it holds %d", page.NumValues()-page.NumNulls(), rooms[0])
		}
		rooms = rooms[1:]
		values := page.Values()
		for n := 1; n > 0; {
			n, err = values.ReadValues(buf[:])
			if err != nil && err != io.EOF {
				return err // what came with it is not to be believed
			}
			for i, v := range buf[:n] {
				if v.RepetitionLevel() == 0 {
					left--
				} else if i == 0 && left == group.NumRows() {
					return errors.New("a row begins inside a list")
				}
			}
			// The footer's count is only a claim, and a row too many in one column would shift all that follow.
			if left < 0 {
				return errors.New("it holds more rows than the footer counts")
			}
			if !yield(buf[:n]) {
				return errors.New("it was closed")
			}
		}
		parquet.Release(page)
	}
	if err == io.EOF && left == 0 {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("it holds %d rows less than the footer counts", left)
	}
	return err
}
