package picture

import (
	"image"
	"image/color"
)

// AsLibwebp returns img, decoded from body, in the colours that libwebp gives, and with it browsers, Pillow and OpenCV:
// the brightness of a lossy WebP goes from 16 to 235, and its chroma is interpolated between pixels. Go's decoder gives
// the same samples, but they are read as those of a JPEG. Of any other format it is img itself.
//
// Digests of pixels and perceptual hashes are made of what Go's decoder gives, as those in releases are.
func AsLibwebp(img image.Image, body []byte) image.Image {
	if sniff(body) != "webp" {
		return img
	}
	switch samples := img.(type) {
	case *image.YCbCr:
		return &lossyWebP{img, samples, nil}
	case *image.NYCbCrA:
		return &lossyWebP{img, &samples.YCbCr, samples}
	}
	return img
}

// A lossyWebP is a picture of samples of 4:2:0.
type lossyWebP struct {
	image.Image
	samples *image.YCbCr
	alpha   *image.NYCbCrA // nil for an opaque one
}

func (w *lossyWebP) ColorModel() color.Model { return color.NRGBAModel }

func (w *lossyWebP) At(x, y int) color.Color {
	s := w.samples
	if !image.Pt(x, y).In(s.Rect) {
		return color.NRGBA{}
	}
	column, beside := chromaOf(x, s.Rect.Max.X)
	row, below := chromaOf(y, s.Rect.Max.Y)
	near, side, over, far := row*s.CStride+column, row*s.CStride+beside, below*s.CStride+column, below*s.CStride+beside
	chroma := func(plane []uint8) int {
		n, a, b, f := int(plane[near]), int(plane[side]), int(plane[over]), int(plane[far])
		return ((n+3*a+3*b+f+8)>>3 + n) >> 1 // nine parts of 16 are n
	}
	c := libwebpColour(int(s.Y[s.YOffset(x, y)]), chroma(s.Cb), chroma(s.Cr))
	if w.alpha != nil {
		c.A = w.alpha.A[w.alpha.AOffset(x, y)]
	}
	return c
}

// chromaOf returns which sample of chroma a pixel of a row or column lies in, and the one on its other side: itself at
// the edge.
func chromaOf(at, size int) (near, far int) {
	near, far = at/2, at/2-1
	if at&1 != 0 {
		far = near + 1
	}
	return near, min(max(far, 0), (size-1)/2)
}

// libwebpColour is VP8YUVToR, G and B of libwebp's yuv.h: BT.601 in 1/16384, of which 8 bits are cut off before the sum
// and 6 after it.
func libwebpColour(luma, cb, cr int) color.NRGBA {
	times := func(v, factor int) int { return v * factor >> 8 }
	clip := func(v int) uint8 { return uint8(min(max(v>>6, 0), 255)) }
	l := times(luma, 19077)
	return color.NRGBA{clip(l + times(cr, 26149) - 14234), clip(l - times(cb, 6419) - times(cr, 13320) + 8708),
		clip(l + times(cb, 33050) - 17685), 255}
}
