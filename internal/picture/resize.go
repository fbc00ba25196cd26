package picture

import "image"

// Resize returns a grey picture, whose origin is (0, 0), at that size: down by the mean over the exact area that each
// pixel covers, up by linear interpolation between the centres of pixels. Integer arithmetic throughout: the same
// pixels on every machine. A picture that has the size already is returned as it is.
func Resize(src *image.Gray, size image.Point) *image.Gray {
	if src.Rect.Size() == size {
		return src
	}
	dst := image.NewGray(image.Rectangle{Max: size})
	if size.X <= src.Rect.Dx() && size.Y <= src.Rect.Dy() {
		areaMeans(dst, src)
	} else {
		Interpolate(dst, src, tapsOf(src.Rect.Dx(), size.X), tapsOf(src.Rect.Dy(), size.Y))
	}
	return dst
}

// areaMeans averages over the exact area that each pixel covers. Shrink does so for pictures of three colours, which it
// adds up in one number: whole rows first, since the weight of a row would overflow it. For one colour, weighing the
// rows takes less time.
func areaMeans(dst, src *image.Gray) {
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

// A Tap is a place between two pixels of a row or a column.
type Tap struct {
	At, Next int    // the pixels; they may be the same one
	Weight   uint32 // how far it is from At to Next, 0 to 256
}

// tapsOf spreads to taps evenly over from pixels, the edge repeated outwards. Weights are rounded half up.
func tapsOf(from, to int) []Tap {
	taps := make([]Tap, to)
	for i := range taps {
		at := max(0, (2*i+1)*from-to) // in units of 1/(2*to), from the first centre
		low := min(at/(2*to), from-1)
		taps[i] = Tap{low, min(low+1, from-1), uint32((256*(at%(2*to)) + to) / (2 * to))}
	}
	return taps
}

// Interpolate fills dst with the grey values of src at the taps, one for each column and each row of dst, rounded to
// the nearest. How the taps lie is the caller's to say, as libraries round their weights in different ways.
func Interpolate(dst, src *image.Gray, across, down []Tap) {
	width := len(across)
	rows := [2][]uint32{make([]uint32, width), make([]uint32, width)}
	have := [2]int{-1, -1} // which row of src each holds
	row := func(y int) []uint32 {
		out := rows[y%2][:len(across)]
		if have[y%2] != y {
			have[y%2] = y
			line := src.Pix[y*src.Stride:]
			for x, t := range across {
				out[x] = uint32(line[t.At])*(256-t.Weight) + uint32(line[t.Next])*t.Weight
			}
		}
		return out
	}
	for y, t := range down {
		a, b := row(t.At)[:width], row(t.Next)[:width] // the compiler checks no bounds below
		near, far := 256-t.Weight, t.Weight
		out := dst.Pix[y*dst.Stride:][:width]
		for x := range out {
			out[x] = uint8((a[x]*near + b[x]*far + 1<<15) >> 16)
		}
	}
}
