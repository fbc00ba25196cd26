package pipeline

import (
	"context"

	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// dropRemovedPictures forgets the stored images that show a picture that was taken down, and notes of which posts they
// are.
func (r *run) dropRemovedPictures(ctx context.Context) error {
	t, err := r.removedPictures(ctx)
	if err != nil || len(t) == 0 {
		return err
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Digests: t.Digests()}) {
		if err != nil {
			return err
		}
		f := t.Refuses(r.Policy, rec.ID, *rec.Image)
		if f == nil || r.stones.Has(rec.ID) {
			continue
		}
		r.dropped = append(r.dropped, rec.Key)
		if err := r.dropImage(ctx, rec.Key, f); err != nil {
			return err
		}
	}
	return nil
}

// removedPictures are the pictures that were taken down, by the tombstones that hold.
func (r *run) removedPictures(ctx context.Context) (state.RemovedPictures, error) {
	// A job that lets no row in leaves another edition to the next run, and what that publishes counts now. A fault of the
	// manifest keeps no removal waiting.
	if err := r.stones.NamePictures(ctx, r.Workspace, r.Release); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		r.Log.Warn("the annotations cannot be read: what they name of removed posts is not looked for", "error", err)
	}
	return state.FindRemovedPictures(ctx, r.Workspace, r.stones)
}
