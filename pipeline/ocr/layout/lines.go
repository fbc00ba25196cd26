package layout

import (
	"cmp"
	"image"
	"slices"
)

// A textLine is a row of shapes of one layer that look like letters of one line of text.
type textLine struct {
	layer   int // its number in the queue
	letters []int
	box     image.Rectangle // of the letters
	shift   image.Point     // of a turned layer: from there to where the line is
	place   image.Rectangle // the box in pixels of the original image
	high    int             // of a letter: three of four are at most so high
	even    int             // in thousandths: how many neighbours stand on, and reach up to, one line
}

// Limits of a letter, in pixels of the scaled picture.
const (
	letterLow      = 6  // pixels at least
	letterHighPart = 4  // the picture's height over a letter's at least
	letterWide     = 4  // times its height at most: letters that touch
	letterNarrow   = 10 // times its width at most is its height
	letterInkPct   = 12 // of its box at least
)

// Limits of a line.
const (
	likePct     = 55  // of the higher one: the lower of two neighbours at least
	gapBackPct  = 33  // of the higher one: so far neighbours may overlap
	gapPct      = 110 // of the higher one: the space between them at most
	besidePct   = 70  // of the lower one: what two of a row have in common in height
	lineLetters = 4   // at least
	lineHigh    = 3   // times the height of its letters at most
	lowLine     = 10  // pixels below which its letters are low, and have to be lowLetters at least: most noise is low
	lowLetters  = 8
)

// findLines lists the lines of a layer that are even enough, and the words of up to three letters next to them.
func (l *layer) findLines(number, even int) []textLine {
	var lines []textLine
	var short [][]int
	for _, g := range l.link(l.letters()) {
		if len(g) < lineLetters {
			short = append(short, g)
			continue
		}
		t := l.newLine(number, g)
		if t.box.Dy() <= lineHigh*t.high && t.even >= even && (t.high >= lowLine || len(g) >= lowLetters) {
			lines = append(lines, t)
		}
	}
	lines = l.addShort(l.joinLines(lines), short)
	l.used = make([]bool, len(l.shapes))
	for _, t := range lines {
		for _, n := range t.letters {
			l.used[n] = true
		}
	}
	return lines
}

// letters lists the shapes that may be letters, from left to right.
func (l *layer) letters() []int {
	height := l.gray.Rect.Dy()
	var out []int
	for i, s := range l.shapes {
		w, h := s.box.Dx(), s.box.Dy()
		fits := h >= letterLow && letterHighPart*h <= height && w <= letterWide*h && h <= letterNarrow*w
		if fits && 100*s.ink >= letterInkPct*w*h {
			out = append(out, i)
		}
	}
	return l.across(out)
}

// across sorts shapes from left to right.
func (l *layer) across(shapes []int) []int {
	slices.SortFunc(shapes, func(a, b int) int {
		return cmp.Or(cmp.Compare(l.box(a).Min.X, l.box(b).Min.X), cmp.Compare(a, b))
	})
	return shapes
}

func (l *layer) box(shape int) image.Rectangle { return l.shapes[shape].box }

// link joins each letter with the nearest that can stand after it, and lists the groups.
func (l *layer) link(letters []int) [][]int {
	group := make([]int, len(letters)) // the first letter of each one's group, at last
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	for i, n := range letters {
		a := l.box(n)
		farthest := a.Max.X + a.Dy()*100/likePct*gapPct/100
		for k := i + 1; k < len(letters) && l.box(letters[k]).Min.X <= farthest; k++ {
			if follows(a, l.box(letters[k])) {
				x, y := root(i), root(k)
				group[max(x, y)] = min(x, y)
				break
			}
		}
	}
	var out [][]int
	at := make([]int, len(letters)) // where a group stands in out, by its first letter
	for i, n := range letters {
		r := root(i)
		if r == i {
			at[i] = len(out)
			out = append(out, nil)
		}
		out[at[r]] = append(out[at[r]], n)
	}
	return out
}

// follows reports whether b can be the letter after a: about as high, in its row, and near.
func follows(a, b image.Rectangle) bool {
	high, low := max(a.Dy(), b.Dy()), min(a.Dy(), b.Dy())
	gap := b.Min.X - a.Max.X
	return 100*low >= likePct*high && 100*gap >= -gapBackPct*high && 100*gap <= gapPct*high && inRow(a, b)
}

// inRow reports whether two boxes have most of the lower one's height in common.
func inRow(a, b image.Rectangle) bool {
	return 100*(min(a.Max.Y, b.Max.Y)-max(a.Min.Y, b.Min.Y)) >= besidePct*min(a.Dy(), b.Dy())
}

func (l *layer) newLine(number int, letters []int) textLine {
	t := textLine{layer: number, letters: letters}
	heights := make([]int, len(letters))
	for i, n := range letters {
		t.box = t.box.Union(l.box(n))
		heights[i] = l.box(n).Dy()
	}
	slices.Sort(heights)
	t.high = heights[len(heights)*3/4]
	near := max(1, t.high/8)
	level := 0
	for i := range len(letters) - 1 {
		a, b := l.box(letters[i]), l.box(letters[i+1])
		if max(a.Max.Y-b.Max.Y, b.Max.Y-a.Max.Y) <= near {
			level++
		}
		if max(a.Min.Y-b.Min.Y, b.Min.Y-a.Min.Y) <= near {
			level++
		}
	}
	t.even = 1000 * level / (2*(len(letters)-1) + 1)
	return t
}

// Parts of one line of text: wide spaces and broken letters divide it.
const (
	joinBackPct = 50  // of the height of the line's letters: so far two parts may overlap
	joinGapPct  = 200 // and so far from each other may they stand
	joinLowPct  = 70  // the height of the other part's letters, at least and at most
	joinHighPct = 135
)

// extends reports whether two lines, or a line and a short group, are parts of one.
func (t textLine) extends(other textLine) bool {
	gap := max(t.box.Min.X-other.box.Max.X, other.box.Min.X-t.box.Max.X)
	return inRow(t.box, other.box) && within(gap, -joinBackPct, joinGapPct, other.high) &&
		within(t.high, joinLowPct, joinHighPct, other.high)
}

// joinLines joins the parts of lines.
func (l *layer) joinLines(lines []textLine) []textLine {
	for i := 0; i < len(lines); i++ {
		for k := i + 1; k < len(lines); {
			if !lines[k].extends(lines[i]) {
				k++
				continue
			}
			lines[i] = l.joined(lines[i], lines[k].letters)
			lines = slices.Delete(lines, k, k+1)
			k = i + 1 // what was too far away may be near now
		}
	}
	return lines
}

func (l *layer) joined(t textLine, letters []int) textLine {
	return l.newLine(t.layer, l.across(slices.Concat(t.letters, letters)))
}

// A short group (ME, OH) straight above or below a line. A short group away from all lines is hardly ever text.
const (
	underLowPct, underHighPct = 80, 125 // the height of its letters, in parts of the line's
	underBackPct, underGapPct = 20, 100 // how far from the line
	underEven2, underEven3    = 300, 600
)

// under reports whether a short group is a line straight below or above another.
func (t textLine) under(other textLine) bool {
	gap := max(t.box.Min.Y-other.box.Max.Y, other.box.Min.Y-t.box.Max.Y)
	across := min(t.box.Max.X, other.box.Max.X) - max(t.box.Min.X, other.box.Min.X)
	return within(gap, -underBackPct, underGapPct, other.high) &&
		within(t.high, underLowPct, underHighPct, other.high) && 2*across >= t.box.Dx()
}

// addShort joins groups of up to three letters to lines that they extend, and makes lines of those of two and three
// letters that are straight above or below a line.
func (l *layer) addShort(lines []textLine, groups [][]int) []textLine {
	long := len(lines)
	if long == 0 {
		return nil
	}
	for _, g := range groups {
		s := l.newLine(lines[0].layer, g)
		if i := slices.IndexFunc(lines[:long], s.extends); i >= 0 {
			lines[i] = l.joined(lines[i], g)
			continue
		}
		even := len(g) == 3 && s.even >= underEven3 || len(g) == 2 && s.even >= underEven2
		if even && slices.ContainsFunc(lines[:long], s.under) {
			lines = append(lines, s)
		}
	}
	return lines
}

// within reports whether n is between two percentages of whole.
func within(n, low, high, whole int) bool { return 100*n >= low*whole && 100*n <= high*whole }
