package layout

import (
	"bytes"
	"fmt"
	"image"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
)

func whiteGray(width, height int) *image.Gray {
	return grayOf(width, bytes.Repeat([]byte{255}, width*height)...)
}

// inked is a white picture, lookLong wide, with black boxes.
func inked(height int, boxes ...image.Rectangle) *image.Gray {
	g := whiteGray(lookLong, height)
	for _, b := range boxes {
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				g.Pix[y*g.Stride+x] = 0
			}
		}
	}
	return g
}

// row is n letters of a width and height, from x and y, a step apart.
func row(n, x, y, w, h, step int) (boxes []image.Rectangle) {
	for i := range n {
		boxes = append(boxes, image.Rect(x+i*step, y, x+i*step+w, y+h))
	}
	return boxes
}

// rows is a picture of lines of letters, each so high.
func rows(lines, letters, high int) *image.Gray {
	var boxes []image.Rectangle
	for i := range lines {
		boxes = append(boxes, row(letters, 40, 20+2*high*i, high/2, high, high)...)
	}
	return inked(1000, boxes...)
}

var dark = newRamp(20, 140)

func TestRamp(t *testing.T) {
	white := newRamp(250, 180)
	for _, tt := range []struct{ v, white, dark uint8 }{
		{0, 255, 0}, {20, 255, 0}, {80, 255, 128}, {140, 255, 255}, {180, 255, 255},
		{187, 230, 255}, {215, 128, 255}, {249, 4, 255}, {250, 0, 255}, {255, 0, 255},
	} {
		if white[tt.v] != tt.white || dark[tt.v] != tt.dark {
			t.Errorf("%d: white %d, dark %d, want %d, %d", tt.v, white[tt.v], dark[tt.v], tt.white, tt.dark)
		}
	}
}

// The shapes agree with a plain flood fill on noise of all densities.
func TestShapesAgainstFloodFill(t *testing.T) {
	state := uint32(1)
	for round := range 60 {
		g := whiteGray(5+round%23, 5+round%31)
		for i := range g.Pix {
			state = state*1664525 + 1013904223
			if int(state>>24) < 40+3*round {
				g.Pix[i] = 10
			}
		}
		if want, got := flood(g), newLayer(g, dark).shapes; !slices.Equal(got, want) {
			t.Fatalf("round %d: shapes\n%v\nflood fill\n%v", round, got, want)
		}
	}
}

// flood lists the shapes of a picture, one after the other.
func flood(g *image.Gray) (shapes []shape) {
	done := make([]bool, len(g.Pix))
	for start, v := range g.Pix {
		if v == 255 || done[start] {
			continue
		}
		done[start] = true
		var s shape
		for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
			x, y := queue[0]%g.Stride, queue[0]/g.Stride
			s.box, s.ink = s.box.Union(image.Rect(x, y, x+1, y+1)), s.ink+1
			for k := range 9 {
				p := image.Pt(x+k%3-1, y+k/3-1)
				if at := p.Y*g.Stride + p.X; p.In(g.Rect) && g.Pix[at] != 255 && !done[at] {
					done[at] = true
					queue = append(queue, at)
				}
			}
		}
		shapes = append(shapes, s)
	}
	return shapes
}

func TestLetters(t *testing.T) {
	for size, want := range map[image.Point]bool{
		{5, 6}: true, {5, 5}: false, // pixels at least
		{50, 125}: true, {50, 126}: false, // a quarter of the picture
		{80, 20}: true, {81, 20}: false, // as wide as letters that touch
		{2, 20}: true, {1, 20}: false, // a stroke, and a hair
	} {
		l := newLayer(inked(500, image.Rectangle{Max: size}), dark)
		if got := len(l.letters()) == 1; got != want {
			t.Errorf("%v is a letter: %v, want %v", size, got, want)
		}
	}
	frame := inked(500, image.Rect(0, 0, 100, 2), image.Rect(0, 0, 2, 100), image.Rect(0, 98, 100, 100),
		image.Rect(98, 0, 100, 100))
	if got := newLayer(frame, dark).letters(); len(got) > 0 {
		t.Error("a frame, with next to no ink in its box, is a letter")
	}
}

func TestFindLines(t *testing.T) {
	for _, tt := range []struct {
		name  string
		boxes []image.Rectangle
		want  []int // letters of each line
	}{
		{"a line", row(6, 10, 20, 8, 12, 12), []int{6}},
		{"two lines", append(row(6, 10, 20, 8, 12, 12), row(4, 10, 60, 8, 12, 12)...), []int{6, 4}},
		{"three letters by themselves", row(3, 10, 20, 8, 12, 12), nil},
		{"low letters, a few", row(7, 10, 20, 6, 8, 9), nil},
		{"low letters, a line of them", row(8, 10, 20, 6, 8, 9), []int{8}},
		{"too far apart", row(6, 10, 20, 8, 12, 25), nil},
		{"a word beside", append(row(6, 10, 20, 8, 12, 12), row(2, 100, 20, 8, 12, 12)...), []int{8}},
		{"a part of the line behind a wide space", append(row(4, 10, 20, 8, 12, 12), row(5, 78, 20, 8, 12, 12)...),
			[]int{9}},
		{"two columns", append(row(4, 10, 20, 8, 12, 12), row(4, 200, 20, 8, 12, 12)...), []int{4, 4}},
		{"a short word below", append(row(6, 10, 20, 8, 12, 12), row(2, 30, 40, 8, 12, 12)...), []int{6, 2}},
		{"a short word far below", append(row(6, 10, 20, 8, 12, 12), row(2, 30, 80, 8, 12, 12)...), []int{6}},
		{"a staircase", []image.Rectangle{image.Rect(10, 10, 18, 22), image.Rect(22, 13, 30, 25),
			image.Rect(34, 16, 42, 28),
			image.Rect(46, 19, 54, 31), image.Rect(58, 22, 66, 34)}, nil},
		{"nothing", nil, nil},
	} {
		var got []int
		for _, l := range newLayer(inked(200, tt.boxes...), dark).findLines(2, 500) {
			got = append(got, len(l.letters))
		}
		testkit.Same(t, tt.name, tt.want, got)
	}
}

// TestCut: a strip holds the letters of a line with their fringe and marks, and nothing else of the picture.
func TestCut(t *testing.T) {
	letters := row(6, 40, 40, 20, 40, 30)
	g := inked(300, append(letters, image.Rect(46, 30, 52, 34), image.Rect(0, 90, 400, 110))...) // a dot and a bar
	// fringe, which is no ink
	g.Pix[50*g.Stride+39] = 130
	g.Pix[50*g.Stride+36] = 130 // not next to a letter
	l := newLayer(g, dark)
	lines := l.findLines(2, 500)
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	s := l.cut(lines[0])
	if want := image.Rect(40-4, 30-9, 210+4, 80+17); s.page != want || s.gray.Rect.Dy() != StripHeight {
		t.Errorf("page %v, want %v; strip of %v", s.page, want, s.gray.Rect)
	}
	// As large as it is cut, pixel by pixel.
	l.gray = g
	ink := 0
	for _, v := range s.gray.Pix {
		ink += 255 - int(v)
	}
	full := 255 * (6*20*40 + 6*4) * s.gray.Rect.Dx() * s.gray.Rect.Dy() / (s.page.Dx() * s.page.Dy())
	if 100*ink < 98*full || 100*ink > 102*full {
		t.Errorf("ink %d, want about %d: the letters and the dot", ink, full)
	}
	half := s.gray.Rect
	half.Min.X = half.Dx() / 2
	words, _ := s.place([]word.Raw{{Text: "X", Box: s.gray.Rect, Block: 1}, {Text: "Y", Box: half, Block: 1}},
		lines[0], 7)
	want := []word.Raw{{Text: "X", Box: image.Rect(40, 40, 121, 80), Block: 7},
		{Text: "Y", Box: image.Rect(129, 40, 210, 80), Block: 7}}
	testkit.Same(t, "words as large as the strip, and as half of it", want, words)
}

func TestQueue(t *testing.T) {
	place := func(q *queue) (out []int) {
		for _, t := range q.next(BatchSize) {
			out = append(out, t.layer)
		}
		return out
	}
	line := func(layer, y int) textLine {
		return textLine{layer: layer, letters: make([]int, 4), box: image.Rect(0, y, 100, y+20),
			place: image.Rect(0, y, 100, y+20)}
	}
	read := func(text string, confidence float64, listed bool, y int) []candidate {
		w := newWord(0, 1, text, confidence, 0, y, 100, y+20)
		w.listed = listed
		return []candidate{w}
	}
	for _, tt := range []struct {
		name  string
		words []candidate
		want  []int // the layers of the lines that are read after layer 0 said this
	}{
		{"nothing", nil, []int{1}},
		{"certain", read("WORD", 60, true, 0), nil},
		{"listed, not certain", read("WORD", 59, true, 0), []int{1}},
		{"certain, and a letter of four is missing", read("OUT.", 91, true, 0), []int{1}},
		{"well read, not listed", read("XYZZY", 92, false, 0), nil},
		{"fairly read, not listed", read("XYZZY", 91, false, 0), []int{1}},
		{"well read, but too little", read("XY", 99, false, 0), []int{1}},
	} {
		q := &queue{lines: []textLine{line(0, 0), line(5, 100), line(1, 0)}}
		testkit.Same(t, "the first lines, which have nothing to do with each other", []int{0, 5}, place(q))
		q.record(line(0, 0), tt.words)
		testkit.Same(t, tt.name, tt.want, place(q))
	}
	q := &queue{lines: []textLine{line(0, 0), line(1, 5), line(2, 0), line(3, 0), line(4, 3)}}
	var all []int
	for batch := place(q); len(batch) > 0; batch = place(q) {
		all = append(all, batch...)
		q.record(line(0, 0), nil)
	}
	testkit.Same(t, "what is read of one place", []int{0, 1, 2}, all)

	q = &queue{}
	for i := range 2 * stripsMost {
		q.lines = append(q.lines, line(0, 30*i))
	}
	n := 0
	for batch := place(q); len(batch) > 0; batch = place(q) {
		n += len(batch)
	}
	if n != stripsMost {
		t.Errorf("%d lines of noise were read, want %d", n, stripsMost)
	}
}

// TestNewQueue has lines of all looks, the most promising first.
func TestNewQueue(t *testing.T) {
	g := inked(400, slices.Concat(row(20, 40, 40, 10, 20, 16), row(8, 40, 200, 10, 20, 16))...)
	q := newQueue(planes{g, g})
	var got []string
	for _, l := range q.lines {
		got = append(got, fmt.Sprint(l.layer, " ", len(l.letters)))
	}
	testkit.Same(t, "lines", []string{"2 20", "4 20", "2 8", "4 8"}, got)
}

// What is much lower than the text of a picture is not accepted, without a sure word beside it sooner.
func TestDropSmall(t *testing.T) {
	at := func(text string, x, y, high int) candidate {
		w := newWord(0, y, text, 99, x, y, x+50, y+high)
		w.listed = true
		return w
	}
	r := newReading([]candidate{at("CAPTION", 0, 0, 40), at("CAPTION", 60, 0, 40), at("CAPTION", 0, 100, 40),
		at("CAPTION", 0, 200, 40),
		at("LOW", 0, 300, 29), at("LOWER", 0, 400, 22), at("LOWER", 60, 400, 22), at("LOWEST", 0, 500, 21),
		at("LOWEST", 60, 500, 21)},
		image.Point{}, testLexicon("CAPTION LOW LOWER LOWEST"))
	if want := "CAPTION CAPTION\nCAPTION\nCAPTION\nLOWER LOWER"; r.Text != want {
		t.Errorf("Text = %q, want %q", r.Text, want)
	}
}

// A word without ascenders is as large as those next to it, which are higher.
func TestDropSmallCountsLetters(t *testing.T) {
	at := func(text string, x, y, high int) candidate {
		w := newWord(0, y, text, 99, x, y, x+50, y+high)
		w.listed = true
		return w
	}
	r := newReading([]candidate{at("CAPTION", 0, 0, 40), at("CAPTION", 60, 0, 40), at("CAPTION", 0, 100, 40),
		at("CAPTION", 60, 100, 40),
		at("LINE", 0, 200, 30), at("more", 60, 210, 17), at("most", 120, 210, 17), at("sum", 180, 214, 14),
		at("LINE", 0, 300, 22), at("more", 60, 304, 17)},
		image.Point{}, testLexicon("CAPTION LINE MORE MOST SUM"))
	if want := "CAPTION CAPTION\nCAPTION CAPTION\nLINE more\nLINE more"; r.Text != want {
		t.Errorf("Text = %q, want %q", r.Text, want)
	}
}

// A line without a sure word of three letters has to be read well.
func TestNoise(t *testing.T) {
	l := testLexicon("WORD")
	for _, tt := range []struct {
		text       string
		confidence float64
		want       bool
	}{{"eeee", 79, true}, {"eeee", 80, false}, {"WORD", 60, false}, {"WORD", 59, true}, {"HE", 79, true}, {"", 0, true}} {
		w := newWord(0, 1, tt.text, tt.confidence, 0, 0, 1, 1)
		w.listed = l.listed(tt.text)
		if got := noise([]candidate{w}); got != tt.want {
			t.Errorf("noise of %q at %v = %v, want %v", tt.text, tt.confidence, got, tt.want)
		}
	}
	if !noise(nil) {
		t.Error("nothing is text")
	}
}

func TestEnough(t *testing.T) {
	words := func(listed, other int, confidence float64) (out []candidate) {
		for range listed {
			w := newWord(0, 1, "WORD", confidence, 0, 0, 1, 1)
			w.listed = true
			out = append(out, w)
		}
		for range other {
			out = append(out, newWord(0, 1, "XYZZY", confidence, 0, 0, 1, 1))
		}
		return out
	}
	for _, tt := range []struct {
		listed, other int
		confidence    float64
		want          bool
	}{
		{4, 0, 60, true}, {3, 0, 99, false}, {4, 0, 59, false}, {7, 3, 90, true}, {4, 2, 90, false}, {0, 9, 90, false},
	} {
		if got := enough(words(tt.listed, tt.other, tt.confidence)); got != tt.want {
			t.Errorf("enough of %d listed and %d others at %v = %v, want %v", tt.listed, tt.other, tt.confidence, got,
				tt.want)
		}
	}
}
