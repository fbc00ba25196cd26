package dedupe

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	// none is the answer for a code that is kept.
	none = 1<<32 - 1
	// leaf is the number of items that are decided one after the other.
	leaf = 64
	// parts is the number of parts that a crowd is decided in.
	parts = 8
	// probe is the number of items by which a crowd is recognized soon, most often.
	probe = 1024
	// crowd is the number of near pairs for each item from which the items are a crowd.
	crowd = 16
)

// A keeper keeps each item that is near no kept item before it. Two items are near when a search meets them and near
// says so.
type keeper struct {
	search
	near func(earlier, later uint32) bool // workers call it at the same time
	of   []uint32                         // by item: the first kept one that it is near, or none
}

// keep decides on the items of list, which are in order, near none that is kept before, and none in of. It returns those
// that it keeps, and writes over list. The error is the context's.
func (k *keeper) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	if len(list) <= leaf {
		return k.keepFew(list), ctx.Err()
	}
	for _, some := range [][]uint32{list[:min(probe, len(list))], list} {
		err := k.pairs(ctx, some, nil, newListener(k.drop, crowd*len(some)))
		if errors.Is(err, errCrowd) {
			return k.keepParts(ctx, list)
		}
		if err != nil {
			return nil, err
		}
	}
	// Now of has the earliest item that each is near, whether that one is kept or not: a least number, whatever the order
	// in which workers met the pairs. An item that is near none before it is kept, and one whose earliest is kept is
	// dropped for it. The others are open.
	kept, open := make([]uint32, 0, len(list)), []uint32{}
	for _, n := range list {
		switch of := k.of[n]; {
		case of == none:
			kept = append(kept, n)
		case k.of[of] != none:
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return kept, ctx.Err()
	}
	err := k.settle(ctx, kept, open)
	if errors.Is(err, errCrowd) {
		return k.keepParts(ctx, list)
	}
	for _, n := range open {
		if k.of[n] == none {
			kept = append(kept, n)
		}
	}
	return kept, err
}

// settle decides on the open items, one after the other, by the items that they are near: those of kept, and other open
// ones.
func (k *keeper) settle(ctx context.Context, kept, open []uint32) error {
	// The earlier items that n is near are those of pairs[last[n]], of the pair before that, and so on until 0.
	type pair struct{ earlier, before uint32 }
	pairs, last := make([]pair, crowd*len(open)+1), make([]uint32, len(k.of))
	var used atomic.Int64
	note := newListener(func(a, b uint32) bool {
		earlier, later := min(a, b), max(a, b)
		if !k.near(earlier, later) {
			return true
		}
		if n := used.Add(1); n < int64(len(pairs)) {
			pairs[n] = pair{earlier, atomic.SwapUint32(&last[later], uint32(n))}
		}
		return false
	}, crowd*len(open))
	if err := k.pairs(ctx, kept, open, note); err != nil {
		return err
	}
	if err := k.pairs(ctx, open, nil, note); err != nil {
		return err
	}
	for _, n := range open {
		k.of[n] = none
		for at := last[n]; at != 0; at = pairs[at].before {
			if earlier := pairs[at].earlier; k.of[earlier] == none {
				k.of[n] = min(k.of[n], earlier)
			}
		}
	}
	return nil
}

// keepParts is keep for items of which many are near many others. It decides on one part after the other, and drops what
// is near a kept one of an earlier part before it looks at the pairs of a part.
func (k *keeper) keepParts(ctx context.Context, list []uint32) ([]uint32, error) {
	for _, n := range list {
		k.of[n] = none
	}
	kept := list[:0] // all that is kept lies at the start of list
	for part := range slices.Chunk(list, len(list)/parts+1) {
		if err := k.pairs(ctx, kept, part, &listener{met: k.drop}); err != nil {
			return nil, err
		}
		more, err := k.keep(ctx, slices.DeleteFunc(part, func(n uint32) bool { return k.of[n] != none }))
		if err != nil {
			return nil, err
		}
		kept = append(kept, more...)
	}
	return kept, nil
}

// keepFew is keep for a few codes.
func (k *keeper) keepFew(list []uint32) []uint32 {
	kept := list[:0]
	for _, n := range list {
		for _, earlier := range kept {
			if bits.OnesCount64(k.hashes[earlier]^k.hashes[n]) <= k.radius && k.near(earlier, n) {
				k.of[n] = earlier
				break
			}
		}
		if k.of[n] == none {
			kept = append(kept, n)
		}
	}
	return kept
}

// drop notes that the earlier of two items drops the later one, if they are near and nothing earlier does. It reports
// whether nothing did so far.
func (k *keeper) drop(a, b uint32) bool {
	earlier, later := min(a, b), max(a, b)
	best := atomic.LoadUint32(&k.of[later])
	first := best == none
	if earlier >= best || !k.near(earlier, later) {
		return first
	}
	for earlier < best && !atomic.CompareAndSwapUint32(&k.of[later], best, earlier) {
		best = atomic.LoadUint32(&k.of[later])
	}
	return first
}
