package audit

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	xdraw "golang.org/x/image/draw"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/internal/testkit"
)

// captioned draws words over the top and the bottom of a picture, as large as a thin caption.
func captioned(img image.Image, top, bottom string) image.Image {
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Src)
	words := image.NewRGBA(image.Rect(0, 0, 7*max(len(top), len(bottom)), 13))
	for i, line := range []string{top, bottom} {
		draw.Draw(words, words.Bounds(), image.NewUniform(color.Black), image.Point{}, draw.Src)
		d := font.Drawer{Dst: words, Src: image.White, Face: basicfont.Face7x13, Dot: fixed.P(0, 11)}
		d.DrawString(line)
		b := out.Bounds()
		h := b.Dx() * 13 / words.Bounds().Dx()
		at := image.Rect(b.Min.X, b.Min.Y, b.Max.X, b.Min.Y+h)
		if i == 1 {
			at = image.Rect(b.Min.X, b.Max.Y-h, b.Max.X, b.Max.Y)
		}
		xdraw.ApproxBiLinear.Scale(out, at, words, words.Bounds(), draw.Over, nil)
	}
	return out
}

// TestLooks measures how far apart the hashes of real memes are after changes that a copy goes through, and those of
// one picture under two captions, of the folder REHYDRATE_MEMES. The figures stand in docs/auditor.md.
func TestLooks(t *testing.T) {
	memes := os.Getenv("REHYDRATE_MEMES")
	if memes == "" {
		t.Skip("needs memes: set REHYDRATE_MEMES to a folder with images/")
	}
	names, _ := filepath.Glob(filepath.Join(memes, "images", "*")) // a bad pattern is its only error
	if len(names) == 0 {
		t.Fatalf("no pictures in %s/images", memes)
	}
	changes := map[string]func(image.Image) image.Image{
		"JPEG 75": func(img image.Image) image.Image { m, _ := picture.Decode(encodeJPEG(img, 75)); return m },
		"JPEG 20": func(img image.Image) image.Image { m, _ := picture.Decode(encodeJPEG(img, 20)); return m },
		"grey": func(img image.Image) image.Image {
			g := image.NewGray(img.Bounds())
			draw.Draw(g, g.Bounds(), img, img.Bounds().Min, draw.Src)
			return g
		},
		"half size": func(img image.Image) image.Image {
			out := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx()/2, img.Bounds().Dy()/2))
			xdraw.CatmullRom.Scale(out, out.Bounds(), img, img.Bounds(), draw.Src, nil)
			return out
		},
		"another caption": func(img image.Image) image.Image {
			return captioned(img, "when the train is late again", "and nobody says a word")
		},
	}
	sure, like, all := map[string]int{}, map[string]int{}, 0
	for i, name := range names {
		if os.Getenv("REHYDRATE_TEST") != "full" && i%20 > 0 { // all take two minutes
			continue
		}
		b, err := os.ReadFile(name)
		testkit.OK(t, err)
		img, err := picture.Decode(bytes.Clone(b))
		if err != nil {
			continue
		}
		all++
		for what, change := range changes {
			a := img
			if what == "another caption" {
				a = captioned(img, "nobody likes a monday morning", "said every cat that i know")
			}
			h, err := dedupe.HashImage(a)
			testkit.OK(t, err)
			wide, err := dedupe.HashImage256(a)
			testkit.OK(t, err)
			h2, err := dedupe.HashImage(change(img))
			testkit.OK(t, err)
			wide2, err := dedupe.HashImage256(change(img))
			testkit.OK(t, err)
			if wide.Distance(wide2) <= sureBits {
				sure[what]++
			}
			if bits.OnesCount64(h.Bits^h2.Bits) <= nearBits {
				like[what]++
			}
		}
	}
	for what := range changes {
		t.Logf("%s: %d of %d surely, %d alike", what, sure[what], all, like[what])
		if other := what == "another caption"; other && sure[what]*50 > all || !other &&
			(sure[what]*10 < all*9 || like[what] < all) {
			t.Errorf("%s: %d of %d surely, %d alike", what, sure[what], all, like[what])
		}
	}
}

// TestEquallyClose: of two images that one is equally close to it is taken for the first by name, in whichever order
// they were read.
func TestEquallyClose(t *testing.T) {
	h := dedupe.Hash256{}
	first, second := &known{name: "few001"}, &known{name: "few002"}
	for _, order := range [][]*known{{first, second}, {second, first}} {
		a := &audit{}
		for _, k := range order {
			a.gone.wide = append(a.gone.wide, clue[dedupe.Hash256]{h, k})
		}
		if of, _ := a.imageKnown(&sighting{wide: &h}, nil); of != first {
			t.Errorf("it is taken for %s, want few001", of.name)
		}
	}
}
