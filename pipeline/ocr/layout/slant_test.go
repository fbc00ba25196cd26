package layout

import (
	"fmt"
	"image"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
)

// slanted are rows of letters, each by slope thousandths of its distance lower than the first.
func slanted(slope int, rows ...[]image.Rectangle) (boxes []image.Rectangle) {
	for _, b := range slices.Concat(rows...) {
		boxes = append(boxes, b.Add(image.Pt(0, slope*b.Min.X/1000)))
	}
	return boxes
}

func TestSlant(t *testing.T) {
	for _, tt := range []struct{ slope, letters, want int }{
		{0, 10, 0}, {60, 10, 0}, {150, 10, 150}, {300, 10, 300}, {-420, 10, -420}, {600, 10, 600}, {300, 5, 0},
		// ten letters are too few
	} {
		g := inked(1000, slanted(tt.slope, row(tt.letters, 100, 450, 20, 30, 30), row(tt.letters, 120, 500, 20, 30, 30))...)
		l := newLayer(g, dark)
		l.findLines(2, 500)
		if got := l.slant(); got < tt.want-15 || got > tt.want+15 {
			t.Errorf("slant of two rows of %d letters, slope %d = %d, want about %d", tt.letters, tt.slope, got, tt.want)
		}
	}
}

// TestTurnedLines: a slanted row is a line of a turned layer, and its place is level about where its middle is.
func TestTurnedLines(t *testing.T) {
	boxes := slanted(-300, row(14, 100, 600, 20, 30, 30))
	q := newQueue(planes{inked(1000, boxes...), whiteGray(lookLong, 1000)})
	var got []string
	for _, l := range q.lines {
		middle := l.place.Min.Add(l.place.Max).Div(2)
		got = append(got, fmt.Sprint(l.layer, " ", len(l.letters)))
		if l.place.Dx() < 400 || l.place.Dx() > 450 || l.place.Dy() > 45 || !middle.In(boxes[6].Union(boxes[7])) {
			t.Errorf("place %v, want it level about the middle of %v and %v", l.place, boxes[6], boxes[7])
		}
	}
	testkit.Same(t, "lines", []string{"6 14", "7 14"}, got)
}

func TestInside(t *testing.T) {
	bounds := image.Rect(0, 0, 100, 50)
	for _, tt := range []struct{ box, want image.Rectangle }{
		{image.Rect(1, 2, 3, 4), image.Rect(1, 2, 3, 4)},
		{image.Rect(-5, -10, 15, 10), image.Rect(0, 0, 20, 20)},
		{image.Rect(90, 45, 110, 55), image.Rect(80, 40, 100, 50)},
		{image.Rect(-20, 0, 120, 10), image.Rect(0, 0, 100, 10)},
	} {
		if got := inside(tt.box, bounds); got != tt.want {
			t.Errorf("inside(%v) = %v, want %v", tt.box, got, tt.want)
		}
	}
}
