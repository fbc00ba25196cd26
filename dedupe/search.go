package dedupe

import (
	"context"
	"math/bits"
	"sync/atomic"
)

const (
	// edgesPerHash and edgesMore bound the near pairs that a search holds: edgesMore, and
	// edgesPerHash times the hashes. A million memes with a tenth of them reposted have
	// two a meme.
	edgesPerHash, edgesMore = 4, 1 << 16
	// none is the answer for a hash that is kept.
	none = 1<<32 - 1
)

// A search keeps each code that is near no kept code before it. Two codes are near when
// they meet and near says so.
//
// It joins the codes with themselves and decides by the near pairs. Where those are too
// many to hold, it decides on the first half, drops what of the other half is near one
// that is kept, which takes no memory, and then decides on the rest of that half. The
// memory is linear, and both ways give the same answer.
type search struct {
	keys    // in the order of the decisions
	radius  int
	workers int
	// near finishes the comparison of two codes, earlier < later, whose hashes are within the radius.
	// Workers call it at the same time.
	near      func(earlier, later uint32) bool
	edgesMore int

	of    []uint32 // by code: the first kept one that it is near, or none
	found [][]edge // by worker
}

func newSearch(k keys, radius, workers int, near func(earlier, later uint32) bool) *search {
	return &search{keys: k, radius: radius, workers: workers, near: near,
		edgesMore: edgesMore, found: make([][]edge, workers)}
}

// run decides on every hash and fills in s.of. The error is the context's.
func (s *search) run(ctx context.Context) error {
	s.of = make([]uint32, len(s.hashes))
	list := make([]uint32, len(s.hashes))
	for i := range list {
		s.of[i], list[i] = none, uint32(i)
	}
	_, err := s.keep(ctx, list)
	return err
}

// keep decides on the hashes of list, which are in order and near none that is kept
// before the first of them, and returns those that it keeps. It writes over list.
func (s *search) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	fit, err := s.edges(ctx, list)
	if err != nil {
		return nil, err
	}
	if fit {
		s.settle(list)
		return s.left(list), nil
	}
	half := len(list) / 2
	kept, err := s.keep(ctx, list[:half])
	if err != nil {
		return nil, err
	}
	if err := s.drop(ctx, kept, list[half:]); err != nil {
		return nil, err
	}
	more, err := s.keep(ctx, s.left(list[half:]))
	return append(kept, more...), err // both lie in list, kept at its start
}

// left returns those of list that nothing has dropped. It writes over list.
func (s *search) left(list []uint32) []uint32 {
	left := list[:0]
	for _, n := range list {
		if s.of[n] == none {
			left = append(left, n)
		}
	}
	return left
}

// An edge says that two hashes of a list are near, the earlier one first.
type edge struct{ earlier, later uint32 }

// edges finds the near pairs of list, by place in it, and puts them into s.found. It
// gives up when they are too many; the pairs of a few hundred hashes never are.
func (s *search) edges(ctx context.Context, list []uint32) (fit bool, err error) {
	for w := range s.found {
		s.found[w] = s.found[w][:0]
	}
	room := int64(edgesPerHash*len(list) + s.edgesMore)
	var count atomic.Int64
	joining, cancel := context.WithCancel(ctx)
	defer cancel()
	err = join(joining, s.pick(list), s.radius, s.workers, func(worker int, i, j uint32) {
		if count.Load() > room || !s.near(list[i], list[j]) {
			return
		}
		if count.Add(1) > room {
			cancel()
			return
		}
		s.found[worker] = append(s.found[worker], edge{i, j})
	})
	if count.Load() > room {
		return false, ctx.Err()
	}
	return err == nil, err
}

// pick copies the codes of list.
func (s *search) pick(list []uint32) *keys {
	c := &keys{hashes: s.hashesOf(list), differ: s.differ}
	if s.signatures != nil {
		c.signatures = make([]uint64, len(list))
		for i, n := range list {
			c.signatures[i] = s.signatures[n]
		}
	}
	return c
}

// settle makes the keep-first pass over list by the edges in s.found.
func (s *search) settle(list []uint32) {
	earlier := neighbours(s.found, len(list))
	for i, n := range list {
		for _, e := range earlier(i) {
			if k := list[e]; s.of[k] == none && k < s.of[n] {
				s.of[n] = k
			}
		}
	}
}

// neighbours sorts the edges by their later end, by counting, and returns the function
// that lists the earlier neighbours of a place, in no particular order.
func neighbours(edges [][]edge, n int) func(i int) []uint32 {
	start := make([]int, n+2)
	for _, some := range edges {
		for _, e := range some {
			start[e.later+2]++
		}
	}
	for i := range n {
		start[i+2] += start[i+1]
	}
	ends := make([]uint32, start[n+1])
	for _, some := range edges {
		for _, e := range some {
			ends[start[e.later+1]] = e.earlier
			start[e.later+1]++
		}
	}
	return func(i int) []uint32 { return ends[start[i]:start[i+1]] }
}

// drop finds, for each hash of list, the first of kept that it is near, if there is one.
// All of kept come before all of list.
func (s *search) drop(ctx context.Context, kept, list []uint32) error {
	earlier, later := &keys{hashes: s.hashesOf(kept)}, &keys{hashes: s.hashesOf(list)}
	bands := bandsFor(len(kept), s.radius)
	if bands == nil {
		return inChunks(ctx, len(list), 64, s.workers, func(_, i int) int {
			return s.scanOne(earlier.hashes, kept, later.hashes[i], list[i])
		})
	}
	left, right := newTable(earlier), newTable(later)
	for k, b := range bands {
		if b.reach < 0 {
			continue
		}
		left.fill(earlier, b)
		right.fill(later, b) // looking up in the order of the band finds the buckets in cache
		flips := flipsWithin(b.width, b.reach)
		err := inChunks(ctx, len(list), 64, s.workers, func(_, i int) int {
			return s.lookUpOne(left, kept, right.hashes[i], list[right.place[i]], bands[:k], b, flips)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *search) hashesOf(list []uint32) []uint64 {
	hashes := make([]uint64, len(list))
	for i, n := range list {
		hashes[i] = s.hashes[n]
	}
	return hashes
}

// scanOne compares a hash with those of kept until it is near one, and returns the number
// of comparisons.
func (s *search) scanOne(hashes []uint64, kept []uint32, h uint64, later uint32) int {
	for k, other := range hashes {
		if bits.OnesCount64(h^other) <= s.radius && s.near(kept[k], later) {
			s.of[later] = kept[k]
			return k
		}
	}
	return len(hashes)
}

// lookUpOne compares a hash with the buckets that band b brings it together with, and
// returns the number of comparisons, roughly. What met in an earlier band was compared
// there.
func (s *search) lookUpOne(t *table, kept []uint32, h uint64, later uint32, before []band, b band, flips []uint32) int {
	best, work := s.of[later], len(flips)
	value := uint32(b.of(h))
	for _, flip := range flips {
		from, to := t.start[value^flip], t.start[value^flip+1]
		work += int(to - from)
		for y := from; y < to; y++ {
			diff := h ^ t.hashes[y]
			if bits.OnesCount64(diff) > s.radius || metBefore(diff, before) {
				continue
			}
			earlier := kept[t.place[y]]
			if earlier >= best {
				break // a bucket is in order: no better one follows
			}
			if s.near(earlier, later) {
				best = earlier
				break
			}
		}
	}
	s.of[later] = best
	return work
}
