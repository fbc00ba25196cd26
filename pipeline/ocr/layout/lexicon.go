package layout

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"rehydrate/internal/word"
)

// A lexicon is what is known of the language that images are read in. It mends the
// words of a look and decides which of the merged words are certain enough for
// Reading.Text. Without a dictionary it mends nothing and goes by confidence alone.
type lexicon struct {
	knows func(word string) bool // nil without a dictionary
	id    string                 // digest of the dictionary
}

// shortWords are the only words of one and two letters that count: nearly all pairs of
// letters are in a dictionary. A run of letters is cut only if a piece is in functionWords.
var (
	shortWords    = strings.Fields("A AM AN AS AT BE BY DO GO HE HI I IF IM IN IS IT ME MR MY NO OF OH OK ON OR SO TO TV UP US WE")
	functionWords = slices.Sorted(slices.Values(append(strings.Fields(`ABOUT ALL AND ANY ARE BECAUSE BUT CAN CANT COULD DID
		DONT FOR FROM GET GOT HAD HAS HAVE HER HIM HIS HOW INTO ITS JUST LIKE NOT NOW OFF ONE OUR OUT SHE
		THAT THE THEIR THEM THEN THERE THESE THEY THIS THOSE TOO WANT WAS WERE WHAT WHEN WHERE WHICH WHO WHY
		WILL WITH WOULD YOU YOUR`), shortWords...)))
)

// listed reports whether a word is one of the language for certain enough to count as
// evidence: a short word, or one of three and more letters in the dictionary.
func (l lexicon) listed(word string) bool {
	if l.knows == nil {
		return false
	}
	if bare := bare(word); len(bare) <= 2 {
		return slices.Contains(shortWords, bare)
	}
	return l.knows(word)
}

// bare is a word in upper case, without the marks around it and without apostrophes.
func bare(word string) string {
	word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if isApostrophe(r) {
			return -1
		}
		return r
	}, word))
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'\u2018\u2019`", r) }

// mend repairs the slips of the engine that can be repaired for certain: an I read as a stroke,
// I AM read as LAM where letters touch, and words read as one where the ink has a space.
// ink has the spaces of each word; without any of them, letters alone decide. It returns the
// pieces of each word, mostly one.
func (l lexicon) mend(words []word.Raw, ink []spaces) [][]word.Raw {
	out := make([][]word.Raw, len(words))
	for i, w := range words {
		out[i] = []word.Raw{w}
		if l.knows == nil {
			continue
		}
		if isStroke(w) && i+1 < len(words) && l.isPronoun(w, words[i+1]) {
			w.Text = "I"
		}
		var between spaces
		if ink != nil {
			between = ink[i]
		}
		pieces := l.split(w.Text, between)
		if bare(w.Text) == "LAM" && (i == 0 || bare(words[i-1].Text) != "THE") {
			at := strings.IndexAny(w.Text, "Ll")
			pieces = []string{w.Text[:at] + "I", w.Text[at+1:]}
		}
		out[i] = apart(w, pieces)
	}
	return out
}

// What an I without serifs is read as. A stroke that the engine is sure of is none.
var strokes = strings.Fields("| 1 l ! [ ] / [I |I { } 1. \u2018I")

const (
	strokeBelow      = 85 // confidence of a stroke other than |
	strokeConfidence = 70 // of the word after a stroke that is an I, at least
)

// isStroke reports whether a word looks like an upright stroke, and may be an I.
func isStroke(w word.Raw) bool {
	return w.Text == "|" || w.Confidence < strokeBelow && slices.Contains(strokes, w.Text)
}

// isPronoun reports whether a stroke stands for I: a word of the language follows it on
// its line and is about as high. Frames and rules have no such neighbour.
func (l lexicon) isPronoun(stroke, next word.Raw) bool {
	high, other := stroke.Box.Dy(), next.Box.Dy()
	return next.Block == stroke.Block && next.Par == stroke.Par && next.Line == stroke.Line &&
		next.Confidence >= strokeConfidence && letters(next.Text) >= 2 && l.knows(next.Text) &&
		10*high >= 7*other && 10*high <= 14*other
}

// apart takes a word to pieces, if it has any, its box by their lengths.
func apart(w word.Raw, pieces []string) []word.Raw {
	if pieces == nil {
		return []word.Raw{w}
	}
	var out []word.Raw
	left, done := w.Box.Min.X, 0
	for _, p := range pieces {
		done += len(p)
		part := w
		part.Text = p
		part.Box.Min.X, part.Box.Max.X = left, w.Box.Min.X+w.Box.Dx()*done/len(w.Text)
		left = part.Box.Max.X
		out = append(out, part)
	}
	return out
}

const (
	splitFrom  = 4 // letters of a word that split tries
	splitTo    = 48
	splitPiece = 4 // letters of a piece other than a function word
	splitSure  = 3 // the same between wide spaces
	splitMost  = 5 // pieces
)

// split cuts a word that the dictionary lacks into words that it has: ITHAS, TODIEFROM.
// At least one piece is a function word, one of a single letter stands at an end only,
// and the others have splitPiece letters, since any run of letters is a row of short
// words; between wide spaces in the ink splitSure are enough, and a single letter may stand
// anywhere. It returns nil without such a cut. It adds only spaces: the pieces make up the word.
//
// A cut needs a wide space in the ink; see spaces.allowCut.
func (l lexicon) split(word string, ink spaces) []string {
	var upper []byte
	var at []int // where the letter stands in word
	for i, r := range word {
		u := unicode.ToUpper(r)
		switch {
		case u >= 'A' && u <= 'Z':
			upper, at = append(upper, byte(u)), append(at, i)
		case isApostrophe(r) || strings.ContainsRune(".,!?:;\"\u201c\u201d", r):
		default:
			return nil
		}
	}
	if len(upper) < splitFrom || len(upper) > splitTo || l.knows(word) {
		return nil
	}
	spaced, wide := make([]bool, len(at)), make([]bool, len(at))
	for i, offset := range at {
		spaced[i], wide[i] = ink.allowCut(offset, len(word)), ink.wide(offset, len(word), cutSurePct)
	}
	cuts := l.cuts(string(upper), spaced, wide)
	if len(cuts) < 2 || len(cuts) > splitMost {
		return nil
	}
	at[0] = 0 // a mark before the word stays with its first piece
	var pieces []string
	for i, cut := range cuts {
		end := len(word)
		if i+1 < len(cuts) {
			end = at[cuts[i+1]]
		}
		pieces = append(pieces, word[at[cut]:end])
	}
	return pieces
}

// The costs of pieces: the fewest pieces win, function words over others, and a single
// letter is the last resort.
const (
	costFunction = 10
	costOther    = 12
	costSingle   = 25
)

// cuts returns where the pieces of the cheapest cut begin, nil if there is none or none
// of its pieces is a function word. spaced says of each letter whether one may begin there, and
// wide whether one does for sure.
func (l lexicon) cuts(s string, spaced, wide []bool) []int {
	type step struct {
		cost, from int
		function   bool
	}
	best := make([]step, len(s)+1)
	for i := 1; i <= len(s); i++ {
		for j := range i {
			if j > 0 && (best[j].cost == 0 || !spaced[j]) {
				continue // not to be reached, or letters of one word
			}
			sure := (j == 0 || wide[j]) && (i == len(s) || wide[i])
			cost, function := l.pieceCost(s[j:i], j == 0 || i == len(s) || sure, sure)
			if cost > 0 && (best[i].cost == 0 || best[j].cost+cost < best[i].cost) {
				best[i] = step{best[j].cost + cost, j, best[j].function || function}
			}
		}
	}
	if !best[len(s)].function {
		return nil
	}
	var starts []int
	for i := len(s); i > 0; i = best[i].from {
		starts = append(starts, best[i].from)
	}
	slices.Reverse(starts)
	return starts
}

// pieceCost returns 0 for a text that cannot be a piece. sure says that the ink shows it as one.
func (l lexicon) pieceCost(piece string, atEnd, sure bool) (cost int, function bool) {
	_, function = slices.BinarySearch(functionWords, piece)
	switch {
	case function && len(piece) > 1:
		return costFunction, true
	case function && atEnd:
		return costSingle, true
	case (len(piece) >= splitPiece || sure && len(piece) >= splitSure) && l.knows(piece):
		return costOther, false
	}
	return 0, false
}

// A bar is the confidence from which a word is accepted: with a sure word on its line (beside), or without one, and
// either if another look read the same at the same place (agreed).
type bar struct {
	what                   string
	beside, besideAgreed   float64
	without, withoutAgreed float64
}

// The bars, set on 138 real memes for the most macro recall at a precision of .963. At any confidence, nearly all words
// of the dictionary are right that have a sure word on their line, or that two looks agree on. Noise is mostly alone.
var (
	barListed = bar{"listed", 0, 0, 60, 0}           // of three letters and more in the dictionary
	barShort  = bar{"short", 50, 40, 70, 40}         // one of shortWords with two letters
	barIA     = bar{"I and A", 60, 40, 80, 60}       //
	barDigit  = bar{"with digits", 80, 80, 90, 85}   //
	barOther  = bar{"other", 85, 75, 90, 80}         // names, slang, noise
	barSingle = bar{"single letter", 95, 95, 98, 98} //
	bars      = []bar{barListed, barShort, barIA, barDigit, barOther, barSingle}
)

const (
	sureConfidence = 60 // of a listed word that others of its line stand beside
	sureLength     = 2  // letters of it
)

// sure reports whether a word speaks for the others of its line.
func (c candidate) sure() bool {
	return c.listed && c.Confidence >= sureConfidence && letters(c.Text) >= sureLength
}

// acceptUnlisted is the confidence of an accepted word where there is no dictionary.
const acceptUnlisted = 60

// accepts reports whether a merged word is certain enough for Reading.Text; beside says
// that another word of its line is sure.
func (l lexicon) accepts(c candidate, beside bool) bool {
	if l.knows == nil {
		return c.Confidence >= acceptUnlisted
	}
	b := l.bar(c.Text)
	bar, agreed := b.without, b.withoutAgreed
	if beside {
		bar, agreed = b.beside, b.besideAgreed
	}
	return c.Confidence >= bar || c.agreed && c.Confidence >= agreed
}

func (l lexicon) bar(word string) bar {
	bare := bare(word)
	switch {
	case strings.ContainsFunc(bare, unicode.IsDigit):
		return barDigit
	case bare == "I" || bare == "A":
		return barIA
	case letters(bare) < 2:
		return barSingle
	case !l.listed(word):
		return barOther
	case len(bare) == 2:
		return barShort
	}
	return barListed
}

func (l lexicon) parameters() string {
	if l.knows == nil {
		return fmt.Sprintf("accept %d", acceptUnlisted)
	}
	var b strings.Builder
	lists := sha256.Sum256([]byte(strings.Join(shortWords, " ") + "\n" + strings.Join(functionWords, " ")))
	fmt.Fprintf(&b, "dictionary %s; short and function words %x", l.id, lists[:8])
	fmt.Fprintf(&b, "; strokes %v below %d before %d", strokes, strokeBelow, strokeConfidence)
	fmt.Fprintf(&b, "; split %d-%d into %d of %d at cost %d %d %d", splitFrom, splitTo, splitMost, splitPiece,
		costFunction, costOther, costSingle)
	fmt.Fprintf(&b, "; cut within %d/10 letters of a space of %d%%, into %d from %d%%", cutNearTenths, cutWidePct,
		splitSure, cutSurePct)
	fmt.Fprintf(&b, "; sure from %d of %d", sureConfidence, sureLength)
	for _, bar := range bars {
		fmt.Fprintf(&b, "; accept %s %v, agreed %v, without a sure word %v, agreed %v",
			bar.what, bar.beside, bar.besideAgreed, bar.without, bar.withoutAgreed)
	}
	b.WriteString(choiceParameters() + gapParameters())
	return b.String()
}
