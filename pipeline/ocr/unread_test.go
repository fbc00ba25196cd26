package ocr

import (
	"bytes"
	"image"
	"testing"
)

func whiteGray(width, height int) *image.Gray {
	return grayOf(width, bytes.Repeat([]byte{255}, width*height)...)
}

func TestCertainlyRead(t *testing.T) {
	sure := func(line int, text string, confidence float64, listed bool) candidate {
		w := word(0, line, text, confidence, 0, 20*line, 50, 20*line+10)
		w.listed = listed
		return w
	}
	read := certainlyRead([]candidate{
		sure(1, "CERTAIN", 60, true), sure(1, "LINE", 99, true),
		sure(2, "ONE", 99, true), sure(2, "DOUBT", 59.9, true),
		sure(3, "SOME", 99, true), sure(3, "XYZZY", 99, false),
		sure(4, "AN", 99, true), // too short
	})
	if got := texts(read); got != "CERTAIN LINE" {
		t.Errorf("certainlyRead = %q, want the first line alone", got)
	}
}

func TestWithout(t *testing.T) {
	g := grayOf(40, bytes.Repeat([]byte{90}, 40*30)...) // half the size of the original
	for y := 11; y < 19; y++ {                          // a stroke of the letter, inside the box of 10, 10 to 30, 20
		g.Pix[y*g.Stride+15] = 255
	}
	before := bytes.Clone(g.Pix)
	out := without(g, []candidate{word(0, 1, "WORD", 90, 20, 20, 60, 40)}, image.Pt(80, 60))
	for i, v := range out.Pix {
		if v != 90 {
			t.Fatalf("pixel %v is %d, want the 90 around the word", image.Pt(i%40, i/40), v)
		}
	}
	if !bytes.Equal(before, g.Pix) {
		t.Error("the rendered image itself was painted: a second try would read another one")
	}
	edge := without(g, []candidate{word(0, 1, "EDGE", 90, -5, -5, 500, 500)}, image.Pt(80, 60)) // no panic
	if edge.Rect != g.Rect {
		t.Errorf("bounds %v", edge.Rect)
	}
}

func TestLettersInRows(t *testing.T) {
	ink := func(boxes ...image.Rectangle) *image.Gray {
		g := whiteGray(200, 100)
		for _, b := range boxes {
			for y := b.Min.Y; y < b.Max.Y; y++ {
				for x := b.Min.X; x < b.Max.X; x++ {
					g.Pix[y*g.Stride+x] = 0
				}
			}
		}
		return g
	}
	row := func(n, x, y, w, h, step int) (boxes []image.Rectangle) {
		for i := range n {
			boxes = append(boxes, image.Rect(x+i*step, y, x+i*step+w, y+h))
		}
		return boxes
	}
	for _, tt := range []struct {
		name  string
		boxes []image.Rectangle
		want  int
	}{
		{"six letters, four between two others", row(6, 10, 20, 8, 12, 12), 4},
		{"two rows", append(row(5, 10, 20, 8, 12, 12), row(4, 10, 60, 8, 12, 12)...), 5},
		{"two alone", row(2, 10, 20, 8, 12, 12), 0},
		{"too far apart", row(6, 10, 20, 8, 12, 25), 0},
		{"too low", row(6, 10, 20, 8, 6, 12), 0},
		{"too high", row(6, 10, 20, 8, 40, 12), 0},
		{"a staircase", []image.Rectangle{image.Rect(10, 10, 18, 22), image.Rect(22, 24, 30, 36), image.Rect(34, 38, 42, 50)}, 0},
		{"of all heights", []image.Rectangle{image.Rect(10, 20, 18, 28), image.Rect(22, 20, 30, 42), image.Rect(34, 20, 42, 28)}, 0},
		{"nothing", nil, 0},
	} {
		g := ink(tt.boxes...)
		if got := lettersInRows(g); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
		// Light letters on dark are only looked for where the pass is read inverted.
		for _, invert := range []bool{true, false} {
			p := pass{shapes: max(1, tt.want), mode: Mode{Invert: invert}}
			if got := p.worthwhile(negative(g), []candidate{muchRead}); got != (invert && tt.want > 0) {
				t.Errorf("%s, light on dark, inverted %v: worthwhile %v", tt.name, invert, got)
			}
		}
	}
}

// muchRead is a word after which passes with nothing to read are left out.
var muchRead = func() candidate {
	w := word(0, 1, "TWENTY-FOUR-LETTERS-AT-LEASTX", 60, 0, 0, 50, 10)
	w.listed = true
	return w
}()

func TestWorthwhile(t *testing.T) {
	noise := muchRead
	noise.listed = false
	p := pass{unread: true, shapes: 1}
	for _, tt := range []struct {
		read []candidate
		want bool
	}{{[]candidate{muchRead}, false}, {nil, true}, {[]candidate{noise}, true}} {
		if got := p.worthwhile(whiteGray(4, 2), tt.read); got != tt.want {
			t.Errorf("a pass over nothing after %v is worthwhile: %v, want %v", tt.read, got, tt.want)
		}
	}
}

func TestEnough(t *testing.T) {
	words := func(listed, other int, confidence float64) (out []candidate) {
		for range listed {
			w := word(0, 1, "WORD", confidence, 0, 0, 1, 1)
			w.listed = true
			out = append(out, w)
		}
		for range other {
			out = append(out, word(0, 1, "XYZZY", confidence, 0, 0, 1, 1))
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
			t.Errorf("enough of %d listed and %d others at %v = %v, want %v", tt.listed, tt.other, tt.confidence, got, tt.want)
		}
	}
}
