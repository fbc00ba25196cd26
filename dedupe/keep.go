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
	if rule.Radius < 0 || rule.Radius > 64 {
		return nil, fmt.Errorf("near-duplicates: the hash radius is %d, want 0 to 64 bits", rule.Radius)
	}
	if rule.Words < 0 {
		return nil, fmt.Errorf("near-duplicates: the word difference is %d, want 0 or more", rule.Words)
	}
	c, found := newComparison(items, rule)
	k := &keeper{search: found, near: c.near, of: slices.Repeat([]uint32{none}, len(items))}
	if _, err := k.keep(ctx, c.comparable()); err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(items))
	for i, of := range k.of {
		decisions[i].Of = -1
		if of != none {
			decisions[i] = c.witness(i, int(of))
		}
	}
	return decisions, nil
}

// Spared returns how many of the items that decisions, KeepFirst's by the rule, drop would be kept by the same rule
// with its guard, for a user who has to choose. It costs another pass, and the error is KeepFirst's.
func Spared(ctx context.Context, items []Item, rule Rule, decisions []Decision) (int, error) {
	if !slices.ContainsFunc(decisions, func(d Decision) bool { return !d.Kept() }) {
		return 0, nil
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

// A comparison holds the items ready to compare.
type comparison struct {
	rule  Rule
	items []Item
	words []uint32 // the numbers of all tokens, item by item
	ends  []int    // by item: where its words end
}

func newComparison(items []Item, rule Rule) (*comparison, *search) {
	rule.Words = min(rule.Words, 1<<30) // more words than an image holds, and few enough to calculate with
	c := &comparison{rule: rule, items: items}
	s := &search{hashes: make([]uint64, len(items)), radius: rule.Radius, differ: rule.Radius}
	seed := maphash.MakeSeed()
	for i, it := range items {
		s.hashes[i] = it.Hash.Bits
		if it.Hash.Flat {
			s.hashes[i] = maphash.String(seed, it.Content)
		}
	}
	s.marks = s.hashes
	if rule.ImageOnly {
		return c, s
	}
	tokens := 0
	for i := range items {
		tokens += len(items[i].Tokens)
	}
	words := lexicon{}
	c.words, c.ends = make([]uint32, 0, tokens), make([]int, len(items))
	s.marks, s.differ = make([]uint64, len(items)), 2*(rule.Words-1)
	for i := range items {
		c.words = words.number(c.words, items[i].Tokens)
		c.ends[i] = len(c.words)
		s.marks[i] = signature(c.text(uint32(i)))
	}
	return c, s
}

// text is the text of item n, empty where texts do not count.
func (c *comparison) text(n uint32) []uint32 {
	if c.ends == nil {
		return nil
	}
	from := 0
	if n > 0 {
		from = c.ends[n-1]
	}
	return c.words[from:c.ends[n]]
}

// comparable lists the items that may be near another one, in order.
func (c *comparison) comparable() []uint32 {
	if c.rule.Words == 0 && !c.rule.ImageOnly {
		return nil
	}
	list := make([]uint32, 0, len(c.items))
	for i, it := range c.items {
		if !it.Hash.Flat || it.Content != "" {
			list = append(list, uint32(i))
		}
	}
	return list
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
		return c.textNear(a, b)
	}
	// Without text there is nothing but the picture to compare, and unrelated white screenshots differ in 8 bits of 64
	// or fewer in 7.6 % of pairs. Recompressed and resized copies stay within 4 of 64 and 12 of 256 bits, unrelated
	// screenshots differ in 16 of 256 or more almost always.
	return x.Wide != nil && y.Wide != nil && bits.OnesCount64(x.Hash.Bits^y.Hash.Bits) <= 4 &&
		x.Wide.Distance(*y.Wide) <= 16
}

// textNear reports whether two texts differ by fewer than rule.Words words, and the guard
// has nothing against it. An empty text differs from another by all of its words.
func (c *comparison) textNear(a, b uint32) bool {
	x, y := c.text(a), c.text(b)
	return max(len(x)-len(y), len(y)-len(x)) < c.rule.Words && wordDistance(x, y) < c.rule.Words &&
		(!c.rule.Guard || changedLessThanHalf(x, y))
}

// witness describes how item i is near the kept item of.
func (c *comparison) witness(i, of int) Decision {
	x, y := &c.items[i], &c.items[of]
	a, b := c.text(uint32(i)), c.text(uint32(of))
	d := Decision{
		Of:           of,
		HashDistance: bits.OnesCount64(x.Hash.Bits ^ y.Hash.Bits),
		WordDistance: wordDistance(a, b),
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
