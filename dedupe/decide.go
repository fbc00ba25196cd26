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
	// leaf is the number of codes that are decided one after the other.
	leaf = 64
	// parts is the number of parts that a crowd is decided in.
	parts = 8
	// crowd is the number of pairs for each code that are looked at in vain before the codes pass for a crowd.
	crowd = 32
)

// A keeper keeps each code that is near no kept code before it. Two codes are near when they meet and near says so.
type keeper struct {
	search
	near func(earlier, later uint32) bool // workers call it at the same time
	of   []uint32                         // by code: the first kept one that it is near, or none
}

// keep decides on the codes of list, which are in order, near none that is kept before, and none in of. It returns those
// that it keeps, and writes over list. The error is the context's.
func (k *keeper) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	if len(list) <= leaf {
		return k.keepFew(list), ctx.Err()
	}
	var patience atomic.Int64
	patience.Store(int64(crowd * len(list)))
	err := k.pairs(ctx, list, nil, &listener{func(a, b uint32) bool { return k.drop(min(a, b), max(a, b)) }, &patience})
	if err != nil && !errors.Is(err, errCrowd) {
		return nil, err
	}
	open := 0
	for _, n := range list {
		if k.of[n] != none && k.of[k.of[n]] != none {
			open++
		}
	}
	if err != nil || open > len(list)/2 {
		for _, n := range list {
			k.of[n] = none
		}
		return k.keepParts(ctx, list)
	}
	// By now of names the earliest near code, kept or not: a least number, whatever the order in which the workers
	// met it. A code without any is kept. One whose earliest is kept is dropped for that.
	// The others are open, and compared again, with what is kept.
	kept, undecided := list[:0], make([]uint32, 0, open)
	for _, n := range list {
		switch {
		case k.of[n] == none:
			kept = append(kept, n)
		case k.of[k.of[n]] != none:
			undecided = append(undecided, n)
		}
	}
	return k.reopen(ctx, kept, undecided)
}

// reopen decides on codes that are near others which are not kept, perhaps, once the kept ones that are near none
// before them are known.
func (k *keeper) reopen(ctx context.Context, kept, open []uint32) ([]uint32, error) {
	if len(open) == 0 {
		return kept, ctx.Err()
	}
	for _, n := range open {
		k.of[n] = none
	}
	if err := k.pairs(ctx, kept, open, &listener{k.drop, nil}); err != nil {
		return nil, err
	}
	var lost, left []uint32
	for _, n := range open {
		if k.of[n] != none {
			lost = append(lost, n)
		} else {
			left = append(left, n)
		}
	}
	more, err := k.keep(ctx, left)
	if err != nil {
		return nil, err
	}
	// One of those may be earlier than the one that a lost code is near.
	if err := k.pairs(ctx, more, lost, &listener{k.drop, nil}); err != nil {
		return nil, err
	}
	return append(kept, more...), nil
}

// keepParts is keep for a list of which most are near many or hang on one another. It decides on one part after the
// other, and drops what is near a kept one of an earlier part before it looks at the pairs of a part.
func (k *keeper) keepParts(ctx context.Context, list []uint32) ([]uint32, error) {
	kept := list[:0] // all that is kept lies at the start of list
	for part := range slices.Chunk(list, len(list)/parts+1) {
		if err := k.pairs(ctx, kept, part, &listener{k.drop, nil}); err != nil {
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

// drop notes that one code drops the other if they are near and nothing earlier does. It reports whether they are the
// first that are found to be.
func (k *keeper) drop(earlier, later uint32) bool {
	if earlier >= later {
		return false
	}
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
