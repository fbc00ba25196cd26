package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"rehydrate/internal/word"
)

// A choice is a word of any strip that is put among the merged ones.
//
// The merge takes whole lines, and the words of the others are lost with them. Where no accepted word is, a listed word
// of another strip is put in if it is certain enough by itself (adds). Where a word stands that the dictionary lacks, a
// listed one of as many letters takes its place if it is worth more (replaces). On 338 memes the first gives 17 words
// for 4 wrong ones, the second gives 5 and takes back 5 wrong ones. A word that the dictionary lacks is put in if two
// looks read it alike: 11 words for 1 wrong one. No strip is read for it.
type choice struct {
	candidate
	gain int // what it is worth, less what was there
}

// choose puts words into merged that the merge of whole lines has lost. heard are the words of all strips, noise too.
func (l lexicon) choose(merged, heard []candidate) []candidate {
	verdicts := judge(merged, l)
	median := medianHeight(verdicts)
	heard = slices.Clone(heard)
	markAgreed(heard, heard)
	var found []choice
	for _, c := range heard {
		old, accepted := under(c, verdicts)
		switch {
		case !c.listed && !accepted && c.fits(median) && c.alike(heard):
			c.repair = word.Filled
			found = append(found, choice{c, c.worth()})
		case !c.listed:
		case accepted && c.replaces(old):
			c.repair = word.Mended
			found = append(found, choice{c, c.worth() - worth(old)})
		case !accepted && c.fits(median) && c.adds(verdicts):
			c.repair = word.Filled
			found = append(found, choice{c, c.worth()})
		}
	}
	for i, c := range found {
		found[i].readings = readingsAt(c.candidate, heard)
	}
	return put(merged, found)
}

// put puts words among the merged ones, the best first, and takes away those whose place they claim.
func put(merged []candidate, found []choice) []candidate {
	slices.SortFunc(found, func(a, b choice) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), compareAcross(a.candidate, b.candidate))
	})
	var added []candidate
	for _, c := range found {
		if !slices.ContainsFunc(added, c.claims) {
			c.fills = true
			added = append(added, c.candidate)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(merged),
		func(c candidate) bool { return slices.ContainsFunc(added, c.claims) })
	return append(kept, added...)
}

// claims reports whether two words are at one place.
func (c candidate) claims(other candidate) bool { return samePlace(c.Box, other.Box, mergeOverlapPct) }

// under lists the merged words at the place of another, and reports whether one of them is accepted.
func under(c candidate, merged []verdict) (words []candidate, accepted bool) {
	for _, v := range merged {
		if v.claims(c) {
			words, accepted = append(words, v.candidate), accepted || v.accepted
		}
	}
	return words, accepted
}

// readingsAt lists what the engine read at the place of a word, each text once.
func readingsAt(c candidate, heard []candidate) []string {
	var out []string
	for _, h := range heard {
		read := h.readings
		if h.repair == "" {
			read = []string{h.Text}
		}
		for _, text := range read {
			if samePlace(c.Box, h.Box, agreeOverlapPct) && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// What a listed word has to be to be put where no accepted one is.
const (
	addLowPct, addHighPct = 60, 250 // of the median height of what is accepted

	longLetters    = 6  // letters of a long word
	addAgreedLong  = 10 // confidence of a long word that two looks agree on
	addAgreed      = 50 // of one of three letters
	addAlone       = 58 // of one of four letters that one look alone has read
	addShort       = 80 // of a shorter one
	addNext        = 20 // of one next to an accepted word of three letters
	addNextHighPct = 75 // the height of the lower of the two, of the other's
)

// fits reports whether a word is about as high as the median of what is accepted. Without any, two looks must agree.
func (c candidate) fits(median int) bool {
	return median == 0 && c.agreed || within(c.Box.Dy(), addLowPct, addHighPct, median)
}

// adds reports whether a listed word is certain enough to be put where no accepted one is.
func (c candidate) adds(merged []verdict) bool {
	n := letters(c.Text)
	switch {
	case n < 2:
		return false
	case c.agreed && (n >= 3 && c.Confidence >= addAgreed || n >= longLetters && c.Confidence >= addAgreedLong):
		return true
	case c.Confidence >= addShort || n >= 4 && c.Confidence >= addAlone:
		return true
	}
	return c.Confidence >= addNext && slices.ContainsFunc(merged, func(v verdict) bool {
		low, high := min(c.Box.Dy(), v.Box.Dy()), max(c.Box.Dy(), v.Box.Dy())
		gap := max(c.Box.Min.X-v.Box.Max.X, v.Box.Min.X-c.Box.Max.X)
		return v.accepted && v.listed && letters(v.Text) >= 3 && inRow(c.Box, v.Box) && gap <= v.Box.Dy() &&
			within(low, addNextHighPct, 100, high)
	})
}

const replaceWorthPct = 120 // of what it takes the place of

// replaces reports whether a listed word is a better reading than the words of its place. A listed word of three
// letters stays, unless it is a part of the new one.
func (c candidate) replaces(old []candidate) bool {
	n, unlisted := 0, false
	for _, o := range old {
		if o.listed && letters(o.Text) >= 3 && !strings.Contains(bare(c.Text), bare(o.Text)) {
			return false
		}
		n, unlisted = n+letters(o.Text), unlisted || !o.listed
	}
	return unlisted && letters(c.Text) >= max(3, n) && 100*c.worth() >= replaceWorthPct*worth(old)
}

// worth is how much a word is worth among others of its place: its letters times their worth, of 100. A word of the
// language is worth most of that whatever its confidence.
func (c candidate) worth() int {
	n, confidence := letters(c.Text), int(c.Confidence)
	switch {
	case c.listed && n >= 3 && c.agreed:
		return 100 * n
	case c.listed && n >= 3:
		return n * (worthListed + (100-worthListed)*confidence/100)
	case c.listed || c.agreed:
		return n * worthShort * confidence / 100
	}
	return n * worthOther * confidence / 100
}

// What a letter of a word is worth.
const (
	worthListed = 65 // at a confidence of 0, in a listed word of three letters
	worthShort  = 80 // at one of 100, in a shorter one, or in another that two looks agree on
	worthOther  = 60 // at one of 100
)

func worth(words []candidate) int {
	n := 0
	for _, c := range words {
		n += c.worth()
	}
	return n
}

// What a word that the dictionary lacks has to be to be put where no accepted one is.
const (
	alikeFrom    = 40 // confidence
	alikeLetters = 6  // of a name, or of several words read as one
	alikeDigits  = 4  // of a number: a year
)

// alike reports whether two looks have read the same long word, or number, that the dictionary lacks.
func (c candidate) alike(heard []candidate) bool {
	if !c.agreed || c.Confidence < alikeFrom {
		return false
	}
	text := bare(c.Text)
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return len(text) == alikeDigits
	}
	// The first two looks see nearly the same in most pictures, and make the same mistakes.
	return letters(text) >= alikeLetters && !strings.ContainsFunc(text, unicode.IsDigit) &&
		slices.ContainsFunc(heard, func(o candidate) bool { return c.agrees(o) && max(o.look, c.look) > 1 })
}

// choiceParameters describes the constants of the choice.
func choiceParameters() string {
	return fmt.Sprintf("; added %d-%d%% high, agreed %d or %d of %d letters, alone %d or %d, next %d of %d%%; "+
		"unlisted %d of %d or %d; replaced from %d%%, worth %d %d %d",
		addLowPct, addHighPct, addAgreed, addAgreedLong, longLetters, addAlone, addShort,
		addNext, addNextHighPct, alikeFrom, alikeLetters, alikeDigits, replaceWorthPct, worthListed, worthShort,
		worthOther)
}
