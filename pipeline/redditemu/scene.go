package redditemu

import (
	"image"
	"math"
	"math/rand/v2"

	xdraw "golang.org/x/image/draw"
)

// rgb is a colour with channels of 0 to 255.
type rgb [3]float32

func mix(a, b rgb, t float32) rgb {
	t = min(max(t, 0), 1)
	return rgb{a[0] + (b[0]-a[0])*t, a[1] + (b[1]-a[1])*t, a[2] + (b[2]-a[2])*t}
}

func (c rgb) times(f float32) rgb { return rgb{c[0] * f, c[1] * f, c[2] * f} }

// A blob is a body in a scene: an ellipse or a box, lit from one side.
type blob struct {
	x, y, rx, ry float32
	sin, cos     float32
	color        rgb
	box          bool
	soft         float32
}

// A scene is what a photograph shows, in coordinates of 0 to 1.
type scene struct {
	sky, ground      [2]rgb
	angle            [2]float32
	horizon, rugged  float32 // horizon above 1: no ground
	blobs            []blob
	light            [2]float32
	exposure, haze   float32
	vignette         float32
	lum, hue         []float32 // noise, one value a pixel
	w, h             int
	aspect           float32
	texture, mottled float32
}

func randomColor(rng *rand.Rand, low, high float32) rgb {
	// More often dull than bright, as things are.
	c := rgb{low + rng.Float32()*(high-low), low + rng.Float32()*(high-low), low + rng.Float32()*(high-low)}
	grey := (c[0] + c[1] + c[2]) / 3
	return mix(c, rgb{grey, grey, grey}, rng.Float32()*0.8)
}

func newScene(rng *rand.Rand, w, h int) *scene {
	a, l := rng.Float64()*2*math.Pi, rng.Float64()*2*math.Pi
	s := &scene{
		sky:     [2]rgb{randomColor(rng, 60, 250), randomColor(rng, 20, 210)},
		ground:  [2]rgb{randomColor(rng, 20, 170), randomColor(rng, 10, 120)},
		angle:   [2]float32{float32(math.Cos(a)), float32(math.Sin(a))},
		light:   [2]float32{float32(math.Cos(l)), float32(math.Sin(l))},
		horizon: 0.25 + rng.Float32()*1.1, rugged: rng.Float32() * 0.25,
		exposure: 0.65 + rng.Float32()*0.55, haze: rng.Float32() * 30, vignette: rng.Float32() * 0.9,
		texture: 0.15 + rng.Float32()*0.4, mottled: rng.Float32() * 0.8,
		w: w, h: h, aspect: float32(w) / float32(h),
	}
	s.lum, s.hue = fractal(rng, w, h, 6), fractal(rng, w, h, 3)
	for range 2 + rng.IntN(6) {
		sin, cos := math.Sincos(rng.Float64() * math.Pi)
		size := 0.06 + rng.Float32()*0.28
		s.blobs = append(s.blobs, blob{
			x: rng.Float32(), y: 0.15 + rng.Float32()*0.75, rx: size * (0.5 + rng.Float32()),
			ry:  size * (0.5 + rng.Float32()),
			sin: float32(sin), cos: float32(cos), color: randomColor(rng, 10, 245),
			box: rng.IntN(3) == 0, soft: 0.06 + rng.Float32()*rng.Float32()*0.5,
		})
	}
	return s
}

// at returns the colour of one pixel.
func (s *scene) at(px, py int) rgb {
	x, y := float32(px)/float32(s.w), float32(py)/float32(s.h)
	lum, hue := s.lum[py*s.w+px], s.hue[py*s.w+px]
	c := mix(s.sky[0], s.sky[1], 0.5+(x-0.5)*s.angle[0]+(y-0.5)*s.angle[1]+hue*s.mottled)
	// One row of the noise serves as the outline of the hills.
	if edge := s.horizon + s.rugged*s.hue[(s.h/2)*s.w+px]; y > edge {
		c = mix(s.ground[0], s.ground[1], (y-edge)*2+hue*s.mottled)
	}
	for i := range s.blobs {
		c = s.blobs[i].over(c, s, x, y, lum)
	}
	dx, dy := x-0.5, y-0.5
	shade := s.exposure * (1 + lum*s.texture) * (1 - s.vignette*(dx*dx+dy*dy))
	c = c.times(shade)
	return rgb{c[0] + s.haze, c[1] + s.haze, c[2] + s.haze}
}

// over lays the blob on c, lit from the scene's side and mottled by its noise.
func (b *blob) over(c rgb, s *scene, x, y, lum float32) rgb {
	dx, dy := (x-b.x)*s.aspect, y-b.y
	u, v := (dx*b.cos+dy*b.sin)/b.rx, (dy*b.cos-dx*b.sin)/b.ry
	d := u*u + v*v
	if b.box {
		d = max(u*u, v*v)
	}
	if d > 1+b.soft {
		return c
	}
	cover := float32(1)
	if d > 1-b.soft {
		cover = (1 + b.soft - d) / (2 * b.soft)
	}
	lit := 0.75 + 0.35*(u*s.light[0]+v*s.light[1]) + 0.3*lum
	return mix(c, b.color.times(lit), cover)
}

// fractal is value noise of several octaves, in about -1 to 1.
func fractal(rng *rand.Rand, w, h, octaves int) []float32 {
	out := make([]float32, w*h)
	amp := float32(0.6)
	for o := range octaves {
		n := 2<<o + 1 // lattice points a side
		grid := make([]float32, (n+1)*(n+1))
		for i := range grid {
			grid[i] = (rng.Float32()*2 - 1) * amp
		}
		addLattice(out, w, h, grid, n)
		amp *= 0.55
	}
	return out
}

// addLattice adds a grid of (n+1) x (n+1) values, interpolated smoothly.
func addLattice(out []float32, w, h int, grid []float32, n int) {
	smooth := func(t float32) float32 { return t * t * (3 - 2*t) }
	cell, frac := make([]int, w), make([]float32, w)
	for x := range w {
		f := float32(x) / float32(w) * float32(n-1)
		cell[x], frac[x] = int(f), smooth(f-float32(int(f)))
	}
	for y := range h {
		f := float32(y) / float32(h) * float32(n-1)
		gy := int(f)
		ty := smooth(f - float32(gy))
		top, bottom, row := grid[gy*(n+1):], grid[(gy+1)*(n+1):], out[y*w:(y+1)*w]
		for x := range row {
			i, t := cell[x], frac[x]
			a := top[i] + (top[i+1]-top[i])*t
			b := bottom[i] + (bottom[i+1]-bottom[i])*t
			row[x] += a + (b-a)*ty
		}
	}
}

// Photo draws a picture that has what matters of a photograph: smooth light, edges,
// texture at every scale and grain.
func Photo(seed uint64, w, h int) *image.RGBA {
	rng := rand.New(rand.NewPCG(seed, 0x7068))
	// A ninth of the pixels takes a ninth of the time, and the grain hides it.
	const third = 3
	small := image.NewRGBA(image.Rect(0, 0, w/third+1, h/third+1))
	s := newScene(rng, small.Rect.Dx(), small.Rect.Dy())
	i := 0
	for y := range s.h {
		for x := range s.w {
			c := s.at(x, y)
			small.Pix[i], small.Pix[i+1], small.Pix[i+2], small.Pix[i+3] = clamp(c[0]), clamp(c[1]), clamp(c[2]), 255
			i += 4
		}
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	xdraw.ApproxBiLinear.Scale(dst, dst.Rect, small, small.Rect, xdraw.Src, nil)
	grain(dst, rng.Uint64()|1, 3+rng.IntN(8))
	return dst
}

func clamp(v float32) uint8 { return uint8(min(max(v, 0), 255)) }

// grain adds noise of plus or minus amount to every pixel's lightness.
func grain(img *image.RGBA, state uint64, amount int) {
	for i := 0; i < len(img.Pix); i += 4 {
		// xorshift64: its quality is that of film.
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		n := int(state>>40&0xff)*(2*amount+1)>>8 - amount
		for c := range 3 {
			img.Pix[i+c] = uint8(min(max(int(img.Pix[i+c])+n, 0), 255))
		}
	}
}
