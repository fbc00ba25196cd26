package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
)

func TestWorkerRefusesWithoutThreadLimit(t *testing.T) {
	for _, env := range [][]string{nil, {"OMP_THREAD_LIMIT=2"}} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"worker"}, env, strings.NewReader(""), &stdout, &stderr)
		if status != exitUsage || stdout.Len() > 0 || !strings.Contains(stderr.String(), "OMP_THREAD_LIMIT=1") {
			t.Errorf("worker with %q = %d, stdout %q, stderr %q", env, status, stdout.String(), stderr.String())
		}
	}
}

// What C prints must not get between the frames.
func TestStdoutIsReserved(t *testing.T) {
	var stdout, stderr bytes.Buffer
	cmd := self(t, "stray-output")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stdout.String() != "frame" || stderr.String() != "stray\n" {
		t.Errorf("stdout %q, stderr %q, %v, want the frame alone on stdout", stdout.String(), stderr.String(), err)
	}
}

func TestEngine(t *testing.T) {
	e := startPool(t, ocr.Config{Workers: 1}).Engine()
	dir, err := tessdataDir(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fileDigest(modelFile(dir))
	if err != nil || e.ModelSHA256 != digest || e.Model != "eng" {
		t.Errorf("Engine = %+v, want model eng with digest %s, %v", e, digest, err)
	}
	for _, version := range []string{e.Tesseract, e.Leptonica, strings.TrimPrefix(e.Gosseract, "v")} {
		if !regexp.MustCompile(`^[0-9]+\.[0-9]`).MatchString(version) {
			t.Errorf("version %q in %+v", version, e)
		}
	}
}

// inProcess is a client in the test process; no other test may make one.
func inProcess(t *testing.T) *tesseract {
	t.Helper()
	dir, err := tessdataDir(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	r, err := newTesseract(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func toGray(img image.Image) *image.Gray {
	g := image.NewGray(img.Bounds())
	draw.Draw(g, g.Rect, img, g.Rect.Min, draw.Src)
	return g
}

// gosseract v2.4.1 loses SetPageSegMode; the variable must not be lost, neither for the
// first image nor for a later one.
func TestPageSegmentationModeApplies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := inProcess(t)
	t.Run("inversion", func(t *testing.T) { testInversionApplies(t, r) })
	columns := toGray(drawMeme(t, 900, 260, image.White,
		caption{"LEFT SIDE", 30, 60, 32, color.Black}, caption{"LEFT LOWER", 30, 220, 32, color.Black},
		caption{"RIGHT SIDE", 640, 60, 32, color.Black}, caption{"RIGHT LOWER", 640, 220, 32, color.Black}))
	type layout struct{ blocks, lines int }
	read := func(psm int) (layout, []word.Raw) {
		words, err := r.recognize(columns, ocr.Mode{PSM: psm})
		if err != nil {
			t.Fatal(err)
		}
		blocks, lines := map[int]bool{}, map[[3]int]bool{}
		for _, w := range words {
			blocks[w.Block] = true
			lines[[3]int{w.Block, w.Par, w.Line}] = true
		}
		return layout{len(blocks), len(lines)}, words
	}
	uniform, _ := read(6) // one block of text: two lines across both columns
	if want := (layout{1, 2}); uniform != want {
		t.Errorf("mode 6: %+v, want %+v", uniform, want)
	}
	automatic, first := read(3)
	if automatic.blocks < 2 {
		t.Errorf("mode 3: %+v, want more than one block", automatic)
	}
	if single, _ := read(7); single.lines > 1 { // two lines taken for one: next to nothing is read
		t.Errorf("mode 7: %+v, want at most one line", single)
	}
	if sparse, _ := read(11); sparse == uniform {
		t.Errorf("mode 11: %+v, as mode 6", sparse)
	}
	_, again := read(3)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("mode 3 again, after others (-first +again):\n%s", diff)
	}
	for _, psm := range []int{0, 1, 2, 12, 14, -1} {
		if _, err := r.recognize(columns, ocr.Mode{PSM: psm}); err == nil {
			t.Errorf("mode %d was accepted", psm)
		}
	}
}

// White on black is read where inversion is allowed, and not where it is not; the
// setting may change between images.
func testInversionApplies(t *testing.T, r *tesseract) {
	dark := toGray(drawMeme(t, 600, 200, image.Black, caption{"THE SECOND COFFEE", 40, 110, 48, color.White}))
	for _, invert := range []bool{true, false, true} {
		words, err := r.recognize(dark, ocr.Mode{PSM: 6, Invert: invert})
		if err != nil {
			t.Fatal(err)
		}
		var sure []string
		for _, w := range words {
			if w.Confidence >= 85 {
				sure = append(sure, w.Text)
			}
		}
		if read := strings.Join(sure, " ") == "THE SECOND COFFEE"; read != invert {
			t.Errorf("inversion %v: read %q", invert, sure)
		}
	}
}

// The smallest and the most stretched images do not bring a worker down.
func TestOddSizes(t *testing.T) {
	pool := startPool(t, ocr.Config{Workers: 1})
	for _, size := range []image.Point{{1, 1}, {1, 3000}, {3000, 1}, {2, 2}, {9, 9}, {16384, 3}} {
		img := image.NewGray(image.Rectangle{Max: size})
		for i := range img.Pix {
			img.Pix[i] = uint8(i * 89)
		}
		if _, err := pool.Read(t.Context(), img); err != nil {
			t.Errorf("%v: %v", size, err)
		}
	}
	if s := pool.Stats(); s.Lost > 0 {
		t.Errorf("Stats = %+v, want no worker lost", s)
	}
}

// The same pixels give the same words for any number of workers and any order.
func TestSameWordsWhateverTheWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	images := []image.Image{
		panelMeme(t), photoMeme(t),
		drawMeme(t, 300, 700, image.White, caption{"MIXED Case 2020", 10, 350, 28, color.Gray{90}}),
	}
	read := func(c ocr.Config, order ...int) []layout.Reading {
		pool := startPool(t, c)
		readings := make([]layout.Reading, len(images))
		var g errgroup.Group
		g.SetLimit(c.Workers)
		for _, i := range order {
			g.Go(func() (err error) {
				readings[i], err = pool.Read(t.Context(), images[i])
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		return readings
	}
	want := read(ocr.Config{Workers: 1}, 0, 1, 2)
	for _, c := range []ocr.Config{{Workers: 3}, {Workers: 1, RecycleAfter: 1}} {
		if diff := cmp.Diff(want, read(c, 2, 1, 0)); diff != "" {
			t.Errorf("%d workers, reversed (-want +got):\n%s", c.Workers, diff)
		}
	}
	if want[0].Text == "" {
		t.Error("nothing was read")
	}
}
