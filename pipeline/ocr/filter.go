package ocr

import "image"

// soften makes black what is at or beyond the level black, white what is at or beyond white, which may be the lower
// one, and what is between them linear.
func soften(g *image.Gray, black, white int) {
	var table [256]uint8
	for v := range table {
		part, whole := v-black, white-black
		if whole < 0 {
			part, whole = -part, -whole
		}
		// In integers, like all of it: a CPU must not round in another way.
		table[v] = uint8((255*min(max(part, 0), whole) + whole/2) / whole)
	}
	for i, v := range g.Pix {
		g.Pix[i] = table[v]
	}
}

// Limits of the component filter.
const (
	componentDark      = 160 // pixels below it are ink
	componentHighPct   = 25
	componentWidePct   = 50
	componentSpeckMill = 8
)

// A span is a run of ink in one row: columns [left, right).
type span struct {
	row, left, right int
	parent           int // index of a span of the same component; itself for a root
}

// filterComponents paints out the 8-connected components of ink that cannot be
// letters, with the grey fringe around them.
func filterComponents(g *image.Gray) {
	// White text on a white sky is read only after this: the sky is one large component.
	width, height := g.Rect.Dx(), g.Rect.Dy()
	spans, boxes := components(g)
	for i, s := range spans {
		if !letterSized(boxes[find(spans, i)], width, height) {
			paintOut(g, s)
		}
	}
}

func letterSized(box image.Rectangle, width, height int) bool {
	w, h := box.Dx(), box.Dy()
	// A letter of a caption is at most a quarter of the picture high, a word whose letters touch at most half of it
	// wide, and a speck small both ways: a full stop is one, an I is not.
	tooHigh := 100*h > componentHighPct*height
	tooWide := 100*w > componentWidePct*width
	speck := 1000*h < componentSpeckMill*height && 1000*w < componentSpeckMill*height
	return !tooHigh && !tooWide && !speck
}

// components lists the runs of ink, and the boxes of the components by the index of their root.
func components(g *image.Gray) (spans []span, boxes []image.Rectangle) {
	spans = findSpans(g)
	boxes = make([]image.Rectangle, len(spans)) // empty for a run that is not a root
	for i, s := range spans {
		root := find(spans, i)
		boxes[root] = boxes[root].Union(image.Rect(s.left, s.row, s.right, s.row+1))
	}
	return spans, boxes
}

// findSpans lists the runs of ink from top to bottom and joins those that touch.
func findSpans(g *image.Gray) []span {
	var spans []span
	width := g.Rect.Dx()
	above, aboveEnd := 0, 0 // spans[above:aboveEnd] are those of the row before
	for y := range g.Rect.Dy() {
		row := g.Pix[y*g.Stride : y*g.Stride+width]
		first, candidate := len(spans), above
		for x := 0; x < width; {
			if row[x] >= componentDark {
				x++
				continue
			}
			left := x
			for x < width && row[x] < componentDark {
				x++
			}
			me := len(spans)
			spans = append(spans, span{row: y, left: left, right: x, parent: me})
			// Right ends are exclusive, so equality is a touch at a corner.
			for candidate < aboveEnd && spans[candidate].right < left {
				candidate++
			}
			for k := candidate; k < aboveEnd && spans[k].left <= x; k++ {
				join(spans, k, me)
			}
		}
		above, aboveEnd = first, len(spans)
	}
	return spans
}

func find(spans []span, i int) int {
	for spans[i].parent != i {
		// Halving the path keeps the next search short.
		spans[i].parent = spans[spans[i].parent].parent
		i = spans[i].parent
	}
	return i
}

func join(spans []span, a, b int) {
	a, b = find(spans, a), find(spans, b)
	// The first run is the root, whatever the order of joins: so components come in the same order always.
	spans[max(a, b)].parent = min(a, b)
}

// paintOut whitens a span and those of its neighbours that are no ink.
func paintOut(g *image.Gray, s span) {
	width, height := g.Rect.Dx(), g.Rect.Dy()
	for y := max(0, s.row-1); y <= min(height-1, s.row+1); y++ {
		row := g.Pix[y*g.Stride : y*g.Stride+width]
		for x := max(0, s.left-1); x <= min(width-1, s.right); x++ {
			// Ink above and below is of the same component, and painted with its own spans.
			if y == s.row || row[x] >= componentDark {
				row[x] = 255
			}
		}
	}
}
