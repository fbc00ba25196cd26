package labels

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestTable8 counts the made-up manifest, and expects FigSIM's Table 8 and section 4.1.
func TestTable8(t *testing.T) {
	b, err := os.ReadFile("../manifest/testdata/table8.json")
	testkit.OK(t, err)
	var want map[string]json.RawMessage // category -> split -> label -> count, and other things
	testkit.OK(t, json.Unmarshal(b, &want))
	r, entries := figsim(t)
	s := counted(t, r.Schema, entries)
	for _, c := range s.Categories {
		got := map[string]map[string]int{}
		for i, split := range s.Splits {
			got[split.Name] = map[string]int{}
			for _, l := range c.Labels {
				got[split.Name][l.Code] = l.BySplit[i]
			}
		}
		var counts map[string]map[string]int
		if err := json.Unmarshal(want[c.Name], &counts); err != nil {
			t.Fatalf("table8.json, %s: %v", c.Name, err)
		}
		testkit.Same(t, c.Name, counts, got)
	}
	testkit.Same(t, "splits", []SplitSize{{"train", 633}, {"validation", 208}, {"test", 208}}, s.Splits)
	for category, want := range map[int]float64{0: 1.06, 2: 0.69} {
		if got := s.Categories[category].Cardinality; math.Round(100*got)/100 != want {
			t.Errorf("labels an entry of %s = %v, the paper has %v", s.Categories[category].Name, got, want)
		}
	}
}

// small is a schema of two categories, and four entries that are counted by hand.
func small() (manifest.Schema, []manifest.Entry) {
	schema := manifest.Schema{Name: "small", Categories: []manifest.Category{
		{Name: "colour", Title: "Colour", Kind: manifest.Multi,
			Labels: []manifest.Label{{Code: "R", Name: "red"}, {Code: "B", Name: "blue"},
				{Code: "N", Name: "None", Exclusive: true}}},
		{Name: "size", Title: "Size", Kind: manifest.Ordinal,
			Labels: []manifest.Label{{Code: "S", Name: "small"}, {Code: "M", Name: "middle"}, {Code: "L", Name: "large"}}},
	}}
	entry := func(id manifest.PostID, split string, labels ...[]int) manifest.Entry {
		return manifest.Entry{Key: manifest.Key{ID: id}, Split: split, Labels: labels}
	}
	return schema, []manifest.Entry{
		entry("a", "test", []int{0, 1}, []int{0}),
		entry("b", "extra", []int{2}, []int{2}),
		entry("c", "train", []int{0}, []int{0}),
		entry("d", "train", []int{}, nil),
	}
}

func TestCount(t *testing.T) {
	schema, entries := small()
	want := Stats{Schema: "small", Entries: 4,
		Splits: []SplitSize{{"train", 2}, {"test", 1}, {"extra", 1}},
		Categories: []CategoryStats{
			{Name: "colour", Title: "Colour", Kind: manifest.Multi, Unlabelled: 1, Cardinality: 0.75, Labels: []LabelStats{
				{Code: "R", Name: "red", Count: 2, BySplit: []int{1, 1, 0}},
				{Code: "B", Name: "blue", Count: 1, BySplit: []int{0, 1, 0}},
				{Code: "N", Name: "None", Exclusive: true, Count: 1, BySplit: []int{0, 0, 1}}}},
			{Name: "size", Title: "Size", Kind: manifest.Ordinal, Unlabelled: 1, NoAnswer: 1, Cardinality: 0.75,
				Labels: []LabelStats{
					{Code: "S", Name: "small", Count: 2, BySplit: []int{1, 1, 0}},
					{Code: "M", Name: "middle", Count: 0, BySplit: []int{0, 0, 0}},
					{Code: "L", Name: "large", Count: 1, BySplit: []int{0, 0, 1}}}},
		},
		Pairs: []Pair{{Rows: "colour", Columns: "size", Counts: [][]int{{2, 0, 0}, {1, 0, 0}, {0, 0, 1}}}},
	}
	got := counted(t, schema, entries)
	testkit.Same(t, "Count", want, got)
	p := Pair{Counts: [][]int{{2, 1, 0}, {0, 0, 0}, {0, 0, 1}}}
	if shares := p.Shares(); !allNear(shares[0], []float64{2. / 3, 1. / 3, 0}) ||
		!allNear(shares[1], []float64{0, 0, 0}) {
		t.Errorf("Shares = %v", shares)
	}
}

func TestCountStops(t *testing.T) {
	if got := counted(t, manifest.FigSIM(), nil); got.Entries != 0 || got.Categories[0].Cardinality != 0 {
		t.Errorf("no entries: %+v", got)
	}
	broken := errors.New("broken")
	if _, err := Count(manifest.FigSIM(), func(yield func(manifest.Entry, error) bool) {
		yield(manifest.Entry{},
			broken)
	}); !errors.Is(err, broken) {
		t.Errorf("Count = %v, want the error of the entries", err)
	}
}

// TestHomogeneity checks the test against the examples of scipy.stats.chi2_contingency, and
// against values worked by hand.
func TestHomogeneity(t *testing.T) {
	// Of a 2 x 2 table n(ad-bc)^2 over the product of the sums; with one degree of freedom P is
	// erfc(sqrt(x/2)), with two exp(-x/2).
	const two = 100. * (10*40 - 20*30) * (10*40 - 20*30) / (30 * 70 * 40 * 60)
	// Rows 40 and 82, columns 40, 22 and 60: n (sum of observed^2 / (row x column) - 1).
	const three = 122 * (10.*10/(40*40) + 10.*10/(40*22) + 20.*20/(40*60) + 30.*30/(82*40) + 12.*12/(82*22) + 40.*40/(82*60) - 1)
	for _, c := range []struct {
		name    string
		codes   []string
		a, b    []int
		ordinal bool
		want    Drift
	}{
		{"scipy's example", []string{"x", "y", "z"}, []int{10, 10, 20}, []int{20, 20, 20}, false,
			Drift{Chi2: 2.7777777777777777, Freedom: 2, P: 0.24935220877729619, CramersV: 1. / 6}},
		{"two by two by hand", []string{"x", "y"}, []int{10, 20}, []int{30, 40}, false,
			Drift{Chi2: two, Freedom: 1, P: math.Erfc(math.Sqrt(two / 2)), CramersV: math.Sqrt(two / 100)}},
		{"a label that never occurs", []string{"x", "never", "y"}, []int{10, 0, 20}, []int{30, 0, 40}, false,
			Drift{Chi2: two, Freedom: 1, P: math.Erfc(math.Sqrt(two / 2)), CramersV: math.Sqrt(two / 100)}},
		{"rare labels are put together", []string{"x", "rare", "y", "rarer"}, []int{10, 6, 20, 4}, []int{30, 8, 40, 4},
			false,
			Drift{Chi2: three, Freedom: 2, P: math.Exp(-three / 2), CramersV: math.Sqrt(three / 122),
				Merged: []string{"rare+rarer"}}},
		{"too few even so", []string{"x", "y"}, []int{1, 2}, []int{2, 1}, false,
			Drift{Chi2: 2. / 3, Freedom: 1, P: math.Erfc(math.Sqrt(1. / 3)), CramersV: 1. / 3, Small: true}},
		{"of a scale the neighbour", []string{"low", "x", "y", "high"}, []int{30, 30, 30, 1}, []int{30, 30, 30, 1}, true,
			Drift{Freedom: 2, P: 1, Merged: []string{"y+high"}}},
		{"of a scale the one neighbour", []string{"low", "x", "y", "z"}, []int{1, 30, 30, 10}, []int{1, 30, 30, 10}, true,
			Drift{Freedom: 2, P: 1, Merged: []string{"low+x"}}},
		{"of a scale the first of two alike", []string{"w", "x", "rare", "y"}, []int{30, 30, 1, 30}, []int{30, 30, 1, 30},
			true,
			Drift{Freedom: 2, P: 1, Merged: []string{"x+rare"}}},
		{"no variation", []string{"x", "y"}, []int{3, 0}, []int{4, 0}, false, Drift{Untested: "no variation"}},
		{"no entries", []string{"x", "y"}, []int{0, 0}, []int{4, 1}, false, Drift{Untested: "no entries"}},
	} {
		var columns []column
		for i, code := range c.codes {
			columns = append(columns, column{code: code, a: c.a[i], b: c.b[i]})
		}
		got := test(columns, c.ordinal)
		same := near(got.Chi2, c.want.Chi2) && near(got.P, c.want.P) && near(got.CramersV, c.want.CramersV)
		if !same || got.Freedom != c.want.Freedom || got.Untested != c.want.Untested || got.Small != c.want.Small ||
			!slices.Equal(got.Merged, c.want.Merged) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestCompareByHand: each label of a multi-label category is tested by itself, with those who lack
// it in the other column. Of a 2 x 2 table chi-squared is n(ad-bc)^2 over the product of the sums.
func TestCompareByHand(t *testing.T) {
	set := func(answered, unanswered, red, blue int) Stats {
		return Stats{Entries: answered + unanswered, Categories: []CategoryStats{{Name: "colour", Kind: manifest.Multi,
			NoAnswer: unanswered, Labels: []LabelStats{{Code: "R", Count: red}, {Code: "B", Count: blue}}}}}
	}
	got := Compare(set(100, 7, 10, 100), set(60, 300, 20, 45)) // who gave no answer is in no column
	red, blue := 160.*(10*40-90*20)*(10*40-90*20)/(100*60*30*130), 160.*(100*15-0*45)*(100*15-0*45)/(100*60*145*15)
	for i, want := range []Drift{{Category: "colour", Label: "R", Chi2: red},
		{Category: "colour", Label: "B", Chi2: blue}} {
		want.A, want.B, want.Freedom = 100, 60, 1
		want.P, want.CramersV = math.Erfc(math.Sqrt(want.Chi2/2)), math.Sqrt(want.Chi2/160)
		if diff := cmp.Diff(want, got[i], cmp.Comparer(near)); diff != "" || len(got) != 2 {
			t.Errorf("label %s of %d tests (-want +got)\n%s", want.Label, len(got), diff)
		}
	}
	if one := Compare(set(100, 0, 10, 100), set(0, 5, 0, 0)); one[0].Untested != "no entries" || one[0].A != 100 {
		t.Errorf("against no answers: %+v", one)
	}
}

// TestNoAnswer: null is no answer, and an empty list is the answer "no label": both are without a label, and told
// apart.
func TestNoAnswer(t *testing.T) {
	c := NewCounter(manifest.FigSIM())
	for _, figurative := range [][]int{nil, nil, {}, {0}} {
		c.Add(manifest.Entry{Split: "train", Labels: [][]int{figurative, {0}, {0}, {0}, {0}}})
	}
	got := c.Stats().Categories[0]
	if got.Unlabelled != 3 || got.NoAnswer != 2 {
		t.Errorf("%d without a label, %d without an answer", got.Unlabelled, got.NoAnswer)
	}
}
