package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"

	scaled "golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
)

// An overlay's longer side: large enough for labels of small pictures to be read, small
// enough to look at.
const (
	overlayMin = 900
	overlayMax = 2000
	// overlayTop is a strip above the picture, where the labels of its first line have room.
	overlayTop = 20
)

// drawOutput writes what overlay drew of each image that was read into a folder, or of a single one into a PNG file.
func drawOutput(place string, several, force bool) output {
	fileOf := func(in input) string { return filepath.Join(place, in.rel+".png") }
	if !several && strings.EqualFold(filepath.Ext(place), ".png") {
		fileOf = func(input) string { return place }
	}
	return output{place, fileOf, func(ctx context.Context, _ ocr.Engine) (sink, error) {
		return fileOfEach(ctx, force, fileOf, func(w io.Writer, r result) error {
			_, err := w.Write(r.overlay)
			return err
		}), nil
	}}
}

// overlay draws what was read over the picture, and stores the text in the PNG.
func overlay(img image.Image, r layout.Reading) ([]byte, error) {
	canvas, scale := enlarged(img)
	face, err := newFace(labelSize)
	if err != nil {
		return nil, fmt.Errorf("draw the overlay: %w", err)
	}
	defer face.Close()
	at := func(p image.Point) image.Point {
		p = p.Sub(img.Bounds().Min)
		return image.Pt(int(float64(p.X)*scale+0.5), overlayTop+int(float64(p.Y)*scale+0.5))
	}
	for _, w := range r.Words {
		box := w.Box()
		drawWord(canvas, face, w, image.Rectangle{Min: at(box.Min), Max: at(box.Max)})
	}
	var out bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed} // to look at, not to keep
	if err := enc.Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("draw the overlay: %w", err)
	}
	return withText(out.Bytes(), r.Text), nil
}

// enlarged copies the picture onto white, at a size to look at, below a grey strip.
func enlarged(img image.Image) (*image.RGBA, float64) {
	size := img.Bounds().Size()
	long, scale := max(size.X, size.Y), 1.0
	switch {
	case long < overlayMin:
		scale = min(4, float64(overlayMin)/float64(long))
	case long > overlayMax:
		scale = float64(overlayMax) / float64(long)
	}
	side := func(v int) int { return max(1, int(float64(v)*scale+0.5)) }
	canvas := image.NewRGBA(image.Rect(0, 0, side(size.X), overlayTop+side(size.Y)))
	draw.Draw(canvas, canvas.Rect, image.NewUniform(color.Gray{60}), image.Point{}, draw.Src)
	picture := canvas.Rect
	picture.Min.Y = overlayTop
	draw.Draw(canvas, picture, image.White, image.Point{}, draw.Src)
	scaled.ApproxBiLinear.Scale(canvas, picture, img, img.Bounds(), draw.Over, nil)
	return canvas, scale
}

// newFace is Go's font, in a size of pixels.
func newFace(size float64) (font.Face, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
}

// labelSize is the height of a label's text in pixels.
const labelSize = 13

// drawWord draws the box of a word, and the word above it.
func drawWord(canvas *image.RGBA, face font.Face, w word.Word, box image.Rectangle) {
	ink := image.NewUniform(inkOf(w))
	// A frame around the box, two pixels wide: what is in the box stays to be seen.
	outer := box.Inset(-2)
	for _, side := range []image.Rectangle{
		{outer.Min, image.Pt(outer.Max.X, box.Min.Y)}, {image.Pt(outer.Min.X, box.Max.Y), outer.Max},
		{outer.Min, image.Pt(box.Min.X, outer.Max.Y)}, {image.Pt(box.Max.X, outer.Min.Y), outer.Max},
	} {
		draw.Draw(canvas, side, ink, image.Point{}, draw.Src)
	}
	ascent, descent := face.Metrics().Ascent.Ceil(), face.Metrics().Descent.Ceil()
	width := font.MeasureString(face, w.Text).Ceil() + 4
	// Inside the canvas, also where the word stands at its edge.
	x := max(0, min(outer.Min.X, canvas.Rect.Dx()-width))
	y := max(0, outer.Min.Y-ascent-descent)
	// Half-transparent, because the label may cover the line above.
	draw.Draw(canvas, image.Rect(x, y, x+width, y+ascent+descent), image.NewUniform(color.RGBA{A: 170}), image.Point{},
		draw.Over)
	d := font.Drawer{Dst: canvas, Src: ink, Face: face, Dot: fixed.P(x+2, y+ascent)}
	d.DrawString(w.Text)
}

// inkOf is red for a word that is not accepted; else green from a confidence of 95, orange at
// 50, and between them in between.
func inkOf(w word.Word) color.RGBA {
	if !w.Accepted {
		return color.RGBA{255, 70, 70, 255}
	}
	sure := min(1, max(0, (w.Confidence-50)/45))
	return color.RGBA{uint8(255 * (1 - sure)), uint8(165 + 65*sure), 60, 255}
}

// withText puts text into a PNG as an iTXt chunk with the keyword Description, right after
// its header. No text leaves the PNG as it is.
func withText(pngFile []byte, text string) []byte {
	if text == "" {
		return pngFile
	}
	const header = 8 + 4 + 4 + 13 + 4 // signature, and IHDR: length, type, data, sum
	// Keyword, not compressed, no language, no translated keyword.
	typed := append([]byte("iTXtDescription\x00\x00\x00\x00\x00"), text...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(typed)-4)) // without the type
	chunk = append(chunk, typed...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(typed))
	return slices.Insert(pngFile, header, chunk...)
}
