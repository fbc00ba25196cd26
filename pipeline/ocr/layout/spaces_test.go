package layout

import (
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// stripOf is a strip with letters, each 10 pixels wide, and between two of them so many columns without ink.
func stripOf(between ...int) strip {
	wide := 10
	for _, n := range between {
		wide += n + 10
	}
	g := whiteGray(wide+8, StripHeight)
	x := 4
	for _, n := range append(between, 0) {
		for y := 8; y < 28; y++ {
			for i := range 10 {
				g.Pix[y*g.Stride+x+i] = 0
			}
		}
		x += 10 + n
	}
	return strip{gray: g, page: g.Rect}
}

func TestSpaces(t *testing.T) {
	s := stripOf(2, 8, 0, 2)
	want := spaces{{500 * 22 / 62, 2}, {500 * 52 / 62, 8}, {500 * 102 / 62, 2}}
	testkit.Same(t, "spaces", fmt.Sprint(want), fmt.Sprint(s.spaces(s.ink(s.gray.Rect))))
	testkit.Same(t, "spaces of what has no ink", 0, len(s.spaces(image.Rect(0, 0, 3, StripHeight))))
}

// TestCutWhereTheInkIs: letters say where a word may be cut, and the ink whether it is.
func TestCutWhereTheInkIs(t *testing.T) {
	l := testLexicon("IT HAS DOG")
	for _, tt := range []struct {
		name    string
		between []int
		want    string
	}{
		{"a wide space", []int{4, 6, 4, 4}, "IT HAS"},
		{"one that is a little wider", []int{4, 5, 4, 4}, ""},
		{"a wide space elsewhere", []int{4, 4, 4, 6}, ""},
		{"a letter away", []int{8, 4, 4, 4}, ""},
		{"letters touch", []int{0, 0, 4, 4}, "IT HAS"},
	} {
		s := stripOf(tt.between...)
		words, ink := s.place([]word.Raw{{Text: "ITHAS", Confidence: 80, Box: s.gray.Rect}}, textLine{box: s.page}, 1)
		var got []string
		for _, w := range slices.Concat(l.mend(words, ink)...) {
			got = append(got, w.Text)
		}
		if want := strings.Fields(tt.want); tt.want != "" {
			testkit.Same(t, tt.name, want, got)
		} else {
			testkit.Same(t, tt.name, []string{"ITHAS"}, got)
		}
	}
}
