package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/page"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// Options say what a report shows, and as of when.
type Options struct {
	Now     time.Time
	Version string // of the tool
	// Thumbnails and Texts put content of posts into the report, which no purge reaches there.
	Thumbnails, Texts bool
	// Advice says what to do about entries of an outcome and reason.
	Advice func(state.Count) string
}

// Write writes the report of a workspace. It only reads: the workspace need not be locked.
func Write(ctx context.Context, w io.Writer, ws *workspace.Workspace, o Options) error {
	d, err := gather(ctx, ws, o)
	if err != nil {
		return err
	}
	j, err := state.StoredJudge(ctx, ws, o.Now)
	if err != nil {
		return err
	}
	var failed error // of what is read while the page is written
	if o.Thumbnails {
		d.Thumbnails = page.Each(thumbnails(ctx, ws, j, d.Rebuilt.Entries), &failed)
	}
	if o.Texts {
		d.Texts = page.Each(keptTexts(ctx, ws, j), &failed)
	}
	if err := d.write(w); err != nil {
		return err
	}
	return failed
}

func gather(ctx context.Context, ws *workspace.Workspace, o Options) (data, error) {
	s, err := state.Status(ctx, ws, o.Now)
	if err != nil {
		return data{}, err
	}
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return data{}, err
	}
	j, err := state.StoredJudge(ctx, ws, o.Now)
	if err != nil {
		return data{}, err
	}
	d := data{Summary: s, Schema: b.Schema, Tool: o.Version, Made: o.Now, Advice: o.Advice}
	if err := d.count(ctx, ws, j, b.Splits); err != nil {
		return d, err
	}
	d.LastRun, err = state.ReadNote[state.LastRun](ctx, ws)
	if err != nil {
		return d, err
	}
	d.Unverified = d.LastRun.Unverified
	d.Reread, err = state.ReadNote[state.LastReread](ctx, ws)
	return d, err
}

// count counts everything that stands in the records, in one pass.
func (d *data) count(ctx context.Context, ws *workspace.Workspace, j state.Judge, splits []string) error {
	bySplit, formats, groups := map[string]*split{}, map[string]*format{}, newGrouping()
	for _, name := range splits {
		bySplit[name] = &split{Name: name, Outcomes: map[manifest.Outcome]int{}}
	}
	all, kept, missing := labels.NewCounter(d.Schema), labels.NewCounter(d.Schema), labels.NewCounter(d.Schema)
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return fmt.Errorf("count what the workspace holds: %w", err)
		}
		res := j.Known(rec)
		s := bySplit[rec.Split]
		if s == nil {
			return fmt.Errorf("entry %s is of the split %q, which the release does not have: verify the workspace", rec.Key.String(), rec.Split)
		}
		s.Entries++
		s.Outcomes[res.Outcome]++
		groups.add(rec, res)
		all.Add(rec.Entry)
		if res.Outcome != manifest.Kept {
			missing.Add(rec.Entry)
			continue
		}
		kept.Add(rec.Entry)
		if rec.Image != nil && rec.Reading != nil {
			d.countKept(rec, formats)
		}
	}
	for _, name := range splits {
		d.BySplit = append(d.BySplit, *bySplit[name])
	}
	total := format{Name: "all"}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		f := *formats[name]
		d.Formats = append(d.Formats, f)
		total.Images, total.Bytes = total.Images+f.Images, total.Bytes+f.Bytes
	}
	d.Formats = append(d.Formats, total)
	groups.report(d)
	d.Labels, d.Rebuilt = all.Stats(), kept.Stats()
	if d.Rebuilt.Entries == 0 || d.Rebuilt.Entries == d.Labels.Entries {
		return nil
	}
	var err error
	d.Drift, err = labels.Compare(missing.Stats(), d.Rebuilt)
	return err
}

// countKept counts the image and the confidence of a kept entry.
func (d *data) countKept(rec workspace.Record, formats map[string]*format) {
	i := rec.Image
	f := formats[i.Format]
	if f == nil {
		f = &format{Name: i.Format}
		formats[i.Format] = f
	}
	f.Images++
	f.Bytes += i.Bytes
	side, _ := slices.BinarySearch(sideBounds[:], max(i.Width, i.Height))
	d.Sides[side]++
	if rec.Reading.Text == "" {
		d.Textless++
		return
	}
	d.Tenths[min(9, max(0, int(rec.Reading.Confidence/10)))]++
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

func (g *grouping) report(d *data) {
	d.GroupSizes, d.GroupClasses = map[int]int{}, g.class
	for _, kept := range g.order {
		others := g.of[kept]
		d.GroupSizes[1+len(others)]++
		one := group{Kept: kept.String(), Splits: []string{g.split[kept]}}
		for _, k := range others {
			one.Others = append(one.Others, k.String())
			if !slices.Contains(one.Splits, g.split[k]) {
				one.Splits = append(one.Splits, g.split[k])
			}
		}
		if len(one.Splits) > 1 {
			d.Straddling = append(d.Straddling, one)
		}
	}
}

// kept yields the records of the kept entries in manifest order.
func kept(ctx context.Context, ws *workspace.Workspace, j state.Judge) iter.Seq2[workspace.Record, error] {
	return func(yield func(workspace.Record, error) bool) {
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			if err == nil && j.Known(rec).Outcome != manifest.Kept {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// mostThumbnails bounds the images of a report: enough to see what kind they are.
const mostThumbnails = 60

// thumbnails yields some of the n kept images, spread evenly over the manifest.
func thumbnails(ctx context.Context, ws *workspace.Workspace, j state.Judge, n int) iter.Seq2[page.Thumbnail, error] {
	step := cmp.Or((n+mostThumbnails-1)/mostThumbnails, 1)
	return func(yield func(page.Thumbnail, error) bool) {
		i := 0
		for rec, err := range kept(ctx, ws, j) {
			var t page.Thumbnail
			if err == nil {
				i++
				if (i-1)%step != 0 {
					continue
				}
				t, err = thumbnailOf(ctx, ws, rec)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func thumbnailOf(ctx context.Context, ws *workspace.Workspace, rec workspace.Record) (page.Thumbnail, error) {
	name := "image " + rec.Key.String()
	body, err := ws.ReadImage(ctx, rec.Key, *rec.Image)
	if err != nil {
		return page.Thumbnail{}, err
	}
	img, err := policy.DecodeImage(body)
	if err != nil {
		return page.Thumbnail{}, fmt.Errorf("%s: %w", name, err)
	}
	return page.NewThumbnail(img, name)
}

// keptTexts yields the texts of the kept entries in manifest order.
func keptTexts(ctx context.Context, ws *workspace.Workspace, j state.Judge) iter.Seq2[readText, error] {
	return func(yield func(readText, error) bool) {
		for rec, err := range kept(ctx, ws, j) {
			var t readText
			if err == nil && rec.Reading == nil {
				continue
			}
			if err == nil {
				t = readText{rec.Key.String(), state.ShownReading(*rec.Reading, j.Policy).Text, rec.Reading.Confidence}
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}
