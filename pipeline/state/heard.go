package state

import (
	"context"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
)

// A HeardNote has the posts that an audit heard are gone: Reddit answered it and no job yet. Nothing of them is handed
// out, and the next job takes the answers over.
type HeardNote map[manifest.PostID]HeardPost

// A HeardPost is what Reddit answered an audit of a post.
type HeardPost struct {
	State  manifest.PostState `json:"state"`
	Reason manifest.Reason    `json:"reason"`
	At     time.Time          `json:"at"`
}

// Of returns what an audit heard of a post, unless a job has asked since.
func (n HeardNote) Of(p workspace.Post) (HeardPost, bool) {
	h, heard := n[p.ID]
	return h, heard && !p.State.Gone() && !p.CheckedAt.After(h.At)
}

// RecordAudit stores the records of an audit in the log, and notes what it heard: posts that are gone, and posts of
// which an earlier audit said so and which are live. The note comes first: killed between the two, what is gone is
// taken out by the next job, which records it.
func RecordAudit(ctx context.Context, ws *workspace.Workspace, at time.Time, records []auditlog.Event) error {
	note, err := ReadNote[HeardNote](ctx, ws)
	if err != nil {
		return err
	}
	changed := false
	for _, e := range records {
		for _, p := range e.Posts {
			changed = true
			if note == nil {
				note = HeardNote{}
			}
			if p.State.Gone() {
				note[p.ID] = HeardPost{p.State, p.Reason, at.UTC().Truncate(time.Second)}
			} else {
				delete(note, p.ID)
			}
		}
	}
	if changed {
		if err := WriteNote(ctx, ws, note); err != nil {
			return err
		}
	}
	return ws.Note(ctx, records...)
}
