package pipeline

import (
	"context"
	"fmt"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// bury puts a tombstone on each post that was removed or deleted. An unavailable post gets
// none: a private community can open again.
func (r *run) bury(ctx context.Context, posts []workspace.Post) error {
	var stones []workspace.Tombstone
	for _, p := range posts {
		old, have := r.buried[p.ID]
		if p.State == manifest.StateUnavailable || have && !stricter(old, p) {
			continue
		}
		stones = append(stones, workspace.Tombstone{Reason: p.Reason,
			Tombstone: manifest.Tombstone{ID: p.ID, State: p.State, Time: p.CheckedAt}})
	}
	if len(stones) == 0 {
		return nil
	}
	if err := r.Workspace.AddTombstones(ctx, stones); err != nil {
		return err
	}
	for _, t := range stones {
		r.buried[t.ID] = t
	}
	return nil
}

// stricter reports whether what Reddit says of a buried post now asks for more than its tombstone:
// its author deleted it, or a removal that a policy may let come back became one that none may.
func stricter(old workspace.Tombstone, p workspace.Post) bool {
	if old.State == manifest.StateDeleted {
		return false
	}
	return p.State == manifest.StateDeleted || mostLenient().Readmits(old.State, old.Reason) && !mostLenient().Readmits(p.State, p.Reason)
}

// mostLenient lets every post come back that any policy does.
func mostLenient() policy.Policy {
	return policy.Policy{Reddit: policy.Reddit{Readmit: policy.ReadmitModerator}}
}

// ComesBack reports whether a policy can let a post come back that was removed for this reason.
func ComesBack(reason manifest.Reason) bool {
	return mostLenient().Readmits(manifest.StateRemoved, reason)
}

// readmit suspends the tombstones of the posts that were just seen live where the policy lets
// them come back. It is for the posts that this workspace saw removed: of others nobody here
// knows by whom.
func (r *run) readmit(ctx context.Context, posts []workspace.Post) error {
	var back []manifest.PostID
	for _, p := range posts {
		stone, buried := r.buried[p.ID]
		if buried && p.State == manifest.StateLive && r.Policy.Readmits(stone.State, stone.Reason) {
			back = append(back, p.ID)
		}
	}
	if err := r.Workspace.SetReadmitted(ctx, true, back...); err != nil {
		return err
	}
	for _, id := range back {
		r.Log.Info("a post that a moderator had removed is back", "id", id)
		delete(r.buried, id)
	}
	return nil
}

// exhume reads the tombstones and notes those that hold: all but the ones of readmitted posts. A
// policy that no longer lets those come back makes their tombstones hold again.
func (r *run) exhume(ctx context.Context) error {
	all, err := r.Workspace.Tombstones(ctx)
	if err != nil {
		return err
	}
	r.buried = make(state.Holding, len(all))
	var out []manifest.PostID
	for _, t := range all {
		switch {
		case !t.Readmitted:
		case r.Policy.Readmits(t.State, t.Reason):
			continue
		default:
			out = append(out, t.ID)
		}
		r.buried[t.ID] = t
	}
	return r.Workspace.SetReadmitted(ctx, false, out...)
}

// settle erases what is gone and was live, or leaves it withheld when it is, with what this
// run has erased already, more than one post and more than the policy's share of the posts that
// were live: that much at once looks like an outage, a single post does not. The operator's
// confirmation covers the posts that were withheld when the run began, and no others.
//
// The tombstone is written first: a run killed after it erases the rest when it opens the
// workspace again.
func (r *run) settle(ctx context.Context) error {
	var confirmed, fresh []workspace.Post
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		switch _, buried := r.buried[p.ID]; {
		case !p.Withheld || !p.State.Gone() || buried:
		case r.ConfirmRemovals && r.withheld[p.ID]:
			confirmed = append(confirmed, p)
		default:
			fresh = append(fresh, p)
		}
	}
	going, note := append(confirmed, fresh...), state.MassRemovalNote(0)
	limit := max(1, r.Policy.Reddit.MassRemovalShare*float64(r.live))
	if n := len(fresh); n > 0 && float64(n+r.erased) > limit {
		r.Log.Warn("mass removal withheld", "gone", n, "were_live", r.live)
		going, note = confirmed, state.MassRemovalNote(n)
	} else {
		r.erased += n
	}
	if err := r.notePosts(ctx, auditlog.Confirmed, confirmed); err != nil {
		return err
	}
	if err := r.noteMassRemoval(ctx, note, fresh); err != nil {
		return err
	}
	if err := r.bury(ctx, going); err != nil {
		return err
	}
	for i := range going {
		going[i].Withheld = false
	}
	if err := r.Workspace.SetPosts(ctx, going); err != nil {
		return err
	}
	for _, p := range going {
		if err := r.Workspace.Erase(ctx, p.ID); err != nil {
			return fmt.Errorf("erase %s: %w", p.ID, err)
		}
	}
	return nil
}

// noteMassRemoval stores the note where it changes, and tells the log which posts are withheld.
func (r *run) noteMassRemoval(ctx context.Context, note state.MassRemovalNote, withheld []workspace.Post) error {
	last, err := state.ReadNote[state.MassRemovalNote](ctx, r.Workspace)
	if err != nil || last == note {
		return err
	}
	if note == 0 {
		return state.ClearNote[state.MassRemovalNote](ctx, r.Workspace)
	}
	if err := r.notePosts(ctx, auditlog.Withheld, withheld); err != nil {
		return err
	}
	return state.WriteNote(ctx, r.Workspace, note)
}
