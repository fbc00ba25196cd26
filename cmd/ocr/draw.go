package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	scaled "golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"rehydrate/pipeline/ocr"
)

// An overlay's longer side: large enough for labels of small pictures to be read, small
// enough to look at.
const (
	overlayMin = 900
	overlayMax = 2000
	// overlayTop is a strip above the picture, where the labels of its first line have room.
	overlayTop = 20
)

// overlay draws what was read over the picture, and stores the text in the PNG.
func overlay(img image.Image, r ocr.Reading) ([]byte, error) {
	canvas, scale := enlarged(img)
	pen, err := newPen(canvas)
	if err != nil {
		return nil, fmt.Errorf("draw the overlay: %w", err)
	}
	defer pen.face.Close()
	origin := img.Bounds().Min
	at := func(v int) int { return int(float64(v)*scale + 0.5) }
	for _, w := range r.Words {
		b := w.Box.Sub(origin)
		pen.word(w, image.Rect(at(b.Min.X), at(b.Min.Y), at(b.Max.X), at(b.Max.Y)).Add(image.Pt(0, overlayTop)))
	}
	var out bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
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

// A pen draws boxes and labels on one canvas.
type pen struct {
	canvas *image.RGBA
	face   font.Face
	ascent int
	height int
}

func newPen(canvas *image.RGBA) (*pen, error) {
	face, err := newFace(labelSize)
	if err != nil {
		return nil, err
	}
	m := face.Metrics()
	return &pen{canvas, face, m.Ascent.Ceil(), m.Ascent.Ceil() + m.Descent.Ceil()}, nil
}

// word draws the box of a word, and the word above it.
func (p *pen) word(w ocr.Word, box image.Rectangle) {
	ink := inkOf(w)
	// A frame around the box, two pixels wide.
	outer, inner := box.Inset(-2), box
	for _, side := range []image.Rectangle{
		{outer.Min, image.Pt(outer.Max.X, inner.Min.Y)}, {image.Pt(outer.Min.X, inner.Max.Y), outer.Max},
		{outer.Min, image.Pt(inner.Min.X, outer.Max.Y)}, {image.Pt(inner.Max.X, outer.Min.Y), outer.Max},
	} {
		draw.Draw(p.canvas, side, image.NewUniform(ink), image.Point{}, draw.Src)
	}
	width := font.MeasureString(p.face, w.Text).Ceil() + 4
	x := max(0, min(box.Min.X-2, p.canvas.Rect.Dx()-width))
	y := max(0, box.Min.Y-2-p.height)
	label := image.Rect(x, y, x+width, y+p.height)
	draw.Draw(p.canvas, label, image.NewUniform(color.RGBA{A: 170}), image.Point{}, draw.Over)
	d := font.Drawer{Dst: p.canvas, Src: image.NewUniform(ink), Face: p.face, Dot: fixed.P(x+2, y+p.ascent)}
	d.DrawString(w.Text)
}

// inkOf is red for a word that is not accepted; else green from a confidence of 95, orange at
// 50, and between them in between.
func inkOf(w ocr.Word) color.RGBA {
	if !w.Accepted {
		return color.RGBA{255, 70, 70, 255}
	}
	sure := min(1, max(0, (w.Confidence-50)/45))
	return color.RGBA{uint8(255 * (1 - sure)), uint8(165 + 65*sure), 60, 255}
}

// withText puts text into a PNG as an iTXt chunk with the keyword Description, right after
// its header. No text leaves the PNG as it is.
func withText(pngFile []byte, text string) []byte {
	const header = 8 + 4 + 4 + 13 + 4 // signature, and IHDR: length, type, data, sum
	if text == "" || len(pngFile) < header {
		return pngFile
	}
	// Keyword, not compressed, no language, no translated keyword.
	typed := append([]byte("iTXtDescription\x00\x00\x00\x00\x00"), text...)
	out := append([]byte{}, pngFile[:header]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(typed)-4))
	out = append(out, typed...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(typed))
	return append(out, pngFile[header:]...)
}
