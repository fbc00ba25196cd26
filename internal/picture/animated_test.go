package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"testing"

	"rehydrate/internal/testkit"
)

// gifOf is a GIF with a picture for each grey.
func gifOf(t *testing.T, greys ...uint8) []byte {
	t.Helper()
	var all gif.GIF
	for _, grey := range greys {
		frame := image.NewPaletted(image.Rect(0, 0, 8, 6), palette.Plan9)
		for i := range frame.Pix {
			frame.Pix[i] = uint8(frame.Palette.Index(color.Gray{grey}))
		}
		all.Image, all.Delay = append(all.Image, frame), append(all.Delay, 10)
	}
	var b bytes.Buffer
	testkit.OK(t, gif.EncodeAll(&b, &all))
	return b.Bytes()
}

// TestShownDigest: animations that begin with the same picture show different things, and a still one shows its pixels.
func TestShownDigest(t *testing.T) {
	shown := func(body []byte) string {
		stripped, err := Strip(body, "gif")
		testkit.OK(t, err)
		img, err := Decode(stripped)
		testkit.OK(t, err)
		return ShownDigest(stripped, "gif", img)
	}
	one, other, still := gifOf(t, 0, 80), gifOf(t, 0, 160), gifOf(t, 0)
	if shown(one) == shown(other) || shown(one) == shown(still) || shown(one) != shown(bytes.Clone(one)) {
		t.Error("animations with the same first picture are taken for one")
	}
	img, err := Decode(still)
	testkit.Same(t, "a still one", PixelDigest(img), shown(still), err)
	for want, body := range map[bool][]byte{
		true:  []byte("\x89PNG\r\n\x1a\n....IHDR....acTL....IDAT"),
		false: []byte("\x89PNG\r\n\x1a\n....IHDR....IDATacTL"),
	} {
		testkit.Same(t, "animated", want, Animated(body, "png"))
	}
}
