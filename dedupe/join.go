package dedupe

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// scanBelow is the number of hashes under which comparing every pair is quicker than
	// building the index.
	scanBelow = 2048
	// maxIndexed is the largest radius the index is used for: beyond it a band has
	// thousands of neighbours and comparing every pair is no slower.
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

// A visitor is told of a pair i < j of hashes within the radius by the worker with
// that number. Workers call it at the same time, each with its own number.
type visitor func(worker int, i, j uint32)

// join tells visit of every pair of hashes that differ in at most radius bits, each
// exactly once, in no particular order. The error is the context's.
func join(ctx context.Context, hashes []uint64, radius, workers int, visit visitor) error {
	bands := bandsFor(len(hashes), radius)
	if bands == nil {
		return scanJoin(ctx, hashes, radius, workers, visit)
	}
	return indexJoin(ctx, hashes, radius, bands, workers, visit)
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
func scanJoin(ctx context.Context, hashes []uint64, radius, workers int, visit visitor) error {
	return inChunks(ctx, len(hashes), 64, workers, func(worker, i int) int {
		h := hashes[i]
		for j := i + 1; j < len(hashes); j++ {
			if bits.OnesCount64(h^hashes[j]) <= radius {
				visit(worker, uint32(i), uint32(j))
			}
		}
		return len(hashes) - i
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
// each band in turn the hashes are sorted into one bucket per value of the band, and
// each bucket is compared with those whose value is within the band's reach.
func indexJoin(ctx context.Context, hashes []uint64, radius int, bands []band, workers int, visit visitor) error {
	t := newTable(len(hashes))
	for k, b := range bands {
		if b.reach < 0 {
			continue
		}
		t.fill(hashes, b)
		flips := flipsWithin(b.width, b.reach)
		earlier := bands[:k]
		err := inChunks(ctx, 1<<b.width, 64, workers, func(worker, bucket int) int {
			if t.start[bucket] == t.start[bucket+1] {
				return 1
			}
			work := len(flips)
			for _, flip := range flips {
				// Each pair of buckets once, from the lower one.
				if other := bucket ^ int(flip); other >= bucket {
					work += t.compare(ctx, bucket, other, radius, earlier, worker, visit)
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

// A table holds the hashes sorted by one band: bucket v is sorted[start[v]:start[v+1]], in
// the order that they came in, and place[i] says which hash sorted[i] is.
type table struct {
	start  []uint32
	sorted []uint64
	place  []uint32
}

func newTable(n int) *table {
	return &table{sorted: make([]uint64, n), place: make([]uint32, n)}
}

// fill sorts the hashes by band b, by counting.
func (t *table) fill(hashes []uint64, b band) {
	next := make([]uint32, 1<<b.width+1)
	for _, h := range hashes {
		next[b.of(h)+1]++
	}
	for v := range 1 << b.width {
		next[v+1] += next[v]
	}
	t.start = append(t.start[:0], next...)
	for i, h := range hashes {
		v := b.of(h)
		t.sorted[next[v]], t.place[next[v]] = h, uint32(i)
		next[v]++
	}
}

// compare visits the near pairs of two buckets, or of one with itself, that no earlier
// band has brought together, and returns the number of comparisons. It may return early
// when ctx is done.
func (t *table) compare(ctx context.Context, one, other, radius int, earlier []band, worker int, visit visitor) int {
	from, to := int(t.start[one]), int(t.start[one+1])
	otherFrom, otherTo := int(t.start[other]), int(t.start[other+1])
	for x := from; x < to; x++ {
		if otherTo-otherFrom >= largeBucket && ctx.Err() != nil {
			break
		}
		y := otherFrom
		if one == other {
			y = x + 1
		}
		for ; y < otherTo; y++ {
			diff := t.sorted[x] ^ t.sorted[y]
			if bits.OnesCount64(diff) > radius || metBefore(diff, earlier) {
				continue
			}
			i, j := t.place[x], t.place[y]
			visit(worker, min(i, j), max(i, j))
		}
	}
	return (to - from) * (otherTo - otherFrom)
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
// context's.
func inChunks(ctx context.Context, n, chunk, workers int, do func(worker, i int) int) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			work := 0
			for ctx.Err() == nil {
				end := int(next.Add(int64(chunk)))
				for i := end - chunk; i < min(end, n); i++ {
					if work += do(worker, i); work >= checkEvery {
						if work = 0; ctx.Err() != nil {
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
	return ctx.Err()
}
