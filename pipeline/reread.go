package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/contain"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Reread is what a re-reading changed, against the readings and outcomes before it began.
type Reread struct {
	Read    int `json:"read"`    // images that were read again since it began
	Changed int `json:"changed"` // those with a different text now
	Gained  int `json:"words_gained"`
	Lost    int `json:"words_lost"`
	// Texts has every changed text, Outcomes every entry with a different outcome now, both in
	// manifest order.
	Texts    []TextChange    `json:"texts"`
	Outcomes []OutcomeChange `json:"outcomes"`
	Summary  state.Summary   `json:"summary"`
}

// A TextChange says which words of a row's text came and went. Words that only moved are
// neither.
type TextChange struct {
	ID     string   `json:"id"`
	Gained []string `json:"gained"`
	Lost   []string `json:"lost"`
}

// An OutcomeChange is an entry whose outcome or reason changed.
type OutcomeChange struct {
	ID  string           `json:"id"`
	Old state.Conclusion `json:"old"` // without detail
	New state.Conclusion `json:"new"`
}

// ReadAgain reads the stored images of live posts again whose readings are not by the present
// engine and rules, or all of them, then decides and exports as Run does. It does not ask
// Reddit and needs no Config.Reddit: posts that were not seen live within the policy's recheck_within leave
// the dataset. The errors are those of Run without Reddit's.
//
// Until EndReread of the workspace the old texts and outcomes stay beside the new ones. A call
// that is killed is continued by the next one, and its report covers both; a Run in between reads
// on as well.
func ReadAgain(ctx context.Context, c Config, all bool) (Reread, error) {
	r := newRun(c, exporting)
	if err := r.access(); err != nil {
		return Reread{}, err
	}
	began := c.Now()
	if err := r.open(ctx, r.event(auditlog.Started, "")); err != nil {
		return Reread{}, err
	}
	// From here on replaced texts are kept beside the new ones, also by a Run that goes on after a kill.
	if err := c.Workspace.BeginReread(ctx); err != nil {
		return Reread{}, err
	}
	var out exported
	err := r.inGrace(ctx, func(ctx context.Context) (err error) {
		if err := r.readAll(ctx, all); err != nil {
			return err
		}
		if err := r.access(); err != nil {
			return err
		}
		out, err = r.write(ctx)
		return err
	})
	if err := r.end(ctx, err); err != nil {
		return Reread{}, err
	}
	report, err := compareReadings(ctx, c.Workspace, c.Policy)
	if err != nil {
		return Reread{}, err
	}
	if err := noteReread(ctx, c.Workspace, report, c.Now()); err != nil {
		return Reread{}, err
	}
	report.Summary, err = state.Status(ctx, c.Workspace, c.Now())
	if err != nil {
		return Reread{}, err
	}
	report.Summary.Elapsed = c.Now().Sub(began)
	report.Summary.Files, report.Summary.Unchanged = out.files, out.unchanged
	return report, nil
}

// readAll sends what has to be read again to the readers.
func (r *run) readAll(ctx context.Context, all bool) error {
	r.Progress.stage("read again")
	began, read := r.Now(), 0
	g := r.newGatherer(true)
	j := state.Judge{Policy: r.Policy, Tombstones: r.stones, Now: began}
	group, running := errgroup.WithContext(ctx)
	contain.Go(group, func() error {
		defer close(g.read)
		for rec, err := range r.Workspace.Records(running, workspace.Select{WithEarlier: true}) {
			if err != nil {
				return err
			}
			if !g.due(rec, all) {
				g.settled(rec.Key, j.Outcome(rec))
				continue
			}
			read++
			if err := send(running, r, g.read, readJob{Record: rec}); err != nil {
				return err
			}
		}
		return nil
	})
	g.startReaders(running, group)
	if err := group.Wait(); err != nil {
		return err
	}
	if r.stopping() {
		return state.ErrInterrupted
	}
	return r.noteRate(ctx, read, r.Now().Sub(began))
}

// due reports whether an entry's image has to be read: it is there, its post is, and its reading
// is stale. With all, one that was not read since the re-reading began is due as well.
func (g *gatherer) due(rec workspace.Record, all bool) bool {
	return g.readable(rec) && (!g.current(rec) || all && !rec.Earlier.Read)
}

// readable reports whether an entry has an image of a post that is live.
func (r *run) readable(rec workspace.Record) bool {
	return !r.stones.Has(rec.ID) && rec.Image != nil && rec.Post.State == manifest.StateLive
}

// compareReadings makes the report of a re-reading from what is stored. It reports the outcome of every
// changed entry, but words only of live posts.
func compareReadings(ctx context.Context, ws *workspace.Workspace, p policy.Policy) (Reread, error) {
	report := Reread{Texts: []TextChange{}, Outcomes: []OutcomeChange{}}
	for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
		if err != nil {
			return Reread{}, err
		}
		if rec.Earlier.Read && rec.Reading != nil {
			report.Read++
			old := rec.Earlier.Text
			// An old text can be from a time when names were not masked yet.
			if p.Text.MaskNames {
				old = state.MaskText(old)
			}
			// A run in between can have found the post gone or held: its words are not shown then.
			if rec.Post.State == manifest.StateLive && old != rec.Reading.Text {
				change := TextChange{ID: rec.Key.String()}
				change.Gained, change.Lost = state.DiffWords(old, rec.Reading.Text)
				report.Changed++
				report.Gained += len(change.Gained)
				report.Lost += len(change.Lost)
				report.Texts = append(report.Texts, change)
			}
		}
		was := rec.Earlier
		if now := rec.Result; now != nil && was.Outcome != "" && (now.Outcome != was.Outcome || now.Reason != was.Reason) {
			report.Outcomes = append(report.Outcomes, OutcomeChange{ID: rec.Key.String(),
				Old: state.Conclusion{Outcome: was.Outcome, Reason: was.Reason}, New: state.NewConclusion(*now)})
		}
	}
	return report, nil
}

// noteReread stores the counts of a re-reading that has ended, unless it had nothing to read.
func noteReread(ctx context.Context, ws *workspace.Workspace, r Reread, now time.Time) error {
	if r.Read == 0 {
		return nil
	}
	return state.WriteNote(ctx, ws, state.LastReread{At: now.UTC().Truncate(time.Second), Read: r.Read, Changed: r.Changed,
		Gained: r.Gained, Lost: r.Lost, Outcomes: len(r.Outcomes)})
}

// A Workload says how much work a re-reading would be.
type Workload struct {
	Images int     `json:"images"`   // of live posts that are stored
	Read   int     `json:"to_read"`  // images that it would read
	Rate   float64 `json:"rate"`     // images a second of the last re-reading, 0 when not known
	Left   int     `json:"left_out"` // rows that it would leave out: their posts were last seen live too long ago
	// Estimate is how long the reading would take at that rate, 0 when not known.
	Estimate time.Duration `json:"estimate_ns"`
}

// PlanReread says what ReadAgain would have to do. It only reads: Config.Workspace need not be
// locked.
func PlanReread(ctx context.Context, c Config, all bool) (Workload, error) {
	var out Workload
	j, err := state.StoredJudge(ctx, c.Workspace, c.Now())
	if err != nil {
		return out, err
	}
	for _, t := range c.Tombstones {
		if _, ok := j.Tombstones[t.ID]; !ok {
			j.Tombstones[t.ID] = workspace.Tombstone{Tombstone: t}
		}
	}
	r := newRun(c, exporting)
	r.stones = j.Tombstones
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
			out.Left++
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

// leastForRate is how many images tell a rate.
const leastForRate = 20

// noteRate stores how fast images were read, unless they were too few to tell.
func (r *run) noteRate(ctx context.Context, images int, took time.Duration) error {
	if images < leastForRate || took <= 0 {
		return nil
	}
	return state.WriteNote(ctx, r.Workspace, state.OCRRate(float64(images)/took.Seconds()))
}
