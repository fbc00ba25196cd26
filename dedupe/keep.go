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
	// Guard also requires that less than half of the longer text changed: texts that differ
	// in half of their words or more are not near, however short. Without it two texts
	// of two words are always near. It says nothing of items that both have no text.
	Guard bool
	// ImageOnly leaves texts and wide hashes out: items are near when their hashes are
	// within Radius, flat ones when their contents are equal.
	ImageOnly bool
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
	ClassImage    = "image"     // Rule.ImageOnly: texts were not looked at
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
	decisions := make([]Decision, len(items))
	for i := range decisions {
		decisions[i].Of = -1
	}
	if len(items) == 0 || rule.Words == 0 && !rule.ImageOnly { // no item is near another
		return decisions, ctx.Err()
	}
	c := newComparison(items, rule)
	if err := c.decide(ctx, decisions); err != nil {
		return nil, err
	}
	return decisions, nil
}

// Spared returns how many of the items that decisions drop would be kept by the same rule
// with its guard, for a user who has to choose. The decisions are those of KeepFirst by the
// rule without it, and the error is KeepFirst's. It costs another pass, unless the rule
// already has its guard or nothing was dropped.
func Spared(ctx context.Context, items []Item, rule Rule, decisions []Decision) (int, error) {
	if rule.Guard || rule.ImageOnly || !slices.ContainsFunc(decisions, func(d Decision) bool { return !d.Kept() }) {
		return 0, ctx.Err()
	}
	rule.Guard = true
	guarded, err := KeepFirst(ctx, items, rule)
	if err != nil {
		return 0, err
	}
	spared := 0
	for i, d := range decisions {
		if !d.Kept() && guarded[i].Kept() {
			spared++
		}
	}
	return spared, nil
}

// String says the rule in a few words, for provenance.
func (r Rule) String() string {
	if r.ImageOnly {
		return fmt.Sprintf("radius %d, images only", r.Radius)
	}
	s := fmt.Sprintf("radius %d, fewer than %d words", r.Radius, r.Words)
	if r.Guard {
		s += ", less than half changed"
	}
	return s
}

// A comparison holds the items ready to compare. Items that no rule can tell apart are
// collapsed: the first of them stands for all.
type comparison struct {
	rule  Rule
	items []Item
	texts []text   // by item
	first []uint32 // by item: the one that stands for it, itself or an earlier one
	nodes []uint32 // the items that stand for themselves, in order
}

type text struct {
	ids       []uint32
	signature uint64
}

// An identity is all that a rule can tell an item by.
type identity struct {
	hash    Hash
	content string // of a flat item
	ids     string
	wide    Hash256 // of an item that is not flat and has no text
}

func newComparison(items []Item, rule Rule) *comparison {
	rule.Words = min(rule.Words, manyWords)
	c := &comparison{rule: rule, items: items, texts: make([]text, len(items)), first: make([]uint32, len(items))}
	words := lexicon{}
	earliest := make(map[identity]uint32, len(items))
	for i, it := range items {
		if !rule.ImageOnly {
			c.texts[i].ids = words.number(it.Tokens)
			c.texts[i].signature = signature(c.texts[i].ids)
		}
		n := uint32(i)
		// Copies of an item that is near a copy of itself are near each other and near the same other items. Without
		// collapsing them, k copies of a post cost k*k/2 comparisons.
		if id, near := c.identify(i); near {
			if first, met := earliest[id]; met {
				c.first[i], c.texts[i] = first, c.texts[first]
				continue
			}
			earliest[id] = n
		}
		c.first[i] = n
		c.nodes = append(c.nodes, n)
	}
	return c
}

// identify returns the identity of an item, and whether the item would be near a copy of itself.
func (c *comparison) identify(i int) (identity, bool) {
	it, ids := &c.items[i], c.texts[i].ids
	key := identity{hash: it.Hash}
	bytes := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		bytes = binary.LittleEndian.AppendUint32(bytes, id)
	}
	key.ids = string(bytes)
	switch {
	case it.Hash.Flat:
		key.content = it.Content
		return key, it.Content != ""
	case c.rule.ImageOnly || len(ids) > 0:
		return key, true
	case it.Wide != nil:
		key.wide = *it.Wide
	}
	return key, it.Wide != nil
}

// picturesNear finishes the comparison of two items that are not flat and whose hashes
// are within the radius.
func (c *comparison) picturesNear(a, b uint32) bool {
	if c.rule.ImageOnly {
		return true
	}
	if len(c.texts[a].ids) > 0 || len(c.texts[b].ids) > 0 {
		return c.textNear(a, b)
	}
	x, y := &c.items[a], &c.items[b]
	return x.Wide != nil && y.Wide != nil &&
		bits.OnesCount64(x.Hash.Bits^y.Hash.Bits) <= noTextRadius &&
		x.Wide.distance(*y.Wide) <= noTextRadiusWide
}

// textNear reports whether two texts differ by fewer than rule.Words words, and the guard
// has nothing against it. An empty text differs from another by all of its words.
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
	return wordDistance(x.ids, y.ids, limit) <= limit && (!c.rule.Guard || changedLessThanHalf(x.ids, y.ids))
}

// decide fills in the decisions, which all start as kept.
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
	s, at := c.search()
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

// search returns the search over the nodes that are not flat, and the items that its
// numbers stand for.
func (c *comparison) search() (s *search, at []uint32) {
	k := keys{differ: signatureBound(c.rule.Words-1, 0)}
	for _, n := range c.nodes {
		if c.items[n].Hash.Flat {
			continue
		}
		at = append(at, n)
		k.hashes = append(k.hashes, c.items[n].Hash.Bits)
		if !c.rule.ImageOnly {
			k.signatures = append(k.signatures, c.texts[n].signature)
		}
	}
	return newSearch(k, c.rule.Radius, runtime.GOMAXPROCS(0), func(earlier, later uint32) bool {
		return c.picturesNear(at[earlier], at[later])
	}), at
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
		near := func(earlier uint32) bool { return c.rule.ImageOnly || c.textNear(earlier, n) }
		if k := slices.IndexFunc(same, near); k >= 0 {
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
	a, b := c.texts[i].ids, c.texts[of].ids
	d := Decision{
		Of:           of,
		HashDistance: bits.OnesCount64(x.Hash.Bits ^ y.Hash.Bits),
		WordDistance: wordDistance(a, b, max(len(a), len(b))),
	}
	switch {
	case x.Hash.Flat:
		d.Class = ClassFlat
	case c.rule.ImageOnly:
		d.Class = ClassImage
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
