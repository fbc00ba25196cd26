package features

import (
	"cmp"
	"context"
	"image"
	"math"
	"slices"

	"rehydrate/internal/picture"
)

// A Detection says how Faces searches. The setting decides what is found: name it beside every number.
type Detection struct {
	Scale     float64 // from one size of window to the next, above 1
	Neighbors int     // a face needs more than this many overlapping windows, at least 1
	MinSize   int     // the smallest side of a window, in pixels
}

// DefaultDetection is what tutorials of OpenCV use.
func DefaultDetection() Detection { return Detection{Scale: 1.1, Neighbors: 5, MinSize: 30} }

// Faces returns where the cascade sees faces in the grey plane of a picture. It is OpenCV's detectMultiScale: shrunk
// pictures, windows at every second pixel below twice the size, and groups of windows that overlap.
// When ctx is done it returns nil.
func (c *Cascade) Faces(ctx context.Context, grey *image.Gray, d Detection) []image.Rectangle {
	var found []image.Rectangle
	width, height := grey.Rect.Dx(), grey.Rect.Dy()
	s := scaled{cascade: c}
	for factor := 1.0; ctx.Err() == nil; factor *= d.Scale {
		side := round(float64(c.side) * factor)
		if side > width || side > height {
			faces := group(found, d.Neighbors)
			for i := range faces { // rounding can lead over the edge
				faces[i] = faces[i].Intersect(grey.Rect)
			}
			return faces
		}
		if side >= d.MinSize {
			found = s.search(grey, float32(factor), found)
		}
	}
	return nil
}

func round(v float64) int { return int(math.RoundToEven(v)) }

// A scaled searches a shrunk picture. Its memory is used again for each size.
type scaled struct {
	cascade *Cascade
	small   []uint8
	sums    []int32 // integral image: a row and a column more than the picture
	squares []uint32
	stages  []flatStage
}

// A flatStage is a stage whose rectangles are offsets into the integral image.
type flatStage struct {
	threshold float32
	stumps    []flatStump
}

type flatStump struct {
	corners                [12]int32 // of each rectangle: +, -, -, +
	weights                [3]float32
	third                  bool
	threshold, left, right float32
}

// search adds the windows at one size that pass all stages.
func (s *scaled) search(grey *image.Gray, factor float32, found []image.Rectangle) []image.Rectangle {
	width := round(float64(float32(grey.Rect.Dx()) / factor))
	height := round(float64(float32(grey.Rect.Dy()) / factor))
	s.integrate(grey, width, height)
	stride := width + 1
	s.flatten(stride)
	inner := rectCorners(1, 1, s.cascade.side-2, s.cascade.side-2, stride)
	area := float64((s.cascade.side - 2) * (s.cascade.side - 2))
	side := round(float64(float32(s.cascade.side) * factor))
	step := 2
	if factor >= 2 {
		step = 1
	}
	for y := 0; y <= height-s.cascade.side; y += step {
		for x := 0; x <= width-s.cascade.side; x += step {
			at := y*stride + x
			sum := float64(rectSum(s.sums[at:], inner))
			// nf is the area times the standard deviation of the window.
			nf := area*float64(rectSum(s.squares[at:], inner)) - sum*sum
			if nf <= 0 {
				nf = 1
			} else {
				nf = math.Sqrt(nf)
				if area*float64(float32(1/nf)) >= 0.1 { // a flat window: its noise would be taken for a face
					continue
				}
			}
			switch s.passed(s.sums[at:], float32(1/nf)) {
			case len(s.stages):
				corner := image.Pt(round(float64(float32(x)*factor)), round(float64(float32(y)*factor)))
				found = append(found, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(side, side))})
			case 0:
				x += step // the neighbour of a window that fails at once hardly ever passes
			}
		}
	}
	return found
}

// passed returns how many stages the window passes whose corner is the first of the sums.
func (s *scaled) passed(sums []int32, norm float32) int {
	for i := range s.stages {
		stage := &s.stages[i]
		var total float32
		for k := range stage.stumps {
			t := &stage.stumps[k]
			c := &t.corners
			value := float32(t.weights[0]*float32(sums[c[0]]-sums[c[1]]-sums[c[2]]+sums[c[3]])) +
				float32(t.weights[1]*float32(sums[c[4]]-sums[c[5]]-sums[c[6]]+sums[c[7]]))
			if t.third {
				value += float32(t.weights[2] * float32(sums[c[8]]-sums[c[9]]-sums[c[10]]+sums[c[11]]))
			}
			if value*norm < t.threshold {
				total += t.left
			} else {
				total += t.right
			}
		}
		if total < stage.threshold {
			return i
		}
	}
	return len(s.stages)
}

// flatten makes offsets of the rectangles for an integral image of that many columns.
func (s *scaled) flatten(stride int) {
	s.stages = s.stages[:0]
	for _, from := range s.cascade.stages {
		stage := flatStage{threshold: from.threshold, stumps: make([]flatStump, len(from.stumps))}
		for i, t := range from.stumps {
			flat := flatStump{threshold: t.threshold, left: t.left, right: t.right, third: len(t.rects) == 3}
			for k, r := range t.rects {
				corners := rectCorners(r.x, r.y, r.w, r.h, stride)
				copy(flat.corners[4*k:], corners[:])
				flat.weights[k] = r.weight
			}
			stage.stumps[i] = flat
		}
		s.stages = append(s.stages, stage)
	}
}

func rectCorners(x, y, w, h, stride int) [4]int32 {
	top, bottom := y*stride+x, (y+h)*stride+x
	return [4]int32{int32(top), int32(top + w), int32(bottom), int32(bottom + w)}
}

func rectSum[T int32 | uint32](sums []T, c [4]int32) T {
	return sums[c[0]] - sums[c[1]] - sums[c[2]] + sums[c[3]]
}

// integrate shrinks the plane and makes the integral images of its values and their squares. The squares of a window
// fit into 32 bits, and differences of sums that wrap around are right all the same.
func (s *scaled) integrate(grey *image.Gray, width, height int) {
	s.small = grow(s.small, width*height)
	small := &image.Gray{Pix: s.small, Stride: width, Rect: image.Rect(0, 0, width, height)}
	picture.Interpolate(small, grey, taps(grey.Rect.Dx(), width), taps(grey.Rect.Dy(), height))
	stride := width + 1
	s.sums, s.squares = grow(s.sums, stride*(height+1)), grow(s.squares, stride*(height+1))
	clear(s.sums[:stride])
	clear(s.squares[:stride])
	for y := range height {
		above, here := s.sums[y*stride:][:stride], s.sums[(y+1)*stride:][:stride]
		above2, here2 := s.squares[y*stride:][:stride], s.squares[(y+1)*stride:][:stride]
		here[0], here2[0] = 0, 0
		var sum int32
		var sum2 uint32
		for x, v := range s.small[y*width:][:width] {
			sum += int32(v)
			sum2 += uint32(v) * uint32(v)
			here[x+1], here2[x+1] = above[x+1]+sum, above2[x+1]+sum2
		}
	}
}

// grow returns a slice of that length, the same one where it has room. Its content is not defined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// taps are OpenCV's INTER_LINEAR_EXACT from so many pixels to as many or fewer: centres of pixels half a pixel from
// their edges.
func taps(from, to int) []picture.Tap {
	list := make([]picture.Tap, to)
	scale := float64(from) / float64(to)
	for i := range list {
		v := float64(scale*(float64(i)+0.5)) - 0.5
		at := int(math.Floor(v))
		if at >= from-1 {
			list[i] = picture.Tap{At: from - 1, Next: from - 1}
		} else {
			list[i] = picture.Tap{At: at, Next: at + 1, Weight: uint32(round((v - float64(at)) * 256))}
		}
	}
	return list
}

// group joins windows that overlap, as OpenCV's groupRectangles with eps 0.2, and keeps groups of more than so many.
func group(windows []image.Rectangle, neighbors int) []image.Rectangle {
	type class struct {
		min, max image.Point // sums
		n        int
	}
	of := components(windows)
	classes := map[int]*class{}
	var order []int
	for i, w := range windows {
		c := classes[of[i]]
		if c == nil {
			c = &class{}
			classes[of[i]] = c
			order = append(order, of[i])
		}
		c.min, c.max, c.n = c.min.Add(w.Min), c.max.Add(w.Size()), c.n+1
	}
	var means []image.Rectangle
	var counts []int
	for _, k := range order {
		c := classes[k]
		if c.n <= neighbors {
			continue
		}
		mean := func(v int) int { return round(float64(float32(v) * (1 / float32(c.n)))) }
		corner := image.Pt(mean(c.min.X), mean(c.min.Y))
		means = append(means, image.Rectangle{Min: corner, Max: corner.Add(image.Pt(mean(c.max.X), mean(c.max.Y)))})
		counts = append(counts, c.n)
	}
	var faces []image.Rectangle
	for i, r := range means {
		if !swallowed(i, r, means, counts) {
			faces = append(faces, r)
		}
	}
	return faces
}

// swallowed reports whether a group lies inside a better supported one, with a margin of a fifth.
func swallowed(i int, r image.Rectangle, means []image.Rectangle, counts []int) bool {
	for j, other := range means {
		margin := round(float64(other.Dx()) * 0.2)
		if i != j && r.In(other.Inset(-margin)) && (counts[j] > max(3, counts[i]) || counts[i] < 3) {
			return true
		}
	}
	return false
}

// components numbers the windows so that alike ones, and those alike to them, have one number.
func components(windows []image.Rectangle) []int {
	of := make([]int, len(windows))
	for i := range of {
		of[i] = i
	}
	root := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	// From left to right, each is compared with those that begin near enough to be alike.
	order := slices.Clone(of)
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(windows[i].Min.X, windows[j].Min.X) })
	for k, i := range order {
		a := windows[i]
		for _, j := range order[k+1:] {
			b := windows[j]
			if float64(b.Min.X-a.Min.X) > 0.2*float64(a.Dx()) {
				break
			}
			if alike(a, b) {
				of[root(i)] = root(j)
			}
		}
	}
	for i := range of {
		of[i] = root(i)
	}
	return of
}

// alike reports whether no side of two squares differs by more than a tenth of their smaller sides together.
func alike(a, b image.Rectangle) bool {
	most := 0.1 * float64(min(a.Dx(), b.Dx())+min(a.Dy(), b.Dy()))
	within := func(p, q int) bool { return math.Abs(float64(p-q)) <= most }
	return within(a.Min.X, b.Min.X) && within(a.Min.Y, b.Min.Y) && within(a.Max.X, b.Max.X) && within(a.Max.Y, b.Max.Y)
}
