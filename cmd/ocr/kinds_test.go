package main

import (
	"bytes"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"slices"
	"strings"
	"testing"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/math/f64"

	"rehydrate/internal/picture"
)

// sideways stores a picture as a camera does that was held upright: turned to the left,
// with the EXIF orientation that turns it back.
func sideways(t *testing.T, img image.Image) []byte {
	b := img.Bounds()
	turned := image.NewRGBA(image.Rect(0, 0, b.Dy(), b.Dx()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			turned.Set(y, b.Dx()-1-x, img.At(x, y))
		}
	}
	body := jpegBytes(t, turned)
	exif := "\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06" + strings.Repeat("\x00", 7)
	return slices.Concat(body[:2], []byte(exif), body[2:])
}

func animated(t *testing.T, frames ...image.Image) []byte {
	var g gif.GIF
	for _, f := range frames {
		p := image.NewPaletted(f.Bounds(), palette.Plan9)
		draw.Draw(p, p.Rect, f, f.Bounds().Min, draw.Src)
		g.Image, g.Delay = append(g.Image, p), append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// slanted lays a picture on white, rising by a third of its width.
func slanted(img image.Image) image.Image {
	b := img.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx()+b.Dy()/3, b.Dy()+b.Dx()/3))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	turn := f64.Aff3{.949, .316, 0, -.316, .949, float64(b.Dx()) / 3}
	xdraw.BiLinear.Transform(out, turn, img, b, xdraw.Src, nil)
	return out
}

// Two columns are read one after the other, and what stands above and below them before and after.
func TestTwoColumns(t *testing.T) {
	img := drawMeme(t, 800, 500, image.White, caption{"WHEN THEY READ IT AT THE OFFICE", 40, 60, 32, color.Black},
		caption{"what he wrote", 40, 160, 28, color.Black}, caption{"about the house", 40, 210, 28, color.Black},
		caption{"and the garden", 40, 260, 28, color.Black},
		caption{"what she wanted", 460, 172, 28, color.Black}, caption{"was another cat", 460, 222, 28, color.Black},
		caption{"AND NOBODY KNOWS WHERE IT ENDS", 40, 440, 32, color.Black})
	r, err := startPool(t, benchConfig(t)).Read(t.Context(), img)
	if err != nil {
		t.Fatal(err)
	}
	if want := "WHEN THEY READ IT AT THE OFFICE\nwhat he wrote\nabout the house\nand the garden\n" +
		"what she wanted\nwas another cat\nAND NOBODY KNOWS WHERE IT ENDS"; r.Text != want {
		t.Errorf("read\n%s\nwant\n%s", r.Text, want)
	}
}

// Every kind of picture is read as a person sees it.
func TestKindsOfPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const want = "THE SECOND COFFEE"
	at := func(w, h, x, y int, size float64, background image.Image, ink color.Color) image.Image {
		return drawMeme(t, w, h, background, caption{want, x, y, size, ink})
	}
	plain := at(600, 200, 40, 110, 48, image.White, color.Black)
	tests := []struct {
		name string
		body []byte
	}{
		{"plain JPEG", jpegBytes(t, plain)},
		{"grey JPEG", jpegBytes(t, toGray(plain))},
		{"grey PNG", pngBytes(t, toGray(plain))},
		{"tiny", pngBytes(t, at(200, 50, 5, 30, 16, image.White, color.Black))},
		{"huge", pngBytes(t, toGray(at(6000, 4000, 300, 2100, 500, image.White, color.Black)))},
		{"wide as a banner", pngBytes(t, at(2400, 120, 900, 80, 56, image.White, color.Black))},
		{"high as a strip", pngBytes(t, at(480, 1600, 20, 800, 36, image.White, color.Black))},
		{"dark on transparent", pngBytes(t, at(600, 200, 40, 110, 48, image.Transparent, color.Black))},
		{"white on a dark photograph", jpegBytes(t,
			at(600, 400, 40, 210, 48, sunset{image.Rect(0, 0, 600, 400)}, color.White))},
		{"yellow on a dark photograph", jpegBytes(t,
			at(600, 400, 40, 210, 48, sunset{image.Rect(0, 0, 600, 400)}, color.RGBA{255, 235, 0, 255}))},
		{"white on black", pngBytes(t, at(600, 200, 40, 110, 48, image.Black, color.White))},
		{"animated: the first frame", animated(t, plain,
			drawMeme(t, 600, 200, image.White, caption{"ANOTHER FRAME", 40, 110, 48, color.Black}))},
		{"stored on its side", sideways(t, plain)},
		{"slanted", pngBytes(t, slanted(plain))},
	}
	pool := startPool(t, benchConfig(t))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			img, err := picture.Decode(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			upright := picture.Upright(img, tt.body)
			r, err := pool.Read(t.Context(), upright)
			if err != nil {
				t.Fatal(err)
			}
			// The engine sees a quotation mark in many an edge.
			if got := strings.Trim(strings.Join(strings.Fields(r.Text), " "), "‘’“”"); got != want {
				t.Errorf("read %q, want %q", got, want)
			}
			for _, w := range r.Words {
				if !w.Box().In(upright.Bounds()) {
					t.Errorf("%q at %v, outside %v", w.Text, w.Box(), upright.Bounds())
				}
			}
		})
	}
}
