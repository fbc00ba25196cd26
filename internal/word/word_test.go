package word_test

import (
	"encoding/json"
	"image"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

// TestJSON pins the bytes that workspaces and workers have.
func TestJSON(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{word.Word{Text: "ONE", Confidence: 91.25, X: 1, Y: 2, W: 3, H: 4, Line: 5, Accepted: true},
			`{"Text":"ONE","Confidence":91.25,"X":1,"Y":2,"W":3,"H":4,"Line":5,"Accepted":true}`},
		{word.Raw{Text: "ONE", Confidence: 91.25, Box: image.Rect(1, 2, 3, 4), Block: 5, Par: 6, Line: 7},
			`{"Text":"ONE","Confidence":91.25,"Box":{"Min":{"X":1,"Y":2},"Max":{"X":3,"Y":4}},"Block":5,"Par":6,"Line":7}`},
	} {
		got, err := json.Marshal(tt.value)
		testkit.Same(t, "JSON", tt.want, string(got), err)
	}
}

func TestBox(t *testing.T) {
	testkit.Same(t, "Box", image.Rect(1, 2, 31, 42), word.Word{X: 1, Y: 2, W: 30, H: 40}.Box())
}

func TestJoin(t *testing.T) {
	in := func(line int, text string, confidence float64, accepted bool) word.Word {
		return word.Word{Text: text, Confidence: confidence, Line: line, Accepted: accepted}
	}
	for _, tt := range []struct {
		name, text string
		confidence float64
		words      []word.Word
	}{
		{"no word", "", 0, nil},
		{"none is accepted", "", 0, []word.Word{in(0, "A", 90, false)}},
		{"one line", "A B", 85, []word.Word{in(0, "A", 90, true), in(0, "B", 80, true)}},
		{"lines", "A\nB", 85, []word.Word{in(0, "A", 90, true), in(2, "B", 80, true)}},
		{"the first line is not accepted", "B\nC", 80,
			[]word.Word{in(0, "A", 90, false), in(1, "B", 80, true), in(1, "X", 10, false), in(2, "C", 80, true)}},
	} {
		text, confidence := word.Join(tt.words)
		testkit.Same(t, tt.name, tt.text, text)
		testkit.Same(t, tt.name+": confidence", tt.confidence, confidence)
	}
}
