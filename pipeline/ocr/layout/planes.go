package layout

import (
	"image"
	"image/color"
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
				r, g, b := color.YCbCrToRGB(v, src.Cb[c], src.Cr[c])
				v = min(r, g, b)
			}
			minimum[x] = v
		}
	}
}

// fromAny converts an image of any colour model.
func (p planes) fromAny(img image.Image) {
	// In strips: a whole RGBA copy of the largest image allowed would take 160 MB.
	const rows = 32
	bounds := img.Bounds()
	width := bounds.Dx()
	strip := image.NewRGBA(image.Rect(0, 0, width, min(rows, bounds.Dy())))
	for top := 0; top < bounds.Dy(); top += rows {
		n := min(rows, bounds.Dy()-top)
		at := image.Rect(0, 0, width, n)
		// Over white, so that half-transparent pixels are not read as dark.
		draw.Draw(strip, at, image.White, image.Point{}, draw.Src)
		draw.Draw(strip, at, img, bounds.Min.Add(image.Pt(0, top)), draw.Over)
		luma, minimum := p.luma.Pix[top*width:], p.minimum.Pix[top*width:]
		for i := range width * n {
			px := strip.Pix[4*i : 4*i+3 : 4*i+3]
			r, g, b := int(px[0]), int(px[1]), int(px[2])
			v := uint8((299*r + 587*g + 114*b) / 1000)
			luma[i] = v
			if v >= minFrom {
				v = min(px[0], px[1], px[2])
			}
			minimum[i] = v
		}
	}
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

// scale resizes a plane so that its longer side is long pixels (see scaledSize).
func scale(src *image.Gray, long int) *image.Gray {
	return resize(src, image.Pt(scaledSize(src.Rect.Dx(), src.Rect.Dy(), long)))
}

// resize resizes a picture: down by area average, up by linear interpolation. Integer arithmetic throughout: the same
// pixels on every machine. What has the size already is returned as it is.
func resize(src *image.Gray, size image.Point) *image.Gray {
	if src.Rect.Size() == size {
		return src
	}
	dst := image.NewGray(image.Rectangle{Max: size})
	if size.X <= src.Rect.Dx() && size.Y <= src.Rect.Dy() {
		shrink(dst, src)
	} else {
		enlarge(dst, src)
	}
	return dst
}

// shrink averages over the exact area each pixel covers.
func shrink(dst, src *image.Gray) {
	// In units of 1/w of a source column every output column covers width units, so all weights are whole.
	width, height := src.Rect.Dx(), src.Rect.Dy()
	w, h := dst.Rect.Dx(), dst.Rect.Dy()
	area := uint64(width) * uint64(height)
	columns := make([]uint32, width) // at most 255 * height: fits up to 16 million rows
	for y := range h {
		clear(columns)
		for top, end := y*height, (y+1)*height; top < end; {
			row := top / h
			next := min((row+1)*h, end)
			weight := uint32(next - top)
			for x, v := range src.Pix[row*src.Stride : row*src.Stride+width] {
				columns[x] += weight * uint32(v)
			}
			top = next
		}
		out := dst.Pix[y*dst.Stride : y*dst.Stride+w]
		column, left := 0, 0 // left: where this output column starts, in units
		for x := range out {
			var sum uint64
			for end := (x + 1) * width; left < end; {
				next := min((column+1)*w, end)
				sum += uint64(next-left) * uint64(columns[column])
				left = next
				if left == (column+1)*w {
					column++
				}
			}
			out[x] = uint8((sum + area/2) / area)
		}
	}
}

// enlarge interpolates between the centres of source pixels, with weights in parts of 256.
func enlarge(dst, src *image.Gray) {
	w, h := dst.Rect.Dx(), dst.Rect.Dy()
	columns := make([]sample, w)
	for x := range columns {
		columns[x] = sampleAt(x, w, src.Rect.Dx())
	}
	between := make([]uint32, src.Rect.Dx()) // a row between two of the source, in parts of 256
	for y := range h {
		row := sampleAt(y, h, src.Rect.Dy())
		upper, lower := src.Pix[row.low*src.Stride:], src.Pix[row.high*src.Stride:]
		for x := range between {
			between[x] = uint32(upper[x])*(256-row.part) + uint32(lower[x])*row.part
		}
		out := dst.Pix[y*dst.Stride : y*dst.Stride+w]
		for x, c := range columns {
			out[x] = uint8((between[c.low]*(256-c.part) + between[c.high]*c.part + 1<<15) >> 16)
		}
	}
}

// A sample is a place between two source pixels, part of 256 of the way to the higher one.
type sample struct {
	low, high int
	part      uint32
}

func sampleAt(i, target, source int) sample {
	at := max(0, (2*i+1)*source-target) // in units of 1/(2*target), from the first centre
	low := min(at/(2*target), source-1)
	return sample{low: low, high: min(low+1, source-1), part: uint32((256*(at%(2*target)) + target) / (2 * target))}
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
