package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A PurgeRequest says what a purge is asked for beyond what Reddit and the tombstones say.
type PurgeRequest struct {
	Offline bool              // ask nobody: what the workspace knows decides
	IDs     []manifest.PostID // posts that must go because somebody asked for it, whatever Reddit says
	Reason  manifest.Reason   // of IDs
}

// A PurgeReport is what a purge did. Lists are in manifest order, or in order of the names.
type PurgeReport struct {
	Asked  bool             `json:"asked"`  // Reddit was asked about every post
	Erased []state.GonePost `json:"erased"` // posts of which the workspace had an image or a text
	Rows   []string         `json:"rows"`   // ids of rows that left the dataset, for whatever reason
	// Successors are duplicates that took the place of a row that went.
	Successors []Successor        `json:"successors"`
	Files      []FileChange       `json:"files"`  // of the dataset, that were written anew or removed
	Copies     []state.CopyReport `json:"copies"` // all that are registered and not closed
	// Unknown are posts of the request that the release does not have. They have a tombstone now.
	Unknown []manifest.PostID `json:"unknown"`
	Summary state.Summary     `json:"summary"`
}

// A Successor is the entry that a group of near-duplicates keeps now.
type Successor struct {
	Gone string `json:"gone"` // the entry that was kept
	ID   string `json:"id"`
	// Stored says that it is in the dataset already; else the next run decides on it, and fetches its
	// image from its own URL where that is not stored.
	Stored bool `json:"in_dataset"`
}

// A FileChange is a file that was written anew. New is "" where it was removed.
type FileChange struct {
	Name string `json:"name"`
	Old  string `json:"old_sha256"`
	New  string `json:"new_sha256"`
}

// purge is what a purge knows beside the run that it is.
type purge struct {
	// present are the rows that the dataset has: no others may come in, but for successors.
	present map[string]bool
	made    dataset.Provenance
	files   []workspace.File         // of the dataset when the purge began
	asked   map[manifest.PostID]bool // for what posts somebody asked
}

// Purge removes what must go, wherever the workspace has it: image, text, hashes, report, the rows in its
// dataset and in the registered copies that it can reach. It needs no OCR pool and, where q.Offline, no
// Reddit client. It works without a grant: Config.Access only decides whether a duplicate may
// take the place of a row that went. No other row comes into the dataset.
//
// Killed anywhere it is completed by the next Purge, and in no state in between is a removed row to
// be exported: a post's state changes before its content goes. The errors are those of Run; what was
// known to be gone by then is purged all the same.
func Purge(ctx context.Context, c Config, q PurgeRequest) (PurgeReport, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = NewProgress(nil)
	}
	r := &run{Config: c, purge: &purge{asked: map[manifest.PostID]bool{}}, unanswered: map[manifest.PostID]bool{}, abouts: map[string]policy.Community{}}
	out := PurgeReport{Asked: !q.Offline, Erased: []state.GonePost{}, Rows: []string{}, Successors: []Successor{}, Files: []FileChange{}, Unknown: []manifest.PostID{}}
	before, err := r.stock(ctx)
	if err != nil {
		return out, err
	}
	if err := r.openPurge(ctx); err != nil {
		return out, err
	}
	if err := r.buryAsked(ctx, q); err != nil {
		return out, err
	}
	if out.Unknown, err = r.eraseBuried(ctx, before); err != nil {
		return out, err
	}
	_, failed := r.inGrace(ctx, func(ctx context.Context) (exported, error) { return exported{}, r.look(ctx, q) })
	if ctx.Err() != nil {
		return out, errors.Join(failed, ctx.Err())
	}
	if r.stopping() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastAct)
		defer cancel()
	}
	if err := r.clear(ctx, before, &out); err != nil {
		if r.stopping() && errors.Is(err, context.DeadlineExceeded) {
			err = state.ErrInterrupted
		}
		return out, errors.Join(failed, err)
	}
	out.Summary, err = state.Status(ctx, c.Workspace, c.Now())
	out.Summary.Unverified = len(r.unanswered)
	return out, errors.Join(failed, err)
}

// openPurge reads what the dataset is and opens the run.
func (r *run) openPurge(ctx context.Context) error {
	if err := r.readPresent(ctx); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	return r.Workspace.Note(ctx, auditlog.Event{Kind: auditlog.Purge, Phase: auditlog.Started})
}

// asked are the posts of the request, as they are once they are gone.
func (r *run) asked(q PurgeRequest) []workspace.Post {
	now := r.Now().UTC().Truncate(time.Second)
	posts := make([]workspace.Post, len(q.IDs))
	for i, id := range q.IDs {
		posts[i] = workspace.Post{ID: id, State: manifest.StateRemoved, Reason: q.Reason, CheckedAt: now}
	}
	return posts
}

// buryAsked puts a tombstone on each post of the request. One that has an older one gets the time of the
// request, so that no statement lifts it that was written before.
func (r *run) buryAsked(ctx context.Context, q PurgeRequest) error {
	var stones []workspace.Tombstone
	for _, p := range r.asked(q) {
		r.purge.asked[p.ID] = true
		stones = append(stones, workspace.Tombstone{Reason: p.Reason, Tombstone: manifest.Tombstone{ID: p.ID, State: p.State, Time: p.CheckedAt}})
	}
	if err := r.Workspace.AddTombstones(ctx, stones); err != nil {
		return err
	}
	return r.exhume(ctx)
}

// look asks Reddit about every post and settles what is gone. Offline it settles what the operator
// confirms, and nothing else: half a sweep of an earlier run can't tell a mass removal from a few.
func (r *run) look(ctx context.Context, q PurgeRequest) error {
	r.Progress.stage("ask about every post")
	if !q.Offline {
		noMore := func(context.Context, workspace.Post, reddit.Answer) error { return nil }
		err := r.sweep(ctx, &sweep{then: noMore}, everyPost)
		if err == nil && r.stopping() {
			err = state.ErrInterrupted
		}
		return err
	}
	if err := r.takeStock(ctx); err != nil || !r.ConfirmRemovals {
		return err
	}
	return r.settle(ctx)
}

// clear does what is left when it is known which posts are gone.
func (r *run) clear(ctx context.Context, before stock, out *PurgeReport) error {
	gone, err := state.MustGo(ctx, r.Workspace, r.buried)
	if err != nil {
		return err
	}
	if err := r.Workspace.RemoveFile(ctx, workspace.ReportName); err != nil {
		return err
	}
	if err := r.rewriteDataset(ctx); err != nil {
		return err
	}
	r.Progress.stage("copies")
	if out.Copies, err = r.purgeCopies(ctx, gone); err != nil {
		return err
	}
	if err := r.tellPurge(ctx, before, gone, out); err != nil {
		return err
	}
	return r.notePurge(ctx, *out)
}

// A stock is what a workspace has before a purge.
type stock struct {
	content map[manifest.PostID]bool        // posts with an image or a text
	groups  map[manifest.Key][]manifest.Key // duplicates by the entry that was kept for them
}

func (r *run) stock(ctx context.Context) (stock, error) {
	s := stock{content: map[manifest.PostID]bool{}, groups: map[manifest.Key][]manifest.Key{}}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return s, err
		}
		if rec.Image != nil || rec.Reading != nil {
			s.content[rec.ID] = true
		}
		if rec.Result != nil && rec.Result.DuplicateOf.ID != "" {
			of := rec.Result.DuplicateOf
			s.groups[of] = append(s.groups[of], rec.Key)
		}
	}
	return s, nil
}

// eraseBuried erases what there is of posts that have a tombstone: nothing of them waits for a confirmation.
// It returns the posts of the request that the release does not have.
func (r *run) eraseBuried(ctx context.Context, before stock) ([]manifest.PostID, error) {
	var settled []workspace.Post
	var erase []manifest.PostID
	unknown := maps.Clone(r.purge.asked)
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return nil, err
		}
		delete(unknown, p.ID)
		// Of a post that has no content there is still why it has none, and where it was made.
		if _, buried := r.buried[p.ID]; buried && (before.content[p.ID] || r.purge.asked[p.ID]) {
			erase = append(erase, p.ID)
		}
		if _, buried := r.buried[p.ID]; buried && p.Withheld {
			p.Withheld = false
			settled = append(settled, p)
		}
	}
	if err := r.Workspace.SetPosts(ctx, settled); err != nil {
		return nil, err
	}
	for _, id := range erase {
		if err := r.Workspace.Erase(ctx, id); err != nil {
			return nil, fmt.Errorf("erase %s: %w", id, err)
		}
	}
	return append([]manifest.PostID{}, slices.Sorted(maps.Keys(unknown))...), nil
}

// readPresent reads which rows the dataset has and what made it. A file that can't be read has no rows:
// it is written without them, and the next run brings back those that may stay.
func (r *run) readPresent(ctx context.Context) error {
	p := r.purge
	var err error
	if p.files, err = state.Shards(ctx, r.Workspace); err != nil {
		return err
	}
	unfinished, err := state.ReadNote[state.PurgingNote](ctx, r.Workspace)
	if err != nil {
		return err
	}
	p.present = map[string]bool{}
	for _, id := range unfinished {
		p.present[id] = true
	}
	for _, f := range p.files {
		made, err := state.ReadRows(ctx, r.Workspace, f.Name, p.present)
		if err != nil {
			r.Log.Warn("a file of the dataset can't be read and is rewritten", "file", f.Name, "error", err)
			continue
		}
		p.made = made
	}
	return ctx.Err()
}

// stays tells whether a row that is kept by all that is known may be in the dataset that a purge
// writes: it was there, or it takes the place of a duplicate that went and could be exported now.
func (r *run) stays(rec workspace.Record) bool {
	last := rec.Result
	switch {
	case rec.Post.Unseen || last == nil:
		return false
	case r.purge.present[rec.Key.String()]:
		return true
	}
	// One that is kept already was given the place by a purge, or a run, that was killed then.
	return (last.Outcome == manifest.Duplicate || last.Outcome == manifest.Kept) &&
		r.access() == nil && !r.Policy.Stale(rec.Post.LiveAt, r.Now())
}

// decideForExport decides every outcome. A purge notes first which rows the dataset has, so that one that
// goes on after a kill knows it although a part of the files is missing; any other run takes that note away.
func (r *run) decideForExport(ctx context.Context) error {
	var err error
	if r.purge == nil {
		err = state.ClearNote[state.PurgingNote](ctx, r.Workspace)
	} else {
		err = state.WriteNote(ctx, r.Workspace, state.PurgingNote(slices.Sorted(maps.Keys(r.purge.present))))
	}
	if err != nil {
		return err
	}
	return r.decide(ctx)
}

// decide gives every entry its outcome and stores them all.
func (r *run) decide(ctx context.Context) (err error) {
	r.Progress.stage("dedupe")
	j := state.Judge{Policy: r.Policy, Tombstones: r.buried, Now: r.Now(), AnyAge: r.purge != nil}
	var admit func(workspace.Record) bool
	switch {
	case r.purge != nil:
		admit = r.stays
	case r.withdrawing:
		admit = func(rec workspace.Record) bool { return rec.Result != nil && rec.Result.Outcome == manifest.Kept }
	}
	r.guardSpares, err = j.Decide(ctx, r.Workspace, r.Language, admit)
	return err
}

// judge is the outcome of a record as far as it can be told while the run goes on.
func (r *run) judge(rec workspace.Record) manifest.Result {
	return state.Judge{Policy: r.Policy, Tombstones: r.buried, Now: r.Now()}.Outcome(rec)
}

// checkRows makes the check that a new file of the dataset goes through before it takes its name: it
// is read back, and no row of a post that is gone may be in it.
func (r *run) checkRows(ctx context.Context) (func(name string) func(io.ReaderAt, int64) error, error) {
	gone := map[manifest.PostID]bool{}
	for id := range r.buried {
		gone[id] = true
	}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return nil, err
		}
		if p.State.Gone() {
			gone[p.ID] = true
		}
	}
	return func(name string) func(io.ReaderAt, int64) error {
		if !dataset.Holds(name) {
			return nil
		}
		return func(f io.ReaderAt, size int64) error {
			for id, err := range dataset.RowIDs(ctx, name, f, size) {
				if err != nil {
					return err
				}
				if gone[dataset.PostOf(id)] {
					return fmt.Errorf("the row of %s is in it, whose post is gone", id)
				}
			}
			return nil
		}
	}, nil
}

// provenance is that of the run, with the engine that made the dataset: a purge starts none.
func (p *purge) provenance(r *run) dataset.Provenance {
	now := *r
	now.purge = nil
	made := now.provenance()
	made.OCREngine, made.OCRModel, made.OCRParameters = p.made.OCREngine, p.made.OCRModel, p.made.OCRParameters
	made.ToolVersion, made.GoVersion = p.made.ToolVersion, p.made.GoVersion
	return made
}

// rewriteDataset decides anew what is kept of the live posts and writes outcomes and dataset. Before
// the first export there is nothing to write.
func (r *run) rewriteDataset(ctx context.Context) error {
	judged := false
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if judged = rec.Result != nil; judged {
			break
		}
	}
	// A manifest that shares no entry with the last one leaves no outcome, and a dataset all the same.
	if !judged && len(r.purge.files) == 0 {
		return nil
	}
	if _, err := r.write(ctx); err != nil {
		return err
	}
	return state.ClearNote[state.PurgingNote](ctx, r.Workspace)
}

// tellPurge compares what there was with what there is.
func (r *run) tellPurge(ctx context.Context, before stock, gone state.GoneSet, out *PurgeReport) error {
	after, err := r.stock(ctx)
	if err != nil {
		return err
	}
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
	out.Files = changes(r.purge.files, files)
	if err := r.noRowOf(ctx, gone); err != nil {
		return err
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		id, name := rec.ID, rec.Key.String()
		switch post, isGone := gone[id]; {
		case isGone && before.content[id] && !after.content[id]:
			out.Erased = append(out.Erased, post)
			before.content[id] = false // once a post
		case isGone && after.content[id]:
			return fmt.Errorf("content of %s is still there after it was erased: run purge again, and verify", id)
		}
		if r.purge.present[name] && !present[name] {
			out.Rows = append(out.Rows, name)
			out.Successors = append(out.Successors, r.successors(before.groups[rec.Key], gone, name, present)...)
		}
	}
	return nil
}

// noRowOf fails when a file in the dataset's folder, whoever put it there, has a row that must go.
func (r *run) noRowOf(ctx context.Context, gone state.GoneSet) error {
	names, err := r.Workspace.Files(ctx, state.DatasetDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !dataset.Holds(name) {
			continue
		}
		mend := "run purge again, and verify"
		if !state.IsShard(name) {
			mend = "no run wrote that file: look at it, and move it out of the workspace or delete it"
		}
		if err := r.lacks(ctx, name, gone); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, mend)
		}
	}
	return nil
}

// lacks reads a file of the workspace and fails with *state.RowThere when a row is in it that must go.
func (r *run) lacks(ctx context.Context, name string, gone state.GoneSet) error {
	f, err := r.Workspace.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return state.LacksRows(ctx, f, info.Size(), name, gone)
}

// successors names the member of the group of an entry that went which has its place now, or else the first live one.
func (r *run) successors(group []manifest.Key, gone state.GoneSet, name string, present map[string]bool) []Successor {
	for _, k := range group {
		if now := k.String(); present[now] && !r.purge.present[now] {
			return []Successor{{Gone: name, ID: now, Stored: true}}
		}
	}
	for _, k := range group {
		if !gone.Has(k.ID) {
			return []Successor{{Gone: name, ID: k.String(), Stored: present[k.String()]}}
		}
	}
	return nil
}

// changes are the files that are not as they were.
func changes(before, after []workspace.File) []FileChange {
	list := []FileChange{}
	for _, old := range before {
		at := slices.IndexFunc(after, func(f workspace.File) bool { return f.Name == old.Name })
		switch {
		case at < 0:
			list = append(list, FileChange{old.Name, old.SHA256, ""})
		case after[at].SHA256 != old.SHA256:
			list = append(list, FileChange{old.Name, old.SHA256, after[at].SHA256})
		}
	}
	for _, f := range after {
		if !slices.ContainsFunc(before, func(old workspace.File) bool { return old.Name == f.Name }) {
			list = append(list, FileChange{f.Name, "", f.SHA256})
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
