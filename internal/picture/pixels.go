package picture

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"image"
	"image/color"
	"image/draw"
)

// PixelDigest returns the SHA-256, in hex, of what an upright picture shows (see Upright), however its file stores it:
// width and height as 32-bit big-endian numbers, then the pixels row by row, each as the bytes red, green, blue
// and alpha. Colours are not multiplied by alpha, a pixel of alpha 0 is four zero bytes, and of a 16-bit sample the
// high byte counts. A JPEG's colours are those of Go's decoder. docs/files.md has test vectors.
func PixelDigest(img image.Image) string {
	b := img.Bounds()
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(b.Dx())), uint32(b.Dy())))
	// A stripe of rows at a time, so that a large picture does not need a copy of itself.
	const stripe = 16
	pixels := image.NewRGBA(image.Rect(0, 0, b.Dx(), stripe))
	opaque, ok := img.(interface{ Opaque() bool })
	whole := ok && opaque.Opaque()
	photo, _ := img.(*image.YCbCr)
	var colours *Colours // nil but for most JPEGs
	if photo != nil && photo.SubsampleRatio == image.YCbCrSubsampleRatio420 && (b.Dx()|b.Min.X)&1 == 0 {
		colours = NewColours()
	}
	for y := b.Min.Y; y < b.Max.Y; y += stripe {
		height := min(stripe, b.Max.Y-y)
		switch {
		case colours != nil:
			for i := range height {
				convert(pixels.Pix[i*pixels.Stride:], photo, y+i, colours)
			}
		case whole:
			// Without transparency the premultiplied colours that draw makes, quickly, are the colours.
			draw.Draw(pixels, image.Rect(0, 0, b.Dx(), height), img, image.Pt(b.Min.X, y), draw.Src)
		default:
			straighten(pixels.Pix[:0], img, y, height)
		}
		h.Write(pixels.Pix[:height*pixels.Stride])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// convert makes the pixels of a row of a JPEG of which two neighbours have one colour. It gives what draw.Draw gives,
// in less time.
func convert(pix []byte, img *image.YCbCr, y int, colours *Colours) {
	at, width := img.COffset(img.Rect.Min.X, y), img.Rect.Dx()
	luma, cbs, crs := img.Y[img.YOffset(img.Rect.Min.X, y):][:width], img.Cb[at:], img.Cr[at:]
	for len(luma) >= 2 && len(pix) >= 8 && len(cbs) > 0 && len(crs) > 0 { // the compiler checks no bounds below
		red, green, blue := tint(cbs[0], crs[0])
		pix[0], pix[1], pix[2] = colours.with(luma[0], red), colours.with(luma[0], green), colours.with(luma[0], blue)
		pix[4], pix[5], pix[6] = colours.with(luma[1], red), colours.with(luma[1], green), colours.with(luma[1], blue)
		pix[3], pix[7] = 255, 255
		luma, pix, cbs, crs = luma[2:], pix[8:], cbs[1:], crs[1:]
	}
}

// straighten appends the colours of height rows from y on to pix, not multiplied by alpha.
func straighten(pix []byte, img image.Image, y, height int) {
	b := img.Bounds()
	for last := y + height; y < last; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			var c color.NRGBA
			switch p := img.At(x, y).(type) {
			case color.NRGBA:
				c = p
			case color.NRGBA64:
				c = color.NRGBA{uint8(p.R >> 8), uint8(p.G >> 8), uint8(p.B >> 8), uint8(p.A >> 8)}
			case color.NYCbCrA:
				// The model's own conversion would round twice.
				c.R, c.G, c.B = color.YCbCrToRGB(p.Y, p.Cb, p.Cr)
				c.A = p.A
			default:
				c = color.NRGBAModel.Convert(p).(color.NRGBA)
			}
			if c.A == 0 {
				c = color.NRGBA{}
			}
			pix = append(pix, c.R, c.G, c.B, c.A)
		}
	}
}
