package layout

import (
	"cmp"
	"image"

	"rehydrate/internal/picture"
	"rehydrate/internal/word"
)

// A strip is the picture of one line: black on white, StripHeight pixels high.
type strip struct {
	gray *image.Gray
	page image.Rectangle // what it shows, in pixels of the layer
}

const (
	// StripHeight is the height of every strip in pixels.
	StripHeight = 36 // as high as Tesseract makes every line, so it scales none, and its time goes by the columns
	// StripWidth is the width of a strip at most, in pixels. A longer line is made narrower.
	StripWidth = 4096

	// Marks (dots, apostrophes, commas) are the other shapes near a line.
	markInk                      = 2 // pixels at least
	markWide                     = 2 // times the height of a letter at most
	markAsidePart                = 1 // the height of a letter over their distance
	markAbovePart, markBelowPart = 3, 4

	// The margins of a strip, of the height of a letter: room for descenders, and aside less than a space takes, which
	// would be read as a mark.
	marginAbovePct, marginBelowPct, marginAsidePct = 20, 40, 12
)

// cut makes the strip of a line: its letters and marks on white, and nothing else of the picture.
func (l *layer) cut(t textLine) strip {
	member := map[int32]bool{}
	for _, n := range t.letters {
		member[int32(n)] = true
	}
	box := l.addMarks(t, member)
	aside := max(1, marginAsidePct*t.high/100)
	page := image.Rect(box.Min.X-aside, box.Min.Y-(marginAbovePct*t.high/100+1),
		box.Max.X+aside, box.Max.Y+marginBelowPct*t.high/100+1)
	g := image.NewGray(image.Rectangle{Max: page.Size()})
	for i := range g.Pix {
		g.Pix[i] = 255
	}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for _, s := range l.spans[l.rows[y]:l.rows[y+1]] {
			if member[s.shape] {
				l.copyAround(g, page, y, s)
			}
		}
	}
	width := max(1, (2*page.Dx()*StripHeight+page.Dy())/(2*page.Dy()))
	return strip{picture.Resize(g, image.Pt(min(width, StripWidth), StripHeight)), page}
}

// addMarks adds the small shapes around a line to its members and returns the box of all.
func (l *layer) addMarks(t textLine, member map[int32]bool) image.Rectangle {
	box := t.box
	near := image.Rect(box.Min.X-t.high/markAsidePart, box.Min.Y-t.high/markAbovePart,
		box.Max.X+t.high/markAsidePart, box.Max.Y+t.high/markBelowPart).Intersect(l.gray.Rect)
	for y := near.Min.Y; y < near.Max.Y; y++ {
		for _, s := range l.spans[l.rows[y]:l.rows[y+1]] {
			if int(s.left) >= near.Max.X || int(s.right) <= near.Min.X || member[s.shape] {
				continue
			}
			mark := l.shapes[s.shape]
			if mark.ink >= markInk && mark.box.In(near) && mark.box.Dx() <= markWide*t.high && !l.used[s.shape] {
				member[s.shape] = true
				box = box.Union(mark.box)
			}
		}
	}
	return box
}

// copyAround copies a span and the pixels next to it: the grey fringe belongs to the letters.
func (l *layer) copyAround(to *image.Gray, page image.Rectangle, row int, s span) {
	from, until := max(int(s.left)-1, 0), min(int(s.right)+1, l.gray.Rect.Dx())
	for y := max(row-1, 0); y <= min(row+1, l.gray.Rect.Dy()-1); y++ {
		in := l.gray.Pix[y*l.gray.Stride+from : y*l.gray.Stride+until]
		out := to.Pix[(y-page.Min.Y)*to.Stride+from-page.Min.X:]
		for i, v := range in {
			out[i] = l.ramp[v]
		}
	}
}

// place moves words of a strip to their place in the image's layer, and makes them one block of that number. It also
// returns the spaces in the ink of each.
func (s strip) place(words []word.Raw, line textLine, number int) (out []word.Raw, ink []spaces) {
	for i, w := range words {
		// The engine gives some words the box of all that follow, or the height of the strip.
		if i+1 < len(words) && words[i+1].Box.Min.X > w.Box.Min.X {
			w.Box.Max.X = min(w.Box.Max.X, words[i+1].Box.Min.X)
		}
		inked := s.ink(w.Box)
		ink = append(ink, s.spaces(inked))
		box := rescaleBox(inked, s.gray.Rect.Size(), s.page.Size()).Add(s.page.Min)
		box.Min.Y, box.Max.Y = max(box.Min.Y, line.box.Min.Y), min(box.Max.Y, line.box.Max.Y)
		w.Box, w.Block = box.Add(line.shift), number
		out = append(out, w)
	}
	return out, ink
}

// ink is the part of a box that has ink in it, or the box where it has none.
func (s strip) ink(box image.Rectangle) image.Rectangle {
	var ink image.Rectangle
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if s.gray.Pix[y*s.gray.Stride+x] < inkBelow {
				ink = ink.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return cmp.Or(ink, box)
}
