package layout

import "image"

// A ramp is how a plane becomes black text on white: ink at or beyond the level black,
// white at or beyond the level white, which may be the lower one, and linear between them.
type ramp [256]uint8

func newRamp(black, white int) *ramp {
	var r ramp
	for v := range r {
		part, whole := v-black, white-black
		if whole < 0 {
			part, whole = -part, -whole
		}
		// In integers, like all of it: a CPU must not round in another way.
		r[v] = uint8((255*min(max(part, 0), whole) + whole/2) / whole)
	}
	return &r
}

// inkBelow is the level of a ramped pixel below which it is ink.
const inkBelow = 160

// A span is a run of ink in one row: columns [left, right).
type span struct {
	left, right int32
	shape       int32 // while shapes are being joined, a span of the same shape; its number at last
}

// A shape is an 8-connected component of ink.
type shape struct {
	box image.Rectangle
	ink int // pixels
}

// A layer is the ink of one plane.
type layer struct {
	gray   *image.Gray
	ramp   *ramp
	spans  []span
	rows   []int // spans[rows[y]:rows[y+1]] are those of row y
	shapes []shape
	used   []bool // the shapes that are letters of a line
	turned bool   // it lies level what is slanted in the image
}

// bright reports whether text is brighter than what is around it.
func (l *layer) bright() bool { return l.ramp[255] < l.ramp[0] }

// newLayer finds the shapes of a plane, in the order of their first pixel.
func newLayer(g *image.Gray, r *ramp) *layer {
	l := &layer{gray: g, ramp: r}
	l.findSpans()
	l.numberShapes()
	return l
}

// findSpans lists the runs of ink from top to bottom and joins those that touch.
func (l *layer) findSpans() {
	width, height := l.gray.Rect.Dx(), l.gray.Rect.Dy()
	l.rows = make([]int, height+1)
	var ink [256]bool
	for v, to := range l.ramp {
		ink[v] = to < inkBelow
	}
	spans := make([]span, 0, 4*height)
	above := 0 // spans[above:first] are those of the row before
	for y := range height {
		row := l.gray.Pix[y*l.gray.Stride : y*l.gray.Stride+width]
		first := len(spans)
		l.rows[y] = first
		candidate := above
		for x := 0; x < width; {
			if !ink[row[x]] {
				x++
				continue
			}
			left := x
			for x < width && ink[row[x]] {
				x++
			}
			me := len(spans)
			spans = append(spans, span{int32(left), int32(x), int32(me)})
			// Right ends are exclusive, so equality is a touch at a corner.
			for candidate < first && int(spans[candidate].right) < left {
				candidate++
			}
			for k := candidate; k < first && int(spans[k].left) <= x; k++ {
				join(spans, k, me)
			}
		}
		above = first
	}
	l.rows[height] = len(spans)
	l.spans = spans
}

func find(spans []span, i int) int {
	for int(spans[i].shape) != i {
		// Halving the path keeps the next search short.
		spans[i].shape = spans[spans[i].shape].shape
		i = int(spans[i].shape)
	}
	return i
}

func join(spans []span, a, b int) {
	a, b = find(spans, a), find(spans, b)
	// The first run is the root, whatever the order of joins: so shapes come in the same order always.
	spans[max(a, b)].shape = int32(min(a, b))
}

// numberShapes puts the number of its shape into each span.
func (l *layer) numberShapes() {
	for y := range len(l.rows) - 1 {
		for i := l.rows[y]; i < l.rows[y+1]; i++ {
			s := &l.spans[i]
			n := len(l.shapes)
			if int(s.shape) == i {
				l.shapes = append(l.shapes, shape{})
			} else {
				// What it points to stands before it, and has its number already.
				n = int(l.spans[s.shape].shape)
			}
			s.shape = int32(n)
			to := &l.shapes[n]
			to.box = to.box.Union(image.Rect(int(s.left), y, int(s.right), y+1))
			to.ink += int(s.right - s.left)
		}
	}
}
