package picture

import (
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"image/draw"
	"testing"

	"rehydrate/internal/testkit"
)

// The digests are those of docs/files.md, which a stranger can make by hand.
func TestPixelDigest(t *testing.T) {
	sum := func(raw string) string {
		s := sha256.Sum256([]byte(raw))
		return hex.EncodeToString(s[:])
	}
	const two = "\x00\x00\x00\x02\x00\x00\x00\x01"
	red, clear := color.NRGBA{255, 0, 0, 255}, color.NRGBA{9, 8, 7, 0}
	half, half16 := color.NRGBA{200, 100, 50, 3}, color.NRGBA64{0xC8FF, 0x64FF, 0x32FF, 0x03FF}
	paint := func(img interface {
		image.Image
		Set(x, y int, c color.Color)
	}, left, right color.Color) image.Image {
		b := img.Bounds()
		img.Set(b.Min.X, b.Min.Y, left)
		img.Set(b.Min.X+1, b.Min.Y, right)
		return img
	}
	palette := color.Palette{red, clear, half}
	at := image.Rect(3, 4, 5, 5) // a corner away from the origin is no part of the picture
	withAlpha := &image.NYCbCrA{YCbCr: *image.NewYCbCr(image.Rect(0, 0, 2, 1), image.YCbCrSubsampleRatio444),
		A: []byte{255, 3}, AStride: 2}
	copy(withAlpha.Y, "\x4C\x80")
	copy(withAlpha.Cb, "\x55\x80")
	copy(withAlpha.Cr, "\xFF\x80")
	tall := image.NewGray(image.Rect(0, 0, 1, 40)) // more than a stripe
	for i := range tall.Pix {
		tall.Pix[i] = byte(i)
	}
	var tallRaw []byte
	for i := range 40 {
		tallRaw = append(tallRaw, byte(i), byte(i), byte(i), 255)
	}
	for name, tt := range map[string]struct {
		img  image.Image
		want string
	}{
		"opaque":           {paint(image.NewNRGBA(at), red, red), sum(two + "\xff\x00\x00\xff\xff\x00\x00\xff")},
		"transparent":      {paint(image.NewNRGBA(at), red, clear), sum(two + "\xff\x00\x00\xff\x00\x00\x00\x00")},
		"half transparent": {paint(image.NewNRGBA(at), red, half), sum(two + "\xff\x00\x00\xff\xc8\x64\x32\x03")},
		"16 bits":          {paint(image.NewNRGBA64(at), red, half16), sum(two + "\xff\x00\x00\xff\xc8\x64\x32\x03")},
		"palette": {paint(image.NewPaletted(at, palette), red, half),
			sum(two + "\xff\x00\x00\xff\xc8\x64\x32\x03")},
		"grey": {paint(image.NewGray(at), color.Gray{7}, color.Gray{9}),
			sum(two + "\x07\x07\x07\xff\x09\x09\x09\xff")},
		"grey, 16 bits": {paint(image.NewGray16(at), color.Gray16{0x07FF}, color.Gray16{0x09FF}),
			sum(two + "\x07\x07\x07\xff\x09\x09\x09\xff")},
		"YCbCr with alpha":  {withAlpha, sum(two + "\xfe\x00\x00\xff\x80\x80\x80\x03")},
		"premultiplied":     {paint(image.NewRGBA(at), red, clear), sum(two + "\xff\x00\x00\xff\x00\x00\x00\x00")},
		"a stripe and more": {tall, sum("\x00\x00\x00\x01\x00\x00\x00\x28" + string(tallRaw))},
	} {
		if got := PixelDigest(tt.img); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if got, want := PixelDigest(paint(image.NewNRGBA(at), red, half)),
		"46b28606aa7c29b7807ebe671db91cb946c16b6d22deb65f0eca8d10ca31ffa3"; got != want {
		t.Errorf("the vector of docs/files.md: %s, want %s", got, want)
	}
}

// TestPixelDigestOfFiles: a picture has one digest in every lossless format, and the orientation counts.
func TestPixelDigestOfFiles(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 24, 16),
		color.Palette{color.RGBA{0, 0, 0, 255}, color.RGBA{200, 10, 90, 255}})
	for i := range img.Pix {
		img.Pix[i] = byte(i / 7 % 2)
	}
	digest := func(body []byte) string {
		t.Helper()
		decoded, err := Decode(body)
		testkit.OK(t, err)
		return PixelDigest(Upright(decoded, body))
	}
	want := digest(encode(t, "png", img))
	if got := digest(encode(t, "gif", img)); got != want {
		t.Errorf("as a GIF it has the digest %s, as a PNG %s", got, want)
	}
	turned, plain := digest(withOrientation(t, img, 3)), digest(withOrientation(t, img, 1))
	if turned == plain || plain == want { // a JPEG changes the pixels
		t.Errorf("as a JPEG %s, upside down %s, as a PNG %s: want three digests", plain, turned, want)
	}
}

// TestPixelDigestOfPhotos: the quick way of JPEGs gives the colours that draw gives.
func TestPixelDigestOfPhotos(t *testing.T) {
	for _, at := range []image.Rectangle{image.Rect(0, 0, 64, 33), image.Rect(0, 0, 63, 33), image.Rect(2, 4, 60, 37),
		image.Rect(1, 1, 61, 37)} {
		img := image.NewYCbCr(at, image.YCbCrSubsampleRatio420)
		for i := range img.Y {
			img.Y[i] = byte(i * i >> 3)
		}
		for i := range img.Cb {
			img.Cb[i], img.Cr[i] = byte(i*37), byte(i*i>>2)
		}
		drawn := image.NewRGBA(at)
		draw.Draw(drawn, at, img, at.Min, draw.Src)
		if got, want := PixelDigest(img), PixelDigest(drawn); got != want {
			t.Errorf("%v: %s, as RGBA %s", at, got, want)
		}
	}
}
