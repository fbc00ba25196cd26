package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"rehydrate/internal/safely"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// ReadAgain reads the stored images of live posts again whose readings are not by the present engine and rules, or all
// of them, then decides and exports as Run does, without asking Reddit. Until EndReread of the workspace the old texts
// and outcomes stay beside the new ones: a call that is killed is continued by the next one, whose report covers both.
func ReadAgain(ctx context.Context, c Config, all bool) (state.Reread, error) {
	r := newRun(c)
	if err := r.access(); err != nil {
		return state.Reread{}, err
	}
	sum, err := r.do(ctx, r.load, func(ctx context.Context) error {
		// From here on replaced texts are kept beside the new ones, also by a Run that goes on after a kill.
		if err := r.Workspace.BeginReread(ctx); err != nil {
			return err
		}
		if err := r.readAll(ctx, all); err != nil {
			return err
		}
		if err := r.access(); err != nil {
			return err
		}
		return r.write(ctx)
	})
	if err != nil {
		return state.Reread{}, err
	}
	report, err := state.CompareReadings(ctx, c.Workspace, c.Policy)
	if err != nil {
		return state.Reread{}, err
	}
	if report.Read > 0 { // the note of a re-reading that had nothing to do would hide the last one
		if err := state.WriteNote(ctx, c.Workspace, state.LastReread{At: c.Now().UTC().Truncate(time.Second), Read: report.Read,
			Changed: report.Changed, Gained: report.Gained, Lost: report.Lost, Outcomes: len(report.Outcomes)}); err != nil {
			return state.Reread{}, err
		}
	}
	report.Summary = sum
	return report, nil
}

// readAll sends what has to be read again to the readers.
func (r *run) readAll(ctx context.Context, all bool) error {
	r.Progress.stage("read again")
	began, read := r.Now(), 0
	g := r.newGatherer(true)
	j := state.Judge{Policy: r.Policy, Tombstones: r.stones, Now: began}
	err := g.readEach(ctx, func(ctx context.Context, send func(workspace.Record) error) error {
		for rec, err := range r.Workspace.Records(ctx, workspace.Select{WithEarlier: true}) {
			if err != nil {
				return err
			}
			if !g.due(rec, all) {
				g.settled(rec.Key, j.Outcome(rec))
				continue
			}
			read++
			if err := send(rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.stopping() {
		return state.ErrInterrupted
	}
	// Few images say little of the rate.
	if took := r.Now().Sub(began).Seconds(); read >= 20 && took > 0 {
		return state.WriteNote(ctx, r.Workspace, state.OCRRate(float64(read)/took))
	}
	return nil
}

// readEach reads the images of the records that find sends.
func (g *gatherer) readEach(ctx context.Context, find func(ctx context.Context, send func(workspace.Record) error) error) error {
	g.read = make(chan readJob, queueLength)
	group, running := errgroup.WithContext(ctx)
	safely.Go(group, func() error {
		defer close(g.read)
		return find(running, func(rec workspace.Record) error { return send(running, g.run, g.read, readJob{Record: rec}) })
	})
	g.startReaders(running, group)
	return group.Wait()
}

// due reports whether an entry's image has to be read: it is there, its post is, and its reading
// is stale. With all, one that was not read since the re-reading began is due as well.
func (g *gatherer) due(rec workspace.Record, all bool) bool {
	return g.readable(rec) && (!g.reader.Current(*rec.Image, rec.Reading) || all && !rec.Earlier.Read)
}

// readable reports whether an entry has an image of a post that is live.
func (r *run) readable(rec workspace.Record) bool {
	return !r.stones.Has(rec.ID) && rec.Image != nil && rec.Post.State == manifest.StateLive
}

// A Workload says how much work a re-reading would be.
type Workload struct {
	Images int     `json:"images"`  // of live posts that are stored
	Read   int     `json:"to_read"` // images that it would read
	Rate   float64 `json:"rate"`    // images a second of the last re-reading, 0 when not known
	Stale  int     `json:"stale"`   // rows whose posts were last seen live too long ago: they stay, and are not handed out
	// Estimate is how long the reading would take at that rate, 0 when not known.
	Estimate time.Duration `json:"estimate_ns"`
}

// PlanReread says what ReadAgain would have to do. It only reads: Config.Workspace need not be
// locked.
func PlanReread(ctx context.Context, c Config, all bool) (Workload, error) {
	var out Workload
	r := newRun(c)
	var err error
	r.stones, err = state.Stones(ctx, c.Workspace, c.Release, c.Tombstones, c.Now())
	if err != nil {
		return out, err
	}
	g := r.newGatherer(true)
	for rec, err := range c.Workspace.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return out, err
		}
		if !r.readable(rec) {
			continue
		}
		out.Images++
		if g.due(rec, all) {
			out.Read++
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept && c.Policy.Stale(rec.Post.LiveAt, c.Now()) {
			out.Stale++
		}
	}
	rate, err := state.ReadNote[state.OCRRate](ctx, c.Workspace)
	if err != nil {
		return out, err
	}
	out.Rate = float64(rate)
	if out.Rate > 0 {
		out.Estimate = time.Duration(float64(out.Read) / out.Rate * float64(time.Second)).Round(time.Second)
	}
	return out, nil
}
