package dataset

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
)

// ReportData is what a report tells of a workspace. Counts may be 0 and lists empty; Drift, Last,
// Reread, Thumbnails and Texts may be left out.
type ReportData struct {
	Release string
	Schema  manifest.Schema
	Tool    string    // version of the program
	Made    time.Time // when the report was
	Entries int
	Posts   int
	// Reasons counts the entries by outcome and reason, in the order of a table of outcomes.
	Reasons []ReportReason
	// BySplit counts the entries of each split by outcome, splits in the order of the release.
	BySplit []ReportSplit
	Flagged int // kept rows that a filter marked
	// Withheld posts are gone and not erased yet; Unverified ones got no verdict in the last run.
	Withheld, Unverified int
	OldestLook           *time.Time // when the kept post asked about longest ago was last seen live
	Stale                bool
	Masked               int // names masked in texts
	MaskedImages         int

	Labels  labels.Stats   // of the release
	Rebuilt labels.Stats   // of the kept entries
	Drift   []labels.Drift // of what was rebuilt against what is missing

	Images     ReportImages
	Confidence ReportConfidence
	Groups     ReportGroups
	Last       *ReportRun    // nil when no run has ended yet
	Reread     *ReportReread // nil when no image was ever read again

	// Thumbnails are shown blurred, Texts as they were read: nil in a report without.
	Thumbnails iter.Seq2[Thumbnail, error]
	Texts      iter.Seq2[ReportText, error]
}

// A ReportReason counts the entries of an outcome and reason, and says what to do about them.
type ReportReason struct {
	Outcome manifest.Outcome
	Reason  manifest.Reason
	Entries int
	What    string
}

// A ReportSplit counts the entries of a split.
type ReportSplit struct {
	Name     string
	Entries  int
	Outcomes map[manifest.Outcome]int
}

// ReportImages describes the images of the kept entries.
type ReportImages struct {
	Formats []ReportFormat
	// Sides counts images by their longer side: those of at most SideBounds[i] pixels and more
	// than the bound before, and last those above all bounds.
	Sides []int
}

// A ReportFormat counts the images of one format.
type ReportFormat struct {
	Name   string
	Images int
	Bytes  int64
}

// SideBounds are the bounds of ReportImages.Sides, in pixels.
var SideBounds = [...]int{256, 512, 1024, 2048, 4096}

// ReportConfidence counts the kept entries by their mean OCR confidence.
type ReportConfidence struct {
	Tenths   [10]int // [0] is below 10, [9] is 90 to 100
	Textless int     // no word was read
}

// ReportGroups describes the groups of near-duplicates: one kept entry and those dropped or
// marked because they are near it.
type ReportGroups struct {
	Sizes   map[int]int    // how many groups have so many entries, the kept one among them
	Classes map[string]int // dropped entries by the class of their nearness
	// Straddling are the groups whose entries stand in more than one split, in manifest order.
	Straddling []ReportGroup
}

// A ReportGroup is a group of near-duplicates.
type ReportGroup struct {
	Kept   string // entry
	Others []string
	Splits []string // of all its entries, each once
}

// A ReportRun tells of the last run that ended.
type ReportRun struct {
	At       time.Time
	Elapsed  time.Duration
	Waited   time.Duration
	Requests []ReportRequests
	Retries  int
}

// ReportRequests counts the requests of one kind.
type ReportRequests struct {
	What string
	N    int
}

// A ReportReread counts what the last re-reading changed.
type ReportReread struct {
	At           time.Time // when it ended
	Read         int       // images
	Changed      int       // texts
	Gained, Lost int       // words
	Outcomes     int       // entries with another outcome
}

// A ReportText is what OCR read of an entry.
type ReportText struct {
	ID, Text   string
	Confidence float64
}

// WriteReport writes the report: one HTML file that opens from disk, without scripts, without
// requests. Everything in it that came from outside is escaped. Images and texts are in it only
// where d has them.
func WriteReport(w io.Writer, d ReportData) error {
	r := report{page: newPage(w, "Rehydration report: "+d.Release), d: d}
	r.intro()
	for _, s := range r.sections() {
		r.begin("section", at("id", string(s.id)), at("aria-labelledby", string(s.id)+"-title"))
		r.el("h2", s.title, at("id", string(s.id)+"-title"))
		s.write()
		r.end()
	}
	return r.close()
}

// A report is a page with what it is about.
type report struct {
	*page
	d ReportData
}

// A section is a part of the report with a heading.
type section struct {
	id    markup
	title string
	write func()
}

// sections are the parts of the report that have something to say.
func (r report) sections() []section {
	all := []section{
		{"funnel", "From manifest to kept", r.funnel},
		{"retry", "What to retry", r.retry},
		{"splits", "Outcomes by split", r.splits},
		{"labels", "Labels: the release and what was rebuilt", r.labels},
		{"drift", "Is the rebuilt set still balanced?", r.drift},
		{"together", "Labels that stand together", r.together},
		{"images", "Images", r.images},
		{"text", "Text", r.confidence},
		{"duplicates", "Near-duplicates", r.groups},
		{"run", "Waits and retries of the last run", r.lastRun},
	}
	if r.d.Thumbnails != nil {
		all = append(all, section{"thumbnails", "Images of kept entries", r.thumbnails})
	}
	if r.d.Texts != nil {
		all = append(all, section{"texts", "Texts of kept entries", r.texts})
	}
	return all
}

func (r report) intro() {
	d := r.d
	kept := r.count(manifest.Kept)
	r.begin("p")
	r.textf("%d of %d entries are in the dataset (%s).", kept, d.Entries, percent(kept, d.Entries))
	r.end()
	r.begin("p", at("class", "quiet"))
	r.textf("Made %s by rehydrate %s from %d posts. Schema: %s.", d.Made.UTC().Format("2006-01-02 15:04 MST"), d.Tool, d.Posts, d.Schema.Name)
	if d.OldestLook != nil {
		r.textf(" Every kept post was seen live on %s or later.", d.OldestLook.UTC().Format("2006-01-02 15:04 MST"))
	}
	r.end()
	if d.Stale {
		r.notice("Some posts were last seen live longer ago than the policy allows: run again before the dataset is used.")
	}
	if d.Withheld > 0 {
		r.notice(fmt.Sprintf("Posts that are gone, withheld from the dataset and not erased yet: %d. rehydrate status says what to do.", d.Withheld))
	}
	if d.Thumbnails != nil || d.Texts != nil {
		r.notice("This file holds images or texts of posts as they were when it was made. A later purge does not reach it: delete it when it has been read.")
	}
	r.begin("nav", at("aria-label", "Parts of the report"))
	r.begin("ul")
	for _, s := range r.sections() {
		r.begin("li")
		r.el("a", s.title, at("href", "#"+string(s.id)))
		r.end()
	}
	r.end()
	r.end()
}

func (r report) notice(text string) { r.el("p", text, at("class", "notice")) }

// count is how many entries have an outcome.
func (r report) count(o manifest.Outcome) int {
	n := 0
	for _, reason := range r.d.Reasons {
		if reason.Outcome == o {
			n += reason.Entries
		}
	}
	return n
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

func (r report) funnel() {
	left := r.d.Entries
	chart := barChart{title: "Entries left after each stage", of: r.d.Entries, bars: []bar{{label: "in the manifest", n: left}}}
	for _, s := range steps {
		for _, o := range s.lost {
			left -= r.count(o)
		}
		chart.bars = append(chart.bars, bar{label: s.left, n: left})
	}
	r.barChart(chart)
	r.table("Every entry of the manifest has one outcome", []column{{head: "outcome"}, {"entries", true}, {"share", true}}, func(yield func([]string) bool) {
		for _, o := range manifest.Outcomes() {
			if n := r.count(o); !yield([]string{string(o), strconv.Itoa(n), percent(n, r.d.Entries)}) {
				return
			}
		}
	})
	for _, s := range append([]struct {
		left string
		lost []manifest.Outcome
	}{{"kept", []manifest.Outcome{manifest.Kept}}}, steps...) {
		r.drillDown(s.lost)
	}
	if r.d.Flagged > 0 {
		r.begin("p")
		r.textf("Kept rows that are marked in the filter column: %d. Without flag mode a filter would have dropped them.", r.d.Flagged)
		r.end()
	}
}

// drillDown lists the reasons of some outcomes, closed until it is asked for.
func (r report) drillDown(outcomes []manifest.Outcome) {
	var rows [][]string
	total := 0
	for _, reason := range r.d.Reasons {
		if slices.Contains(outcomes, reason.Outcome) {
			rows = append(rows, []string{string(reason.Outcome), string(reason.Reason), strconv.Itoa(reason.Entries), reason.What})
			total += reason.Entries
		}
	}
	if total == 0 {
		return
	}
	names := ""
	for i, o := range outcomes {
		if i > 0 {
			names += ", "
		}
		names += string(o)
	}
	r.begin("details")
	r.el("summary", fmt.Sprintf("%s, %d in all: by reason", names, total))
	r.table("By reason", []column{{head: "outcome"}, {head: "reason"}, {"entries", true}, {head: "what to do"}}, slices.Values(rows))
	r.end()
}

func (r report) retry() {
	var rows [][]string
	for _, reason := range r.d.Reasons {
		if reason.Outcome.Retryable() {
			rows = append(rows, []string{string(reason.Outcome), string(reason.Reason), strconv.Itoa(reason.Entries), reason.What})
		}
	}
	if len(rows) == 0 {
		r.el("p", "Nothing: every entry has its answer.")
	} else {
		r.table("Entries that another run can still change", []column{{head: "outcome"}, {head: "reason"}, {"entries", true}, {head: "what to do"}}, slices.Values(rows))
	}
	if r.d.Unverified > 0 {
		r.begin("p")
		r.textf("Posts that Reddit gave no verdict on in the last run: %d. What is known of them is older.", r.d.Unverified)
		r.end()
	}
}

func (r report) splits() {
	var shown []manifest.Outcome
	columns := []column{{head: "split"}, {"entries", true}}
	for _, o := range manifest.Outcomes() {
		if r.count(o) > 0 {
			shown = append(shown, o)
			columns = append(columns, column{string(o), true})
		}
	}
	chart := barChart{title: "Share of each split that was kept", unit: "%", of: 100}
	var rows [][]string
	for _, s := range r.d.BySplit {
		row := []string{s.Name, strconv.Itoa(s.Entries)}
		for _, o := range shown {
			row = append(row, strconv.Itoa(s.Outcomes[o]))
		}
		rows = append(rows, row)
		chart.bars = append(chart.bars, bar{label: s.Name, share: share(s.Outcomes[manifest.Kept], s.Entries), note: percent(s.Outcomes[manifest.Kept], s.Entries)})
	}
	r.barChart(chart)
	r.table("Entries by split and outcome", columns, slices.Values(rows))
}

func (r report) images() {
	var total ReportFormat
	var rows [][]string
	for _, f := range r.d.Images.Formats {
		total.Images += f.Images
		total.Bytes += f.Bytes
		rows = append(rows, []string{f.Name, strconv.Itoa(f.Images), megabytes(f.Bytes)})
	}
	rows = append(rows, []string{"all", strconv.Itoa(total.Images), megabytes(total.Bytes)})
	chart := barChart{title: "Kept images by their longer side, in pixels", of: total.Images}
	low := 1
	for i, n := range r.d.Images.Sides {
		label := fmt.Sprintf("%d and more", low)
		if i < len(SideBounds) {
			label = fmt.Sprintf("%d to %d", low, SideBounds[i])
			low = SideBounds[i] + 1
		}
		chart.bars = append(chart.bars, bar{label: label, n: n})
	}
	r.table("Kept images by format", []column{{head: "format"}, {"images", true}, {"size", true}}, slices.Values(rows))
	r.barChart(chart)
}

func (r report) confidence() {
	c := r.d.Confidence
	chart := barChart{title: "Kept entries by mean confidence of the words that OCR read"}
	for i, n := range c.Tenths {
		chart.of += n
		chart.bars = append(chart.bars, bar{label: fmt.Sprintf("%d to %d", 10*i, 10*i+10), n: n})
	}
	r.barChart(chart)
	r.begin("p")
	r.textf("In %d kept images no word was read. %d names, addresses or numbers are masked in the texts of %d images.",
		c.Textless, r.d.Masked, r.d.MaskedImages)
	r.end()
	if again := r.d.Reread; again != nil {
		r.begin("p")
		r.textf("Stored images were last read again on %s: %s. Changed texts: %d; words gained %d, lost %d. Entries with another outcome: %d.",
			again.At.UTC().Format("2006-01-02 15:04 MST"), counted(again.Read, "image"), again.Changed, again.Gained, again.Lost, again.Outcomes)
		r.end()
	}
}

// mostGroups bounds the list of straddling groups.
const mostGroups = 200

func (r report) groups() {
	g := r.d.Groups
	if len(g.Sizes) == 0 {
		r.el("p", "No entry is a near-duplicate of another.")
		return
	}
	var sizes, classes [][]string
	for _, n := range sortedKeys(g.Sizes) {
		sizes = append(sizes, []string{strconv.Itoa(n), strconv.Itoa(g.Sizes[n])})
	}
	for _, class := range sortedKeys(g.Classes) {
		classes = append(classes, []string{class, strconv.Itoa(g.Classes[class])})
	}
	r.table("Groups by size", []column{{"entries of the group", true}, {"groups", true}}, slices.Values(sizes))
	r.table("Near-duplicates by what is near", []column{{head: "class"}, {"entries", true}}, slices.Values(classes))
	if len(g.Straddling) == 0 {
		r.el("p", "No group stands in more than one split.")
		return
	}
	r.begin("p")
	r.textf("Groups that stand in more than one split: %d. Where near-duplicates are dropped, only the first entry of a group is in the dataset, "+
		"and nothing leaks from training into testing.", len(g.Straddling))
	r.end()
	r.begin("details")
	r.el("summary", "The groups that stand in more than one split")
	r.table(fmt.Sprintf("At most %d of them", mostGroups), []column{{head: "kept"}, {head: "near it"}, {head: "splits"}}, func(yield func([]string) bool) {
		for _, s := range g.Straddling[:min(mostGroups, len(g.Straddling))] {
			if !yield([]string{s.Kept, listOf(s.Others), listOf(s.Splits)}) {
				return
			}
		}
	})
	r.end()
}

func (r report) lastRun() {
	last := r.d.Last
	if last == nil {
		r.el("p", "Not known: no run of this version has ended in this workspace.")
		return
	}
	r.begin("p")
	r.textf("It ended on %s after %s. Requests that it had to repeat: %d. It waited %s in all for limits and retries; waits for several hosts go side by side, and each counts.",
		last.At.UTC().Format("2006-01-02 15:04 MST"), rounded(last.Elapsed), last.Retries, rounded(last.Waited))
	r.end()
	r.table("Requests that it sent", []column{{head: "to"}, {"requests", true}}, func(yield func([]string) bool) {
		for _, q := range last.Requests {
			if !yield([]string{q.What, strconv.Itoa(q.N)}) {
				return
			}
		}
	})
}

func (r report) thumbnails() {
	r.el("p", "They can hurt. Each is blurred until it is clicked, or opened with Enter.")
	r.begin("ul", at("class", "sheet"))
	for t, err := range r.d.Thumbnails {
		if err != nil {
			r.fail(err)
			break
		}
		r.begin("li")
		r.begin("figure")
		r.thumbnail(t)
		r.el("figcaption", t.Name)
		r.end()
		r.end()
	}
	r.end()
}

func (r report) texts() {
	r.table("What OCR read", []column{{head: "entry"}, {"confidence", true}, {head: "text"}}, func(yield func([]string) bool) {
		for t, err := range r.d.Texts {
			if err != nil {
				r.fail(err)
				return
			}
			if !yield([]string{t.ID, strconv.FormatFloat(t.Confidence, 'f', 1, 64), t.Text}) {
				return
			}
		}
	})
}

// fail ends the page with an error.
func (p *page) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}
