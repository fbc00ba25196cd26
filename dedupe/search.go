package dedupe

import (
	"cmp"
	"context"
	"math/bits"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
)

const (
	// none is the answer for a code that is kept.
	none = 1<<32 - 1
	// leaf is the number of codes that are decided one after the other.
	leaf = 64
	// parts is the number of parts that a longer list is decided in: each is compared with what those before it keep.
	parts = 8
	// scanBelow is the number of codes under which comparing with each is as quick as an index of them.
	scanBelow = 512
	// maxIndexed is the largest radius that the index is used for: beyond it a band has thousands of neighbours.
	maxIndexed = 16
	// fewBands is the number of codes from which four bands beat five.
	fewBands = 300_000
)

// A code is what is compared first of an item. Two codes meet when their hashes differ in at most radius bits and
// the signatures of their texts in at most differ.
type code struct{ hash, signature uint64 }

// A search keeps each code that is near no kept code before it. Two codes are near when they meet and near says so.
type search struct {
	codes          []code // in the order of the decisions
	radius, differ int
	near           func(earlier, later uint32) bool // workers call it at the same time
	of             []uint32                         // by code: the first kept one that it is near, or none
}

// keep decides on the codes of list, which are in order and near none that is kept before the first of them, and
// returns those that it keeps. It writes over list. The error is the context's.
func (s *search) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	if len(list) <= leaf {
		kept := list[:0]
		for _, n := range list {
			s.scan(kept, n)
			if s.of[n] == none {
				kept = append(kept, n)
			}
		}
		return kept, ctx.Err()
	}
	kept := list[:0] // all that is kept lies at the start of list
	for part := range slices.Chunk(list, len(list)/parts+1) {
		if err := s.drop(ctx, kept, part); err != nil {
			return nil, err
		}
		left := slices.DeleteFunc(part, func(n uint32) bool { return s.of[n] != none })
		more, err := s.keep(ctx, left)
		if err != nil {
			return nil, err
		}
		kept = append(kept, more...)
	}
	return kept, nil
}

// scan compares a code with kept ones until it is near one.
func (s *search) scan(kept []uint32, n uint32) {
	c := s.codes[n]
	for _, k := range kept {
		other := s.codes[k]
		if bits.OnesCount64(c.signature^other.signature) <= s.differ &&
			bits.OnesCount64(c.hash^other.hash) <= s.radius && s.near(k, n) {
			s.of[n] = k
			return
		}
	}
}

// drop finds, for each code of list, the first of kept that it is near, if there is one. All of kept come before all
// of list.
func (s *search) drop(ctx context.Context, kept, list []uint32) error {
	// This is multi-index hashing (Norouzi and others): for each band in turn the kept codes are sorted into one bucket
	// per value of the band, and each code is compared with those whose value is within the band's reach.
	if len(kept) < scanBelow || s.radius > maxIndexed {
		return inChunks(ctx, len(list), func(i int) { s.scan(kept, list[i]) })
	}
	number := 5
	if len(kept) >= fewBands {
		number = 4
	}
	earlier, later := s.newTable(kept), s.newTable(list)
	bands := planBands(number, s.radius)
	for k, b := range bands {
		if b.reach < 0 {
			continue
		}
		earlier.fill(s, kept, b)
		later.fill(s, list, b) // looking up in the order of the band finds the buckets in cache
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, len(list), func(i int) { s.lookUp(earlier, later.codes[i], later.place[i], bands[:k+1], flips) })
		if err != nil {
			return err
		}
	}
	return nil
}

// lookUp compares a code with the buckets that the last band brings it together with.
func (s *search) lookUp(t *table, c code, n uint32, bands []band, flips []uint32) {
	best, before := s.of[n], bands[:len(bands)-1]
	value := uint32(bands[len(before)].of(c.hash))
	for _, flip := range flips {
		from, to := t.start[value^flip], t.start[value^flip+1]
		for y, other := range t.codes[from:to] {
			if bits.OnesCount64(c.signature^other.signature) > s.differ {
				continue
			}
			diff := c.hash ^ other.hash
			// What met in a band before was compared there.
			if bits.OnesCount64(diff) > s.radius || metBefore(diff, before) {
				continue
			}
			k := t.place[int(from)+y]
			if k >= best {
				break // a bucket is in order: no better one follows
			}
			if s.near(k, n) {
				best = k
				break
			}
		}
	}
	s.of[n] = best
}

// A band is a run of adjacent bits of the hash. Two hashes are compared by way of a band when they differ in at most
// reach of its bits; never when reach is -1.
type band struct {
	shift, width, reach int
}

func (b band) of(h uint64) uint64 { return h >> b.shift & (1<<b.width - 1) }

// planBands cuts the 64 bits into n bands, the first 64 mod n of them one bit wider, and shares the radius out.
func planBands(n, radius int) []band {
	// With radius = n*s + a, the first a+1 bands reach s bits and the others s-1. A pair that no band brings together
	// differs in at least (a+1)(s+1) + (n-a-1)s = radius+1 bits, so none within the radius is lost.
	bands := make([]band, n)
	shift := 0
	for i := range bands {
		bands[i] = band{shift: shift, width: (64 + n - 1 - i) / n, reach: (radius+n-i)/n - 1}
		shift += bands[i].width
	}
	return bands
}

// metBefore reports whether one of the bands has brought together hashes that differ in the bits of diff.
func metBefore(diff uint64, bands []band) bool {
	for _, b := range bands {
		if bits.OnesCount64(b.of(diff)) <= b.reach {
			return true
		}
	}
	return false
}

// flipsWithin lists the values of width bits with at most reach ones.
func flipsWithin(width, reach int) []uint32 {
	var flips []uint32
	for v := range uint32(1) << width {
		if bits.OnesCount32(v) <= reach {
			flips = append(flips, v)
		}
	}
	return flips
}

// A table holds codes sorted by one band: bucket v is start[v]:start[v+1], in order, and place[i] numbers the i-th.
type table struct {
	codes        []code
	place, start []uint32
}

func (s *search) newTable(list []uint32) *table {
	return &table{codes: make([]code, len(list)), place: make([]uint32, len(list))}
}

// fill sorts the codes of list by band b, by counting.
func (t *table) fill(s *search, list []uint32, b band) {
	size := 1 << b.width
	// Where bucket v starts stands in start[v+1] while it is counted up to where it ends.
	t.start = slices.Grow(t.start[:0], size+2)[:size+2]
	clear(t.start)
	for _, n := range list {
		t.start[b.of(s.codes[n].hash)+2]++
	}
	for v := range size {
		t.start[v+2] += t.start[v+1]
	}
	for _, n := range list {
		next := &t.start[b.of(s.codes[n].hash)+1]
		t.codes[*next], t.place[*next] = s.codes[n], n
		*next++
	}
}

// inChunks calls do for 0..n-1, several at a time. The error is the context's, or a panic of do.
func inChunks(ctx context.Context, n int, do func(i int)) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	// Short ones, so that a worker with dear codes does not keep the others waiting at the end.
	const chunk = 64
	for from := 0; from < n && ctx.Err() == nil; from += chunk {
		safely.Go(&group, func() error {
			for i := from; i < min(from+chunk, n); i++ {
				do(i)
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}
