package picture

import (
	"image"
	"image/draw"
	"slices"
)

// Cells is how many pixels high and wide the pictures are that Shrink returns.
const Cells = 64

// OverWhite returns the picture as opaque RGBA with its origin at (0, 0).
func OverWhite(img image.Image) *image.RGBA {
	b := img.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, img, b.Min, draw.Over)
	return dst
}

// Shrink returns the picture over white at Cells by Cells pixels, each the mean of what lies in its cell, pixels that
// lie in two cells in proportion. b is img's bounds and is not empty. Perceptual hashes begin with it, so that no bit
// of it may change. It needs 32 bytes of memory for each pixel of the width.
func Shrink(img image.Image, b image.Rectangle) *image.RGBA {
	if grey, ok := img.(*image.Gray); ok {
		small := image.NewGray(image.Rect(0, 0, Cells, Cells))
		areaMeans(small, grey)
		dst := image.NewRGBA(small.Rect)
		draw.Draw(dst, dst.Rect, small, image.Point{}, draw.Src)
		return dst
	}
	s := shrinker{width: b.Dx(), height: b.Dy(), pixels: make([]uint64, b.Dx())}
	if photo, ok := img.(*image.YCbCr); ok && b.Min.X == 0 {
		colours := NewColours()
		for y := range b.Dy() {
			s.convert(photo, b.Min.Y+y, colours)
			s.add(y)
		}
		return s.means()
	}
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
			for x := range s.pixels {
				p := strip.Pix[i*strip.Stride+4*x:][:3]
				s.pixels[x] += packed(p[0], p[1], p[2])
			}
			s.add(y + i)
		}
	}
	return s.means()
}

// lane is how many bits of a number a colour takes, so that one addition adds red, green and blue of up to maxWhole
// pixels.
const (
	lane     = 21
	maxWhole = 1 << lane / 256
	maxRows  = 64 // of the rows that are added up before their pixels are
)

func packed(red, green, blue uint8) uint64 {
	return uint64(red) | uint64(green)<<lane | uint64(blue)<<(2*lane)
}

// A shrinker adds up the cells of a picture, in whole numbers. Lengths are in parts: a pixel is 64 parts wide and high,
// so that a cell is width parts wide and height parts high.
type shrinker struct {
	width, height int
	pixels        []uint64          // packed sums of rows that were not added to the cells yet
	rows          int               // how many
	row           [Cells * 3]uint64 // of them together, by cell: channel times parts
	sums          [Cells * Cells * 3]uint64
}

// convert adds a row of a JPEG to pixels. It gives what draw.Draw gives, in half of the time.
func (s *shrinker) convert(img *image.YCbCr, y int, colours *Colours) {
	shift := 0 // so many pixels beside each other have one colour: 1, 2 or 4
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio422:
		shift = 1
	case image.YCbCrSubsampleRatio410, image.YCbCrSubsampleRatio411:
		shift = 2
	}
	at := img.COffset(0, y)
	cbs, crs := img.Cb[at:], img.Cr[at:]
	var red, green, blue int32
	for x, luma := range img.Y[img.YOffset(0, y):][:len(s.pixels)] {
		if c := x >> shift; x&(1<<shift-1) == 0 {
			red, green, blue = tint(cbs[c], crs[c])
		}
		s.pixels[x] += packed(colours.with(luma, red), colours.with(luma, green), colours.with(luma, blue))
	}
}

// add adds the rows of pixels to the cells, of which y is the last.
func (s *shrinker) add(y int) {
	s.rows++
	// Rows that lie in one cell whole are added up first, for that takes less time than the cells do.
	if s.rows < maxRows && y*Cells/s.height == ((y+2)*Cells-1)/s.height {
		return
	}
	for c := range Cells {
		left, right := c*s.width, (c+1)*s.width
		var red, green, blue uint64
		take := func(sum uint64, parts int) {
			const one = 1<<lane - 1
			red += uint64(parts) * (sum & one)
			green += uint64(parts) * (sum >> lane & one)
			blue += uint64(parts) * (sum >> (2 * lane))
		}
		first, last := left/Cells, (right-1)/Cells
		take(s.pixels[first], min(right, (first+1)*Cells)-left)
		if last > first {
			take(s.pixels[last], right-last*Cells)
		}
		// Most pixels lie in one cell whole: multiplying their sum takes half the time of multiplying each.
		for whole := range slices.Chunk(s.pixels[min(first+1, last):last], maxWhole/maxRows) {
			sum := uint64(0)
			for _, p := range whole {
				sum += p
			}
			take(sum, Cells)
		}
		s.row[3*c], s.row[3*c+1], s.row[3*c+2] = red, green, blue
	}
	top, bottom := y*Cells, (y+1)*Cells
	for c := top / s.height; c*s.height < bottom; c++ {
		parts := uint64(min(bottom, (c+1)*s.height) - max(top, c*s.height))
		into := s.sums[c*Cells*3 : (c+1)*Cells*3]
		for i, v := range s.row {
			into[i] += parts * v
		}
	}
	clear(s.pixels)
	s.rows = 0
}

// means returns the picture of the cells, to the nearest 8-bit values.
func (s *shrinker) means() *image.RGBA {
	dst := image.NewRGBA(image.Rect(0, 0, Cells, Cells))
	area := uint64(s.width) * uint64(s.height)
	for c := range Cells * Cells {
		for channel := range 3 {
			dst.Pix[4*c+channel] = uint8((s.sums[3*c+channel] + area/2) / area)
		}
		dst.Pix[4*c+3] = 255
	}
	return dst
}
