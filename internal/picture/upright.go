package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"slices"
)

// Upright returns img, decoded from body, as its EXIF orientation says it is to be seen: turned and mirrored, with its
// corner at the origin. Go's decoders leave that to the caller. Without a valid orientation it is img itself.
func Upright(img image.Image, body []byte) image.Image {
	if sniff(body) != "jpeg" {
		return img // the orientation of a PNG or WebP is not honoured by browsers either
	}
	for marker, content := range jpegSegments(body) {
		if marker == mSOS { // EXIF stands before the scan
			break
		}
		if o := orientation(content); marker == mAPP1 && o > 1 {
			return &Turned{Image: img, orientation: o}
		}
	}
	return img
}

// Turned is an image seen by an EXIF orientation, 2 to 8.
type Turned struct {
	image.Image
	orientation int
}

func (t *Turned) Bounds() image.Rectangle {
	size := t.Image.Bounds().Size()
	if t.orientation >= 5 { // width and height change places
		size.X, size.Y = size.Y, size.X
	}
	return image.Rectangle{Max: size}
}

func (t *Turned) At(x, y int) color.Color {
	b := t.Image.Bounds()
	p := unturn(t.orientation, x, y, b.Dx(), b.Dy()).Add(b.Min)
	return t.Image.At(p.X, p.Y)
}

// Plane returns the upright copy of a plane of the stored image.
func (t *Turned) Plane(g *image.Gray) *image.Gray {
	width, height := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(t.Bounds())
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			p := unturn(t.orientation, x, y, width, height)
			out.Pix[y*out.Stride+x] = g.Pix[p.Y*g.Stride+p.X]
		}
	}
	return out
}

// unturn tells where in a stored image of w x h pixels the pixel x, y of the upright one is.
func unturn(orientation, x, y, w, h int) image.Point {
	if orientation >= 5 { // 6 and 8 are cameras that were held upright, the others mirrored ones
		x, y = y, x
	}
	switch orientation {
	case 2, 3, 7, 8:
		x = w - 1 - x
	}
	switch orientation {
	case 3, 4, 6, 7:
		y = h - 1 - y
	}
	return image.Pt(x, y)
}

// orientation returns how a picture is to be turned, 1 to 8, as the content of a JPEG's APP1 segment says in the
// first directory of its EXIF; 0 when it does not say so. See EXIF 2.32, 4.6.4, tag 0x0112.
func orientation(segment []byte) int {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' { // "II", else "MM"
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if order.Uint16(tiff[2:]) != 42 || at+2 > int64(len(tiff)) {
		return 0
	}
	const tagOrientation, typeShort = 0x0112, 3
	entries := slices.Collect(slices.Chunk(tiff[at+2:], 12))
	for _, e := range entries[:min(len(entries), int(order.Uint16(tiff[at:])))] {
		if len(e) == 12 && order.Uint16(e) == tagOrientation && order.Uint16(e[2:]) == typeShort &&
			order.Uint32(e[4:]) == 1 {
			if o := int(order.Uint16(e[8:])); o <= 8 {
				return o
			}
			return 0
		}
	}
	return 0
}
