package picture

import (
	"image"
	"testing"

	"rehydrate/internal/testkit"
)

// TestResize: down by area, up between the centres of pixels, and both at once.
func TestResize(t *testing.T) {
	grey := func(width int, pix ...uint8) *image.Gray {
		return &image.Gray{Pix: pix, Stride: width, Rect: image.Rect(0, 0, width, len(pix)/width)}
	}
	part := grey(4, 9, 9, 9, 9, 9, 0, 200, 9).SubImage(image.Rect(1, 1, 3, 2)).(*image.Gray)
	for _, tt := range []struct {
		name string
		src  *image.Gray
		want *image.Gray
	}{
		{"halved", grey(4, 0, 100, 8, 8, 100, 200, 8, 8), grey(2, 100, 8)},
		{"3 to 2", grey(3, 0, 90, 255), grey(2, 30, 200)},
		{"to one pixel, half up", grey(2, 0, 1), grey(1, 1)},
		{"doubled", grey(2, 0, 200), grey(4, 0, 50, 150, 200, 0, 50, 150, 200)},
		{"a part of another, doubled", part, grey(4, 0, 50, 150, 200, 0, 50, 150, 200)},
		{"wider and lower", grey(2, 0, 200, 100, 0), grey(4, 50, 63, 88, 100)},
	} {
		testkit.Same(t, tt.name, tt.want, Resize(tt.src, tt.want.Rect.Size()))
	}
	same := grey(2, 1, 2, 3, 4)
	if got := Resize(same, image.Pt(2, 2)); got != same {
		t.Errorf("a picture of the size already became %v", got)
	}
}
