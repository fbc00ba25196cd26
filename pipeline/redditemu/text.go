package redditemu

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// fonts parses the embedded fonts once, which are whole. A parsed font is read-only.
var fonts = sync.OnceValue(func() (all []*sfnt.Font) {
	for _, ttf := range [][]byte{gobold.TTF, gomedium.TTF, goregular.TTF, gomono.TTF} {
		f, _ := sfnt.Parse(ttf)
		all = append(all, f)
	}
	return all
})

// The places of fonts; what follows fontMedium is for running text.
const (
	fontBold = iota
	fontMedium
)

// A typeface draws one font at one size. It is not safe for concurrent use.
type typeface struct {
	font    *sfnt.Font
	size    float64 // pixels per em
	squeeze float64 // widths are multiplied by it: meme lettering is narrow
	buf     sfnt.Buffer
}

func (t *typeface) ppem() fixed.Int26_6 { return fixed.Int26_6(t.size * 64) }

// A glyph is one letter of a line and the place of its origin.
type glyph struct {
	index sfnt.GlyphIndex
	x     float64
}

// layout places the glyphs of s, which the font has, and returns their width together.
func (t *typeface) layout(s string) (line []glyph, x float64) {
	// The fonts are whole: their tables give no error.
	for _, r := range s {
		g, _ := t.font.GlyphIndex(&t.buf, r)
		if n := len(line); n > 0 {
			kern, _ := t.font.Kern(&t.buf, line[n-1].index, g, t.ppem(), font.HintingNone) // 0 for a pair without kerning
			x += float64(kern) / 64 * t.squeeze
		}
		line = append(line, glyph{g, x})
		advance, _ := t.font.GlyphAdvance(&t.buf, g, t.ppem(), font.HintingNone)
		x += float64(advance) / 64 * t.squeeze
	}
	return line, x
}

// mask draws s in a picture of its own, with pad pixels around it. The baseline stands
// at pad + size.
func (t *typeface) mask(s string, pad int) *image.Alpha {
	line, w := t.layout(s)
	m := image.NewAlpha(image.Rect(0, 0, int(w)+2*pad+2, int(t.size*1.35)+2*pad+2))
	z := vector.NewRasterizer(m.Rect.Dx(), m.Rect.Dy())
	for _, g := range line {
		segments, _ := t.font.LoadGlyph(&t.buf, g.index, t.ppem(), nil)
		for _, s := range segments {
			var x, y [3]float32
			for i, p := range s.Args {
				x[i] = float32(g.x + float64(pad) + float64(p.X)/64*t.squeeze)
				y[i] = float32(float64(pad) + t.size + float64(p.Y)/64)
			}
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				z.ClosePath()
				z.MoveTo(x[0], y[0])
			case sfnt.SegmentOpLineTo:
				z.LineTo(x[0], y[0])
			case sfnt.SegmentOpQuadTo: // the only curves of a TrueType font
				z.QuadTo(x[0], y[0], x[1], y[1])
			}
		}
		z.ClosePath()
	}
	z.Draw(m, m.Rect, image.Opaque, image.Point{})
	return m
}

// grow returns m with every mark made radius pixels wider on each side.
func grow(m *image.Alpha, radius float64) *image.Alpha {
	out := image.NewAlpha(m.Rect)
	copy(out.Pix, m.Pix)
	w, h := m.Rect.Dx(), m.Rect.Dy()
	steps := 12 + int(radius)*2
	for _, ring := range []float64{radius, radius / 2} {
		for i := range steps {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(steps))
			dx, dy := int(math.Round(ring*cos)), int(math.Round(ring*sin))
			for y := max(0, dy); y < min(h, h+dy); y++ {
				x0, x1 := max(0, dx), min(w, w+dx)
				dst := out.Pix[y*out.Stride+x0 : y*out.Stride+x1]
				src := m.Pix[(y-dy)*m.Stride+x0-dx:]
				for j := range dst {
					dst[j] = max(dst[j], src[j])
				}
			}
		}
	}
	return out
}

// paint lays colour through a mask whose corner stands at p.
func paint(dst *image.RGBA, m *image.Alpha, p image.Point, c color.Color) {
	draw.DrawMask(dst, m.Rect.Add(p), image.NewUniform(c), image.Point{}, m, m.Rect.Min, draw.Over)
}

// wrap breaks words into lines no wider than width. It reports false when a word alone
// is wider.
func (t *typeface) wrap(text string, width float64) (lines []string, fits bool) {
	fit := func(s string) bool { _, w := t.layout(s); return w <= width }
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		switch {
		case last >= 0 && fit(lines[last]+" "+word):
			lines[last] += " " + word
		case fit(word):
			lines = append(lines, word)
		default:
			return nil, false
		}
	}
	return lines, true
}

// fit finds the largest size, from size down, at which text takes at most maxLines. An error is that of the text.
func fit(which int, size, squeeze float64, text string, width float64, maxLines int) (*typeface, []string, error) {
	t := &typeface{font: fonts()[which], size: size, squeeze: squeeze}
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if g, err := t.font.GlyphIndex(&t.buf, r); err != nil || g == 0 {
			return nil, nil, fmt.Errorf("no glyph for %q: %w", r, cmp.Or(err, sfnt.ErrNotFound))
		}
	}
	for ; ; t.size *= 0.94 {
		if lines, ok := t.wrap(text, width); ok && len(lines) <= maxLines {
			return t, lines, nil
		}
		if t.size < 10 {
			return nil, nil, fmt.Errorf("caption of %d words does not fit", len(strings.Fields(text)))
		}
	}
}
