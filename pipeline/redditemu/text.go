package redditemu

import (
	"errors"
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

// fonts parses the embedded fonts once. A parsed font is read-only.
var fonts = sync.OnceValues(func() ([]*sfnt.Font, error) {
	var all []*sfnt.Font
	for _, ttf := range [][]byte{gobold.TTF, gomedium.TTF, goregular.TTF, gomono.TTF} {
		f, err := sfnt.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("parse an embedded font: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
})

const (
	fontBold = iota
	fontMedium
	fontRegular
	fontMono
)

// A typeface draws one font at one size. It is not safe for concurrent use.
type typeface struct {
	font    *sfnt.Font
	size    float64 // pixels per em
	squeeze float64 // widths are multiplied by it: meme lettering is narrow
	buf     sfnt.Buffer
}

func newTypeface(which int, size, squeeze float64) (*typeface, error) {
	all, err := fonts()
	if err != nil {
		return nil, err
	}
	return &typeface{font: all[which], size: size, squeeze: squeeze}, nil
}

func (t *typeface) ppem() fixed.Int26_6 { return fixed.Int26_6(t.size * 64) }

// glyphs calls f with each glyph of s and the place of its origin, and returns the width.
func (t *typeface) glyphs(s string, f func(sfnt.GlyphIndex, float64) error) (float64, error) {
	x, prev := 0.0, sfnt.GlyphIndex(0)
	for i, r := range []rune(s) {
		g, err := t.font.GlyphIndex(&t.buf, r)
		if err != nil {
			return 0, fmt.Errorf("glyph of %q: %w", r, err)
		}
		if g == 0 {
			return 0, fmt.Errorf("no glyph for %q", r)
		}
		if i > 0 {
			k, err := t.font.Kern(&t.buf, prev, g, t.ppem(), font.HintingNone)
			if err != nil && !errors.Is(err, sfnt.ErrNotFound) {
				return 0, fmt.Errorf("kerning of %q: %w", r, err)
			}
			x += float64(k) / 64 * t.squeeze
		}
		if f != nil {
			if err := f(g, x); err != nil {
				return 0, err
			}
		}
		adv, err := t.font.GlyphAdvance(&t.buf, g, t.ppem(), font.HintingNone)
		if err != nil {
			return 0, fmt.Errorf("advance of %q: %w", r, err)
		}
		x += float64(adv) / 64 * t.squeeze
		prev = g
	}
	return x, nil
}

func (t *typeface) width(s string) (float64, error) { return t.glyphs(s, nil) }

// mask draws s in a picture of its own, with pad pixels around it. The baseline stands
// at pad + size.
func (t *typeface) mask(s string, pad int) (*image.Alpha, error) {
	w, err := t.width(s)
	if err != nil {
		return nil, err
	}
	r := image.Rect(0, 0, int(w)+2*pad+2, int(t.size*1.35)+2*pad+2)
	z := vector.NewRasterizer(r.Dx(), r.Dy())
	base := float64(pad) + t.size
	_, err = t.glyphs(s, func(g sfnt.GlyphIndex, x float64) error {
		segments, err := t.font.LoadGlyph(&t.buf, g, t.ppem(), nil)
		if err != nil {
			return fmt.Errorf("outline: %w", err)
		}
		t.trace(z, segments, x+float64(pad), base)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m := image.NewAlpha(r)
	z.Draw(m, r, image.Opaque, image.Point{})
	return m, nil
}

func (t *typeface) trace(z *vector.Rasterizer, segments sfnt.Segments, x, y float64) {
	at := func(p fixed.Point26_6) (float32, float32) {
		return float32(x + float64(p.X)/64*t.squeeze), float32(y + float64(p.Y)/64)
	}
	for _, s := range segments {
		ax, ay := at(s.Args[0])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			z.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			bx, by := at(s.Args[1])
			z.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			bx, by := at(s.Args[1])
			cx, cy := at(s.Args[2])
			z.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	z.ClosePath()
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
func (t *typeface) wrap(text string, width float64) (lines []string, fits bool, err error) {
	line := ""
	for _, word := range strings.Fields(text) {
		longer := strings.TrimSpace(line + " " + word)
		w, err := t.width(longer)
		if err != nil {
			return nil, false, err
		}
		if w <= width {
			line = longer
			continue
		}
		if line == "" {
			return nil, false, nil
		}
		lines, line = append(lines, line), word
		if w, err = t.width(word); err != nil || w > width {
			return nil, false, err
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines, true, nil
}

// fit finds the largest size, from size down, at which text takes at most maxLines.
func fit(which int, size, squeeze float64, text string, width float64, maxLines int) (*typeface, []string, error) {
	for {
		t, err := newTypeface(which, size, squeeze)
		if err != nil {
			return nil, nil, err
		}
		lines, ok, err := t.wrap(text, width)
		if err != nil {
			return nil, nil, err
		}
		if ok && len(lines) <= maxLines {
			return t, lines, nil
		}
		if size < 10 {
			return nil, nil, fmt.Errorf("caption of %d words does not fit", len(strings.Fields(text)))
		}
		size *= 0.94
	}
}
