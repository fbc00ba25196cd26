package dedupe

import (
	"image"
	"image/draw"
)

// cells is how many pixels high and wide the picture is that the perceptual hash begins with.
const cells = 64

// shrink returns the picture over white at 64 by 64 pixels, each the mean of what lies in its cell, pixels that lie in
// two cells in proportion. b is img's bounds and is not empty.
func shrink(img image.Image, b image.Rectangle) *image.RGBA {
	// This takes less time than the resampling of goimagehash, and gives the same hash to within two bits.
	s := shrinker{width: b.Dx(), height: b.Dy()}
	// So many rows are made 8-bit RGB at a time: enough to be quick, and few enough for the processor's cache.
	const stripRows = 8
	strip := image.NewRGBA(image.Rect(0, 0, b.Dx(), min(stripRows, b.Dy())))
	op := draw.Over
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		op = draw.Src
	}
	for y := 0; y < b.Dy(); y += stripRows {
		if op == draw.Over {
			draw.Draw(strip, strip.Rect, image.White, image.Point{}, draw.Src)
		}
		rows := min(stripRows, b.Dy()-y)
		draw.Draw(strip, image.Rect(0, 0, b.Dx(), rows), img, image.Pt(b.Min.X, b.Min.Y+y), op)
		for i := range rows {
			s.add(y+i, strip.Pix[i*strip.Stride:][:4*b.Dx()])
		}
	}
	return s.means()
}

// A shrinker adds up the cells of a picture, in whole numbers. Lengths are in parts: a pixel is 64 parts wide and high,
// so that a cell is width parts wide and height parts high.
type shrinker struct {
	width, height int
	row           [cells * 3]uint64 // of the pixels of one row, by cell: channel times parts
	sums          [cells * cells * 3]uint64
}

// add adds a row of opaque RGBA pixels.
func (s *shrinker) add(y int, pix []uint8) {
	for c := range cells {
		left, right := c*s.width, (c+1)*s.width
		var red, green, blue uint64
		take := func(x, parts int) {
			pixel := pix[4*x : 4*x+3]
			red += uint64(parts * int(pixel[0]))
			green += uint64(parts * int(pixel[1]))
			blue += uint64(parts * int(pixel[2]))
		}
		first, last := left/cells, (right-1)/cells
		// Most pixels lie in one cell whole: multiplying their sum takes half the time of multiplying each.
		for whole := pix[4*min(first+1, last) : 4*last]; len(whole) > 3; whole = whole[4:] {
			red, green, blue = red+uint64(whole[0]), green+uint64(whole[1]), blue+uint64(whole[2])
		}
		red, green, blue = red*cells, green*cells, blue*cells
		take(first, min(right, (first+1)*cells)-left)
		if last > first {
			take(last, right-last*cells)
		}
		s.row[3*c], s.row[3*c+1], s.row[3*c+2] = red, green, blue
	}
	top, bottom := y*cells, (y+1)*cells
	for c := top / s.height; c*s.height < bottom; c++ {
		parts := uint64(min(bottom, (c+1)*s.height) - max(top, c*s.height))
		into := s.sums[c*cells*3 : (c+1)*cells*3]
		for i, v := range s.row {
			into[i] += parts * v
		}
	}
}

// means returns the picture of the cells, to the nearest 8-bit values.
func (s *shrinker) means() *image.RGBA {
	dst := image.NewRGBA(image.Rect(0, 0, cells, cells))
	area := uint64(s.width) * uint64(s.height)
	for c := range cells * cells {
		for channel := range 3 {
			dst.Pix[4*c+channel] = uint8((s.sums[3*c+channel] + area/2) / area)
		}
		dst.Pix[4*c+3] = 255
	}
	return dst
}
