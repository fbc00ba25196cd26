package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A PurgeRequest says what a purge is asked for beyond what Reddit and the tombstones say.
type PurgeRequest struct {
	IDs    []manifest.PostID // posts that must go by request, whatever Reddit says
	Reason manifest.Reason   // of IDs
}

// A PurgeReport is what a purge did. Lists are in manifest order, or in order of the names.
type PurgeReport struct {
	Asked  bool                `json:"asked"`  // Reddit was asked about every post
	Erased []state.RemovedPost `json:"erased"` // posts that had an image or a text in the workspace, or were held back
	Rows   []string            `json:"rows"`   // ids of the rows of what was removed that left the dataset
	// Others are ids of rows that left the dataset and were not removed: what is held back, and what may not be in it now.
	Others []string `json:"other_rows,omitempty"`
	// Successors are duplicates that can take the place of a row that went.
	Successors []Successor `json:"successors"`
	// Same are entries that left the workspace because they show the same picture as one that was taken down.
	Same   []string           `json:"same_as_removed"`
	Files  []FileChange       `json:"files"`  // of the dataset, that were rewritten or removed
	Copies []state.CopyReport `json:"copies"` // all that are registered and not closed
	// Unknown are posts of the request that the release does not have. They have a tombstone now.
	Unknown []manifest.PostID `json:"unknown"`
	// Already are the tombstones that posts of the request had before it.
	Already []state.TombstoneEntry `json:"already"`
	// Empty are the other posts of the request of which there was neither image nor text. They have a tombstone now.
	Empty []manifest.PostID `json:"empty"`
	// Done reports that all that was known to be gone is removed. It can be true beside an error: Reddit gave no answer.
	Done    bool          `json:"done"`
	Summary state.Summary `json:"summary"`
}

// A Successor is the first of the near-duplicates of a row that went: the next run decides which of them takes its
// place, and fetches its image from its own URL where that is not stored.
type Successor struct {
	Gone string `json:"gone"` // the entry that was kept
	ID   string `json:"id"`
}

// A FileChange is a file that was rewritten. New is empty if it was removed.
type FileChange struct {
	Name string `json:"name"`
	Old  string `json:"old_sha256"`
	New  string `json:"new_sha256"`
}

// Purge removes what must go, wherever the workspace has it: image, text, hashes, report, the rows in its dataset and
// in the registered copies that it can reach. No row comes in. It needs neither a grant nor an OCR pool, and no Reddit
// client if it asks nobody. The next Purge completes one that was killed. The errors are those of Run; beside one the
// report says whether what was known to be gone by then is purged all the same (Done).
func Purge(ctx context.Context, c Config, q PurgeRequest) (PurgeReport, error) {
	r := newRun(c)
	out, err := r.purge(ctx, q)
	if !out.Done {
		err = r.unfinished(ctx, err)
	}
	return out, err
}

// purge is Purge without the word on what is left.
func (r *run) purge(ctx context.Context, q PurgeRequest) (PurgeReport, error) {
	out := PurgeReport{Asked: r.Reddit != nil, Erased: []state.RemovedPost{}, Rows: []string{}, Successors: []Successor{},
		Same: []string{}, Files: []FileChange{}, Unknown: []manifest.PostID{}, Already: []state.TombstoneEntry{},
		Empty: []manifest.PostID{}}
	// Before it is opened, which erases what an earlier job left.
	reported := r.hasReport()
	before, err := takeStock(ctx, r)
	if err != nil {
		return out, err
	}
	if err := r.open(ctx, r.isBound, auditlog.Event{Kind: auditlog.Purge, Phase: auditlog.Started}); err != nil {
		return out, err
	}
	// What somebody asked for and what has a tombstone goes first, whatever Reddit says or fails to say.
	if err := r.honour(ctx, q, before, &out); err != nil {
		return out, err
	}
	// Then what Reddit says is gone. Refused or interrupted in the middle, what is known by then still leaves
	// the dataset and the copies.
	s := newAsker(r)
	failed := r.inGrace(ctx, func(ctx context.Context) error { return r.ask(ctx, s) })
	failed = errors.Join(failed, r.settleUnasked(ctx))
	if ctx.Err() != nil {
		return out, errors.Join(failed, ctx.Err())
	}
	ctx, cancel := r.lastAct(ctx)
	defer cancel()
	if err := r.finishPurge(ctx, before, &out); err != nil {
		if r.stopping() && errors.Is(err, context.DeadlineExceeded) {
			err = state.ErrInterrupted
		}
		return out, errors.Join(failed, err)
	}
	out.Summary, err = state.Status(ctx, r.Workspace, r.Now())
	out.Summary.Back, out.Summary.ReportGone = len(s.back), reported
	out.Summary.Unverified, out.Summary.Before, out.Summary.Stay = len(s.unanswered), r.out.Before, r.out.Stay
	out.Summary.FilesGone, out.Summary.Strays, out.Done = r.out.FilesGone, r.out.Strays, err == nil
	out.Summary.Left = r.out.Left
	if out.Asked && errors.Join(failed, err) == nil && !r.stopping() { // else not all were asked about
		err = r.noteUnanswered(ctx, len(s.unanswered))
	}
	return out, errors.Join(failed, err)
}

// noteUnanswered notes about how many posts the last job that asked about all got no answer, for whoever reads the
// status later.
func (r *run) noteUnanswered(ctx context.Context, n int) error {
	last, err := state.ReadNote[state.LastRun](ctx, r.Workspace)
	if err != nil || last.Unverified == n {
		return err
	}
	last.Unverified = n
	return state.WriteNote(ctx, r.Workspace, last)
}

// tombstones are those of the posts of the request.
func (q PurgeRequest) tombstones(now time.Time) []workspace.Tombstone {
	var stones []workspace.Tombstone
	for _, id := range q.IDs {
		stones = append(stones, workspace.Tombstone{Reason: q.Reason,
			Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: now.UTC().Truncate(time.Second)}})
	}
	return stones
}

// finishPurge does what is left when it is known what is gone.
func (r *run) finishPurge(ctx context.Context, before stock, out *PurgeReport) error {
	// The report can show any image and text, so it goes whole. The next report is made without them.
	if err := r.Workspace.RemoveFile(ctx, workspace.ReportName); err != nil {
		return err
	}
	if err := r.clear(ctx); err != nil {
		return err
	}
	out.Copies = r.copies
	for _, k := range r.dropped {
		out.Same = append(out.Same, k.String())
	}
	gone, err := state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return err
	}
	// The report is made from what is there now, read back, not from what was meant to happen.
	if err := r.report(ctx, before, gone, out); err != nil {
		return err
	}
	return r.notePurge(ctx, *out)
}

// A stock is what a workspace has before a purge.
type stock struct {
	content map[manifest.PostID]bool        // posts with an image or a text
	entries map[manifest.Key]bool           // those of mayLeave
	groups  map[manifest.Key][]manifest.Key // duplicates by the entry that was kept for them
	files   []workspace.File                // of the dataset
	rows    map[string]bool                 // of those
}

func takeStock(ctx context.Context, r *run) (stock, error) {
	s := stock{content: map[manifest.PostID]bool{}, groups: map[manifest.Key][]manifest.Key{}, rows: map[string]bool{}}
	var err error
	s.entries, err = stored(ctx, r.Workspace)
	if err != nil {
		return s, err
	}
	for k := range s.entries {
		s.content[k.ID] = true
	}
	s.entries, err = mayLeave(ctx, r.Workspace)
	if err != nil {
		return s, err
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return s, err
		}
		if rec.Result != nil && rec.Result.DuplicateOf.ID != "" {
			of := rec.Result.DuplicateOf
			s.groups[of] = append(s.groups[of], rec.Key)
		}
	}
	s.files, err = state.Shards(ctx, r.Workspace)
	if err != nil {
		return s, err
	}
	for _, f := range s.files {
		if _, err := state.ReadRows(ctx, r.Workspace, f.Name, s.rows); err != nil {
			r.Log.Warn("a file of the dataset can't be read", "file", f.Name, "error", err)
		}
	}
	return s, ctx.Err()
}

// stored returns the entries that have an image or a text in the workspace.
func stored(ctx context.Context, ws *workspace.Workspace) (map[manifest.Key]bool, error) {
	found := map[manifest.Key]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return nil, err
		}
		if rec.Image != nil || rec.Reading != nil {
			found[rec.Key] = true
		}
	}
	return found, nil
}

// mayLeave returns the entries of stored, and those that are held back: the image of such a one can be lost, and copies
// have its row. It is false for one whose image was removed before: only its post can still go.
func mayLeave(ctx context.Context, ws *workspace.Workspace) (map[manifest.Key]bool, error) {
	found, err := stored(ctx, ws)
	if err != nil {
		return nil, err
	}
	waits, err := state.Withheld(ctx, ws)
	if err != nil || waits.Empty() {
		return found, err
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return nil, err
		}
		if waits.HasRow(rec.Key.String()) {
			found[rec.Key] = found[rec.Key] || !state.WentBefore(rec)
		}
	}
	return found, nil
}

// removedOf returns the posts of those entries that must be gone, in manifest order. A post is in it once, however many
// images it has.
func removedOf(ctx context.Context, ws *workspace.Workspace, entries map[manifest.Key]bool,
	gone state.GoneSet) ([]state.RemovedPost, error) {
	removed, at := []state.RemovedPost{}, map[manifest.PostID]int{}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return nil, err
		}
		row := rec.Key.String()
		post, isGone := gone.Of(row)
		image, known := entries[rec.Key]
		if !isGone || !known || !image && !gone.Has(rec.ID) {
			continue
		}
		i, listed := at[rec.ID]
		if !listed {
			i, at[rec.ID] = len(removed), len(removed)
			removed = append(removed, state.RemovedPost{GonePost: post})
		}
		if !gone.Has(rec.ID) {
			removed[i].Rows = append(removed[i].Rows, row)
		}
	}
	return removed, nil
}

// honour takes down what a request names, and reports what there was of it.
func (r *run) honour(ctx context.Context, q PurgeRequest, before stock, out *PurgeReport) (err error) {
	old := r.stones
	out.Already = q.already(old)
	out.Unknown, err = r.takeDown(ctx, q, before)
	for _, id := range q.IDs {
		if !old.Has(id) && !before.content[id] && !slices.Contains(out.Unknown, id) {
			out.Empty = append(out.Empty, id)
		}
	}
	return err
}

// already are the tombstones that posts of the request have before it.
func (q PurgeRequest) already(stones state.Holding) []state.TombstoneEntry {
	list := []state.TombstoneEntry{}
	for _, id := range q.IDs {
		if t, ok := stones[id]; ok {
			list = append(list, state.TombstoneEntry{ID: t.ID, State: t.State, Time: t.Time, Reason: t.Reason,
				Status: state.TombstoneHolds})
		}
	}
	return list
}

// takeDown gives the posts of a request their tombstones, and erases what there is of all posts that have one. It
// returns the posts of the request that the release does not have.
func (r *run) takeDown(ctx context.Context, q PurgeRequest, before stock) ([]manifest.PostID, error) {
	// A post that has an older tombstone gets the time of the request: a statement that lifts the older one does not
	// name this one.
	if err := r.Workspace.AddTombstones(ctx, q.tombstones(r.Now())); err != nil {
		return nil, err
	}
	if err := r.holdTombstones(ctx); err != nil {
		return nil, err
	}
	unknown := map[manifest.PostID]bool{}
	for _, id := range q.IDs {
		unknown[id] = true
	}
	var erase []manifest.PostID
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return nil, err
		}
		requested := unknown[p.ID]
		delete(unknown, p.ID)
		if !r.stones.Has(p.ID) {
			continue
		}
		// A post without content still has a record of its trouble and of its subreddit to erase.
		if before.content[p.ID] || requested {
			erase = append(erase, p.ID)
		}
	}
	for _, id := range erase {
		if err := r.Workspace.Erase(ctx, id); err != nil {
			return nil, fmt.Errorf("erase %s: %w", id, err)
		}
	}
	return append([]manifest.PostID{}, slices.Sorted(maps.Keys(unknown))...), nil
}

// report compares what there was with what there is.
func (r *run) report(ctx context.Context, before stock, gone state.GoneSet, out *PurgeReport) error {
	files, err := state.Shards(ctx, r.Workspace)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, f := range files {
		if _, err := state.ReadRows(ctx, r.Workspace, f.Name, present); err != nil {
			return fmt.Errorf("read %s back: %w", f.Name, err)
		}
	}
	out.Files = changes(before.files, files)
	if err := r.noRowOf(ctx, gone); err != nil {
		return err
	}
	out.Erased, err = removedOf(ctx, r.Workspace, before.entries, gone)
	if err != nil {
		return err
	}
	out.Erased = r.addLaterGone(out.Erased, gone)
	for _, k := range r.laterGone { // the edition that state.db has lacks it, and the release may have it
		out.Unknown = slices.DeleteFunc(out.Unknown, func(id manifest.PostID) bool { return id == k.ID })
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		name := rec.Key.String()
		if gone.HasRow(name) && (rec.Image != nil || rec.Reading != nil) {
			return fmt.Errorf("content of %s is still there after it was erased: run purge again, and verify", rec.ID)
		}
		if before.rows[name] && !present[name] {
			if gone.HasRow(name) {
				out.Rows = append(out.Rows, name)
			} else {
				out.Others = append(out.Others, name)
			}
			out.Successors = append(out.Successors, successor(before.groups[rec.Key], gone, name)...)
		}
	}
	return nil
}

// noRowOf fails when a shard of the dataset has a row that must go.
func (r *run) noRowOf(ctx context.Context, gone state.GoneSet) error {
	names, err := r.Workspace.Files(ctx, state.DatasetDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !state.IsShard(name) {
			continue // see strays
		}
		if err := state.FileLacksRows(ctx, r.Workspace.OpenFile, name, gone); err != nil {
			return fmt.Errorf("%s: %w: run purge again, and verify", name, err)
		}
	}
	return nil
}

// successor names the first member of the group of an entry that went which can take its place.
func successor(group []manifest.Key, gone state.GoneSet, name string) []Successor {
	for _, k := range group {
		if !gone.HasRow(k.String()) {
			return []Successor{{Gone: name, ID: k.String()}}
		}
	}
	return nil
}

// changes are the files that are not as they were, by name.
func changes(before, after []workspace.File) []FileChange {
	at := map[string]FileChange{}
	for _, f := range before {
		at[f.Name] = FileChange{Name: f.Name, Old: f.SHA256}
	}
	for _, f := range after {
		at[f.Name] = FileChange{Name: f.Name, Old: at[f.Name].Old, New: f.SHA256}
	}
	list := []FileChange{}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		if change := at[name]; change.Old != change.New {
			list = append(list, change)
		}
	}
	return list
}

// notePurge records what a purge did, in as many records as it takes.
func (r *run) notePurge(ctx context.Context, out PurgeReport) error {
	var events []auditlog.Event
	for posts := range slices.Chunk(out.Erased, auditlog.MaxPosts) {
		e := auditlog.Event{Kind: auditlog.Purge}
		for _, p := range posts {
			e.Posts = append(e.Posts, auditlog.Post{ID: p.ID, State: p.State, Reason: p.Reason})
		}
		events = append(events, e)
	}
	for files := range slices.Chunk(out.Files, auditlog.MaxFiles) {
		e := auditlog.Event{Kind: auditlog.Purge}
		for _, f := range files {
			if f.Old != "" {
				e.Old = append(e.Old, auditlog.File{Name: f.Name, SHA256: f.Old})
			}
			e.Files = append(e.Files, auditlog.File{Name: f.Name, SHA256: f.New})
		}
		events = append(events, e)
	}
	return r.Workspace.Note(ctx, append(events, auditlog.Event{Kind: auditlog.Purge, Phase: auditlog.Ended})...)
}
