package pipeline

import (
	"context"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// ReadAgain reads the stored images of live posts again whose readings are not by the present engine and rules, or all
// of them, then decides and exports as Run does, without asking Reddit. What audits heard is gone goes first. Until
// EndReread of the workspace the old texts and outcomes stay beside the new ones: a call that is killed is continued by
// the next one, whose report covers both.
func ReadAgain(ctx context.Context, c Config, all bool) (state.Reread, error) {
	r := newRun(c)
	if err := r.access(); err != nil {
		return state.Reread{}, err
	}
	sum, err := r.do(ctx, r.load, func(ctx context.Context) error {
		if err := r.settleUnasked(ctx); err != nil { // it asks nobody: what is known goes before anything is written
			return err
		}
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
		last := state.LastReread{At: c.Now().UTC().Truncate(time.Second), Read: report.Read,
			Changed: report.Changed, Gained: report.Gained, Lost: report.Lost, Outcomes: len(report.Outcomes)}
		if err := state.WriteNote(ctx, c.Workspace, last); err != nil {
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
	g := r.newGatherer(nil, true)
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

// due reports whether an entry's image has to be read: it is there, its post is, and its reading
// is stale. With all, one that was not read since the re-reading began is due as well.
func (g *gatherer) due(rec workspace.Record, all bool) bool {
	return g.readable(rec) && (!g.reader.Current(*rec.Image, rec.Reading) || all && !rec.Earlier.Read)
}

// readable reports whether an entry has an image of a post that is live.
func (r *run) readable(rec workspace.Record) bool {
	return !r.stones.Has(rec.ID) && rec.Image != nil && rec.Post.State == manifest.StateLive
}
