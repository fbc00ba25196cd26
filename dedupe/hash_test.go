package dedupe

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/jpeg"
	"math/bits"
	"strings"
	"testing"

	"rehydrate/internal/picture"
)

// photo draws something with enough structure to hash: overlapping waves and discs,
// from integer arithmetic only.
func photo(seed, w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			u, v := x*256/w, y*256/h
			du, dv := u-40-seed*17%180, v-60-seed*29%150
			c := (u*(seed%5+1)/2 + v*v/(64+seed)) & 0xff
			if du*du+dv*dv < 2500 {
				c = 255 - c/2
			}
			img.SetRGBA(x, y, color.RGBA{uint8(c), uint8(c * 3 / 4), uint8(255 - c), 255})
		}
	}
	return img
}

func mustHash(t *testing.T, img image.Image) Hash {
	t.Helper()
	h, err := HashImage(img)
	if err != nil {
		t.Fatalf("HashImage: %v", err)
	}
	return h
}

func mustHash256(t *testing.T, img image.Image) Hash256 {
	t.Helper()
	h, err := HashImage256(img)
	if err != nil {
		t.Fatalf("HashImage256: %v", err)
	}
	return h
}

// TestHashImageGolden pins the library and the way to it: other values mean that no
// stored hash can be compared any more, and HashKind has to change.
func TestHashImageGolden(t *testing.T) {
	for _, test := range []struct {
		seed int
		want uint64
	}{{1, 0x81911d17a72f6ed8}, {2, 0xc9091919d3d7b72a}, {3, 0xc726268e8e7ada94}} {
		if got := mustHash(t, photo(test.seed, 300, 200)); got != (Hash{Bits: test.want}) {
			t.Errorf("HashImage(photo(%d)) = %x (flat %v), want %x", test.seed, got.Bits, got.Flat, test.want)
		}
	}
}

// TestHashImagePixelsOnly: the same pixels hash alike, whatever holds them.
func TestHashImagePixelsOnly(t *testing.T) {
	src := photo(3, 150, 110)
	for name, img := range variants(t, src) {
		// What the pixels are is what At says, composited over white.
		b := img.Bounds()
		plain := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
		for y := range b.Dy() {
			for x := range b.Dx() {
				r, g, bl, a := img.At(b.Min.X+x, b.Min.Y+y).RGBA()
				white := 0xffff - a
				plain.SetRGBA(x, y, color.RGBA{uint8((r + white) >> 8), uint8((g + white) >> 8), uint8((bl + white) >> 8), 255})
			}
		}
		if got, want := mustHash(t, img), mustHash(t, plain); got != want {
			t.Errorf("HashImage(%s) = %+v, as plain RGBA %+v", name, got, want)
		}
		if got, want := mustHash256(t, img), mustHash256(t, plain); got != want {
			t.Errorf("HashImage256(%s) = %x, as plain RGBA %x", name, got, want)
		}
	}
}

func variants(t *testing.T, src *image.RGBA) map[string]image.Image {
	t.Helper()
	b := src.Bounds()
	decoded, part, holed := asJPEG(t, src, 85).(*image.YCbCr), image.Rect(30, 20, 94, 84), image.NewNRGBA(b)
	all := map[string]image.Image{"RGBA": src, "YCbCr": decoded, "sub-image of YCbCr": decoded.SubImage(part),
		"64x64 sub-image": src.SubImage(part)}
	for name, dst := range map[string]draw.Image{"Gray": image.NewGray(b),
		"Paletted": image.NewPaletted(b, palette.Plan9), "Gray16": image.NewGray16(b),
		"NRGBA": image.NewNRGBA(b), "NRGBA64": image.NewNRGBA64(b), "RGBA64": image.NewRGBA64(b),
		"CMYK": image.NewCMYK(b), "NRGBA with holes": holed} {
		draw.Draw(dst, b, src, image.Point{}, draw.Src)
		all[name] = dst
	}
	for i := 3; i < len(holed.Pix); i += 4 {
		holed.Pix[i] = []uint8{0, 255, 255}[i%3] // fully transparent or opaque
	}
	return all
}

func TestHashImageNoPixels(t *testing.T) {
	mustHash(t, photo(1, 64, 64)) // leaves something in the library's buffer
	for name, img := range map[string]image.Image{
		"nil": nil, "empty": image.NewRGBA(image.Rectangle{}), "no height": image.NewGray(image.Rect(0, 0, 9, 0)),
	} {
		if h, err := HashImage(img); err == nil {
			t.Errorf("HashImage(%s) = %+v, want an error", name, h)
		}
		if h, err := HashImage256(img); err == nil {
			t.Errorf("HashImage256(%s) = %v, want an error", name, h)
		}
	}
}

// TestHashImageBesideLibrary: the area means give the hash of the library's own resampling
// to within two bits, on a thousand pictures.
func TestHashImageBesideLibrary(t *testing.T) {
	var apart [65]int
	for _, size := range []image.Point{{100, 80}, {130, 128}, {110, 190}, {200, 150}} {
		for seed := range 250 {
			img := photo(seed, size.X, size.Y)
			apart[bits.OnesCount64(raw(t, picture.OverWhite(img))^mustHash(t, img).Bits)]++
		}
	}
	if apart[0]+apart[1]+apart[2] != 1000 || apart[0] < 900 {
		t.Errorf("of 1,000 pictures by bits apart: %v, want 900 at 0 and none beyond 2", apart[:9])
	}
}

func FuzzHashImage(f *testing.F) {
	f.Add(uint8(1), uint8(1), []byte{0})
	f.Add(uint8(1), uint8(255), []byte{1, 2, 3})
	f.Add(uint8(64), uint8(64), []byte("pixels"))
	f.Add(uint8(200), uint8(1), []byte{255, 0, 7, 128})
	f.Fuzz(func(t *testing.T, w, h uint8, pix []byte) {
		img := image.NewNRGBA(image.Rect(-5, 3, int(w)-5, int(h)+3))
		for i := range img.Pix {
			if len(pix) > 0 {
				img.Pix[i] = pix[i%len(pix)]
			}
		}
		hash, err := HashImage(img)
		if empty := w == 0 || h == 0; empty != (err != nil) {
			t.Fatalf("HashImage of %d x %d pixels: error %v", w, h, err)
		}
		if again, _ := HashImage(img); again != hash {
			t.Errorf("HashImage gave %+v, then %+v", hash, again)
		}
		if !hash.Flat && err == nil && bits.OnesCount64(hash.Bits) != 32 {
			t.Errorf("hash %x is not flat and has %d ones", hash.Bits, bits.OnesCount64(hash.Bits))
		}
	})
}

// TestHashTurned gives, from one transform, what the library gives for the picture turned and mirrored pixel by pixel.
func TestHashTurned(t *testing.T) {
	for seed := range 200 {
		img := picture.OverWhite(photo(seed, 64, 64))
		ways, err := HashTurned(img)
		if err != nil {
			t.Fatal(err)
		}
		for way, got := range ways {
			turned := image.NewRGBA(img.Rect)
			for i := range 64 * 64 {
				x, y := i%64, i/64
				at := image.Pt(x, y)
				if way&4 != 0 {
					at = image.Pt(y, x)
				}
				if way&1 != 0 {
					at.X = 63 - at.X
				}
				if way&2 != 0 {
					at.Y = 63 - at.Y
				}
				turned.SetRGBA(x, y, img.RGBAAt(at.X, at.Y))
			}
			if want := raw(t, turned); got.Bits != want || got.Flat {
				t.Errorf("picture %d, way %d: %+v, the library says %x", seed, way, got, want)
			}
		}
	}
	// The brightness of a JPEG stands in it.
	for seed := range 50 {
		var file bytes.Buffer
		err := jpeg.Encode(&file, photo(seed, 200, 150), nil)
		img, wrong := jpeg.Decode(&file)
		whole, failed := HashImage(img)
		ways, broken := HashTurned(img)
		if n := bits.OnesCount64(ways[0].Bits ^ whole.Bits); errors.Join(err, wrong, failed, broken) != nil || n > 4 {
			t.Errorf("JPEG %d: %d bits apart, %v", seed, n, errors.Join(err, wrong, failed, broken))
		}
	}
	if _, err := HashTurned(image.NewRGBA(image.Rectangle{})); err == nil || !strings.Contains(HashKind(), "phash64") {
		t.Errorf("no pixels: %v; kind %q", err, HashKind())
	}
}
