package ocr

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withOrientation is a JPEG of img with an EXIF segment.
func withOrientation(t *testing.T, img image.Image, orientation byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	exif := "\xff\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00\x00"
	return []byte(b.String()[:2] + exif + b.String()[2:])
}

// The rows as they are to be seen, for the stored rows "abc", "def".
var uprightRows = map[int][]string{
	1: {"abc", "def"}, 2: {"cba", "fed"}, 3: {"fed", "cba"}, 4: {"def", "abc"},
	5: {"ad", "be", "cf"}, 6: {"da", "eb", "fc"}, 7: {"fc", "eb", "da"}, 8: {"cf", "be", "ad"},
}

func TestUpright(t *testing.T) {
	stored := &image.Gray{Pix: []byte("abc!def!"), Stride: 4, Rect: image.Rect(5, 7, 8, 9)}
	for o, want := range uprightRows {
		body := withOrientation(t, stored, byte(o))
		img := Upright(stored, body)
		b := img.Bounds()
		var seen, plane []string
		luma := newPlanes(img).luma
		for y := range b.Dy() {
			var row, planeRow []byte
			for x := range b.Dx() {
				row = append(row, color.GrayModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.Gray).Y)
				planeRow = append(planeRow, luma.GrayAt(x, y).Y)
			}
			seen, plane = append(seen, string(row)), append(plane, string(planeRow))
		}
		if diff := cmp.Diff([][]string{want, want}, [][]string{seen, plane}); diff != "" {
			t.Errorf("orientation %d (-want +got: seen, plane):\n%s", o, diff)
		}
		if o > 1 && b.Min != (image.Point{}) {
			t.Errorf("orientation %d: bounds %v do not begin at the origin", o, b)
		}
	}
	whole := withOrientation(t, stored, 6)
	for _, body := range [][]byte{nil, []byte("\x89PNG\r\n\x1a\n"), whole[:30], withOrientation(t, stored, 9), append(whole[:2:2], whole[39:]...)} {
		if got := Upright(stored, body); got != image.Image(stored) {
			t.Errorf("without an orientation Upright of %.8q... returned another image", body)
		}
	}
}
