package dedupe

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A Word is one word that OCR read, with its confidence, 0..100.
type Word struct {
	Text       string
	Confidence float64
}

// minConfidence is the confidence below which a word does not take part in the
// comparison. Of 50 recompressed memes with a white bar, 94 % stay within two words of
// their original at 80, 88 % when all words count.
const minConfidence = 80

// Tokens returns the words of a text as the word rule compares them: words below
// confidence 80 dropped, the rest in NFKC and case-folded, the typographic apostrophe
// made plain, cut into maximal runs of letters and digits. An apostrophe between two of
// those belongs to the run ("don't"). No tokens: nil. It never fails; bytes that are
// not UTF-8 separate tokens.
func Tokens(words []Word) []string {
	var tokens []string
	fold := cases.Fold()
	for _, w := range words {
		if w.Confidence >= minConfidence { // false for NaN too
			// Normalisation skips what follows a byte that is not UTF-8, so those go first.
			s := norm.NFKC.String(strings.ToValidUTF8(w.Text, "\ufffd"))
			// Folding can undo the normal form.
			tokens = appendTokens(tokens, norm.NFKC.String(fold.String(s)))
		}
	}
	return tokens
}

func appendTokens(tokens []string, s string) []string {
	runes := []rune(strings.ReplaceAll(s, "\u2019", "'"))
	start := -1 // of the current run, -1 outside
	for i, r := range runes {
		switch {
		case isTokenRune(r):
			if start < 0 {
				start = i
			}
		case r == '\'' && start >= 0 && i+1 < len(runes) && isTokenRune(runes[i+1]):
			// an inner apostrophe
		case start >= 0:
			tokens = append(tokens, string(runes[start:i]))
			start = -1
		}
	}
	if start >= 0 {
		tokens = append(tokens, string(runes[start:]))
	}
	return tokens
}

func isTokenRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// A lexicon numbers tokens in order of first appearance, so that texts compare by
// number.
type lexicon map[string]uint32

// number returns the numbers of a text.
func (l lexicon) number(tokens []string) []uint32 {
	ids := make([]uint32, len(tokens))
	for i, word := range tokens {
		id, met := l[word]
		if !met {
			id = uint32(len(l))
			l[word] = id
		}
		ids[i] = id
	}
	return ids
}

// signature returns the parity signature of a text: one bit for each residue of token
// numbers modulo 64, set when an odd number of tokens has it. Inserting or deleting a
// token flips one bit, replacing one flips at most two. Common words come early and so
// get low, mostly different numbers.
func signature(ids []uint32) uint64 {
	var s uint64
	for _, id := range ids {
		s ^= 1 << (id & 63)
	}
	return s
}

// signatureBound is the largest number of bits in which the signatures of two texts can
// differ that are at most limit edits apart and whose lengths differ by lengths. Of the
// edits, lengths or more are insertions or deletions, one bit each; the others are
// worth two bits at most.
func signatureBound(limit, lengths int) int { return 2*limit - lengths }

// wordDistance returns the token Levenshtein distance of a and b (insert, delete and
// replace cost 1 each), or limit+1 when it is greater than limit. limit must be >= 0.
func wordDistance(a, b []uint32, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	limit = min(limit, len(b)) // no distance is greater; keeps limit+1 from overflowing
	if len(b)-len(a) > limit {
		return limit + 1
	}
	if len(a) == 0 {
		return len(b)
	}
	return bandedDistance(a, b, limit)
}

// bandedDistance fills the edit table row by row, only where |i-j| <= limit: cells
// outside are above the limit. len(a) <= len(b) <= len(a)+limit.
func bandedDistance(a, b []uint32, limit int) int {
	var buf [48]int // texts up to 47 words need no allocation
	row := buf[:]
	if len(b) >= len(buf) {
		row = make([]int, len(b)+1)
	}
	far := limit + 1
	for j := range len(b) + 1 {
		row[j] = min(j, far)
	}
	for i := 1; i <= len(a); i++ {
		lo, hi := max(1, i-limit), min(len(b), i+limit)
		diagonal := row[lo-1]
		row[lo-1] = far
		if lo == 1 {
			row[0] = min(i, far)
		}
		for j := lo; j <= hi; j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1, far)
		}
	}
	return row[len(b)]
}

// changedLessThanHalf reports whether fewer than half of the words of the longer text are
// others in the shorter one, in whatever order, or both are empty.
func changedLessThanHalf(a, b []uint32) bool {
	return 2*bagDistance(a, b) < max(len(a), len(b), 1)
}

// bagDistance returns the number of words that have to be inserted, deleted or replaced
// when their order does not count: the larger of the two differences of the texts as
// bags. It is never greater than the word distance.
func bagDistance(a, b []uint32) int {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			common, i, j = common+1, i+1, j+1
		}
	}
	return max(len(a), len(b)) - common
}
