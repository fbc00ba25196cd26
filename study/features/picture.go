// Package features computes numbers of a picture (brightness, colour, contrast, faces) and of a text (words, sentences,
// shares of dictionary words), as papers on memes report them by group. Equal pixels and equal texts give equal numbers
// on every machine: pixels are summed in integers, and each mean is one division. A number that is not defined is NaN
// here, and an empty cell in what is written.
//
// The conversions are those of OpenCV 4.5 for 8-bit pictures, so that the numbers are those of its users' scripts.
package features

import (
	"image"
	"math"
	"math/bits"

	"rehydrate/internal/picture"
)

// PictureColumns names the numbers of Picture, in its order:
//
//	brightness     mean of grey, 0 to 255
//	contrast       population standard deviation of grey, 0 to 127.5
//	value          mean of V, 0 to 255
//	saturation     mean of S, 0 to 255
//	hue            arithmetic mean of H, 0 to 179: what scripts compute, although red is both ends of the scale
//	hue_circular   direction of the mean vector of the angle 2H, weighted by S, 0 to 359 degrees
//	hue_spread     1 less the length of that vector, 0 to 1
//
// The last two are not defined for a picture without colour.
func PictureColumns() []string {
	return []string{"brightness", "contrast", "value", "saturation", "hue", "hue_circular", "hue_spread"}
}

// Picture returns the numbers of a picture's pixels, over white, and its grey plane, from which Faces counts.
func Picture(img image.Image) ([]float64, *image.Gray) {
	rgb := picture.OverWhite(img)
	grey := image.NewGray(rgb.Rect)
	var greys, squares, values, saturations uint64
	var hues [180]uint64    // pixels by H
	var colours [180]uint64 // sum of S by H
	for y := range rgb.Rect.Dy() {
		row := rgb.Pix[y*rgb.Stride:][:4*rgb.Rect.Dx()]
		out := grey.Pix[y*grey.Stride:][:rgb.Rect.Dx()]
		for x := range out {
			r, g, b := row[4*x], row[4*x+1], row[4*x+2]
			l := greyOf(r, g, b)
			h, s, v := hsvOf(r, g, b)
			out[x] = l
			greys += uint64(l)
			squares += uint64(l) * uint64(l)
			values += uint64(v)
			saturations += uint64(s)
			hues[h]++
			colours[h] += uint64(s)
		}
	}
	n := float64(rgb.Rect.Dx() * rgb.Rect.Dy())
	var hueSum uint64
	for h, count := range hues {
		hueSum += uint64(h) * count
	}
	direction, spread := circular(colours)
	return []float64{float64(greys) / n, deviation(uint64(n), greys, squares), float64(values) / n,
		float64(saturations) / n,
		float64(hueSum) / n, direction, spread}, grey
}

// greyOf is OpenCV's COLOR_RGB2GRAY of 8 bits: weights in 1/32768, rounded.
func greyOf(r, g, b uint8) uint8 {
	return uint8((9798*uint32(r) + 19235*uint32(g) + 3735*uint32(b) + 16384) >> 15)
}

// hsvOf is OpenCV's COLOR_RGB2HSV of 8 bits: H in steps of 2 degrees, 0 to 179.
func hsvOf(r, g, b uint8) (h, s, v uint8) {
	v = max(r, g, b)
	d := int32(v - min(r, g, b))
	if d == 0 {
		return 0, 0, v
	}
	var x int32
	switch v { // in a tie red goes before green, and green before blue
	case r:
		x = int32(g) - int32(b)
	case g:
		x = int32(b) - int32(r) + 2*d
	default:
		x = int32(r) - int32(g) + 4*d
	}
	x = (x*divisors[d].hue + 2048) >> 12
	if x < 0 {
		x += 180
	}
	return uint8(x), uint8((d*divisors[v].saturation + 2048) >> 12), v
}

// divisors are OpenCV's tables of 180/(6n) and 255/n, in 1/4096.
var divisors = func() (table [256]struct{ hue, saturation int32 }) {
	for n := 1; n < len(table); n++ {
		table[n].hue = int32(math.RoundToEven(180 * 4096 / (6 * float64(n))))
		table[n].saturation = int32(math.RoundToEven(255 * 4096 / float64(n)))
	}
	return table
}()

// deviation is the population standard deviation of n numbers, from their sum and the sum of their squares.
func deviation(n, sum, squares uint64) float64 {
	// n times the squares less the square of the sum: exact in 128 bits, where a difference of floats would lose the
	// contrast of a nearly flat picture.
	high, low := bits.Mul64(n, squares)
	high2, low2 := bits.Mul64(sum, sum)
	low, borrow := bits.Sub64(low, low2, 0)
	high, _ = bits.Sub64(high, high2, borrow)
	return math.Sqrt(math.Ldexp(float64(high), 64)+float64(low)) / float64(n)
}

// circular returns the direction in degrees, and 1 less the length, of the mean vector of the hues by weight.
func circular(weights [180]uint64) (direction, spread float64) {
	var x, y, all float64
	for h, w := range weights {
		sin, cos := math.Sincos(float64(h) * math.Pi / 90)
		// The conversions keep a machine from fusing product and sum, which rounds otherwise than the others do.
		x += float64(cos * float64(w))
		y += float64(sin * float64(w))
		all += float64(w)
	}
	if all == 0 {
		return math.NaN(), math.NaN()
	}
	direction = math.Mod(math.Atan2(y, x)*180/math.Pi+360, 360)
	return direction, 1 - math.Sqrt(float64(x*x)+float64(y*y))/all
}
