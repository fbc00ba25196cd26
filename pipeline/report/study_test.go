package report

import (
	"strings"
	"testing"

	"rehydrate/labels"
	"rehydrate/pipeline/attest"
)

func writeStudy(t *testing.T, s Study) string {
	t.Helper()
	var b strings.Builder
	attest.OK(t, WriteStudy(&b, s))
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

// TestStudy: parts that are not there are left out, what cannot be tested says so, and names from files are escaped.
func TestStudy(t *testing.T) {
	if page := writeStudy(t, Study{Title: "T"}); strings.Contains(page, "<section") {
		t.Errorf("an empty study has parts:\n%s", page)
	}
	page := writeStudy(t, Study{Tests: someTests()})
	for _, want := range []string{"&lt;script&gt;", "Not tested: all values are equal", "0.250, n 4", "no values", "A and B (z &#43;2.00, p 0.04)", "1 of 2", "median 0, n 4"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "A and C (z") || strings.Contains(page, "<script") {
		t.Errorf("a pair that does not differ, or a script, is on the page:\n%s", page)
	}
}
