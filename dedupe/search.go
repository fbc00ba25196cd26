package dedupe

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
)

// A search finds the codes that may be near. A code is a hash and a mark: the signature of a text or, where texts do
// not count, the hash once more. Two codes meet when their hashes differ in at most radius bits and their marks in at
// most differ.
type search struct {
	hashes, marks  []uint64 // by code; the same slice where texts do not count
	radius, differ int
}

// errCrowd says that more codes meet than their number is worth.
var errCrowd = errors.New("too many codes meet")

// pairs calls met for all a of list and b of other that meet or, when other is nil, for all a and b of list, in one
// order of the two. It calls met from several goroutines, and again for a pair that it comes across again. met reports
// whether it learned anything. After limit calls that it did not learn from, the error is errCrowd; any other is the
// context's.
func (s *search) pairs(ctx context.Context, list, other []uint32, limit int, met func(a, b uint32) bool) error {
	// This is multi-index hashing (Norouzi, Punjani and Fleet 2014): for each band of bits in turn, the codes are sorted
	// into one bucket for each value of the band, and each bucket is compared with those whose value is within the band's
	// reach. Why no pair is lost is told at planBands.
	left := s.newTable(len(list))
	right, same := left, other == nil
	if !same {
		right = s.newTable(len(other))
	}
	var vain atomic.Int64
	for _, b := range planBands(len(left.places), len(right.places), s.radius) {
		left.fill(s, list, b)
		if !same {
			right.fill(s, other, b)
		}
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, len(list), func(from, to int) error {
			m := meeting{search: s, band: b, flips: flips, left: left, right: right, met: met, vain: &vain, limit: int64(limit)}
			for from < to && !m.crowded() {
				from = m.run(from, to)
			}
			if m.crowded() {
				return errCrowd
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A meeting compares the codes of one table with those of another, or with the others of the same, for one worker.
type meeting struct {
	*search
	band        band
	flips       [][]uint32
	left, right *table
	met         func(a, b uint32) bool
	vain        *atomic.Int64 // calls of met that it did not learn from, of all workers
	limit       int64

	// Codes of right that are to be compared with a run of left. Buckets hold a dozen codes, and a loop over so few
	// costs as much to begin and to end as to go round.
	gathered      int
	marks, hashes [batch]uint64
	places        [batch]uint32
}

// batch is how many codes are compared with a run at a stretch.
const batch = 512

func (m *meeting) crowded() bool { return m.vain.Load() > m.limit }

// run compares the codes of left that lie from from on, have one value of the band, and lie before to. It returns where
// they end.
func (m *meeting) run(from, to int) int {
	value := uint32(m.band.of(m.left.hashes[from]))
	to = min(to, int(m.left.start[value+1]))
	if m.left != m.right {
		m.gather(from, to, value)
	} else {
		// Each code of the bucket with those after it, whichever worker has those.
		end := int(m.left.start[value+1])
		for x := from; x < to; x++ {
			m.compare(x, m.left.marks[x+1:end], m.left.hashes[x+1:end], m.left.places[x+1:end])
		}
	}
	for bit, flips := range m.flips {
		// Of two buckets of one table, the one whose value is lower in the highest bit in which they differ compares both.
		if m.left == m.right && value>>bit&1 != 0 {
			continue
		}
		for _, flip := range flips {
			m.gather(from, to, value^flip)
		}
	}
	m.flush(from, to)
	return to
}

// gather adds a bucket of right to the batch, which is compared with the codes from:to of left when it is full.
func (m *meeting) gather(from, to int, value uint32) {
	at, end := int(m.right.start[value]), int(m.right.start[value+1])
	for at < end {
		if m.gathered == batch {
			m.flush(from, to)
		}
		n := min(end-at, batch-m.gathered)
		for i := range n {
			m.marks[m.gathered+i] = m.right.marks[at+i]
			m.places[m.gathered+i] = m.right.places[at+i]
		}
		if m.texts() {
			copy(m.hashes[m.gathered:], m.right.hashes[at:at+n])
		}
		m.gathered += n
		at += n
	}
}

// flush compares the batch with the codes from:to of left, and empties it.
func (m *meeting) flush(from, to int) {
	n, hashes := m.gathered, &m.marks
	if m.texts() {
		hashes = &m.hashes
	}
	for x := from; x < to; x++ {
		m.compare(x, m.marks[:n], hashes[:n], m.places[:n])
	}
	m.gathered = 0
}

// compare calls met for code x of left and those of others that it meets.
func (m *meeting) compare(x int, marks, hashes []uint64, places []uint32) {
	mark, hash, vain := m.left.marks[x], m.left.hashes[x], int64(0)
	for i := m.next(0, mark, hash, marks, hashes); i < len(marks); i = m.next(i+1, mark, hash, marks, hashes) {
		if !m.met(m.left.places[x], places[i]) {
			vain++
		}
		if vain >= 4096 {
			m.vain.Add(vain)
			vain = 0
			if m.crowded() {
				return
			}
		}
	}
	if vain > 0 {
		m.vain.Add(vain)
	}
}

// next returns the first place from i on that a code meets, len(marks) if there is none.
func (s *search) next(i int, mark, hash uint64, marks, hashes []uint64) int {
	differ := s.differ
	for i < len(marks) {
		// Of codes with texts, 97 of 100 pairs that share a picture end here, and nearly all of the others.
		for ; i+4 <= len(marks); i += 4 {
			four := marks[i : i+4 : i+4]
			if bits.OnesCount64(mark^four[0]) <= differ || bits.OnesCount64(mark^four[1]) <= differ ||
				bits.OnesCount64(mark^four[2]) <= differ || bits.OnesCount64(mark^four[3]) <= differ {
				break
			}
		}
		for end := min(i+4, len(marks)); i < end; i++ {
			if bits.OnesCount64(mark^marks[i]) <= differ && bits.OnesCount64(hash^hashes[i]) <= s.radius {
				return i
			}
		}
	}
	return len(marks)
}

// A band is a run of adjacent bits of the hash. Two hashes are compared by way of a band when they differ in at most
// reach of its bits.
type band struct {
	shift, width, reach int
}

func (b band) of(h uint64) uint64 { return h >> b.shift & (1<<b.width - 1) }

// planBands returns the bands by which n codes are compared with m the soonest. Hashes that no band brings together
// differ in reach+1 bits of each or more, and the sum of reach+1 over all bands is radius+1: none within the radius is
// lost.
func planBands(n, m, radius int) []band {
	var best []band
	least := math.Inf(1)
	for count := 1; count <= min(8, radius+1); count++ {
		far := (radius+1-1)%count + 1 // so many bands reach one bit further than the others
		for wide := 0; wide <= min(64/far, maxWidth); wide++ {
			bands, cost, shift := make([]band, 0, count), 0.0, 0
			for i := range count {
				b := band{shift: shift, width: wide, reach: radius / count}
				if i >= far {
					b.width, b.reach = min((64-shift)/(count-i), maxWidth), radius/count-1
				}
				shift += b.width
				bands = append(bands, b)
				cost += b.cost(n, m)
			}
			if cost < least {
				best, least = bands, cost
			}
		}
	}
	return best
}

// maxWidth is the width from which the table of a band does not fit a cache.
const maxWidth = 20

// cost is the time that a band takes, in comparisons.
func (b band) cost(n, m int) float64 {
	buckets, near, choose := float64(uint64(1)<<b.width), 0.0, 1.0
	for k := range b.reach + 1 {
		near += choose
		choose *= float64(b.width-k) / float64(k+1)
	}
	return 10*float64(n+m) + buckets + near*(8*min(float64(n), buckets)+float64(n)*float64(m)/buckets)
}

// flipsWithin lists the values of width bits with at most reach ones, except 0, by their highest bit.
func flipsWithin(width, reach int) [][]uint32 {
	flips := make([][]uint32, width)
	for v := uint32(1); v < 1<<width; v++ {
		if bits.OnesCount32(v) <= reach {
			high := bits.Len32(v) - 1
			flips[high] = append(flips[high], v)
		}
	}
	return flips
}

// A table holds codes sorted by one band: bucket v is start[v]:start[v+1], in the order of the list, and the i-th is
// number places[i].
type table struct {
	hashes, marks []uint64 // the same slice where they are that in the search
	places, start []uint32
}

func (s *search) newTable(n int) *table {
	t := &table{hashes: make([]uint64, n), places: make([]uint32, n)}
	t.marks = t.hashes
	if s.texts() {
		t.marks = make([]uint64, n)
	}
	return t
}

// texts reports whether marks are something else than the hashes.
func (s *search) texts() bool { return len(s.marks) > 0 && &s.marks[0] != &s.hashes[0] }

// fill sorts the codes of list by band b, by counting.
func (t *table) fill(s *search, list []uint32, b band) {
	size := 1 << b.width
	// Where bucket v starts stands in start[v+1] while it is counted up to where it ends.
	if cap(t.start) < size+2 {
		t.start = make([]uint32, size+2)
	}
	t.start = t.start[:size+2]
	clear(t.start)
	for _, n := range list {
		t.start[b.of(s.hashes[n])+2]++
	}
	for v := range size {
		t.start[v+2] += t.start[v+1]
	}
	for _, n := range list {
		hash := s.hashes[n]
		next := &t.start[b.of(hash)+1]
		t.hashes[*next], t.marks[*next], t.places[*next] = hash, s.marks[n], n
		*next++
	}
}

// inChunks calls do for the parts of 0..n-1, several at a time. The error is the context's, the first of do, or a panic
// of it.
func inChunks(ctx context.Context, n int, do func(from, to int) error) error {
	// Short enough that a worker with dear codes does not keep the others waiting at the end.
	const chunk = 256
	var next atomic.Int64
	var group errgroup.Group
	for range min(runtime.GOMAXPROCS(0), n/chunk+1) {
		safely.Go(&group, func() error {
			for ctx.Err() == nil {
				to := int(next.Add(chunk))
				if to-chunk >= n {
					return nil
				}
				if err := do(to-chunk, min(to, n)); err != nil {
					next.Store(int64(n))
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// meet reports whether two codes do.
func (s *search) meet(a, b uint32) bool {
	return bits.OnesCount64(s.marks[a]^s.marks[b]) <= s.differ && bits.OnesCount64(s.hashes[a]^s.hashes[b]) <= s.radius
}
