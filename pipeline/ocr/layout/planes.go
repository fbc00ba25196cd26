package layout

import (
	"image"
	"image/draw"

	"rehydrate/internal/picture"
)

// minFrom is the luma from which the minimum plane holds min(R,G,B); below it luma stands in.
const minFrom = 150

// planes are the two grey views of an image that all reading starts from, at full size.
type planes struct {
	luma    *image.Gray // Y
	minimum *image.Gray // M: bright only where all three channels are
}

// newPlanes makes both planes. A YCbCr image (JPEG) gives its Y as decoded; the luma of any other is
// (299 R + 587 G + 114 B) / 1000.
func newPlanes(img image.Image) planes {
	bounds := img.Bounds()
	size := image.Rect(0, 0, bounds.Dx(), bounds.Dy())
	switch src := img.(type) {
	case *picture.Turned:
		p := newPlanes(src.Image)
		return planes{luma: src.Plane(p.luma), minimum: src.Plane(p.minimum)}
	case *image.YCbCr:
		p := planes{luma: image.NewGray(size), minimum: image.NewGray(size)}
		p.fromYCbCr(src)
		return p
	case *image.Gray:
		gray := image.NewGray(size)
		draw.Draw(gray, size, src, bounds.Min, draw.Src)
		return planes{luma: gray, minimum: gray}
	}
	p := planes{luma: image.NewGray(size), minimum: image.NewGray(size)}
	p.fromAny(img)
	return p
}

func (p planes) fromYCbCr(src *image.YCbCr) {
	bounds := src.Rect
	width := bounds.Dx()
	colours := picture.NewColours()
	for y := range bounds.Dy() {
		start := src.YOffset(bounds.Min.X, bounds.Min.Y+y)
		luma := src.Y[start : start+width]
		copy(p.luma.Pix[y*width:], luma)
		minimum := p.minimum.Pix[y*width : (y+1)*width]
		for x, v := range luma {
			// The minimum is at most luma, so below neither passes a threshold of 180, and most pixels of a photo need
			// no colour conversion.
			if v >= minFrom {
				c := src.COffset(bounds.Min.X+x, bounds.Min.Y+y)
				r, g, b := colours.RGB(v, src.Cb[c], src.Cr[c])
				v = min(r, g, b)
			}
			minimum[x] = v
		}
	}
}

// fromAny converts an image of any colour model.
func (p planes) fromAny(img image.Image) {
	eachRow(img, func(y int, row []uint8) {
		luma, minimum := p.luma.Pix[y*p.luma.Stride:], p.minimum.Pix[y*p.minimum.Stride:]
		for x := range len(row) / 4 {
			px := row[4*x : 4*x+3 : 4*x+3]
			r, g, b := int(px[0]), int(px[1]), int(px[2])
			v := uint8((299*r + 587*g + 114*b) / 1000)
			luma[x] = v
			if v >= minFrom {
				v = min(px[0], px[1], px[2])
			}
			minimum[x] = v
		}
	})
}

// eachRow calls f with each row of an image over white, in RGBA.
func eachRow(img image.Image, f func(y int, row []uint8)) {
	// In strips: a whole RGBA copy of the largest image allowed would take 160 MB.
	const rows = 32
	bounds := img.Bounds()
	strip := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), min(rows, bounds.Dy())))
	for top := 0; top < bounds.Dy(); top += rows {
		at := image.Rect(0, 0, bounds.Dx(), min(rows, bounds.Dy()-top))
		// Over white, so that half-transparent pixels are not read as dark.
		draw.Draw(strip, at, image.White, image.Point{}, draw.Src)
		draw.Draw(strip, at, img, bounds.Min.Add(image.Pt(0, top)), draw.Over)
		for y := range at.Dy() {
			f(top+y, strip.Pix[y*strip.Stride:(y+1)*strip.Stride])
		}
	}
}

// colourPlanes makes the two views of an image in which text stands out by its colour alone, at full size: C is how far
// the brightest channel is from the darkest, and X is the brightest channel. A grey image has neither.
//
// C shows saturated letters, red with a black outline or blue on grass, and X black ones on dark red. Only a picture
// where little was read pays for them: of 338 memes 38, and 4 of these gain 13 words for 1 wrong one.
func colourPlanes(img image.Image) map[string]*image.Gray {
	switch src := img.(type) {
	case *image.Gray:
		return nil
	case *picture.Turned:
		planes := colourPlanes(src.Image)
		for name, plane := range planes {
			planes[name] = src.Plane(plane)
		}
		return planes
	}
	size := image.Rectangle{Max: img.Bounds().Size()}
	spread, brightest := image.NewGray(size), image.NewGray(size)
	eachRow(img, func(y int, row []uint8) {
		for x := range size.Dx() {
			px := row[4*x : 4*x+3 : 4*x+3]
			high := max(px[0], px[1], px[2])
			i := y*spread.Stride + x
			spread.Pix[i], brightest.Pix[i] = high-min(px[0], px[1], px[2]), high
		}
	})
	return map[string]*image.Gray{"C": spread, "X": brightest}
}

// maxEnlarge bounds enlargement: a thumbnail blown up further gives no more words.
const maxEnlarge = 4

// scaledSize is the size at which the longer side is long pixels, but at most
// maxEnlarge times the size given; no side is under 1.
func scaledSize(width, height, long int) (int, int) {
	num, den := long, max(width, height)
	if num > maxEnlarge*den {
		num, den = maxEnlarge, 1
	}
	side := func(n int) int { return max(1, (2*n*num+den)/(2*den)) }
	return side(width), side(height)
}

// scale resizes a plane so that its longer side is long pixels (see scaledSize, and picture.Resize).
func scale(src *image.Gray, long int) *image.Gray {
	return picture.Resize(src, image.Pt(scaledSize(src.Rect.Dx(), src.Rect.Dy(), long)))
}

const (
	evenReach = 25 // pixels to each side
	evenGain  = 4
)

// evened makes a plane of how much each pixel differs from the mean around it, evenGain times; 128 is not at all.
func evened(src *image.Gray) *image.Gray {
	width, height := src.Rect.Dx(), src.Rect.Dy()
	dst := image.NewGray(src.Rect)
	columns := make([]int, width) // sums over the rows within reach
	add := func(y, sign int) {
		if y >= 0 && y < height {
			for x, v := range src.Pix[y*src.Stride : y*src.Stride+width] {
				columns[x] += sign * int(v)
			}
		}
	}
	for y := range evenReach {
		add(y, 1)
	}
	for y := range height {
		add(y+evenReach, 1)
		add(y-evenReach-1, -1)
		rows := min(y+evenReach+1, height) - max(y-evenReach, 0)
		sum, left, right := 0, 0, 0 // of columns[left:right]
		for x := range width {
			for ; right < min(x+evenReach+1, width); right++ {
				sum += columns[right]
			}
			for ; left < x-evenReach; left++ {
				sum -= columns[left]
			}
			mean := sum / (rows * (right - left))
			dst.Pix[y*dst.Stride+x] = uint8(min(max(128+evenGain*(int(src.Pix[y*src.Stride+x])-mean), 0), 255))
		}
	}
	return dst
}
