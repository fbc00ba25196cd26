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
// high byte counts. A JPEG's colours are those of Go's decoder. docs/formats.md has test vectors.
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
	var clamped *[3][1024]uint32 // nil but for most JPEGs
	if photo != nil && photo.SubsampleRatio == image.YCbCrSubsampleRatio420 && (b.Dx()|b.Min.X)&1 == 0 {
		clamped = clampedColours()
	}
	for y := b.Min.Y; y < b.Max.Y; y += stripe {
		height := min(stripe, b.Max.Y-y)
		switch {
		case clamped != nil:
			for i := range height {
				convert(pixels.Pix[i*pixels.Stride:], photo, y+i, clamped)
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

// clampedColours holds, for red, green and blue of -256 to 767, an opaque pixel with the nearest that a byte can hold.
func clampedColours() *[3][1024]uint32 {
	var c [3][1024]uint32
	for i := range c {
		for v := range c[i] {
			c[i][v] = uint32(min(max(v-256, 0), 255))<<(8*i) | 255<<24
		}
	}
	return &c
}

// convert makes the pixels of a row of a JPEG of which two beside each other have one colour. It gives what draw.Draw gives,
// in less time.
func convert(pix []byte, img *image.YCbCr, y int, clamped *[3][1024]uint32) {
	at, width := img.COffset(img.Rect.Min.X, y), img.Rect.Dx()
	luma, cbs, crs := img.Y[img.YOffset(img.Rect.Min.X, y):][:width], img.Cb[at:], img.Cr[at:]
	for len(luma) >= 2 && len(pix) >= 8 && len(cbs) > 0 && len(crs) > 0 { // the compiler checks no bounds below
		cb, cr := int32(cbs[0])-128, int32(crs[0])-128
		// The factors of color.YCbCrToRGB, and 256 more, so that none is negative.
		red, green, blue := 256<<16+91881*cr, 256<<16-22554*cb-46802*cr, 256<<16+116130*cb
		pixel := func(luma byte) uint64 {
			grey := int32(luma) * 0x10101
			return uint64(clamped[0][uint32(grey+red)>>16&1023] | clamped[1][uint32(grey+green)>>16&1023] | clamped[2][uint32(grey+blue)>>16&1023])
		}
		binary.LittleEndian.PutUint64(pix, pixel(luma[0])|pixel(luma[1])<<32)
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
