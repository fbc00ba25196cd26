package labels

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"rehydrate/manifest"
)

// A Drift says whether the labels of a category are distributed in one set as in another:
// Pearson's chi-squared test of homogeneity, without a continuity correction.
type Drift struct {
	Category string `json:"category"`
	// Label is the code of a label of a multi-label category, "" for a category that takes one label.
	Label string `json:"label,omitempty"`
	// A and B count the entries of the two sets that were compared. Those without an answer are not among them.
	A        int     `json:"a"`
	B        int     `json:"b"`
	Untested string  `json:"untested,omitempty"` // why nothing was tested: the numbers are then 0
	Chi2     float64 `json:"chi2"`
	Freedom  int     `json:"freedom"` // degrees of freedom, after merging
	P        float64 `json:"p"`
	CramersV float64 `json:"cramers_v"` // effect size, 0 (the same) to 1
	// Merged lists the labels that were counted as one because too few entries were expected to have them: "SS4+SS5".
	Merged []string `json:"merged,omitempty"`
	Small  bool     `json:"small,omitempty"` // even so an expected count is below 5: P is a rough guide
}

// minExpected is the expected count from which the chi-squared distribution is a good approximation (Cochran 1954).
const minExpected = 5

// Compare tests, category by category, whether b's labels are distributed as a's, which are of the same schema. The
// two are taken for independent samples: of a set and a part of it compare the part with the rest. An entry without an
// answer for a category is not compared there. Of many tests some have a small P by chance: CramersV says whether it
// matters.
func Compare(a, b Stats) []Drift {
	var drifts []Drift
	for i, c := range a.Categories {
		answeredA, answeredB := a.Entries-c.NoAnswer, b.Entries-b.Categories[i].NoAnswer
		var columns []column
		for l, label := range c.Labels {
			x := column{code: label.Code, a: label.Count, b: b.Categories[i].Labels[l].Count}
			columns = append(columns, x)
			if c.Kind == manifest.Multi { // each by itself, given or not, for an entry can have several
				d := test([]column{x, {code: "without", a: answeredA - x.a, b: answeredB - x.b}}, false)
				d.Category, d.Label = c.Name, label.Code
				drifts = append(drifts, d)
			}
		}
		if c.Kind != manifest.Multi {
			d := test(columns, c.Kind == manifest.Ordinal)
			d.Category = c.Name
			drifts = append(drifts, d)
		}
	}
	return drifts
}

// A column is a label, or several that are counted as one, in both sets.
type column struct {
	code   string
	a, b   int
	merged bool
}

func (c column) total() int { return c.a + c.b }

// test is the test of a 2 x n table.
func test(columns []column, ordinal bool) Drift {
	sumA, sumB := 0, 0
	for _, c := range columns {
		sumA, sumB = sumA+c.a, sumB+c.b
	}
	d := Drift{A: sumA, B: sumB}
	// What never occurs says nothing, and would divide by 0.
	columns = slices.DeleteFunc(columns, func(c column) bool { return c.total() == 0 })
	switch {
	case sumA == 0 || sumB == 0:
		d.Untested = "no entries"
		return d
	case len(columns) < 2:
		d.Untested = "no variation"
		return d
	}
	smallest := float64(min(sumA, sumB)) / float64(sumA+sumB) // expected = total of the column times this
	tooFew := func(c column) bool { return float64(c.total())*smallest < minExpected }
	for len(columns) > 2 && slices.ContainsFunc(columns, tooFew) {
		columns = mergeRarest(columns, ordinal)
	}
	d.Freedom, d.Small = len(columns)-1, slices.ContainsFunc(columns, tooFew)
	for _, c := range columns {
		if c.merged {
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

// mergeRarest counts the rarest column with another as one. The first of equals is taken.
func mergeRarest(columns []column, ordinal bool) []column {
	byTotal := func(x, y int) int { return cmp.Compare(columns[x].total(), columns[y].total()) }
	var all []int
	for i := range columns {
		all = append(all, i)
	}
	rarest := slices.MinFunc(all, byTotal)
	with := slices.MinFunc(slices.DeleteFunc(all, func(i int) bool {
		// Where the labels have an order, one label of its two neighbours: together they are a range.
		return i == rarest || ordinal && i != rarest-1 && i != rarest+1
	}), byTotal)
	first, second := min(rarest, with), max(rarest, with)
	x, y := columns[first], columns[second]
	columns[first] = column{x.code + "+" + y.code, x.a + y.a, x.b + y.b, true}
	return slices.Delete(columns, second, second+1)
}
