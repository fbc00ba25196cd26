package dedupe

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// scanBelow is the number of hashes under which comparing every pair is quicker than
	// building the index.
	scanBelow = 2048
	// maxIndexed is the largest radius the index is used for: beyond it a band has
	// thousands of neighbours and comparing every pair is as quick.
	maxIndexed = 16
	// fewBands is the number of hashes from which four bands beat five (measured at
	// 100,000 and 1,000,000, interpolated between).
	fewBands = 300_000
	// checkEvery is the number of comparisons after which a worker looks at its context.
	checkEvery = 1 << 20
	// largeBucket is the bucket size from which the context is looked at for each hash
	// that is compared with the bucket.
	largeBucket = 1 << 12
)

// A visitor gets each pair i < j of codes that meet, with the number of the worker that found it.
// Workers call it at the same time, each with its own number.
type visitor func(worker int, i, j uint32)

// keys are the codes that a join compares: a hash each and, where texts count, the signature of a text. Two codes
// meet when their hashes differ in at most radius bits and their signatures in at most differ.
//
// A signature costs eight bytes here and eight in the table, and saves nearly all of the work on memes: of the pairs
// that share a template 98 % end in a comparison of neighbouring words of memory.
type keys struct {
	hashes     []uint64
	signatures []uint64 // nil without texts
	differ     int
}

// join calls visit with every pair of codes that meet, each exactly once, in no particular
// order. The error is the context's.
func join(ctx context.Context, c *keys, radius, workers int, visit visitor) error {
	bands := bandsFor(len(c.hashes), radius)
	if bands == nil {
		return scanJoin(ctx, c, radius, workers, visit)
	}
	return indexJoin(ctx, c, radius, bands, workers, visit)
}

// bandsFor returns the bands to sort n hashes by, or nil where comparing every pair is no
// slower.
func bandsFor(n, radius int) []band {
	switch {
	case n < scanBelow || radius > maxIndexed:
		return nil
	case n < fewBands:
		return planBands(5, radius)
	}
	return planBands(4, radius)
}

// scanJoin compares every pair.
func scanJoin(ctx context.Context, c *keys, radius, workers int, visit visitor) error {
	t := &table{keys: *c}
	return inChunks(ctx, len(c.hashes), 64, workers, func(worker, i int) int {
		m := meeting{t: t, radius: radius, worker: worker, visit: visit}
		m.compare(i, i+1, len(c.hashes))
		return len(c.hashes) - i
	})
}

// A band is a run of adjacent bits of the hash. Two hashes are compared by way of a
// band when they differ in at most reach of its bits; never when reach is -1.
type band struct {
	shift, width, reach int
}

func (b band) of(h uint64) uint64 { return h >> b.shift & (1<<b.width - 1) }

// planBands cuts the 64 bits into n bands, the first 64 mod n of them one bit wider,
// and shares the radius out. With radius = n*s + a, the first a+1 bands reach s bits
// and the others s-1. A pair that no band brings together differs in at least
// (a+1)(s+1) + (n-a-1)s = radius+1 bits, so none within the radius is lost.
func planBands(n, radius int) []band {
	bands := make([]band, n)
	shift := 0
	for i := range bands {
		width := 64 / n
		if i < 64%n {
			width++
		}
		reach := radius / n
		if i > radius%n {
			reach--
		}
		bands[i] = band{shift: shift, width: width, reach: reach}
		shift += width
	}
	return bands
}

// indexJoin is multi-index hashing (Norouzi and others) of a set against itself: for
// each band in turn the codes are sorted into one bucket per value of the band, and
// each bucket is compared with those whose value is within the band's reach.
func indexJoin(ctx context.Context, c *keys, radius int, bands []band, workers int, visit visitor) error {
	t := newTable(c)
	for k, b := range bands {
		if b.reach < 0 {
			continue
		}
		t.fill(c, b)
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, 1<<b.width, 64, workers, func(worker, bucket int) int {
			if t.start[bucket] == t.start[bucket+1] {
				return 1
			}
			m := meeting{t: t, radius: radius, earlier: bands[:k], worker: worker, visit: visit}
			work := len(flips)
			for _, flip := range flips {
				// Each pair of buckets once, from the lower one.
				if other := bucket ^ int(flip); other >= bucket && t.start[other] < t.start[other+1] {
					work += m.buckets(ctx, bucket, other)
				}
			}
			return work
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A table holds codes sorted by one band: bucket v is start[v]:start[v+1], in the order
// that they came in, and place[i] says which code the i-th is. A nil place is the
// order that they came in.
type table struct {
	keys
	start []uint32
	place []uint32
}

func newTable(c *keys) *table {
	n := len(c.hashes)
	t := &table{place: make([]uint32, n)}
	t.hashes, t.differ = make([]uint64, n), c.differ
	if c.signatures != nil {
		t.signatures = make([]uint64, n)
	}
	return t
}

// fill sorts the codes by band b, by counting.
func (t *table) fill(c *keys, b band) {
	size := 1 << b.width
	// Where bucket v starts stands in start[v+1] while it is counted up to where it ends.
	t.start = slices.Grow(t.start[:0], size+2)[:size+2]
	clear(t.start)
	for _, h := range c.hashes {
		t.start[b.of(h)+2]++
	}
	for v := range size {
		t.start[v+2] += t.start[v+1]
	}
	for i, h := range c.hashes {
		next := &t.start[b.of(h)+1]
		t.hashes[*next], t.place[*next] = h, uint32(i)
		if c.signatures != nil {
			t.signatures[*next] = c.signatures[i]
		}
		*next++
	}
}

// A meeting compares codes of a table for one worker.
type meeting struct {
	t       *table
	radius  int
	earlier []band // pairs that these bring together have been visited
	worker  int
	visit   visitor
}

// buckets visits the pairs of two buckets, or of one with itself, and returns the number
// of comparisons, roughly. It may return early when ctx is done.
func (m *meeting) buckets(ctx context.Context, one, other int) int {
	from, to := int(m.t.start[one]), int(m.t.start[one+1])
	otherFrom, otherTo := int(m.t.start[other]), int(m.t.start[other+1])
	large := otherTo-otherFrom >= largeBucket
	for x := from; x < to; x++ {
		if large && ctx.Err() != nil {
			break
		}
		y := otherFrom
		if one == other {
			y = x + 1
		}
		m.compare(x, y, otherTo)
	}
	return (to - from) * (otherTo - otherFrom)
}

// compare compares code x with the codes from:to, signatures first: they differ too much in 97 pairs of 100 that
// share a picture and in more of the others, so that the processor guesses right.
func (m *meeting) compare(x, from, to int) {
	h := m.t.hashes[x]
	if m.t.signatures == nil {
		for k, other := range m.t.hashes[from:to] {
			if diff := h ^ other; bits.OnesCount64(diff) <= m.radius && !metBefore(diff, m.earlier) {
				m.report(x, from+k)
			}
		}
		return
	}
	signature := m.t.signatures[x]
	for k, other := range m.t.signatures[from:to] {
		if bits.OnesCount64(signature^other) > m.t.differ {
			continue
		}
		if diff := h ^ m.t.hashes[from+k]; bits.OnesCount64(diff) <= m.radius && !metBefore(diff, m.earlier) {
			m.report(x, from+k)
		}
	}
}

func (m *meeting) report(x, y int) {
	if m.t.place == nil {
		m.visit(m.worker, uint32(x), uint32(y))
		return
	}
	i, j := m.t.place[x], m.t.place[y]
	m.visit(m.worker, min(i, j), max(i, j))
}

// metBefore reports whether one of the bands has brought together hashes that differ
// in the bits of diff.
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

// inChunks calls do for 0..n-1 from several workers, which take chunks of the range as
// they become free. do returns the work it did, in comparisons. The error is the
// context's. A panic of do is one of the caller, who may recover: left in a worker it would end the
// program.
func inChunks(ctx context.Context, n, chunk, workers int, do func(worker, i int) int) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var panicked atomic.Pointer[any]
	for worker := range workers {
		group.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panicked.Store(&v)
					next.Store(int64(n)) // the others need not go on
				}
			}()
			work := 0
			for ctx.Err() == nil {
				end := int(next.Add(int64(chunk)))
				for i := end - chunk; i < min(end, n); i++ {
					work += do(worker, i)
					if work >= checkEvery {
						work = 0
						if ctx.Err() != nil {
							return
						}
					}
				}
				if end >= n {
					return
				}
			}
		})
	}
	group.Wait()
	if v := panicked.Load(); v != nil {
		panic(*v)
	}
	return ctx.Err()
}
