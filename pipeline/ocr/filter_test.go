package ocr

import (
	"bytes"
	"image"
	"slices"
	"testing"
)

func TestSoftThresholds(t *testing.T) {
	for _, tt := range []struct{ v, white, dark uint8 }{
		{0, 255, 0}, {20, 255, 0}, {80, 255, 128}, {140, 255, 255}, {180, 255, 255},
		{187, 230, 255}, {215, 128, 255}, {249, 4, 255}, {250, 0, 255}, {255, 0, 255},
	} {
		white, dark := grayOf(1, tt.v), grayOf(1, tt.v)
		soften(white, 250, 180)
		soften(dark, 20, 140)
		if white.Pix[0] != tt.white || dark.Pix[0] != tt.dark {
			t.Errorf("%d: white %d, dark %d, want %d, %d", tt.v, white.Pix[0], dark.Pix[0], tt.white, tt.dark)
		}
	}
}

func TestLetterSized(t *testing.T) {
	for size, want := range map[image.Point]bool{
		{100, 125}: true, {100, 126}: false, {250, 50}: true, {251, 50}: false, // a quarter of the height, half of the width
		{3, 3}: false, {4, 3}: true, {3, 4}: true, // of 4 pixels, 8 thousandths
	} {
		if got := letterSized(image.Rectangle{Max: size}, 500, 500); got != want {
			t.Errorf("letterSized(%v of 500 x 500) = %v, want %v", size, got, want)
		}
	}
}

// The span filter agrees with a plain flood fill on noise of all densities.
func TestFilterComponentsAgainstFloodFill(t *testing.T) {
	state := uint32(1)
	for round := range 60 {
		width, height := 5+round%23, 5+round%31
		a := image.NewGray(image.Rect(0, 0, width, height))
		for i := range a.Pix {
			state = state*1664525 + 1013904223
			a.Pix[i] = 255
			switch v := int(state >> 24); {
			case v < 40+3*round:
				a.Pix[i] = 10
			case v > 230:
				a.Pix[i] = 190
			}
		}
		b := image.NewGray(a.Rect)
		copy(b.Pix, a.Pix)
		filterComponents(a)
		floodFilter(b)
		if !bytes.Equal(a.Pix, b.Pix) {
			t.Fatalf("round %d, %d x %d: spans leave\n%v\nflood fill\n%v", round, width, height, a.Pix, b.Pix)
		}
	}
}

// floodFilter is filterComponents, one component after the other.
func floodFilter(g *image.Gray) {
	before := slices.Clone(g.Pix)
	done := make([]bool, len(before))
	for start, v := range before {
		if v >= componentDark || done[start] {
			continue
		}
		done[start] = true
		var box image.Rectangle
		var fringe []int
		component := []int{start}
		for i := 0; i < len(component); i++ {
			x, y := component[i]%g.Stride, component[i]/g.Stride
			box = box.Union(image.Rect(x, y, x+1, y+1))
			for k := range 9 {
				p := image.Pt(x+k%3-1, y+k/3-1)
				at := p.Y*g.Stride + p.X
				switch {
				case !p.In(g.Rect):
				case before[at] >= componentDark:
					fringe = append(fringe, at)
				case !done[at]:
					done[at] = true
					component = append(component, at)
				}
			}
		}
		if !letterSized(box, g.Rect.Dx(), g.Rect.Dy()) {
			for _, at := range append(component, fringe...) {
				g.Pix[at] = 255
			}
		}
	}
}
