package state

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
)

// A HeardNote has what audits heard is gone. Nothing of it is handed out, and the next job takes the answers over. A
// workspace takes it over from its log, where that is newer than state.db.
type HeardNote auditlog.Heard

// Of returns what an audit heard of a post that is gone, unless a job has asked since.
func (n HeardNote) Of(p workspace.Post) (auditlog.HeardPost, bool) {
	h, heard := n.since(p)
	return h, heard && h.State.Gone()
}

// since returns what an audit heard of a post that is not known to be gone, unless a job has asked since which could
// settle it.
func (n HeardNote) since(p workspace.Post) (auditlog.HeardPost, bool) {
	h, heard := n[p.ID]
	return h, heard && !p.State.Gone() && (h.Later || !p.CheckedAt.After(h.At))
}

// Applied is a record as it is by what audits heard, and reports whether its post or its image is gone by that.
func (n HeardNote) Applied(rec workspace.Record) (after workspace.Record, gone bool) {
	h, heard := n.since(rec.Post)
	if !heard {
		return rec, false
	}
	if h.State.Gone() {
		rec.Post.State, rec.Post.Reason = h.State, h.Reason
		return rec, true
	}
	img, gone := h.Images[rec.Key.Image]
	if gone {
		rec.Trouble = &workspace.Trouble{Outcome: manifest.Gone, Reason: img.Reason, Beside: workspace.Waiting, At: img.Since}
	}
	return rec, gone
}

// Answer is what an audit heard of an entry that is gone by that, and when; false for none.
func (n HeardNote) Answer(rec workspace.Record) (c Conclusion, at time.Time, gone bool) {
	rec, gone = n.Applied(rec)
	switch {
	case !gone:
	case rec.Post.State.Gone():
		c = Conclusion{Outcome: manifest.Outcome(rec.Post.State), Reason: rec.Post.Reason}
	default:
		c = Conclusion{Outcome: rec.Trouble.Outcome, Reason: rec.Trouble.Reason}
	}
	return c, n[rec.ID].At, gone
}

// images yields what audits heard of images of posts that stay.
func (n HeardNote) images() iter.Seq2[manifest.Key, auditlog.HeardImage] {
	return func(yield func(manifest.Key, auditlog.HeardImage) bool) {
		for id, h := range n {
			for image, img := range h.Images {
				if !yield(manifest.Key{ID: id, Image: image}, img) {
					return
				}
			}
		}
	}
}

// HearLater adds that an image whose entry a workspace does not have was removed from its post.
func (n HeardNote) HearLater(k manifest.Key, post manifest.PostState, reason manifest.Reason, at time.Time) {
	at = at.UTC().Truncate(time.Second)
	h, heard := n[k.ID]
	if !heard || h.State.Gone() {
		h = auditlog.HeardPost{State: post, At: at}
	}
	h.Later, h.Images = true, maps.Clone(h.Images)
	if h.Images == nil {
		h.Images = map[int]auditlog.HeardImage{}
	}
	h.Images[k.Image] = auditlog.HeardImage{Reason: reason, Since: at}
	n[k.ID] = h
}

// OfNoEntry is what audits heard of images whose entries a workspace does not have.
func (n HeardNote) OfNoEntry(ctx context.Context, ws *workspace.Workspace) (HeardNote, error) {
	left := HeardNote{}
	for k, img := range n.images() {
		h := n[k.ID]
		h.Later, h.Images = true, map[int]auditlog.HeardImage{}
		if was, is := left[k.ID]; is {
			h = was
		}
		h.Images[k.Image], left[k.ID] = img, h
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, IDs: slices.Collect(maps.Keys(left))}) {
		if err != nil {
			return nil, err
		}
		delete(left[rec.ID].Images, rec.Key.Image)
	}
	maps.DeleteFunc(left, func(_ manifest.PostID, h auditlog.HeardPost) bool { return len(h.Images) == 0 })
	return left, nil
}

// RecordAudit notes what an audit heard, and stores its records in the log. The note comes first: killed between the
// two, what is gone is taken out by the next job, which records it.
func RecordAudit(ctx context.Context, ws *workspace.Workspace, at time.Time, records []auditlog.Event) error {
	if err := NoteAudit(ctx, ws, at, records); err != nil {
		return err
	}
	return ws.Note(ctx, records...)
}

// NoteAudit notes what an audit heard by its records, at their time where they have one: posts and images that are
// gone, and posts of which an earlier audit said so and which are live.
func NoteAudit(ctx context.Context, ws *workspace.Workspace, at time.Time, records []auditlog.Event) error {
	note, err := ReadNote[HeardNote](ctx, ws)
	if err != nil {
		return err
	}
	if note == nil {
		note = HeardNote{}
	}
	changed, heard := false, auditlog.Heard(note)
	for _, e := range records {
		heard.Hear(e, cmp.Or(e.Time, at))
		changed = changed || len(e.Posts) > 0
	}
	heard.DropBack()
	if !changed {
		return nil
	}
	return WriteNote(ctx, ws, note)
}
