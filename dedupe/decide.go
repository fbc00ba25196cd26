package dedupe

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

const (
	// none is the answer for a code that is kept.
	none = 1<<32 - 1
	// parts is the number of parts that a crowd is decided in.
	parts = 8
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

// keep decides on the items of list, which are in order, and near none that was kept before. It returns those that it
// keeps, and writes over list. The error is the context's.
func (k *keeper) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	if len(list) <= k.few {
		return k.keepFew(slices.Clone(list)), ctx.Err()
	}
	// In a crowd, what is kept of a part drops most of the next: parts are the shorter way. It shows in the first
	// items, in the number of near pairs, or when most items hang on others that may be dropped.
	if len(k.keepFew(slices.Clone(list[:k.few]))) < k.few/2 {
		return k.keepParts(ctx, list)
	}
	err := k.pairs(ctx, list, nil, newListener(k.drop, crowd*len(list)))
	kept, open := k.split(list)
	if err == nil && len(open) > 0 {
		err = k.settle(ctx, kept, open)
	}
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

// split returns which items of list are kept, and which are open, once drop has heard of all near pairs.
func (k *keeper) split(list []uint32) (kept, open []uint32) {
	// Now of has the earliest item that each is near, whether that one is kept or not: a least number, whatever the
	// order in which workers met the pairs. An item that is near none before it is kept, and one whose earliest is kept
	// is dropped for it. The others are open.
	kept = make([]uint32, 0, len(list))
	for _, n := range list {
		switch of := k.of[n]; {
		case of == none:
			kept = append(kept, n)
		case k.of[of] != none:
			open = append(open, n)
		}
	}
	return kept, open
}

// settle decides on the open items, one after the other, by the items that they are near: those of kept, and other open
// ones. No item that is dropped already plays a part. The error is the context's, or errCrowd.
func (k *keeper) settle(ctx context.Context, kept, open []uint32) error {
	if len(open) > len(kept) {
		return errCrowd
	}
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

// keepParts is keep for items of which many are near many others. It decides on one part after the other, and drops
// what is near a kept one of an earlier part before it looks at the pairs of a part.
func (k *keeper) keepParts(ctx context.Context, list []uint32) ([]uint32, error) {
	for _, n := range list {
		k.of[n] = none
	}
	kept := list[:0] // all that is kept lies at the start of list
	for part := range slices.Chunk(list, len(list)/parts+1) {
		if err := k.pairs(ctx, part, kept, &listener{met: k.drop}); err != nil {
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

// keepFew is keep by comparing each item with those that are kept.
func (k *keeper) keepFew(list []uint32) []uint32 {
	kept, hashes := list[:0], make([]uint64, 0, len(list))
	for _, n := range list {
		k.of[n] = none
		hash := k.hashes[n]
		for i := within(hash, hashes, 0, k.radius); i < len(hashes) && k.of[n] == none; i = within(hash, hashes, i+1,
			k.radius) {
			if k.near(kept[i], n) {
				k.of[n] = kept[i]
			}
		}
		if k.of[n] == none {
			kept, hashes = append(kept, n), append(hashes, hash)
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
