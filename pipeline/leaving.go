package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Before an edition of the release is loaded, the removals of posts that it no longer names are settled: nobody asks
// about them any more. Forgotten, what was taken down would come back with another edition, or in another post.

// A WaitingError says that a changed manifest lacks posts whose removal is held back.
type WaitingError struct{ Posts int }

func (e *WaitingError) Error() string {
	return fmt.Sprintf("the manifest lacks posts whose removal is held back: %d", e.Posts)
}

// settleLeaving settles the removals of posts that a changed manifest no longer names. What has to wait keeps the
// manifest from being loaded.
func (r *run) settleLeaving(ctx context.Context) error {
	if err := r.settleWithoutEntry(ctx); err != nil {
		return err
	}
	left, err := r.leaving(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	// What stands against the manifest is found before anything changes.
	if err := r.supposeLoad(ctx); err != nil {
		return err
	}
	r.out.LeftManifest = 0 // it is counted again when it is loaded
	had, err := mayLeave(ctx, r.Workspace)
	if err != nil {
		return err
	}
	if err := r.holdTombstones(ctx); err != nil {
		return err
	}
	if err := r.takeHeard(ctx); err != nil {
		return err
	}
	if err := r.settleUnasked(ctx); err != nil {
		return err
	}
	r.settled = false // what audits heard of entries that are loaded comes next
	left, err = r.leaving(ctx)
	if err == nil && len(left) > 0 {
		err = errors.Join(&WaitingError{len(left)}, r.takeOut(ctx)) // of what is settled
	}
	if err != nil {
		return err
	}
	gone, err := state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return err
	}
	r.leftGone, err = removedOf(ctx, r.Workspace, had, gone)
	return err
}

// settleWithoutEntry puts a tombstone on each post that the log of a lost or older state.db has as gone, or of which an
// audit heard that, and that neither state.db nor the manifest has an entry of: no job would ask about it.
func (r *run) settleWithoutEntry(ctx context.Context) error {
	b, bound, err := r.Workspace.Binding(ctx)
	if err != nil || bound && (b.Release != r.releaseName() || r.isLoaded(b)) {
		return err
	}
	gone, err := r.goneWithoutEntry(ctx)
	if err != nil || len(gone) == 0 {
		return err
	}
	for e, err := range r.entries(ctx) {
		if err != nil {
			return err
		}
		delete(gone, e.ID)
	}
	if err := r.holdTombstones(ctx); err != nil {
		return err
	}
	return r.addTombstones(ctx, slices.SortedFunc(maps.Values(gone), func(p, q workspace.Post) int {
		return cmp.Compare(p.ID, q.ID)
	}))
}

// goneWithoutEntry returns the posts that are gone by state.db or an audit and of which state.db has no entry.
func (r *run) goneWithoutEntry(ctx context.Context) (map[manifest.PostID]workspace.Post, error) {
	gone := map[manifest.PostID]workspace.Post{}
	known, err := r.Workspace.PostsOfNoEntry(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range known {
		if p.State.Gone() {
			gone[p.ID] = p
		}
	}
	heard, err := state.ReadNote[state.HeardNote](ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	for id, h := range heard {
		if p, known := gone[id]; h.State.Gone() && !h.CutOff && (!known || p.CheckedAt.Before(h.At)) {
			gone[id] = asHeard(workspace.Post{ID: id}, h)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true, IDs: slices.Collect(maps.Keys(gone))}) {
		if err != nil {
			return nil, err
		}
		delete(gone, rec.ID)
	}
	return gone, nil
}

// leaving returns the posts whose removal is withheld, or was heard by an audit, and that the release no longer names
// with all of their images, and whether their removal waits for a confirmation. Of one that is unavailable nothing
// would be forgotten.
func (r *run) leaving(ctx context.Context) (posts map[manifest.PostID]bool, err error) {
	b, bound, err := r.Workspace.Binding(ctx)
	if err != nil || !bound || b.Release != r.releaseName() || r.isLoaded(b) {
		return nil, err
	}
	heard, err := state.ReadNote[state.HeardNote](ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	withheld, err := state.Withheld(ctx, r.Workspace)
	if err != nil || len(heard) == 0 && withheld.Empty() { // nearly always
		return nil, err
	}
	left := map[manifest.Key]bool{}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return nil, err
		}
		after, goes := heard.Applied(rec)
		t := rec.Trouble
		image := t != nil && t.Withheld()
		if (goes || image || rec.Post.Withheld) && (image || after.Post.State != manifest.StateUnavailable) {
			left[rec.Key] = rec.Post.Unconfirmed || image && t.Beside == workspace.Unconfirmed
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	// The release may have decided about them itself.
	stones, err := state.Stones(ctx, r.Workspace, r.Release, r.Tombstones, r.Policy, r.Now())
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(left, func(k manifest.Key, _ bool) bool { return stones.Has(k.ID) })
	for e, err := range r.entries(ctx) {
		if err != nil {
			return nil, err
		}
		delete(left, e.Key)
	}
	posts = map[manifest.PostID]bool{}
	for k, unconfirmed := range left {
		posts[k.ID] = posts[k.ID] || unconfirmed
	}
	return posts, nil
}

// isWithheld reports whether the removal of a post, or of an image from it, is withheld.
func isWithheld(rec workspace.Record) bool {
	return rec.Post.Withheld || rec.Trouble != nil && rec.Trouble.Withheld()
}
