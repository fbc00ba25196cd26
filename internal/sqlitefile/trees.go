package sqlitefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// trees goes over the pages of the trees of a database before SQLite does. SQLite believes that each page is in one
// place: a page that stands in two, or a cell that a page counts twice, lets a small file have rows without end.
type trees struct {
	all    *io.SectionReader
	size   int64 // of a page
	usable int64 // of it
	pages  int64
	seen   []bool          // by number, of those that are in the file
	roots  map[int64]error // those that were gone over
}

var errNoHeader = errors.New("it has no header of a SQLite database")

// newTrees reads the header of a database; nil where it has none that can be.
func newTrees(all *io.SectionReader) *trees {
	var head [100]byte
	if _, err := all.ReadAt(head[:], 0); err != nil {
		return nil
	}
	t := &trees{all: all, size: int64(binary.BigEndian.Uint16(head[16:])), roots: map[int64]error{}}
	if t.size == 1 {
		t.size = 1 << 16
	}
	t.usable = t.size - int64(head[20])
	if t.size < 512 || t.size&(t.size-1) != 0 || t.usable < 480 {
		return nil
	}
	// As SQLite has it: the number of pages holds where the program that wrote last knew of it.
	t.pages = int64(binary.BigEndian.Uint32(head[28:]))
	if t.pages == 0 || string(head[24:28]) != string(head[92:96]) {
		t.pages = all.Size() / t.size
	}
	t.seen = make([]bool, min(t.pages, (all.Size()+t.size-1)/t.size)+1)
	return t
}

// of goes over the tree of a root once.
func (t *trees) of(root int64) error {
	if t == nil || root == 1 { // it was gone over before SQLite saw it
		return nil
	}
	err, was := t.roots[root]
	if !was {
		err = t.walk(root)
		t.roots[root] = err
	}
	return err
}

func (t *trees) read(page int64, into []byte) error {
	n, err := t.all.ReadAt(into, (page-1)*t.size)
	if err == io.EOF { // the last page may be cut off, as SQLite allows
		clear(into[n:])
		err = nil
	}
	return err
}

// visit notes that a page has its place. It reports whether there is such a page.
func (t *trees) visit(page int64) (there bool, err error) {
	if page < 1 || page >= int64(len(t.seen)) {
		return false, nil // SQLite finds this itself
	}
	if t.seen[page] {
		return false, fmt.Errorf("damaged database: page %d is in two places", page)
	}
	t.seen[page] = true
	return true, nil
}

// walk goes over a tree, and over what does not fit into its pages.
func (t *trees) walk(root int64) error {
	type node struct{ page, depth int64 }
	body := make([]byte, t.size)
	for left := []node{{root, 0}}; len(left) > 0; {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		there, err := t.visit(at.page)
		if err == nil && there {
			err = t.read(at.page, body)
		}
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		children, err := t.page(body, at.page == 1)
		if err != nil {
			return fmt.Errorf("damaged database: page %d: %w", at.page, err)
		}
		for _, child := range children {
			left = append(left, node{child, at.depth + 1})
		}
		const deepest = 20 // as SQLite has it
		if at.depth > deepest {
			return errors.New("damaged database: a tree is too deep")
		}
	}
	return nil
}

// Kinds of pages of a tree.
const (
	innerIndex = 2
	innerTable = 5
	leafIndex  = 10
	leafTable  = 13
)

// page goes over the cells of a page, and returns the pages below it.
func (t *trees) page(body []byte, first bool) (children []int64, err error) {
	head := int64(0)
	if first {
		head = 100 // the header of the file
	}
	kind, cells, at := body[head], int64(binary.BigEndian.Uint16(body[head+3:])), head+8
	inner := kind == innerIndex || kind == innerTable
	if !inner && kind != leafIndex && kind != leafTable {
		return nil, nil // SQLite refuses it
	}
	if inner {
		children, at = append(children, int64(binary.BigEndian.Uint32(body[head+8:]))), head+12
	}
	if at+2*cells > t.usable {
		return nil, fmt.Errorf("it counts %d cells", cells)
	}
	used := at + 2*cells
	for i := range cells {
		from := int64(binary.BigEndian.Uint16(body[at+2*i:]))
		if from+4 > t.usable {
			continue // likewise
		}
		cell := body[from:t.usable]
		if inner {
			children, cell = append(children, int64(binary.BigEndian.Uint32(cell))), cell[4:]
		}
		size, err := t.cell(kind, cell)
		if err != nil {
			return nil, err
		}
		// Every cell has its own bytes: else one long value would count thousands of times.
		used += size
		if used > t.usable {
			return nil, errors.New("its cells lie upon each other")
		}
	}
	return children, nil
}

// cell goes over the pages that a cell continues in, and returns how many bytes it has in its own page.
func (t *trees) cell(kind byte, cell []byte) (size int64, err error) {
	if kind == innerTable { // a row id alone
		return 4 + varintLen(cell), nil
	}
	payload, n := varint(cell)
	if kind == leafTable {
		n += varintLen(cell[n:])
	}
	longest, least := (t.usable-12)*64/255-23, (t.usable-12)*32/255-23
	if kind == leafTable {
		longest = t.usable - 35
	}
	local := payload
	if payload > longest {
		local = least + (payload-least)%(t.usable-4)
		if local > longest {
			local = least
		}
	}
	size = n + local
	if kind == innerIndex {
		size += 4
	}
	if local == payload || n+local+4 > int64(len(cell)) {
		return size, nil
	}
	next := int64(binary.BigEndian.Uint32(cell[n+local:]))
	for rest := payload - local; rest > 0; rest -= t.usable - 4 {
		there, err := t.visit(next)
		if err != nil || !there {
			return size + 4, err
		}
		var head [4]byte
		if err := t.read(next, head[:]); err != nil {
			return 0, err
		}
		next = int64(binary.BigEndian.Uint32(head[:]))
	}
	return size + 4, nil
}

// varint reads a number of SQLite, of 9 bytes at most, and returns how many it has. A length that is negative is none.
func varint(b []byte) (v, n int64) {
	for n < 8 && n < int64(len(b)) {
		v = v<<7 | int64(b[n]&0x7f)
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
	if n < int64(len(b)) {
		return max(0, v<<8|int64(b[n])), n + 1
	}
	return v, n
}

func varintLen(b []byte) int64 {
	_, n := varint(b)
	return n
}
