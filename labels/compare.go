package labels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"rehydrate/manifest"
)

// A Drift says whether the labels of a category are distributed in one set as in another:
// Pearson's chi-squared test of homogeneity, without a continuity correction.
type Drift struct {
	Category string `json:"category"`
	// Label is the code of a label of a multi-label category: each is tested by itself (given or not), because an
	// entry can have several. It is "" for a category that takes one label, which is one test over all its labels.
	Label string `json:"label,omitempty"`
	// Untested says why there is no test; the numbers below are then 0.
	Untested string  `json:"untested,omitempty"`
	Chi2     float64 `json:"chi2"`
	Freedom  int     `json:"freedom"` // degrees of freedom, after merging
	P        float64 `json:"p"`
	CramersV float64 `json:"cramers_v"` // effect size, 0 (the same) to 1
	// Merged lists the labels that were counted as one because too few entries were expected to
	// have them, as codes joined by +: "SS4+SS5".
	Merged []string `json:"merged,omitempty"`
	// Small says that even so an expected count is below 5: P is then a rough guide.
	Small bool `json:"small,omitempty"`
}

// minExpected is the expected count from which the chi-squared distribution is a good approximation (Cochran 1954).
const minExpected = 5

// Compare tests, category by category, whether b's labels are distributed as a's. The two are taken for independent
// samples: of a set and a part of it compare the part with the rest. Of many tests some have a small P by chance:
// CramersV says whether it matters.
func Compare(a, b Stats) ([]Drift, error) {
	if err := sameSchema(a, b); err != nil {
		return nil, fmt.Errorf("compare labels: %w", err)
	}
	var drifts []Drift
	for i, c := range a.Categories {
		other := b.Categories[i]
		if c.Kind == manifest.Multi {
			for l, label := range c.Labels {
				d := test([]string{label.Code, "without"}, []int{label.Count, a.Entries - label.Count},
					[]int{other.Labels[l].Count, b.Entries - other.Labels[l].Count}, false)
				d.Category, d.Label = c.Name, label.Code
				drifts = append(drifts, d)
			}
			continue
		}
		d := test(c.codes(), c.counts(), other.counts(), c.Kind == manifest.Ordinal)
		d.Category = c.Name
		drifts = append(drifts, d)
	}
	return drifts, nil
}

func (c CategoryStats) codes() (codes []string) {
	for _, l := range c.Labels {
		codes = append(codes, l.Code)
	}
	return codes
}

func (c CategoryStats) counts() (counts []int) {
	for _, l := range c.Labels {
		counts = append(counts, l.Count)
	}
	return counts
}

func sameSchema(a, b Stats) error {
	if len(a.Categories) != len(b.Categories) {
		return fmt.Errorf("one has %d categories, the other %d", len(a.Categories), len(b.Categories))
	}
	for i, c := range a.Categories {
		if other := b.Categories[i]; c.Name != other.Name || !slices.Equal(c.codes(), other.codes()) {
			return fmt.Errorf("category %s (%s) of one is %s (%s) of the other",
				c.Name, strings.Join(c.codes(), ", "), other.Name, strings.Join(other.codes(), ", "))
		}
	}
	return nil
}

// A column is a label, or several that are counted as one, in both sets.
type column struct {
	code string
	a, b int
}

func (c column) total() int { return c.a + c.b }

// test is the test of a 2 x n table.
func test(codes []string, a, b []int, ordinal bool) Drift {
	var columns []column
	sumA, sumB := 0, 0
	for i, code := range codes {
		if a[i]+b[i] > 0 { // what never occurs says nothing, and would divide by 0
			columns = append(columns, column{code, a[i], b[i]})
		}
		sumA, sumB = sumA+a[i], sumB+b[i]
	}
	switch {
	case sumA == 0 || sumB == 0:
		return Drift{Untested: "no entries"}
	case len(columns) < 2:
		return Drift{Untested: "no variation"}
	}
	smallest := float64(min(sumA, sumB)) / float64(sumA+sumB) // expected = total of the column times this
	tooFew := func(c column) bool { return float64(c.total())*smallest < minExpected }
	for len(columns) > 2 && slices.ContainsFunc(columns, tooFew) {
		columns = mergeRarest(columns, ordinal)
	}
	d := Drift{Freedom: len(columns) - 1, Small: slices.ContainsFunc(columns, tooFew)}
	for _, c := range columns {
		if strings.Contains(c.code, "+") && !slices.Contains(codes, c.code) {
			d.Merged = append(d.Merged, c.code)
		}
		for _, cell := range [...]struct{ n, of int }{{c.a, sumA}, {c.b, sumB}} {
			expected := float64(c.total()) * float64(cell.of) / float64(sumA+sumB)
			d.Chi2 += (float64(cell.n) - expected) * (float64(cell.n) - expected) / expected
		}
	}
	d.P = distuv.ChiSquared{K: float64(d.Freedom)}.Survival(d.Chi2)
	d.CramersV = math.Sqrt(d.Chi2 / float64(sumA+sumB)) // of two rows the smaller dimension less one is 1
	return d
}

// mergeRarest counts the rarest column with another as one: with its rarer neighbour where the
// labels have an order, else with the next rarest. The first of equals is taken.
func mergeRarest(columns []column, ordinal bool) []column {
	rarest := 0
	for i, c := range columns {
		if c.total() < columns[rarest].total() {
			rarest = i
		}
	}
	with := -1
	for i, c := range columns {
		if i == rarest || ordinal && i != rarest-1 && i != rarest+1 {
			continue
		}
		if with < 0 || c.total() < columns[with].total() {
			with = i
		}
	}
	first, second := min(rarest, with), max(rarest, with)
	merged := column{columns[first].code + "+" + columns[second].code,
		columns[first].a + columns[second].a, columns[first].b + columns[second].b}
	out := slices.Clone(columns)
	out[first] = merged
	return slices.Delete(out, second, second+1)
}
