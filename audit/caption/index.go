package caption

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"
)

const (
	minWords     = 5   // of a caption that can be recognised
	maxWords     = 256 // of a caption that are looked for: the first ones
	fuzzyFrom    = 5   // letters of a word that may differ in one
	milli        = 1000
	triggerShare = .5 // of what is enough, that anchors carry
	passage      = 12 // words of a caption in order that are enough, however long it is
)

// A Kind says whether a caption can be recognised in texts.
type Kind string

// The kinds of captions.
const (
	Recognisable Kind = "recognisable"
	TooShort     Kind = "too_short"  // it has fewer than five words
	TooCommon    Kind = "too_common" // other texts may have its words by chance
	Shared       Kind = "shared"     // a post that was not removed has the same words
)

// A Builder collects captions for an Index. It is for one goroutine.
type Builder[K comparable] struct {
	words *Words
	x     *Index[K]
	live  []*caption[K]
	ids   map[string]uint32
}

// An Index recognises captions. Any number of goroutines may use one.
type Index[K comparable] struct {
	captions []*caption[K] // of removed posts
	vocab    []vocable     // what ids of words stand for; 0 for no word
	filter   []uint64      // bits of hashes of words that are in slots
	slots    []uint32      // ids by hash, with open addressing
	shift    uint          // of a hash, to a slot
	folds    *folds
	kept     int // words of a text that are kept: a power of two
}

// A caption is what one is recognised by.
type caption[K comparable] struct {
	owner   K
	kind    Kind
	words   []uint32  // in order
	parts   []part    // its different words, by id
	need    int       // words of it that a text must have
	trigger int32     // rarity of anchors near each other with which it is looked for
	ids     [4]uint64 // of its words, by what is left over 256
	enough  int32     // rarity that they must carry
	window  int       // words of a text that they must be within
	long    []long    // parts that are known with one letter changed
	rivals  []*caption[K]
}

// A long is a part of fuzzyFrom letters or more.
type long struct {
	letters string
	part    int
}

// A part is one of the different words of a caption, with the places where the caption has it.
type part struct {
	id     uint32
	weight int32 // its rarity in thousandths of a nat, in equal parts for each place
	at     []int16
}

// A vocable is a word that captions have.
type vocable struct {
	letters string
	hash    uint32
	runes   int
	anchors []anchor // captions of which it is an anchor
}

// An anchor is a word that a caption may be found by.
type anchor struct {
	caption uint32
	weight  int32
	bit     uint64 // that tells it from the others of the caption, but for those of very long ones
}

// New returns a Builder of an Index that weighs words by a table.
func New[K comparable](words *Words) *Builder[K] {
	x := &Index[K]{vocab: make([]vocable, 1), folds: newFolds()}
	return &Builder[K]{words: words, x: x, ids: map[string]uint32{}}
}

// Add adds the caption of a post, and whether the post was removed. Only those are looked for. The others say which
// texts are theirs: one that is closer to the caption of a post that stays is not taken for that of a removed one.
func (b *Builder[K]) Add(owner K, text string, removed bool) {
	c := &caption[K]{owner: owner}
	read := scanner{folds: b.x.folds, emit: func(w *word) {
		if len(c.words) < maxWords && w.n <= maxLetters {
			c.words = append(c.words, b.id(w))
		}
	}}
	read.write([]byte(text))
	read.flush()
	b.weigh(c)
	if removed {
		b.x.captions = append(b.x.captions, c)
	} else {
		b.live = append(b.live, c)
	}
}

// id returns the id of a word, and gives it one.
func (b *Builder[K]) id(w *word) uint32 {
	letters := string(w.text())
	id, known := b.ids[letters]
	if !known {
		id = uint32(len(b.x.vocab))
		b.ids[letters] = id
		b.x.vocab = append(b.x.vocab, vocable{letters: letters, hash: w.hash, runes: len([]rune(letters))})
	}
	return id
}

// weigh works out what a text must have of a caption, and of which kind the caption is.
func (b *Builder[K]) weigh(c *caption[K]) {
	n, total := len(c.words), int32(0)
	for at, id := range c.words {
		i, found := slices.BinarySearchFunc(c.parts, id, func(p part, id uint32) int { return cmp.Compare(p.id, id) })
		if !found {
			weight := int32(b.words.of(b.x.vocab[id].letters) * milli)
			c.parts = slices.Insert(c.parts, i, part{id: id, weight: weight})
			c.ids[id/64%4] |= 1 << (id % 64)
		}
		c.parts[i].at = append(c.parts[i].at, int16(at))
	}
	for i := range c.parts {
		p := &c.parts[i]
		total += p.weight
		if v := &b.x.vocab[p.id]; v.runes >= fuzzyFrom {
			c.long = append(c.long, long{v.letters, i})
		}
		p.weight /= int32(len(p.at)) // a word that is said three times is not three times as rare
	}
	c.need = min(max(minWords, int(math.Ceil(.6*float64(n)))), passage)
	c.window, c.enough = min(2*n, passage*20/6), int32(b.words.enough*milli)
	switch {
	case n < minWords:
		c.kind = TooShort
	case total < c.enough:
		c.kind = TooCommon
	default:
		c.kind = Recognisable
	}
}

// Build returns an Index of what was added. The Builder is of no use after that.
func (b *Builder[K]) Build() *Index[K] {
	x := b.x
	for _, letters := range slices.Sorted(maps.Keys(b.words.rarity)) {
		w := newWord(letters)
		b.id(&w)
	}
	for i, c := range x.captions {
		if c.kind == Recognisable {
			x.anchor(c, uint32(i))
			x.kept = max(x.kept, 2*c.window)
		}
	}
	if x.kept > 0 {
		x.kept = 1 << bits.Len(uint(x.kept-1))
	}
	x.hash()
	b.findRivals()
	return x
}

// anchor chooses the rarest words of a caption as its anchors, so many that a text which has what is needed of the
// caption has anchors that carry the caption's trigger. Only where it has them is the rest of the caption looked for.
func (x *Index[K]) anchor(c *caption[K], number uint32) {
	byRarity := slices.Clone(c.parts)
	slices.SortStableFunc(byRarity, func(p, q part) int { return -cmp.Compare(p.weight, q.weight) })
	rest := int32(0) // what the words carry that are no anchors
	for _, p := range c.parts {
		rest += p.weight * int32(len(p.at))
	}
	c.trigger = int32(triggerShare * float64(c.enough))
	for i, p := range byRarity {
		if rest+c.trigger <= c.enough {
			break
		}
		weight := p.weight * int32(len(p.at))
		rest -= weight
		v := &x.vocab[p.id]
		v.anchors = append(v.anchors, anchor{number, weight, 1 << (i % 64)})
	}
}

// hash makes the tables that find a word of a text. Those that begin no match need not be told apart by them, but
// are, since the rest of a match is made of them.
func (x *Index[K]) hash() {
	size := max(6, bits.Len(uint(2*len(x.vocab)-1)))
	x.shift = uint(32 - size)
	x.slots = make([]uint32, 1<<size)
	x.filter = make([]uint64, 1<<(size-3)) // eight bits a slot
	for id := 1; id < len(x.vocab); id++ {
		h := x.vocab[id].hash * spread
		x.filter[h>>(x.shift-3)>>6] |= 1 << (h >> (x.shift - 3) & 63)
		at := h >> x.shift
		for x.slots[at] != 0 {
			at = (at + 1) & uint32(len(x.slots)-1)
		}
		x.slots[at] = uint32(id)
	}
}

const spread = 2654435769 // 2^32 over the golden ratio: it moves what differs to the upper bits

// lookUp returns the id of a word of a text, or 0 if no caption has it.
func (x *Index[K]) lookUp(w *word) uint32 {
	h := w.hash * spread
	if bit := h >> (x.shift - 3); x.filter[bit>>6]&(1<<(bit&63)) == 0 {
		return 0
	}
	for at := h >> x.shift; x.slots[at] != 0; at = (at + 1) & uint32(len(x.slots)-1) {
		if v := &x.vocab[x.slots[at]]; v.hash == w.hash && v.letters == string(w.text()) {
			return x.slots[at]
		}
	}
	return 0
}

// findRivals finds, for each caption of a removed post, those of posts that stay in which it would be recognised.
func (b *Builder[K]) findRivals() {
	t := b.x.NewText()
	for _, c := range b.live {
		for _, id := range c.words {
			t.folded(b.x.vocab[id].letters)
		}
		for _, f := range t.end() {
			if slices.Equal(f.of.words, c.words) {
				f.of.kind = Shared
			}
			f.of.rivals = append(f.of.rivals, c)
		}
	}
}

// All yields the owner of each caption of a removed post, and whether the caption can be recognised, as they were
// added.
func (x *Index[K]) All() iter.Seq2[K, Kind] {
	return func(yield func(K, Kind) bool) {
		for _, c := range x.captions {
			if !yield(c.owner, c.kind) {
				return
			}
		}
	}
}

// Len returns how many captions of removed posts there are.
func (x *Index[K]) Len() int { return len(x.captions) }

// Count returns how many captions of removed posts are of a kind.
func (x *Index[K]) Count(k Kind) (n int) {
	for _, kind := range x.All() {
		if kind == k {
			n++
		}
	}
	return n
}
