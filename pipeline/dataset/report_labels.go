package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/labels"
)

func (r report) labels() {
	r.el("p", "For each label the share of the entries that have it: in the release, and among the entries that were rebuilt.")
	for i, c := range r.d.Labels.Categories {
		rebuilt := r.d.Rebuilt.Categories[i]
		r.el("h3", cmp.Or(c.Title, c.Name))
		chart := barChart{title: "Share of entries with each label of " + cmp.Or(c.Title, c.Name), unit: "%", pairs: [2]string{"release", "rebuilt"}}
		var rows [][]string
		for l, label := range c.Labels {
			now := rebuilt.Labels[l].Count
			chart.bars = append(chart.bars, bar{label: label.Code + " " + label.Name,
				share: share(label.Count, r.d.Labels.Entries), second: share(now, r.d.Rebuilt.Entries),
				note: percent(label.Count, r.d.Labels.Entries) + ", " + percent(now, r.d.Rebuilt.Entries)})
			rows = append(rows, []string{label.Code + " " + label.Name, strconv.Itoa(label.Count), percent(label.Count, r.d.Labels.Entries),
				strconv.Itoa(now), percent(now, r.d.Rebuilt.Entries)})
		}
		r.barChart(chart)
		r.begin("details")
		r.el("summary", "The numbers of "+cmp.Or(c.Title, c.Name))
		r.table(fmt.Sprintf("Mean number of labels an entry, without None: %.2f in the release, %.2f rebuilt", c.Cardinality, rebuilt.Cardinality),
			[]column{{head: "label"}, {"release", true}, {"share", true}, {"rebuilt", true}, {"share", true}}, slices.Values(rows))
		r.end()
	}
}

// driftLevel is the chance of calling any label changed when none is.
const driftLevel = 0.05

func (r report) drift() {
	drift := r.d.Drift
	if len(drift) == 0 {
		r.el("p", "There is nothing to compare: all of the release was rebuilt, or none of it.")
		return
	}
	changed := holm(drift, driftLevel)
	tests, n := 0, 0
	for i, is := range changed {
		if drift[i].Untested == "" {
			tests++
		}
		if is {
			n++
		}
	}
	verdict := "Yes, as far as these tests can tell: the labels of what was rebuilt are distributed as those of what is missing."
	if n > 0 {
		verdict = fmt.Sprintf("No: in %d of %d tests the labels of what was rebuilt are distributed otherwise than those of what is missing.", n, tests)
	}
	r.el("p", verdict)
	r.begin("p", at("class", "quiet"))
	r.text("Pearson's chi-squared test of homogeneity, rebuilt entries against missing ones: one test over all labels of a category that takes one label, " +
		"one test a label elsewhere. Judged together (Holm's method) at 5 %. Cramér's V is the size of the difference, from 0 to 1.")
	r.end()
	r.table("Drift of the labels", []column{{head: "labels"}, {"chi-squared", true}, {"degrees of freedom", true}, {"p", true}, {"Cramér's V", true}, {head: "verdict"}, {head: "remarks"}},
		func(yield func([]string) bool) {
			for i, d := range drift {
				if !yield(driftRow(d, changed[i])) {
					return
				}
			}
		})
}

func driftRow(d labels.Drift, changed bool) []string {
	name := strings.TrimSpace(d.Category + " " + d.Label)
	if d.Untested != "" {
		return []string{name, "", "", "", "", "not tested", d.Untested}
	}
	verdict := "alike"
	if changed {
		verdict = "differs"
	}
	var remarks []string
	if len(d.Merged) > 0 {
		remarks = append(remarks, "rare labels counted as one: "+listOf(d.Merged))
	}
	if d.Small {
		remarks = append(remarks, "few entries: a rough guide")
	}
	p := fmt.Sprintf("%.3f", d.P)
	if d.P < 0.0005 {
		p = fmt.Sprintf("%.0e", d.P)
	}
	return []string{name, fmt.Sprintf("%.2f", d.Chi2), strconv.Itoa(d.Freedom), p, fmt.Sprintf("%.2f", d.CramersV), verdict, strings.Join(remarks, "; ")}
}

// holm tells which tests reject at a level, all of them taken together (Holm 1979): in order of p,
// the i-th of m may be at most level/(m-i), up to the first that is not.
func holm(drift []labels.Drift, level float64) []bool {
	var order []int
	for i, d := range drift {
		if d.Untested == "" {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(drift[a].P, drift[b].P) })
	out := make([]bool, len(drift))
	for rank, i := range order {
		if drift[i].P > level/float64(len(order)-rank) {
			break
		}
		out[i] = true
	}
	return out
}

func (r report) together() {
	r.el("p", "Each row sums to 100 %: beside the label of the row, how often each label of the other category stands.")
	for i, pair := range r.d.Labels.Pairs {
		var open []attr
		if i == 0 {
			open = []attr{at("open", "open")}
		}
		r.begin("details", open...)
		r.el("summary", r.title(pair.Rows)+" by "+r.title(pair.Columns))
		r.heatmap(heatmap{title: "Release: " + r.title(pair.Rows) + " by " + r.title(pair.Columns), pair: pair, rows: r.codes(pair.Rows), columns: r.codes(pair.Columns)})
		r.heatmap(heatmap{title: "Rebuilt: " + r.title(pair.Rows) + " by " + r.title(pair.Columns), pair: r.d.Rebuilt.Pairs[i], rows: r.codes(pair.Rows), columns: r.codes(pair.Columns)})
		r.end()
	}
}

// title is a category's name for people.
func (r report) title(category string) string {
	for _, c := range r.d.Labels.Categories {
		if c.Name == category {
			return cmp.Or(c.Title, c.Name)
		}
	}
	return category
}

// codes are the codes of a category's labels.
func (r report) codes(category string) []string {
	var codes []string
	for _, c := range r.d.Labels.Categories {
		if c.Name == category {
			for _, l := range c.Labels {
				codes = append(codes, l.Code)
			}
		}
	}
	return codes
}

// share is n of all in percent.
func share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

func percent(n, of int) string { return strconv.FormatFloat(share(n, of), 'f', 1, 64) + " %" }

func megabytes(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB" }

func rounded(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

func listOf(items []string) string { return strings.Join(items, ", ") }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
