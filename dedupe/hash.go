package dedupe

import (
	"errors"
	"fmt"
	"image"
	"math/bits"
	"runtime"

	"github.com/corona10/goimagehash"
	"github.com/corona10/goimagehash/etcs"
	"github.com/corona10/goimagehash/transforms"

	"rehydrate/internal/picture"
)

// A Hash is the 64-bit perceptual hash of a picture. Bit 63 is the first coefficient.
type Hash struct {
	Bits uint64
	// Flat marks a hash that says nothing about its picture: a single colour, or nearly.
	// Flat pictures all hash alike, so KeepFirst compares them by content only.
	Flat bool
}

// A Hash256 is the 256-bit perceptual hash of a picture, which also tells white
// screenshots apart. Bit 63 of word 0 is the first coefficient.
type Hash256 [4]uint64

// Distance returns the number of differing bits, 0..256.
func (h Hash256) Distance(o Hash256) int {
	d := 0
	for i := range h {
		d += bits.OnesCount64(h[i] ^ o[i])
	}
	return d
}

var errNoPixels = errors.New("hash image: the image has no pixels")

// HashImage returns the 64-bit perceptual hash of img: that of goimagehash v1.1.0 for the picture at 64 by 64 pixels,
// each the mean of its area. Only the pixels count, as 8-bit RGB over white: colour model, origin and container do not.
// It needs 32 bytes of memory for each pixel of the width. The error says that img is nil or has no pixels.
func HashImage(img image.Image) (Hash, error) {
	if img == nil || img.Bounds().Empty() {
		return Hash{}, errNoPixels
	}
	// A picture of the library's working size is taken as it is. Shrinking it first takes less time than the resampling
	// of the library, and gives the same hash to within two bits.
	h, err := goimagehash.PerceptionHash(picture.Shrink(img, img.Bounds()))
	if err != nil {
		return Hash{}, fmt.Errorf("hash image: %w", err)
	}
	return newHash(h.GetHash()), nil
}

// newHash makes a hash of bits. The hash sets a bit where a coefficient is above the median of all 64, and 1,000 of
// 1,000 unrelated photographs have exactly 32 ones. Ties, which only degenerate pictures have, break that.
func newHash(h uint64) Hash { return Hash{Bits: h, Flat: bits.OnesCount64(h) != 32} }

// HashImage256 returns the 256-bit perceptual hash of img under the rules of HashImage.
// It resamples as the library does and costs ten times as much, and four bytes a pixel of
// memory; only images without text need it.
func HashImage256(img image.Image) (Hash256, error) {
	if img == nil || img.Bounds().Empty() {
		return Hash256{}, errNoPixels
	}
	// Width and height must stay equal: the library mixes them up when flattening. It reads transparent pixels as black,
	// ignores the origin of an image that has its working size already, and takes another path for YCbCr, which moves a
	// bit now and then.
	h, err := goimagehash.ExtPerceptionHash(picture.OverWhite(img), 16, 16)
	if err != nil {
		return Hash256{}, fmt.Errorf("hash image: %w", err)
	}
	return Hash256(h.GetHash()), nil
}

// HashKind names what makes the hashes, for fingerprints: stored hashes of another kind
// must not be compared with new ones.
func HashKind() string {
	// Go 1.26 changed the JPEG decoder, and 0.77 % of 64-bit hashes with it.
	return "goimagehash-v1.1.0 phash64 area-mean over-white exif-ignored " + runtime.Version()
}

// HashTurned returns the hashes of img in the eight ways in which it can be turned and mirrored, as it stands first.
// That of a JPEG is made of its brightness alone, which takes less time: of 328 memes 16 had a hash 2 bits from
// HashImage's.
func HashTurned(img image.Image) (turned [8]Hash, err error) {
	if img == nil || img.Bounds().Empty() {
		return turned, errNoPixels
	}
	if photo, ok := img.(*image.YCbCr); ok {
		img = &image.Gray{Pix: photo.Y, Stride: photo.YStride, Rect: photo.Rect}
	}
	grey := make([]float64, picture.Cells*picture.Cells)
	transforms.Rgb2GrayFast(picture.Shrink(img, img.Bounds()), &grey)
	transforms.DCT2DFast64(&grey)
	for way := range turned {
		var waves [64]float64
		for i, v := range transforms.FlattenPixelsFast64(grey, 8, 8) {
			x, y := i%8, i/8
			// Mirroring turns the sign of the waves that are odd in its direction.
			if (x&way+y&(way>>1))&1 != 0 {
				v = -v
			}
			if way&4 != 0 { // across the diagonal
				x, y = y, x
			}
			waves[8*y+x] = v
		}
		median, hash := etcs.MedianOfPixelsFast64(waves[:]), uint64(0)
		for _, v := range waves {
			hash <<= 1
			if v > median {
				hash |= 1
			}
		}
		turned[way] = newHash(hash)
	}
	return turned, nil
}
