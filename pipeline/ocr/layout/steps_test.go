package layout

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // the drawn meme
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/redditemu"
)

var update = flag.Bool("update", false, "draw the pictures of docs/ocr.md")

// TestSteps draws the steps of a reading, up to what Tesseract gets: the planes, the shapes and lines, the strips.
// docs/ocr.md shows them (go test ./pipeline/ocr/layout -run '^TestSteps$' -update).
func TestSteps(t *testing.T) {
	drawn, err := redditemu.Draw(redditemu.Spec{Seed: 5, Style: redditemu.StyleOutline,
		Caption: "WHEN THE CAT READS\nYOUR MAIL BEFORE YOU DO"})
	testkit.OK(t, err)
	img, _, err := image.Decode(bytes.NewReader(drawn.Body))
	testkit.OK(t, err)
	q := newQueue(newPlanes(img))
	if len(q.lines) < 2 {
		t.Fatalf("%d lines in a meme of two and more", len(q.lines))
	}
	for name, picture := range map[string]*image.Paletted{"planes": drawPlanes(q),
		"lines": drawLines(q.layers[0], q.lines), "strips": drawStrips(q)} {
		var b bytes.Buffer
		testkit.OK(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, picture))
		if b.Len() > 40_000 {
			t.Errorf("%s: %d bytes, want a small picture", name, b.Len())
		}
		if *update {
			testkit.OK(t, os.WriteFile(filepath.Join("../../../docs", "ocr-"+name+".png"), b.Bytes(), 0o644))
		}
	}
}

// Few colours keep the pictures small: four greys, what is in a line, and what is not.
var stepColors = color.Palette{color.White, color.Gray{170}, color.Gray{85}, color.Black, color.RGBA{0, 150, 60, 255},
	color.RGBA{220, 40, 40, 255}}

// drawPlanes sets the looks at an image side by side, in two rows.
func drawPlanes(q *queue) *image.Paletted {
	const width = 260
	size := scale(q.layers[0].gray, width).Rect.Size()
	out := image.NewPaletted(image.Rect(0, 0, 3*size.X+8, 2*size.Y+4), stepColors)
	draw.Draw(out, out.Rect, image.NewUniform(stepColors[5]), image.Point{}, draw.Src)
	for i, l := range q.layers {
		g := image.NewGray(l.gray.Rect)
		for k, v := range l.gray.Pix {
			g.Pix[k] = l.ramp[v]
		}
		at := image.Pt(i%3*(size.X+4), i/3*(size.Y+4))
		draw.Draw(out, image.Rectangle{Max: size}.Add(at), scale(g, width), image.Point{}, draw.Src)
	}
	return out
}

// drawLines frames what may be letters: in a line, or not.
func drawLines(l *layer, lines []textLine) *image.Paletted {
	out := image.NewPaletted(l.gray.Rect, stepColors)
	for k, v := range l.gray.Pix {
		out.Pix[k] = uint8(stepColors.Index(color.Gray{l.ramp[v]}))
	}
	frame := func(box image.Rectangle, c uint8) {
		for x := box.Min.X; x < box.Max.X; x++ {
			out.SetColorIndex(x, box.Min.Y, c)
			out.SetColorIndex(x, box.Max.Y-1, c)
		}
		for y := box.Min.Y; y < box.Max.Y; y++ {
			out.SetColorIndex(box.Min.X, y, c)
			out.SetColorIndex(box.Max.X-1, y, c)
		}
	}
	for _, n := range l.letters() {
		c := uint8(5)
		if l.used[n] {
			c = 4
		}
		frame(l.box(n), c)
	}
	for _, t := range lines {
		if t.layer == 0 {
			frame(t.box.Inset(-4), 4)
		}
	}
	return out
}

// drawStrips sets the strips below each other in the order in which they are read.
func drawStrips(q *queue) *image.Paletted {
	var strips []strip
	width, y := 0, 0
	for _, t := range q.next(BatchSize) {
		s := q.layers[t.layer].cut(t)
		strips = append(strips, s)
		width = max(width, s.gray.Rect.Dx())
	}
	out := image.NewPaletted(image.Rect(0, 0, width, len(strips)*(StripHeight+4)), stepColors)
	for _, s := range strips {
		draw.Draw(out, s.gray.Rect.Add(image.Pt(0, y)), s.gray, image.Point{}, draw.Src)
		draw.Draw(out, image.Rect(0, y+StripHeight, width, y+StripHeight+4), image.NewUniform(stepColors[1]),
			image.Point{}, draw.Src)
		y += StripHeight + 4
	}
	return out
}
