package dedupe

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
)

// A search finds the items that may be near: their hashes differ in at most radius bits, and their texts, where those
// count, have a rare word in common or are short.
type search struct {
	hashes []uint64 // by item
	radius int
	*texts      // nil where they do not count
	strict bool // texts without a common word are not near, unless both are empty
	few    int  // so many items are compared with so many without an index of words
}

// batch is the number of hashes that are compared with a run of others at a stretch. Buckets hold a dozen, and a loop
// over so few costs as much to begin and to end as to go round.
const batch = 512

// errCrowd says that so many pairs were met in vain that there are better ways to decide.
var errCrowd = errors.New("the items are a crowd")

// A listener hears of the pairs that a search meets.
type listener struct {
	// met is called for each pair, and for some again, from several goroutines. It reports whether the pair was of use.
	met func(a, b uint32) bool
	// patience counts down the pairs that were of none. Below 0 the search ends with errCrowd. nil never does.
	patience *atomic.Int64
}

func newListener(met func(a, b uint32) bool, patience int) *listener {
	l := &listener{met: met, patience: new(atomic.Int64)}
	l.patience.Store(int64(patience))
	return l
}

func (l *listener) crowded() bool { return l.patience != nil && l.patience.Load() < 0 }

// pairs meets every pair of an item of list and one of other that may be near; with other nil, every two of list. An
// error is the context's, or errCrowd.
func (s *search) pairs(ctx context.Context, list, other []uint32, l *listener) error {
	if s.texts == nil || len(list)*max(len(other), len(list)) <= s.few*s.few {
		return s.byHash(ctx, list, other, l)
	}
	// Two texts of up to limit words may have no word in common. All others that are near share a rare one: see rarest.
	limit := s.limit
	if s.strict {
		limit = 0
	}
	one, two := s.upTo(limit, list), s.upTo(limit, other)
	if other == nil || len(two) > 0 {
		if err := s.byHash(ctx, one, two, l); err != nil {
			return err
		}
	}
	return s.byWord(ctx, list, other, l)
}

// byHash meets the pairs whose hashes are within the radius.
func (s *search) byHash(ctx context.Context, list, other []uint32, l *listener) error {
	// This is multi-index hashing (Norouzi, Punjani and Fleet 2014): for each band of bits in turn, the hashes are
	// sorted into one bucket for each value of the band, and each bucket is compared with those whose value is within
	// the band's reach. Why no pair is lost is told at planBands.
	left := newTable(len(list))
	right := left
	if other != nil {
		right = newTable(len(other))
	}
	bands := planBands(len(list), len(right.places), s.radius)
	if other == nil && s.alike(list, list) || s.alike(list, other) {
		bands = []band{{reach: s.radius}} // no band tells them apart
	}
	for k, b := range bands {
		left.fill(s.hashes, list, b)
		if other != nil {
			right.fill(s.hashes, other, b)
		}
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, len(list), 256, func(from, to int) error {
			m := meeting{search: s, listener: l, before: bands[:k]}
			for from < to && !l.crowded() {
				from = m.run(left, right, b, flips, from, to)
			}
			return m.end()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// alike reports, by a sample, whether half of the hashes of list are within the radius of one of other.
func (s *search) alike(list, other []uint32) bool {
	sample, near := min(64, len(list), len(other)), 0
	for i := range sample {
		if bits.OnesCount64(s.hashes[list[i]]^s.hashes[other[len(other)-1-i]]) <= s.radius {
			near++
		}
	}
	return near > sample/2
}

// byWord meets the pairs that have one of their rarest words in common.
func (s *search) byWord(ctx context.Context, list, other []uint32, l *listener) error {
	size := 1 << bits.Len(uint(min(len(s.counts), len(list)+len(other))))
	left := s.newGroups(list, size)
	right := left
	if other != nil {
		right = s.newGroups(other, size)
	}
	var large []int
	for g := range size {
		switch n, m := len(left.of(g)), len(right.of(g)); {
		case n > len(list)/4 && m > max(len(list), len(other))/4:
			return s.byHash(ctx, list, other, l) // one text all over
		case max(n, m) > batch:
			large = append(large, g)
		}
	}
	err := inChunks(ctx, size, 64, func(from, to int) error {
		m := meeting{search: s, listener: l}
		for g := from; g < to && !l.crowded(); g++ {
			if one, two := left.of(g), right.of(g); max(len(one), len(two)) <= batch {
				m.group(one, two, left == right)
			}
		}
		return m.end()
	})
	for _, g := range large {
		two := right.of(g)
		if left == right {
			two = nil
		}
		if err == nil {
			err = s.byHash(ctx, left.of(g), two, l)
		}
	}
	return err
}

// A meeting compares hashes for one worker.
type meeting struct {
	*search
	*listener
	before []band // what these bring together was met there
	vain   int64

	gathered    int // hashes that are to be compared with a run
	batch       [batch]uint64
	batchPlaces [batch]uint32
}

// run compares the hashes of left from from on that have one value of the band, and lie before to, with all of right
// within the band's reach, and returns where they end.
func (m *meeting) run(left, right *table, b band, flips [][]uint32, from, to int) int {
	value := uint32(b.of(left.hashes[from]))
	end := int(left.start[value+1])
	to = min(to, end)
	hashes, places := left.hashes[from:to], left.places[from:to]
	if left != right {
		m.gather(hashes, places, right, value)
	} else {
		for x := range hashes {
			// Those after it, whichever worker has them.
			m.compare(hashes[x], places[x], left.hashes[from+x+1:end], left.places[from+x+1:end])
		}
	}
	for bit, some := range flips {
		// Of two buckets of one table, the one that has 0 in the highest bit in which they differ is compared with the
		// other.
		if left == right && value>>bit&1 != 0 {
			continue
		}
		for _, flip := range some {
			m.gather(hashes, places, right, value^flip)
		}
	}
	m.flush(hashes, places)
	return to
}

// gather adds a bucket to the batch, which is compared with hashes when it is full.
func (m *meeting) gather(hashes []uint64, places []uint32, t *table, value uint32) {
	for at, end := t.start[value], t.start[value+1]; at < end; at++ {
		if m.gathered == batch {
			m.flush(hashes, places)
		}
		m.batch[m.gathered], m.batchPlaces[m.gathered] = t.hashes[at], t.places[at]
		m.gathered++
	}
}

// flush compares the batch with hashes, and empties it.
func (m *meeting) flush(hashes []uint64, places []uint32) {
	for x, hash := range hashes {
		m.compare(hash, places[x], m.batch[:m.gathered], m.batchPlaces[:m.gathered])
	}
	m.gathered = 0
}

// group compares each item of one list with those of the other, or with those after it in the same. The other has at
// most batch items.
func (m *meeting) group(one, other []uint32, same bool) {
	n := copy(m.batchPlaces[:], other)
	for i, place := range other {
		m.batch[i] = m.hashes[place]
	}
	for x, place := range one {
		from := 0
		if same {
			from = x + 1
		}
		m.compare(m.hashes[place], place, m.batch[from:n], m.batchPlaces[from:n])
	}
}

// compare meets those of others that are within the radius of a hash.
func (m *meeting) compare(hash uint64, place uint32, others []uint64, places []uint32) {
	for i := within(hash, others, 0, m.radius); i < len(others); i = within(hash, others, i+1, m.radius) {
		// Of memes that share a picture, 97 of 100 pairs have texts that are far.
		if m.texts != nil && m.far(place, places[i]) || metBefore(hash^others[i], m.before) || place == places[i] ||
			m.met(place, places[i]) {
			continue
		}
		m.vain++
		if m.vain >= 4096 && m.end() != nil {
			return
		}
	}
}

// end takes from the patience what was met in vain.
func (m *meeting) end() error {
	if m.patience != nil {
		m.patience.Add(-m.vain)
	}
	m.vain = 0
	if m.crowded() {
		return errCrowd
	}
	return nil
}

// within returns the first place from i on of a hash within the radius, len(others) if there is none.
func within(hash uint64, others []uint64, i, radius int) int {
	for i < len(others) {
		for ; i+4 <= len(others); i += 4 {
			four := others[i : i+4 : i+4]
			if bits.OnesCount64(hash^four[0]) <= radius || bits.OnesCount64(hash^four[1]) <= radius ||
				bits.OnesCount64(hash^four[2]) <= radius || bits.OnesCount64(hash^four[3]) <= radius {
				break
			}
		}
		for end := min(i+4, len(others)); i < end; i++ {
			if bits.OnesCount64(hash^others[i]) <= radius {
				return i
			}
		}
	}
	return len(others)
}

// A table holds hashes sorted by one band: bucket v is start[v]:start[v+1], in the order of the list, and the i-th is
// of item places[i].
type table struct {
	hashes        []uint64
	places, start []uint32
}

func newTable(n int) *table { return &table{hashes: make([]uint64, n), places: make([]uint32, n)} }

// fill sorts the hashes of list by band b, by counting.
func (t *table) fill(hashes []uint64, list []uint32, b band) {
	size := 1 << b.width
	if cap(t.start) < size+2 {
		t.start = make([]uint32, size+2)
	}
	// Where bucket v starts stands in start[v+1] while it is counted up to where it ends.
	t.start = t.start[:size+2]
	clear(t.start)
	for _, n := range list {
		t.start[b.of(hashes[n])+2]++
	}
	for v := range size {
		t.start[v+2] += t.start[v+1]
	}
	for _, n := range list {
		next := &t.start[b.of(hashes[n])+1]
		t.hashes[*next], t.places[*next] = hashes[n], n
		*next++
	}
}

// inChunks calls do for the parts of 0..n-1, several at a time. The error is the context's, the first of do, or a panic
// of it.
func inChunks(ctx context.Context, n, chunk int, do func(from, to int) error) error {
	var next atomic.Int64
	var group errgroup.Group
	for range min(runtime.GOMAXPROCS(0), n/chunk+1) {
		safely.Go(&group, func() error {
			for ctx.Err() == nil {
				to := int(next.Add(int64(chunk)))
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
