package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"rehydrate/internal/testkit"
)

// withOrientation is a JPEG of img with an EXIF segment.
func withOrientation(t *testing.T, img image.Image, orientation byte) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}))
	exif := "\xff\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00\x00"
	return []byte(b.String()[:2] + exif + b.String()[2:])
}

func TestUpright(t *testing.T) {
	// The rows as they are to be seen, for the stored rows "abc", "def".
	seen := map[int][]string{
		1: {"abc", "def"}, 2: {"cba", "fed"}, 3: {"fed", "cba"}, 4: {"def", "abc"},
		5: {"ad", "be", "cf"}, 6: {"da", "eb", "fc"}, 7: {"fc", "eb", "da"}, 8: {"cf", "be", "ad"},
	}
	stored := &image.Gray{Pix: []byte("abc!def!"), Stride: 4, Rect: image.Rect(5, 7, 8, 9)}
	plane := &image.Gray{Pix: stored.Pix, Stride: 4, Rect: image.Rect(0, 0, 3, 2)}
	for o, want := range seen {
		img := Upright(stored, withOrientation(t, stored, byte(o)))
		testkit.Same(t, fmt.Sprintf("orientation %d", o), want, rows(img))
		turned, ok := img.(*Turned)
		if ok != (o > 1) {
			t.Errorf("orientation %d: turned is %t", o, ok)
		}
		if !ok {
			continue
		}
		testkit.Same(t, fmt.Sprintf("orientation %d, plane", o), want, rows(turned.Plane(plane)))
		if img.Bounds().Min != (image.Point{}) {
			t.Errorf("orientation %d: bounds %v do not begin at the origin", o, img.Bounds())
		}
	}
	whole := withOrientation(t, stored, 6)
	for _, body := range [][]byte{nil, []byte("\x89PNG\r\n\x1a\n"), whole[:30], withOrientation(t, stored, 9),
		append(whole[:2:2], whole[39:]...), append([]byte("\xff\xd8\xff\xda\x00\x02"), whole[2:]...)} {
		if got := Upright(stored, body); got != image.Image(stored) {
			t.Errorf("without an orientation Upright of %.8q... returned another image", body)
		}
	}
}

// rows returns the grey values of an image as a string for each row.
func rows(img image.Image) (all []string) {
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		var row []byte
		for x := b.Min.X; x < b.Max.X; x++ {
			row = append(row, color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y)
		}
		all = append(all, string(row))
	}
	return all
}
