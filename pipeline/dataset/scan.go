package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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
