package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// addTombstones puts a tombstone on each post that was removed or deleted.
func (r *run) addTombstones(ctx context.Context, posts []workspace.Post) error {
	var stones []workspace.Tombstone
	for _, p := range posts {
		old, have := r.stones[p.ID]
		// An unavailable post gets none: a private community can open again.
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
		r.stones[t.ID] = t
	}
	return nil
}

// stricter reports whether what Reddit says of a post now asks for more than its tombstone.
func stricter(old workspace.Tombstone, p workspace.Post) bool {
	if old.State == manifest.StateDeleted {
		return false
	}
	// Its author deleted it, or a removal that a policy may let come back became one that none may.
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

// readmit suspends the tombstones of the posts that were just seen live where the policy lets them come back.
func (r *run) readmit(ctx context.Context, posts []workspace.Post) error {
	var back []manifest.PostID
	for _, p := range posts {
		stone, ok := r.stones[p.ID]
		if ok && p.State == manifest.StateLive && r.Policy.Readmits(stone.State, stone.Reason) {
			back = append(back, p.ID)
		}
	}
	if err := r.Workspace.SetReadmitted(ctx, true, back...); err != nil {
		return err
	}
	// In memory last: an error above leaves the tombstones holding.
	for _, id := range back {
		r.Log.Info("a post that a moderator had removed is back", "id", id)
		delete(r.stones, id)
	}
	return nil
}

// holdTombstones reads the tombstones that hold: all but those of readmitted posts.
func (r *run) holdTombstones(ctx context.Context) error {
	all, err := r.Workspace.Tombstones(ctx)
	if err != nil {
		return err
	}
	r.stones = make(state.Holding, len(all))
	var again []manifest.PostID
	for _, t := range all {
		if t.Readmitted && r.Policy.Readmits(t.State, t.Reason) {
			continue
		}
		if t.Readmitted { // the policy no longer lets it come back
			again = append(again, t.ID)
		}
		r.stones[t.ID] = t
	}
	return r.Workspace.SetReadmitted(ctx, false, again...)
}

// settle erases the posts that were live and are gone, or leaves them withheld when they are too many.
func (s *resolver) settle(ctx context.Context) error {
	var confirmed, fresh []workspace.Post
	for _, id := range slices.Sorted(maps.Keys(s.waiting)) {
		switch p := s.waiting[id]; {
		case !p.State.Gone() || s.stones.Has(p.ID):
		// A confirmation covers what was withheld when the run began, and nothing that this run found.
		case s.ConfirmRemovals && s.withheld[p.ID]:
			confirmed = append(confirmed, p)
		default:
			fresh = append(fresh, p)
		}
	}
	going, note := slices.Concat(confirmed, fresh), state.MassRemovalNote(0)
	// Many posts gone at once look like an outage; a single one never does. What this run erased before counts.
	limit := max(1, s.Policy.Reddit.MassRemovalShare*float64(s.live))
	if n := len(fresh); n > 0 && float64(n+s.erased) > limit {
		s.Log.Warn("mass removal withheld", "gone", n, "were_live", s.live)
		going, note = confirmed, state.MassRemovalNote(n)
	} else {
		s.erased += n
	}
	// The log first: what it says is in the state or will be, and an auditor finds no erasure without its
	// cause.
	if err := s.notePosts(ctx, auditlog.Confirmed, confirmed); err != nil {
		return err
	}
	if err := s.noteMassRemoval(ctx, note, fresh); err != nil {
		return err
	}
	// Then the tombstone: a run killed from here on erases the rest when it opens the workspace again.
	if err := s.addTombstones(ctx, going); err != nil {
		return err
	}
	for i := range going {
		going[i].Withheld = false
	}
	if err := s.Workspace.SetPosts(ctx, going); err != nil {
		return err
	}
	for _, p := range going {
		if err := s.Workspace.Erase(ctx, p.ID); err != nil {
			return fmt.Errorf("erase %s: %w", p.ID, err)
		}
		delete(s.waiting, p.ID)
		s.liveNow--
	}
	return nil
}

// noteMassRemoval stores the note where it changes, and records in the log which posts are withheld.
func (s *resolver) noteMassRemoval(ctx context.Context, note state.MassRemovalNote, withheld []workspace.Post) error {
	last, err := state.ReadNote[state.MassRemovalNote](ctx, s.Workspace)
	if err != nil || last == note {
		return err
	}
	if note == 0 {
		return state.ClearNote[state.MassRemovalNote](ctx, s.Workspace)
	}
	if err := s.notePosts(ctx, auditlog.Withheld, withheld); err != nil {
		return err
	}
	return state.WriteNote(ctx, s.Workspace, note)
}

// notePosts records posts in the log, in as many records as it takes.
func (s *resolver) notePosts(ctx context.Context, kind auditlog.Kind, posts []workspace.Post) error {
	// The workspace writes most records with the change they record; what is withheld and confirmed changes nothing.
	var events []auditlog.Event
	for chunk := range slices.Chunk(posts, auditlog.MaxPosts) {
		e := auditlog.Event{Kind: kind}
		for _, p := range chunk {
			e.Posts = append(e.Posts, auditlog.Post{ID: p.ID, State: p.State, Reason: auditlog.Word(p.Reason)})
		}
		events = append(events, e)
	}
	return s.Workspace.Note(ctx, events...)
}
