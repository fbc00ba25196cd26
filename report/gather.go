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

	"rehydrate/internal/page"
	"rehydrate/internal/picture"
	"rehydrate/internal/word"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
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
	j, err := state.StoredJudge(ctx, ws, o.Now)
	if err != nil {
		return err
	}
	d, err := gather(ctx, ws, j, o)
	if err != nil {
		return err
	}
	hidden, err := state.MustHideNow(ctx, ws)
	if err != nil {
		return err
	}
	var failed error // of what is read while the page is written
	shown := func(rec workspace.Record) bool {
		return j.Known(rec).Outcome == manifest.Kept && !hidden.HasRow(rec.Key.String())
	}
	if o.Thumbnails {
		d.Thumbnails = thumbnails(ctx, ws, shown, d.Rebuilt.Entries, &failed)
	}
	if o.Texts {
		d.Texts = ofKept(ctx, ws, shown, &failed, func(rec workspace.Record) (*readText, error) {
			if rec.Reading == nil {
				return nil, nil
			}
			return &readText{rec.Key.String(), state.ShownReading(*rec.Reading, j.Policy).Text, rec.Reading.Confidence}, nil
		})
	}
	if err := d.write(w); err != nil {
		return err
	}
	return failed
}

func gather(ctx context.Context, ws *workspace.Workspace, j state.Judge, o Options) (data, error) {
	s, err := state.Status(ctx, ws, o.Now)
	if err != nil {
		return data{}, err
	}
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return data{}, err
	}
	d := data{Summary: s, Schema: b.Schema, Tool: o.Version, Made: o.Now, Advice: o.Advice}
	if err := d.count(ctx, ws, j, b.Splits); err != nil {
		return d, err
	}
	repairs, err := ws.Repairs(ctx)
	if err != nil {
		return d, err
	}
	d.Mended, d.Filled = repairs[word.Mended], repairs[word.Filled]
	d.LastRun, err = state.ReadNote[state.LastRun](ctx, ws)
	if err != nil {
		return d, err
	}
	d.Unverified = d.LastRun.Unverified // Status does not know it
	d.Reread, err = state.ReadNote[state.LastReread](ctx, ws)
	return d, err
}

// count counts everything that stands in the records, in one pass.
func (d *data) count(ctx context.Context, ws *workspace.Workspace, j state.Judge, splits []string) error {
	d.GroupSizes, d.GroupClasses = map[int]int{}, map[string]int{}
	bySplit, formats := map[string]*split{}, map[string]format{}
	groups := grouping{data: d, split: map[manifest.Key]string{}, of: map[manifest.Key]*group{}}
	dates := slices.IndexFunc(d.Schema.Columns, func(c manifest.Column) bool {
		return c.Type == manifest.TypeTimestamp && !c.List
	})
	if dates >= 0 {
		d.DateColumn, d.ByMonth = d.Schema.Columns[dates].Name, map[time.Time]map[manifest.Outcome]int{}
	}
	for _, name := range splits {
		bySplit[name] = &split{Name: name, Outcomes: map[manifest.Outcome]int{}}
	}
	// What was rebuilt is compared with what is missing, not with the whole: the whole holds it.
	all, kept, missing := labels.NewCounter(d.Schema), labels.NewCounter(d.Schema), labels.NewCounter(d.Schema)
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return fmt.Errorf("count what the workspace holds: %w", err)
		}
		res := j.Known(rec)
		s := bySplit[rec.Split]
		if s == nil { // somebody changed state.db
			return fmt.Errorf("entry %s is of the split %q, which the release does not have: verify the workspace",
				rec.Key.String(), rec.Split)
		}
		s.Entries++
		s.Outcomes[res.Outcome]++
		if dates >= 0 {
			d.countDate(rec.Values, dates, res.Outcome)
		}
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
	// In the order of the release, not of the map.
	for _, name := range splits {
		d.BySplit = append(d.BySplit, *bySplit[name])
	}
	total := format{Name: "all"}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		f := formats[name]
		d.Formats = append(d.Formats, f)
		total.Images, total.Bytes = total.Images+f.Images, total.Bytes+f.Bytes
	}
	d.Formats = append(d.Formats, total)
	groups.report()
	d.Labels, d.Rebuilt = all.Stats(), kept.Stats()
	// With nothing on one side there is nothing to compare.
	if d.Rebuilt.Entries > 0 && d.Rebuilt.Entries < d.Labels.Entries {
		d.Drift = labels.Compare(missing.Stats(), d.Rebuilt)
	}
	return nil
}

// countDate counts an outcome in the month of the entry's value of a column.
func (d *data) countDate(values [][]string, column int, o manifest.Outcome) {
	if column >= len(values) || len(values[column]) == 0 {
		d.Undated++
		return
	}
	at, err := time.Parse(manifest.TimeForm, values[column][0])
	if err != nil { // somebody changed state.db
		d.Undated++
		return
	}
	m := month(at.Year(), at.Month())
	if d.ByMonth[m] == nil {
		d.ByMonth[m] = map[manifest.Outcome]int{}
	}
	d.ByMonth[m][o]++
}

// countKept counts the image and the confidence of a kept entry.
func (d *data) countKept(rec workspace.Record, formats map[string]format) {
	i := rec.Image
	f := formats[i.Format]
	formats[i.Format] = format{i.Format, f.Images + 1, f.Bytes + i.Bytes}
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
	data  *data
	split map[manifest.Key]string // of every entry
	of    map[manifest.Key]*group // by the kept entry
	order []*group                // as the manifest has them
}

// add takes in an entry.
func (g *grouping) add(rec workspace.Record, res manifest.Result) {
	// The kept entry of a group comes before the others, so its split is known when they come.
	g.split[rec.Key] = rec.Split
	kept := res.DuplicateOf
	if kept == (manifest.Key{}) {
		return
	}
	near := g.of[kept]
	if near == nil {
		near = &group{Kept: kept.String(), Splits: []string{g.split[kept]}}
		g.of[kept], g.order = near, append(g.order, near)
	}
	near.Others = append(near.Others, rec.Key.String())
	if !slices.Contains(near.Splits, rec.Split) {
		near.Splits = append(near.Splits, rec.Split)
	}
	class := "marked, not dropped"
	if res.Outcome == manifest.Duplicate {
		class = string(res.Reason)
	}
	g.data.GroupClasses[class]++
}

func (g *grouping) report() {
	for _, near := range g.order {
		g.data.GroupSizes[1+len(near.Others)]++
		if len(near.Splits) > 1 {
			g.data.Straddling = append(g.data.Straddling, *near)
		}
	}
}

// ofKept yields what item makes of the entries that are shown in manifest order, nil left out. An error ends it, and is
// in failed.
func ofKept[T any](ctx context.Context, ws *workspace.Workspace, shown func(workspace.Record) bool, failed *error,
	item func(workspace.Record) (*T, error)) iter.Seq[T] {
	return func(yield func(T) bool) {
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			if err == nil && !shown(rec) {
				continue
			}
			var made *T
			if err == nil {
				made, err = item(rec)
			}
			if err != nil { // templates know no errors: whoever writes the page looks at it afterwards
				*failed = err
				return
			}
			if made != nil && !yield(*made) {
				return
			}
		}
	}
}

// mostThumbnails bounds the images of a report: enough to see what kind they are.
const mostThumbnails = 60

// thumbnails yields some of the n kept images, spread evenly over the manifest.
func thumbnails(ctx context.Context, ws *workspace.Workspace, shown func(workspace.Record) bool, n int,
	failed *error) iter.Seq[page.Thumbnail] {
	// Rounded up, so that never more are shown; and at least 1, for a workspace without kept images.
	step := cmp.Or((n+mostThumbnails-1)/mostThumbnails, 1)
	i := -1
	return ofKept(ctx, ws, shown, failed, func(rec workspace.Record) (*page.Thumbnail, error) {
		i++
		if i%step != 0 {
			return nil, nil
		}
		name := "image " + rec.Key.String()
		body, err := ws.ReadImage(ctx, rec.Key, *rec.Image)
		if err != nil {
			return nil, err
		}
		img, err := picture.Decode(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t, err := page.NewThumbnail(img, name)
		return &t, err
	})
}
