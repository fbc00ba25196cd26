package dedupe

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
)

// The perceptual hash begins with the picture at 64 by 64 pixels. goimagehash makes it with
// nfnt/resize, which takes two thirds of the time of decoding a JPEG. The mean over the
// area of each of the 64 by 64 cells takes a fifth of that, and gives the same hash to
// within two bits.
const (
	cells = 64
	// stripRows is the number of rows that are made 8-bit RGB at a time: enough to be quick,
	// and few enough to stay in the processor's cache.
	stripRows = 8
)

// shrink returns the picture over white at 64 by 64 pixels, each the mean of what lies in
// its cell, pixels that lie in two cells in proportion. The sums are whole numbers: the
// same pixels give the same means whatever they are stored as. b is img's bounds and is
// not empty.
func shrink(img image.Image, b image.Rectangle) *image.RGBA {
	s := shrinker{width: b.Dx(), height: b.Dy(), sums: make([]uint64, cells*cells*3)}
	strip := image.NewRGBA(image.Rect(0, 0, b.Dx(), min(stripRows, b.Dy())))
	white, op := image.NewUniform(color.White), draw.Over
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		op = draw.Src
	}
	for y := 0; y < b.Dy(); y += stripRows {
		if op == draw.Over {
			draw.Draw(strip, strip.Rect, white, image.Point{}, draw.Src)
		}
		rows := min(stripRows, b.Dy()-y)
		draw.Draw(strip, image.Rect(0, 0, b.Dx(), rows), img, image.Pt(b.Min.X, b.Min.Y+y), op)
		for i := range rows {
			s.add(y+i, strip.Pix[i*strip.Stride:][:4*b.Dx()])
		}
	}
	return s.means()
}

// A shrinker adds up the cells of a picture. Lengths are in parts: a pixel is 64 parts
// wide and high and the picture 64 times width parts, so that a cell is width parts wide
// and height parts high.
type shrinker struct {
	width, height int
	row           [cells * 3]uint64 // of the pixels of one row, by cell: channel times parts
	sums          []uint64          // by cell
}

// add adds a row of opaque RGBA pixels.
func (s *shrinker) add(y int, pix []uint8) {
	for c := range cells {
		left, right := c*s.width, (c+1)*s.width
		first, last := left/cells, (right-1)/cells
		into := s.row[3*c : 3*c+3]
		if first == last {
			weigh(into, pix[4*first:], s.width)
			continue
		}
		addUp(into, pix[4*first+4:4*last])
		weighMore(into, pix[4*first:], (first+1)*cells-left)
		weighMore(into, pix[4*last:], right-last*cells)
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

// weigh sets the sums of a cell to one pixel, parts wide.
func weigh(into []uint64, pixel []uint8, parts int) {
	into[0], into[1], into[2] = 0, 0, 0
	weighMore(into, pixel, parts)
}

func weighMore(into []uint64, pixel []uint8, parts int) {
	into[0] += uint64(pixel[0]) * uint64(parts)
	into[1] += uint64(pixel[1]) * uint64(parts)
	into[2] += uint64(pixel[2]) * uint64(parts)
}

// addUp sets the sums of a cell to whole pixels. It adds two at a time, in lanes of 16
// bits, which hold 256 values.
func addUp(into []uint64, pix []uint8) {
	const lanes, most = 0x00ff00ff00ff00ff, 8 * 256
	var red, green, blue uint64
	for len(pix) >= 8 {
		run := pix[:min(len(pix)&^7, most)]
		pix = pix[len(run):]
		var even, odd uint64 // red and blue, green and alpha
		for ; len(run) >= 8; run = run[8:] {
			two := binary.LittleEndian.Uint64(run)
			even += two & lanes
			odd += two >> 8 & lanes
		}
		red += even&0xffff + even>>32&0xffff
		green += odd&0xffff + odd>>32&0xffff
		blue += even>>16&0xffff + even>>48
	}
	if len(pix) > 0 {
		red, green, blue = red+uint64(pix[0]), green+uint64(pix[1]), blue+uint64(pix[2])
	}
	into[0], into[1], into[2] = red*cells, green*cells, blue*cells
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
