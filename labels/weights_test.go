package labels

import (
	"fmt"
	"math"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestWeights has the weights of FigSIM's train split that follow from its Table 8.
func TestWeights(t *testing.T) {
	r, entries := figsim(t)
	var train []manifest.Entry
	for _, e := range entries {
		if e.Split == "train" {
			train = append(train, e)
		}
	}
	var tasks []Task
	for _, of := range r.Schema.Tasks() {
		tasks = append(tasks, task(t, r.Schema, of))
	}
	var got []string
	for _, w := range Weights(tasks, train)[:2] {
		for _, l := range w.Labels {
			got = append(got, fmt.Sprintf("%s %s %.3f of %d", w.Rule, l.Code, *l.Weight, w.Entries))
		}
	}
	testkit.Same(t, "weights", []string{"pos_weight F1 5.526 of 633", "pos_weight F2 7.671 of 633",
		"pos_weight F3 0.269 of 633", "balanced SS6 1.305 of 633",
		"balanced SS1 1.120 of 633", "balanced SS2 0.612 of 633", "balanced SS3 1.292 of 633",
		"balanced SS4+SS5 1.073 of 633"}, got)
	none := Weights([]Task{task(t, oneCategory(manifest.Single, "A B"), manifest.Task{Category: "c"})},
		golden([]int{0}, nil))
	if l := none[0].Labels; *l[0].Weight != 1 || l[1].Weight != nil || none[0].Entries != 1 {
		t.Errorf("weights of a class that no entry has: %+v", none)
	}
}

// TestTune: of thresholds with equal F1 the higher is taken, equal probabilities fall together, and a class without an
// entry keeps 0.5.
func TestTune(t *testing.T) {
	schema := oneCategory(manifest.Multi, "A B NONE")
	of := task(t, schema, manifest.Task{Category: "c"})
	gold := golden([]int{0}, []int{2}, []int{0}, []int{2}, []int{0}, nil)
	probabilities := func(a ...float64) Probabilities {
		p := Probabilities{}
		for i, v := range a {
			p[key(i)] = []float64{v, v}
		}
		return p
	}
	for _, c := range []struct {
		p             []float64
		threshold, f1 float64
	}{
		{[]float64{.9, .8, .7, .1, .6}, .6, 6. / 7},
		{[]float64{.9, .2, .2, .1, .2}, .2, 6. / 7},
		{[]float64{.9, .8, .6, .7, math.NaN(), .95}, .9, 2. / 3},
		{[]float64{.5, .5, .5, .5, .5}, .5, .75},
		{[]float64{math.NaN(), .8, .9, .1, .95}, .9, 1},
		{[]float64{.9, .8, math.NaN(), .85, math.NaN()}, .9, 1},
	} {
		got := of.Tune(gold, probabilities(c.p...))
		if !near(got[0].Value, c.threshold) || !near(*got[0].F1, c.f1) || got[1].Value != 0.5 || got[1].F1 != nil {
			t.Errorf("%v: thresholds %+v with F1 %v, want %v with %v", c.p, got, *got[0].F1, c.threshold, c.f1)
		}
	}
	answers := Answers{}
	_, err := of.Decide(schema, Probabilities{key(0): {.7, .2}, key(1): {.1, .1}, key(2): {.9, math.NaN()}},
		[]Threshold{{Value: .7}, {Value: .5}}, answers)
	testkit.OK(t, err)
	testkit.Same(t, "answers", Answers{key(0): {{0}}, key(1): {{}}, key(2): {nil}}, answers)
	if _, err := of.Decide(schema, Probabilities{key(0): {1}}, nil, answers); err == nil {
		t.Error("one probability for two classes was taken")
	}
	scale := manifest.FigSIM()
	severity := task(t, scale, scale.Tasks()[1])
	answers = Answers{}
	ties, err := severity.Decide(scale,
		Probabilities{key(0): {.1, .2, .1, .2, .4}, key(1): {.3, .3, 0, 0, 0}, key(2): {0, 0, 0, 0, 0},
			key(3): {.1, .1, .8, 0, 0}}, nil, answers)
	testkit.Same(t, "ties", 2, ties, err)
	testkit.Same(t, "answers", Answers{key(0): {nil, {4}, nil, nil, nil}, key(1): {nil, nil, nil, nil, nil},
		key(2): {nil, nil, nil, nil, nil}, key(3): {nil, {2}, nil, nil, nil}}, answers)
	testkit.Same(t, "codes", [][]string{{"SS6"}, {"SS1"}, {"SS2"}, {"SS3"}, {"SS4", "SS5"}}, severity.codes(scale))
}

// TestErrors: a prediction of several labels is wrong unless it is exactly the gold set, without the labels that are
// left out; the errors of severity are told again where the figurative label was right.
func TestErrors(t *testing.T) {
	schema := manifest.FigSIM()
	related, severity := task(t, schema, schema.Tasks()[2]), task(t, schema, schema.Tasks()[1])
	var gold []manifest.Entry
	p := Predictions{File: "p", Labels: Answers{}}
	for i, row := range []struct {
		context          int
		given, predicted []int
		figurative       []int
	}{
		{0, []int{0, 1}, []int{1, 0}, []int{0}}, {0, []int{0, 1}, []int{0}, []int{3}}, {0, []int{5}, []int{}, nil},
		{0, []int{4}, []int{5}, []int{}},
		{1, []int{5}, []int{2}, []int{0, 2}}, {1, []int{0}, []int{1}, []int{1}}, {1, []int{0}, nil, []int{0}},
	} {
		gold = append(gold, manifest.Entry{Key: key(i), Labels: [][]int{{0}, {3}, row.given, {0}, {row.context}}})
		p.Labels[key(i)] = [][]int{row.figurative, {2}, row.predicted, nil, nil}
	}
	s, err := Score(schema, []Task{related, severity}, gold, nil, []Predictions{p})
	testkit.OK(t, err)
	testkit.Same(t, "errors", []ErrorsBy{{"modality",
		[]ErrorShare{{"M1", schema.Categories[3].Labels[0].Name, 3, 6}, {"M2", schema.Categories[3].Labels[1].Name, 0, 0},
			{"M3", schema.Categories[3].Labels[2].Name, 0, 0}}, 0},
		{"context", []ErrorShare{{"C1", schema.Categories[4].Labels[0].Name, 1, 4},
			{"C2", schema.Categories[4].Labels[1].Name, 2, 2}}, 0}}, s.Tasks[0].Errors)
	if got := s.Tasks[1].Errors[1].Labels; got[0].Wrong != 4 || got[1].All != 3 {
		t.Errorf("errors of severity by context: %+v", got)
	}
	// Of F1, which all seven have, three predictions are right; of F2 and F3 those without it are right but one each.
	bias := s.Tasks[1].Bias
	if bias.ByLabel[0].Present.Under != 7 || bias.Right[0].Present.Under != 3 || bias.Right[1].Absent.Under != 5 ||
		bias.Right[2].Absent.Under != 5 {
		t.Errorf("where the figurative label was right: %+v", bias.Right)
	}
	if _, err := NewTask(schema, manifest.Task{Category: "severity", ErrorsBy: []string{"colour"}}); err == nil {
		t.Error("errors by a category that is not there were taken")
	}
}
