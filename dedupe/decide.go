package dedupe

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// none is the answer for an item that is kept, or not decided on.
const none = 1<<32 - 1

// A keeper keeps each item that is near no kept item before it. Two items are near when a search meets them and near
// says so.
type keeper struct {
	search
	near func(earlier, later uint32) bool // workers call it at the same time
	of   []uint32                         // by item: the first kept one that it is near, or none
}

// keep decides on the items of list, which are in order, and near none that was kept before. It returns those that it
// keeps, in the place of list. The error is the context's.
func (k *keeper) keep(ctx context.Context, list []uint32) ([]uint32, error) {
	if len(list) <= k.few {
		return k.keepFew(list), ctx.Err()
	}
	if k.crowded(list) {
		return k.keepParts(ctx, list)
	}
	if err := k.pairs(ctx, list, list); err != nil {
		return nil, err
	}
	// Now of has the earliest item that each is near, whether that one is kept or not: a least number, whatever the
	// order in which workers met the pairs. An item that is near none before it is kept, and one whose earliest is kept
	// is dropped for it. The others are open.
	kept, open := list[:0], []uint32(nil)
	for _, n := range list {
		of := k.of[n]
		switch {
		case of == none:
			kept = append(kept, n)
		case k.of[of] != none:
			open = append(open, n)
		}
	}
	more, err := k.settle(ctx, kept, open)
	return append(kept, more...), err
}

// settle is keep for open items, which may be near kept ones.
func (k *keeper) settle(ctx context.Context, kept, open []uint32) ([]uint32, error) {
	if len(open) == 0 {
		return nil, nil
	}
	for _, n := range open {
		k.of[n] = none
	}
	if err := k.pairs(ctx, open, kept); err != nil {
		return nil, err
	}
	var lost, rest []uint32
	for _, n := range open {
		if k.of[n] != none {
			lost = append(lost, n)
		} else {
			rest = append(rest, n)
		}
	}
	keep := k.keep
	if len(rest) > len(kept) { // long chains, of which keep settles a step at a time
		keep = k.keepParts
	}
	more, err := keep(ctx, rest)
	if err == nil {
		err = k.pairs(ctx, lost, more) // which may be earlier than those for which they are lost
	}
	return more, err
}

// crowded reports, by a sample, whether items are near more than crowd others on average. Then what is kept of a part
// drops most of the next, and parts are the shorter way.
func (k *keeper) crowded(list []uint32) bool {
	const crowd, scale = 12, 16
	// So many have scale pairs for each item of list, which are few beside those that a search compares.
	sample := make([]uint32, int(math.Sqrt(float64(2*scale*len(list)))))
	r := rand.New(rand.NewPCG(1, 2)) // no pattern of the list is to escape it
	for i := range sample {
		sample[i] = list[r.IntN(len(list))]
	}
	slices.Sort(sample)
	sample = slices.Compact(sample)
	hashes, pairs := make([]uint64, len(sample)), 0
	for i, n := range sample {
		hash := k.hashes[n]
		for at := within(hash, hashes[:i], 0, k.radius); at < i; at = within(hash, hashes[:i], at+1, k.radius) {
			if k.near(sample[at], n) {
				pairs++
			}
		}
		hashes[i] = hash
		if pairs > crowd*scale {
			return true
		}
	}
	return false
}

// keepParts is keep for items of which many are near many others. It decides on one part after the other, and drops
// what is near a kept one of an earlier part before it looks at the pairs of a part.
func (k *keeper) keepParts(ctx context.Context, list []uint32) ([]uint32, error) {
	kept := list[:0]
	for part := range slices.Chunk(list, len(list)/8+1) {
		if err := k.pairs(ctx, part, kept); err != nil {
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
		hash, i := k.hashes[n], -1
		for k.of[n] == none && i < len(hashes) {
			i = within(hash, hashes, i+1, k.radius)
			if i < len(hashes) && k.near(kept[i], n) {
				k.of[n] = kept[i]
			}
		}
		if k.of[n] == none {
			kept, hashes = append(kept, n), append(hashes, hash)
		}
	}
	return kept
}

// drop notes that item n is near an earlier one, if it is and nothing earlier is known.
func (k *keeper) drop(earlier, n uint32) {
	best := atomic.LoadUint32(&k.of[n])
	if earlier >= min(n, best) || !k.near(earlier, n) {
		return
	}
	for earlier < best && !atomic.CompareAndSwapUint32(&k.of[n], best, earlier) {
		best = atomic.LoadUint32(&k.of[n])
	}
}
