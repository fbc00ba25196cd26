package ocr

import (
	"fmt"
	"image"
	"slices"
	"strings"
)

// A pass is one look at the image: which plane, how filtered, how large, what of it is
// left, and how Tesseract reads it.
type pass struct {
	plane      string // "Y" or "M"
	filter     string // "white", "dark" or ""
	from, to   int    // of the filter
	components bool   // component filter after it
	unread     bool   // lines that earlier passes have read for certain are painted out
	shapes     int    // the pass is left out where fewer letters in rows are left, once enough is read
	sparse     bool   // the pass is made only where the others read less than sparseBelow
	long       int    // pixels of the longer side
	mode       Mode
}

// The passes, made one after the other. P1 reads light text, and panels, which it turns into light text on black. P2
// reads dark text, and light text too dim for P1. P3 and P4 read white text on white, which only its outline tells
// apart, and text scattered over the picture. P5 runs only where the others read next to nothing.
//
// The engine takes about 25 ms for an image and 1 ms for each letter; painting out what is read halves P2 and P3, and
// reads better than whole images do.
var passes = [...]pass{
	{plane: "Y", filter: "white", from: 180, to: 250, long: 550, mode: Mode{PSM: 3, Invert: true}},
	{plane: "Y", filter: "dark", from: 20, to: 140, unread: true, shapes: 12, long: 700, mode: Mode{PSM: 3, Invert: true}},
	{plane: "M", filter: "white", from: 180, to: 250, components: true, unread: true, shapes: 4, long: 700, mode: Mode{PSM: 11}},
	{plane: "M", filter: "white", from: 200, to: 252, components: true, unread: true, shapes: 8, long: 1000, mode: Mode{PSM: 11}},
	{plane: "Y", long: 1000, sparse: true, mode: Mode{PSM: 11, Invert: true}},
}

// A pass may be left out for want of shapes after so many letters in listed words.
const shapesAfter = 24

// The sparse pass runs below this many letters of this confidence.
const (
	sparseBelow      = 12
	sparseConfidence = 60
)

// What the first pass has to read where only the decision is wanted: so many words of the
// dictionary, and this share of all. It is so on 80 % of 549 real memes, on 0.6 % of
// foreign ones and on no picture without text.
const (
	enoughWords      = 4
	enoughLetters    = 3
	enoughPct        = 70
	enoughConfidence = 60
)

// enough reports whether words show by themselves that there is text and it is English.
func enough(words []candidate) bool {
	all, listed, evident := 0, 0, 0
	for _, w := range words {
		n := letters(w.Text)
		if w.Confidence < enoughConfidence || n < 2 { // noise is mostly single letters
			continue
		}
		all++
		if w.listed {
			listed++
			if n >= enoughLetters {
				evident++
			}
		}
	}
	return evident >= enoughWords && 100*listed >= enoughPct*all
}

// methodVersion changes whenever the passes change in a way their constants do not
// show.
//
//	1: first version
//	2: words mended and accepted by dictionary and agreement; what is read is painted out
const methodVersion = 2

// render makes the image a pass reads.
func (p planes) render(s pass) *image.Gray {
	plane := p.luma
	if s.plane == "M" {
		plane = p.minimum
	}
	g := scale(plane, s.long)
	switch s.filter { // whichever it was, text is black on white then, as the engine learned it
	case "white":
		soften(g, s.to, s.from)
	case "dark":
		soften(g, s.from, s.to)
	}
	if s.components {
		filterComponents(g)
	}
	return g
}

// worthwhile reports whether the rest of an image, rendered for the pass, may hold text
// that the words read so far do not account for.
func (s pass) worthwhile(rest *image.Gray, read []candidate) bool {
	listed := slices.DeleteFunc(merge(read), func(c candidate) bool { return !c.listed })
	// With next to nothing read, the text may be shaped unlike letters, too.
	if sureLetters(listed) < shapesAfter {
		return true
	}
	shapes := lettersInRows(rest)
	// The other polarity only if the engine looks for it as well, and if it can still make a difference.
	if s.mode.Invert && shapes < s.shapes {
		shapes += lettersInRows(negative(rest))
	}
	return shapes >= s.shapes
}

func (s pass) String() string {
	var b strings.Builder
	if s.sparse {
		fmt.Fprintf(&b, "below %d letters of %d ", sparseBelow, sparseConfidence)
	}
	b.WriteString(s.plane)
	if s.filter != "" {
		fmt.Fprintf(&b, " soft %s %d-%d", s.filter, s.from, s.to)
	}
	if s.components {
		b.WriteString(" components")
	}
	if s.unread {
		fmt.Fprintf(&b, " unread from %d shapes", s.shapes)
	}
	fmt.Fprintf(&b, " @%d psm %d", s.long, s.mode.PSM)
	if s.mode.Invert {
		b.WriteString(" invert")
	}
	return b.String()
}

// parameters describes every constant between pixels and text, for the dataset's provenance and the fingerprint.
func parameters() string {
	// Another wording is another fingerprint: all images of all workspaces would be read again.
	var b strings.Builder
	fmt.Fprintf(&b, "method %d", methodVersion)
	for i, s := range passes {
		fmt.Fprintf(&b, "; P%d %v", i+1, s)
	}
	fmt.Fprintf(&b, "; minimum from %d; enlarge at most %d", minFrom, maxEnlarge)
	fmt.Fprintf(&b, "; components ink %d high %d%% wide %d%% speck %d/1000",
		componentDark, componentHighPct, componentWidePct, componentSpeckMill)
	fmt.Fprintf(&b, "; unread but lines from %d of %d, margin 1/%d", certainConfidence, certainLength, blankMargin)
	fmt.Fprintf(&b, "; shapes after %d letters, high %d narrow %d wide %d like %d%%", shapesAfter, shapeHigh, shapeNarrow, shapeWide, shapeLikePct)
	fmt.Fprintf(&b, "; merge floor %d overlap %d%% length^%v unlisted %d%%", mergeFloor, mergeOverlapPct, mergeLengthPower, unlistedWeightPct)
	fmt.Fprintf(&b, "; agree floor %d overlap %d%%", agreeFloor, agreeOverlapPct)
	fmt.Fprintf(&b, "; line %d%%", sameLinePct)
	return b.String()
}
