package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// An Ending is what the end of a workspace takes away, or took. Its lists are in order of the names.
type Ending struct {
	Release string             `json:"release"`
	Images  int                `json:"images"`
	Texts   int                `json:"texts"`
	Files   []string           `json:"files"`  // of the dataset and beside it
	Copies  []state.CopyReport `json:"copies"` // all that are registered
	// Held is how many posts are gone, or lost images, by answers that are held back and by what audits heard. That counts
	// as confirmed.
	Held int `json:"held"`
	// Strays are files in the workspace that no run wrote. They stay.
	Strays []string `json:"strays"`
	// Rows are those of the strays that hold rows of the dataset: somebody has to look after them.
	Rows []string `json:"strays_with_rows"`
}

// PlanEnd says what End would take away. It only reads.
func PlanEnd(ctx context.Context, ws *workspace.Workspace) (Ending, error) {
	e := Ending{Files: []string{}, Strays: []string{}, Rows: []string{}}
	b, bound, err := ws.Binding(ctx)
	if err == nil && !bound {
		err = workspace.ErrNoWorkspace
	}
	if err == nil {
		err = state.CheckTombstones(ctx, ws) // each of them would bar its post for good
	}
	if err != nil {
		return e, err
	}
	e.Release = b.Release
	e.Held, err = countHeld(ctx, ws)
	if err != nil {
		return e, err
	}
	known := map[manifest.Key]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return e, err
		}
		if rec.Image != nil {
			known[rec.Key] = true
		}
		if rec.Reading != nil {
			e.Texts++
		}
	}
	a, err := ws.Astray(ctx)
	if err != nil {
		return e, err
	}
	for _, l := range a.Loose { // an older state.db does not know them
		known[l.Key] = true
	}
	e.Images = len(known)
	for _, folder := range []string{state.DatasetDir, state.ShardsDir} {
		names, err := ws.Files(ctx, folder)
		if err != nil {
			return e, err
		}
		e.Files = append(e.Files, slices.DeleteFunc(names, func(name string) bool { return !isMade(name) })...)
	}
	for _, name := range []string{manifest.OutcomesName, manifest.ListName, state.PolicyFile, workspace.ReportName} {
		if f, err := ws.OpenFile(name); err == nil {
			f.Close()
			e.Files = append(e.Files, name)
		}
	}
	slices.Sort(e.Files)
	e.Copies, err = state.ListCopies(ctx, ws)
	return e, err
}

// End takes away all that a workspace holds: images, texts, dataset, report, shards, and the registered copies that it
// can reach. Tombstones, the log and the register of copies stay, so that what was removed stays removed when a run
// begins anew. It asks nobody. Killed anywhere, the next End completes it.
func End(ctx context.Context, ws *workspace.Workspace, now time.Time) (Ending, error) {
	if err := ws.CheckImages(ctx); err != nil {
		return Ending{}, err
	}
	e, err := PlanEnd(ctx, ws)
	if err != nil {
		return e, err
	}
	at := now.UTC().Truncate(time.Second)
	if err := beginEnd(ctx, ws, at); err != nil {
		return e, err
	}
	if err := confirmAll(ctx, ws, at); err != nil {
		return e, err
	}
	if err := ws.Clear(ctx); err != nil {
		return e, err
	}
	if err := removeDataset(ctx, ws); err != nil {
		return e, err
	}
	e.Copies, err = copies.End(ctx, ws, now)
	if err != nil {
		return e, err
	}
	if err := state.WriteTombstones(ctx, ws); err != nil {
		return e, err
	}
	if _, err := ws.Sweep(ctx, nil); err != nil { // unfinished files, and whatever a run left that was killed
		return e, err
	}
	if err := e.findForeign(ctx, ws); err != nil {
		return e, err
	}
	if err := state.ClearNote[state.LaterNote](ctx, ws); err != nil { // none waits for a run any more
		return e, err
	}
	if err := ws.Note(ctx, auditlog.Event{Kind: auditlog.Purge, Phase: auditlog.Ended}); err != nil {
		return e, err
	}
	return e, state.WriteNote(ctx, ws, state.EndedNote{At: at})
}

// beginEnd stores what must stay and what is about to happen, before anything is removed.
func beginEnd(ctx context.Context, ws *workspace.Workspace, at time.Time) error {
	// state.db can be from a backup, and tombstones.csv is written again.
	kept, err := state.KeptTombstones(ctx, ws)
	if err != nil {
		return err
	}
	if err := ws.AddTombstones(ctx, kept); err != nil {
		return err
	}
	// So that nobody takes what a killed End has left for a dataset.
	if err := state.WriteNote(ctx, ws, state.EndedNote{At: at, Unfinished: true}); err != nil {
		return err
	}
	if err := ws.Note(ctx, auditlog.Event{Kind: auditlog.Purge, Phase: auditlog.Started}); err != nil {
		return err
	}
	return forgetDataset(ctx, ws)
}

// countHeld counts the posts that confirmAll is about.
func countHeld(ctx context.Context, ws *workspace.Workspace) (int, error) {
	held := map[manifest.PostID]bool{}
	for _, find := range []func(context.Context, *workspace.Workspace) (state.GoneSet, error){state.Withheld, state.Heard} {
		gone, err := find(ctx, ws)
		if err != nil {
			return 0, err
		}
		for id := range gone.Posts {
			held[id] = true
		}
		for _, p := range gone.Entries {
			held[p.ID] = true
		}
	}
	return len(held), nil
}

// confirmAll settles what audits heard, and what is held back: with the entries it would be forgotten, and come back
// with another run. Whoever ends a workspace confirms its removals, however many there are.
func confirmAll(ctx context.Context, ws *workspace.Workspace, at time.Time) error {
	last, err := state.LastPolicy(ctx, ws)
	if err != nil {
		return err
	}
	r := newRun(Config{Workspace: ws, Policy: last, ConfirmRemovals: true, Now: func() time.Time { return at },
		Log: slog.New(slog.DiscardHandler)})
	if err := r.holdTombstones(ctx); err != nil {
		return err
	}
	if err := r.takeHeard(ctx); err != nil {
		return err
	}
	// First what is held back is confirmed, and then what is held back for what audits heard.
	for range 2 {
		r.settled = false
		if err := r.settleUnasked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// forgetDataset records that the files of the dataset go, and forgets them: a file on record that is not there would be
// damage.
func forgetDataset(ctx context.Context, ws *workspace.Workspace) error {
	last, err := state.ReadNote[state.ExportNote](ctx, ws)
	if err != nil {
		return err
	}
	var events []auditlog.Event
	for files := range slices.Chunk(last.Files, auditlog.MaxFiles) {
		e := auditlog.Event{Kind: auditlog.Purge}
		for _, f := range files {
			e.Old = append(e.Old, auditlog.File{Name: f.Name, SHA256: f.SHA256})
			e.Files = append(e.Files, auditlog.File{Name: f.Name})
		}
		events = append(events, e)
	}
	if err := ws.Note(ctx, events...); err != nil {
		return err
	}
	return state.ClearNote[state.ExportNote](ctx, ws)
}

// isMade reports whether a file of the dataset or the shards is one that End removes. What somebody put beside the
// dataset is their own, whatever is in it.
func isMade(name string) bool {
	return state.IsOfDataset(name) || strings.HasPrefix(name, state.ShardsDir+"/")
}

// removeDataset removes the dataset, what was made of it, and what was to be read for it.
func removeDataset(ctx context.Context, ws *workspace.Workspace) error {
	if err := cluster.Clear(ctx, ws); err != nil { // in its order: no shard is begun, and none finished
		return err
	}
	for _, folder := range []string{state.DatasetDir, state.ShardsDir} {
		if err := ws.RemoveFiles(ctx, folder, isMade); err != nil {
			return err
		}
	}
	for _, name := range []string{workspace.ReportName, manifest.OutcomesName, manifest.ListName, state.PolicyFile} {
		if err := ws.RemoveFile(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// findForeign lists what is left in the workspace and belongs to nobody here.
func (e *Ending) findForeign(ctx context.Context, ws *workspace.Workspace) error {
	posts := state.GoneSet{Posts: map[manifest.PostID]state.GonePost{}}
	for f, err := range ws.Walk(ctx, ".") {
		if err != nil {
			return err
		}
		stays := []string{state.StateFile, state.JournalFile, state.LockFile, state.LogKeyFile, manifest.TombstonesName}
		if slices.Contains(stays, f.Name) || strings.HasPrefix(f.Name, state.AuditDir+"/") {
			continue
		}
		e.Strays = append(e.Strays, f.Name)
		if !f.Mode.IsRegular() || !dataset.Holds(f.Name) {
			continue
		}
		if posts.Empty() {
			for p, err := range ws.Posts(ctx) {
				if err != nil {
					return err
				}
				posts.Posts[p.ID] = state.GonePost{ID: p.ID}
			}
		}
		if err := state.FileLacksRows(ctx, ws.OpenFile, f.Name, posts); err != nil {
			e.Rows = append(e.Rows, fmt.Sprintf("%s: %v", f.Name, err))
		}
	}
	return nil
}
