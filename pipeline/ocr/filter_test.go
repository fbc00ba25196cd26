package ocr

import (
	"image"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSoftThresholds(t *testing.T) {
	tests := []struct{ v, white, dark uint8 }{
		{0, 255, 0}, {20, 255, 0}, {80, 255, 128}, {140, 255, 255}, {180, 255, 255},
		{187, 230, 255}, {215, 128, 255}, {249, 4, 255}, {250, 0, 255}, {255, 0, 255},
	}
	for _, tt := range tests {
		white, dark := grayOf(1, tt.v), grayOf(1, tt.v)
		softWhite(white, 180, 250)
		softDark(dark, 20, 140)
		if white.Pix[0] != tt.white || dark.Pix[0] != tt.dark {
			t.Errorf("%d: white %d, dark %d, want %d, %d", tt.v, white.Pix[0], dark.Pix[0], tt.white, tt.dark)
		}
	}
}

// drawn makes an image: '#' ink, '+' fringe (200), anything else white.
func drawn(rows ...string) *image.Gray {
	g := image.NewGray(image.Rect(0, 0, len(rows[0]), len(rows)))
	for y, row := range rows {
		for x, c := range row {
			g.Pix[y*g.Stride+x] = map[rune]uint8{'#': 0, '+': 200}[c]
			if c != '#' && c != '+' {
				g.Pix[y*g.Stride+x] = 255
			}
		}
	}
	return g
}

func shown(g *image.Gray) string {
	var b strings.Builder
	for i, v := range g.Pix {
		switch {
		case v < componentDark:
			b.WriteByte('#')
		case v < 255:
			b.WriteByte('+')
		default:
			b.WriteByte('.')
		}
		if i%g.Stride == g.Stride-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestFilterComponents(t *testing.T) {
	tests := []struct {
		name     string
		in, want []string
	}{
		{"a quarter of the height and half of the width stay, fringe and all", []string{
			"............",
			".+####......",
			".+####+.....",
			"............",
			"............",
			"............",
			"............",
			"............",
		}, []string{
			"............",
			".+####......",
			".+####+.....",
			"............",
			"............",
			"............",
			"............",
			"............",
		}},
		{"too high goes, with its fringe but not a neighbour's", []string{
			"............",
			"..+#+..++...",
			"..+#+.+##+..",
			"..+#+..++...",
			"............",
			"............",
			"............",
			"............",
		}, []string{
			"............",
			".......++...",
			"......+##+..",
			".......++...",
			"............",
			"............",
			"............",
			"............",
		}},
		{"too wide goes, letters beside it stay", []string{
			"............",
			".#######.##.",
			".......+.##.",
			"............",
			"............",
			"............",
			"............",
			"............",
		}, []string{
			"............",
			".........##.",
			".........##.",
			"............",
			"............",
			"............",
			"............",
			"............",
		}},
		{"corners join", []string{
			"............",
			".#..........",
			"..#.........",
			"...#........",
			"............",
			"............",
			"............",
			"............",
		}, []string{
			"............",
			"............",
			"............",
			"............",
			"............",
			"............",
			"............",
			"............",
		}},
		{"branches that meet lower down are one", []string{
			"............",
			".#.#........",
			".#.#..##....",
			".###..##....",
			"............",
			"............",
			"............",
			"............",
		}, []string{
			"............",
			"............",
			"......##....",
			"......##....",
			"............",
			"............",
			"............",
			"............",
		}},
	}
	for _, tt := range tests {
		g := drawn(tt.in...)
		filterComponents(g)
		if diff := cmp.Diff(strings.Join(tt.want, "\n")+"\n", shown(g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestFilterComponentsSpecks(t *testing.T) {
	g := image.NewGray(image.Rect(0, 0, 500, 500)) // a speck has both sides under 4
	for i := range g.Pix {
		g.Pix[i] = 255
	}
	ink := func(r image.Rectangle) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				g.Pix[y*g.Stride+x] = 0
			}
		}
	}
	speck, dot, dash := image.Rect(10, 10, 13, 13), image.Rect(50, 10, 54, 14), image.Rect(90, 10, 92, 14)
	ink(speck)
	ink(dot)
	ink(dash)
	filterComponents(g)
	for r, want := range map[image.Rectangle]uint8{speck: 255, dot: 0, dash: 0} {
		if got := g.GrayAt(r.Min.X, r.Min.Y).Y; got != want {
			t.Errorf("component %v: %d, want %d", r, got, want)
		}
	}
}

// The span filter agrees with a plain flood fill on noise of all densities.
func TestFilterComponentsAgainstFloodFill(t *testing.T) {
	state := uint32(1)
	for round := range 60 {
		width, height := 5+round%23, 5+round%31
		a := image.NewGray(image.Rect(0, 0, width, height))
		for i := range a.Pix {
			state = state*1664525 + 1013904223
			a.Pix[i] = 255
			switch v := int(state >> 24); {
			case v < 40+3*round:
				a.Pix[i] = 10
			case v > 230:
				a.Pix[i] = 190
			}
		}
		b := image.NewGray(a.Rect)
		copy(b.Pix, a.Pix)
		filterComponents(a)
		floodFilter(b)
		if diff := cmp.Diff(shown(b), shown(a)); diff != "" {
			t.Fatalf("round %d, %d x %d (-flood fill +spans):\n%s", round, width, height, diff)
		}
	}
}

func floodFilter(g *image.Gray) {
	width, height := g.Rect.Dx(), g.Rect.Dy()
	label := make([]int, len(g.Pix))
	var bad []int
	for start := range g.Pix {
		if g.Pix[start] >= componentDark || label[start] != 0 {
			continue
		}
		id := start + 1
		label[start] = id
		var box image.Rectangle
		for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
			x, y := queue[0]%width, queue[0]/width
			box = box.Union(image.Rect(x, y, x+1, y+1))
			around(g, x, y, func(i int) {
				if g.Pix[i] < componentDark && label[i] == 0 {
					label[i] = id
					queue = append(queue, i)
				}
			})
		}
		if !letterSized(box, width, height) {
			bad = append(bad, id)
		}
	}
	out := append([]uint8(nil), g.Pix...)
	for _, id := range bad {
		for i := range label {
			if label[i] != id {
				continue
			}
			out[i] = 255
			around(g, i%width, i/width, func(n int) {
				if label[n] == 0 {
					out[n] = 255
				}
			})
		}
	}
	copy(g.Pix, out)
}

func around(g *image.Gray, x, y int, visit func(i int)) {
	for dy := -1; dy <= 1; dy++ {
		for dx := -1; dx <= 1; dx++ {
			if p := image.Pt(x+dx, y+dy); p.In(g.Rect) {
				visit(p.Y*g.Stride + p.X)
			}
		}
	}
}
