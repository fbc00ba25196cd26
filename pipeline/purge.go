package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A PurgeRequest says what a purge is asked for beyond what Reddit and the tombstones say.
type PurgeRequest struct {
	Offline bool              // ask nobody: what the workspace knows decides
	IDs     []manifest.PostID // posts that must go because somebody asked for it, whatever Reddit says
	Reason  manifest.Reason   // of IDs
}

// ReasonTakedown is the reason of a post that was purged by request.
const ReasonTakedown manifest.Reason = "takedown"

// A PurgeReport is what a purge did. Lists are in manifest order, or in order of the names.
type PurgeReport struct {
	Asked  bool         `json:"asked"`  // Reddit was asked about every post
	Erased []PurgedPost `json:"erased"` // posts of which the workspace had an image or a text
	Rows   []string     `json:"rows"`   // ids of rows that left the dataset, for whatever reason
	// Successors are duplicates that took the place of a row that went.
	Successors []Successor  `json:"successors"`
	Files      []FileChange `json:"files"`  // of the dataset, that were written anew or removed
	Copies     []CopyReport `json:"copies"` // all that are registered and not closed
	// Unknown are posts of the request that the release does not have. They have a tombstone now.
	Unknown []manifest.PostID `json:"unknown"`
	Summary Summary           `json:"summary"`
}

// A PurgedPost is a post that is gone, and why.
type PurgedPost struct {
	ID     manifest.PostID    `json:"id"`
	State  manifest.PostState `json:"state"`
	Reason manifest.Reason    `json:"reason"`
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

// purgingKey is the workspace's note of the rows that the dataset had when a purge began to write it anew. It
// is there until the purge is done: in between some of the files may be missing.
const purgingKey = "purging"

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
	out := PurgeReport{Asked: !q.Offline, Erased: []PurgedPost{}, Rows: []string{}, Successors: []Successor{}, Files: []FileChange{}, Unknown: []manifest.PostID{}}
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
			err = ErrInterrupted
		}
		return out, errors.Join(failed, err)
	}
	out.Summary, err = Status(ctx, c.Workspace, c.Now())
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
			err = ErrInterrupted
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
	gone, err := r.mustGo(ctx)
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

// A goneSet has the posts of which no row may be anywhere.
type goneSet map[manifest.PostID]PurgedPost

func (g goneSet) has(id manifest.PostID) bool { _, ok := g[id]; return ok }

// mustGo are the posts that have a tombstone, in the manifest or not, and those that are gone without
// one. What is withheld may come back, and is none of them.
func (r *run) mustGo(ctx context.Context) (goneSet, error) {
	gone := goneSet{}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return nil, err
		}
		if p.State.Gone() && !p.Withheld {
			gone[p.ID] = PurgedPost{p.ID, p.State, p.Reason}
		}
	}
	for id, stone := range r.buried {
		if _, ok := gone[id]; !ok {
			gone[id] = PurgedPost{id, stone.State, stone.Reason}
		}
	}
	return gone, nil
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

// datasetFiles are the Parquet files of the dataset as they lie there: those with names that a run gives.
// A file that somebody put beside them is none, and tells nothing of what rows the dataset has.
func (r *run) datasetFiles(ctx context.Context) ([]workspace.File, error) {
	names, err := r.Workspace.Files(ctx, datasetDir)
	if err != nil {
		return nil, err
	}
	var files []workspace.File
	for _, name := range names {
		if !isShard(name) {
			continue
		}
		f, err := r.Workspace.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// readPresent reads which rows the dataset has and what made it. A file that can't be read has no rows:
// it is written without them, and the next run brings back those that may stay.
func (r *run) readPresent(ctx context.Context) error {
	p := r.purge
	var err error
	if p.files, err = r.datasetFiles(ctx); err != nil {
		return err
	}
	note, err := r.Workspace.Meta(ctx, purgingKey)
	if err != nil {
		return err
	}
	p.present = map[string]bool{}
	if note != "" {
		var rows []string
		if err := json.Unmarshal([]byte(note), &rows); err != nil {
			return fmt.Errorf("read the note of an unfinished purge: %w", err)
		}
		for _, id := range rows {
			p.present[id] = true
		}
	}
	for _, f := range p.files {
		if err := r.readRows(ctx, f.Name, p); err != nil {
			r.Log.Warn("a file of the dataset can't be read and is written anew", "file", f.Name, "error", err)
		}
	}
	return ctx.Err()
}

func (r *run) readRows(ctx context.Context, name string, p *purge) error {
	f, err := r.Workspace.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	rows := map[string]bool{}
	for id, err := range dataset.RowIDs(ctx, name, f, info.Size()) {
		if err != nil {
			return err
		}
		rows[id] = true
	}
	made, err := dataset.ReadProvenance(f, info.Size())
	if err != nil {
		return err
	}
	p.made = made
	for id := range rows {
		p.present[id] = true
	}
	return nil
}

// stays tells whether a row that is kept by all that is known may be in the dataset that a purge
// writes: it was there, or it takes the place of a duplicate that went and could be exported now.
func (r *run) stays(rec workspace.Record) bool {
	last := rec.Result
	switch {
	case rec.Post.Unseen || last == nil:
		return false
	case r.purge.present[entryName(rec.Key)]:
		return true
	}
	// One that is kept already was given the place by a purge, or a run, that was killed then.
	return (last.Outcome == manifest.Duplicate || last.Outcome == manifest.Kept) &&
		r.access() == nil && !r.Policy.Stale(rec.Post.LiveAt, r.Now())
}

// decideForExport decides every outcome. A purge notes first which rows the dataset has, so that one that
// goes on after a kill knows it although a part of the files is missing; any other run takes that note away.
func (r *run) decideForExport(ctx context.Context) error {
	note := ""
	if r.purge != nil {
		rows, err := json.Marshal(slices.Sorted(maps.Keys(r.purge.present)))
		if err != nil {
			return err
		}
		note = string(rows)
	}
	last, err := r.Workspace.Meta(ctx, purgingKey)
	if err == nil && last != note {
		err = r.Workspace.SetMeta(ctx, purgingKey, note)
	}
	if err != nil {
		return err
	}
	return r.decide(ctx)
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
	return r.Workspace.SetMeta(ctx, purgingKey, "")
}

// tellPurge compares what there was with what there is.
func (r *run) tellPurge(ctx context.Context, before stock, gone goneSet, out *PurgeReport) error {
	after, err := r.stock(ctx)
	if err != nil {
		return err
	}
	now := &purge{}
	files, err := r.datasetFiles(ctx)
	if err != nil {
		return err
	}
	now.present = map[string]bool{}
	for _, f := range files {
		if err := r.readRows(ctx, f.Name, now); err != nil {
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
		id, name := rec.ID, entryName(rec.Key)
		switch post, isGone := gone[id]; {
		case isGone && before.content[id] && !after.content[id]:
			out.Erased = append(out.Erased, post)
			before.content[id] = false // once a post
		case isGone && after.content[id]:
			return fmt.Errorf("content of %s is still there after it was erased: run purge again, and verify", id)
		}
		if r.purge.present[name] && !now.present[name] {
			out.Rows = append(out.Rows, name)
			out.Successors = append(out.Successors, r.successors(before.groups[rec.Key], gone, name, now.present)...)
		}
	}
	return nil
}

// noRowOf fails when a file in the dataset's folder, whoever put it there, has a row that must go.
func (r *run) noRowOf(ctx context.Context, gone goneSet) error {
	names, err := r.Workspace.Files(ctx, datasetDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !dataset.Holds(name) {
			continue
		}
		mend := "run purge again, and verify"
		if !isShard(name) {
			mend = "no run wrote that file: look at it, and move it out of the workspace or delete it"
		}
		if err := r.lacks(ctx, name, gone); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, mend)
		}
	}
	return nil
}

// lacks reads a file of the workspace and fails with *rowThere when a row is in it that must go.
func (r *run) lacks(ctx context.Context, name string, gone goneSet) error {
	f, err := r.Workspace.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return lacksRows(ctx, f, name, gone)
}

// lacksRows fails with *rowThere when a row that must go is in f, which is a file of the kind of name.
func lacksRows(ctx context.Context, f *os.File, name string, gone goneSet) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for id, err := range dataset.RowIDs(ctx, name, f, info.Size()) {
		if err != nil {
			return err
		}
		if gone.has(dataset.PostOf(id)) {
			return &rowThere{id}
		}
	}
	return nil
}

// successors names the member of the group of an entry that went which has its place now, or else the first live one.
func (r *run) successors(group []manifest.Key, gone goneSet, name string, present map[string]bool) []Successor {
	for _, k := range group {
		if now := entryName(k); present[now] && !r.purge.present[now] {
			return []Successor{{Gone: name, ID: now, Stored: true}}
		}
	}
	for _, k := range group {
		if !gone.has(k.ID) {
			return []Successor{{Gone: name, ID: entryName(k), Stored: present[entryName(k)]}}
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
