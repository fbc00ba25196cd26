package labels

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// columns makes annotators of a category that takes one label: a string for each, with a digit (the place of a label)
// or - (no answer) for each entry.
func columns(answers ...string) (all []Answers) {
	for _, text := range answers {
		of := Answers{}
		for i, r := range strings.ReplaceAll(text, " ", "") {
			if r != '-' {
				of[manifest.Key{ID: manifest.PostID(fmt.Sprintf("%04d", i))}] = [][]int{{int(r - '0')}}
			}
		}
		all = append(all, of)
	}
	return all
}

// krippendorff2011 is the example of Computing Krippendorff's Alpha-Reliability, section D: values 1 to 5 of four
// observers.
var krippendorff2011 = []string{"123321412---", "1233224125-3", "-3332342251-", "12332441251-"}

// coders are those of the example in the documentation of the Python package krippendorff.
var coders = []string{"-----34121133-3", "1-213343-------", "--21344-21133-4"}

// TestAlpha: the published examples, and the tests of the Python package krippendorff.
func TestAlpha(t *testing.T) {
	interval := func([]float64) func(a, b int) float64 {
		return func(a, b int) float64 { return float64((a - b) * (a - b)) }
	}
	ratio := func([]float64) func(a, b int) float64 {
		return func(a, b int) float64 { return math.Pow(float64(a-b)/float64(a+b), 2) }
	}
	for _, c := range []struct {
		name     string
		answers  []string
		distance distance
		want     string
	}{
		{"Krippendorff 2011, nominal", krippendorff2011, nominal, "0.743"},
		{"Krippendorff 2011, ordinal", krippendorff2011, ordinal, "0.815"},
		{"Krippendorff 2011, interval", krippendorff2011, interval, "0.849"},
		{"Krippendorff 2011, ratio", krippendorff2011, ratio, "0.797"},
		{"the package's example, nominal", coders, nominal, "0.691358"},
		{"the package's example, interval", coders, interval, "0.810845"},
		{"four units of three", []string{"012-", "0120", "0100"}, nominal, "0.722222"},
		{"three alike", []string{"1234", "1234", "1234"}, nominal, "1.000"},
		{"never alike", []string{"01", "10"}, nominal, "-0.500"},
	} {
		s := newSurvey(columns(c.answers...), nil)
		scale := newScale(s, manifest.Category{Kind: manifest.Single, Labels: make([]manifest.Label, 6)}, 0)
		scale.distance = c.distance
		got := scale.alpha(s.counts)
		if got.Value == nil || fmt.Sprintf("%.*f", len(c.want)-strings.Index(c.want, ".")-1, *got.Value) != c.want {
			t.Errorf("%s: %v (%s), want %s", c.name, got.Value, got.Undefined, c.want)
		}
	}
}

// TestAlphaByKind: an ordinal category is compared by the schema's order, one that takes a single label by equality.
func TestAlphaByKind(t *testing.T) {
	for kind, want := range map[manifest.CategoryKind]string{manifest.Single: "nominal 0.743",
		manifest.Ordinal: "ordinal 0.815"} {
		a, err := Agree(oneCategory(kind, "0 1 2 3 4 5"), columns(krippendorff2011...), Comparing{})
		testkit.OK(t, err)
		c := a.Categories[0]
		testkit.Same(t, string(kind), want, fmt.Sprintf("%s %.3f", c.Alpha.Distance, *c.Alpha.Value))
		testkit.Same(t, "entries with two answers", 11, c.Entries) // the twelfth has one
	}
	a, err := Agree(oneCategory(manifest.Single, "0 1"), columns("00", "00", "00"), Comparing{})
	testkit.OK(t, err)
	testkit.Same(t, "one answer", Alpha{Undefined: noVariation, Distance: "nominal"}, a.Categories[0].Alpha)
	testkit.Same(t, "one answer", Kappa{Undefined: noVariation}, a.Categories[0].Kappa)
}

// TestMASI has the example of NLTK's masi_distance, {1, 2} and {1, 2, 3, 4}: .665 there, where 2/3 is written .67.
func TestMASI(t *testing.T) {
	of := func(labels ...int) set {
		s := make(set, 2)
		for _, l := range labels {
			s[l/64] |= 1 << (l % 64)
		}
		return s
	}
	for _, c := range []struct {
		a, b set
		want float64
	}{
		{of(1, 2), of(1, 2, 3, 4), 2. / 3},
		{of(1, 2, 3, 4), of(1, 2), 2. / 3},
		{of(1, 100), of(1, 100), 0},
		{of(), of(), 0},
		{of(), of(1), 1},
		{of(1), of(65), 1},
		{of(1, 2), of(2, 3), 1 - 1./9},
		{of(1, 2, 70), of(2, 3, 70), 1 - 1./6},
	} {
		if got := masiOf(c.a, c.b); !near(got, c.want) {
			t.Errorf("%b and %b: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// TestAlphaOfSets: by hand. Five entries of two annotators: {0} twice, None twice, once {0} beside {0, 1}. Of the
// answers five are {0}, four None, one {0, 1}.
func TestAlphaOfSets(t *testing.T) {
	schema := manifest.Schema{Categories: []manifest.Category{{Name: "c", Kind: manifest.Multi,
		Labels: []manifest.Label{{Code: "0"}, {Code: "1"}, {Code: "N", Exclusive: true}}}}}
	a := annotator([][]int{{0}}, [][]int{{0}}, [][]int{{2}}, [][]int{{}}, [][]int{{0}}, [][]int{{0}})
	b := annotator([][]int{{0}}, [][]int{{0}}, [][]int{{}}, [][]int{{2}}, [][]int{{1, 0}}, [][]int{nil})
	got, err := Agree(schema, []Answers{a, b}, Comparing{})
	testkit.OK(t, err)
	subset := 2. / 3 // 1 - 1/2 * 2/3
	chance := (5.*4 + 4*1 + 5*1*subset) * 2 / (10 * 9)
	want := 1 - 2*subset/10/chance
	c := got.Categories[0]
	if c.Alpha.Value == nil || !near(*c.Alpha.Value, want) || c.Alpha.Distance != "MASI" || c.Entries != 5 ||
		c.Unanswered != 1 {
		t.Errorf("alpha %+v of %d entries, want %v of 5", c.Alpha, c.Entries, want)
	}
	// Label 0 is given or not: six times, four times not, and nobody differs. Label 1: once given, nine times not.
	if l := c.Labels; !near(*l[0].Alpha.Value, 1) || !near(*l[1].Alpha.Value, 1-9*2./18) {
		t.Errorf("labels %+v", l)
	}
}

// TestUnequal: a third annotator with three entries does not move what two say of 1,049. When each pair weighed the
// same, kappa went from .60 to .72.
func TestUnequal(t *testing.T) {
	one, other := make([]byte, 1049), make([]byte, 1049)
	for i := range one {
		one[i], other[i] = byte('0'+i%6), byte('0'+i%6)
		if i%3 == 2 {
			other[i] = byte('0' + (i+1)%6)
		}
	}
	schema := oneCategory(manifest.Single, "0 1 2 3 4 5")
	agree := func(decider Decider, third ...string) (kappa, alpha float64) {
		a, err := Agree(schema, columns(append([]string{string(one), string(other)}, third...)...),
			Comparing{Decider: decider})
		testkit.OK(t, err)
		return *a.Categories[0].Kappa.Value, *a.Categories[0].Alpha.Value
	}
	kappa, alpha := agree(LastOfThree)
	for _, decider := range []Decider{LastOfThree, Nobody, 3} {
		k, a := agree(decider, "012")
		if math.Abs(k-kappa) > .005 || math.Abs(a-alpha) > .005 {
			t.Errorf("decider %d: kappa %v, alpha %v; of the two kappa %v, alpha %v", decider, k, a, kappa, alpha)
		}
		if decider != Nobody && (k != kappa || a != alpha) {
			t.Errorf("decider %d is compared: kappa %v for %v", decider, k, kappa)
		}
	}
}

// TestPairWeights: a pair weighs as much as the entries that both answered.
func TestPairWeights(t *testing.T) {
	// A1 and A2: 3 of 4, expected 1/2, kappa 1/2. A1 and A3: 2 of 2, kappa 1. A2 and A3: 1 of 2, expected 1/2, kappa 0.
	a, err := Agree(oneCategory(manifest.Single, "0 1"), columns("0011", "0001", "-01-"), Comparing{Decider: Nobody})
	testkit.OK(t, err)
	c := a.Categories[0]
	if !near(*c.Kappa.Value, (4*.5+2*1+2*0)/8) || !near(*c.Observed, 6./8) || c.Kappa.Interval != nil ||
		c.Alpha.Interval != nil {
		t.Errorf("%+v", c)
	}
	if !a.Several() || c.PairEntries != 8 || c.Entries != 4 {
		t.Errorf("%d answers of pairs, %d entries", c.PairEntries, c.Entries)
	}
}

func TestDecider(t *testing.T) {
	for _, c := range []struct {
		name     string
		answers  []string
		decider  Decider
		deciders string
	}{
		{"two", []string{"01", "01"}, LastOfThree, "[]"},
		{"the last of three", []string{"01", "01", "0-"}, LastOfThree, "[A3]"},
		{"nobody", []string{"01", "01", "0-"}, Nobody, "[]"},
		{"the first of three", []string{"01", "01", "0-"}, 1, "[A1]"},
		{"a third who answers where one of two did not", []string{"0-1", "01-", "-11"}, LastOfThree, "[]"},
		{"the same, named", []string{"0-1", "01-", "-11"}, 3, "[A3]"},
		{"the last of four, who sometimes is one of three", krippendorff2011, LastOfThree, "[]"},
		{"two who decide", []string{"0101", "0101", "0---", "-1--"}, LastOfThree, "[A3 A4]"},
		{"a pool", []string{"0-00", "00-1", "0001", "-000"}, LastOfThree, "[]"},
		{"four for everything", []string{"01", "01", "01", "01"}, LastOfThree, "[]"},
	} {
		a, err := Agree(oneCategory(manifest.Single, "0 1 2 3 4 5"), columns(c.answers...), Comparing{Decider: c.decider})
		if got := fmt.Sprint(a.Deciders); err != nil || got != c.deciders ||
			len(a.Annotators)+len(a.Deciders) != len(c.answers) {
			t.Errorf("%s: %s decide, %s are compared, want %s; error %v", c.name, got, a.Annotators, c.deciders, err)
		}
	}
	for want, how := range map[string]Decider{"A3 cannot decide: there are 2 annotators": 3,
		"once A2, who decides, is left out": 2} {
		if _, err := Agree(oneCategory(manifest.Single, "0 1"), columns("01", "01"),
			Comparing{Decider: how}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for text, want := range map[string]Decider{"none": Nobody, "A3": 3, "A12": 12} {
		if got, err := ParseDecider(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "A0", "A-1", "A03", "a3", "A", "None", "A99999999999999999999"} {
		if got, err := ParseDecider(text); err == nil {
			t.Errorf("%q is decider %v", text, got)
		}
	}
}

// TestBatchDecider: who decides over all is left out of a batch too, where two of the three answered.
func TestBatchDecider(t *testing.T) {
	all := columns("0101", "010-", "0--1")
	batches := map[manifest.Key]string{}
	for key := range all[0] {
		batches[key] = map[bool]string{true: "2", false: "1"}[key.ID == "0003"]
	}
	got, err := AgreeByBatch(oneCategory(manifest.Single, "0 1"), all, batches, Comparing{Decider: LastOfThree})
	testkit.OK(t, err)
	if len(got) != 2 || got[0].Agreement == nil || got[0].Agreement.Entries != 3 || got[0].Agreement.Bootstrap != nil ||
		got[1].Agreement != nil {
		t.Errorf("%+v", got)
	}
}

// TestBatches: what has another value for nearly every entry names no batches.
func TestBatches(t *testing.T) {
	batches := map[manifest.Key]string{}
	for i := range mostBatches + 1 {
		batches[manifest.Key{ID: manifest.PostID(fmt.Sprint(i))}] = fmt.Sprint(i)
	}
	if _, err := AgreeByBatch(oneCategory(manifest.Single, "0 1"), columns("01", "01"), batches,
		Comparing{}); err == nil || !strings.Contains(err.Error(), "1001 batches") {
		t.Errorf("1001 batches: %v", err)
	}
}

// TestIntervals: of 1,000 entries of which 800 are called alike, both labels as often, kappa is .6, and its standard
// error 2 sqrt(.8 * .2 / 1000). A seed gives one interval, another seed another.
func TestIntervals(t *testing.T) {
	one, other := strings.Repeat("0101010101", 100), strings.Repeat("1001010101", 100)
	agree := func(seed uint64) Agreement {
		a, err := Agree(oneCategory(manifest.Single, "0 1"), columns(one, other), Comparing{Seed: seed})
		testkit.OK(t, err)
		return a
	}
	first := agree(1)
	testkit.Same(t, "the bootstrap", &Bootstrap{2000, 1, .95}, first.Bootstrap)
	off := 1.96 * 2 * math.Sqrt(.8*.2/1000)
	c := first.Categories[0]
	for name, i := range map[string]*Interval{"kappa": c.Kappa.Interval, "alpha": c.Alpha.Interval} {
		if i == nil || math.Abs(i.Low-.6+off) > .005 || math.Abs(i.High-.6-off) > .005 || i.Resamples != 2000 {
			t.Errorf("%s: %+v, want about %.3f to %.3f", name, i, .6-off, .6+off)
		}
	}
	if again := agree(1); !cmp.Equal(first, again) {
		t.Errorf("the same seed (-first +again)\n%s", cmp.Diff(first, again))
	}
	if again := agree(2); *again.Categories[0].Alpha.Interval == *c.Alpha.Interval {
		t.Error("two seeds give one interval")
	}
	// Of four entries, three alike, many resamples have one answer: no interval is made of the others.
	a, err := Agree(oneCategory(manifest.Single, "0 1"), columns("0001", "0001"), Comparing{})
	testkit.OK(t, err)
	if i := a.Categories[0].Alpha.Interval; i != nil {
		t.Errorf("an interval of few resamples: %+v", i)
	}
}

// TestAgreeTime: FigSIM's size takes well under seconds, and what would take minutes has no intervals.
func TestAgreeTime(t *testing.T) {
	r, entries := figsim(t)
	annotators := make([]Answers, 3)
	for i, e := range entries {
		for a := range annotators {
			if annotators[a] == nil {
				annotators[a] = Answers{}
			}
			other := entries[(i+a*17)%len(entries)]
			if i%5 > a {
				other = e
			}
			annotators[a][e.Key] = other.Labels
		}
	}
	start := time.Now()
	got, err := Agree(r.Schema, annotators, Comparing{Decider: Nobody})
	testkit.OK(t, err)
	if took := time.Since(start); took > 20*time.Second || got.Bootstrap == nil {
		t.Errorf("%s, intervals %+v", took, got.Bootstrap)
	} else {
		t.Logf("%s", took)
	}

	var labels []manifest.Label
	one, other := Answers{}, Answers{}
	for l := range 60 {
		labels = append(labels, manifest.Label{Code: fmt.Sprint(l)})
	}
	for i := range 20_000 { // each another set
		key := manifest.Key{ID: manifest.PostID(fmt.Sprint(i))}
		var all []int
		for l := range labels {
			if i>>(l%14)&1 == 1 {
				all = append(all, l)
			}
		}
		one[key], other[key] = [][]int{all}, [][]int{{i % 60}}
	}
	schema := manifest.Schema{Categories: []manifest.Category{{Name: "c", Kind: manifest.Multi, Labels: labels}}}
	got, err = Agree(schema, []Answers{one, other}, Comparing{})
	testkit.OK(t, err)
	c := got.Categories[0]
	if got.Bootstrap != nil || c.Alpha.Undefined != tooMany || c.Kappa.Value == nil || c.Labels[0].Alpha.Value == nil {
		t.Errorf("intervals %+v, alpha %+v, kappa %+v", got.Bootstrap, c.Alpha, c.Kappa)
	}
	if _, err := Agree(schema, make([]Answers, mostAnnotators+1), Comparing{}); err == nil ||
		!strings.Contains(err.Error(), "500 are the most") {
		t.Errorf("too many annotators: %v", err)
	}
}

// FuzzAgree: whatever annotators answer, each number is defined or has a reason, none is above 1, and alpha does not
// hang on the order of the annotators.
func FuzzAgree(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 3, 4, 5, 6, 7, 255, 128, 9, 9, 9})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{4, 200, 201, 15, 77, 3, 77, 3, 77, 3})
	schema := manifest.Schema{Categories: []manifest.Category{
		{Name: "single", Kind: manifest.Single, Labels: make([]manifest.Label, 3)},
		{Name: "ordinal", Kind: manifest.Ordinal, Labels: make([]manifest.Label, 4)},
		{Name: "multi", Kind: manifest.Multi, Labels: []manifest.Label{{}, {}, {Exclusive: true}}}}}
	sets := [][]int{nil, {}, {0}, {1}, {0, 1}, {2}}
	f.Fuzz(func(t *testing.T, answers []byte) {
		if len(answers) == 0 || len(answers) > 60 {
			return
		}
		all := make([]Answers, 2+answers[0]%4)
		for i, b := range answers[1:] {
			of := &all[i%len(all)]
			if *of == nil {
				*of = Answers{}
			}
			if b == 255 {
				continue
			}
			said := [][]int{{int(b) % 3}, nil, sets[b%6]}
			if b < 200 {
				said[1] = []int{int(b) / 3 % 4}
			}
			(*of)[manifest.Key{ID: manifest.PostID(fmt.Sprint(i / len(all)))}] = said
		}
		got, err := compare(schema, all, nil)
		slices.Reverse(all)
		again, errAgain := compare(schema, all, nil)
		if (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, the other way round %v", err, errAgain)
		}
		for i, c := range got.Categories {
			checkNumber(t, c.Alpha.Value, c.Alpha.Undefined)
			checkNumber(t, c.Kappa.Value, c.Kappa.Undefined)
			other := again.Categories[i].Alpha
			if c.Alpha.Undefined != other.Undefined || c.Alpha.Value != nil && math.Abs(*c.Alpha.Value-*other.Value) > 1e-9 {
				t.Errorf("alpha %+v, the other way round %+v", c.Alpha, other)
			}
			for _, l := range c.Labels {
				checkNumber(t, l.Alpha.Value, l.Alpha.Undefined)
				checkNumber(t, l.Kappa.Value, l.Kappa.Undefined)
			}
		}
	})
}

func checkNumber(t *testing.T, value *float64, undefined string) {
	t.Helper()
	switch {
	case (value == nil) != (undefined != ""):
		t.Errorf("the number is %v, undefined %q", value, undefined)
	case value != nil && !(*value <= 1+1e-9):
		t.Errorf("the number is %v", *value)
	}
}
