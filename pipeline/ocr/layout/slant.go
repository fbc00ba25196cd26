package layout

import (
	"image"
	"math"
)

// Text on signs and banners is slanted. If letters outside of lines are in slanted rows, the plane is turned and lines
// are searched again.
const (
	slantLeast   = 100 // thousandths of its length that a row rises or falls; less is level enough
	slantRow     = 5   // letters of a row at least
	slantLetters = 12  // in the rows of a plane at least
	slantEven    = 500 // of a row, in thousandths
)

// slants are the slopes that are tried, in thousandths: a row between two of them is even enough in one.
var slants = [...]int{-500, -350, -200, 200, 350, 500}

// slant returns the slope, in thousandths, of the rows that letters outside of lines make, and 0 if there are none.
func (l *layer) slant() int {
	var free []int
	for _, n := range l.letters() {
		if !l.used[n] {
			free = append(free, n)
		}
	}
	if len(free) < slantLetters {
		return 0
	}
	slope, most := 0, slantLetters-1
	numbers := make([]int, len(free))
	level := &layer{shapes: make([]shape, len(free))} // as the letters would stand without the slope
	for _, s := range slants {
		for i, n := range free {
			box := l.box(n)
			level.shapes[i].box, numbers[i] = box.Sub(image.Pt(0, s*(box.Min.X+box.Max.X)/2000)), i
		}
		letters, along, down := 0, 0, 0
		for _, g := range level.link(numbers) {
			if t := level.newLine(0, g); len(g) >= slantRow && t.even >= slantEven && t.box.Dy() <= lineHigh*t.high {
				first, last := l.box(free[g[0]]), l.box(free[g[len(g)-1]])
				letters += len(g)
				along += last.Min.X + last.Max.X - first.Min.X - first.Max.X
				down += last.Min.Y + last.Max.Y - first.Min.Y - first.Max.Y
			}
		}
		if letters > most && along > 0 {
			slope, most = 1000*down/along, letters
		}
	}
	if max(slope, -slope) < slantLeast {
		return 0
	}
	return slope
}

// A turn lays slanted rows level, about the middle of a picture. Sine and cosine are in parts of 65,536.
type turn struct {
	sin, cos int
	from, to image.Point // sizes
}

func newTurn(size image.Point, slope int) turn {
	// Every machine rounds a square root and a quotient in the same way.
	long := math.Sqrt(float64(1_000_000 + slope*slope))
	t := turn{sin: int(float64(slope<<16) / long), cos: int(float64(1000<<16) / long), from: size}
	s := max(t.sin, -t.sin)
	t.to = image.Pt((size.X*t.cos+size.Y*s)>>16+1, (size.X*s+size.Y*t.cos)>>16+1)
	return t
}

// back is where a point of the turned picture is in the other one, in parts of 65,536.
func (t turn) back(p image.Point) (x, y int) {
	dx, dy := 2*p.X-t.to.X, 2*p.Y-t.to.Y
	return (dx*t.cos - dy*t.sin + t.from.X<<16) / 2, (dx*t.sin + dy*t.cos + t.from.Y<<16) / 2
}

// plane turns a plane; what lies outside of it is of the level given.
func (t turn) plane(src *image.Gray, outside uint8) *image.Gray {
	dst := image.NewGray(image.Rectangle{Max: t.to})
	for i := range dst.Pix {
		dst.Pix[i] = outside
	}
	for row := range t.to.Y {
		out := dst.Pix[row*dst.Stride:]
		x, y := t.back(image.Pt(0, row))
		for i := range t.to.X {
			if c, r := x>>16, y>>16; c >= 0 && r >= 0 && c+1 < t.from.X && r+1 < t.from.Y {
				px := src.Pix[r*src.Stride+c:]
				u, v := (x>>8)&255, (y>>8)&255
				upper := int(px[0])*(256-u) + int(px[1])*u
				lower := int(px[src.Stride])*(256-u) + int(px[src.Stride+1])*u
				out[i] = uint8((upper*(256-v) + lower*v + 1<<15) >> 16)
			}
			x, y = x+t.cos, y+t.sin
		}
	}
	return dst
}

// shift moves a box of the turned picture, level as it is, to where its middle is in the other one.
func (t turn) shift(box image.Rectangle) image.Point {
	middle := image.Pt((box.Min.X+box.Max.X)/2, (box.Min.Y+box.Max.Y)/2)
	x, y := t.back(middle)
	return image.Pt(x>>16, y>>16).Sub(middle)
}
