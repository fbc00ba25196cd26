package layout

import (
	"fmt"
	"slices"
	"strings"
)

// methodVersion changes whenever the reading changes in a way that its constants do not show.
//
//	1: first version
//	2: words mended and accepted by dictionary and agreement; what is read is painted out
//	3: line by line; LAM is I AM; what is small is not accepted
//	4: the box of a word is that of its ink
//	5: more short words and strokes; words are cut where the ink has a space; colours; a choice
//	   among the words of all strips; gaps read again
const methodVersion = 5

// Parameters describes everything between pixels and text, for a dataset's provenance and the fingerprint of an engine:
// the rules and all constants of this package. line and page describe how the engine reads a strip and a whole page.
func (r Rules) Parameters(line, page string) string {
	all := parameters(line, page) + "; " + r.lexicon().parameters()
	if r.DecisionOnly {
		all += fmt.Sprintf("; enough at %d words of %d letters, %d%%, from %d",
			enoughWords, enoughLetters, enoughPct, enoughConfidence)
	}
	return all
}

// parameters describes the constants.
func parameters(line, page string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "method %d; lines @%d enlarge at most %d", methodVersion, lookLong, maxEnlarge)
	for _, l := range slices.Concat(looks[:], lastLooks[:]) {
		fmt.Fprintf(&b, "; %s ramp %d-%d even %d", l.plane, l.black, l.white, l.even)
	}
	fmt.Fprintf(&b, "; stretched from %d below %d but for 1/%d", stretchFrom, stretchBelow, stretchPart)
	fmt.Fprintf(&b, "; below %d letters evened by %d times %d", againBelow, evenReach, evenGain)
	fmt.Fprintf(&b, "; minimum from %d; ink below %d", minFrom, inkBelow)
	fmt.Fprintf(&b, "; letters %d 1/%d wide %d narrow %d ink %d%%",
		letterLow, letterHighPart, letterWide, letterNarrow, letterInkPct)
	fmt.Fprintf(&b, "; neighbours like %d%% gap -%d%% %d%% beside %d%%", likePct, gapBackPct, gapPct, besidePct)
	fmt.Fprintf(&b, "; line of %d high %d, below %d of %d", lineLetters, lineHigh, lowLine, lowLetters)
	fmt.Fprintf(&b, "; joined -%d%% %d%%, %d-%d%%", joinBackPct, joinGapPct, joinLowPct, joinHighPct)
	fmt.Fprintf(&b, "; under -%d%% %d%%, %d-%d%%, even %d %d",
		underBackPct, underGapPct, underLowPct, underHighPct, underEven2, underEven3)
	fmt.Fprintf(&b, "; slants %v from %d, %d in rows of %d even %d",
		slants, slantLeast, slantLetters, slantRow, slantEven)
	fmt.Fprintf(&b, "; strips %d, marks %d %d 1/%d 1/%d 1/%d, margins %d%% %d%% %d%%, %s",
		StripHeight, markInk, markWide, markAsidePart, markAbovePart, markBelowPart,
		marginAbovePct, marginBelowPct, marginAsidePct, line)
	fmt.Fprintf(&b, "; at most %d, by %d letters, %d of a place %d%% covered %d%%",
		stripsMost, promiseLetters, readingsMost, samePlacePct, coveredPct)
	fmt.Fprintf(&b, "; certain %d of %d letters %d%%; done %d listed %d%% letters %d %d%% %d%%",
		certainConfidence, certainLength, certainLettersPct, doneConfidence,
		doneListedPct, doneLetters, doneLettersPct, wellLettersPct)
	fmt.Fprintf(&b, "; noise below %d", noiseConfidence)
	fmt.Fprintf(&b, "; below %d letters of %d Y @%d %s", sparseBelow, sparseConfidence, PageSide, page)
	fmt.Fprintf(&b, "; merge overlap %d%% length^%v unlisted %d%%", mergeOverlapPct, mergeLengthPower, unlistedWeightPct)
	fmt.Fprintf(&b, "; agree overlap %d%%; words from %d", agreeOverlapPct, wordFloor)
	fmt.Fprintf(&b, "; columns %d%% rows %d%% %d", gutterPct, rowGapPct, columnLines)
	fmt.Fprintf(&b, "; line %d%%; small %d%%, alone %d%%, low %d%%", sameLinePct, smallPct, smallAlonePct, lowCountsPct)
	return b.String()
}
