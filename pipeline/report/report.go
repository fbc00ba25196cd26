// Package report shows people what a workspace holds: the report of all of it, what reading again changed, and everything
// known of one entry. It only reads.
package report

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/page"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
)

//go:embed report.html reread.html
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

	Labels  labels.Stats   // of the release
	Rebuilt labels.Stats   // of the kept entries
	Drift   []labels.Drift // of what was rebuilt against what is missing; nil where there is nothing to compare

	Formats  []format
	Sides    [len(sideBounds) + 1]int // kept images by their longer side
	Tenths   [10]int                  // kept entries by mean OCR confidence: [0] is below 10, [9] is 90 to 100
	Textless int                      // kept entries in which no word was read

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

// A chart shows bars one below the other, with their values.
type chart struct {
	Caption string
	Bars    []bar
}

type bar struct {
	Label, Value string
	Share        float64 // of the full length, in percent
}

// add appends a bar for n of all.
func (c *chart) add(label string, n, of int) {
	c.Bars = append(c.Bars, bar{label, fmt.Sprint(n), page.Share(n, of)}) // 0 of 0 has no length
}

// Count is how many entries have one of the outcomes.
func (d data) Count(outcomes ...manifest.Outcome) int {
	n := 0
	for _, o := range outcomes {
		n += d.Outcomes[o]
	}
	return n
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
	lost []manifest.Outcome
}{
	{"the post is there", []manifest.Outcome{manifest.Removed, manifest.Deleted, manifest.Unavailable}},
	{"the policy allows it", []manifest.Outcome{manifest.Refused}},
	{"it has its image", []manifest.Outcome{manifest.NoMedia, manifest.Gone, manifest.Placeholder, manifest.Invalid, manifest.Changed}},
	{"it is settled", []manifest.Outcome{manifest.Failed, manifest.Pending}},
	{"it is English or without text", []manifest.Outcome{manifest.NotEnglish, manifest.Unreadable}},
	{"nothing earlier is near it: kept", []manifest.Outcome{manifest.Duplicate}},
}

// Funnel is the chart of what is left after each step.
func (d data) Funnel() chart {
	c := chart{Caption: "Entries left after each stage"}
	left := d.Entries
	c.add("in the manifest", left, d.Entries)
	for _, s := range steps {
		left -= d.Count(s.lost...) // every outcome but kept is lost at one step
		c.add(s.left, left, d.Entries)
	}
	return c
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
	counts := slices.DeleteFunc(slices.Clone(d.Reasons), func(c state.Count) bool { return !slices.Contains(of, c.Outcome) })
	return []reasons{{caption, of, entries, counts, d.Advice}}
}

// KeptBySplit is the chart of the share of each split that was kept.
func (d data) KeptBySplit() chart {
	c := chart{Caption: "Entries of each split that were kept"}
	for _, s := range d.BySplit {
		n := s.Outcomes[manifest.Kept]
		share := page.Share(n, s.Entries)
		c.Bars = append(c.Bars, bar{s.Name, fmt.Sprintf("%d of %d (%.1f %%)", n, s.Entries, share), share})
	}
	return c
}

// driftLevel is the chance of calling any label changed when none is.
const driftLevel = 0.05

// Differing says which tests of d.Drift reject.
func (d data) Differing() []bool { return holm(d.Drift, driftLevel) }

// Tests counts the tests of d.Drift that were done.
func (d data) Tests() int {
	return len(slices.DeleteFunc(slices.Clone(d.Drift), func(t labels.Drift) bool { return t.Untested != "" }))
}

// Changed counts the tests that reject.
func (d data) Changed() int {
	return len(slices.DeleteFunc(d.Differing(), func(differs bool) bool { return !differs }))
}

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

// A heatmap shows how often the labels of two categories stand together.
type heatmap struct {
	Caption       string
	Rows, Columns []labels.LabelStats
	Counts        [][]int     // entries, by row and column
	Shares        [][]float64 // of the row, 0 to 1
}

// Heatmap shows a pair of the release's labels or of the rebuilt set's.
func (d data) Heatmap(set string, pair labels.Pair) heatmap {
	return heatmap{set + ": " + d.Category(pair.Rows) + " by " + d.Category(pair.Columns),
		d.category(pair.Rows).Labels, d.category(pair.Columns).Labels, pair.Counts, pair.Shares()}
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

// ImageSides is the chart of the kept images by size.
func (d data) ImageSides() chart {
	return distribution("Kept images by their longer side, in pixels", d.Sides[:], func(i int) string {
		low := slices.Concat([]int{0}, sideBounds[:])[i] + 1
		if i == len(sideBounds) {
			return fmt.Sprintf("%d and more", low)
		}
		return fmt.Sprintf("%d to %d", low, sideBounds[i])
	})
}

// TextConfidence is the chart of the kept entries by confidence.
func (d data) TextConfidence() chart {
	return distribution("Kept entries by mean confidence of the words that OCR read", d.Tenths[:],
		func(i int) string { return fmt.Sprintf("%d to %d", 10*i, 10*i+10) })
}

// distribution is the chart of all counts, with the label of each.
func distribution(caption string, counts []int, label func(int) string) chart {
	c, all := chart{Caption: caption}, 0
	for _, n := range counts {
		all += n
	}
	for i, n := range counts {
		c.add(label(i), n, all)
	}
	return c
}

// PostsARequest is how many posts one request to Reddit asks about.
func (d data) PostsARequest() int { return reddit.MaxAsk }

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
