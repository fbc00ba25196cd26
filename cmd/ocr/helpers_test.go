package main

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"rehydrate/pipeline/ocr"
)

// startPool starts a pool whose workers are this test binary as the program.
func startPool(t testing.TB, c ocr.Config) *ocr.Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Command = []string{self, "worker"}
	pool, err := ocr.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// A caption is one line of text to draw.
type caption struct {
	text  string
	x, y  int // of the baseline's left end
	size  float64
	color color.Color
}

// drawMeme draws captions over a background, with Go's own font.
func drawMeme(t testing.TB, width, height int, background image.Image, captions ...caption) image.Image {
	t.Helper()
	parsed, err := opentype.Parse(gobold.TTF)
	if err != nil {
		t.Fatal(err)
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, background, image.Point{}, draw.Src)
	for _, c := range captions {
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: c.size, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			t.Fatal(err)
		}
		d := font.Drawer{Dst: img, Src: image.NewUniform(c.color), Face: face, Dot: fixed.P(c.x, c.y)}
		d.DrawString(c.text)
		face.Close()
	}
	return img
}

// A sunset is a background from dark blue to mid orange.
type sunset struct{ bounds image.Rectangle }

func (s sunset) ColorModel() color.Model { return color.RGBAModel }
func (s sunset) Bounds() image.Rectangle { return s.bounds }
func (s sunset) At(x, y int) color.Color {
	return color.RGBA{uint8(20 + 140*y/s.bounds.Dy()), uint8(30 + 50*x/s.bounds.Dx()), uint8(90 - 60*y/s.bounds.Dy()), 255}
}

func panelMeme(t testing.TB) image.Image {
	return drawMeme(t, 600, 400, image.White,
		caption{"NOBODY EXPECTS", 60, 90, 48, color.Black},
		caption{"THE SECOND COFFEE", 40, 330, 48, color.Black})
}

func photoMeme(t testing.TB) image.Image {
	return drawMeme(t, 640, 480, sunset{image.Rect(0, 0, 640, 480)},
		caption{"ONE DOES NOT SIMPLY", 40, 80, 48, color.White},
		caption{"MERGE ON FRIDAY", 100, 440, 48, color.White})
}

func pngBytes(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegBytes(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeTree writes files into a fresh folder and returns it.
func writeTree(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeFile writes body to a fresh folder and returns the path.
func writeFile(t testing.TB, name string, body []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readFile reads one file as the program does.
func readFile(ctx context.Context, pool *ocr.Pool, path string) (ocr.Reading, error) {
	r := newReader(pool, options{workers: 1}, nil).read(ctx, 0, input{name: path})
	return r.Reading, r.err
}

type ran struct {
	status         int
	stdout, stderr string
}

func runProgram(t *testing.T, args ...string) ran {
	t.Helper()
	return runWith(t, nil, args...)
}

func runWith(t *testing.T, stdin []byte, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), args, os.Environ(), bytes.NewReader(stdin), &stdout, &stderr)
	return ran{status, stdout.String(), stderr.String()}
}
