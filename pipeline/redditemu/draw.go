package redditemu

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	xdraw "golang.org/x/image/draw"
)

// A Style is a way to put a caption to a picture.
type Style string

// The styles.
const (
	StyleOutline    Style = "outline"    // white capitals, black outline, over a photograph
	StylePanel      Style = "panel"      // black text on a white panel above a photograph
	StyleScreenshot Style = "screenshot" // black on white, as of an app
	StyleBare       Style = "bare"       // a photograph without text
)

// A Spec says what to draw. The same Spec gives the same bytes, always: everything
// that is left zero follows from Seed.
type Spec struct {
	Seed     uint64
	Style    Style   // "" = one of the three with text
	Caption  string  // a line break separates the upper from the lower text; "" = from Seed and Language
	Language string  // en, es, de, fr, ru, pt, it, or salad (letters that form no words); "" = en
	Template uint64  // seed of the photograph and its size: specs that share it share the photograph; 0 = Seed
	Format   string  // jpeg, png, gif, webp; "" = jpeg
	Quality  int     // of a JPEG, 1 to 100; 0 = 88
	CopyOf   *Spec   // draw that one in place of all the above but Format and Quality
	Scale    float64 // of a copy; 0 = 1
}

// A Drawn is a picture as its file would hold it.
type Drawn struct {
	Body  []byte
	Words []string // of the caption, as drawn
}

// Size returns the width and height, in pixels, without drawing.
func (s Spec) Size() (w, h int) {
	if s.CopyOf != nil {
		w, h = s.CopyOf.Size()
		if s.Scale > 0 {
			w, h = max(1, int(float64(w)*s.Scale)), max(1, int(float64(h)*s.Scale))
		}
		return w, h
	}
	rng := rand.New(rand.NewPCG(s.template(), 0x73697a65))
	w = 400 + rng.IntN(400)
	h = int(float64(w) * (0.72 + rng.Float64()*0.6))
	return w, min(max(h, 400), 900)
}

func (s Spec) template() uint64 { return cmp.Or(s.Template, s.Seed) }

// Draw draws a picture. Errors are those of the Spec: an unknown style, language or
// format, a caption that does not fit or has letters the fonts lack.
func Draw(s Spec) (Drawn, error) {
	original := s
	if s.CopyOf != nil {
		original = *s.CopyOf
	}
	c, err := original.render()
	if err != nil {
		return Drawn{}, fmt.Errorf("draw: %w", err)
	}
	img := c.img
	if w, h := s.Size(); w != c.w || h != c.h {
		img = image.NewRGBA(image.Rect(0, 0, w, h))
		xdraw.BiLinear.Scale(img, img.Rect, c.img, c.img.Rect, xdraw.Src, nil)
	}
	body, err := s.encode(img)
	if err != nil {
		return Drawn{}, fmt.Errorf("draw: %w", err)
	}
	return Drawn{Body: body, Words: c.words}, nil
}

// A canvas is a picture in the making.
type canvas struct {
	spec  Spec
	rng   *rand.Rand
	w, h  int
	img   *image.RGBA
	words []string
}

func (s Spec) render() (*canvas, error) {
	if s.CopyOf != nil { // a Spec that copies itself would never end
		return nil, errors.New("copy of a copy")
	}
	c := &canvas{spec: s, rng: rand.New(rand.NewPCG(s.Seed, 0x64726177))}
	c.w, c.h = s.Size()
	c.img = image.NewRGBA(image.Rect(0, 0, c.w, c.h))
	c.fill(c.img.Rect, white)
	style := s.Style
	if style == "" {
		style = []Style{StyleOutline, StyleOutline, StyleOutline, StylePanel, StyleScreenshot}[c.rng.IntN(5)]
	}
	if style == StyleBare { // before a caption is looked for, so that any Language will do
		c.img = Photo(s.template(), c.w, c.h)
		return c, nil
	}
	caption, err := captionIn(s.Language, s.Seed)
	if s.Caption != "" {
		caption, err = s.Caption, nil
	}
	if err != nil {
		return nil, err
	}
	draw := map[Style]func(*canvas, string) error{
		StyleOutline: (*canvas).outline, StylePanel: (*canvas).panel, StyleScreenshot: (*canvas).screenshot,
	}[style]
	if draw == nil {
		return nil, fmt.Errorf("unknown style %q", style)
	}
	return c, draw(c, caption)
}

var (
	black = color.Gray{Y: 0}
	white = color.Gray{Y: 255}
)

// outline is the classic: white capitals with a black outline, at top and bottom.
func (c *canvas) outline(caption string) error {
	c.img = Photo(c.spec.template(), c.w, c.h)
	caption = strings.ToUpper(caption)
	c.words = strings.Fields(caption)
	upper, lower, two := strings.Cut(caption, "\n")
	if words := c.words; !two && len(words) >= 6 { // too much for one edge of the picture
		n := (len(words) + 1) / 2
		upper, lower = strings.Join(words[:n], " "), strings.Join(words[n:], " ")
	}
	// 6 to 9 % of the height is what real memes have; capitals are 0.73 em.
	size := float64(c.h) * (0.06 + c.rng.Float64()*0.03) / 0.73
	squeeze := 0.72 + c.rng.Float64()*0.14
	for i, text := range []string{upper, lower} {
		if text == "" {
			continue
		}
		face, lines, err := fit(fontBold, size, squeeze, text, float64(c.w)*0.94, 3)
		if err != nil {
			return err
		}
		step := int(face.size * 0.95)
		y := c.h / 40
		if i == 1 {
			y = c.h - c.h/40 - step*len(lines)
		}
		radius := max(1.5, face.size*0.055)
		pad := int(radius) + 2
		for _, line := range lines { // centred, its capitals between y and y + size
			m := face.mask(line, pad)
			at := image.Pt((c.w-m.Rect.Dx())/2, y-pad-int(face.size*0.15))
			paint(c.img, grow(m, radius), at, black)
			paint(c.img, m, at, white)
			y += step
		}
	}
	return nil
}

// panel is black text on white above a photograph.
func (c *canvas) panel(caption string) error {
	text := sentence(caption)
	size := float64(c.h) * (0.06 + c.rng.Float64()*0.02)
	face, lines, err := fit(c.rng.IntN(3), size, 0.9+c.rng.Float64()*0.1, text, float64(c.w)*0.92, 4)
	if err != nil {
		return err
	}
	step := int(face.size * 1.25)
	height := step*len(lines) + c.h/20
	if left := c.h - height; left > 40 {
		draw.Draw(c.img, image.Rect(0, height, c.w, c.h), Photo(c.spec.template(), c.w, left), image.Point{}, draw.Src)
	}
	c.block(face, lines, c.w/25, c.h/40, step, black)
	return nil
}

// screenshot is a post of some app: an avatar, bars where names would stand, text, and
// a photograph where there is room for one.
func (c *canvas) screenshot(caption string) error {
	text := sentence(caption)
	left, bar := c.w/16, c.h/40+4
	accent := color.RGBA{uint8(60 + c.rng.IntN(150)), uint8(60 + c.rng.IntN(150)), uint8(60 + c.rng.IntN(150)), 255}
	c.disc(left+bar*2, bar*3, bar*2, accent)
	c.fill(image.Rect(left+bar*5, bar*2, left+bar*5+c.w/4, bar*3), color.Gray{Y: 90})
	c.fill(image.Rect(left+bar*5, bar*3+bar/2, left+bar*5+c.w/6, bar*4), color.Gray{Y: 180})
	face, lines, err := fit(fontMedium+c.rng.IntN(3), float64(c.h)*(0.05+c.rng.Float64()*0.02), 1, text,
		float64(c.w-2*left), 6)
	if err != nil {
		return err
	}
	step := int(face.size * 1.35)
	top := bar * 6
	bottom := top + step*len(lines) + bar
	if room := c.h - bottom - bar*4; room > c.h/4 {
		r := image.Rect(left, bottom, c.w-left, bottom+room)
		draw.Draw(c.img, r, Photo(c.spec.template(), r.Dx(), r.Dy()), image.Point{}, draw.Src)
	}
	for i := range 4 {
		x := left + i*(c.w-2*left)/4
		c.disc(x+bar, c.h-bar*2, bar/2+1, color.Gray{Y: 150})
		c.fill(image.Rect(x+bar*2, c.h-bar*2-bar/4, x+bar*4, c.h-bar*2+bar/4), color.Gray{Y: 190})
	}
	c.block(face, lines, left, top, step, color.Gray{Y: uint8(c.rng.IntN(40))})
	return nil
}

// block draws lines of plain text, flush left.
func (c *canvas) block(face *typeface, lines []string, x, y, step int, ink color.Color) {
	for _, line := range lines {
		paint(c.img, face.mask(line, 1), image.Pt(x-1, y-int(face.size*0.1)), ink)
		c.words = append(c.words, strings.Fields(line)...)
		y += step
	}
}

func (c *canvas) fill(r image.Rectangle, ink color.Color) {
	draw.Draw(c.img, r, image.NewUniform(ink), image.Point{}, draw.Src)
}

func (c *canvas) disc(x, y, r int, ink color.Color) {
	for dy := -r; dy <= r; dy++ {
		for dx := -r; dx <= r; dx++ {
			if dx*dx+dy*dy <= r*r {
				c.img.Set(x+dx, y+dy, ink)
			}
		}
	}
}

// sentence writes a caption as running text.
func sentence(caption string) string {
	caption = strings.Join(strings.Fields(caption), " ")
	first, size := utf8.DecodeRuneInString(caption)
	return strings.ToUpper(string(first)[:size]) + caption[size:]
}

// encode writes the picture in the Spec's format.
func (s Spec) encode(img *image.RGBA) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch s.Format {
	case "", "jpeg":
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: cmp.Or(s.Quality, 88)})
	case "png":
		enc := png.Encoder{CompressionLevel: png.BestSpeed} // at each request: the pace of the emulator
		err = enc.Encode(&b, img)
	case "gif":
		// 216 colours and a dither: what old GIFs look like.
		web := image.NewPaletted(img.Rect, palette.WebSafe)
		draw.FloydSteinberg.Draw(web, web.Rect, img, image.Point{})
		err = gif.Encode(&b, web, nil)
	case "webp":
		return EncodeWebP(img), nil
	default:
		err = fmt.Errorf("unknown format %q", s.Format)
	}
	return b.Bytes(), err
}
