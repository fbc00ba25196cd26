package state

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// mostLeave is the share of the rows that are there above which a job asks before they leave for anything but a
// removal.
const mostLeave = 0.1

// TooMany reports whether n rows are so many of all that something else is the matter with them: an engine, a host or a
// policy. One row never is.
func TooMany(n, rows int) bool { return float64(n) > max(1, mostLeave*float64(rows)) }

// fewMissing is how many files may be missing of however few: somebody deleted them because they were damaged.
const fewMissing = 3

// TooManyMissing reports whether n missing files are so many of all images that their disk must be away.
func TooManyMissing(n, images int) bool { return n > max(fewMissing, images/10) }

// A TakenOut says what becomes of all entries when rows only leave the dataset.
type TakenOut struct {
	Results []manifest.Result // in manifest order
	Leave   map[string]bool   // rows that must not be in the dataset any more
	Stay    []Count           // rows that stay because too many would leave for anything but a removal
	Left    []Count           // rows that leave for anything but a removal
	changed bool
}

// Reasons of a pending entry that the next run decides on.
const (
	ReasonSuccessor  manifest.Reason = "successor"   // the entry that it was a duplicate of left the dataset
	ReasonNotWritten manifest.Reason = "not_written" // it was to be a row, and the dataset was not written
)

// An Unwritten says that rows are missing in the dataset, which is therefore not handed out: a run writes them again.
type Unwritten struct{ Rows int }

// WhyUnwritten says how rows come to be missing.
const WhyUnwritten = "a file of it was damaged or lost, or a run was cut off while it wrote"

func (e *Unwritten) Error() string {
	verb := "rows of the dataset are"
	if e.Rows == 1 {
		verb = "row of the dataset is"
	}
	return fmt.Sprintf("%d %s missing: %s", e.Rows, verb, WhyUnwritten)
}

// IsUnwritten reports whether the row of a record is missing in the dataset.
func IsUnwritten(rec workspace.Record) bool {
	return rec.Result != nil && rec.Result.Outcome == manifest.Pending && rec.Result.Reason == ReasonNotWritten
}

// CheckWritten fails with *Unwritten where rows are missing in the dataset.
func CheckWritten(ctx context.Context, ws *workspace.Workspace) error {
	missing := 0
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return err
		}
		if IsUnwritten(rec) {
			missing++
		}
	}
	if missing > 0 {
		return &Unwritten{missing}
	}
	return nil
}

// TakeOut decides which rows leave a dataset that has these, and lets none in; records are all entries, in manifest
// order. Afterwards a stored result is kept exactly if the row is in the dataset. Neither age nor an odd answer takes a
// row out; confirmed says that no number of rows is too many. noted are NotedStandIns.
func (j Judge) TakeOut(records iter.Seq2[workspace.Record, error], rows map[string]bool,
	noted map[manifest.Key]bool, confirmed bool) (*TakenOut, error) {
	out := &TakenOut{Leave: map[string]bool{}}
	var stored []*manifest.Result
	var others []int // rows that would leave for anything but a removal, by place in Results
	left, dropped := map[manifest.Key]bool{}, maps.Clone(rows)
	noImage := manifest.OutcomesOf(manifest.FateLost, manifest.FateNotAllowed)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		was, there := rec.Result, rows[rec.Key.String()]
		delete(dropped, rec.Key.String())
		kept := manifest.Result{Key: rec.Key, Split: rec.Split, Outcome: manifest.Kept}
		if was != nil && was.Outcome == manifest.Kept {
			kept = *was
		}
		if there {
			rec.Result = &kept
		}
		now := j.Outcome(rec)
		// Nothing settles these but a run.
		unsettled := []manifest.Outcome{Candidate, manifest.Pending, manifest.Failed}
		open := slices.Contains(unsettled, now.Outcome) && !Removes(now)
		switch {
		case there && open:
			now = kept
		case there && Removes(now):
			left[rec.Key] = true
		case there:
			others = append(others, len(out.Results))
		case open && was == nil:
			now = j.Known(rec)
		case open && WasSuspected(rec):
			now = *was
		case open && noted[rec.Key]:
			now = suspected(manifest.Result{Key: rec.Key, Split: rec.Split}, j.Policy)
		case open && was.Outcome == manifest.Kept:
			now = manifest.Result{Key: rec.Key, Split: rec.Split, Outcome: manifest.Pending, Reason: ReasonNotWritten}
		case open && (Removes(*was) || slices.Contains(noImage, was.Outcome)): // it is back, and the next run has it again
			now = j.Known(rec)
		case open:
			now = *was
		}
		out.Results, stored = append(out.Results, now), append(stored, was)
	}
	counts, leaving := counting{}, counting{}
	for _, n := range others {
		res := &out.Results[n]
		if confirmed || !TooMany(len(others), len(rows)) {
			left[res.Key] = true
			leaving.add(*res)
			continue
		}
		counts.add(*res)
		*res = manifest.Result{Key: res.Key, Split: res.Split, Outcome: manifest.Kept}
		if was := stored[n]; was != nil && was.Outcome == manifest.Kept {
			*res = *was
		}
	}
	out.Stay, out.Left = counts.list(), leaving.list()
	for n := range out.Results {
		res := &out.Results[n]
		// Near is not transitive: who takes the place of one that left, the next run decides among all.
		if res.Outcome == manifest.Duplicate && left[res.DuplicateOf] {
			*res = manifest.Result{Key: res.Key, Split: res.Split, Outcome: manifest.Pending, Reason: ReasonSuccessor}
		}
		out.changed = out.changed || stored[n] == nil || *stored[n] != *res
	}
	maps.Copy(out.Leave, dropped) // the manifest has them no more
	for k := range left {
		out.Leave[k.String()] = true
	}
	return out, nil
}

// Store stores the outcomes.
func (t *TakenOut) Store(ctx context.Context, ws *workspace.Workspace) error {
	if !t.changed {
		return nil
	}
	return ws.SetResults(ctx, t.Results)
}

// All yields the results in manifest order.
func (t *TakenOut) All() iter.Seq2[manifest.Result, error] { return withoutError(t.Results) }

// Counts are the entries of each split by outcome.
func (t *TakenOut) Counts() map[string]map[manifest.Outcome]int { return countOutcomes(t.Results) }
