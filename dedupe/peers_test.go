package dedupe

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"testing"

	"github.com/corona10/goimagehash"
	"github.com/google/go-cmp/cmp"
)

// The tests of this file name faults of the library underneath, and show that they are not faults here.

// raw is the library's own hash, without anything of this package around it.
func raw(t *testing.T, img image.Image) uint64 {
	t.Helper()
	h, err := goimagehash.PerceptionHash(img)
	if err != nil {
		t.Fatal(err)
	}
	return h.GetHash()
}

// goimagehash v1.1.0, and imagehash (issue 134), give the same hash to pictures of one
// colour, whatever the colour.
func TestGoimagehashFlat(t *testing.T) {
	var items []Item
	for i, c := range []color.Color{color.White, color.Gray{128}, color.RGBA{0, 0, 255, 255}, color.White} {
		img := image.NewRGBA(image.Rect(0, 0, 90, 90))
		draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		if bare := raw(t, img); bare != 1<<63 {
			t.Fatalf("the library gives %x: it has got over its fault", bare)
		}
		items = append(items, Item{Hash: mustHash(t, img), Wide: new(mustHash256(t, img)),
			Content: fmt.Sprint("colour ", i%3)})
	}
	got, err := KeepFirst(t.Context(), items, Rule{Radius: 8, Words: 3})
	kept := Decision{Of: -1}
	if diff := cmp.Diff([]Decision{kept, kept, kept, {Of: 0, Class: ClassFlat}}, got); diff != "" || err != nil {
		t.Errorf("white, grey, blue and white again: error %v (-want +got):\n%s", err, diff)
	}
}

// TestHashByHand: a picture whose hash can be worked out with a pencil. It is a black and
// a white half: in the cosine transform of a step at the middle only the odd
// frequencies of the first row are not zero, and they alternate in sign from minus.
// Columns 0 (the mean), 3 and 7 are above the median of 0, so the first row of the hash is
// 10010001, the other rows are 0, and with 3 ones it says of itself that it is flat.
func TestHashByHand(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 640, 640))
	draw.Draw(img, image.Rect(320, 0, 640, 640), image.White, image.Point{}, draw.Src)
	if got := mustHash(t, img); got.Bits>>56 != 0b10010001 || !got.Flat {
		t.Errorf("black and white halves are %016x (flat %v), want 91 in the first row, flat", got.Bits, got.Flat)
	}
}
