package dedupe

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"rehydrate/internal/word"
)

// Tokens returns the words of a text as the word rule compares them: words below confidence 80 dropped, the rest in
// NFKC and case-folded, the typographic apostrophe made plain, cut into maximal runs of letters and digits. An
// apostrophe between two of those belongs to the run ("don't"). No tokens: nil. Bytes that are not UTF-8 separate
// tokens.
func Tokens(words []word.Word) []string {
	var tokens []string
	fold := cases.Fold()
	for _, w := range words {
		// Of 50 recompressed memes with a white bar, 94 % stay within two words of their original at 80, 88 % when all
		// words count.
		if w.Confidence >= 80 { // false for NaN too
			// Normalisation skips what follows a byte that is not UTF-8, so those go first.
			s := norm.NFKC.String(strings.ToValidUTF8(w.Text, "\ufffd"))
			// Folding can undo the normal form.
			s = strings.ReplaceAll(norm.NFKC.String(fold.String(s)), "\u2019", "'")
			tokens = append(tokens, tokenForm.FindAllString(s, -1)...)
		}
	}
	return tokens
}

// tokenForm is a run of letters and digits, with the apostrophes inside it.
var tokenForm = regexp.MustCompile(`[\p{L}\p{Nd}]+(?:'[\p{L}\p{Nd}]+)*`)

// texts are the texts of all items, with their words as numbers, so that they compare quickly.
type texts struct {
	words      []uint32 // of all texts, one after the other
	ends       []int    // by item: where its words end
	signatures []uint64 // by item
	alone      uint32   // words below this one occur once
	shared     int      // so many do not
	limit      int      // texts are near when they differ in at most so many words
}

// newTexts numbers the words from the rarest up.
func newTexts(items []Item, limit int) *texts {
	all := 0
	for i := range items {
		all += len(items[i].Tokens)
	}
	t := &texts{words: make([]uint32, 0, all), ends: make([]int, len(items)), signatures: make([]uint64, len(items)),
		limit: limit}
	numbers := map[string]uint32{} // by first appearance
	var counts []uint64            // by that number: how many there are, and the number itself in the lower half
	for i := range items {
		for _, token := range items[i].Tokens {
			id, met := numbers[token]
			if !met {
				id = uint32(len(numbers))
				numbers[token] = id
				counts = append(counts, uint64(id))
			}
			counts[id] += 1 << 32
			t.words = append(t.words, id)
		}
		t.ends[i] = len(t.words)
	}
	slices.Sort(counts)
	rank := make([]uint32, len(counts))
	for i, c := range counts {
		rank[uint32(c)] = uint32(i)
		if c>>32 == 1 {
			t.alone++
		}
	}
	t.shared = len(counts) - int(t.alone)
	for i, id := range t.words {
		t.words[i] = rank[id]
	}
	for i := range items {
		t.signatures[i] = signature(t.of(uint32(i)))
	}
	return t
}

// of returns the text of item n.
func (t *texts) of(n uint32) []uint32 {
	if n == 0 {
		return t.words[:t.ends[0]]
	}
	return t.words[t.ends[n-1]:t.ends[n]]
}

// within reports whether two texts differ in at most limit words. An empty one differs from another by all of its
// words.
func (t *texts) within(a, b uint32) bool {
	x, y := t.of(a), t.of(b)
	return !t.far(a, b) && max(len(x)-len(y), len(y)-len(x)) <= t.limit && wordDistance(x, y) <= t.limit
}

// far reports, for most texts that differ in more than limit words, and for no others, that they do.
func (t *texts) far(a, b uint32) bool {
	// Inserting or deleting a word flips one bit of a signature, replacing one at most two.
	return bits.OnesCount64(t.signatures[a]^t.signatures[b]) > 2*t.limit
}

// upTo returns those of list that have at most limit words.
func (t *texts) upTo(limit int, list []uint32) []uint32 {
	count := 0
	for _, n := range list {
		if len(t.of(n)) <= limit {
			count++
		}
	}
	short := make([]uint32, 0, count)
	for _, n := range list {
		if len(t.of(n)) <= limit {
			short = append(short, n)
		}
	}
	return short
}

// rarest writes the limit+1 rarest words of text n into into, all words of a shorter text, and returns those that other
// texts may have.
func (t *texts) rarest(into []uint32, n uint32) []uint32 {
	// Two texts that differ in at most limit words, the longer one of which has more, have all words of either in
	// common but at most limit of them. So one of the limit+1 rarest of each is common, and the rarest common one is
	// among these in both: fewer than limit+1 words of either are rarer, because none of those is common. (In set
	// similarity joins this is the prefix filter.)
	into = append(into[:0], t.of(n)...)
	if k := t.limit + 1; k < len(into) {
		for i := range k {
			for j := i + 1; j < len(into); j++ {
				into[i], into[j] = min(into[i], into[j]), max(into[i], into[j])
			}
		}
		into = into[:k]
	}
	return slices.DeleteFunc(into, func(id uint32) bool { return id < t.alone })
}

// signature returns the parity signature of a text: one bit for each residue of token
// numbers modulo 64, set when an odd number of tokens has it.
func signature(ids []uint32) uint64 {
	// Inserting or deleting a token flips one bit, replacing one flips at most two. The commonest words have the
	// highest numbers, of which 64 in a row are different here.
	var s uint64
	for _, id := range ids {
		s ^= 1 << (id & 63)
	}
	return s
}

// wordDistance returns the token Levenshtein distance of a and b: insert, delete and
// replace cost 1 each.
func wordDistance(a, b []uint32) int {
	// What both begin and end with costs nothing: texts that are compared are often nearly the same.
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var buf [48]int // texts up to 47 words need no allocation
	row := buf[:0]
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// changedLessThanHalf reports, of two texts that differ in at most limit words, whether fewer than half of the words of
// the longer one are others in the shorter one, in whatever order, or both are empty.
func (t *texts) changedLessThanHalf(a, b uint32) bool {
	x, y := t.of(a), t.of(b)
	longer := max(len(x), len(y), 1) // of two empty texts nothing changed
	return longer > 2*t.limit || 2*bagDistance(x, y) < longer
}

// bagDistance returns the number of words that have to be inserted, deleted or replaced when their order does not
// count.
func bagDistance(a, b []uint32) int {
	left := map[uint32]int{} // of a
	for _, id := range a {
		left[id]++
	}
	common := 0
	for _, id := range b {
		if left[id] > 0 {
			left[id]--
			common++
		}
	}
	return max(len(a), len(b)) - common
}
