// Package report shows people what a workspace holds: the report of all of it, and everything known of
// one entry. It only reads.
package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Options say what a report shows, and of which time it speaks.
type Options struct {
	Now     time.Time
	Version string // of the tool
	// Thumbnails and Texts put content of posts into the report, which no purge reaches there.
	Thumbnails, Texts bool
	// Advice says what to do about entries of an outcome and reason.
	Advice func(state.Count) string
}

// Gather gathers what a report tells of a workspace. It reads only: the workspace need not be
// locked. Thumbnails and texts are read while they are ranged over.
func Gather(ctx context.Context, ws *workspace.Workspace, o Options) (dataset.ReportData, error) {
	s, err := state.Status(ctx, ws, o.Now)
	if err != nil {
		return dataset.ReportData{}, err
	}
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return dataset.ReportData{}, err
	}
	d := dataset.ReportData{Release: s.Release, Schema: b.Schema, Tool: o.Version, Made: o.Now, Entries: s.Entries, Posts: s.Posts,
		Flagged: s.Flagged, Withheld: s.Withheld, OldestLook: s.OldestAsk, Stale: s.Stale, Masked: s.Masked.Names, MaskedImages: s.Masked.Images}
	for _, r := range s.Reasons {
		d.Reasons = append(d.Reasons, dataset.ReportReason{Outcome: r.Outcome, Reason: r.Reason, Entries: r.Entries, What: o.Advice(r)})
	}
	j, err := state.StoredJudge(ctx, ws, o.Now)
	if err != nil {
		return d, err
	}
	if err := reportEntries(ctx, ws, j, b, &d); err != nil {
		return d, err
	}
	if err := reportLabels(ctx, ws, j, &d); err != nil {
		return d, err
	}
	if err := reportLastRun(ctx, ws, &d); err != nil {
		return d, err
	}
	if err := reportReread(ctx, ws, &d); err != nil {
		return d, err
	}
	if o.Thumbnails {
		d.Thumbnails = thumbnails(ctx, ws, j, d)
	}
	if o.Texts {
		d.Texts = keptTexts(ctx, ws, j)
	}
	return d, nil
}

// reportEntries counts splits, images, confidences and groups in one pass.
func reportEntries(ctx context.Context, ws *workspace.Workspace, j state.Judge, b workspace.Binding, d *dataset.ReportData) error {
	splits := map[string]*dataset.ReportSplit{}
	for _, name := range b.Splits {
		splits[name] = &dataset.ReportSplit{Name: name, Outcomes: map[manifest.Outcome]int{}}
	}
	formats := map[string]*dataset.ReportFormat{}
	groups := newGrouping()
	d.Images.Sides = make([]int, len(dataset.SideBounds)+1)
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		res := j.Known(rec)
		split := splits[rec.Split]
		if split == nil {
			return fmt.Errorf("entry %s is of the split %q, which the release does not have: verify the workspace", rec.Key.String(), rec.Split)
		}
		split.Entries++
		split.Outcomes[res.Outcome]++
		groups.add(rec, res)
		if res.Outcome == manifest.Kept && rec.Image != nil && rec.Reading != nil {
			countKept(rec, formats, d)
		}
	}
	for _, name := range b.Splits {
		d.BySplit = append(d.BySplit, *splits[name])
	}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		d.Images.Formats = append(d.Images.Formats, *formats[name])
	}
	d.Groups = groups.report()
	return nil
}

// countKept counts the image and the confidence of a kept entry.
func countKept(rec workspace.Record, formats map[string]*dataset.ReportFormat, d *dataset.ReportData) {
	i := rec.Image
	f := formats[i.Format]
	if f == nil {
		f = &dataset.ReportFormat{Name: i.Format}
		formats[i.Format] = f
	}
	f.Images++
	f.Bytes += i.Bytes
	side, _ := slices.BinarySearch(dataset.SideBounds[:], max(i.Width, i.Height))
	d.Images.Sides[side]++
	if rec.Reading.Text == "" {
		d.Confidence.Textless++
		return
	}
	d.Confidence.Tenths[min(9, max(0, int(rec.Reading.Confidence/10)))]++
}

// A grouping collects which entries are near which.
type grouping struct {
	of    map[manifest.Key][]manifest.Key // kept entry -> those near it
	split map[manifest.Key]string         // of all that are in of
	order []manifest.Key                  // kept entries, as the manifest has them
	class map[string]int
}

func newGrouping() *grouping {
	return &grouping{of: map[manifest.Key][]manifest.Key{}, split: map[manifest.Key]string{}, class: map[string]int{}}
}

// add takes in an entry. The kept entry of a group comes before the others of it.
func (g *grouping) add(rec workspace.Record, res manifest.Result) {
	g.split[rec.Key] = rec.Split
	if res.DuplicateOf == (manifest.Key{}) {
		return
	}
	kept := res.DuplicateOf
	if g.of[kept] == nil {
		g.order = append(g.order, kept)
	}
	g.of[kept] = append(g.of[kept], rec.Key)
	if res.Outcome == manifest.Duplicate {
		g.class[string(res.Reason)]++
	} else {
		g.class["marked, not dropped"]++
	}
}

func (g *grouping) report() dataset.ReportGroups {
	out := dataset.ReportGroups{Sizes: map[int]int{}, Classes: g.class}
	for _, kept := range g.order {
		others := g.of[kept]
		out.Sizes[1+len(others)]++
		group := dataset.ReportGroup{Kept: kept.String(), Splits: []string{g.split[kept]}}
		for _, k := range others {
			group.Others = append(group.Others, k.String())
			if !slices.Contains(group.Splits, g.split[k]) {
				group.Splits = append(group.Splits, g.split[k])
			}
		}
		if len(group.Splits) > 1 {
			out.Straddling = append(out.Straddling, group)
		}
	}
	return out
}

// reportLabels counts the labels of the release and of what was rebuilt, and compares them.
func reportLabels(ctx context.Context, ws *workspace.Workspace, j state.Judge, d *dataset.ReportData) error {
	entries := func(keptOnly bool) iter.Seq2[manifest.Entry, error] {
		return func(yield func(manifest.Entry, error) bool) {
			for rec, err := range ws.Records(ctx, workspace.Select{}) {
				if err == nil && keptOnly && j.Known(rec).Outcome != manifest.Kept {
					continue
				}
				if !yield(rec.Entry, err) {
					return
				}
			}
		}
	}
	var err error
	if d.Labels, err = labels.Count(d.Schema, entries(false)); err != nil {
		return fmt.Errorf("count the labels of the release: %w", err)
	}
	if d.Rebuilt, err = labels.Count(d.Schema, entries(true)); err != nil {
		return fmt.Errorf("count the labels of the kept entries: %w", err)
	}
	if d.Rebuilt.Entries == 0 || d.Rebuilt.Entries == d.Labels.Entries {
		return nil
	}
	missing, err := d.Labels.Minus(d.Rebuilt)
	if err != nil {
		return err
	}
	d.Drift, err = labels.Compare(missing, d.Rebuilt)
	return err
}

func reportLastRun(ctx context.Context, ws *workspace.Workspace, d *dataset.ReportData) error {
	last, err := state.ReadNote[state.LastRun](ctx, ws)
	if err != nil || last.At.IsZero() {
		return err
	}
	d.Unverified = last.Unverified
	d.Last = &dataset.ReportRun{At: last.At, Elapsed: last.Elapsed, Waited: last.Calls.Waited, Retries: last.Calls.Retries,
		Requests: []dataset.ReportRequests{{What: "Reddit, about posts (up to " + strconv.Itoa(reddit.MaxAsk) + " a request)", N: last.Calls.Info},
			{What: "Reddit, about subreddits", N: last.Calls.About}, {What: "Reddit, for a token", N: last.Calls.Token},
			{What: "image hosts", N: last.Calls.Images}, {What: "APIs of image hosts", N: last.Calls.ImageAPI}}}
	return nil
}

// reportReread tells a report of the last re-reading, if there was one.
func reportReread(ctx context.Context, ws *workspace.Workspace, d *dataset.ReportData) error {
	last, err := state.ReadNote[state.LastReread](ctx, ws)
	if err != nil || last.At.IsZero() {
		return err
	}
	d.Reread = (*dataset.ReportReread)(&last)
	return nil
}

// mostThumbnails bounds the images of a report: enough to see what kind they are.
const mostThumbnails = 60

// thumbnails yields some of the kept images, spread evenly over the manifest.
func thumbnails(ctx context.Context, ws *workspace.Workspace, j state.Judge, d dataset.ReportData) iter.Seq2[dataset.Thumbnail, error] {
	step := cmp.Or((d.Rebuilt.Entries+mostThumbnails-1)/mostThumbnails, 1)
	return func(yield func(dataset.Thumbnail, error) bool) {
		n := 0
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			if err == nil && j.Known(rec).Outcome != manifest.Kept {
				continue
			}
			if n++; err == nil && (n-1)%step != 0 {
				continue
			}
			var t dataset.Thumbnail
			if err == nil {
				t, err = thumbnailOf(ctx, ws, rec)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func thumbnailOf(ctx context.Context, ws *workspace.Workspace, rec workspace.Record) (dataset.Thumbnail, error) {
	body, err := ws.ReadImage(ctx, rec.Key, *rec.Image)
	if err != nil {
		return dataset.Thumbnail{}, err
	}
	img, err := policy.DecodeImage(body)
	if err != nil {
		return dataset.Thumbnail{}, fmt.Errorf("image of %s: %w", rec.Key.String(), err)
	}
	return dataset.NewThumbnail(img, "image "+rec.Key.String())
}

// keptTexts yields the texts of the kept entries in manifest order.
func keptTexts(ctx context.Context, ws *workspace.Workspace, j state.Judge) iter.Seq2[dataset.ReportText, error] {
	return func(yield func(dataset.ReportText, error) bool) {
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			if err != nil {
				yield(dataset.ReportText{}, err)
				return
			}
			if j.Known(rec).Outcome != manifest.Kept || rec.Reading == nil {
				continue
			}
			if !yield(dataset.ReportText{ID: rec.Key.String(), Text: state.ShownReading(*rec.Reading, j.Policy).Text, Confidence: rec.Reading.Confidence}, nil) {
				return
			}
		}
	}
}
