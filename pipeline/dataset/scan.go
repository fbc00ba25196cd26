package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A Scan reads single columns of a Parquet file that anybody may have written, without
// knowing its layout: an auditor gets files that other programs made, and forged ones. What
// the file claims is checked before it is believed, as OpenManifest does; memory is bounded by
// the pages of the one column that is being read. It is for one goroutine.
type Scan struct {
	guard   *guard
	parquet *parquet.File
}

// A ScanValue is one value of a column. Bytes is good until the next value is asked for.
type ScanValue struct {
	Row      int64 // counted from 0; a list gives several values of one row
	Bytes    []byte
	Number   int64 // where IsNumber
	IsNumber bool
}

// OpenScan opens a Parquet file of size bytes. The error says why it cannot be read.
func OpenScan(r io.ReaderAt, size int64) (s *Scan, err error) {
	defer recovered(&err)()
	g := &guard{r: r, size: size, most: limits{page: maxPicturePage, group: maxPictureGroup}}
	if err := g.footer(); err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return &Scan{guard: g, parquet: pf}, nil
}

// Footer returns a key-value of the footer.
func (s *Scan) Footer(key string) (value string, ok bool) { return s.parquet.Lookup(key) }

// Columns returns the names of the columns that Values reads, in the file's order. A member of
// a struct has the struct's name before it: image.bytes.
func (s *Scan) Columns() []string {
	var names []string
	s.leaves(func(name string, _ *parquet.Column) bool {
		names = append(names, name)
		return true
	})
	return names
}

// Find returns the first of the names that is a column of the file, "" when none is. A struct
// with the member bytes, as Hugging Face datasets keeps images, counts under its own name.
// Upper and lower case do not matter where no column has the very name.
func (s *Scan) Find(names ...string) string {
	have := s.Columns()
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, want := range names {
			for _, name := range have {
				if same(name, want) || same(name, want+".bytes") {
					return name
				}
			}
		}
	}
	return ""
}

// leaves calls yield with every column of bytes or whole numbers, until it returns false.
func (s *Scan) leaves(yield func(name string, leaf *parquet.Column) bool) {
	var walk func(prefix string, c *parquet.Column, depth int) bool
	walk = func(prefix string, c *parquet.Column, depth int) bool {
		if depth > maxDepth {
			return true
		}
		for _, child := range c.Columns() {
			name := prefix + child.Name()
			if !child.Leaf() {
				if !walk(name+".", child, depth+1) {
					return false
				}
				continue
			}
			switch child.Type().Kind() {
			case parquet.ByteArray, parquet.FixedLenByteArray, parquet.Int32, parquet.Int64:
				if !yield(name, child) {
					return false
				}
			}
		}
		return true
	}
	walk("", s.parquet.Root(), 0)
}

// Values yields the values of a column in the order of the rows, nulls left out. An error is
// yielded last: the file is damaged, forged or packed as it is not read here.
func (s *Scan) Values(ctx context.Context, column string) iter.Seq2[ScanValue, error] {
	return func(yield func(ScanValue, error) bool) {
		var leaf *parquet.Column
		s.leaves(func(name string, c *parquet.Column) bool {
			if name == column {
				leaf = c
			}
			return leaf == nil
		})
		if leaf == nil {
			yield(ScanValue{}, fmt.Errorf("there is no column %q of text, bytes or whole numbers", column))
			return
		}
		c := &columnScan{Scan: s, leaf: leaf}
		for {
			v, more, err := c.next(ctx)
			if err != nil {
				yield(ScanValue{}, fmt.Errorf("column %q: %w", column, err))
				return
			}
			if !more || !yield(v, nil) {
				c.close()
				return
			}
		}
	}
}

// A columnScan goes over the values of one column. Only its calls go into the library, which
// can panic on a damaged file; what the caller does between them is its own.
type columnScan struct {
	*Scan
	leaf   *parquet.Column
	group  int     // row groups begun
	cursor *cursor // nil between two row groups
	begun  int64   // rows before the current row group
	row    int64   // rows begun in it
}

func (c *columnScan) next(ctx context.Context) (v ScanValue, more bool, err error) {
	defer recovered(&err)()
	for {
		if err := ctx.Err(); err != nil {
			return v, false, err
		}
		if c.cursor == nil {
			if c.group == len(c.parquet.RowGroups()) {
				return v, false, nil
			}
			if err := c.begin(); err != nil {
				return v, false, fmt.Errorf("row group %d: %w", c.group+1, err)
			}
		}
		value, ok, err := c.cursor.peek()
		if err != nil {
			return v, false, err
		}
		if !ok {
			c.end()
			continue
		}
		c.cursor.skip()
		if value.RepetitionLevel() == 0 {
			c.row++
		}
		if value.DefinitionLevel() == c.leaf.MaxDefinitionLevel() {
			return c.value(value), true, nil
		}
	}
}

func (c *columnScan) value(v parquet.Value) ScanValue {
	out := ScanValue{Row: c.begun + c.row - 1}
	switch v.Kind() {
	case parquet.Int32:
		out.Number, out.IsNumber = int64(v.Int32()), true
	case parquet.Int64:
		out.Number, out.IsNumber = v.Int64(), true
	default:
		out.Bytes = v.ByteArray()
	}
	return out
}

// begin checks the column's pages in the next row group and starts to read them.
func (c *columnScan) begin() error {
	meta := &c.parquet.Metadata().RowGroups[c.group]
	chunks, i := c.parquet.RowGroups()[c.group].ColumnChunks(), c.leaf.Index()
	if i >= len(chunks) || i >= len(meta.Columns) {
		return errors.New("it lacks the column")
	}
	cost, err := c.guard.chunk(c.leaf, &meta.Columns[i].MetaData)
	if err != nil {
		return err
	}
	if cost > c.guard.most.groupMemory() {
		return fmt.Errorf("reading it takes %d bytes of memory: write the file with smaller pages", cost)
	}
	c.cursor, c.row = &cursor{pages: chunks[i].Pages()}, 0
	c.group++
	return nil
}

func (c *columnScan) end() {
	c.begun += c.row
	c.close()
}

func (c *columnScan) close() {
	if c.cursor != nil {
		c.cursor.close()
		c.cursor = nil
	}
}

// Unclaimed returns how many bytes of the file are of no column chunk, index or filter that its footer names,
// and where the first of them is. Zeros between the parts are padding, and do not count. A reader sees
// none of it, and rows can be hidden there.
func (s *Scan) Unclaimed() (at, n int64, err error) {
	defer recovered(&err)()
	parts := s.parts()
	slices.SortFunc(parts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	pos, end := int64(len("PAR1")), s.guard.size-8-s.guard.footerBytes
	for _, p := range append(parts, span{end, end}) {
		if p.from > pos {
			first, more, err := s.unclaimedIn(pos, min(p.from, end))
			if err != nil {
				return 0, 0, err
			}
			if n == 0 {
				at = first
			}
			n += more
		}
		pos = max(pos, p.to)
	}
	return at, n, nil
}

// A span is a part of the file, from its first byte to behind its last.
type span struct{ from, to int64 }

// parts are what the footer names.
func (s *Scan) parts() []span {
	var parts []span
	add := func(at, n int64) {
		if at > 0 && n > 0 {
			parts = append(parts, span{at, at + n})
		}
	}
	for _, g := range s.parquet.Metadata().RowGroups {
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
	return parts
}

// unclaimedIn counts the bytes from the first to the last one that is not zero, and says where they begin.
func (s *Scan) unclaimedIn(from, to int64) (at, n int64, err error) {
	block := make([]byte, 64<<10)
	var last int64
	for pos := from; pos < to; pos += int64(len(block)) {
		b := block[:min(int64(len(block)), to-pos)]
		if _, err := s.guard.r.ReadAt(b, pos); err != nil {
			return 0, 0, fmt.Errorf("read what lies between its parts: %w", err)
		}
		for i, c := range b {
			if c == 0 {
				continue
			}
			if at == 0 {
				at = pos + int64(i)
			}
			last = pos + int64(i) + 1
		}
	}
	if at == 0 {
		return 0, 0, nil
	}
	return at, last - at, nil
}
