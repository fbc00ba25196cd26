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
	Valued bool // Values reads it: it has bytes or whole numbers

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

// Named returns the first column of that name that has one text, or bytes, a row; nil for none.
func (f *File) Named(name string) *Column {
	i := slices.IndexFunc(f.Columns, func(c *Column) bool { return c.Bytes && c.Name == name })
	if i < 0 {
		return nil
	}
	return f.Columns[i]
}

// Values calls take with the values of a column, each an int64, or bytes that are good until take returns. Rows come in their
// order and count from 0; a null has no value, a list several. The error is that of take, or the file is damaged, forged or
// packed as it is not read here.
func (f *File) Values(ctx context.Context, column *Column, take func(row int64, value any) error) error {
	row := int64(-1)
	return f.each(column, func(values []parquet.Value) error {
		err := ctx.Err()
		for i := 0; i < len(values) && err == nil; i++ {
			v := values[i]
			if v.RepetitionLevel() == 0 {
				row++
			}
			switch {
			case v.DefinitionLevel() < column.leaf.MaxDefinitionLevel(): // the mark of a null or of an empty list
			case v.Kind() == parquet.Int32:
				err = take(row, int64(v.Int32()))
			case v.Kind() == parquet.Int64:
				err = take(row, v.Int64())
			default:
				err = take(row, v.ByteArray())
			}
		}
		return err
	})
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
	c := &cursor{Column: column}
	c.fill, c.close = iter.Pull(func(yield func([]parquet.Value) bool) {
		c.err = cmp.Or(f.each(column, func(values []parquet.Value) error {
			if !yield(values) {
				return errors.New("it was closed")
			}
			return nil
		}), io.EOF)
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

// each calls take with the values of a column, some at a time.
func (f *File) each(column *Column, take func([]parquet.Value) error) error {
	for i := range f.parquet.RowGroups() {
		if err := f.group(i, column.leaf, take); err != nil {
			return fmt.Errorf("column %q, row group %d: %w", column.Name, i+1, err)
		}
	}
	return nil
}

// group is each for a row group. Everything that may panic is called here.
func (f *File) group(i int, leaf *parquet.Column, take func([]parquet.Value) error) (err error) {
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
			if err := take(buf[:n]); err != nil {
				return err
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
