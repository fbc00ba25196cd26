package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A GonePost is a post that is gone, and why.
type GonePost struct {
	ID     manifest.PostID    `json:"id"`
	State  manifest.PostState `json:"state"`
	Reason manifest.Reason    `json:"reason"`
}

// Four sets of rows must go or stay here, and each has one name:
//
//	MustErase         rows whose content is erased: image, text, hashes and answers of models
//	MustLeaveDataset  rows that the dataset must not have: those, and the ones whose removal waits for a confirmation
//	MustLeaveCopies   rows that registered copies must lose: those of MustErase, those of posts that the policy does not
//	                  allow once they have left the dataset, and those that nobody asks about any more
//	MustHide          rows of which nothing is shown or handed out, neither content nor what it looks like: those of
//	                  MustLeaveDataset, and those that audits heard are gone, which leave it with the next job
//
// An entry whose image showed the same picture as one that was taken down is in all of them once its image was dropped.
// It leaves them when nothing refuses that picture any more, and when it has another image, but for a copy that holds
// the former one (CopySet).

// A GoneSet is one of these sets: of whole posts, and of single entries whose image was removed although the post is
// live. The zero value has none.
type GoneSet struct {
	Posts   map[manifest.PostID]GonePost
	Entries map[string]GonePost // by row
}

// Has reports whether all rows of the post must be gone.
func (g GoneSet) Has(id manifest.PostID) bool { _, ok := g.Posts[id]; return ok }

// HasRow reports whether the row must be gone.
func (g GoneSet) HasRow(row string) bool { _, ok := g.Of(row); return ok }

// Of returns why a row must be gone.
func (g GoneSet) Of(row string) (GonePost, bool) {
	if p, ok := g.Posts[dataset.PostOf(row)]; ok {
		return p, true
	}
	p, ok := g.Entries[row]
	return p, ok
}

// Empty reports whether no row must be gone.
func (g GoneSet) Empty() bool { return len(g.Posts)+len(g.Entries) == 0 }

// add adds what another set has and g does not.
func (g GoneSet) add(more GoneSet) {
	for id, p := range more.Posts {
		if !g.Has(id) {
			g.Posts[id] = p
		}
	}
	for row, p := range more.Entries {
		if _, has := g.Entries[row]; !has {
			g.Entries[row] = p
		}
	}
}

func newGoneSet() GoneSet { return GoneSet{map[manifest.PostID]GonePost{}, map[string]GonePost{}} }

// findGone returns what is gone by what is on record of posts: what is settled, and what waits for a confirmation.
func findGone(ctx context.Context, ws *workspace.Workspace) (settled, withheld GoneSet, err error) {
	settled, withheld = newGoneSet(), newGoneSet()
	take := func(p workspace.Post) {
		switch {
		case p.State.Gone() && p.Withheld:
			withheld.Posts[p.ID] = GonePost{p.ID, p.State, p.Reason}
		case p.State.Gone():
			settled.Posts[p.ID] = GonePost{p.ID, p.State, p.Reason}
		}
	}
	for p, err := range ws.PostsNotLive(ctx) {
		if err != nil {
			return settled, withheld, err
		}
		take(p)
	}
	// Of entries that an older state.db does not have, files, rows and copies can be here.
	later, err := ws.PostsOfNoEntry(ctx)
	if err != nil {
		return settled, withheld, err
	}
	for _, p := range later {
		take(p)
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, Troubles: policy.ImageRemovals()}) {
		if err != nil {
			return settled, withheld, err
		}
		p := GonePost{rec.ID, manifest.StateRemoved, rec.Trouble.Reason}
		if rec.Trouble.Removed() {
			settled.Entries[rec.Key.String()] = p
		} else if rec.Trouble.Withheld() {
			withheld.Entries[rec.Key.String()] = p
		}
	}
	return settled, withheld, nil
}

// gone are the posts that have a tombstone, in the manifest or not.
func (h Holding) gone() GoneSet {
	gone := newGoneSet()
	for id, stone := range h {
		gone.Posts[id] = GonePost{id, stone.State, stone.Reason}
	}
	return gone
}

// MustErase returns the rows whose content is erased: what is gone and does not wait for a confirmation, and every post
// that has one of the tombstones, in the manifest or not.
func MustErase(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) (GoneSet, error) {
	gone, _, err := mustGo(ctx, ws, stones, p) // a withheld post may come back
	return gone, err
}

// mustGo is findGone by tombstones and a policy. An image that was dropped as that of a post that was taken down is
// gone only as long as they refuse it.
func mustGo(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) (settled, withheld GoneSet,
	err error) {
	settled, withheld, err = findGone(ctx, ws)
	if err == nil {
		err = settled.dropAllowed(ctx, ws, stones, p)
	}
	settled.add(stones.gone())
	return settled, withheld, err
}

// dropAllowed takes out the entries whose image was dropped as that of a post that was taken down, and is that of none
// by these tombstones, or is allowed by this policy: the next run fetches it again. Where nothing tells which image it
// was, it stays gone until then.
func (g GoneSet) dropAllowed(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) error {
	same := map[manifest.Key]bool{}
	for row, why := range g.Entries {
		if why.Reason == policy.SameAsRemoved {
			key, err := manifest.ParseKey(row)
			if err != nil {
				return err
			}
			same[key] = true
		}
	}
	if len(same) == 0 {
		return nil
	}
	removed, err := FindRemovedPictures(ctx, ws, stones)
	if err != nil {
		return err
	}
	ids := map[manifest.PostID]bool{}
	for k := range same {
		ids[k.ID] = true
	}
	former, err := ws.FormerImages(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return err
	}
	known, refused := map[manifest.Key]bool{}, map[manifest.Key]bool{}
	for _, e := range former {
		if !e.Erased {
			continue
		}
		known[e.Key] = true
		refused[e.Key] = refused[e.Key] || removed.Refuses(p, e.ID, workspace.Image{OriginalSHA256: e.File,
			SHA256: e.Stripped, PixelsSHA256: e.Pixels}) != nil
	}
	for k := range same {
		if known[k] && !refused[k] {
			delete(g.Entries, k.String())
		}
	}
	return nil
}

// MustLeaveDataset returns the rows that the dataset must not have: those of MustErase, and what waits for a
// confirmation.
func MustLeaveDataset(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) (GoneSet, error) {
	gone, withheld, err := mustGo(ctx, ws, stones, p)
	gone.add(withheld)
	return gone, err
}

// Withheld returns what is gone and waits for a confirmation.
func Withheld(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	_, withheld, err := findGone(ctx, ws)
	return withheld, err
}

// Unconfirmed returns what a confirmation is about: of Withheld, what was one of too many at once.
func Unconfirmed(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	withheld, err := Withheld(ctx, ws)
	if err != nil {
		return withheld, err
	}
	for p, err := range ws.PostsNotLive(ctx) {
		if err != nil {
			return withheld, err
		}
		if !p.Unconfirmed {
			delete(withheld.Posts, p.ID)
		}
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, Troubles: policy.ImageRemovals()}) {
		if err != nil {
			return withheld, err
		}
		if rec.Trouble.Beside != workspace.Unconfirmed {
			delete(withheld.Entries, rec.Key.String())
		}
	}
	return withheld, nil
}

// Heard returns what audits heard is gone that no job has asked about since.
func Heard(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	heard := newGoneSet()
	note, err := ReadNote[HeardNote](ctx, ws)
	if err != nil || len(note) == 0 {
		return heard, err
	}
	ids := slices.Collect(maps.Keys(note))
	// Of entries that an older state.db does not have, files, rows and copies can be here.
	noEntry, has := map[manifest.PostID]workspace.Post{}, map[manifest.Key]bool{}
	for _, id := range ids {
		noEntry[id] = workspace.Post{ID: id}
	}
	onRecord, err := ws.PostsOfNoEntry(ctx, ids...)
	if err != nil {
		return heard, err
	}
	for _, p := range onRecord {
		noEntry[p.ID] = p
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, IDs: ids}) {
		if err != nil {
			return heard, err
		}
		has[rec.Key] = true
		delete(noEntry, rec.ID)
		rec, gone := note.Applied(rec)
		switch {
		case !gone:
		case rec.Post.State.Gone():
			heard.Posts[rec.ID] = GonePost{rec.ID, rec.Post.State, rec.Post.Reason}
		default:
			heard.Entries[rec.Key.String()] = GonePost{rec.ID, manifest.StateRemoved, rec.Trouble.Reason}
		}
	}
	for id, p := range noEntry {
		if h, gone := note.Of(p); gone {
			heard.Posts[id] = GonePost{id, h.State, h.Reason}
		}
	}
	for k, img := range note.images() {
		if !has[k] {
			heard.Entries[k.String()] = GonePost{k.ID, manifest.StateRemoved, img.Reason}
		}
	}
	return heard, nil
}

// MustHide returns the rows of which nothing is shown or handed out: those of MustLeaveDataset, those of Heard, and
// those of other posts that show the same picture as one of these that is to be taken down.
func MustHide(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) (GoneSet, error) {
	if err := ws.CheckCurrent(ctx); err != nil {
		return GoneSet{}, err
	}
	hidden, err := MustLeaveDataset(ctx, ws, stones, p)
	if err != nil {
		return GoneSet{}, err
	}
	heard, err := Heard(ctx, ws)
	if err != nil {
		return GoneSet{}, err
	}
	hidden.add(heard)
	pictures, err := findComing(ctx, ws, hidden, stones)
	if err != nil || len(pictures) == 0 {
		return hidden, err
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Digests: pictures.Digests()}) {
		if err != nil {
			return GoneSet{}, err
		}
		if f := pictures.Refuses(p, rec.ID, *rec.Image); f != nil && !hidden.HasRow(rec.Key.String()) {
			hidden.Entries[rec.Key.String()] = GonePost{rec.ID, manifest.StateRemoved, f.Reason}
		}
	}
	return hidden, nil
}

// findComing finds the pictures of posts that are gone and have none of the tombstones yet: a job that asks, or the
// confirmation, gives them one. Until then their pictures are nobody's to see under the id of another post.
func findComing(ctx context.Context, ws *workspace.Workspace, gone GoneSet, stones Holding) (RemovedPictures, error) {
	coming := Holding{}
	for id, g := range gone.Posts {
		if !stones.Has(id) && policy.TakenDown(g.State, g.Reason) {
			coming[id] = workspace.Tombstone{Reason: g.Reason, Tombstone: manifest.Tombstone{ID: id, State: g.State}}
		}
	}
	if len(coming) == 0 {
		return nil, nil
	}
	return FindRemovedPictures(ctx, ws, coming)
}

// MustHideNow is MustHide by the workspace's own tombstones and the policy of its last run.
func MustHideNow(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	stones, err := HoldingTombstones(ctx, ws)
	if err != nil {
		return GoneSet{}, err
	}
	p, err := LastPolicy(ctx, ws)
	if err != nil {
		return GoneSet{}, err
	}
	return MustHide(ctx, ws, stones, p)
}

// NotShown returns the rows of MustHideNow, and those of posts that Reddit holds back itself, as in quarantine: their
// images are in the workspace, and nobody may see them now.
func NotShown(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	rows, err := MustHideNow(ctx, ws)
	if err != nil {
		return GoneSet{}, err
	}
	for p, err := range ws.PostsNotLive(ctx) {
		if err != nil {
			return GoneSet{}, err
		}
		if !rows.Has(p.ID) {
			rows.Posts[p.ID] = GonePost{p.ID, p.State, p.Reason}
		}
	}
	return rows, nil
}

// LeftManifest is why a row must go whose entry the manifest has no more: nobody asks about its post.
const LeftManifest manifest.Reason = auditlog.LeftManifest

// A CopySet is the rows that registered copies must lose.
type CopySet struct {
	GoneSet // whichever copy has them
	removed RemovedPictures
	policy  policy.Policy
}

// In returns the rows that one copy must lose: also those in which it holds a picture that its entry has no more, which
// was removed from its post or is that of a post that was taken down; and those that it had when the workspace was
// ended.
func (s CopySet) In(c workspace.Copy) GoneSet {
	gone := newGoneSet()
	gone.add(s.GoneSet)
	if StateOfCopy(c) != CopyClosed { // else what lies at its path can be of the workspace that began anew
		gone.add(unasked(c.Ended))
	}
	for row, was := range c.Former {
		id := dataset.PostOf(row)
		if why := cmp.Or(s.refuses(id, was.Digests), was.Left); why != "" && !gone.HasRow(row) {
			gone.Entries[row] = GonePost{id, manifest.StateRemoved, why}
		}
	}
	return gone
}

// refuses says why a post may not have a picture, "" if it may.
func (s CopySet) refuses(id manifest.PostID, d workspace.Digests) manifest.Reason {
	if f := s.removed.Refuses(s.policy, id, workspace.Image{OriginalSHA256: d.File, SHA256: d.Stripped,
		PixelsSHA256: d.Pixels}); f != nil {
		return f.Reason
	}
	return ""
}

// MustLeaveCopiesNow is MustLeaveCopies by the workspace's own tombstones and the policy of its last run.
func MustLeaveCopiesNow(ctx context.Context, ws *workspace.Workspace) (CopySet, error) {
	stones, err := HoldingTombstones(ctx, ws)
	if err != nil {
		return CopySet{}, err
	}
	p, err := LastPolicy(ctx, ws)
	if err != nil {
		return CopySet{}, err
	}
	erased, err := MustErase(ctx, ws, stones, p)
	if err != nil {
		return CopySet{}, err
	}
	return MustLeaveCopies(ctx, ws, erased, stones, p)
}

// MustLeaveCopies returns the rows that registered copies must lose, where these are erased and these tombstones hold:
// they, the rows of posts that the policy does not allow, as in quarantine, once they have left the dataset, those of
// entries that have no image any more and had one which shows a picture that was taken down, the rows whose entries the
// manifest has no more, and after the end of a workspace all of them.
func MustLeaveCopies(ctx context.Context, ws *workspace.Workspace, erased GoneSet, stones Holding,
	p policy.Policy) (CopySet, error) {
	copies, err := ws.Copies(ctx)
	if err != nil || len(copies) == 0 {
		return CopySet{GoneSet: erased}, err
	}
	set := CopySet{GoneSet: newGoneSet(), policy: p}
	set.add(erased)
	held, err := heldRows(ctx, ws)
	if err != nil {
		return set, err
	}
	set.add(held)
	left, former := map[string]bool{}, false
	for _, c := range copies {
		for _, row := range c.Rows {
			left[row] = true
		}
		former = former || len(c.Former) > 0
	}
	posts := map[manifest.PostID]bool{}
	for row := range left {
		posts[dataset.PostOf(row)] = true
	}
	lost, err := ws.LostImages(ctx, slices.Sorted(maps.Keys(posts)))
	if err != nil {
		return set, err
	}
	lost = slices.DeleteFunc(lost, func(f workspace.FormerImage) bool { return !left[f.Key.String()] })
	if former || len(lost) > 0 { // most workspaces have none, and need not look for pictures
		set.removed, err = FindRemovedPictures(ctx, ws, stones)
		if err != nil {
			return set, err
		}
	}
	for _, f := range lost {
		row := f.Key.String()
		if why := set.refuses(f.ID, f.Digests); why != "" && !set.HasRow(row) {
			set.Entries[row] = GonePost{f.ID, manifest.StateRemoved, why}
		}
	}
	rows := slices.Sorted(maps.Keys(left))
	ended, err := ReadNote[EndedNote](ctx, ws)
	if err == nil && ended.At.IsZero() {
		rows, err = ws.Left(ctx, rows)
	}
	set.add(unasked(rows))
	return set, err
}

// unasked are rows about whose posts nobody asks any more.
func unasked(rows []string) GoneSet {
	gone := newGoneSet()
	for _, row := range rows {
		gone.Entries[row] = GonePost{ID: dataset.PostOf(row), State: manifest.StateUnavailable, Reason: LeftManifest}
	}
	return gone
}

// heldRows are the rows of posts that the policy does not allow which are not in the dataset any more.
func heldRows(ctx context.Context, ws *workspace.Workspace) (GoneSet, error) {
	rows, held := newGoneSet(), map[manifest.PostID]GonePost{}
	for p, err := range ws.PostsNotLive(ctx) {
		if err != nil {
			return rows, err
		}
		if p.State == manifest.StateHeld && !p.Withheld {
			held[p.ID] = GonePost{p.ID, p.State, p.Reason}
		}
	}
	if len(held) == 0 {
		return rows, nil
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, IDs: slices.Collect(maps.Keys(held))}) {
		if err != nil {
			return rows, err
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Refused {
			rows.Entries[rec.Key.String()] = held[rec.ID]
		}
	}
	return rows, nil
}

// A RowThere says that a file has a row that must go.
type RowThere struct{ ID string }

func (e *RowThere) Error() string { return fmt.Sprintf("the row of %s is still in it", e.ID) }

// LacksRows reads a file of the kind of name and fails with *RowThere when it has a row that must go.
func LacksRows(ctx context.Context, f io.ReaderAt, size int64, name string, gone GoneSet) error {
	if !dataset.Holds(name) {
		return nil
	}
	for id, err := range dataset.RowIDs(ctx, name, f, size) {
		if err != nil {
			return err
		}
		if gone.HasRow(id) {
			return &RowThere{id}
		}
	}
	return nil
}

// FileLacksRows is LacksRows of the file that open opens.
func FileLacksRows(ctx context.Context, open func(name string) (*os.File, error), name string, gone GoneSet) error {
	if !dataset.Holds(name) { // whatever it is, it need not be readable
		return nil
	}
	return withFile(open, name, func(f *os.File, size int64) error { return LacksRows(ctx, f, size, name, gone) })
}

func withFile(open func(name string) (*os.File, error), name string, do func(f *os.File, size int64) error) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return do(f, info.Size())
}

// Shards returns the Parquet files of the dataset as they lie there.
func Shards(ctx context.Context, ws *workspace.Workspace) ([]workspace.File, error) {
	names, err := ws.Files(ctx, DatasetDir)
	if err != nil {
		return nil, err
	}
	var files []workspace.File
	for _, name := range names {
		if !IsShard(name) {
			continue
		}
		f, err := ws.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// ReadRows adds the ids of the rows of a file of the dataset to present, unless that is nil, and returns what made it.
func ReadRows(ctx context.Context, ws *workspace.Workspace, name string,
	present map[string]bool) (made dataset.Provenance, err error) {
	rows := map[string]bool{}
	err = withFile(ws.OpenFile, name, func(f *os.File, size int64) error {
		for id, err := range dataset.RowIDs(ctx, name, f, size) {
			if present == nil {
				break
			}
			if err != nil {
				return err
			}
			rows[id] = true
		}
		made, err = dataset.ReadProvenance(f, size)
		return err
	})
	if err == nil { // half a file says nothing of the other half
		maps.Copy(present, rows)
	}
	return made, err
}

// RowsOf yields the rows of a Parquet file of the dataset.
func RowsOf(ctx context.Context, ws *workspace.Workspace, name string) iter.Seq2[dataset.Row, error] {
	return func(yield func(dataset.Row, error) bool) {
		err := withFile(ws.OpenFile, name, func(f *os.File, size int64) error {
			for row, err := range dataset.ReadOwn(f, size) {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return err
				}
				if !yield(row, nil) {
					return errEnough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(dataset.Row{}, fmt.Errorf("read %s: %w", name, err))
		}
	}
}

var errEnough = errors.New("no more rows are wanted")

// Rows yields the kept rows of one split in manifest order, as every format of the dataset has them.
func Rows(ctx context.Context, ws *workspace.Workspace, p policy.Policy, split string) iter.Seq2[dataset.Row, error] {
	return func(yield func(dataset.Row, error) bool) {
		for rec, err := range ws.Records(ctx, workspace.Select{Split: split}) {
			if err == nil && (rec.Result == nil || rec.Result.Outcome != manifest.Kept) {
				continue
			}
			var row dataset.Row
			if err == nil {
				row, err = rowOf(ctx, ws, p, rec)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func rowOf(ctx context.Context, ws *workspace.Workspace, p policy.Policy, rec workspace.Record) (dataset.Row, error) {
	body, err := ws.ReadImage(ctx, rec.Key, *rec.Image)
	if err != nil {
		return dataset.Row{}, err
	}
	filter := ""
	if rec.Result.Flagged() {
		filter = string(rec.Result.Reason)
	}
	return dataset.Row{
		ID: rec.Key.String(), Image: body, Path: path.Base(ws.ImageName(rec.Key, rec.Image.Format)),
		Text: ShownReading(*rec.Reading, p).Text, Confidence: rec.Reading.Confidence,
		Width: rec.Image.Width, Height: rec.Image.Height, SHA256: rec.Image.SHA256,
		PHash: fmt.Sprintf("%016x", rec.Image.PHash), Filter: filter, Labels: rec.Labels, Values: rec.Values,
	}, nil
}
