package dedupe

import (
	"context"
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
	// met is called for each pair of which the second is to be dropped if the first is near and earlier, from several
	// goroutines, and for some pairs again.
	met           func(a, b uint32)
	bands, groups [2]table // of by and list, for the next search to use again
}

// pairs meets every item of by with every one of list that may be near. Where both are one slice, each item meets those
// after it. The error is the context's.
func (s *search) pairs(ctx context.Context, list, by []uint32) error {
	if s.texts == nil || len(list)*max(len(by), len(list)) <= s.few*s.few {
		return s.byHash(ctx, list, by)
	}
	// Two texts of up to limit words may have no word in common. All others that are near share a rare one: see rarest.
	limit := s.limit
	if s.strict {
		limit = 0
	}
	short := s.upTo(limit, list)
	shortBy := short
	if !same(list, by) {
		shortBy = s.upTo(limit, by)
	}
	if err := s.byHash(ctx, short, shortBy); err != nil {
		return err
	}
	return s.byWord(ctx, list, by)
}

// same reports whether two slices are one.
func same(list, by []uint32) bool {
	return len(list) > 0 && len(list) == len(by) && &list[0] == &by[0]
}

// byHash meets the pairs whose hashes are within the radius.
func (s *search) byHash(ctx context.Context, list, by []uint32) error {
	// This is multi-index hashing (Norouzi, Punjani and Fleet 2014): for each band of bits in turn, the hashes are
	// sorted into one bucket for each value of the band, and each bucket is compared with those whose value is within
	// the band's reach. Why no pair is lost is told at planBands.
	bands := planBands(len(list), len(by), s.radius)
	if len(bands) == 0 || s.alike(list, by) { // no band tells them apart
		return inChunks(ctx, len(list), 256, func(from, to int) {
			m := meeting{search: s, self: same(list, by)}
			m.each(list, by, from, to)
		})
	}
	left, right := &s.bands[0], &s.bands[0]
	if !same(list, by) {
		left = &s.bands[1]
	}
	for k, b := range bands {
		left.byBand(s.hashes, list, b)
		if left != right {
			right.byBand(s.hashes, by, b)
		}
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, len(list), 256, func(from, to int) {
			m := meeting{search: s, self: left == right, before: bands[:k]}
			for from < to {
				from = m.run(left, right, b, flips, from, to)
			}
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
func (s *search) byWord(ctx context.Context, list, by []uint32) error {
	// Words share buckets, for less memory: what is met in vain is compared by its hash first.
	size := 1 << bits.Len(uint(min(s.shared, (len(list)+len(by))/16)))
	left, right := &s.groups[0], &s.groups[0]
	right.byWord(s.texts, by, size)
	if !same(list, by) {
		left = &s.groups[1]
		left.byWord(s.texts, list, size)
	}
	var large []int
	for g := range size {
		n, m := len(left.of(g)), len(right.of(g))
		switch {
		case n > len(list)/4 && m > max(len(list), len(by))/4:
			return s.byHash(ctx, list, by) // one text all over
		case max(n, m) > batch:
			large = append(large, g)
		}
	}
	err := inChunks(ctx, size, 64, func(from, to int) {
		m := meeting{search: s, self: left == right}
		for g := from; g < to; g++ {
			if one, two := left.of(g), right.of(g); max(len(one), len(two)) <= batch {
				m.each(one, two, 0, len(one))
			}
		}
	})
	for _, g := range large {
		if err == nil {
			err = s.byHash(ctx, left.of(g), right.of(g))
		}
	}
	return err
}

// batch is the number of hashes that are compared with a run of others at a stretch. Buckets hold a dozen, and a loop
// over so few costs as much to begin and to end as to go round.
const batch = 512

// A meeting compares hashes for one worker.
type meeting struct {
	*search
	self   bool   // of one list with itself
	before []band // what these bring together was met there

	gathered int // hashes that are to be compared with a run
	batch    [batch]uint64
	places   [batch]uint32
}

// each compares the hashes of list from from to to with all others, or, where those are the same list, with all after
// each.
func (m *meeting) each(list, others []uint32, from, to int) {
	start := 0
	if m.self {
		start = from
	}
	for ; start < len(others); start += batch {
		some := others[start:min(start+batch, len(others))]
		for i, place := range some {
			m.batch[i] = m.hashes[place]
		}
		for x := from; x < to; x++ {
			after := 0
			if m.self {
				after = min(max(x+1-start, 0), len(some))
			}
			m.compare(m.hashes[list[x]], list[x], m.batch[after:len(some)], some[after:])
		}
	}
}

// run compares the hashes of left from from on that have one value of the band, and lie before to, with all of right
// within the band's reach, and returns where they end.
func (m *meeting) run(left, right *table, b band, flips []uint32, from, to int) int {
	value := uint32(b.of(left.hashes[from]))
	end := int(left.start[value+1])
	to = min(to, end)
	hashes, places := left.hashes[from:to], left.places[from:to]
	if !m.self {
		m.gather(hashes, places, right, value)
	} else {
		for x := range hashes {
			// Those after it, whichever worker has them.
			m.compare(hashes[x], places[x], left.hashes[from+x+1:end], left.places[from+x+1:end])
		}
	}
	for _, flip := range flips {
		if !m.self || value < value^flip { // two buckets of one table meet once
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
		m.batch[m.gathered], m.places[m.gathered] = t.hashes[at], t.places[at]
		m.gathered++
	}
}

// flush compares the batch with hashes, and empties it.
func (m *meeting) flush(hashes []uint64, places []uint32) {
	for x, hash := range hashes {
		m.compare(hash, places[x], m.batch[:m.gathered], m.places[:m.gathered])
	}
	m.gathered = 0
}

// compare meets those of others that are within the radius of a hash.
func (m *meeting) compare(hash uint64, place uint32, others []uint64, places []uint32) {
	for i := within(hash, others, 0, m.radius); i < len(others); i = within(hash, others, i+1, m.radius) {
		// Of memes that share a picture, 97 of 100 pairs have texts that are far.
		a, b := places[i], place
		if m.texts != nil && m.far(a, b) || metBefore(hash^others[i], m.before) {
			continue
		}
		if m.self {
			a, b = min(a, b), max(a, b)
		}
		m.met(a, b)
	}
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

// A table holds items in buckets: those of bucket v are places[start[v]:start[v+1]], in the order of the list. Where
// the buckets are values of a band, hashes are theirs.
type table struct {
	hashes        []uint64
	places, start []uint32
}

func (t *table) of(v int) []uint32 { return t.places[t.start[v]:t.start[v+1]] }

// byBand puts the items of list into buckets by band b of their hashes, by counting.
func (t *table) byBand(hashes []uint64, list []uint32, b band) {
	t.clear(1 << b.width)
	for _, n := range list {
		t.start[b.of(hashes[n])+2]++
	}
	t.hashes, t.places = sized(t.hashes, len(list)), t.room()
	for _, n := range list {
		next := &t.start[b.of(hashes[n])+1]
		t.hashes[*next], t.places[*next] = hashes[n], n
		*next++
	}
}

// byWord puts each item of list into the buckets of its rarest words.
func (t *table) byWord(texts *texts, list []uint32, size int) {
	t.clear(size)
	var words []uint32
	for _, n := range list {
		words = texts.rarest(words, n)
		for _, w := range words {
			t.start[int(w)&(size-1)+2]++
		}
	}
	t.places = t.room()
	for _, n := range list {
		words = texts.rarest(words, n)
		for _, w := range words {
			next := &t.start[int(w)&(size-1)+1]
			t.places[*next] = n
			*next++
		}
	}
}

// clear makes room for so many buckets. How many items bucket v has is to be counted in start[v+2]; where it starts
// stands in start[v+1] then, and is to be counted up to where it ends.
func (t *table) clear(size int) {
	t.start = sized(t.start, size+2)
	clear(t.start)
}

// room turns the counts into starts, and returns room for all places.
func (t *table) room() []uint32 {
	for v := range len(t.start) - 2 {
		t.start[v+2] += t.start[v+1]
	}
	return sized(t.places, int(t.start[len(t.start)-1]))
}

// sized returns a slice of n, in the memory of s if that is enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// inChunks calls do for the parts of 0..n-1, several at a time. The error is the context's, or a panic of do.
func inChunks(ctx context.Context, n, chunk int, do func(from, to int)) error {
	var next atomic.Int64
	var group errgroup.Group
	for range min(runtime.GOMAXPROCS(0), n/chunk+1) {
		safely.Go(&group, func() error {
			for ctx.Err() == nil {
				to := int(next.Add(int64(chunk)))
				if to-chunk >= n {
					return nil
				}
				do(to-chunk, min(to, n))
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
