package layout

import (
	"cmp"
	"image"
	"slices"
)

// A look is one way to make text black on white.
type look struct {
	plane        string // "Y", "M", "E", "C" or "X"
	black, white int    // of the ramp
	even         int    // of a line at least, in thousandths; what is less even is hardly ever text
}

// The looks at an image: white, white on white that only the smallest channel tells apart, black, dim, light grey, and
// dark text on black. Where two promise the same, the earlier one is read.
var looks = [...]look{{"Y", 250, 180, 500}, {"M", 250, 180, 500}, {"Y", 20, 140, 500},
	{"Y", 180, 80, 550}, {"Y", 80, 200, 550}, {"Y", 90, 40, 550}}

// The looks if the first ones found next to nothing: for text brighter, and darker, than its surroundings; in strong
// colours, and black on a dark colour.
var lastLooks = [...]look{{"E", 250, 180, 500}, {"E", 20, 140, 500}, {"C", 160, 60, 500}, {"X", 20, 140, 500}}

// Lines are searched in a picture whose longer side has so many pixels.
const lookLong = 1000

const (
	stripsMost = 60 // of a picture: noise has no end of lines
	// BatchSize is how many strips a request has at most.
	BatchSize = 16
	batchFew  = 4 // where only the decision counts: it may stand after the first

	promiseLetters = 20 // more letters make a line no more promising
	readingsMost   = 3  // of one place
	samePlacePct   = 60 // of a line's box in the place of an earlier one
	coveredPct     = 50 // of a line's box under words that are done: it is not read
)

// A queue holds the lines of an image that are still to be read, the most promising first.
type queue struct {
	layers []*layer // of the looks, then turned ones
	lines  []textLine
	places []place
	done   []image.Rectangle // words that nothing has to be read about any more
	strips int               // read so far

	original image.Point // the size of the image
}

// A place is the box of a line that was read.
type place struct {
	box      image.Rectangle
	readings int // what it counts for
}

// newQueue searches the lines of an image.
func newQueue(p planes) *queue {
	luma := scale(p.luma, lookLong)
	minimum := luma
	if p.minimum != p.luma {
		minimum = scale(p.minimum, lookLong)
	}
	q := queue{original: p.luma.Rect.Size()}
	q.search(stretched(looks[:], luma), map[string]*image.Gray{"Y": luma, "M": minimum})
	return &q
}

// searchAgain searches for lines that only stand out from what is around them, or by their colour. colours are the
// planes of colourPlanes.
func (q *queue) searchAgain(colours map[string]*image.Gray) {
	planes := map[string]*image.Gray{"E": evened(q.layers[0].gray)}
	for name, plane := range colours {
		planes[name] = scale(plane, lookLong)
	}
	looks := slices.DeleteFunc(slices.Clone(lastLooks[:]), func(l look) bool { return planes[l.plane] == nil })
	q.search(looks, planes)
}

// search finds the lines of planes, by name, and puts them in order.
func (q *queue) search(looks []look, planes map[string]*image.Gray) {
	first := len(q.layers)
	for _, look := range looks {
		l := newLayer(planes[look.plane], newRamp(look.black, look.white))
		q.lines = append(q.lines, l.findLines(len(q.layers), look.even)...)
		q.layers = append(q.layers, l)
	}
	for i, look := range looks {
		if slope := q.layers[first+i].slant(); slope != 0 {
			q.addTurned(q.layers[first+i], look, slope)
		}
	}
	for i, t := range q.lines {
		q.lines[i].place = rescaleBox(t.box.Add(t.shift), q.size(), q.original)
	}
	slices.SortStableFunc(q.lines, func(a, b textLine) int {
		return cmp.Or(cmp.Compare(b.promise(), a.promise()), cmp.Compare(a.layer, b.layer))
	})
}

// A faded or dark picture has a black and a white of its own.
const (
	stretchBelow = 160  // levels between its darkest and its brightest
	stretchFrom  = 16   // what has fewer is blank
	stretchPart  = 1000 // one of so many pixels may be darker, and one brighter
)

// stretched moves the ramps of the looks at luma to the levels that a faded picture has.
func stretched(looks []look, luma *image.Gray) []look {
	low, high := levels(luma)
	if wide := high - low; wide < stretchFrom || wide >= stretchBelow {
		return looks
	}
	looks = slices.Clone(looks)
	for i, l := range looks {
		if l.plane == "Y" {
			looks[i].black, looks[i].white = low+rescale(l.black, 255, high-low), low+rescale(l.white, 255, high-low)
		}
	}
	return looks
}

// levels are the darkest and the brightest level of a plane but for a few pixels.
func levels(g *image.Gray) (low, high int) {
	var count [256]int
	for _, v := range g.Pix {
		count[v]++
	}
	few := len(g.Pix) / stretchPart
	high = 255
	for n := count[low]; n <= few && low < 255; n += count[low] {
		low++
	}
	for n := count[high]; n <= few && high > 0; n += count[high] {
		high--
	}
	return low, high
}

// addTurned adds a layer turned by a slope, and its lines.
func (q *queue) addTurned(from *layer, look look, slope int) {
	turn := newTurn(q.size(), slope)
	l := newLayer(turn.plane(from.gray, uint8(look.white)), from.ramp)
	l.turned = true
	lines := l.findLines(len(q.layers), look.even)
	for i, t := range lines {
		lines[i].shift = turn.shift(t.box)
	}
	q.layers, q.lines = append(q.layers, l), append(q.lines, lines...)
}

func (t textLine) promise() int { return t.even * min(len(t.letters), promiseLetters) }

// size is that of the layers.
func (q *queue) size() image.Point { return q.layers[0].gray.Rect.Size() }

// again is the queue as it was before anything was read.
func (q *queue) again() *queue {
	return &queue{layers: slices.Clip(q.layers), lines: slices.Clip(q.lines), original: q.original}
}

// next takes the next lines from the queue that have nothing to do with each other, so that what is read of one cannot
// settle another.
func (q *queue) next(most int) []textLine {
	var batch, later []textLine
	var ahead []image.Rectangle // places of the lines before this one, in the batch or not
	most = min(most, stripsMost-q.strips)
	for i, t := range q.lines {
		if len(batch) >= most {
			later = append(later, q.lines[i:]...)
			break
		}
		if q.settled(t.place) {
			continue
		}
		if slices.ContainsFunc(ahead, t.place.Overlaps) {
			later = append(later, t)
		} else {
			batch = append(batch, t)
		}
		ahead = append(ahead, t.place)
	}
	q.lines, q.strips = later, q.strips+len(batch)
	return batch
}

// settled reports whether a place was read for certain, or often enough.
func (q *queue) settled(box image.Rectangle) bool {
	covered, readings := 0, 0
	for _, d := range q.done {
		covered += area(d.Intersect(box))
	}
	for _, p := range q.places {
		if 100*area(p.box.Intersect(box)) >= samePlacePct*area(box) {
			readings += p.readings
		}
	}
	return 100*covered >= coveredPct*area(box) || readings >= readingsMost
}

// When a line is done.
const (
	certainConfidence = 60 // of every word; all are listed
	certainLength     = 4  // bytes at least
	certainLettersPct = 80 // letters read for the shapes of the line: words can be missing
	doneConfidence    = 92 // mean of its words, by letters, where some are not listed
	doneListedPct     = 85 // letters in listed words
	doneLetters       = 3  // letters at least
	doneLettersPct    = 70 // letters read for the shapes of the line
	wellLettersPct    = 80 // the same, where fewer are listed: its words are not done, and its place is
)

// record notes what was read of a line.
func (q *queue) record(t textLine, words []candidate) {
	read, mean := weigh(words)
	listed := 0
	for _, w := range words {
		if w.listed && w.Confidence >= certainConfidence {
			listed += letters(w.Text)
		}
	}
	sure := mean >= doneConfidence
	mostListed := read >= doneLetters && 100*listed >= doneListedPct*read && 100*read >= doneLettersPct*len(t.letters)
	if sure && mostListed || allCertain(words) && 100*read >= certainLettersPct*len(t.letters) {
		for _, w := range words {
			q.done = append(q.done, w.Box)
		}
	}
	p := place{t.place, 1}
	if sure && 100*read >= wellLettersPct*len(t.letters) {
		p.readings = readingsMost
	}
	q.places = append(q.places, p)
}

// weigh counts the letters of words and returns the mean of their confidences.
func weigh(words []candidate) (n int, mean float64) {
	for _, w := range words {
		n += letters(w.Text)
		mean += float64(w.Confidence * float64(letters(w.Text))) // the conversion forbids to fuse it with the sum
	}
	return n, mean / float64(max(n, 1))
}

// A line whose words have a lower mean confidence, and none of them is sure, is noise: tiles, scribbles, leaves.
const noiseConfidence = 80

// noise reports whether a line is hardly text.
func noise(words []candidate) bool {
	_, mean := weigh(words)
	return mean < noiseConfidence && !slices.ContainsFunc(words, func(w candidate) bool {
		return w.sure() && letters(w.Text) >= enoughLetters
	})
}

// allCertain reports whether every word of a line is listed and certain.
func allCertain(line []candidate) bool {
	length := 0
	for _, w := range line {
		length += len(w.Text)
		if !w.listed || w.Confidence < certainConfidence {
			return false
		}
	}
	return length >= certainLength
}
