package labels

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"rehydrate/manifest"
)

// A Feature is a number of each entry, NaN where it is missing. Numbers are within ±1e300.
type Feature struct {
	Name   string
	Values []float64
	YesNo  bool // 1 is yes and 0 no; a number that happens to be 0 or 1 everywhere is not yes or no
}

// A GroupTest says whether a feature differs between groups of entries. Its JSON form is stable (docs/labels.md).
type GroupTest struct {
	Feature string `json:"feature"`
	// Label is the code of a label of a multi-label category: the groups are then the entries with and without it.
	Label   string  `json:"label,omitempty"`
	YesNo   bool    `json:"yes_no"` // as the feature was declared
	N       int     `json:"n"`
	Missing int     `json:"missing"` // entries of a group that lack the feature
	Groups  []Group `json:"groups"`  // in the order of the schema
	// Untested says why nothing was tested; Result is then nil.
	Untested string      `json:"untested,omitempty"`
	Result   *RankResult `json:"result"`
}

// A Group is the entries with one label.
type Group struct {
	Code    string   `json:"code"`
	Name    string   `json:"name"`
	N       int      `json:"n"`
	Missing int      `json:"missing"`
	Few     bool     `json:"few"`    // fewer than 5 values: the chi-squared distribution is a rough guide
	Values  *Summary `json:"values"` // nil where there are none
}

// A Summary describes the values of a group. Quartiles are those of R's type 7 and of NumPy.
type Summary struct {
	Mean     float64 `json:"mean"`
	MeanRank float64 `json:"mean_rank"` // among the values of all groups; equal values share their mean rank
	Min      float64 `json:"min"`
	Q1       float64 `json:"q1"`
	Median   float64 `json:"median"`
	Q3       float64 `json:"q3"`
	Max      float64 `json:"max"`
	// Low and High are the least and the greatest value within 1.5 interquartile ranges of the box (Tukey 1977).
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A RankResult is the test of Kruskal and Wallis (1952), corrected for ties, with Dunn's (1964) comparison of every two
// groups, whether or not H is significant.
type RankResult struct {
	H       float64 `json:"h"`
	Freedom int     `json:"freedom"`
	P       float64 `json:"p"`
	PHolm   float64 `json:"p_holm"` // corrected over all tests of the report (Holm 1979)
	// EpsilonSquared is H/(N-1); EtaSquared is (H-k+1)/(N-k), nil where every group has one value.
	EpsilonSquared float64    `json:"epsilon_squared"`
	EtaSquared     *float64   `json:"eta_squared"`
	Pairs          []PairTest `json:"pairs"`
}

// A PairTest compares two groups by their mean ranks, two-sided.
type PairTest struct {
	A           string  `json:"a"`
	B           string  `json:"b"`
	Z           float64 `json:"z"` // above 0: the ranks of A are higher
	P           float64 `json:"p"`
	PBonferroni float64 `json:"p_bonferroni"` // times the number of pairs of this feature, 1 at most
}

const fewValues = 5

// CompareGroups tests each feature between the labels of a category: a category that takes one label is one test a
// feature, each label of a multi-label one a test of the entries with it against those without. Entries that have no
// answer for the category are in no group.
func CompareGroups(schema manifest.Schema, category string, entries []manifest.Entry,
	features []Feature) ([]GroupTest, error) {
	place := slices.IndexFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == category })
	if place < 0 {
		return nil, fmt.Errorf("the release has no category %q", category)
	}
	var out []GroupTest
	for _, f := range features {
		if len(f.Values) != len(entries) {
			return nil, fmt.Errorf("feature %s has %d values for %d entries", f.Name, len(f.Values), len(entries))
		}
		for _, by := range groupings(schema.Categories[place]) {
			t := testRanks(f.Values, by.groups, func(i int) int { return by.of(entries[i].Labels[place]) })
			t.Feature, t.Label, t.YesNo = f.Name, by.label, f.YesNo
			out = append(out, t)
		}
	}
	holm(out)
	return out, nil
}

// A grouping puts an entry's labels into one of its groups, or into none (-1).
type grouping struct {
	label  string
	groups []Group
	of     func(labels []int) int
}

func groupings(c manifest.Category) (all []grouping) {
	if c.Kind != manifest.Multi {
		one := grouping{of: func(labels []int) int {
			if len(labels) == 0 {
				return -1
			}
			return labels[0]
		}}
		for _, l := range c.Labels {
			one.groups = append(one.groups, Group{Code: l.Code, Name: l.Name})
		}
		return []grouping{one}
	}
	for i, l := range c.Labels {
		all = append(all, grouping{l.Code, []Group{{Code: "with " + l.Code, Name: l.Name}, {Code: "without " + l.Code}},
			func(labels []int) int {
				switch {
				case labels == nil:
					return -1
				case slices.Contains(labels, i):
					return 0
				}
				return 1
			}})
	}
	return all
}

// A ranked is a value and the group that it is of.
type ranked struct {
	value float64
	group int
}

// testRanks tests the values of one feature; group gives the place of a value's group, -1 for none.
func testRanks(values []float64, groups []Group, group func(i int) int) GroupTest {
	t := GroupTest{Groups: slices.Clone(groups)}
	var all []ranked
	for i, v := range values {
		g := group(i)
		switch {
		case g < 0:
		case math.IsNaN(v):
			t.Missing++
			t.Groups[g].Missing++
		default:
			t.Groups[g].N++
			all = append(all, ranked{v, g})
		}
	}
	t.N = len(all)
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	means, ties := midRanks(all, len(groups))
	t.summarize(all, means)
	filled := 0
	for i := range t.Groups {
		if t.Groups[i].N > 0 {
			filled++
		}
	}
	switch {
	case filled < 2:
		t.Untested = "fewer than two groups have values"
	case all[0].value == all[len(all)-1].value:
		t.Untested = "all values are equal"
		if math.Abs(all[0].value) >= 1<<53 { // those of the file may differ
			t.Untested = "all values are equal as numbers of 64 bits, which tell no two such large ones apart"
		}
	default:
		t.Result = t.kruskalWallis(filled, means, ties)
	}
	return t
}

// midRanks gives the mean rank of each group, and the sum of t^3 - t over the sets of t equal values.
func midRanks(sorted []ranked, groups int) (means []float64, ties float64) {
	means, n := make([]float64, groups), make([]float64, groups)
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to].value == sorted[from].value {
			to++
		}
		t := float64(to - from)
		ties += t*t*t - t
		for _, r := range sorted[from:to] {
			means[r.group] += float64(from+to+1) / 2
			n[r.group]++
		}
		from = to
	}
	for g := range means {
		means[g] /= max(1, n[g])
	}
	return means, ties
}

func (t *GroupTest) summarize(sorted []ranked, means []float64) {
	by := make([][]float64, len(t.Groups))
	for _, r := range sorted {
		by[r.group] = append(by[r.group], r.value)
	}
	for g, values := range by {
		t.Groups[g].Few = len(values) < fewValues
		if len(values) == 0 {
			continue
		}
		s := &Summary{MeanRank: means[g], Min: values[0], Max: values[len(values)-1]}
		for _, v := range values {
			s.Mean += v
		}
		s.Mean /= float64(len(values))
		s.Q1, s.Median, s.Q3 = quantile(values, .25), quantile(values, .5), quantile(values, .75)
		reach := 1.5 * (s.Q3 - s.Q1)
		inside := func(v float64) bool { return v >= s.Q1-reach && v <= s.Q3+reach }
		s.Low = values[slices.IndexFunc(values, inside)]
		for _, v := range values {
			if inside(v) {
				s.High = v
			}
		}
		t.Groups[g].Values = s
	}
}

// quantile interpolates between the values at both sides of (n-1)p, as R's type 7 does.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	low, high := sorted[i], sorted[min(i+1, len(sorted)-1)]
	return low + (at-float64(i))*(high-low)
}

func (t *GroupTest) kruskalWallis(filled int, means []float64, ties float64) *RankResult {
	n, k := float64(t.N), float64(filled)
	// What ranks without ties would have as variance, times the part that ties leave.
	variance := n * (n + 1) / 12 * (1 - ties/(n*n*n-n))
	r := &RankResult{Freedom: filled - 1}
	for g, group := range t.Groups {
		// From the middle rank, and not as the sum of squares less 3(N+1), which loses digits.
		off := means[g] - (n+1)/2
		r.H += float64(group.N) * off * off / variance
	}
	r.P = distuv.ChiSquared{K: k - 1}.Survival(r.H)
	r.EpsilonSquared = r.H / (n - 1)
	if t.N > filled {
		eta := (r.H - k + 1) / (n - k)
		r.EtaSquared = &eta
	}
	for a, x := range t.Groups {
		for b, y := range t.Groups[a+1:] {
			if x.N == 0 || y.N == 0 {
				continue
			}
			z := (means[a] - means[a+1+b]) / math.Sqrt(variance*(1/float64(x.N)+1/float64(y.N)))
			p := math.Erfc(math.Abs(z) / math.Sqrt2)
			r.Pairs = append(r.Pairs, PairTest{x.Code, y.Code, z, p, min(1, p*k*(k-1)/2)})
		}
	}
	return r
}

// Eta is EtaSquared where there is one.
func (r *RankResult) Eta() float64 { return *r.EtaSquared }

// Differ gives the pairs that differ at the level alpha, by Bonferroni's correction within the feature.
func (r *RankResult) Differ(alpha float64) (pairs []PairTest) {
	for _, p := range r.Pairs {
		if p.PBonferroni < alpha {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// holm corrects the p of tests for how many they are.
func holm(tests []GroupTest) {
	var results []*RankResult
	for _, t := range tests {
		if t.Result != nil {
			results = append(results, t.Result)
		}
	}
	slices.SortStableFunc(results, func(a, b *RankResult) int { return cmp.Compare(a.P, b.P) })
	least := 0.0 // a test that is less clear never has a smaller corrected p
	for i, r := range results {
		least = max(least, min(1, r.P*float64(len(results)-i)))
		r.PHolm = least
	}
}
