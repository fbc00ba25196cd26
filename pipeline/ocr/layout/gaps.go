package layout

import (
	"cmp"
	"fmt"
	"image"
	"slices"
	"strings"

	"rehydrate/internal/picture"
	"rehydrate/internal/word"
)

// A gap is a place in a row of accepted words that has shapes as high as letters and no accepted word.
//
// Letters that touch what is behind them, or stand in another look than the rest of their line, are in no strip, or the
// strip's reading of them is noise. The place is cut out again, whole, and read in two ways. Boxes of words say badly
// where a gap is, since they are often a letter short; clusters of the shapes of all looks say it well. On 338
// memes 210 gaps are read, two small strips each, and give 36 words for 9 wrong ones.
type gap struct {
	box    image.Rectangle // of its shapes, in pixels of the layers
	cut    image.Rectangle // what is read of it
	high   int             // of the row, in pixels of the layers
	look   int             // of the nearest accepted word
	row    []candidate     // the accepted words of its row, from left to right
	others []candidate     // words of the row that are not accepted
}

// Where gaps are, in parts of the height of the highest accepted word of the row.
const (
	gapsMost                = 12 // of a picture
	gapLowPct, gapHighPct   = 45, 140
	gapWide                 = 4  // times: a shape at most
	clusterPct              = 20 // closer shapes are one cluster
	gapCoveredPct           = 45 // of a cluster's width under accepted words at most
	gapNarrowPct            = 8  // a gap's width at least
	gapReachPct, gapEndMost = 120, 12
	gapRowPct               = 75 // of the median letter: the row at least; watermarks are lower
	gapAsidePct             = 15 // of room to each side of what is read
)

// fill reads the gaps of the merged words again, and puts in what is certain enough.
func (r *reader) fill(merged []candidate) ([]candidate, error) {
	gaps := r.gaps(merged)
	var strips []strip
	var pictures []*image.Gray
	for _, g := range gaps {
		for _, s := range r.strips(g) {
			strips, pictures = append(strips, s), append(pictures, s.gray)
		}
	}
	var read [][]candidate
	for first := 0; first < len(pictures); first += BatchSize {
		answers, err := r.recognize(pictures[first:min(first+BatchSize, len(pictures))], false)
		if err != nil {
			return nil, err
		}
		for i, words := range answers {
			g, number := gaps[(first+i)/2], len(r.queue.places)+first+i
			placed, ink := strips[first+i].place(words, textLine{box: g.cut}, number)
			read = append(read, r.collect(placed, ink, g.look, r.queue.size()))
		}
	}
	var found []choice
	for i, g := range gaps {
		found = append(found, r.best(g, read[2*i:2*i+2])...)
	}
	return put(merged, found), nil
}

// inLayer is the box of a word in pixels of the layers.
func (q *queue) inLayer(c candidate) image.Rectangle { return rescaleBox(c.Box, q.original, q.size()) }

// gaps finds the gaps of merged words.
func (r *reader) gaps(merged []candidate) []gap {
	verdicts := judge(merged, r.page.rules.lexicon())
	least := rescale(gapRowPct*medianHeight(verdicts), r.queue.original.Y, r.queue.size().Y)
	var out []gap
	for len(verdicts) > 0 {
		n := 1
		for n < len(verdicts) && verdicts[n].line == verdicts[0].line {
			n++
		}
		var row gap
		for _, v := range verdicts[:n] {
			if v.accepted {
				row.row, row.high = append(row.row, v.candidate), max(row.high, r.queue.inLayer(v.candidate).Dy())
			} else {
				row.others = append(row.others, v.candidate)
			}
		}
		verdicts = verdicts[n:]
		if slices.ContainsFunc(row.row, candidate.sure) && 100*row.high >= least {
			out = append(out, r.queue.gapsOf(row)...)
		}
	}
	return out[:min(len(out), gapsMost)]
}

// gapsOf finds the gaps of a row.
func (q *queue) gapsOf(row gap) []gap {
	longest := slices.MaxFunc(row.row, func(a,
		b candidate) int {
		return cmp.Compare(letters(a.Text), letters(b.Text))
	})
	if longest.look >= len(q.layers) || q.layers[longest.look].turned {
		return nil
	}
	var words []image.Rectangle
	for _, c := range row.row {
		words = append(words, q.inLayer(c))
	}
	var out []gap
	clusters := q.clusters(row, q.layers[longest.look].bright(), words)
	for i := 0; i < len(clusters); i++ {
		if !isGap(clusters[i], words, row.high) {
			continue
		}
		g, first := row, i
		g.box = clusters[i]
		for ; i+1 < len(clusters) && isGap(clusters[i+1], words, row.high); i++ {
			g.box = g.box.Union(clusters[i+1])
		}
		aside := gapAsidePct * row.high / 100
		near := nearest(g.box, words)
		g.look = row.row[near].look
		g.cut = image.Rect(g.box.Min.X-aside, min(g.box.Min.Y, words[near].Min.Y),
			g.box.Max.X+aside, max(g.box.Max.Y, words[near].Max.Y))
		if first > 0 {
			g.cut.Min.X = max(g.cut.Min.X, clusters[first-1].Max.X)
		}
		if i+1 < len(clusters) {
			g.cut.Max.X = min(g.cut.Max.X, clusters[i+1].Min.X)
		}
		if g.look < len(q.layers) && !q.layers[g.look].turned {
			out = append(out, g)
		}
	}
	return out
}

func nearest(box image.Rectangle, words []image.Rectangle) int {
	best, least := 0, 1<<30
	for i, w := range words {
		if d := max(w.Min.X-box.Max.X, box.Min.X-w.Max.X); d < least {
			best, least = i, d
		}
	}
	return best
}

// isGap reports whether accepted words leave most of a cluster free.
func isGap(cluster image.Rectangle, words []image.Rectangle, high int) bool {
	covered := 0
	for _, w := range words {
		covered += max(0, min(w.Max.X, cluster.Max.X)-max(w.Min.X, cluster.Min.X))
	}
	return 100*cluster.Dx() >= gapNarrowPct*high && 100*covered <= gapCoveredPct*cluster.Dx()
}

// clusters lists the clusters of a row, from left to right: of the shapes of all looks at bright text, or at dark text,
// and of the words that are not accepted.
func (q *queue) clusters(row gap, bright bool, words []image.Rectangle) []image.Rectangle {
	var parts []image.Rectangle
	for _, l := range q.layers {
		if l.turned || l.bright() != bright {
			continue
		}
		for _, s := range l.shapes {
			fits := within(s.box.Dy(), gapLowPct, gapHighPct, row.high) && s.box.Dx() <= gapWide*row.high
			if fits && inRow(s.box, words[nearest(s.box, words)]) {
				parts = append(parts, s.box)
			}
		}
	}
	for _, c := range row.others {
		parts = append(parts, q.inLayer(c))
	}
	slices.SortFunc(parts, func(a, b image.Rectangle) int {
		return cmp.Or(cmp.Compare(a.Min.X, b.Min.X), cmp.Compare(a.Max.X, b.Max.X),
			cmp.Compare(a.Min.Y, b.Min.Y), cmp.Compare(a.Max.Y, b.Max.Y))
	})
	var out []image.Rectangle
	for _, p := range parts {
		if n := len(out); n > 0 && 100*(p.Min.X-out[n-1].Max.X) < clusterPct*row.high {
			out[n-1] = out[n-1].Union(p)
		} else {
			out = append(out, p)
		}
	}
	return withinReach(out, words, row.high)
}

// withinReach drops the clusters beyond the ends of a row that are too far from the next one.
func withinReach(clusters, words []image.Rectangle, high int) []image.Rectangle {
	if len(clusters) == 0 {
		return nil
	}
	left, right := words[0].Min.X, words[0].Max.X
	for _, w := range words {
		left, right = min(left, w.Min.X), max(right, w.Max.X)
	}
	first := slices.IndexFunc(clusters, func(c image.Rectangle) bool { return c.Max.X > left })
	last := first
	if first < 0 {
		first, last = len(clusters), len(clusters)
	}
	edge := left
	for ; first > 0 && 100*(edge-clusters[first-1].Max.X) <= gapReachPct*high &&
		left-clusters[first-1].Min.X <= gapEndMost*high; first-- {
		edge = clusters[first-1].Min.X
	}
	edge = right
	for ; last < len(clusters) && 100*(clusters[last].Min.X-edge) <= gapReachPct*high &&
		clusters[last].Max.X-right <= gapEndMost*high; last++ {
		edge = max(edge, clusters[last].Max.X)
	}
	return clusters[first:last]
}

// strips cuts a gap out twice: as the look of the nearest word sees it, with all that is there, and in the luma of the
// original, dark text on bright.
func (r *reader) strips(g gap) [2]strip {
	l := r.queue.layers[g.look]
	page := g.page().Intersect(l.gray.Rect)
	box := rescaleBox(page, r.queue.size(), r.queue.original).Intersect(r.page.luma.Rect)
	luma := newRamp(0, 255)
	if l.bright() {
		luma = newRamp(255, 0)
	}
	return [2]strip{newStrip(l.gray, page, l.ramp, page), newStrip(r.page.luma, box, luma, page)}
}

// page is what a strip shows of a gap.
func (g gap) page() image.Rectangle {
	above, below := marginAbovePct*g.high/100+1, marginBelowPct*g.high/100+1
	return image.Rect(g.cut.Min.X, g.cut.Min.Y-above, g.cut.Max.X, g.cut.Max.Y+below)
}

// newStrip makes a strip of a part of a plane; page is where it is in the layers.
func newStrip(plane *image.Gray, part image.Rectangle, r *ramp, page image.Rectangle) strip {
	g := image.NewGray(image.Rectangle{Max: part.Size()})
	for y := range part.Dy() {
		for x := range part.Dx() {
			g.Pix[y*g.Stride+x] = r[plane.GrayAt(part.Min.X+x, part.Min.Y+y).Y]
		}
	}
	width := max(1, (2*part.Dx()*StripHeight+part.Dy())/(2*part.Dy()))
	return strip{picture.Resize(g, image.Pt(min(width, StripWidth), StripHeight)), page}
}

// The confidence from which a word is put into a gap, alone and where two readings of it agree; none above 100 is.
var gapBars = map[string]struct{ alone, agreed float64 }{
	barListed.what: {60, 20}, barShort.what: {75, 40}, barIA.what: {101, 35}, barDigit.what: {101, 60},
	barOther.what: {92, 60}, barSingle.what: {101, 101},
}

// What a word counts for among the readings of a gap: its letters times its confidence and a little more.
const (
	gapOtherLetters = 3 // of a word that the dictionary lacks at least
	gapFloor        = 20
	gapAgreedPct    = 150
	gapOtherPct     = 70
)

// best returns the words of the best reading of a gap that are certain enough. read are its two new readings.
func (r *reader) best(g gap, read [][]candidate) []choice {
	place := rescaleBox(g.box, r.queue.size(), r.queue.original)
	readings := slices.Concat(read, r.earlier(place))
	var best []choice
	most := 0
	for i, words := range readings {
		others := slices.Concat(slices.Concat(slices.Delete(slices.Clone(readings), i, i+1)...), g.others)
		var good []choice
		total := 0
		for _, c := range words {
			c.agreed = slices.ContainsFunc(others, func(o candidate) bool {
				return bare(o.Text) == bare(c.Text) && middleIn(o, place)
			})
			if !r.fillsGap(c, i < len(read)) || g.repeats(c) {
				continue
			}
			c.repair, c.readings = word.Filled, readingsAt(c, slices.Concat(readings...))
			good = append(good, choice{c, c.gapWorth()})
			total += c.gapWorth()
		}
		if total > most {
			best, most = good, total
		}
	}
	return best
}

func (c candidate) gapWorth() int {
	worth := letters(c.Text) * (gapFloor + int(c.Confidence))
	if c.agreed {
		worth = worth * gapAgreedPct / 100
	}
	if !c.listed {
		worth = worth * gapOtherPct / 100
	}
	return worth
}

// fillsGap reports whether a word of a reading of a gap is certain enough. Digits of an earlier reading never are.
func (r *reader) fillsGap(c candidate, fresh bool) bool {
	what := r.page.rules.lexicon().bar(c.Text).what
	if what == barDigit.what && !fresh || what == barOther.what && letters(c.Text) < gapOtherLetters {
		return false
	}
	bar := gapBars[what]
	return c.Confidence >= bar.alone || c.agreed && c.Confidence >= bar.agreed
}

// repeats reports whether a word is a neighbour's once more.
func (g gap) repeats(c candidate) bool {
	return slices.ContainsFunc(g.row, func(o candidate) bool {
		distance := max(o.Box.Min.X-c.Box.Max.X, c.Box.Min.X-o.Box.Max.X)
		return bare(o.Text) == bare(c.Text) && distance <= o.Box.Dy()
	})
}

// earlier lists what was read before in a place, by strip.
func (r *reader) earlier(place image.Rectangle) [][]candidate {
	var out [][]candidate
	at := map[[2]int]int{}
	for _, c := range r.heard {
		if !middleIn(c, place) {
			continue
		}
		key := [2]int{c.look, c.Block}
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], c)
	}
	return out
}

func middleIn(c candidate, place image.Rectangle) bool {
	return image.Pt((c.Box.Min.X+c.Box.Max.X)/2, (c.Box.Min.Y+c.Box.Max.Y)/2).In(place)
}

// gapParameters describes the constants of gaps.
func gapParameters() string {
	var b strings.Builder
	fmt.Fprintf(&b, "; gaps %d, shapes %d-%d%% wide %d near %d%%, covered %d%% narrow %d%%, reach %d%% %d, rows %d%%, "+
		"aside %d%%", gapsMost, gapLowPct, gapHighPct, gapWide, clusterPct, gapCoveredPct, gapNarrowPct, gapReachPct,
		gapEndMost, gapRowPct, gapAsidePct)
	for _, bar := range bars {
		fmt.Fprintf(&b, "; fill %s %v, agreed %v", bar.what, gapBars[bar.what].alone, gapBars[bar.what].agreed)
	}
	fmt.Fprintf(&b, "; other of %d, worth %d %d%% %d%%", gapOtherLetters, gapFloor, gapAgreedPct, gapOtherPct)
	return b.String()
}
