package scan

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

// A Column is one that has values: a list has one of what it lists, a struct one for each member.
type Column struct {
	Name string // with the names of the groups around it: image.bytes, labels.list.element
	Top  string // the first of them
	Type string // of the column at the top, for people: byte_array, list of int64 or struct

	Bytes  bool // a row has one string of bytes
	Text   bool // the file says that its bytes are text, which some writers leave out
	Valued bool // ValuesOf reads it: it has bytes or whole numbers

	leaf     *parquet.Column
	list     bool // a row may have several values
	nested   bool // the column at the top is neither a value nor a list of values
	optional bool // the column at the top may be null
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
			c.Type, c.nested = "struct", true
		case c.list:
			c.Type = "list of " + c.Type
		}
		logical := typ.LogicalType()
		c.Bytes = kind == parquet.ByteArray && !c.list
		c.Text = c.Bytes && (logical != nil && logical.Value != nil || logical == nil && typ.ConvertedType() != nil)
		c.Valued = kind == parquet.ByteArray || kind == parquet.FixedLenByteArray ||
			kind == parquet.Int32 || kind == parquet.Int64
		columns = append(columns, c)
	}
	return columns
}

// leaves are the columns in c that have values, or c itself.
func leaves(c *parquet.Column) (all []*parquet.Column) {
	switch {
	case c.Leaf():
		return []*parquet.Column{c}
	case len(c.Path()) > maxDepth: // a footer can nest columns without end
		return nil
	}
	for _, child := range c.Columns() {
		all = append(all, leaves(child)...)
	}
	return all
}

// A Value is one value of a column.
type Value struct {
	Row  int64 // counted from 0; a list gives several values of one row
	Data any   // int64, or []byte, which is good until the next value is asked for
}

// Values is ValuesOf for the first column of that name.
func (f *File) Values(ctx context.Context, name string) iter.Seq2[Value, error] {
	i := slices.IndexFunc(f.Columns, func(c *Column) bool { return c.Valued && c.Name == name })
	if i < 0 {
		return func(yield func(Value, error) bool) {
			yield(Value{}, fmt.Errorf("it lacks the column %q of text, bytes or whole numbers", name))
		}
	}
	return f.ValuesOf(ctx, f.Columns[i])
}

// ValuesOf yields the values of a column in the order of the rows, nulls left out. An error is
// yielded last: the file is damaged, forged or packed as it is not read here.
func (f *File) ValuesOf(ctx context.Context, column *Column) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		c := f.read(column)
		defer c.close()
		for row, more := int64(0), true; more; row++ {
			err := cmp.Or(ctx.Err(), c.row(func(v parquet.Value) {
				// Below the highest level it is the mark of a null or of an empty list.
				more = more && (v.DefinitionLevel() != c.leaf.MaxDefinitionLevel() || yield(newValue(row, v), nil))
			}))
			if more && err != nil && err != io.EOF {
				yield(Value{}, err)
			}
			more = more && err == nil
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

// Rows yields the values of columns, row by row; of a column that is nil they are null. The rows are the caller's.
// An error comes last.
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
					err = cursors[i].row(func(v parquet.Value) { row = append(row, v.Clone()) })
				}
			}
			more = err != io.EOF && yield(row, err) && err == nil
		}
	}
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
	c := &cursor{Column: column, err: io.EOF}
	c.fill, c.close = iter.Pull(func(yield func([]parquet.Value) bool) {
		for i := range f.parquet.RowGroups() {
			err := f.group(i, column.leaf, yield)
			if err != nil {
				c.err = fmt.Errorf("column %q, row group %d: %w", column.Name, i+1, err)
				return
			}
		}
	})
	return c
}

// peek gives the next value without going past it, io.EOF at the end. The value is good until the next call.
func (c *cursor) peek() (parquet.Value, error) {
	for more := true; len(c.ahead) == 0; {
		if !more {
			return parquet.Value{}, c.err
		}
		c.ahead, more = c.fill()
	}
	return c.ahead[0], nil
}

// row calls take with all values of the next row; io.EOF says that there is none.
func (c *cursor) row(take func(parquet.Value)) error {
	v, err := c.peek()
	for err == nil {
		take(v)
		c.ahead = c.ahead[1:]
		// A column without lists has one value a row, and the next page is not asked for before it is needed.
		if !c.list {
			return nil
		}
		v, err = c.peek()
		if err == io.EOF || err == nil && v.RepetitionLevel() == 0 {
			return nil
		}
	}
	return err
}

// group yields the values of a column in a row group, some at a time. Everything that may panic is called here.
func (f *File) group(i int, leaf *parquet.Column, yield func([]parquet.Value) bool) (err error) {
	defer recovered(&err)()
	group := f.parquet.RowGroups()[i]
	// All pages are checked before the first is read, so that no value of a forged chunk is handed out.
	cost, rooms, err := f.guard.chunk(leaf, &f.parquet.Metadata().RowGroups[i].Columns[leaf.Index()].MetaData)
	if err != nil {
		return err
	}
	f.held += cost
	defer func() { f.held -= cost }()
	if most := 2 * f.guard.most; f.held > most {
		return fmt.Errorf("reading it takes more than %d bytes of memory: write the file with smaller pages", most)
	}
	pages := group.ColumnChunks()[leaf.Index()].Pages()
	defer pages.Close()
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
			if n > 0 && !yield(buf[:n]) {
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
