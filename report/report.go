// Package report shows people what a workspace holds: the report of all of it, what reading again changed, and
// everything known of one entry. It only reads.
package report

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"rehydrate/internal/page"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

//go:embed report.html reread.html study.html
var files embed.FS

// data is what report.html shows.
type data struct {
	state.Summary
	Schema manifest.Schema
	Tool   string    // version of the program
	Made   time.Time // when the report was
	// Advice says what to do about entries of an outcome and reason.
	Advice func(state.Count) string

	BySplit []split // in the order of the release

	// DateColumn is the release's first column of timestamps, ByMonth counts the entries by its month and by
	// outcome, and Undated those without a value. Empty where the release has no such column.
	DateColumn string
	ByMonth    map[time.Time]map[manifest.Outcome]int
	Undated    int

	Labels  labels.Stats   // of the release
	Rebuilt labels.Stats   // of the kept entries
	Drift   []labels.Drift // of what was rebuilt against what is missing; nil where there is nothing to compare

	Formats  []format
	Sides    [len(sideBounds) + 1]int // kept images by their longer side
	Tenths   [10]int                  // kept entries by mean OCR confidence: [0] is below 10, [9] is 90 to 100
	Textless int                      // kept entries in which no word was read
	// words of the texts of stored images that were put together from several readings
	Mended int
	Filled int // the same that were put where the best reading has none

	GroupSizes   map[int]int    // how many groups have so many entries, the kept one among them
	GroupClasses map[string]int // dropped entries by the class of their nearness
	Straddling   []group        // those whose entries stand in more than one split, in manifest order

	LastRun state.LastRun    // zero when no run has ended yet
	Reread  state.LastReread // zero when no image was ever read again

	// Thumbnails are shown blurred, Texts as they were read: nil in a report without.
	Thumbnails iter.Seq[page.Thumbnail]
	Texts      iter.Seq[readText]
}

// A split counts the entries of a split.
type split struct {
	Name     string
	Entries  int
	Outcomes map[manifest.Outcome]int
}

// A format counts the kept images of one format.
type format struct {
	Name   string
	Images int
	Bytes  int64
}

// sideBounds are the upper bounds of data.Sides but the last, in pixels.
var sideBounds = [...]int{256, 512, 1024, 2048, 4096}

// A group is one kept entry and those dropped or marked because they are near it.
type group struct {
	Kept   string
	Others []string
	Splits []string // of all its entries, each once
}

// A readText is what OCR read of an entry.
type readText struct {
	ID, Text   string
	Confidence float64
}

// Count is how many entries have one of the outcomes.
func (d data) Count(outcomes ...manifest.Outcome) int {
	n := 0
	for _, o := range outcomes {
		n += d.Outcomes[o]
	}
	return n
}

func (d data) countOf(fates ...manifest.Fate) int { return d.Count(manifest.OutcomesOf(fates...)...) }

// Strip is the report in six numbers, of which the first five add up to all entries.
func (d data) Strip() []page.Figure {
	kept := d.Count(manifest.Kept)
	retry := d.countOf(manifest.FateRetry)
	filtered := page.Figure{Value: strconv.Itoa(d.countOf(manifest.FateFiltered)), Label: "filtered", Section: "funnel"}
	if d.Flagged > 0 {
		filtered.Label += fmt.Sprintf(", %d kept and marked", d.Flagged)
	}
	figures := []page.Figure{
		{Value: fmt.Sprintf("%d of %d", kept, d.Entries), Label: "kept", Tone: page.Good, Section: "funnel"},
		{Value: fmt.Sprintf("%d + %d", d.countOf(manifest.FateDeleted), d.countOf(manifest.FateUnavailable)),
			Label: "deleted + unavailable", Section: "funnel"},
		{Value: strconv.Itoa(d.countOf(manifest.FateLost, manifest.FateNotAllowed)), Label: "image lost, or not allowed",
			Section: "funnel"},
		filtered,
		{Value: strconv.Itoa(retry), Label: "to retry", Tone: page.Open.If(retry), Section: "retry"},
	}
	if kept == 0 {
		figures[0].Tone = page.Bad
	}
	return append(figures, d.balance())
}

// balance is what the tests of the labels come to.
func (d data) balance() page.Figure {
	f := page.Figure{Value: "yes", Label: "balanced?", Tone: page.Good, Section: "drift"}
	switch {
	case d.Drift == nil:
		f.Value, f.Tone = "-", page.Plain
	case d.Changed() > 0:
		f.Value, f.Tone = "no", page.Bad
	case len(d.Unsure()) > 0:
		f.Value, f.Tone = "cannot tell", page.Open
	}
	return f
}

// AllOutcomes are the outcomes in the order of tables.
func (d data) AllOutcomes() []manifest.Outcome { return manifest.Outcomes() }

// Occurring are those that an entry has.
func (d data) Occurring() []manifest.Outcome {
	return slices.DeleteFunc(manifest.Outcomes(), func(o manifest.Outcome) bool { return d.Outcomes[o] == 0 })
}

// steps are the stages of the funnel: what each loses, from manifest to kept.
var steps = []struct {
	left string // what is left after it
	fate string // of what it loses
	lost []manifest.Outcome
}{
	{"the post is there", "post gone", manifest.OutcomesOf(manifest.FateDeleted, manifest.FateUnavailable)},
	{"the policy allows it", "refused", manifest.OutcomesOf(manifest.FateNotAllowed)},
	{"it has its image", "no image", manifest.OutcomesOf(manifest.FateLost)},
	{"nothing is left to retry", "to retry", manifest.OutcomesOf(manifest.FateRetry)},
	{"it is English or without text", "not English or unreadable",
		slices.DeleteFunc(manifest.OutcomesOf(manifest.FateFiltered), isDuplicate)},
	{"it is no near-duplicate", "near-duplicate", []manifest.Outcome{manifest.Duplicate}},
}

func isDuplicate(o manifest.Outcome) bool { return o == manifest.Duplicate }

// marked counts the kept entries that a filter marked with one of the outcomes (flag mode).
func (d data) marked(outcomes ...manifest.Outcome) (n int) {
	for _, c := range d.Reasons {
		if c.Outcome == manifest.Kept && slices.Contains(outcomes, manifest.Outcome(c.Reason)) {
			n += c.Entries
		}
	}
	return n
}

// Funnel is the chart of what is left after each step. An entry that a filter marked is lost at the filter's step, as
// it would be in a dataset without marks, and is in the dataset all the same.
func (d data) Funnel() page.Chart {
	left, all := d.Entries, []int{d.Entries}
	c := page.Counts{Caption: "Entries left after each stage", Of: "stage", Series: []string{"entries"},
		Groups: []page.Group{{Label: "in the manifest", Counts: all, All: all}}}
	for _, s := range steps {
		left -= d.Count(s.lost...) + d.marked(s.lost...) // every outcome but kept is lost at one step
		c.Groups = append(c.Groups, page.Group{Label: s.left, Counts: []int{left}, All: all})
	}
	if d.Flagged == 0 {
		c.Groups[len(c.Groups)-1].Label += ": kept"
		return c.Bars()
	}
	c.Groups = append(c.Groups, page.Group{Label: "kept, with those that the filters marked",
		Counts: []int{d.Count(manifest.Kept)}, All: all})
	return c.Bars()
}

// reasons are some outcomes with the reasons of each.
type reasons struct {
	Caption string
	Of      []manifest.Outcome
	Entries int
	Counts  []state.Count
	Advice  func(state.Count) string
}

// Reached lists the reasons of the kept entries, and of those that each step of the funnel lost.
func (d data) Reached() []reasons {
	all := d.reasons("By reason", manifest.Kept)
	for _, s := range steps {
		all = append(all, d.reasons("By reason", s.lost...)...)
	}
	return all
}

// Retryable lists the reasons that another run can still change.
func (d data) Retryable() []reasons {
	// The page leads with what can be done.
	left := slices.DeleteFunc(manifest.Outcomes(), func(o manifest.Outcome) bool { return !o.Retryable() })
	return d.reasons("Entries that another run can still change", left...)
}

// reasons returns none where no entry has one of the outcomes.
func (d data) reasons(caption string, of ...manifest.Outcome) []reasons {
	entries := d.Count(of...)
	if entries == 0 {
		return nil
	}
	counts := slices.DeleteFunc(slices.Clone(d.Reasons),
		func(c state.Count) bool { return !slices.Contains(of, c.Outcome) })
	return []reasons{{caption, of, entries, counts, d.Advice}}
}

// Splits is the chart of what became of each split, with the table of its outcomes, which has a column for each split.
func (d data) Splits() page.Chart {
	c := page.Counts{Caption: "What became of the entries of each split", Of: "split", Series: fateNames()}
	table := page.Table{Head: []string{"outcome"}, Rows: [][]string{{"entries"}}}
	for _, o := range d.Occurring() {
		table.Rows = append(table.Rows, []string{string(o)})
	}
	for _, split := range d.BySplit {
		c.Groups = append(c.Groups, page.Group{Label: split.Name, Counts: fates(split.Outcomes)})
		table.Head = append(table.Head, split.Name)
		table.Rows[0] = append(table.Rows[0], strconv.Itoa(split.Entries))
		for i, o := range d.Occurring() {
			table.Rows[i+1] = append(table.Rows[i+1], strconv.Itoa(split.Outcomes[o]))
		}
	}
	chart := c.Stacked()
	chart.Table = table
	for i, split := range d.BySplit {
		kept := split.Outcomes[manifest.Kept]
		share := page.Share(kept, split.Entries)
		chart.Rows[i].Value = fmt.Sprintf("%d of %d kept (%.1f\u00a0%%)", kept, split.Entries, share)
	}
	return chart
}

func fateNames() []string {
	names := []string{"kept"}
	for _, s := range steps {
		names = append(names, s.fate)
	}
	return names
}

// mostMonths is the time in months after which dates are shown by year, for columns become too narrow to be seen.
const mostMonths = 240

func month(year int, m time.Month) time.Time { return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC) }

// Months is the chart of what became of the entries by month, of which none is left out between the first and the last.
func (d data) Months() page.Chart {
	c := page.Counts{Of: "month", Series: fateNames()}
	c.Caption = "What became of the entries, by the month of " + d.DateColumn
	form, months := "2006-01", 1
	known := slices.SortedFunc(maps.Keys(d.ByMonth), time.Time.Compare)
	first, last := known[0], known[len(known)-1]
	if last.After(first.AddDate(0, mostMonths, 0)) {
		form, months = "2006", 12
		c.Caption, c.Of = "What became of the entries, by the year of "+d.DateColumn, "year"
		first = month(first.Year(), 1)
	}
	for at := first; !at.After(last); at = at.AddDate(0, months, 0) {
		outcomes := map[manifest.Outcome]int{}
		for m := range months {
			for o, n := range d.ByMonth[at.AddDate(0, m, 0)] {
				outcomes[o] += n
			}
		}
		c.Groups = append(c.Groups, page.Group{Label: at.Format(form), Counts: fates(outcomes)})
	}
	return c.Columns()
}

// fates counts the kept entries, and those that each step of the funnel loses.
func fates(outcomes map[manifest.Outcome]int) []int {
	counts := []int{outcomes[manifest.Kept]}
	for _, s := range steps {
		n := 0
		for _, o := range s.lost {
			n += outcomes[o]
		}
		counts = append(counts, n)
	}
	return counts
}

// LabelShares is the chart of a category's labels in the release and among the entries that were rebuilt.
func (d data) LabelShares(category int) page.Chart {
	release, rebuilt := d.Labels.Categories[category], d.Rebuilt.Categories[category]
	c := page.Counts{Of: "label", Series: []string{"release", "rebuilt"}}
	c.Caption = fmt.Sprintf("Entries with each label. "+
		"Labels an entry on average, without None: %.2f in the release, %.2f rebuilt", release.Cardinality,
		rebuilt.Cardinality)
	if release.NoAnswer > 0 {
		c.Caption += fmt.Sprintf(". Without an answer: %d in the release, %d rebuilt", release.NoAnswer, rebuilt.NoAnswer)
	}
	for i, label := range release.Labels {
		c.Groups = append(c.Groups, page.Group{Label: label.Code + " " + label.Name,
			Counts: []int{label.Count, rebuilt.Labels[i].Count}, All: []int{d.Labels.Entries, d.Rebuilt.Entries}})
	}
	return c.Bars()
}

// driftLevel is the chance of calling any label changed when none is.
const driftLevel = 0.05

// Differing says which tests of d.Drift reject.
func (d data) Differing() []bool { return holm(d.Drift, driftLevel) }

// done are the tests of d.Drift that were done.
func (d data) done() []labels.Drift {
	return slices.DeleteFunc(slices.Clone(d.Drift), func(t labels.Drift) bool { return t.Untested != "" })
}

// Tests counts the tests of d.Drift that were done.
func (d data) Tests() int { return len(d.done()) }

// Changed counts the tests that reject.
func (d data) Changed() int {
	return len(slices.DeleteFunc(d.Differing(), func(differs bool) bool { return !differs }))
}

// Others counts the tests that do not reject.
func (d data) Others() int { return d.Tests() - d.Changed() }

// mostBlind is how many percentage points the shares of a label may differ by without a fair chance that a test sees
// it, where the report still says that a set is balanced.
const mostBlind = 20

// Seen is the difference, in percentage points, that a test sees in four of five sets as large as the ones that it
// compares: between the shares of a label that half of the entries have, where it is hardest to see (normal
// approximation).
func (d data) Seen(test labels.Drift) float64 {
	chance := driftLevel / 2 / float64(max(d.Tests(), 1)) // as hard as the first of Holm's tests
	z := distuv.UnitNormal.Quantile(1-chance) + distuv.UnitNormal.Quantile(0.8)
	return min(100, 100*z*0.5*math.Sqrt(1/float64(test.A)+1/float64(test.B)))
}

// Blind says that a test would probably not see a difference that matters.
func (d data) Blind(test labels.Drift) bool { return d.Seen(test) > mostBlind }

// Unsure are the tests that find no difference and would probably not see one that matters: all where none was done.
func (d data) Unsure() []labels.Drift {
	if d.Tests() == 0 {
		return d.Drift
	}
	differing := d.Differing()
	var unsure []labels.Drift
	for i, test := range d.Drift {
		if test.Untested == "" && !differing[i] && d.Blind(test) {
			unsure = append(unsure, test)
		}
	}
	return unsure
}

// Weakest is the test that sees the least: of those that are unsure, or else of those that were done.
func (d data) Weakest() labels.Drift {
	tests := d.Unsure()
	if len(tests) == 0 {
		tests = d.done()
	}
	return slices.MaxFunc(tests, func(a, b labels.Drift) int { return cmp.Compare(d.Seen(a), d.Seen(b)) })
}

// Partly says that a test leaves entries out: they have no answer, or their rows differ.
func (d data) Partly(test labels.Drift) bool { return test.A+test.B < d.Labels.Entries }

// holm tells which tests reject at a level, all of them taken together (Holm 1979).
func holm(drift []labels.Drift, level float64) []bool {
	var order []int // a test that was not done does not make the others harder
	for i, d := range drift {
		if d.Untested == "" {
			order = append(order, i)
		}
	}
	// Stable, so that equal p-values keep the order of the labels.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(drift[a].P, drift[b].P) })
	out := make([]bool, len(drift))
	for rank, i := range order {
		// In order of p, the i-th of m may be at most level/(m-i), up to the first that is not.
		if drift[i].P > level/float64(len(order)-rank) {
			break
		}
		out[i] = true
	}
	return out
}

// Heatmap shows how often the labels of two categories stand together, in the release or in the rebuilt set.
func (d data) Heatmap(set string, pair labels.Pair) page.Heatmap {
	return page.Heatmap{Caption: set + ": " + d.Category(pair.Rows) + " by " + d.Category(pair.Columns),
		Rows: d.codes(pair.Rows), Columns: d.codes(pair.Columns), Counts: pair.Counts, Shares: pair.Shares()}
}

func (d data) codes(category string) (codes []string) {
	for _, label := range d.category(category).Labels {
		codes = append(codes, label.Code)
	}
	return codes
}

// Category is a category's name for people.
func (d data) Category(name string) string {
	c := d.category(name)
	// Not every schema has titles.
	return cmp.Or(c.Title, c.Name)
}

func (d data) category(name string) labels.CategoryStats {
	i := slices.IndexFunc(d.Labels.Categories, func(c labels.CategoryStats) bool { return c.Name == name })
	return d.Labels.Categories[i]
}

// ImageSides is the histogram of the kept images by size.
func (d data) ImageSides() page.Chart {
	c := page.Counts{Caption: "Kept images by their longer side, in pixels", Of: "longer side",
		Series: []string{"images"}, Edges: []string{"1"}}
	for i, n := range d.Sides {
		edge, label := "more", "more"
		if i < len(sideBounds) {
			edge = strconv.Itoa(sideBounds[i])
			label = "up to " + edge
		}
		c.Edges = append(c.Edges, edge)
		c.Groups = append(c.Groups, page.Group{Label: label, Counts: []int{n}})
	}
	return c.Columns()
}

// TextConfidence is the histogram of the kept entries by confidence.
func (d data) TextConfidence() page.Chart {
	c := page.Counts{Caption: "Kept entries by mean confidence of the words that OCR read", Of: "confidence",
		Series: []string{"entries"}, Edges: []string{"0"}}
	for i, n := range d.Tenths {
		c.Edges = append(c.Edges, strconv.Itoa(10*i+10))
		c.Groups = append(c.Groups, page.Group{Label: fmt.Sprintf("%d to %d", 10*i, 10*i+10), Counts: []int{n}})
	}
	return c.Columns()
}

// Sizes is the chart of the groups of near-duplicates by size.
func (d data) Sizes() page.Chart {
	return bars("Groups by the number of their entries, the kept one among them",
		"group", "groups", "%v entries", d.GroupSizes)
}

// Classes is the chart of near-duplicates by what is near.
func (d data) Classes() page.Chart {
	return bars("Near-duplicates by what is near", "class", "entries", "%v", d.GroupClasses)
}

// bars is the chart of the share of each count in all of them.
func bars[K cmp.Ordered](caption, of, series, label string, counts map[K]int) page.Chart {
	c, all := page.Counts{Caption: caption, Of: of, Series: []string{series}}, 0
	for _, n := range counts {
		all += n
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		c.Groups = append(c.Groups, page.Group{Label: fmt.Sprintf(label, key), Counts: []int{counts[key]}, All: []int{all}})
	}
	return c.Bars()
}

// foldSize is how many images or texts open at once.
const foldSize = 50

// A fold is a part of a long list, which a page shows when it is opened.
type fold[T any] struct {
	From, To int // the places in the list of the first and the last item, from 1
	Items    []T
}

// folds cuts a list into parts of foldSize.
func folds[T any](list iter.Seq[T]) iter.Seq[fold[T]] {
	return func(yield func(fold[T]) bool) {
		var f fold[T]
		for item := range list {
			if len(f.Items) == foldSize {
				if !yield(f) {
					return
				}
				f = fold[T]{To: f.To}
			}
			f.To++
			f.From = f.To - len(f.Items)
			f.Items = append(f.Items, item)
		}
		if len(f.Items) > 0 {
			yield(f)
		}
	}
}

// ThumbnailFolds are the thumbnails in parts.
func (d data) ThumbnailFolds() iter.Seq[fold[page.Thumbnail]] { return folds(d.Thumbnails) }

// TextFolds are the texts in parts.
func (d data) TextFolds() iter.Seq[fold[readText]] { return folds(d.Texts) }

// PostsARequest is how many posts one request to Reddit asks about.
func (d data) PostsARequest() int { return policy.MaxAsk }

var reportPage = page.Parse(files, "report.html")

// write writes one HTML file that opens from disk, without scripts, without requests.
func (d data) write(w io.Writer) error {
	if err := page.Write(w, reportPage, d); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// A RereadPage is what a re-reading changed.
type RereadPage struct {
	state.Reread
	Tool string    // version of the program
	Made time.Time // when the page was
}

// A way counts the entries that changed from one outcome to another.
type way struct {
	Before, After string
	Entries       int
}

// Ways counts the changed outcomes, in the order of their first entry.
func (p RereadPage) Ways() []way {
	var ways []way // few, so that a search costs nothing
	for _, c := range p.Outcomes {
		before, after := c.Old.Short(), c.New.Short()
		i := slices.IndexFunc(ways, func(w way) bool { return w.Before == before && w.After == after })
		if i < 0 {
			i, ways = len(ways), append(ways, way{before, after, 0})
		}
		ways[i].Entries++
	}
	return ways
}

var rereadPage = page.Parse(files, "reread.html")

// WriteReread writes what a re-reading changed as one HTML page. It holds words of posts, which no purge finds there.
func WriteReread(w io.Writer, p RereadPage) error {
	if err := page.Write(w, rereadPage, p); err != nil {
		return fmt.Errorf("write what reading again changed: %w", err)
	}
	return nil
}
