package layout

import (
	"image"
	"slices"
)

// Spaces are the columns without ink between the letters of a word, from left to right.
//
// They tell where two words were read as one. Letters alone made "A QUITTED" and "ANY TING" of single words. On 338
// memes the ink takes back 18 wrong words, and loses 2 right ones.
type spaces []space

// A space has no ink from top to bottom.
type space struct {
	middle int // in thousandths of the width of the word's ink
	width  int // in pixels of the strip
}

// Where the ink lets a word be cut.
const (
	cutNearTenths = 6   // of a letter's width: how far the space may be from where the letters say
	cutWidePct    = 130 // of the median space of the word: a space between words at least
	cutSurePct    = 180 // the same, where it tells words by itself
)

// allowCut reports whether a word of so many bytes may be cut before one of them: a space wider than those between
// letters is there. Where letters touch, the ink has too few spaces to tell, and the word may be cut anywhere.
func (s spaces) allowCut(offset, length int) bool {
	return 2*len(s) < length || s.wide(offset, length, cutWidePct)
}

// wide reports whether a space of at least a percentage of the median one is where a byte of a word begins.
func (s spaces) wide(offset, length, pct int) bool {
	if len(s) == 0 {
		return false
	}
	widths := make([]int, len(s))
	for i, one := range s {
		widths[i] = one.width
	}
	slices.Sort(widths)
	median := widths[len(widths)/2]
	return slices.ContainsFunc(s, func(one space) bool {
		away := one.middle*length - 1000*offset // in thousandths of a letter
		return max(away, -away) <= 100*cutNearTenths && 100*one.width >= pct*median
	})
}

// spaces lists the columns without ink of a box that has ink at both ends.
func (s strip) spaces(box image.Rectangle) spaces {
	var out spaces
	end := box.Min.X // of the ink before the space
	for x := box.Min.X; x < box.Max.X; x++ {
		if !s.inked(x, box) {
			continue
		}
		if x > end {
			out = append(out, space{500 * (end + x - 2*box.Min.X) / box.Dx(), x - end})
		}
		end = x + 1
	}
	return out
}

// inked reports whether a column has ink in a box.
func (s strip) inked(x int, box image.Rectangle) bool {
	for y := box.Min.Y; y < box.Max.Y; y++ {
		if s.gray.Pix[y*s.gray.Stride+x] < inkBelow {
			return true
		}
	}
	return false
}
