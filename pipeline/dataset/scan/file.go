// Package scan reads Parquet files that anybody may have written: manifests, pictures, datasets to compare
// or to audit. What a file claims is checked before it is believed (guard.go), memory is bounded by a page
// of each column that is read, and a panic of the library is an error.
package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// A File is an open Parquet file. Its columns are read one by one, without knowing its layout (Values), or
// row by row by the readers of this package. It is for one goroutine.
type File struct {
	guard   *guard
	parquet *parquet.File
}

// A Value is one value of a column. Bytes is good until the next value is asked for.
type Value struct {
	Row      int64 // counted from 0; a list gives several values of one row
	Bytes    []byte
	Number   int64 // where IsNumber
	IsNumber bool
}

// Open opens a Parquet file of size bytes. The error says why it cannot be read.
func Open(r io.ReaderAt, size int64) (*File, error) { return open(r, size, pictureLimits) }

func open(r io.ReaderAt, size int64, most limits) (f *File, err error) {
	defer recovered(&err)()
	g := &guard{r: r, size: size, most: most}
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

// Schema is the layout of the file's columns.
func (f *File) Schema() *parquet.Schema { return f.parquet.Schema() }

// Rows yields whole rows, each good until the next one is asked for. It is for files that the caller wrote
// itself: the sizes of pages are not checked, so a forged one may cost memory.
func (f *File) Rows() iter.Seq2[parquet.Row, error] {
	return func(yield func(parquet.Row, error) bool) {
		for _, group := range f.parquet.RowGroups() {
			if !groupRows(group.Rows(), yield) {
				return
			}
		}
	}
}

// groupRows yields the rows of a group and reports whether to go on.
func groupRows(rows parquet.Rows, yield func(parquet.Row, error) bool) bool {
	defer rows.Close()
	read := func(buf []parquet.Row) (n int, err error) {
		defer recovered(&err)()
		return rows.ReadRows(buf)
	}
	for buf := make([]parquet.Row, 1); ; {
		n, err := read(buf)
		if n == 1 && !yield(buf[0], nil) {
			return false
		}
		if err == io.EOF {
			return true
		}
		if err != nil {
			yield(nil, fmt.Errorf("read a row: %w", err))
			return false
		}
	}
}

// Footer returns a key-value of the footer.
func (f *File) Footer(key string) (value string, ok bool) { return f.parquet.Lookup(key) }

// A Feature is one Hugging Face feature. Sequence, not List: datasets before version 4 does not know it.
type Feature struct {
	Feature *Feature `json:"feature,omitempty"`
	Names   []string `json:"names,omitempty"`
	DType   string   `json:"dtype,omitempty"`
	Type    string   `json:"_type"`
}

// Features returns what the footer tells Hugging Face of the columns, by name. A column whose feature is not
// as datasets writes it is left out.
func (f *File) Features() map[string]Feature {
	text, _ := f.parquet.Lookup("huggingface")
	return parseFeatures([]byte(text))
}

func parseFeatures(text []byte) map[string]Feature {
	var footer struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal(text, &footer) != nil {
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

// labelNames are the names of the labels of each column of ClassLabels, or of lists of them.
func labelNames(features map[string]Feature) map[string][]string {
	out := map[string][]string{}
	for column, feature := range features {
		if feature.Feature != nil {
			feature = *feature.Feature
		}
		if feature.Type == "ClassLabel" && len(feature.Names) > 0 {
			out[column] = feature.Names
		}
	}
	return out
}

// cursors checks the pages of some columns in a row group before it starts to read them.
func (f *File) cursors(group int, columns []tableColumn) (out []*cursor, err error) {
	defer recovered(&err)()
	meta, chunks := f.parquet.Metadata().RowGroups[group].Columns, f.parquet.RowGroups()[group].ColumnChunks()
	var memory int64
	for _, c := range columns {
		i := c.leaf.Index()
		if i >= len(chunks) || i >= len(meta) {
			return nil, fmt.Errorf("it lacks column %q", c.name)
		}
		// All pages are checked before the first is read, so that no value of a forged chunk is handed out.
		cost, err := f.guard.chunk(c.leaf, &meta[i].MetaData)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.name, err)
		}
		memory += cost
		if memory > f.guard.most.group {
			return nil, fmt.Errorf("reading it takes more than %d bytes of memory: write the file with smaller pages", f.guard.most.group)
		}
	}
	for _, c := range columns {
		out = append(out, &cursor{pages: chunks[c.leaf.Index()].Pages()})
	}
	return out, nil
}

// Columns returns the names of the columns that Values reads, in the file's order. A member of
// a struct has the struct's name before it: image.bytes.
func (f *File) Columns() []string {
	var names []string
	for _, c := range leaves("", f.parquet.Root(), 0) {
		names = append(names, c.name)
	}
	return names
}

// leaves are the columns of bytes or whole numbers below c.
func leaves(prefix string, c *parquet.Column, depth int) (out []tableColumn) {
	for _, child := range c.Columns() {
		name := prefix + child.Name()
		if !child.Leaf() {
			if depth < maxDepth {
				out = append(out, leaves(name+".", child, depth+1)...)
			}
			continue
		}
		switch child.Type().Kind() {
		case parquet.ByteArray, parquet.FixedLenByteArray, parquet.Int32, parquet.Int64:
			out = append(out, tableColumn{name: name, leaf: child})
		}
	}
	return out
}

// Values yields the values of a column in the order of the rows, nulls left out. An error is
// yielded last: the file is damaged, forged or packed as it is not read here.
func (f *File) Values(ctx context.Context, column string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		columns := leaves("", f.parquet.Root(), 0)
		i := slices.IndexFunc(columns, func(c tableColumn) bool { return c.name == column })
		if i < 0 {
			yield(Value{}, fmt.Errorf("there is no column %q of text, bytes or whole numbers", column))
			return
		}
		row, leaf := int64(-1), columns[i].leaf
		for group := range f.parquet.RowGroups() {
			cursors, err := f.cursors(group, columns[i:i+1])
			if err != nil {
				yield(Value{}, fmt.Errorf("row group %d: %w", group+1, err))
				return
			}
			// A row begins where the repetition level is 0, and a value is there where all levels are defined.
			more := cursors[0].each(ctx, func(v parquet.Value, err error) bool {
				if err != nil {
					return yield(Value{}, fmt.Errorf("column %q: %w", column, err))
				}
				if v.RepetitionLevel() == 0 {
					row++
				}
				return v.DefinitionLevel() < leaf.MaxDefinitionLevel() || yield(newValue(row, v), nil)
			})
			if !more {
				return
			}
		}
	}
}

func newValue(row int64, v parquet.Value) Value {
	switch v.Kind() {
	case parquet.Int32:
		return Value{Row: row, Number: int64(v.Int32()), IsNumber: true}
	case parquet.Int64:
		return Value{Row: row, Number: v.Int64(), IsNumber: true}
	}
	return Value{Row: row, Bytes: v.ByteArray()}
}
