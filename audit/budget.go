package audit

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// What one source may cost, however its containers are nested: everything that comes out of it, and what is noted of
// it, is charged to one budget. A file of a few bytes can stand for terabytes, and for a finding in each of its rows.
const (
	maxRatio  = 100       // as a multiple of its size
	minUnpack = 128 << 20 // and in any case, of a source among the first
	manyFiles = 1 << 30   // of many sources each has its share of this,
	leastMany = 4 << 20   // and no less than this

	rowCost      = 32      // bytes: a row, whatever it holds
	valueCost    = 8       // a value, beside its bytes
	computedCost = 4 << 10 // a row of columns that SQLite computes
	hitCost      = 256     // an id of a known post
	noticeCost   = 512     // a finding, or an image or digest that is kept until all sources were looked at

	leastAtOnce = 16 << 20 // bytes of a source, however small, that may be in memory at a time
	maxKey      = 256      // bytes of a key of JSON in the name of a column

	leastWindow = 8 << 20 // bytes of a window of zstd that cost something:
	maxWindow   = 128 << 20
	windowShare = 32 // a byte for so many, as clearing them is that much faster than searching them
)

var (
	errSpent = fmt.Errorf("it unpacks to more than %d times its size", maxRatio)
	errLong  = errors.New("it has a longer value than is read")
)

// budgetOf returns the budget of a source of so many bytes, the nth that is looked at. What is small may unpack to much
// more than its size, but not in each of a thousand files.
func budgetOf(size int64, nth int) int64 {
	return max(maxRatio*size, min(minUnpack, max(leastMany, manyFiles/int64(nth))))
}

// charge takes from the budget of the source; an error says that it is spent.
func (w walker) charge(n int64) error {
	if w.left.Add(-n) < 0 {
		return errSpent
	}
	return nil
}

// spent reports whether nothing is left of the budget of the source.
func (w walker) spent() error { return w.charge(0) }

// chargeWindow charges for the memory that a frame of zstd has cleared before it gives a byte: thousands of empty ones
// may lie in a small archive.
func (w walker) chargeWindow(all *io.SectionReader) error {
	head, err := readAll(io.NewSectionReader(all, 0, min(all.Size(), zstd.HeaderMaxSize)), zstd.HeaderMaxSize)
	var h zstd.Header
	if err != nil || h.Decode(head) != nil || h.WindowSize < leastWindow {
		return nil // whoever reads it finds the fault
	}
	return w.charge(int64(min(h.WindowSize, maxWindow)) / windowShare)
}

// A meter charges the bytes that come out of a source, and ends with the audit.
type meter struct{ walker }

func (m meter) Write(b []byte) (int, error) {
	if err := m.charge(int64(len(b))); err != nil {
		return 0, err
	}
	return len(b), m.ctx.Err()
}

// finding is a finding that is charged to the source. One is kept of each source in any case, so the verdict stands.
func (w walker) finding(kind FindingKind, id string, p place, format string, args ...any) {
	spent := w.spent()
	switch {
	case w.charge(noticeCost) == nil, !w.found.Swap(true):
		w.audit.finding(kind, id, p.spot(), format, args...)
	default:
		w.audit.open(p.src.where, "look through it by hand", "%v: not all of its findings are listed", spent)
	}
}

// open is open for a part of a source, charged to it. One thing is kept of each source in any case.
func (w walker) open(where, do, format string, args ...any) {
	if w.charge(noticeCost) == nil || !w.opened.Swap(true) {
		w.audit.open(where, do, format, args...)
	}
}

// record keeps what was found of an image, and charges it to the source.
func (w walker) record(s *sighting) {
	if err := w.charge(noticeCost); err != nil {
		w.lost(s.place, err)
		return
	}
	w.audit.record(s)
}

// atOnce is how many bytes of a source, of up to most, are held in memory at a time: what a small file unpacks to is
// small, or not worth having.
func (p place) atOnce(most int64) int64 { return min(most, max(leastAtOnce, p.src.size)) }

// A piecemeal reader gives no more bytes than are left until its user, who has read a piece of them, renews it: a
// reader of a format holds a whole value in memory.
type piecemeal struct {
	io.Reader
	most, left int64
}

func (r *piecemeal) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLong
	}
	n, err := r.Reader.Read(b)
	r.left -= int64(n)
	return n, err
}

func (r *piecemeal) renew() { r.left = r.most }
