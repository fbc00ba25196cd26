package layout

import (
	"fmt"
	"image"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// gapPage is a page with a row of twelve letters, and a merged word for each pair of letters [from, to).
func gapPage(l lexicon, confidence float64, spans ...[2]int) (*reader, []candidate) {
	g := inked(400, row(12, 40, 100, 20, 40, 30)...)
	page := Find(g, Rules{Dictionary: l.knows, DictionaryID: l.id})
	var merged []candidate
	for i, s := range spans {
		c := newWord(2, i+1, []string{"BOARD", "WILL"}[i%2], confidence, 40+30*s[0], 100, 30+30*s[1], 140)
		c.listed = l.listed(c.Text)
		merged = append(merged, c)
	}
	return &reader{page: page, queue: page.queue.again()}, merged
}

func TestGaps(t *testing.T) {
	l := testLexicon("BOARD WILL")
	for _, tt := range []struct {
		name       string
		confidence float64
		spans      [][2]int
		want       []image.Rectangle
	}{
		{"between two words", 90, [][2]int{{0, 4}, {8, 12}}, []image.Rectangle{image.Rect(160, 100, 270, 140)}},
		{"beyond the end of the row", 90, [][2]int{{0, 4}, {4, 8}}, []image.Rectangle{image.Rect(280, 100, 390, 140)}},
		{"before its beginning", 90, [][2]int{{3, 8}, {8, 12}}, []image.Rectangle{image.Rect(40, 100, 120, 140)}},
		{"on both sides of a word", 90, [][2]int{{4, 8}},
			[]image.Rectangle{image.Rect(40, 100, 150, 140), image.Rect(280, 100, 390, 140)}},
		{"none", 90, [][2]int{{0, 6}, {6, 12}}, nil},
		{"in a row without a sure word", 50, [][2]int{{0, 4}, {8, 12}}, nil},
	} {
		r, merged := gapPage(l, tt.confidence, tt.spans...)
		var got []image.Rectangle
		for _, g := range r.gaps(merged) {
			got = append(got, g.box)
		}
		testkit.Same(t, tt.name, tt.want, got)
	}
}

// TestFill: what two readings of a gap say decides what is put into it.
func TestFill(t *testing.T) {
	l := testLexicon("BOARD WILL ALSO")
	for _, tt := range []struct {
		name  string
		read  [2]word.Raw // of the gap, in both ways
		heard word.Raw    // before, at its place
		want  string
	}{
		{"a listed word", [2]word.Raw{{Text: "ALSO", Confidence: 60}}, word.Raw{}, "BOARD ALSO WILL"},
		{"an unsure one", [2]word.Raw{{Text: "ALSO", Confidence: 59}}, word.Raw{}, "BOARD WILL"},
		{"read twice", [2]word.Raw{{Text: "ALSO", Confidence: 20}, {Text: "Also,", Confidence: 5}}, word.Raw{},
			"BOARD ALSO WILL"},
		{"read before", [2]word.Raw{{Text: "ALSO", Confidence: 20}}, word.Raw{Text: "ALSO"}, "BOARD ALSO WILL"},
		{"a name", [2]word.Raw{{Text: "Xyzzy", Confidence: 92}}, word.Raw{}, "BOARD Xyzzy WILL"},
		{"an unsure name", [2]word.Raw{{Text: "Xyzzy", Confidence: 91}}, word.Raw{}, "BOARD WILL"},
		{"a number that was read once", [2]word.Raw{{Text: "2020", Confidence: 99}}, word.Raw{}, "BOARD WILL"},
		{"a number of an earlier reading", [2]word.Raw{{}, {Text: "2020", Confidence: 50}},
			word.Raw{Text: "2020", Confidence: 99}, "BOARD WILL"},
		{"a single letter", [2]word.Raw{{Text: "X", Confidence: 99}, {Text: "X", Confidence: 99}}, word.Raw{},
			"BOARD WILL"},
		{"the word next to it", [2]word.Raw{{Text: "WILL", Confidence: 99}}, word.Raw{}, "BOARD WILL"},
		{"the better of two", [2]word.Raw{{Text: "WILLQ", Confidence: 92}, {Text: "ALSO", Confidence: 92}},
			word.Raw{}, "BOARD ALSO WILL"},
	} {
		r, merged := gapPage(l, 90, [2]int{0, 4}, [2]int{8, 12})
		if tt.heard.Text != "" {
			c := newWord(0, 1, tt.heard.Text, tt.heard.Confidence, 165, 100, 265, 140)
			c.listed = l.listed(c.Text)
			r.heard = append(r.heard, c)
		}
		r.recognize = func(pictures []*image.Gray, whole bool) ([][]word.Raw, error) {
			if len(pictures) != 2 || whole {
				t.Errorf("%s: a request of %d pictures, whole %v, want the gap in two ways", tt.name, len(pictures),
					whole)
			}
			out := make([][]word.Raw, len(pictures))
			for i, g := range pictures {
				if w := tt.read[i]; w.Text != "" {
					w.Box = g.Rect
					out[i] = []word.Raw{w}
				}
			}
			return out, nil
		}
		filled, err := r.fill(merged)
		reading := newReading(filled, image.Point{}, l)
		testkit.Same(t, tt.name, tt.want, reading.Text, err)
		for _, w := range reading.Words {
			isFilled := !slices.Contains([]string{"BOARD", "WILL"}, w.Text)
			testkit.Same(t, fmt.Sprintf("%s: %q is filled", tt.name, w.Text), isFilled, w.Repair == word.Filled &&
				len(w.Readings) > 0)
		}
	}
}

// TestGapStrips: a gap is cut out as its look sees it, and as it is; both are dark on bright, as high as every strip.
func TestGapStrips(t *testing.T) {
	l := testLexicon("BOARD WILL")
	r, merged := gapPage(l, 90, [2]int{0, 4}, [2]int{8, 12})
	gaps := r.gaps(merged)
	if len(gaps) != 1 {
		t.Fatalf("%d gaps, want 1", len(gaps))
	}
	for i, s := range r.strips(gaps[0]) {
		if s.gray.Rect.Dy() != StripHeight || s.gray.Pix[0] < 200 {
			t.Errorf("strip %d of %v begins with %d, want %d pixels high and bright", i, s.gray.Rect, s.gray.Pix[0],
				StripHeight)
		}
		inked := s.ink(s.gray.Rect)
		testkit.Same(t, "letters of the gap, and none of its neighbours'", 3, len(s.spaces(inked)))
	}
}
