// Package scan reads Parquet files that anybody may have written: manifests, pictures, datasets to compare
// or to audit. What a file claims is checked before it is believed (guard.go), memory is bounded by a page
// of each column that is read, and a panic of the library is an error.
package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/manifest"
	"rehydrate/pipeline/given"
)

// A File is an open Parquet file. Its columns are read one by one, without knowing its layout (Values), or
// row by row (Rows, OpenManifest). It is for one goroutine.
type File struct {
	Columns []*Column // in the file's order

	guard   *guard
	parquet *parquet.File
	disk    *os.File // nil where the caller opened it
	held    int64    // memory that all columns take that are being read
}

// Open opens a Parquet file of size bytes. The error says why it cannot be read.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer recovered(&err)()
	g := &guard{r: r, size: size, most: mostOfPictures}
	// Before the library sees the file: it believes what a footer claims.
	if err := g.footer(); err != nil {
		return nil, err
	}
	// The indexes and filters are claims as well, and nothing here needs them.
	file, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	f = &File{guard: g, parquet: file}
	for _, top := range file.Root().Columns() {
		f.Columns = append(f.Columns, columnsOf(top)...)
	}
	return f, nil
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
