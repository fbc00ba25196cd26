package state

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// RemovedPictures are the digests of pictures that were taken down, with the post that showed each. Such a picture does
// not come back under the id of another post: where a removal is about the picture (policy.TakenDown), no image with
// the same digests is kept, unless the maintainers' policy allows it for that post.
type RemovedPictures map[string]manifest.PostID

// FindRemovedPictures reads what is known of the pictures of posts that were taken down, by these tombstones: digests
// of all images that were ever stored of them, as the log has them too, and those that the manifest publishes, or
// another edition of it by which the tombstones hold.
func FindRemovedPictures(ctx context.Context, ws *workspace.Workspace, stones Holding) (RemovedPictures, error) {
	t := RemovedPictures{}
	add := func(id manifest.PostID, digests ...string) {
		for _, digest := range digests {
			if digest != "" {
				t[digest] = id
			}
		}
	}
	down := []manifest.PostID{}
	for id, stone := range stones {
		if policy.TakenDown(stone.State, stone.Reason) {
			down = append(down, id)
		}
	}
	// In the order of ids, so that a picture of two posts is always said to be of the same one.
	slices.Sort(down)
	former, err := ws.FormerImages(ctx, down)
	if err != nil {
		return nil, err
	}
	for _, f := range former {
		add(f.ID, f.File, f.Stripped, f.Pixels)
	}
	// Post by post: few are taken down, and a scan of all entries would cost each run a second in 100,000.
	for _, id := range down {
		for rec, err := range ws.Records(ctx, workspace.Select{IDs: []manifest.PostID{id}}) {
			if err != nil {
				return nil, err
			}
			add(id, rec.SHA256, rec.StrippedSHA256, rec.PixelsSHA256)
			if rec.Image != nil {
				add(id, rec.Image.OriginalSHA256, rec.Image.SHA256, rec.Image.PixelsSHA256)
			}
		}
		for _, d := range stones[id].Pictures {
			add(id, d.File, d.Stripped, d.Pixels)
		}
	}
	return t, nil
}

// Refuses says why the image of a post may not be kept, or returns nil.
func (t RemovedPictures) Refuses(p policy.Policy, id manifest.PostID, img workspace.Image) *policy.Fault {
	if slices.Contains(p.Images.AllowSame, id) {
		return nil
	}
	for _, digest := range []string{img.OriginalSHA256, img.SHA256, img.PixelsSHA256} {
		if from, ok := t[digest]; ok && from != id {
			return &policy.Fault{Outcome: manifest.Refused, Reason: policy.SameAsRemoved,
				Detail: fmt.Sprintf("it shows the same picture as %s, which was deleted or taken down", from)}
		}
	}
	return nil
}

// Digests are in order.
func (t RemovedPictures) Digests() []string { return slices.Sorted(maps.Keys(t)) }
