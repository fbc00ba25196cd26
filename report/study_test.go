package report

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
)

func writeStudy(t *testing.T, s Study) string {
	t.Helper()
	var b strings.Builder
	testkit.OK(t, WriteStudy(&b, s))
	return b.String()
}

// someTests are the tests of two features, of which one has a result.
func someTests() *Tests {
	group := labels.Group{Code: "A", Name: "a", N: 4, Values: &labels.Summary{Mean: .25, MeanRank: 2, High: 1, Max: 1}}
	return &Tests{By: "c", Alpha: .05, Tests: []labels.GroupTest{
		{Feature: "<script>", YesNo: true, Groups: []labels.Group{group, {Code: "B"}}, Untested: "all values are equal"},
		{Feature: "x", Groups: []labels.Group{group}, Result: &labels.RankResult{H: 3, Pairs: []labels.PairTest{
			{A: "A", B: "B", Z: 2, PBonferroni: .04}, {A: "A", B: "C", PBonferroni: .5}}}}}}
}

// someStudy has every part, with text in each place that takes one.
func someStudy(text string) Study {
	half, eta := .5, .01
	spread := labels.Spread{Mean: .7, SD: &half, Each: []float64{.2, 1.2}}
	row := labels.BiasRow{Code: "A" + text, Name: "a", Over: 1, Under: 2, Correct: 3}
	by := []labels.BiasBy{{Code: "F" + text, Name: "f", Absent: row, Present: row}}
	rate := labels.NewRate(3, 7)
	means := []labels.SeverityMean{{Group: "all", N: 3, Mean: &half}, {Group: "with", N: 3, Mean: &half},
		{Group: "without"}}
	tests := someTests()
	tests.Tests[1].Result.EtaSquared = &eta
	labelled := func(name string) labels.CategoryStats {
		return labels.CategoryStats{Name: name, Title: "T" + text,
			Labels: []labels.LabelStats{{Code: "A" + text, Name: "a", Count: 7, BySplit: []int{7}}}}
	}
	return Study{Title: "T" + text, Tests: tests, Together: []string{"one", "two"},
		Counts: &labels.Stats{Entries: 7, Splits: []labels.SplitSize{{Name: "train", Entries: 7}},
			Categories: []labels.CategoryStats{labelled("one"), labelled("two"), labelled("three")},
			Pairs: []labels.Pair{{Rows: "one", Columns: "two", Counts: [][]int{{7}}},
				{Rows: "one", Columns: "three", Counts: [][]int{{7}}}}},
		Agreement: &labels.Agreement{Annotators: []string{"A", "B", "C"}, Deciders: []string{"D"},
			Pairs:     []labels.AnnotatorPair{{A: "A", B: "B", Both: 7}},
			Bootstrap: &labels.Bootstrap{Resamples: 2000, Seed: 6},
			Categories: []labels.CategoryAgreement{{Name: "one", Entries: 7, PairEntries: 7,
				Alpha: labels.Alpha{Value: new(.31), Distance: "MASI", Interval: &labels.Interval{Low: -.001, High: .62}},
				Kappa: labels.Kappa{Value: &half, Strength: "moderate"}, Observed: &half,
				Labels: []labels.LabelAgreement{{Code: "A", Kappa: labels.Kappa{Undefined: "no variation"}}}}}},
		Moderation: &labels.ModerationTable{By: "one", Beside: "two", Entries: 7,
			Services: []labels.ServiceRow{{Name: "S" + text, Unjudged: 1, Labels: []labels.LabelRate{
				{Code: "A", Name: "a", SelfHarm: rate, Overall: rate, Severity: means},
				{Code: "B", Name: "b", Severity: means}}}}},
		Models: []Model{{"M" + text, labels.Scores{Files: []labels.FileScore{{}},
			Tasks: []labels.TaskScore{{Category: "one", MacroF1: spread, WeightedF1: spread,
				Labels: []labels.LabelScore{{Code: "A", Name: "a", F1: spread}},
				Bias:   &labels.Bias{ByTrue: []labels.BiasRow{row}, ByLabel: by, Right: by},
				Errors: []labels.ErrorsBy{{Category: "two",
					Labels: []labels.ErrorShare{{Code: "C", Name: "c", Wrong: 1, All: 4}}}}}}}},
			{"other", labels.Scores{Tasks: []labels.TaskScore{{Category: "two", MacroF1: labels.Spread{Mean: .25}}}}}}}
}

// TestStudyParts: each part of a study shows its numbers, and a model without a task has a dash there.
func TestStudyParts(t *testing.T) {
	page := writeStudy(t, someStudy(hostile))
	for _, want := range []string{"7 entries, 7 of split train", "one by two, shares of each row",
		"A and B both annotated 7 entries", "moderate", "no variation",
		`<td class="number">0.31<br>0.00 to 0.62</td><td>MASI</td>`, "D decided", "means over the pairs",
		"2000 resamples of the entries, seed 6",
		"0.429", "with two 0.50", "70.00 ± 50.00", "25.00", `<td class="number">-</td>`,
		"too low 2, right 3, too high 1", "where that label was predicted correctly", "25.0 %", shown} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "one by three") || strings.Contains(page, "<script") || strings.Contains(page, "NaN") {
		t.Errorf("a pair that was not asked for, a script or NaN is on the page")
	}
}

// TestStudy: parts that are not there are left out, what cannot be tested says so, and names from files are escaped.
func TestStudy(t *testing.T) {
	if page := writeStudy(t, Study{Title: "T"}); strings.Contains(page, "<section") {
		t.Errorf("an empty study has parts:\n%s", page)
	}
	page := writeStudy(t, Study{Tests: someTests()})
	for _, want := range []string{"&lt;script&gt;", "Not tested: all values are equal", "0.250, n 4", "no values",
		"A and B (z &#43;2.00, p 0.04)", "1 of 2", "median 0, n 4"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "A and C (z") || strings.Contains(page, "<script") {
		t.Errorf("a pair that does not differ, or a script, is on the page:\n%s", page)
	}
}

// TestStudyModels: beside the scores of each model stands what it answered, and models that answered other entries
// are marked.
func TestStudyModels(t *testing.T) {
	model := func(name string, missing, none int, answered ...bool) Model {
		return Model{name, labels.Scores{Files: []labels.FileScore{{File: name + ".csv", Predicted: 5 - missing,
			Missing: missing}},
			Tasks: []labels.TaskScore{{Category: "one", Files: []string{name + ".csv"}, Scored: []int{5 - missing - none},
				NoAnswer: []int{none}, Without: 7,
				Answered: [][]bool{answered}, MacroF1: labels.Spread{Mean: .2}, WeightedF1: labels.Spread{Mean: 1}}}}}
	}
	full, easy := model("full", 0, 0, true, true, true, true, true), model("easy", 3, 1, true, false, false, false, false)
	page := writeStudy(t, Study{Models: []Model{easy, full, {Name: "none"}}})
	const row = `<td>one</td><th scope="row">%s</th><td class="number">1</td><td class="number">%d</td>` +
		`<td class="number">%d</td><td class="number">%d</td><td class="number">20.00</td>` +
		`<td class="number">100.00</td><td>%s</td>`
	for _, want := range []string{fmt.Sprintf(row, "easy", 1, 1, 3,
		"not comparable with full, which answered other entries"), fmt.Sprintf(row, "full", 5, 0, 0, ""),
		"<p>7 entries without a true label: not scored.</p>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	page = writeStudy(t, Study{Models: []Model{full, model("same", 0, 0, true, true, true, true, true)}})
	if strings.Contains(page, "not comparable with") {
		t.Error("models that answered the same entries are marked")
	}
}

// TestStudyHead: the strip, the contents and the headings say what is on the page.
func TestStudyHead(t *testing.T) {
	s := someStudy("")
	s.Schema = "figsim"
	text := words(writeStudy(t, s))
	for _, want := range []string{
		"7 entries 3 label categories 0 of 1 categories with alpha of 0.8 or more 1 of 1 features differ by c (Holm) 1 features not tested 1 moderation services 2 of 2 scores of models are comparable",
		"Labels Agreement of annotators Differences by c &lt;script&gt; x Moderation services Predictions M other",
		"Labels (FigSIM: Table 8, Figures 2 and 6)", "Predictions (FigSIM: Table 3)",
		"M: one (FigSIM: Tables 4 and 12, Figure 4)", "other: two (FigSIM: Table 4, Figures 7 and 8)",
		"Macro F1 on one in percent, by model: the mean, and the range over its files M 70.00 ± 50.00",
		"model mean from to M 70.00 20.00 120.00",
		"false positives false negatives"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	s.Schema = "memes"
	if page := writeStudy(t, s); strings.Contains(page, "FigSIM") {
		t.Error("the page of another schema names the tables of FigSIM")
	}
	s.Tests.Tests[1].Result.PHolm = .2 // with a pair that differs: noise in enough features has one
	if text := words(writeStudy(t, s)); !strings.Contains(text, "0 of 1 features differ by c (Holm)") {
		t.Errorf("a feature that Holm's correction does not confirm counts: %.300s", text)
	}
}

// TestStudyAgreement: entries that one annotator alone answered for are counted.
func TestStudyAgreement(t *testing.T) {
	page := writeStudy(t, Study{Agreement: &labels.Agreement{Pairs: []labels.AnnotatorPair{{A: "A1", B: "A2", Both: 7,
		OnlyA: 2, OnlyB: 1}}}})
	if !strings.Contains(page, "A1 and A2 both annotated 7 entries (2 only A1, 1 only A2)") {
		t.Error("the page lacks who answered alone")
	}
}
