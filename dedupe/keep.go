package dedupe

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
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

// KeepFirst keeps each item that is near no kept item before it. The decisions stand in the order of the items, and
// depend on that order and on nothing else. The error is the context's, or says that the rule is not one.
//
// Two items are near when their hashes are within rule.Radius and their token distance is below rule.Words. Where
// neither has tokens, hashes must be within min(4, rule.Radius) bits of 64 and 16 of 256. Where either is flat, both
// must be, with equal contents and a token distance below rule.Words.
func KeepFirst(ctx context.Context, items []Item, rule Rule) ([]Decision, error) {
	c, err := newComparison(items, rule)
	if err != nil {
		return nil, err
	}
	of, err := c.decide(ctx, rule.Guard)
	if err != nil {
		return nil, err
	}
	return c.decisions(of), nil
}

// KeepAndSpare is KeepFirst, and also returns how many of the items that it drops would be kept by the same rule with
// its guard, for a user who has to choose. It takes less time than KeepFirst by both rules.
func KeepAndSpare(ctx context.Context, items []Item, rule Rule) (decisions []Decision, spared int, err error) {
	c, err := newComparison(items, rule)
	if err != nil {
		return nil, 0, err
	}
	of, err := c.decide(ctx, rule.Guard)
	if err != nil {
		return nil, 0, err
	}
	if !rule.Guard && !rule.ImageOnly && slices.ContainsFunc(of, dropped) {
		guarded, err := c.decide(ctx, true)
		if err != nil {
			return nil, 0, err
		}
		for i := range of {
			if dropped(of[i]) && !dropped(guarded[i]) {
				spared++
			}
		}
	}
	return c.decisions(of), spared, nil
}

func dropped(of uint32) bool { return of != none }

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

// A comparison holds the items ready to compare.
type comparison struct {
	search
	rule  Rule
	items []Item
}

func newComparison(items []Item, rule Rule) (*comparison, error) {
	if rule.Radius < 0 || rule.Radius > 64 {
		return nil, fmt.Errorf("near-duplicates: the hash radius is %d, want 0 to 64 bits", rule.Radius)
	}
	if rule.Words < 0 {
		return nil, fmt.Errorf("near-duplicates: the word difference is %d, want 0 or more", rule.Words)
	}
	c := &comparison{search{hashes: make([]uint64, len(items)), radius: rule.Radius, few: 1024}, rule, items}
	seed := maphash.MakeSeed()
	for i := range items {
		c.hashes[i] = items[i].Hash.Bits
		if items[i].Hash.Flat { // all of those hash alike, and their contents are compared
			c.hashes[i] = maphash.String(seed, items[i].Content)
		}
	}
	if !rule.ImageOnly {
		// At most as many words as no image holds, and few enough to calculate with.
		c.texts = newTexts(items, min(rule.Words, 1<<30)-1)
	}
	return c, nil
}

// decide makes the keep-first pass. It returns, by item, the first kept one that it is near, or none.
func (c *comparison) decide(ctx context.Context, guard bool) ([]uint32, error) {
	k := &keeper{search: c.search, near: c.near, of: slices.Repeat([]uint32{none}, len(c.items))}
	k.met = k.drop
	if guard && !c.rule.ImageOnly {
		k.strict = true
		k.near = func(a, b uint32) bool { return c.near(a, b) && c.texts.changedLessThanHalf(a, b) }
	}
	flat := map[string]int{} // by content
	for i := range c.items {
		if c.items[i].Hash.Flat {
			flat[c.items[i].Content]++
		}
	}
	flat[""] = 0
	list := make([]uint32, 0, len(c.items))
	for i := range c.items {
		if it := &c.items[i]; (!it.Hash.Flat || flat[it.Content] > 1) && (c.rule.ImageOnly || c.rule.Words > 0) {
			list = append(list, uint32(i))
		}
	}
	_, err := k.keep(ctx, list)
	return k.of, err
}

// decisions describes what decide returned.
func (c *comparison) decisions(of []uint32) []Decision {
	all := make([]Decision, len(of))
	for i, first := range of {
		all[i].Of = -1
		if first != none {
			all[i] = c.witness(uint32(i), first)
		}
	}
	return all
}

// near finishes the comparison of two items that meet.
func (c *comparison) near(a, b uint32) bool {
	x, y := &c.items[a], &c.items[b]
	switch {
	case x.Hash.Flat != y.Hash.Flat || x.Hash.Flat && x.Content != y.Content:
		return false
	case c.rule.ImageOnly:
		return true
	case x.Hash.Flat || len(x.Tokens) > 0 || len(y.Tokens) > 0:
		return c.texts.within(a, b)
	}
	// Without text there is nothing but the picture to compare, and unrelated white screenshots differ in 8 bits of 64
	// or fewer in 7.6 % of pairs. Recompressed and resized copies stay within 4 of 64 and 12 of 256 bits, unrelated
	// screenshots differ in 16 of 256 or more almost always.
	return x.Wide != nil && y.Wide != nil && bits.OnesCount64(x.Hash.Bits^y.Hash.Bits) <= 4 &&
		x.Wide.Distance(*y.Wide) <= 16
}

// witness describes how item i is near the kept item of.
func (c *comparison) witness(i, of uint32) Decision {
	x, y := &c.items[i], &c.items[of]
	d := Decision{Of: int(of), HashDistance: bits.OnesCount64(x.Hash.Bits ^ y.Hash.Bits)}
	if !c.rule.ImageOnly {
		d.WordDistance = wordDistance(c.texts.of(i), c.texts.of(of))
	}
	switch {
	case x.Hash.Flat:
		d.Class = ClassFlat
	case c.rule.ImageOnly:
		d.Class = ClassImage
	case len(x.Tokens) == 0 && len(y.Tokens) == 0:
		d.Class = ClassNoText
	case len(x.Tokens) == 0 || len(y.Tokens) == 0:
		d.Class = ClassOneEmpty
	case d.WordDistance == 0:
		d.Class = ClassSameText
	default:
		d.Class = ClassNearText
	}
	return d
}
