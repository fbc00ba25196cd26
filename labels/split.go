package labels

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rehydrate/manifest"
)

// A Share is a split to be made and its part of the whole.
type Share struct {
	Name  string
	Ratio float64 // above 0, of any scale: 60, 20, 20 is 0.6, 0.2, 0.2
}

// An Assignment gives a split to every post: entries of one post go to one split.
type Assignment struct {
	Posts  []manifest.PostID // in the order of the manifest
	Splits []string          // by Posts
}

// Split shares out every label of every category as exactly as ratios and whole posts allow: iterative
// stratification (Sechidis, Tsoumakas and Vlahavas 2011), then moves of posts until the splits have the sizes of the
// ratios, rounded, then swaps while those help. The same entries, shares and seed give the same splits on any machine.
func Split(ctx context.Context, schema manifest.Schema, entries []manifest.Entry, shares []Share,
	seed uint64) (Assignment, error) {
	s := newStratifier(schema, entries, normal(shares), seed)
	for i, size := range s.sizes {
		if size == 0 {
			return Assignment{}, fmt.Errorf("split: of %d posts split %s would get none", len(s.posts), shares[i].Name)
		}
	}
	// In this order: swaps keep the sizes that level has made exact.
	s.stratify()
	s.level()
	if err := s.swap(ctx); err != nil {
		return Assignment{}, fmt.Errorf("split: %w", err)
	}
	out := Assignment{}
	for _, p := range s.posts {
		out.Posts = append(out.Posts, p.id)
		out.Splits = append(out.Splits, shares[p.split].Name)
	}
	return out, nil
}

// normal gives the parts of 1.
func normal(shares []Share) (ratios []float64) {
	sum := 0.0
	for _, s := range shares {
		sum += s.Ratio
	}
	for _, s := range shares {
		ratios = append(ratios, s.Ratio/sum)
	}
	return ratios
}

// A postLabels is a post with the labels of its entries, numbered through all categories.
type postLabels struct {
	id    manifest.PostID
	has   []int // labels in ascending order, one as often as entries have it
	kind  int   // posts with the same labels have the same number
	split int   // -1: none yet
}

// A stratifier holds a split in the making.
type stratifier struct {
	random *rand.PCG
	ratios []float64
	sizes  []int // posts that each split is to have
	posts  []postLabels
	kinds  [][]int   // labels by kind
	totals []int     // by label
	counts [][]int   // [split][label]
	filled []int     // posts by split
	weight []float64 // by label: what a squared deviation of it costs
}

func newStratifier(schema manifest.Schema, entries []manifest.Entry, ratios []float64, seed uint64) *stratifier {
	s := &stratifier{random: rand.NewPCG(seed, 0x7265687964726174), ratios: ratios}
	first := make([]int, len(schema.Categories)) // number of a category's first label
	n := 0
	for i, c := range schema.Categories {
		first[i] = n
		n += len(c.Labels)
	}
	s.totals = make([]int, n)
	place := make(map[manifest.PostID]int)
	for _, e := range entries {
		if _, known := place[e.ID]; !known {
			place[e.ID] = len(s.posts)
			s.posts = append(s.posts, postLabels{id: e.ID, split: -1})
		}
		p := &s.posts[place[e.ID]] // the images of a gallery stay together: apart they leak from training to test
		for c, labels := range e.Labels {
			for _, l := range labels {
				p.has = append(p.has, first[c]+l)
				s.totals[first[c]+l]++
			}
		}
	}
	s.findKinds()
	s.sizes, s.filled, s.counts = apportion(len(s.posts), ratios), make([]int, len(ratios)), zeros(len(ratios), n)
	for _, total := range s.totals {
		// A label that stands on few posts is off by a large part of it with one post too many.
		s.weight = append(s.weight, 1+10/float64(max(total, 1)))
	}
	return s
}

// exact is the share of split in the entries with a label, without rounding.
func (s *stratifier) exact(split, l int) float64 {
	return float64(s.ratios[split] * float64(s.totals[l])) // the conversion: no processor may round another way (Go spec)
}

// findKinds numbers the posts that are alike.
func (s *stratifier) findKinds() {
	kinds := make(map[string]int)
	for i := range s.posts {
		slices.Sort(s.posts[i].has)
		key := fmt.Sprint(s.posts[i].has)
		if _, known := kinds[key]; !known {
			kinds[key] = len(s.kinds)
			s.kinds = append(s.kinds, s.posts[i].has)
		}
		s.posts[i].kind = kinds[key]
	}
}

// apportion rounds n x ratio so that the sum is n: the largest remainders are rounded up.
func apportion(n int, ratios []float64) []int {
	sizes, order := make([]int, len(ratios)), make([]int, len(ratios))
	left := n
	for i, r := range ratios {
		sizes[i], order[i] = int(float64(r*float64(n))+1e-9), i
		left -= sizes[i]
	}
	rest := func(i int) float64 { return float64(ratios[i]*float64(n)) - float64(sizes[i]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for i := range left {
		sizes[order[i%len(order)]]++
	}
	return sizes
}

// below returns a number from 0 to n-1.
func (s *stratifier) below(n int) int {
	// Not rand.IntN: the split of a seed must not depend on how a library draws numbers.
	return int(s.random.Uint64() % uint64(n))
}

// shuffled gives 0 to n-1 in random order.
func (s *stratifier) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		j := s.below(i + 1)
		order[i], order[j] = order[j], i // each of the i+1 numbers stands at each place alike
	}
	return order
}

// stratify is iterative stratification: the label with the fewest posts left is shared out, each of its posts to the
// split that wants the label most.
func (s *stratifier) stratify() {
	order := s.shuffled(len(s.posts))
	left := slices.Clone(s.totals)
	for {
		rarest := -1 // first, while there are posts of it to choose from
		for l, n := range left {
			if n > 0 && (rarest < 0 || n < left[rarest]) {
				rarest = l
			}
		}
		for _, i := range order {
			p := &s.posts[i]
			if p.split >= 0 || rarest >= 0 && !slices.Contains(p.has, rarest) {
				continue
			}
			s.put(i, s.wants(rarest))
			for _, l := range p.has {
				left[l]--
			}
		}
		if rarest < 0 { // what had no label at all has been shared out by size
			return
		}
	}
}

func (s *stratifier) put(i, split int) {
	p := &s.posts[i]
	if p.split >= 0 {
		s.count(p, -1)
	}
	p.split = split
	s.count(p, 1)
}

func (s *stratifier) count(p *postLabels, n int) {
	s.filled[p.split] += n
	for _, l := range p.has {
		s.counts[p.split][l] += n
	}
}

// wants gives the split that wants a post with the label most; of equals, and of a post without one (-1), the split
// that wants posts most.
func (s *stratifier) wants(label int) int {
	var best []int
	var most [2]float64
	for split := range s.ratios {
		want := [2]float64{0, float64(s.ratios[split]*float64(len(s.posts))) - float64(s.filled[split])}
		if label >= 0 {
			want[0] = s.exact(split, label) - float64(s.counts[split][label])
		}
		order := cmp.Or(cmp.Compare(want[0], most[0]), cmp.Compare(want[1], most[1]))
		if best == nil || order > 0 {
			best, most = nil, want
		}
		if want == most {
			best = append(best, split)
		}
	}
	return best[s.below(len(best))] // by chance, or the first split would get all that is rare
}

// cost is what split's counts would cost if label l had n entries more there.
func (s *stratifier) cost(split, l, n int) float64 {
	d := float64(s.counts[split][l]+n) - s.exact(split, l)
	return float64(d * d * s.weight[l])
}

// gain is how much the cost falls if a post with the labels out leaves split and one with the labels in comes.
func (s *stratifier) gain(split int, out, in []int) float64 {
	g := 0.0
	for i, j := 0, 0; i < len(out) || j < len(in); {
		l, n := math.MaxInt, 0
		if i < len(out) {
			l = out[i]
		}
		if j < len(in) {
			l = min(l, in[j])
		}
		for ; i < len(out) && out[i] == l; i++ {
			n--
		}
		for ; j < len(in) && in[j] == l; j++ {
			n++
		}
		if n != 0 {
			g += s.cost(split, l, 0) - s.cost(split, l, n)
		}
	}
	return g
}

// level moves posts from splits that are too large to those that are too small, each time the
// one whose move costs least.
func (s *stratifier) level() {
	for {
		from, to := -1, -1
		for split, size := range s.sizes {
			if s.filled[split] > size {
				from = split
			}
			if s.filled[split] < size {
				to = split
			}
		}
		if from < 0 { // then none is too small either: the sizes add up to the posts
			return
		}
		best, most := -1, math.Inf(-1)
		for i, p := range s.posts {
			if p.split != from {
				continue
			}
			if g := s.gain(from, p.has, nil) + s.gain(to, nil, p.has); g > most {
				best, most = i, g
			}
		}
		s.put(best, to)
	}
}

// maxTrials bounds the search for swaps, about two seconds of it.
const maxTrials = 20_000_000

// swap exchanges posts of two splits, while that lowers the cost: every pair of kinds is tried until none helps, or the
// trials are used up.
func (s *stratifier) swap(ctx context.Context) error {
	// By kinds, of which there are far fewer than posts: posts of a kind are as good as one another.
	stock := make([][][]int, len(s.ratios)) // [split][kind] -> posts
	for split := range stock {
		stock[split] = make([][]int, len(s.kinds))
	}
	for i, p := range s.posts {
		stock[p.split][p.kind] = append(stock[p.split][p.kind], i)
	}
	trials := 0
	for improved := true; improved; { // when the trials are used up, no swap is found
		improved = false
		for _, a := range s.shuffled(len(s.kinds)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			for from := range stock {
				for to := range stock {
					b := -1
					if to != from && len(stock[from][a]) > 0 {
						b = s.bestSwap(stock, a, from, to, &trials)
					}
					if b < 0 {
						continue
					}
					s.move(stock, a, from, to)
					s.move(stock, b, to, from)
					improved = true
				}
			}
		}
	}
	return nil
}

// bestSwap returns the kind b for which exchanging a post of kind a in split from with one of kind b in
// split to lowers the cost most, or -1 when no exchange lowers it.
func (s *stratifier) bestSwap(stock [][][]int, a, from, to int, trials *int) int {
	const least = 1e-9 // a smaller gain is rounding: a swap and its reverse could go on for ever
	best, most := -1, least
	for b := range s.kinds {
		if *trials >= maxTrials { // also to look at each kind for nothing takes hours where all posts are of different kinds
			break
		}
		if b == a || len(stock[to][b]) == 0 {
			continue
		}
		*trials++
		if g := s.gain(from, s.kinds[a], s.kinds[b]) + s.gain(to, s.kinds[b], s.kinds[a]); g > most {
			best, most = b, g
		}
	}
	return best
}

// move takes the last post of a kind from one split to another.
func (s *stratifier) move(stock [][][]int, kind, from, to int) {
	last := len(stock[from][kind]) - 1
	i := stock[from][kind][last]
	stock[from][kind] = stock[from][kind][:last]
	stock[to][kind] = append(stock[to][kind], i)
	s.put(i, to)
}

// A Deviation says how far a split of the entries is from the exact shares.
type Deviation struct {
	Splits []SplitSize      `json:"splits"`
	Labels []LabelDeviation `json:"labels"` // in the order of the schema; labels that never occur are left out
	// Worst and WorstShare are the largest values of Off and OffShare, with their labels and splits; zero where no
	// label is off.
	Worst      Worst   `json:"worst,omitzero"`
	WorstShare Worst   `json:"worst_share,omitzero"`
	Mean       float64 `json:"mean"` // of the absolute values of Off
}

// A LabelDeviation is how far one label is off in each split.
type LabelDeviation struct {
	Category string    `json:"category"`
	Code     string    `json:"code"`
	Count    int       `json:"count"`
	Exact    []float64 `json:"exact"`     // entries that each split would have, unrounded
	Off      []float64 `json:"off"`       // entries too many (or, below 0, too few)
	OffShare []float64 `json:"off_share"` // the same as a part of Exact
}

// A Worst is a largest deviation.
type Worst struct {
	Category string  `json:"category"`
	Code     string  `json:"code"`
	Split    string  `json:"split"`
	Off      float64 `json:"off"` // in entries; in WorstShare a part of the exact share
}

// Deviate measures counted splits against shares. Splits that shares does not name are left out;
// it fails when one that it names is not in s.
func (s Stats) Deviate(shares []Share) (Deviation, error) {
	var d Deviation
	ratios := normal(shares)
	var at []int // in s.Splits
	for _, share := range shares {
		i := slices.IndexFunc(s.Splits, func(o SplitSize) bool { return o.Name == share.Name })
		if i < 0 {
			return Deviation{}, fmt.Errorf("measure the split: there is no split %s", share.Name)
		}
		at, d.Splits = append(at, i), append(d.Splits, s.Splits[i])
	}
	for _, c := range s.Categories {
		for _, label := range c.Labels {
			if label.Count == 0 {
				continue // it has no share to be off from
			}
			l := LabelDeviation{Category: c.Name, Code: label.Code, Count: label.Count}
			for i, share := range shares {
				exact := ratios[i] * float64(label.Count)
				off := float64(label.BySplit[at[i]]) - exact
				l.Exact, l.Off, l.OffShare = append(l.Exact, exact), append(l.Off, off), append(l.OffShare, off/exact)
				d.Worst.take(c.Name, label.Code, share.Name, off)
				d.WorstShare.take(c.Name, label.Code, share.Name, off/exact)
				d.Mean += math.Abs(off)
			}
			d.Labels = append(d.Labels, l)
		}
	}
	d.Mean /= float64(max(1, len(d.Labels)*len(shares)))
	return d, nil
}

func (w *Worst) take(category, code, split string, off float64) {
	if math.Abs(off) > math.Abs(w.Off) {
		*w = Worst{category, code, split, off}
	}
}
