package policy

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"testing"

	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// drawn is a picture of that size.
func drawn(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	return img
}

func encodePNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, png.Encode(&b, img))
	return b.Bytes()
}

// TestInspectImage: what is wrong with a file becomes an invalid image, with the words that outcomes.csv has, and
// nothing is said of its size; a file within the limits is described.
func TestInspectImage(t *testing.T) {
	body := encodePNG(t, drawn(40, 30))
	var of6 bytes.Buffer
	testkit.OK(t, gif.Encode(&of6, image.NewPaletted(image.Rect(0, 0, 1000, 600), color.Palette{color.Black}), nil))
	for _, tt := range []struct {
		name   string
		limit  func(*Images)
		body   []byte
		reason manifest.Reason
		detail string
	}{
		{"nothing", func(*Images) {}, nil, "empty_body", "the file has no bytes"},
		{"a page", func(*Images) {}, []byte("<html>"), "not_an_image_html",
			"the bytes are html, not JPEG, PNG, GIF or WebP"},
		{"unknown", func(*Images) {}, []byte("?"), "not_an_image",
			"the bytes are of no known kind, not JPEG, PNG, GIF or WebP"},
		{"bytes", func(i *Images) { i.MaxBytes = 3 }, []byte("1234"), "too_large", "4 bytes, the policy allows 3"},
		{"header", func(*Images) {}, body[:20], "bad_header", "png: unexpected EOF"},
		{"side", func(i *Images) { i.MaxSide = 39 }, body, "side_too_long",
			"40 by 30 pixels, the policy allows a side of 39"},
		{"pixels", func(i *Images) { i.MaxPixels = 1199 }, body, "too_many_pixels",
			"40 by 30 pixels, the policy allows 1199 in all"},
		{"decoded bytes", func(i *Images) { i.MaxPixels = 600000 }, of6.Bytes(), "too_many_bytes_decoded",
			"gif, 1000 by 600 pixels: needs about 3600000 bytes decoded, the policy allows 2400000 (4 for each of max_pixels)"},
	} {
		p := Default()
		tt.limit(&p.Images)
		info, f := p.InspectImage(tt.body)
		testkit.Same(t, tt.name, &Fault{manifest.Invalid, tt.reason, tt.detail}, f)
		testkit.Same(t, tt.name, picture.Info{}, info)
	}
	info, f := Default().InspectImage(body)
	if f != nil || info != (picture.Info{Format: "png", Width: 40, Height: 30, DecodedBytes: 4 * 40 * 30}) {
		t.Errorf("InspectImage = %+v, %v", info, f)
	}
}
