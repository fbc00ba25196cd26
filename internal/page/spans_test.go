package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpans: boxes, points and lines stand where their numbers are on the scale, and its ends are told.
func TestSpans(t *testing.T) {
	boxes := Spans{Series: []string{"one"}, Groups: []SpanGroup{{Label: "a", Spans: []*Span{{10, 20, 30, 60, 110}}},
		{Label: "b", Spans: []*Span{nil}},
		{Label: "c", Spans: []*Span{{110, 110, 110, 110, 110}}}}}
	rates := Spans{Series: []string{"one", "two"}, To: 1,
		Groups: []SpanGroup{{Spans: []*Span{{.25, .5, .5, .5, .75}, {0, 0, 0, 0, 0}}}}}
	equal := Spans{Series: []string{"one"}, Groups: []SpanGroup{{Spans: []*Span{{7, 7, 7, 7, 7}}}}}
	axis := func(from, to string) Row {
		return Row{Height: 18, Marks: []Mark{{Class: "axis", Y: 1, W: 100}, {Class: "start", Y: 14, Text: from},
			{Class: "end", X: 100, Y: 14, Text: to}}}
	}
	for name, test := range map[string]struct {
		spans Spans
		want  []Row
	}{
		"boxes": {boxes, []Row{
			{Label: "a", Height: 18, Marks: []Mark{{Class: "axis", Y: 9, W: 100},
				{Class: "s1", X: 10, Y: 2, W: 40, H: 14}, {Class: "mid", X: 20, Y: 2, H: 14}}},
			{Label: "b", Height: 18},
			{Label: "c", Height: 18, Marks: []Mark{{Class: "axis", X: 100, Y: 9},
				{Class: "s1", X: 99.2, Y: 2, W: .8, H: 14}}}, axis("10", "110")}},
		"points with intervals": {rates, []Row{{Height: 36,
			Marks: []Mark{{Class: "axis", X: 25, Y: 9, W: 50}, {Class: "s1", X: 49.6, Y: 2, W: .8, H: 14},
				{Class: "axis", Y: 27}, {Class: "s2", Y: 20, W: .8, H: 14}}}, axis("0", "1")}},
		"one number": {equal, []Row{{Height: 18,
			Marks: []Mark{{Class: "axis", X: 50, Y: 9}, {Class: "s1", X: 49.6, Y: 2, W: .8, H: 14}}}, axis("6", "8")}},
		"nothing": {Spans{}, []Row{axis("-1", "1")}},
	} {
		if diff := cmp.Diff(test.want, test.spans.Chart().Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
