package report

import (
	"context"
	"errors"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
)

// An Evidence is what one record of the audit log says of a post.
type Evidence struct {
	Record int64              `json:"record"` // its number in the log
	Time   time.Time          `json:"time"`
	Kind   auditlog.Kind      `json:"kind"`
	State  manifest.PostState `json:"state,omitempty"`
	Reason manifest.Reason    `json:"reason,omitempty"`
	Image  int                `json:"image,omitempty"` // of a fetch
	SHA256 string             `json:"sha256,omitempty"`
	// Pending says that the record is stored and not in the log yet, where nothing could change it.
	Pending bool `json:"pending,omitempty"`
}

// tellHistory finds what the log says of the entry's post, oldest first, and reports a broken log.
func (x *Explanation) tellHistory(ctx context.Context, ws *workspace.Workspace, id manifest.PostID) error {
	x.History = []Evidence{}
	var size int64
	l, err := ws.LogReader(ctx)
	if err == nil {
		size = l.Size()
		for e, failed := range l.Records(ctx, 0) {
			err = failed
			if err != nil {
				break // what comes before a break in the log still counts
			}
			x.addEvidence(e, id, false)
		}
	}
	var broken *auditlog.Broken
	switch {
	case errors.Is(err, auditlog.ErrNoLog), err == nil:
	case errors.As(err, &broken):
		x.LogBroken = broken.Error()
	default:
		return err
	}
	pending, err := ws.Unpublished(ctx)
	if err != nil {
		return err
	}
	for _, e := range pending {
		if e.Seq >= size { // a run may have published it meanwhile
			x.addEvidence(e, id, true)
		}
	}
	x.seenLive()
	return nil
}

// seenLive takes from the log when the post was last seen live, where the workspace does not know it: of a post that
// left the manifest it forgets the answers.
func (x *Explanation) seenLive() {
	if x.Post.Live != nil {
		return
	}
	for _, e := range x.History {
		if e.Kind == auditlog.Verdicts && e.State == manifest.StateLive {
			x.Post.Live = at(e.Time)
		}
	}
}

func (x *Explanation) addEvidence(e auditlog.Event, id manifest.PostID, pending bool) {
	for _, p := range e.Posts {
		if p.ID == id {
			x.History = append(x.History, Evidence{Record: e.Seq, Time: e.Time, Kind: e.Kind, State: p.State,
				Reason: p.Reason,
				Image:  e.Image, SHA256: e.SHA256, Pending: pending})
		}
	}
}
