package layout

import (
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

func newWord(look, line int, text string, confidence float64, x0, y0, x1, y1 int) candidate {
	return candidate{look: look, Raw: word.Raw{Text: text, Confidence: confidence,
		Box: image.Rect(x0, y0, x1, y1), Block: 1, Par: 1, Line: line}}
}

func texts(words []candidate) string {
	var out []string
	for _, w := range words {
		out = append(out, w.Text)
	}
	return strings.Join(out, " ")
}

func TestCollect(t *testing.T) {
	raw := []word.Raw{
		{Text: "FAINT", Confidence: 0, Box: image.Rect(10, 20, 30, 40)},
		{Text: "|_-", Confidence: 99, Box: image.Rect(10, 20, 30, 40)},
		{Text: "\x1b[31mR\u202eE\u2003D\xff\n", Confidence: 80, Box: image.Rect(0, 0, 100, 50)},
	}
	got := collect(raw, nil, 2, image.Pt(100, 50), image.Pt(250, 125), lexicon{})
	want := []candidate{
		{Raw: word.Raw{Text: "FAINT", Confidence: 0, Box: image.Rect(25, 50, 75, 100)}, look: 2},
		{Raw: word.Raw{Text: "[31mRED", Confidence: 80, Box: image.Rect(0, 0, 250, 125)}, look: 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(candidate{})); diff != "" {
		t.Errorf("collect (-want +got):\n%s", diff)
	}
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []candidate
		want string // in order of line score
	}{
		{"the surer line wins", []candidate{
			newWord(0, 1, "HELL0", 70, 0, 0, 50, 10), newWord(1, 1, "HELLO", 95, 1, 0, 51, 10),
		}, "HELLO"},
		{"the longer line wins over a little more confidence", []candidate{
			newWord(0, 1, "HELLO", 95, 0, 0, 50, 10),
			newWord(1, 1, "HELLO", 94, 0, 0, 50, 10), newWord(1, 1, "THERE", 94, 60, 0, 110, 10),
		}, "HELLO THERE"},
		{"what a line does not cover is added", []candidate{
			newWord(0, 1, "TOP", 95, 0, 0, 30, 10), newWord(1, 1, "TOP", 90, 0, 0, 30, 10),
			newWord(1, 2, "BOTTOM", 80, 0, 90, 60, 100),
		}, "BOTTOM TOP"},
		{"30 % of the smaller box is the same place", []candidate{
			newWord(0, 1, "WIDEWORD", 95, 20, 0, 120, 10), newWord(1, 1, "AB", 90, 117, 0, 127, 10),
			newWord(1, 2, "CD", 90, 12, 0, 22, 10),
		}, "WIDEWORD CD"},
		{"words of one line never block each other", []candidate{
			newWord(0, 1, "ONE", 90, 0, 0, 30, 10), newWord(0, 1, "TWO", 90, 5, 0, 35, 10),
		}, "ONE TWO"},
		{"a blocked word blocks too", []candidate{
			newWord(0, 1, "FIRSTWORD", 99, 0, 0, 100, 10),
			newWord(1, 1, "BLOCKED", 90, 0, 0, 120, 10),
			newWord(2, 1, "TAIL", 80, 105, 0, 118, 10),
		}, "FIRSTWORD"},
		{"equal scores: the earlier look, then the earlier line", []candidate{
			newWord(1, 1, "LATER", 90, 0, 0, 50, 10), newWord(0, 2, "FIRST", 90, 0, 0, 50, 10),
			newWord(0, 3, "OTHER", 90, 0, 0, 50, 10),
		}, "FIRST"},
		{"nothing", nil, ""},
	} {
		if got := texts(merge(tt.in)); got != tt.want {
			t.Errorf("%s: merge = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A word is agreed on where another look read the same at the same place.
func TestAgreed(t *testing.T) {
	c := newWord(0, 1, "HELLO", 90, 0, 0, 50, 10)
	for _, tt := range []struct {
		other candidate
		want  bool
	}{
		{newWord(1, 1, "\u201chello,", 30, 25, 0, 75, 10), true}, {newWord(1, 1, "HELLO", 30, 26, 0, 76, 10), false},
		{newWord(0, 2, "HELLO", 30, 0, 0, 50, 10), false}, {newWord(1, 1, "HELL0", 30, 0, 0, 50, 10), false},
	} {
		if got := merge([]candidate{c, tt.other}); len(got) != 1 || got[0].agreed != tt.want {
			t.Errorf("beside %+v: %+v, want agreed %v", tt.other, got, tt.want)
		}
	}
}

// The order in which lines come does not change what is kept.
func TestMergeIsStable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var lines [][]candidate
	for i := range 40 {
		x, y := random.IntN(200), random.IntN(100)
		lines = append(lines, []candidate{
			newWord(i%3, i, fmt.Sprintf("A%02d", i), 90, x, y, x+30, y+12),
			newWord(i%3, i, fmt.Sprintf("B%02d", i), 90, x+35, y, x+65, y+12),
		})
	}
	read := func() Reading {
		var all []candidate
		for _, l := range lines {
			all = append(all, l...)
		}
		return newReading(merge(all), image.Point{}, lexicon{})
	}
	want := read()
	for range 20 {
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		testkit.Same(t, "another order", want, read())
	}
}

func TestReadingOrder(t *testing.T) {
	in := []candidate{
		newWord(0, 1, "BOTTOM", 90, 10, 200, 90, 220),
		newWord(0, 2, "RIGHT", 80, 60, 12, 100, 34), // a little lower than its neighbour
		newWord(0, 2, "LEFT", 70, 10, 10, 50, 30),
		newWord(0, 3, "UNSURE", 59, 110, 10, 150, 30), // on a line, not in the text
		newWord(0, 4, "NOISE", 50, 10, 100, 50, 120),  // a line of its own, not in the text
		newWord(0, 5, "FAINT", 49, 60, 100, 90, 120),  // nowhere
	}
	got := newReading(in, image.Pt(1000, 0), lexicon{})
	want := Reading{Text: "LEFT RIGHT\nBOTTOM", Confidence: 80, Words: []word.Word{
		{Text: "LEFT", Confidence: 70, X: 1010, Y: 10, W: 40, H: 20, Line: 0, Accepted: true},
		{Text: "RIGHT", Confidence: 80, X: 1060, Y: 12, W: 40, H: 22, Line: 0, Accepted: true},
		{Text: "UNSURE", Confidence: 59, X: 1110, Y: 10, W: 40, H: 20, Line: 0},
		{Text: "NOISE", Confidence: 50, X: 1010, Y: 100, W: 40, H: 20, Line: 1},
		{Text: "BOTTOM", Confidence: 90, X: 1010, Y: 200, W: 80, H: 20, Line: 2, Accepted: true},
	}}
	testkit.Same(t, "newReading", want, got)
}

// Columns are read one by one; words of single letters stand for lines of text.
func TestColumns(t *testing.T) {
	for _, tt := range []struct{ name, picture, want string }{
		{"two columns, not quite level", "a...b\nc....\n....d\ne...f", "a c e b d f"},
		{"a line across both, above and below", "aaaaa\nb...c\nd...e\nfffff", "a b d c e f"},
		{"three", "a...b...c\nd...e...f", "a d b e c f"},
		{"one line is one line", "aaaaa\nb...c\nddddd", "a b c d"},
		{"a line goes through", "a...b\n.ccc.\nd...e", "a b c d e"},
		{"a narrow space", "aa.b\ncc.d", "a b c d"},
		{"panels below each other", "a...b\n\n\n\nc...d", "a b c d"},
		{"panels of columns", "a...b\nc...d\n\n\n\ne...f\ng...h", "a c b d e g f h"},
	} {
		var in []candidate
		for y, line := range strings.Split(tt.picture, "\n") {
			for x, r := range line {
				if r != '.' && (x == 0 || line[x-1] != line[x]) {
					wide := len(line[x:]) - len(strings.TrimLeft(line[x:], string(r)))
					in = append(in, newWord(0, y, string(r), 90, 5*x, 12*y, 5*(x+wide), 12*y+10))
				}
			}
		}
		var got []string
		for _, l := range order(in) {
			for _, w := range l {
				got = append(got, w.Text)
			}
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestLevel(t *testing.T) {
	base := image.Rect(0, 100, 10, 120) // centre 110
	for box, want := range map[image.Rectangle]bool{
		image.Rect(0, 109, 10, 129): true,  // 9 of 20 apart
		image.Rect(0, 110, 10, 130): false, // 10 of 20
		image.Rect(0, 108, 10, 148): true,  // 18 of 40: the larger height counts
		image.Rect(0, 110, 10, 150): false, // 20 of 40
	} {
		if got := level(base, box); got != want {
			t.Errorf("level(%v, %v) = %v, want %v", base, box, got, want)
		}
	}
}

func TestSureLetters(t *testing.T) {
	for text, want := range map[string]int{"ELEVEN AREN": 10, "TWELVE-LETTER?": 12, "5G ñ": 3} {
		if got := sureLetters([]candidate{newWord(0, 1, text, 60, 0, 0, 1, 1),
			newWord(0, 1, "UNSURE", 59, 0, 0, 1, 1)}); got != want {
			t.Errorf("sureLetters(%q) = %d, want %d", text, got, want)
		}
	}
}
