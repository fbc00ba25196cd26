package labels

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// tableOf counts two lists of calls.
func tableOf(n int, a, b []int) [][]int {
	table := zeros(n, n)
	for i := range a {
		table[a[i]][b[i]]++
	}
	return table
}

func TestCohen(t *testing.T) {
	for _, c := range []struct {
		name  string
		table [][]int
		want  float64
	}{
		// scikit-learn, cohen_kappa_score, Examples: negative, positive, neutral are 0, 1, 2.
		{"scikit-learn's example", tableOf(3, []int{0, 1, 0, 2, 1}, []int{0, 1, 0, 2, 0}), 0.6875},
		// By hand: 4 of 6 agree, expected (2*3 + 1*0 + 3*3)/36 = 15/36, so (24-15)/(36-15).
		{"six calls by hand", tableOf(3, []int{2, 0, 2, 2, 0, 1}, []int{0, 0, 2, 2, 0, 2}), 9. / 21},
		// By hand: .29 observed; rows .50 .30 .20, columns .40 .30 .30, so .35 expected.
		{"a hundred calls by hand", [][]int{{25, 13, 12}, {12, 2, 16}, {3, 15, 2}}, (.29 - .35) / (1 - .35)},
		{"all the same", [][]int{{3, 0}, {0, 2}}, 1},
		{"never the same", [][]int{{0, 1}, {1, 0}}, -1},
		{"by chance alone", [][]int{{1, 1}, {1, 1}}, 0},
		{"one says only one thing", [][]int{{3, 2}, {0, 0}}, 0},
		{"one thing against another", [][]int{{0, 5}, {0, 0}}, 0},
	} {
		got := cohen(c.table)
		if got.Value == nil || !near(*got.Value, c.want) {
			t.Errorf("%s: kappa %v, want %v", c.name, got, c.want)
		}
	}
	for name, table := range map[string][][]int{"no variation": {{5, 0}, {0, 0}}, "no entries": {{0, 0}, {0, 0}}} {
		if got := cohen(table); got.Value != nil || got.Undefined != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestStrength has the values and words of the paper's Tables 1, 6 and 7.
func TestStrength(t *testing.T) {
	for kappa, want := range map[float64]string{0.65: "substantial", 0.88: "almost perfect", 0.58: "moderate",
		0.56: "moderate",
		0.63: "substantial", 0.61: "substantial", 0.57: "moderate", 0.52: "moderate", 0.71: "substantial",
		0.62: "substantial",
		0.59: "moderate", 0.604: "moderate", 0.605: "substantial", -0.01: "poor", 0: "slight", 0.2: "slight", 0.3: "fair",
		1: "almost perfect"} {
		if got := strength(kappa); got != want {
			t.Errorf("strength(%v) = %s, want %s", kappa, got, want)
		}
	}
}

// annotator makes an annotator of entries "0", "1"...; one row is the labels by category.
func annotator(rows ...[][]int) Answers {
	a := Answers{}
	for i, row := range rows {
		if row != nil {
			a[manifest.Key{ID: manifest.PostID(fmt.Sprint(i))}] = row
		}
	}
	return a
}

// TestAgreeMulti checks a multi-label category against scikit-learn's jaccard_score, whose example
// has y_true [[0,1,1],[1,1,0]] and y_pred [[1,1,1],[1,0,0]], average='samples' 0.5833...
func TestAgreeMulti(t *testing.T) {
	schema := manifest.Schema{Categories: []manifest.Category{{Name: "c", Kind: manifest.Multi,
		Labels: []manifest.Label{{Code: "0"}, {Code: "1"}, {Code: "2"}, {Code: "N", Exclusive: true}}}}}
	a := annotator([][]int{{1, 2}}, [][]int{{0, 1}})
	b := annotator([][]int{{0, 1, 2}}, [][]int{{0}})
	got, err := Agree(schema, []Answers{a, b}, Comparing{})
	testkit.OK(t, err)
	c := got.Categories[0]
	if c.Jaccard == nil || !near(*c.Jaccard, (2./3+1./2)/2) || c.Observed != nil || c.Entries != 2 {
		t.Errorf("%+v", c)
	}
	// Label 0 was given once by A and always by B, 1 always by A and once by B; of 2 both agree
	// with variation. None is no label of the mean.
	want := []Kappa{kappaOf(0), kappaOf(0), kappaOf(1)}
	for i, l := range c.Labels {
		testkit.Same(t, fmt.Sprintf("label %s", l.Code), want[i], l.Kappa)
	}
	if len(c.Labels) != 3 || !near(*c.Kappa.Value, 1./3) {
		t.Errorf("labels %+v, mean %+v", c.Labels, c.Kappa)
	}

	// None and no label are the same; a label that nobody gives has no kappa and is not in the mean.
	a = annotator([][]int{{3}}, [][]int{{0}}, [][]int{{}}, [][]int{nil}, nil, [][]int{{0}}, [][]int{{0}})
	b = annotator([][]int{{3}}, [][]int{{0}}, [][]int{{3}}, [][]int{{0}}, [][]int{{0}}, nil, [][]int{nil})
	got, err = Agree(schema, []Answers{a, b}, Comparing{})
	testkit.OK(t, err)
	c = got.Categories[0]
	if !near(*c.Jaccard, 1) || c.Entries != 3 || c.Unanswered != 2 || c.Labels[1].Kappa.Undefined != "no variation" ||
		!near(*c.Kappa.Value, 1) {
		t.Errorf("%+v", c)
	}
	testkit.Same(t, "pairs", []AnnotatorPair{{"A1", "A2", 5, 1, 1}}, got.Pairs)
}

// TestAgreeThree: three annotators are compared pair by pair, and a pair without common entries is
// no pair. An answer that one of the two lacks is not compared, and a pair without any is in no mean.
func TestAgreeThree(t *testing.T) {
	schema := oneCategory(manifest.Single, "0 1")
	calls := func(labels string) Answers { // "-" is no answer, " " no entry
		var rows [][][]int
		for _, l := range labels {
			rows = append(rows, map[rune][][]int{'0': {{0}}, '1': {{1}}, '-': {nil}}[l])
		}
		return annotator(rows...)
	}
	got, err := Agree(schema, []Answers{calls("0011-0"), calls("00101"), calls("0101"), calls("-"), calls("      1")},
		Comparing{})
	testkit.OK(t, err)
	// A1 and A2: 3 of 4, expected 1/2, so 1/2. A1 and A3: 2 of 4 and 1/2, so 0. A2 and A3: 1 of 4, expected 1/2, so -1/2.
	observed := (3. + 2 + 1) / 12
	value := 0.
	// Of three answers to each of 4 entries one is apart in three entries; of the 12 answers 7 are 0 and 5 are 1.
	wantAlpha := 1 - 11.*3/(7*5)
	want := Agreement{Annotators: []string{"A1", "A2", "A3", "A4", "A5"}, Deciders: []string{}, Entries: 5,
		Pairs: []AnnotatorPair{{"A1", "A2", 5, 1, 0}, {"A1", "A3", 4, 2, 0}, {"A2", "A3", 4, 1, 0}, {"A1", "A4", 1, 5, 0},
			{"A2", "A4", 1, 4, 0}, {"A3", "A4", 1, 3, 0}},
		Categories: []CategoryAgreement{{Name: "c", Title: "C", Kind: manifest.Single, Entries: 4, PairEntries: 12,
			Unanswered: 4,
			Alpha:      Alpha{Value: &wantAlpha, Distance: "nominal", Interval: got.Categories[0].Alpha.Interval},
			Kappa:      Kappa{Value: &value, Strength: "slight"}, Observed: &observed}},
		Bootstrap: &Bootstrap{2000, 0, .95}}
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Errorf("agreement (-want +got)\n%s", diff)
	}
	got, err = Agree(schema, []Answers{calls("001"), calls("000")}, Comparing{})
	if err != nil || !near(*got.Categories[0].Observed, 2./3) {
		t.Errorf("two of three answers are equal: %+v, error %v", got.Categories, err)
	}
	got, err = Agree(schema, []Answers{calls("0-"), calls("-0")}, Comparing{})
	if err != nil || got.Categories[0].Observed != nil || got.Categories[0].Kappa.Undefined != "no entries" {
		t.Errorf("no common answer: %+v, error %v", got.Categories, err)
	}
	if _, err := Agree(schema, []Answers{calls("0"), calls(" 0")}, Comparing{}); err == nil {
		t.Error("two annotators without a common entry were compared")
	}
	if _, err := Agree(schema, []Answers{calls("0")}, Comparing{}); err == nil {
		t.Error("one annotator was compared")
	}
}

// TestAgreeOrder: sums of floats depend on their order, and so the last digits must not depend on that of a map.
func TestAgreeOrder(t *testing.T) {
	schema := oneCategory(manifest.Multi, "0 1 2 3 4 5 6")
	var one, other [][][]int
	for i := range 60 {
		all := []int{0, 1, 2, 3, 4, 5, 6}
		one, other = append(one, [][]int{all[:1+i%7]}), append(other, [][]int{all[i%5:]})
	}
	first, err := Agree(schema, []Answers{annotator(one...), annotator(other...)}, Comparing{})
	testkit.OK(t, err)
	for range 20 {
		if again, err := Agree(schema, []Answers{annotator(one...), annotator(other...)}, Comparing{}); err != nil ||
			!cmp.Equal(first, again) {
			t.Fatalf("error %v; again (-first +again)\n%s", err, cmp.Diff(first, again))
		}
	}
}
