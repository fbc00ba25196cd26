package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"rehydrate/pipeline/ocr"
)

// TestMain makes the test binary the program where it is started as one, so that pools
// in tests have real workers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker", "sandbox", "became":
			main()
		case "program": // program ARG...
			os.Args = append(os.Args[:1], os.Args[2:]...)
			main()
		case "try-everything":
			tryEverything(os.Args[2], os.Args[3], os.Args[4])
			os.Exit(0)
		case "call-everything":
			callEverything()
			os.Exit(0)
		case "stray-output":
			strayOutput()
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// self is the test binary with arguments for TestMain.
func self(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), path, args...)
}

// startPool starts a pool whose workers are this test binary as the program.
func startPool(t testing.TB, c ocr.Config) *ocr.Pool {
	t.Helper()
	c.Command = self(t, "worker").Args
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
	return color.RGBA{uint8(20 + 140*y/s.bounds.Dy()), uint8(30 + 50*x/s.bounds.Dx()), uint8(90 - 60*y/s.bounds.Dy()),
		255}
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

// panelFile and photoFile are the two memes, and what is read in them.
func panelFile(t testing.TB) []byte { return pngBytes(t, panelMeme(t)) }
func photoFile(t testing.TB) []byte { return jpegBytes(t, photoMeme(t)) }

const (
	panelText = "NOBODY EXPECTS\nTHE SECOND COFFEE\n"
	photoText = "ONE DOES NOT SIMPLY\nMERGE ON FRIDAY\n"
)

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
	return filepath.Join(writeTree(t, map[string][]byte{name: body}), name)
}

// ran is what one run of the program came to.
type ran struct {
	Status         int
	Stdout, Stderr string
}

func runProgram(t *testing.T, args ...string) ran {
	t.Helper()
	return runWith(t.Context(), []byte{}, args...)
}

// runWith runs the program with something on stdin, or without a stdin.
func runWith(ctx context.Context, stdin []byte, args ...string) ran {
	var stdout, stderr bytes.Buffer
	if stdin == nil {
		return ran{run(ctx, args, os.Environ(), nil, &stdout, &stderr), stdout.String(), stderr.String()}
	}
	return ran{run(ctx, args, os.Environ(), bytes.NewReader(stdin), &stdout, &stderr), stdout.String(), stderr.String()}
}

func wantRan(t *testing.T, name string, want, got ran) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: ocr (-want +got):\n%s", name, diff)
	}
}

// wantError runs the program, which has to end with a status and both words in its errors.
func wantError(t *testing.T, status int, message, hint string, args ...string) {
	t.Helper()
	r := runProgram(t, args...)
	_, told, _ := strings.Cut(r.Stderr, "\n  ")
	if r.Status != status || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "ocr: ") ||
		!strings.Contains(r.Stderr, message) || told == "" || !strings.Contains(told, hint) {
		t.Errorf("ocr %.80q = %+v, want status %d, an error with %q and a hint with %q", args, r, status, message, hint)
	}
}

// decoded decodes a whole line of JSON that has no other fields.
func decoded[T any](t *testing.T, line string) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// strayOutput writes to stdout in both ways after it has been reserved.
func strayOutput() {
	frames, err := reserveStdout(os.Stdout)
	if err != nil {
		panic(err)
	}
	fmt.Println("stray")
	fmt.Fprint(frames, "frame")
}
