package policy

import (
	"bytes"
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

// unturn tells where in a stored image of w x h pixels the pixel x, y of the upright one
// is. The orientation names the sides at which the first row and column are seen.
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

// orientation returns the EXIF orientation of a JPEG, 0 where there is none.
func orientation(body []byte) int {
	const app1, startOfScan = 0xE1, 0xDA
	if sniff(body) != "jpeg" {
		return 0
	}
	for marker, content := range jpegSegments(body) {
		if marker == startOfScan { // EXIF stands before the scan
			break
		}
		if marker == app1 && bytes.HasPrefix(content, []byte("Exif\x00\x00")) {
			return Orientation(content)
		}
	}
	return 0
}
