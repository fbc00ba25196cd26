package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A picture that was taken down does not come back under the id of another post: where a removal is about the picture
// (policy.TakenDown), no image with the same digests is kept, unless the maintainers' policy allows it for that post.

// removedPictures are the digests of pictures that were taken down, with the post that showed each.
type removedPictures map[string]manifest.PostID

// findRemovedPictures reads what is known of the pictures of posts that were taken down: digests of erased and of
// stored images, and those that the manifest publishes.
func (r *run) findRemovedPictures(ctx context.Context) (removedPictures, error) {
	t := removedPictures{}
	add := func(id manifest.PostID, digests ...string) {
		for _, digest := range digests {
			if digest != "" {
				t[digest] = id
			}
		}
	}
	var down []manifest.PostID
	for id, stone := range r.stones {
		if policy.TakenDown(stone.State, stone.Reason) {
			down = append(down, id)
		}
	}
	// In the order of ids, so that a picture of two posts is always said to be of the same one.
	slices.Sort(down)
	erased, err := r.Workspace.ErasedImages(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range erased {
		if _, found := slices.BinarySearch(down, e.ID); found {
			add(e.ID, e.File, e.Stripped, e.Pixels)
		}
	}
	// Post by post: few are taken down, and a scan of all entries would cost each run a second in 100,000.
	for _, id := range down {
		for rec, err := range r.Workspace.Records(ctx, workspace.Select{IDs: []manifest.PostID{id}}) {
			if err != nil {
				return nil, err
			}
			add(id, rec.SHA256, rec.StrippedSHA256, rec.PixelsSHA256)
			if rec.Image != nil {
				add(id, rec.Image.OriginalSHA256, rec.Image.SHA256, rec.Image.PixelsSHA256)
			}
		}
	}
	return t, nil
}

// refuses says why the image of a post may not be kept, or returns nil.
func (t removedPictures) refuses(p policy.Policy, id manifest.PostID, img workspace.Image) *policy.Fault {
	if slices.Contains(p.Images.AllowSame, id) {
		return nil
	}
	for _, digest := range []string{img.OriginalSHA256, img.SHA256, img.PixelsSHA256} {
		if from, ok := t[digest]; ok && from != id {
			return &policy.Fault{Outcome: manifest.Refused, Reason: policy.SameAsRemoved,
				Detail: fmt.Sprintf("it shows the same picture as %s, which was taken down", from)}
		}
	}
	return nil
}

// digests are in order.
func (t removedPictures) digests() []string { return slices.Sorted(maps.Keys(t)) }

// dropRemovedPictures forgets the stored images that show a picture that was taken down, and notes of which posts they
// are.
func (r *run) dropRemovedPictures(ctx context.Context) error {
	t, err := r.findRemovedPictures(ctx)
	if err != nil || len(t) == 0 {
		return err
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Digests: slices.Collect(maps.Keys(t))}) {
		if err != nil {
			return err
		}
		f := t.refuses(r.Policy, rec.ID, *rec.Image)
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
