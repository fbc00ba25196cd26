package state

import (
	"cmp"
	"context"
	"maps"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A HeardNote has what audits heard is gone, posts and images of live posts: Reddit answered them and no job yet.
// Nothing of it is handed out, and the next job takes the answers over.
type HeardNote map[manifest.PostID]HeardPost

// A HeardPost is what Reddit answered an audit of a post.
type HeardPost struct {
	State  manifest.PostState `json:"state"` // live where only images are gone
	Reason manifest.Reason    `json:"reason"`
	At     time.Time          `json:"at"`                // of the last answer
	Since  time.Time          `json:"since,omitzero"`    // of the first one that it is gone
	Images map[int]HeardImage `json:"images,omitempty"`  // of a live post, those that were removed from it
	CutOff bool               `json:"cut_off,omitempty"` // only audits said so that did not ask about every post

	back     map[int]HeardImage // what was taken back with the post
	backWith string             // by the audit with this statement, which may say anew that some of these are gone
}

// A HeardImage is what Reddit answered an audit of an image that was removed from a post that is live.
type HeardImage struct {
	Reason manifest.Reason `json:"reason"`
	Since  time.Time       `json:"since"` // of the first such answer
}

// Of returns what an audit heard of a post that is gone, unless a job has asked since.
func (n HeardNote) Of(p workspace.Post) (HeardPost, bool) {
	h, heard := n.since(p)
	return h, heard && h.State.Gone()
}

// since returns what an audit heard of a post that is not known to be gone, unless a job has asked since.
func (n HeardNote) since(p workspace.Post) (HeardPost, bool) {
	h, heard := n[p.ID]
	return h, heard && !p.State.Gone() && !p.CheckedAt.After(h.At)
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

// Hear takes the record of an audit in which Reddit answered at a time. What it says of a post stands in the place of
// what earlier ones said of it and its images.
func (n HeardNote) Hear(e auditlog.Event, at time.Time) {
	at = at.UTC().Truncate(time.Second)
	for _, p := range e.Posts {
		was := n[p.ID]
		switch {
		case p.State.Gone():
			first := at
			if was.State.Gone() {
				first = cmp.Or(was.Since, was.At)
			}
			n[p.ID] = HeardPost{State: p.State, Reason: p.Reason, At: at, Since: first}
		case policy.LeftPost(p.Reason):
			images := map[int]HeardImage{}
			maps.Copy(images, was.Images)
			first := images[e.Image].Since
			if was.backWith == e.SHA256 {
				first = cmp.Or(first, was.back[e.Image].Since)
			}
			images[e.Image] = HeardImage{p.Reason, cmp.Or(first, at)}
			n[p.ID] = HeardPost{State: p.State, At: at, Images: images, back: was.back, backWith: was.backWith}
		default:
			n[p.ID] = HeardPost{State: p.State, At: at, back: was.Images, backWith: e.SHA256}
		}
	}
}

// says reports whether anything of a post is gone by the note.
func (h HeardPost) says() bool { return h.State.Gone() || len(h.Images) > 0 }

// saysAsMuch reports whether a post, or all images of it, that are gone by after were so before.
func (h HeardPost) saysAsMuch(after HeardPost) bool {
	if after.State.Gone() {
		return h.State.Gone()
	}
	for image := range after.Images {
		if _, was := h.Images[image]; !was {
			return false
		}
	}
	return true
}

// RecordAudit stores the records of an audit in the log, and notes what it heard: posts and images that are gone, and
// posts of which an earlier audit said so and which are live. The note comes first: killed between the two, what is
// gone is taken out by the next job, which records it. cutOff is for an audit that did not ask about every post.
func RecordAudit(ctx context.Context, ws *workspace.Workspace, at time.Time, cutOff bool,
	records []auditlog.Event) error {
	note, err := ReadNote[HeardNote](ctx, ws)
	if err != nil {
		return err
	}
	if note == nil {
		note = HeardNote{}
	}
	changed, before := false, maps.Clone(note)
	for _, e := range records {
		note.Hear(e, at)
		changed = changed || len(e.Posts) > 0
		for _, p := range e.Posts {
			h, was := note[p.ID], before[p.ID]
			h.CutOff = cutOff && (was.CutOff || !was.saysAsMuch(h))
			note[p.ID] = h
		}
	}
	maps.DeleteFunc(note, func(_ manifest.PostID, h HeardPost) bool { return !h.says() })
	if changed {
		if err := WriteNote(ctx, ws, note); err != nil {
			return err
		}
	}
	return ws.Note(ctx, records...)
}
