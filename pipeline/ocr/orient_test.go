package ocr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withOrientation is a JPEG of img with an EXIF segment.
func withOrientation(t *testing.T, img image.Image, order binary.AppendByteOrder, orientation uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	exif := []byte("Exif\x00\x00" + map[bool]string{true: "MM", false: "II"}[order.String() == "BigEndian"])
	exif = order.AppendUint16(exif, 42)
	exif = order.AppendUint32(exif, 8)
	exif = order.AppendUint16(exif, 2)
	for _, tag := range [][2]uint16{{0x0100, 640}, {0x0112, orientation}} {
		exif = order.AppendUint16(exif, tag[0])
		exif = order.AppendUint16(exif, 3)
		exif = order.AppendUint32(exif, 1)
		exif = order.AppendUint16(exif, tag[1])
		exif = order.AppendUint16(exif, 0)
	}
	out := append([]byte{}, b.Bytes()[:2]...)
	out = append(out, 0xFF, 0xE1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(exif)+2))
	out = append(out, exif...)
	return append(out, b.Bytes()[2:]...)
}

func TestOrientation(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	for o := uint16(0); o <= 9; o++ {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			want := int(o)
			if o == 0 || o == 9 { // not valid
				want = 1
			}
			if got := orientation(withOrientation(t, img, order, o)); got != want {
				t.Errorf("orientation(%d, %v) = %d, want %d", o, order, got, want)
			}
		}
	}
	whole := withOrientation(t, img, binary.LittleEndian, 6)
	for n := range 46 { // cut short anywhere: no panic, and no orientation before the tag is whole
		if got := orientation(whole[:n]); got != 1 {
			t.Errorf("orientation of the first %d bytes = %d, want 1", n, got)
		}
	}
	if got := orientation([]byte("\x89PNG\r\n\x1a\n")); got != 1 {
		t.Errorf("orientation of a PNG = %d, want 1", got)
	}
}

// The rows as they are to be seen, for the stored rows "abc", "def".
var uprightRows = map[int][]string{
	1: {"abc", "def"}, 2: {"cba", "fed"}, 3: {"fed", "cba"}, 4: {"def", "abc"},
	5: {"ad", "be", "cf"}, 6: {"da", "eb", "fc"}, 7: {"fc", "eb", "da"}, 8: {"cf", "be", "ad"},
}

func TestUpright(t *testing.T) {
	stored := &image.Gray{Pix: []byte("abc!def!"), Stride: 4, Rect: image.Rect(5, 7, 8, 9)}
	for o, want := range uprightRows {
		body := withOrientation(t, stored, binary.BigEndian, uint16(o))
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
	if got := Upright(stored, nil); fmt.Sprintf("%p", got) != fmt.Sprintf("%p", stored) {
		t.Error("without an orientation Upright returned another image")
	}
}
