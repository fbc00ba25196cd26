package dedupe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
)

// An Item is one image with its text, as KeepFirst compares it.
type Item struct {
	Hash Hash
	// Wide is needed of items without tokens only. Where it is missing, the item is near
	// no other item without tokens.
	Wide *Hash256
	// Content is the digest of the stored bytes; flat images are near only where it is
	// equal. "" equals nothing.
	Content string
	Tokens  []string // of Tokens; empty is "no text"
}

// A Rule says what near means.
type Rule struct {
	Radius int // hashes differ in at most this many of 64 bits; 0..64
	Words  int // texts differ by fewer than this many words; 0 means that no item is near
}

// Images without text have nothing but the picture to compare, and unrelated white
// screenshots differ in 8 bits of 64 or fewer in 7.6 % of pairs. Recompressed and
// resized copies stay within 4 of 64 and 12 of 256 bits, unrelated screenshots differ
// in 10 of 256 at the least and in 16 or more almost always.
const (
	noTextRadius     = 4
	noTextRadiusWide = 16
)

// manyWords is more words than an image holds, and few enough to calculate with.
const manyWords = 1 << 30

// The classes of near pairs.
const (
	ClassSameText = "same_text" // both have text, the same tokens
	ClassNearText = "near_text" // both have text, some words differ
	ClassNoText   = "no_text"   // neither has text; the strict image rule
	ClassOneEmpty = "one_empty" // one has no text, the other fewer than Rule.Words words
	ClassFlat     = "flat"      // a picture of one colour; the same bytes
)

// A Decision says what became of one item.
type Decision struct {
	Of           int    // index of the earliest kept item that this one is near; -1: this one is kept
	HashDistance int    // differing bits of the 64, 0 when kept
	WordDistance int    // differing words, 0 when kept
	Class        string // one of the classes; "" when kept
}

// Kept reports whether the item stays.
func (d Decision) Kept() bool { return d.Of < 0 }

// KeepFirst keeps each item that is near no kept item before it. The decisions stand
// in the order of the items, and depend on that order and on nothing else.
//
// Two items are near when their hashes are within rule.Radius and their token
// distance is below rule.Words. Where neither has tokens, hashes must be within
// min(4, rule.Radius) bits of 64 and 16 of 256. Where either is flat, both must be, with
// equal contents and a token distance below rule.Words.
//
// The error is the context's, or says that the rule is not one. The items are not
// changed.
func KeepFirst(ctx context.Context, items []Item, rule Rule) ([]Decision, error) {
	if rule.Radius < 0 || rule.Radius > 64 {
		return nil, fmt.Errorf("near-duplicates: the hash radius is %d, want 0 to 64 bits", rule.Radius)
	}
	if rule.Words < 0 {
		return nil, fmt.Errorf("near-duplicates: the word difference is %d, want 0 or more", rule.Words)
	}
	if uint64(len(items)) > 1<<32-1 {
		return nil, fmt.Errorf("near-duplicates: %d items are too many for one pass, want fewer than 2^32", len(items))
	}
	decisions := make([]Decision, len(items))
	for i := range decisions {
		decisions[i].Of = -1
	}
	if rule.Words == 0 || len(items) == 0 {
		return decisions, ctx.Err()
	}
	rule.Words = min(rule.Words, manyWords)
	c, err := newComparison(ctx, items, rule)
	if err != nil {
		return nil, err
	}
	if err := c.decide(ctx, decisions); err != nil {
		return nil, err
	}
	return decisions, nil
}

// A comparison holds the items ready to compare. Items that no rule can tell apart are
// collapsed: the first of them stands for all.
type comparison struct {
	items []Item
	rule  Rule
	texts []text   // by item
	first []uint32 // by item: the one that stands for it, itself or an earlier one
	nodes []uint32 // the items that stand for themselves, in order
}

type text struct {
	ids       []uint32
	signature uint64
}

func newComparison(ctx context.Context, items []Item, rule Rule) (*comparison, error) {
	c := &comparison{items: items, rule: rule,
		texts: make([]text, len(items)), first: make([]uint32, len(items))}
	words := lexicon{}
	seen := map[identity]uint32{}
	for i := range items {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ids := words.number(items[i].Tokens)
		c.texts[i] = text{ids: ids, signature: signature(ids)}
		c.first[i] = uint32(i)
		if id, ok := identify(&items[i], ids); ok {
			if earlier, met := seen[id]; met {
				c.first[i] = earlier
				c.texts[i] = text{} // only the one that stands for it is compared
				continue
			}
			seen[id] = uint32(i)
		}
		c.nodes = append(c.nodes, uint32(i))
	}
	return c, nil
}

// An identity is all that the rules look at. Items that share one are near each other
// and near the same other items. Without this, k copies of a post cost k*k/2
// comparisons.
type identity struct {
	hash    uint64
	wide    Hash256
	content string
	text    string
}

// identify returns the identity of an item. ok is false for an item that would not be
// near a copy of itself.
func identify(it *Item, ids []uint32) (id identity, ok bool) {
	switch {
	case it.Hash.Flat:
		id.content = it.Content
		ok = it.Content != ""
	case len(ids) == 0:
		if ok = it.Wide != nil; ok {
			id.hash, id.wide = it.Hash.Bits, *it.Wide
		}
	default:
		id.hash = it.Hash.Bits
		ok = true
	}
	key := make([]byte, 0, 4*len(ids))
	for _, n := range ids {
		key = binary.LittleEndian.AppendUint32(key, n)
	}
	id.text = string(key)
	return id, ok
}

// pictureTextNear finishes the comparison of two items that are not flat and whose
// hashes are within the radius.
func (c *comparison) pictureTextNear(a, b uint32) bool {
	if len(c.texts[a].ids) > 0 || len(c.texts[b].ids) > 0 {
		return c.textNear(a, b)
	}
	x, y := &c.items[a], &c.items[b]
	return x.Wide != nil && y.Wide != nil &&
		bits.OnesCount64(x.Hash.Bits^y.Hash.Bits) <= noTextRadius &&
		x.Wide.distance(*y.Wide) <= noTextRadiusWide
}

// textNear reports whether two texts differ by fewer than rule.Words words. An empty
// text differs from another by all of its words.
func (c *comparison) textNear(a, b uint32) bool {
	x, y := &c.texts[a], &c.texts[b]
	limit := c.rule.Words - 1
	lengths := max(len(x.ids)-len(y.ids), len(y.ids)-len(x.ids))
	if lengths > limit {
		return false
	}
	// Nearly all pairs of different captions end here, in a few nanoseconds.
	if bits.OnesCount64(x.signature^y.signature) > signatureBound(limit, lengths) {
		return false
	}
	return wordDistance(x.ids, y.ids, limit) <= limit
}

// decide fills in the decisions, all of which say kept so far.
func (c *comparison) decide(ctx context.Context, decisions []Decision) error {
	if err := c.decidePictures(ctx, decisions); err != nil {
		return err
	}
	if err := c.decideFlat(ctx, decisions); err != nil {
		return err
	}
	for i, node := range c.first {
		if int(node) == i {
			continue
		}
		// Both are near the same items. Where node is kept, nothing kept before it is near
		// either of them, so it is the earliest.
		of := decisions[node].Of
		if of < 0 {
			of = int(node)
		}
		decisions[i] = c.witness(i, of)
	}
	return nil
}

// decidePictures makes the keep-first pass over the pictures that are not flat.
func (c *comparison) decidePictures(ctx context.Context, decisions []Decision) error {
	var at []uint32 // the items, by number in the search
	var hashes []uint64
	for _, n := range c.nodes {
		if !c.items[n].Hash.Flat {
			at = append(at, n)
			hashes = append(hashes, c.items[n].Hash.Bits)
		}
	}
	s := newSearch(hashes, c.rule.Radius, runtime.GOMAXPROCS(0), func(earlier, later uint32) bool {
		return c.pictureTextNear(at[earlier], at[later])
	})
	if err := s.run(ctx); err != nil {
		return err
	}
	for i, of := range s.of {
		if of != none {
			decisions[at[i]] = c.witness(int(at[i]), int(at[of]))
		}
	}
	return nil
}

// decideFlat makes the keep-first pass over the flat pictures. Equal bytes have equal
// hashes, so a flat picture is near no other kind.
func (c *comparison) decideFlat(ctx context.Context, decisions []Decision) error {
	kept := map[string][]uint32{} // by content
	for _, n := range c.nodes {
		it := &c.items[n]
		if !it.Hash.Flat || it.Content == "" {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		same := kept[it.Content]
		if k := slices.IndexFunc(same, func(earlier uint32) bool { return c.textNear(earlier, n) }); k >= 0 {
			decisions[n] = c.witness(int(n), int(same[k]))
			continue
		}
		kept[it.Content] = append(same, n)
	}
	return nil
}

// witness describes how item i is near the kept item of.
func (c *comparison) witness(i, of int) Decision {
	x, y := &c.items[i], &c.items[of]
	a, b := c.texts[c.first[i]].ids, c.texts[c.first[of]].ids
	d := Decision{
		Of:           of,
		HashDistance: bits.OnesCount64(x.Hash.Bits ^ y.Hash.Bits),
		WordDistance: wordDistance(a, b, max(len(a), len(b))),
	}
	switch {
	case x.Hash.Flat:
		d.Class = ClassFlat
	case len(a) == 0 && len(b) == 0:
		d.Class = ClassNoText
	case len(a) == 0 || len(b) == 0:
		d.Class = ClassOneEmpty
	case d.WordDistance == 0:
		d.Class = ClassSameText
	default:
		d.Class = ClassNearText
	}
	return d
}
