package language

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"math/rand/v2"
)

// blankKinds draw pictures without a letter, each kind in the manner of what memes are
// drawn over or stand for themselves: those that an OCR engine takes for letters.
var blankKinds = map[string]func(*painter){
	"noise":     (*painter).noise,
	"tiles":     (*painter).tiles,
	"clouds":    (*painter).clouds,
	"bubbles":   (*painter).bubbles,
	"face":      (*painter).face,
	"icons":     (*painter).icons,
	"bricks":    (*painter).bricks,
	"stars":     (*painter).stars,
	"scribbles": (*painter).scribbles,
	"forest":    (*painter).forest,
}

// A painter draws one picture from a seed.
type painter struct {
	*rand.Rand
	img  *image.RGBA
	w, h int
}

// drawBlank draws a picture of a kind.
func drawBlank(kind string, seed uint64) image.Image {
	p := &painter{Rand: rand.New(rand.NewPCG(seed, 0x626c616e6b))}
	p.w, p.h = 400+p.IntN(300), 360+p.IntN(240)
	p.img = image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	blankKinds[kind](p)
	return p.img
}

// color returns a colour with channels from low to high.
func (p *painter) color(low, high int) color.RGBA {
	c := func() uint8 { return uint8(low + p.IntN(high-low+1)) }
	return color.RGBA{c(), c(), c(), 255}
}

// ink is nearly black or nearly white: what memes are lettered in.
func (p *painter) ink() color.RGBA {
	if p.IntN(2) == 0 {
		return p.color(0, 30)
	}
	return p.color(235, 255)
}

func (p *painter) fill(c color.RGBA) { p.rect(0, 0, p.w, p.h, c) }

func (p *painter) rect(x, y, w, h int, c color.RGBA) {
	draw.Draw(p.img, image.Rect(x, y, max(x, x+w), max(y, y+h)), image.NewUniform(c), image.Point{}, draw.Src)
}

func (p *painter) disc(x, y, rx, ry int, c color.RGBA) {
	for dy := -ry; dy <= ry; dy++ {
		half := int(float64(rx) * math.Sqrt(1-float64(dy*dy)/float64(max(1, ry*ry))))
		p.rect(x-half, y+dy, 2*half+1, 1, c)
	}
}

func (p *painter) line(x0, y0, x1, y1 float64, width int, c color.RGBA) {
	steps := int(max(math.Abs(x1-x0), math.Abs(y1-y0))) + 1
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		p.disc(int(x0+t*(x1-x0)), int(y0+t*(y1-y0)), width/2, width/2, c)
	}
}

func mix(a, b color.RGBA, t float64) color.RGBA {
	m := func(a, b uint8) uint8 { return uint8(float64(a)*(1-t) + float64(b)*t) }
	return color.RGBA{m(a.R, b.R), m(a.G, b.G), m(a.B, b.B), 255}
}

// noise is of blocks of 1 to 6 pixels.
func (p *painter) noise() {
	size := 1 + p.IntN(6)
	for y := 0; y < p.h; y += size {
		for x := 0; x < p.w; x += size {
			p.rect(x, y, size, size, p.color(0, 255))
		}
	}
}

func (p *painter) tiles() {
	size := 12 + p.IntN(50)
	for y := 0; y < p.h; y += size {
		for x := 0; x < p.w; x += size {
			p.rect(x, y, size-2, size-2, p.color(120, 255))
			if p.IntN(2) == 0 {
				p.disc(x+size/2, y+size/2, size/3, size/3, p.color(0, 120))
			}
		}
	}
}

// clouds is fractal noise between two colours, as of a photograph out of focus.
func (p *painter) clouds() {
	a, b := p.color(0, 120), p.color(130, 255)
	var waves [24][4]float64
	for i := range waves {
		frequency := .004 * math.Pow(1.25, float64(i))
		angle := p.Float64() * 2 * math.Pi
		waves[i] = [4]float64{frequency * math.Cos(angle), frequency * math.Sin(angle), p.Float64() * 6,
			.2 / (1 + float64(i)/4)}
	}
	for i := range p.w * p.h {
		x, y, v := i%p.w, i/p.w, .5
		for _, w := range waves {
			v += w[3] * math.Sin(float64(x)*w[0]*6+float64(y)*w[1]*6+w[2])
		}
		p.img.SetRGBA(x, y, mix(a, b, min(max(v, 0), 1)))
	}
}

func (p *painter) bubbles() {
	p.fill(p.color(0, 255))
	for range 20 + p.IntN(80) {
		r := 4 + p.IntN(60)
		x, y := p.IntN(p.w), p.IntN(p.h)
		p.disc(x, y, r, r, p.ink())
		p.disc(x, y, r-3, r-3, p.color(0, 255))
	}
}

func (p *painter) face() {
	p.fill(p.color(150, 255))
	x, y, r := p.w/2, p.h/2, p.h/3
	p.disc(x, y, r, r+p.IntN(30), p.color(140, 240))
	for _, side := range []int{-1, 1} {
		p.disc(x+side*r/2, y-r/4, r/6, r/8, color.RGBA{255, 255, 255, 255})
		p.disc(x+side*r/2, y-r/4, r/14, r/12, p.color(0, 60))
		p.line(float64(x+side*r/4), float64(y-r/2), float64(x+side*r*3/4), float64(y-r/2-p.IntN(20)), 6, p.color(0, 80))
	}
	for i := -20; i <= 20; i++ {
		p.disc(x+i*r/50, y+r/2-i*i*r/2400, 4, 4, p.color(100, 180))
	}
}

// icons is a grid of rounded squares with a sign in each, as on a telephone.
func (p *painter) icons() {
	p.fill(p.color(0, 255))
	size := 50 + p.IntN(40)
	for y := 12; y+size < p.h; y += size + 20 {
		for x := 12; x+size < p.w; x += size + 20 {
			p.rect(x, y, size, size, p.color(40, 220))
			c := p.ink()
			switch p.IntN(4) {
			case 0:
				p.disc(x+size/2, y+size/2, size/3, size/3, c)
			case 1:
				p.rect(x+size/4, y+size/4, size/2, size/2, c)
			case 2:
				p.line(float64(x+size/4), float64(y+size/4), float64(x+size*3/4), float64(y+size*3/4), 6, c)
			case 3:
				p.rect(x+size/4, y+size*2/5, size/2, size/5, c)
				p.rect(x+size*2/5, y+size/4, size/5, size/2, c)
			}
		}
	}
}

func (p *painter) bricks() {
	p.fill(p.color(160, 230))
	for row := range p.h/22 + 1 {
		for x := -25 * (row % 2); x < p.w; x += 50 {
			p.rect(x, row*22, 47, 19, mix(color.RGBA{160, 70, 50, 255}, p.color(40, 160), .3))
		}
	}
}

func (p *painter) stars() {
	p.fill(p.color(0, 40))
	for range 150 + p.IntN(400) {
		r := p.IntN(3)
		p.disc(p.IntN(p.w), p.IntN(p.h), r, r, p.color(180, 255))
	}
	p.disc(p.IntN(p.w), p.h/4, 30, 30, p.color(220, 255))
}

// scribbles are pen strokes of the height of letters.
func (p *painter) scribbles() {
	p.fill(p.color(200, 255))
	c := p.color(0, 60)
	for y := 40; y < p.h-30; y += 50 + p.IntN(40) {
		x, phase := 20., 0.
		for x < float64(p.w-40) {
			phase += .2 + p.Float64()*.5
			nx, ny := x+2+3*math.Cos(phase*1.7), float64(y)+14*math.Sin(phase)
			p.line(x, float64(y)+14*math.Sin(phase-.3), nx, ny, 3, c)
			x = max(x+.5, nx)
		}
	}
}

func (p *painter) forest() {
	p.fill(p.color(150, 230))
	for range 40 + p.IntN(40) {
		x, y, s := p.IntN(p.w), p.h/3+p.IntN(p.h), 20+p.IntN(60)
		p.rect(x-3, y-s/3, 6, s/3, p.color(30, 90))
		c := mix(color.RGBA{30, 110, 50, 255}, p.color(0, 140), .4)
		for i := range s {
			p.rect(x-(s-i)/3, y-s/3-i, 2*(s-i)/3, 1, c)
		}
	}
}
