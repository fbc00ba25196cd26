package labels

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// column makes a schema of one category, with gold entries and predictions as lists of labels.
func oneCategory(kind manifest.CategoryKind, codes string) manifest.Schema {
	c := manifest.Category{Name: "c", Title: "C", Kind: kind}
	for _, code := range strings.Fields(codes) {
		c.Labels = append(c.Labels, manifest.Label{Code: code, Name: strings.ToLower(code), Exclusive: code == "NONE"})
	}
	return manifest.Schema{Categories: []manifest.Category{c}}
}

func key(i int) manifest.Key { return manifest.Key{ID: manifest.PostID(fmt.Sprint(i))} }

func golden(rows ...[]int) []manifest.Entry {
	var out []manifest.Entry
	for i, row := range rows {
		out = append(out, manifest.Entry{Key: key(i), Labels: [][]int{row}})
	}
	return out
}

func predicted(file string, rows ...[]int) Predictions {
	p := Predictions{File: file, Labels: make(map[manifest.Key][][]int)}
	for i, row := range rows {
		p.Labels[key(i)] = [][]int{row}
	}
	return p
}

func task(t *testing.T, schema manifest.Schema, of manifest.Task) Task {
	t.Helper()
	out, err := NewTask(schema, of)
	testkit.OK(t, err)
	return out
}

func f1s(ts TaskScore) (f1 []float64) {
	for _, l := range ts.Labels {
		f1 = append(f1, l.F1.Mean)
	}
	return f1
}

// TestF1 has the examples of scikit-learn's f1_score.
func TestF1(t *testing.T) {
	for _, c := range []struct {
		name            string
		schema          manifest.Schema
		gold            []manifest.Entry
		predicted       Predictions
		f1              []float64
		macro, weighted float64
	}{
		{"multiclass: y_true [0,1,2,0,1,2], y_pred [0,2,1,0,0,1] gives [0.8, 0, 0], macro and weighted 0.26...",
			oneCategory(manifest.Single, "0 1 2"), golden([]int{0}, []int{1}, []int{2}, []int{0}, []int{1}, []int{2}),
			predicted("p", []int{0}, []int{2}, []int{1}, []int{0}, []int{0}, []int{1}), []float64{0.8, 0, 0}, 0.8 / 3,
			0.8 / 3},
		{"multilabel: y_true [[0,0,0],[1,1,1],[0,1,1]], y_pred [[0,0,0],[1,1,1],[1,1,0]] gives [0.66666667, 1, 0.66666667]",
			oneCategory(manifest.Multi, "0 1 2 NONE"), golden([]int{3}, []int{0, 1, 2}, []int{1, 2}),
			predicted("p", []int{}, []int{2, 1, 0}, []int{0, 1}), []float64{2. / 3, 1, 2. / 3}, (2./3 + 1 + 2./3) / 3,
			(2./3 + 2*1 + 2*2./3) / 5},
		{"a label that is neither given nor predicted has 0", oneCategory(manifest.Single, "0 1 2"),
			golden([]int{0}, []int{1}),
			predicted("p", []int{0}, []int{1}), []float64{1, 1, 0}, 2. / 3, 1},
	} {
		s, err := Score(c.schema, []Task{task(t, c.schema, manifest.Task{Category: "c"})}, c.gold, nil,
			[]Predictions{c.predicted})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := s.Tasks[0]
		if !allNear(f1s(got), c.f1) || !near(got.MacroF1.Mean, c.macro) || !near(got.WeightedF1.Mean, c.weighted) ||
			got.MacroF1.SD != nil {
			t.Errorf("%s\ngot %v, macro %v, weighted %v; want %v, %v, %v", c.name, f1s(got), got.MacroF1, got.WeightedF1,
				c.f1, c.macro, c.weighted)
		}
	}
}

// TestSpread: the paper's Table 4 has the mean over labels as the task's score, and a sample
// standard deviation over runs.
func TestSpread(t *testing.T) {
	for want, each := range map[float64][]float64{70.21: {86.70, 65.93, 58.00},
		71.60: {75.68, 71.57, 68.14, 71.62, 70.98}, 58.51: {61.76, 47.19, 69.92, 55.18}} {
		if got := spread(each).Mean; math.Abs(got-want) > 0.0051 {
			t.Errorf("mean of %v = %v, the paper has %v", each, got, want)
		}
	}
	if got := spread([]float64{1, 2, 3, 6}); !near(got.Mean, 3) || !near(*got.SD, math.Sqrt(14./3)) {
		t.Errorf("spread = %v, %v", got.Mean, *got.SD)
	}
}

func TestTaskOfFigSIM(t *testing.T) {
	schema := manifest.FigSIM()
	var got []string
	for _, of := range schema.Tasks() {
		task := task(t, schema, of)
		text := task.Category + ":"
		for _, c := range task.Classes {
			text += " " + c.Code
		}
		got = append(got, text)
	}
	want := []string{"figurative: F1 F2 F3", "severity: SS6 SS1 SS2 SS3 SS4+SS5", "related_content: SR1 SR2 SR3 SR4"}
	testkit.Same(t, "tasks", want, got)
	for name, of := range map[string]manifest.Task{
		"no category":            {Category: "colour"},
		"no label":               {Category: "severity", Merge: [][]string{{"SS4", "SS9"}}},
		"not side by side":       {Category: "severity", Merge: [][]string{{"SS1", "SS4"}}},
		"twice":                  {Category: "severity", Merge: [][]string{{"SS4", "SS5"}}, LeaveOut: []string{"SS5"}},
		"nothing left":           {Category: "context", LeaveOut: []string{"C1"}},
		"all of a multi put out": {Category: "figurative", LeaveOut: []string{"F1", "F2", "F3"}},
	} {
		if _, err := NewTask(schema, of); err == nil {
			t.Errorf("%s: %+v was taken", name, of)
		}
	}
}

// TestBias works Figure 4 and Table 12 out by hand on eight entries.
func TestBias(t *testing.T) {
	schema := manifest.FigSIM()
	of := task(t, schema, schema.Tasks()[1])
	var gold []manifest.Entry
	p := Predictions{File: "p", Labels: make(map[manifest.Key][][]int)}
	for i, row := range []struct{ figurative, given, predicted int }{
		{0, 3, 2}, {0, 4, 4}, {2, 5, 4}, {2, 4, 5}, // SS4 and SS5 are one class: the last three are right
		{2, 2, 1}, {3, 2, 3}, {3, 0, 1}, {3, 1, 0},
	} {
		gold = append(gold, manifest.Entry{Key: key(i), Labels: [][]int{{row.figurative}, {row.given}, nil, nil, nil}})
		p.Labels[key(i)] = [][]int{nil, {row.predicted}, nil, nil, nil}
	}
	// What has no gold label, no answer, or nothing said of the other category.
	for i, row := range [][2][]int{{nil, {1}}, {{}, {1}}, {{1}, nil}, {{1}, {1}}} {
		gold = append(gold, manifest.Entry{Key: key(100 + i), Labels: [][]int{nil, row[0], nil, nil, nil}})
		p.Labels[key(100+i)] = [][]int{nil, row[1], nil, nil, nil}
	}
	s, err := Score(schema, []Task{of}, gold, nil, []Predictions{p})
	testkit.OK(t, err)
	row := func(code, name string, over, under, correct int) BiasRow {
		return BiasRow{code, name, over, under, correct}
	}
	want := &Bias{
		ByTrue: []BiasRow{row("SS6", "None", 1, 0, 0), row("SS1", "Wish to be dead", 0, 1, 1),
			row("SS2", "Suicide ideation", 1, 1, 0),
			row("SS3", "Suicide planning", 0, 1, 0), row("SS4+SS5", "Suicide attempts/Suicide death", 0, 0, 3)},
		ByLabel: []BiasBy{
			{"F1", "Metaphor", row("F1", "Metaphor", 2, 2, 2), row("F1", "Metaphor", 0, 1, 1)},
			{"F2", "Pun/Double meaning", row("F2", "Pun/Double meaning", 2, 3, 3), row("F2", "Pun/Double meaning", 0, 0, 0)},
			{"F3", "Irony/Sarcasm", row("F3", "Irony/Sarcasm", 2, 2, 1), row("F3", "Irony/Sarcasm", 0, 1, 2)}},
		Without: 1,
	}
	testkit.Same(t, "bias", want, s.Tasks[0].Bias)
	if got := want.ByLabel[0].Absent.Wrong(); got != 4 {
		t.Errorf("Wrong = %d", got)
	}
}

// TestLeftOut: an entry with a gold label that is left out is not scored; with several labels to give
// it is, for none of the others was given.
func TestLeftOut(t *testing.T) {
	for kind, want := range map[manifest.CategoryKind]int{manifest.Single: 2, manifest.Multi: 3} {
		schema := oneCategory(kind, "0 1 2")
		of := task(t, schema, manifest.Task{Category: "c", LeaveOut: []string{"2"}})
		s, err := Score(schema, []Task{of}, golden([]int{0}, []int{1}, []int{2}, nil), nil,
			[]Predictions{predicted("p", []int{0}, []int{1}, []int{1}, []int{0})})
		if err != nil || s.Tasks[0].Scored[0] != want {
			t.Errorf("%v: %+v, error %v; want %d entries scored", kind, s.Tasks, err, want)
		}
	}
}

// TestIDs: what is missing, elsewhere, unknown or unanswered is counted, and not scored.
func TestIDs(t *testing.T) {
	schema := oneCategory(manifest.Single, "0 1")
	gold := golden([]int{0}, []int{1}, []int{0}, nil)
	others := map[manifest.Key]bool{key(7): true}
	first := predicted("first", []int{0}, []int{1}, []int{1}, []int{0})
	first.Labels[key(7)] = [][]int{{0}}
	second := predicted("second", []int{0}, []int{}) // all of a label's columns say no: no answer
	second.Labels[key(8)] = [][]int{{0}}
	second.Labels[manifest.Key{ID: "9", Image: 2}] = [][]int{{0}}
	s, err := Score(schema, []Task{task(t, schema, manifest.Task{Category: "c"})}, gold, others,
		[]Predictions{first, second})
	testkit.OK(t, err)
	want := []FileScore{
		{File: "first", Predicted: 4, Elsewhere: 1, UnknownOf: []string{}},
		{File: "second", Predicted: 2, Missing: 2, MissingOf: []string{"2", "3"}, Unknown: 2,
			UnknownOf: []string{"8", "9/2"}},
	}
	for i := range s.Files {
		if len(s.Files[i].UnknownOf) == 0 {
			s.Files[i].UnknownOf = []string{}
		}
	}
	testkit.Same(t, "files", want, s.Files)
	ts := s.Tasks[0]
	testkit.Same(t, "scored and without answer", [][]int{{3, 1}, {0, 1}}, [][]int{ts.Scored, ts.NoAnswer})
	// First: label 0 has 1 hit, 1 under; label 1 has 1 hit, 1 over. Second: one hit of 0.
	if !allNear(ts.Labels[0].F1.Each, []float64{2. / 3, 1}) || !allNear(ts.Labels[1].F1.Each, []float64{2. / 3, 0}) {
		t.Errorf("F1 %v, %v", ts.Labels[0].F1.Each, ts.Labels[1].F1.Each)
	}
	if _, err := Score(schema, []Task{task(t, schema, manifest.Task{Category: "c"})}, gold, nil,
		[]Predictions{predicted("none")}); err == nil {
		t.Error("a file without answers was scored")
	}
	for _, gold := range [][]manifest.Entry{nil, gold} {
		if _, err := Score(schema, nil, gold, nil, nil); err == nil {
			t.Errorf("no file was scored against %d gold labels", len(gold))
		}
	}
}

// TestUnlabelled: entries without a true label are counted where they are left out: of a task, of a task of which no
// entry has one, and of the tables by another category.
func TestUnlabelled(t *testing.T) {
	schema := manifest.FigSIM()
	var tasks []Task
	for _, name := range []string{"severity", "modality"} {
		tasks = append(tasks, task(t, schema,
			manifest.Task{Category: name, By: "figurative", ErrorsBy: []string{"context"}}))
	}
	var gold []manifest.Entry
	p := Predictions{File: "p", Labels: Answers{}}
	for i, labels := range [][][]int{{{0}, {1}, nil, nil, {0}}, {nil, {2}, nil, nil, nil}, {{0}, nil, nil, nil, {0}},
		{{0}, {}, nil, nil, {0}}, {{0}, {3}, nil, nil, nil}, {nil, nil, nil, nil, nil}} {
		gold = append(gold, manifest.Entry{Key: key(i), Labels: labels})
		p.Labels[key(i)] = [][]int{nil, {1}, nil, {0}, nil}
	}
	s, err := Score(schema, tasks, gold, nil, []Predictions{p})
	testkit.OK(t, err)
	testkit.Same(t, "tasks of which no entry has a label", []string{"modality"}, s.Unlabelled)
	ts := s.Tasks[0]
	testkit.Same(t, "entries, scored, without a label, by figurative, by context", []int{6, 3, 3, 1, 2},
		[]int{s.Entries, ts.Scored[0], ts.Without, ts.Bias.Without, ts.Errors[0].Without})
	_, err = Score(schema, tasks[1:], gold, nil, []Predictions{p})
	testkit.Same(t, "no task has a label", "score: none of the 6 entries has a label of modality in the release",
		fmt.Sprint(err))
}

// TestClasses: the code and the name of a merged class mean its first label; of another label there is nothing to say.
// Where the other category of a bias merges labels, no prediction says which of those was meant.
func TestClasses(t *testing.T) {
	task, err := NewTask(manifest.FigSIM(), manifest.Task{Category: "severity", Merge: [][]string{{"SS4", "SS5"}}})
	testkit.OK(t, err)
	testkit.Same(t, "severity", []manifest.Spelling{{Text: "SS4+SS5", Category: 1, Label: 4},
		{Text: "Suicide attempts/Suicide death", Category: 1, Label: 4}}, task.Spellings())

	figurative := manifest.Task{Category: "figurative", Merge: [][]string{{"F1", "F2"}}}
	severity := manifest.Task{Category: "severity", By: "figurative"}
	entry := manifest.Entry{Key: manifest.Key{ID: "abc"}, Labels: [][]int{{1}, {2}, nil, nil, nil}}
	var tasks []Task
	for _, m := range []manifest.Task{figurative, severity} {
		task, err := NewTask(manifest.FigSIM(), m)
		testkit.OK(t, err)
		tasks = append(tasks, task)
	}
	files := []Predictions{{File: "f", Labels: Answers{entry.Key: {{0}, {1}, nil, nil, nil}}}}
	scores, err := Score(manifest.FigSIM(), tasks, []manifest.Entry{entry}, nil, files)
	testkit.OK(t, err)
	testkit.Same(t, "F1 of the class", 1.0, scores.Task("figurative").Labels[0].F1.Mean)
	right := scores.Task("severity").Bias.Right
	if len(right) != 1 || right[0].Code != "F3" || right[0].Absent.Under != 1 {
		t.Errorf("predicted right: %+v", right)
	}
}

// TestSupport: how many entries have a label does not depend on which file is named first.
func TestSupport(t *testing.T) {
	r, entries := figsim(t)
	task, err := NewTask(r.Schema, manifest.Task{Category: "severity"})
	testkit.OK(t, err)
	gold := entries[:40]
	all, some := Predictions{File: "all", Labels: Answers{}}, Predictions{File: "some", Labels: Answers{}}
	for i, e := range gold {
		all.Labels[e.Key] = e.Labels
		if i%3 == 0 {
			some.Labels[e.Key] = e.Labels
		}
	}
	score := func(files ...Predictions) []LabelScore {
		s, err := Score(r.Schema, []Task{task}, gold, nil, files)
		testkit.OK(t, err)
		return s.Tasks[0].Labels
	}
	forth, back, alone := score(all, some), score(some, all), score(some)
	for i, l := range forth {
		if l.Support != back[i].Support || l.Support != alone[i].Support || l.Supports[0] != back[i].Supports[1] ||
			l.Supports[1] != l.Support {
			t.Errorf("%s: %+v, in the other order %+v", l.Code, l, back[i])
		}
		if want := fmt.Sprintf("%d, %d", l.Supports[0], l.Supports[1]); l.Supports[0] != l.Supports[1] && l.True() != want {
			t.Errorf("%s: %s, want %s", l.Code, l.True(), want)
		}
	}
}
