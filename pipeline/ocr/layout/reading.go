package layout

import (
	"cmp"
	"image"
	"math"
	"slices"
	"strings"
	"unicode"

	"rehydrate/internal/printable"
	"rehydrate/internal/word"
)

const (
	wordFloor         = 50  // words below it are dropped where they are not accepted
	agreeOverlapPct   = 50  // of the smaller box: two looks read the same place
	unlistedWeightPct = 80  // what the confidence of a word that is not in the dictionary counts
	mergeOverlapPct   = 30  // of the smaller box: two words that claim the same place
	mergeLengthPower  = 0.3 // how much a long line counts against a confident one
	sameLinePct       = 45  // of the larger height: two words on one line of text
)

// A Reading is what was read of one image.
type Reading struct {
	// Text holds the accepted words in reading order, lines separated by \n. "" where
	// nothing was read.
	Text string
	// Confidence is the mean of the words in Text, 0 if there is none.
	Confidence float64
	// Words are all words of all looks after their merge, in reading order: the accepted
	// ones, and others down to a confidence of 50. Later stages choose among them.
	Words []word.Word
}

// A candidate is a word of one look, its box in pixels of the original image.
type candidate struct {
	word.Raw
	look   int
	listed bool // in the lexicon
	agreed bool // another look read the same at the same place
	fills  bool // it was put among the merged words: it is accepted unless it is small

	repair   word.Repair
	readings []string // of the engine, if it is repaired
}

// collect turns the words of a look into candidates of the original's size, and mends them. It drops those without any
// letter or digit.
func collect(words []word.Raw, ink []spaces, look int, scaled, original image.Point, l lexicon) []candidate {
	words = slices.Clone(words)
	for i := range words {
		// It goes to terminals, cells and logs, and a picture can say anything.
		words[i].Text = strings.Join(strings.Fields(printable.Text(strings.ToValidUTF8(words[i].Text, ""))), "")
	}
	var out []candidate
	for i, pieces := range l.mend(words, ink) {
		for _, w := range pieces {
			if letters(w.Text) == 0 {
				continue
			}
			w.Box = inside(rescaleBox(w.Box, scaled, original), image.Rectangle{Max: original})
			c := candidate{Raw: w, look: look, listed: l.listed(w.Text)}
			if w.Text != words[i].Text {
				c.repair, c.readings = word.Mended, []string{words[i].Text}
			}
			out = append(out, c)
		}
	}
	return out
}

// inside moves a box into bounds: that of a slanted line, laid level, can reach over the edge.
func inside(box, bounds image.Rectangle) image.Rectangle {
	low, high := box.Min.Sub(bounds.Min), box.Max.Sub(bounds.Max)
	return box.Sub(image.Pt(max(high.X, 0)+min(low.X, 0), max(high.Y, 0)+min(low.Y, 0))).Intersect(bounds)
}

func rescaleBox(r image.Rectangle, from, to image.Point) image.Rectangle {
	return image.Rectangle{
		Min: image.Pt(rescale(r.Min.X, from.X, to.X), rescale(r.Min.Y, from.Y, to.Y)),
		Max: image.Pt(rescale(r.Max.X, from.X, to.X), rescale(r.Max.Y, from.Y, to.Y)),
	}
}

func rescale(v, from, to int) int { return (2*v*to + from) / (2 * from) }

// letters counts the letters and digits of s.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// sureLetters counts the letters and digits of the words of confidence sparseConfidence
// and more.
func sureLetters(words []candidate) int {
	n := 0
	for _, w := range words {
		if w.Confidence >= sparseConfidence {
			n += letters(w.Text)
		}
	}
	return n
}

type line struct {
	key   [4]int // look, block, paragraph and line of the engine's layout
	words []candidate
	score int64
}

// merge keeps one reading of each place, and marks the words that two looks agree on.
func merge(candidates []candidate) []candidate {
	var kept, taken []candidate
	// Lines of all looks are taken by falling score; a word is kept unless it overlaps a word of a line taken before
	// it, kept or not. Words of one line never block each other: the engine has told them apart.
	for _, l := range linesByScore(candidates) {
		before := len(taken)
		for _, w := range l.words {
			covers := func(t candidate) bool { return samePlace(w.Box, t.Box, mergeOverlapPct) }
			if !slices.ContainsFunc(taken[:before], covers) {
				kept = append(kept, w)
			}
			taken = append(taken, w)
		}
	}
	// Among all candidates: a word that was not kept still agrees.
	markAgreed(kept, candidates)
	return kept
}

// markAgreed marks the words that two looks agree on.
func markAgreed(words, among []candidate) {
	for i := range words {
		words[i].agreed = slices.ContainsFunc(among, words[i].agrees)
	}
}

// agrees reports whether another look read the same word at the same place.
func (c candidate) agrees(other candidate) bool {
	return other.look != c.look && samePlace(c.Box, other.Box, agreeOverlapPct) && bare(c.Text) == bare(other.Text)
}

func linesByScore(candidates []candidate) []line {
	var lines []line
	index := map[[4]int]int{}
	for _, c := range candidates {
		key := [4]int{c.look, c.Block, c.Par, c.Line}
		i, seen := index[key]
		if !seen {
			i = len(lines)
			index[key] = i
			lines = append(lines, line{key: key})
		}
		lines[i].words = append(lines[i].words, c)
	}
	for i := range lines {
		lines[i].score = score(lines[i].words)
	}
	slices.SortFunc(lines, func(a, b line) int {
		// Equal scores must not depend on the order in which words came.
		return cmp.Or(cmp.Compare(b.score, a.score), slices.Compare(a.key[:], b.key[:]))
	})
	return lines
}

// score is c * n^0.3 in millionths, where c is the length-weighted mean confidence, that of words not in the lexicon
// counting less, and n the length in bytes.
func score(words []candidate) int64 {
	var weighted, length float64
	for _, w := range words {
		n := float64(len(w.Text))
		confidence := w.Confidence
		if !w.listed {
			confidence = confidence * unlistedWeightPct / 100
		}
		weighted += float64(confidence * n) // the conversion forbids to fuse it with the sum
		length += n
	}
	// Whole, because CPUs that fuse multiply and add differ in the last bit of a float, and must not differ in the
	// order of lines.
	return int64(math.Round(1e6 * weighted / length * math.Pow(length, mergeLengthPower)))
}

func samePlace(a, b image.Rectangle, pct int) bool {
	shared := area(a.Intersect(b))
	return shared > 0 && 100*shared >= pct*min(area(a), area(b))
}

func area(r image.Rectangle) int { return r.Dx() * r.Dy() }

// order puts words into reading order: lines from top to bottom, and from left to right in each; columns one by one.
func order(words []candidate) [][]candidate {
	lines := inLines(words)
	for top := range lines {
		end := top + 1
		for end < len(lines) && near(lines[end-1], lines[end]) {
			end++
		}
		for ; end > top+1; end-- {
			if left, right := divide(slices.Concat(lines[top:end]...)); left != nil {
				return slices.Concat(lines[:top], order(left), order(right), order(slices.Concat(lines[end:]...)))
			}
		}
	}
	return lines
}

// Columns are next to each other with nothing between them.
const (
	gutterPct   = 110 // of the median height of their words: the space between two at least
	rowGapPct   = 200 // of the height of a word: the space between two rows of one column at most
	columnLines = 2   // of each at the height of the other at least
)

// near reports whether two rows can belong to one text: panels below each other are read one by one.
func near(upper, lower []candidate) bool {
	a, b := upper[0].Box, lower[0].Box
	return 100*(b.Min.Y-a.Max.Y) <= rowGapPct*max(a.Dy(), b.Dy())
}

// divide parts words into what is left and right of a gutter, and returns nil where there is none.
func divide(words []candidate) (left, right []candidate) {
	slices.SortFunc(words, compareAcross)
	heights := make([]int, len(words))
	for i, w := range words {
		heights[i] = w.Box.Dy()
	}
	slices.Sort(heights)
	reach := words[0].Box.Max.X
	for i, w := range words {
		left, right := words[:i], words[i:]
		if 100*(w.Box.Min.X-reach) >= gutterPct*heights[len(heights)/2] && beside(left, right) && beside(right, left) {
			return left, right
		}
		reach = max(reach, w.Box.Max.X)
	}
	return nil, nil
}

// beside reports whether enough rows of a column are at the height of the other.
func beside(column, other []candidate) bool {
	top, bottom := other[0].Box.Min.Y, other[0].Box.Max.Y
	for _, w := range other {
		top, bottom = min(top, w.Box.Min.Y), max(bottom, w.Box.Max.Y)
	}
	n := 0
	for _, r := range inLines(column) {
		if b := r[0].Box; b.Max.Y > top && b.Min.Y < bottom {
			n++
		}
	}
	return n >= columnLines
}

// inLines sorts words into lines across all columns.
func inLines(words []candidate) [][]candidate {
	words = slices.Clone(words)
	slices.SortFunc(words, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(middle(a.Box), middle(b.Box)), compareAcross(a, b))
	})
	var lines [][]candidate
	for _, w := range words {
		// The first word decides: a line that followed its last one would climb from line to line in slanted text.
		i := slices.IndexFunc(lines, func(l []candidate) bool { return level(l[0].Box, w.Box) })
		if i < 0 {
			lines = append(lines, []candidate{w})
			continue
		}
		lines[i] = append(lines[i], w)
	}
	for _, l := range lines {
		slices.SortStableFunc(l, compareAcross)
	}
	return lines
}

// middle is twice the vertical centre, which keeps it whole.
func middle(r image.Rectangle) int { return r.Min.Y + r.Max.Y }

func level(a, b image.Rectangle) bool {
	distance := middle(a) - middle(b)
	return 100*max(distance, -distance) <= 2*sameLinePct*max(a.Dy(), b.Dy())
}

// compareAcross orders by left edge; the rest only makes the order total.
func compareAcross(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.Box.Min.X, b.Box.Min.X), cmp.Compare(a.Box.Min.Y, b.Box.Min.Y),
		cmp.Compare(a.look, b.look), cmp.Compare(a.Text, b.Text))
}

// Reading puts the words in reading order and accepts those that are certain enough.
func (w Words) Reading() Reading {
	return newReading(w.merged, w.page.image.Bounds().Min, w.page.rules.lexicon())
}

// newReading makes the reading of merged words; origin is the corner of the image's
// bounds.
func newReading(words []candidate, origin image.Point, l lexicon) Reading {
	var r Reading
	for _, v := range judge(words, l) {
		if box := v.Box.Add(origin); v.accepted || v.Confidence >= wordFloor {
			r.Words = append(r.Words, word.Word{Text: v.Text, Confidence: v.Confidence, X: box.Min.X, Y: box.Min.Y,
				W: box.Dx(), H: box.Dy(), Line: v.line, Accepted: v.accepted, Repair: v.repair, Readings: v.readings})
		}
	}
	r.Text, r.Confidence = word.Join(r.Words)
	return r
}

// A verdict is what becomes of a merged word.
type verdict struct {
	candidate
	line     int  // of the reading order
	beside   bool // another word of the line is sure
	accepted bool
}

// judge decides which merged words are certain enough, and lists all in reading order.
func judge(words []candidate, l lexicon) []verdict {
	var out []verdict
	for number, line := range order(words) {
		sure := 0
		for _, c := range line {
			if c.sure() {
				sure++
			}
		}
		for _, c := range line {
			beside := sure > 1 || sure == 1 && !c.sure()
			out = append(out, verdict{c, number, beside, c.fills || l.accepts(c, beside)})
		}
	}
	dropSmall(out)
	return out
}

// What is much lower than the text of a picture is mostly a watermark, or noise.
const (
	smallPct      = 55 // of the median height of what is accepted
	smallAlonePct = 75 // without a sure word on its line
)

// dropSmall takes back the acceptance of words much lower than the others.
func dropSmall(words []verdict) {
	median := medianHeight(words)
	for i, v := range words {
		least, high := smallAlonePct, v.Box.Dy()
		if v.beside {
			least = smallPct
			if isLow(v.Text) {
				high = max(high, min(lowCountsPct*high/100, lineHeight(words, v.line)))
			}
		}
		words[i].accepted = v.accepted && 100*high >= least*median
	}
}

// lowCountsPct is how high a word without ascenders counts, of its height, but not higher than its line: "so" is as
// large as the "majestic" next to it.
const lowCountsPct = 140

// isLow reports whether no letter of a word is as high as a capital.
func isLow(text string) bool { return strings.Trim(text, "acemnorsuvwxz") == "" }

// lineHeight is the height of the highest word of a line.
func lineHeight(words []verdict, line int) int {
	high := 0
	for _, v := range words {
		if v.line == line {
			high = max(high, v.Box.Dy())
		}
	}
	return high
}

// medianHeight is that of the accepted letters but for words that were put in, and 0 without any.
func medianHeight(words []verdict) int {
	var heights []int
	for _, v := range words {
		if v.accepted && !v.fills {
			heights = append(heights, slices.Repeat([]int{v.Box.Dy()}, letters(v.Text))...)
		}
	}
	if len(heights) == 0 {
		return 0
	}
	slices.Sort(heights)
	return heights[len(heights)/2]
}
