package policy

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// Upright returns img, decoded from body, as its EXIF orientation says it is to be
// seen: turned and mirrored, with its corner at the origin. Go's decoders leave that to
// the caller. Without an orientation, or with one that is not valid, it is img itself. Only JPEGs are looked
// at: the orientation of a PNG or WebP is not honoured by browsers either.
func Upright(img image.Image, body []byte) image.Image {
	if o := orientation(body); o > 1 {
		return &Turned{Image: img, orientation: o}
	}
	return img
}

// Turned is an image seen by an EXIF orientation, 2 to 8.
type Turned struct {
	image.Image
	orientation int
}

// swapped reports whether width and height change places.
func (t *Turned) swapped() bool { return t.orientation >= 5 }

func (t *Turned) Bounds() image.Rectangle {
	size := t.Image.Bounds().Size()
	if t.swapped() {
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

// unturn tells where in a stored image of w x h pixels the pixel x, y of the upright one
// is. The orientation names the sides at which the first row and column are seen.
func unturn(orientation, x, y, w, h int) image.Point {
	switch orientation {
	case 2: // mirrored
		return image.Pt(w-1-x, y)
	case 3: // upside down
		return image.Pt(w-1-x, h-1-y)
	case 4:
		return image.Pt(x, h-1-y)
	case 5:
		return image.Pt(y, x)
	case 6: // to be turned clockwise, as most cameras held upright store it
		return image.Pt(y, h-1-x)
	case 7:
		return image.Pt(w-1-y, h-1-x)
	case 8:
		return image.Pt(w-1-y, x)
	}
	return image.Pt(x, y)
}

// orientation returns the EXIF orientation of a JPEG, 1 where there is none.
func orientation(body []byte) int {
	if !bytes.HasPrefix(body, []byte{0xFF, 0xD8}) {
		return 1
	}
	const fill, app1, startOfScan = 0xFF, 0xE1, 0xDA
	for rest := body[2:]; len(rest) >= 4 && rest[0] == 0xFF; {
		marker, size := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == fill {
			rest = rest[1:]
			continue
		}
		if marker == startOfScan || size < 2 || 2+size > len(rest) { // EXIF stands before the scan
			return 1
		}
		if marker == app1 && bytes.HasPrefix(rest[4:], []byte("Exif\x00\x00")) {
			return max(1, Orientation(rest[4:2+size]))
		}
		rest = rest[2+size:]
	}
	return 1
}
