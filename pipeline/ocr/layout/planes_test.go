package layout

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
)

func TestScaledSize(t *testing.T) {
	for _, tt := range []struct{ w, h, long, wantW, wantH int }{
		{1100, 550, 550, 550, 275},
		{550, 1100, 550, 275, 550},
		{720, 720, 700, 700, 700},
		{1000, 333, 700, 700, 233}, // 233.1
		{1000, 335, 700, 700, 235}, // 234.5
		{16384, 1, 550, 550, 1},
		{1, 16384, 700, 1, 700},
		{100, 50, 550, 400, 200}, // at most 4 times
		{1, 1, 1000, 4, 4},
		{300, 200, 550, 550, 367},
	} {
		if w, h := scaledSize(tt.w, tt.h, tt.long); w != tt.wantW || h != tt.wantH {
			t.Errorf("scaledSize(%d, %d, %d) = %d, %d, want %d, %d", tt.w, tt.h, tt.long, w, h, tt.wantW, tt.wantH)
		}
	}
}

func grayOf(width int, pix ...uint8) *image.Gray {
	return &image.Gray{Pix: pix, Stride: width, Rect: image.Rect(0, 0, width, len(pix)/width)}
}

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		name string
		src  *image.Gray
		long int
		want *image.Gray
	}{
		{"as it is", grayOf(2, 1, 2, 3, 4), 2, grayOf(2, 1, 2, 3, 4)},
		{"halved", grayOf(4, 0, 100, 8, 8, 100, 200, 8, 8), 2, grayOf(2, 100, 8)},
		{"3 to 2, exact area", grayOf(3, 0, 90, 255), 2, grayOf(2, 30, 200)},
		{"to one pixel", grayOf(2, 0, 255, 255, 255), 1, grayOf(1, 191)},
		{"doubled, linear", grayOf(2, 0, 200), 4, grayOf(4, 0, 50, 150, 200, 0, 50, 150, 200)},
	} {
		testkit.Same(t, tt.name, tt.want, scale(tt.src, tt.long))
	}
}

// An even grey stays itself at every size.
func TestScaleKeepsLevel(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {7, 3}, {1, 900}, {333, 101}, {1024, 768}, {701, 699}} {
		src := grayOf(size.X, bytes.Repeat([]byte{137}, size.X*size.Y)...)
		for _, long := range []int{550, 700, 1000} {
			for i, v := range scale(src, long).Pix {
				if v != 137 {
					t.Fatalf("%v to %d: pixel %d = %d, want 137", size, long, i, v)
				}
			}
		}
	}
}

// TestColourPlanes: C is how far the channels are apart, X the brightest of them, whatever the image's colour model.
func TestColourPlanes(t *testing.T) {
	for _, tt := range []struct {
		name              string
		c                 color.Color
		spread, brightest uint8
	}{
		{"white", color.White, 0, 255}, {"black", color.Black, 0, 0},
		{"dark red", color.NRGBA{140, 10, 20, 255}, 130, 140},
		{"blue", color.NRGBA{20, 60, 230, 255}, 210, 230}, {"transparent is white", color.NRGBA{0, 0, 0, 0}, 0, 255},
	} {
		img := image.NewNRGBA(image.Rect(5, 5, 8, 45))
		draw.Draw(img, img.Rect, image.NewUniform(tt.c), image.Point{}, draw.Src)
		planes := colourPlanes(img)
		for i := range planes["C"].Pix {
			testkit.Same(t, tt.name, []uint8{tt.spread, tt.brightest}, []uint8{planes["C"].Pix[i], planes["X"].Pix[i]})
		}
	}
	testkit.Same(t, "planes of a grey image", 0, len(colourPlanes(grayOf(1, 7))))
}

// TestSearchAgain: text that its colour alone tells apart is found, by the look that is for it.
func TestSearchAgain(t *testing.T) {
	for _, tt := range []struct {
		name         string
		paper, paint color.NRGBA
		want         string
	}{
		{"blue on green of the same luma", color.NRGBA{110, 115, 70, 255}, color.NRGBA{60, 110, 250, 255}, "C"},
		{"black on dark red", color.NRGBA{150, 0, 0, 255}, color.NRGBA{0, 0, 0, 255}, "X"},
	} {
		img := image.NewNRGBA(image.Rect(0, 0, lookLong, 400))
		draw.Draw(img, img.Rect, image.NewUniform(tt.paper), image.Point{}, draw.Src)
		for _, box := range row(8, 40, 100, 20, 40, 30) {
			draw.Draw(img, box, image.NewUniform(tt.paint), image.Point{}, draw.Src)
		}
		q := newQueue(newPlanes(img))
		first := len(q.layers)
		q.lines = nil
		q.searchAgain(colourPlanes(img))
		var got []string
		for _, l := range q.lines {
			got = append(got, lastLooks[l.layer-first].plane)
		}
		if !slices.Contains(got, tt.want) {
			t.Errorf("%s: lines in %q, want one in %s", tt.name, got, tt.want)
		}
	}
}

func TestPlanes(t *testing.T) {
	for _, tt := range []struct {
		name       string
		c          color.Color
		luma, mini uint8
	}{
		{"white", color.White, 255, 255},
		{"black", color.Black, 0, 0},
		{"yellow", color.NRGBA{255, 255, 0, 255}, 225, 0},
		{"light blue", color.NRGBA{180, 200, 255, 255}, 200, 180},
		{"dark: luma stands in", color.NRGBA{200, 100, 20, 255}, 120, 120},
		{"transparent is white", color.NRGBA{0, 0, 0, 0}, 255, 255},
		{"half-transparent black", color.NRGBA{0, 0, 0, 51}, 204, 204},
	} {
		src := image.NewNRGBA(image.Rect(5, 5, 8, 75)) // more rows than a strip, off the origin
		for y := 5; y < 75; y++ {
			for x := 5; x < 8; x++ {
				src.Set(x, y, tt.c)
			}
		}
		p := newPlanes(src)
		if p.luma.Rect != image.Rect(0, 0, 3, 70) {
			t.Fatalf("%s: plane of %v", tt.name, p.luma.Rect)
		}
		for i := range p.luma.Pix {
			if p.luma.Pix[i] != tt.luma || p.minimum.Pix[i] != tt.mini {
				t.Errorf("%s: pixel %d: Y %d, M %d, want %d, %d", tt.name, i, p.luma.Pix[i], p.minimum.Pix[i], tt.luma, tt.mini)
				break
			}
		}
	}
}

func TestPlanesOfJPEG(t *testing.T) {
	src := image.NewYCbCr(image.Rect(0, 0, 6, 4), image.YCbCrSubsampleRatio420)
	for i := range src.Y {
		src.Y[i] = uint8(10 * i)
	}
	for i := range src.Cb {
		src.Cb[i], src.Cr[i] = uint8(90+20*i), uint8(160-10*i)
	}
	part := src.SubImage(image.Rect(2, 1, 6, 4)).(*image.YCbCr)
	p := newPlanes(part)
	for y := range 3 {
		for x := range 4 {
			want := part.YCbCrAt(x+2, y+1)
			if got := p.luma.GrayAt(x, y).Y; got != want.Y {
				t.Errorf("Y(%d, %d) = %d, want %d", x, y, got, want.Y)
			}
			mini := want.Y
			if want.Y >= 150 {
				r, g, b := color.YCbCrToRGB(want.Y, want.Cb, want.Cr)
				mini = min(r, g, b)
			}
			if got := p.minimum.GrayAt(x, y).Y; got != mini {
				t.Errorf("M(%d, %d) = %d, want %d", x, y, got, mini)
			}
		}
	}
}

// TestStretched: the ramps of a faded picture lie between its own black and white.
func TestStretched(t *testing.T) {
	levelled := func(few int, levels ...uint8) *image.Gray {
		g := image.NewGray(image.Rect(0, 0, 100, 100))
		for i := range g.Pix {
			g.Pix[i] = levels[i%len(levels)]
		}
		for i := range few { // a light, and a shadow
			g.Pix[i], g.Pix[len(g.Pix)-1-i] = 255, 0
		}
		return g
	}
	all := []look{{"Y", 250, 180, 500}, {"M", 250, 180, 500}, {"Y", 20, 140, 550}}
	for _, tt := range []struct {
		name string
		luma *image.Gray
		want []look
	}{
		{"black and white", levelled(0, 0, 255), all},
		{"wide enough", levelled(0, 40, 200), all},
		{"blank", levelled(0, 100, 115), all},
		{"faded", levelled(0, 100, 151), []look{{"Y", 150, 136, 500}, {"M", 250, 180, 500}, {"Y", 104, 128, 550}}},
		{"faded but for a few pixels", levelled(10, 100, 151),
			[]look{{"Y", 150, 136, 500}, {"M", 250, 180, 500}, {"Y", 104, 128, 550}}},
		{"faded but for more", levelled(11, 100, 151), all},
	} {
		testkit.Same(t, tt.name, fmt.Sprint(tt.want), fmt.Sprint(stretched(all, tt.luma)))
	}
}

// TestEvened: a level ground is 128 wherever it lies between black and white, and what differs from it stands out.
func TestEvened(t *testing.T) {
	g := image.NewGray(image.Rect(0, 0, 300, 90))
	for x := range 300 {
		for y := range 90 {
			g.Pix[y*300+x] = uint8(40 + x/3)
		}
	}
	for _, x := range []int{0, 100, 299} {
		g.Pix[45*300+x] += 20
	}
	out := evened(g)
	for _, tt := range []struct {
		x, y int
		want uint8
	}{{150, 20, 128}, {150, 89, 128}, {100, 45, 208}, {50, 45, 128}, {0, 45, 196}, {299, 45, 224}} {
		if got := out.GrayAt(tt.x, tt.y).Y; got < tt.want-4 || got > tt.want+4 {
			t.Errorf("evened at %d, %d: %d, want about %d", tt.x, tt.y, got, tt.want)
		}
	}
	if got := evened(grayOf(2, 10, 10, 10, 14)).Pix; !bytes.Equal(got, []uint8{124, 124, 124, 140}) {
		t.Errorf("evened of less than its reach: %v", got)
	}
}
