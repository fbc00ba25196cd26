package ocr

import (
	"cmp"
	"image"
	"slices"
)

const (
	certainConfidence = 60 // of every word of a line that is read for certain; all are listed
	certainLength     = 4  // bytes of such a line at least
	blankMargin       = 8  // what is painted out around a word: this part of its height
)

// certainlyRead returns the words of the lines in which every word is listed and certain.
func certainlyRead(candidates []candidate) []candidate {
	var read []candidate
	for _, l := range linesByScore(candidates) {
		length, certain := 0, true
		// A line with one doubtful word is left whole for the next pass: a word cut out of its line is read worse.
		for _, w := range l.words {
			certain = certain && w.listed && w.Confidence >= certainConfidence
			length += len(w.Text)
		}
		if certain && length >= certainLength {
			read = append(read, l.words...)
		}
	}
	return read
}

// without returns a copy of a rendered image in which the words are painted out. original
// is the size that their boxes refer to.
func without(g *image.Gray, words []candidate, original image.Point) *image.Gray {
	if len(words) == 0 {
		return g
	}
	// A copy, because a second try on another worker starts from the same first pass.
	out := image.NewGray(g.Rect)
	copy(out.Pix, g.Pix)
	size := g.Rect.Size()
	for _, w := range words {
		box := image.Rect(w.Box.Min.X*size.X/original.X, w.Box.Min.Y*size.Y/original.Y,
			w.Box.Max.X*size.X/original.X+1, w.Box.Max.Y*size.Y/original.Y+1)
		blank(out, box.Inset(-box.Dy()/blankMargin).Intersect(g.Rect))
	}
	return out
}

// blank paints a box in the median of its upper and lower edge.
func blank(g *image.Gray, box image.Rectangle) {
	// Plain white would draw a bright panel on what is dark, and Tesseract would look for text in it.
	if box.Empty() {
		return
	}
	row := func(y int) []uint8 { return g.Pix[y*g.Stride+box.Min.X : y*g.Stride+box.Max.X] }
	var count [256]int
	for _, y := range []int{box.Min.Y, box.Max.Y - 1} {
		for _, v := range row(y) {
			count[v]++
		}
	}
	median, seen := 0, count[0]
	for seen < box.Dx() { // half of both edges
		median++
		seen += count[median]
	}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := range row(y) {
			row(y)[x] = uint8(median)
		}
	}
}

// Shapes that may be letters.
const (
	shapeHigh    = 7  // pixels at least, and a quarter of the picture at most
	shapeNarrow  = 2  // pixels at least
	shapeWide    = 3  // times the height at most: letters that touch
	shapeLikePct = 70 // of the height of the higher one: two of one line
)

// lettersInRows counts the shapes of ink that stand between two like them.
func lettersInRows(g *image.Gray) int {
	// Letters of words do so; leaves, faces and frames mostly do not.
	shapes := letterShapes(g)
	afterOne, beforeOne := make([]bool, len(shapes)), make([]bool, len(shapes))
	for i, a := range shapes {
		// A like shape is at most 1/shapeLikePct as high; none begins further right.
		for k, b := range shapes[i+1:] {
			if b.Min.X > a.Max.X+2*a.Dy() {
				break
			}
			if inOneRow(a, b) {
				beforeOne[i], afterOne[i+1+k] = true, true
			}
		}
	}
	n := 0
	for i := range shapes {
		if beforeOne[i] && afterOne[i] {
			n++
		}
	}
	return n
}

// letterShapes lists the boxes of components that may be letters, from left to right.
func letterShapes(g *image.Gray) []image.Rectangle {
	_, boxes := components(g)
	height := g.Rect.Dy()
	// The empty boxes, of runs that are not roots, are too low.
	boxes = slices.DeleteFunc(boxes, func(b image.Rectangle) bool {
		return b.Dy() < shapeHigh || 4*b.Dy() > height || b.Dx() < shapeNarrow || b.Dx() > shapeWide*b.Dy()
	})
	slices.SortFunc(boxes, func(a, b image.Rectangle) int {
		return cmp.Or(cmp.Compare(a.Min.X, b.Min.X), cmp.Compare(a.Min.Y, b.Min.Y))
	})
	return boxes
}

// inOneRow reports whether b can be the letter after a: as high, level with it, and no
// further away than a letter is high.
func inOneRow(a, b image.Rectangle) bool {
	high, low := max(a.Dy(), b.Dy()), min(a.Dy(), b.Dy())
	distance := middle(a) - middle(b)
	return 100*low >= shapeLikePct*high && 3*max(distance, -distance) <= 2*high &&
		b.Min.X >= a.Max.X-2 && b.Min.X-a.Max.X <= high
}

// negative returns the image with dark and light exchanged.
func negative(g *image.Gray) *image.Gray {
	out := image.NewGray(g.Rect)
	for i, v := range g.Pix {
		out.Pix[i] = 255 - v
	}
	return out
}
