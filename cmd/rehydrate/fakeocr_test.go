package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"rehydrate/cmd/rehydrate/testdata/fakeocr"
	"rehydrate/pipeline/redditemu"
)

// Numbers of captions of the fake ocr program that tests ask for by what they say.
const (
	german     = 4
	withHandle = 9
	spanish    = 10
)

// fakeOCRPath is where the fake ocr program lies.
func fakeOCRPath(t testing.TB) string {
	t.Helper()
	name, err := buildFakeOCR()
	check(t, err)
	return name
}

var buildFakeOCR = sync.OnceValues(func() (string, error) {
	return built("fake", "./testdata/fakeocr/ocr")
})

// built builds a program into a folder with that name, which testscript removes at the end.
func built(folder, of string) (string, error) {
	self, err := exec.LookPath("rehydrate")
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(self), folder, filepath.Base(of))
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, of)
	cmd.Dir = sourceDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s (scripts/setup installs what it needs): %w\n%s", of, err, out)
	}
	return program, nil
}

// sketch draws a picture with the caption of a number: seed decides what else is on it, shade and format (jpg, png,
// gif) make near-duplicates.
func sketch(caption int, seed uint64, shade uint8, format string) redditemu.Image {
	rng := rand.New(rand.NewPCG(seed, 0x6368616f73))
	var grid [8][16]color.NRGBA
	for x := range grid {
		for y := range grid[x] {
			grid[x][y] = color.NRGBA{uint8(rng.IntN(240)) + shade, uint8(rng.IntN(240)) + shade,
				uint8(rng.IntN(240)) + shade, 255}
		}
	}
	img := image.NewNRGBA(image.Rect(0, 0, fakeocr.Width, fakeocr.Width+caption*fakeocr.Step))
	for y := range img.Rect.Dy() {
		for x := range fakeocr.Width {
			img.SetNRGBA(x, y, grid[x/8][y/8%16])
		}
	}
	var b bytes.Buffer // takes everything: no encoder fails
	switch format {
	case "jpg":
		_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: 90})
	case "gif":
		_ = gif.Encode(&b, img, nil)
	default:
		_ = png.Encode(&b, img)
	}
	return redditemu.Image{Body: b.Bytes(), Ext: format}
}
