package workspace

import (
	"context"
	"fmt"

	"rehydrate/manifest"
)

// Digests recognise an image: as the same file, as the same file but for metadata, comments and what follows its end,
// and as the same picture in any lossless form. Each is 64 hex digits; docs/formats.md defines them to the byte.
type Digests struct {
	File     string // SHA-256 of the file
	Stripped string // SHA-256 of what Strip leaves of it
	Pixels   string // policy.PixelDigest of the upright picture
}

// An ErasedImage is what the workspace still knows of an image that Erase removed.
type ErasedImage struct {
	manifest.Key
	Digests
}

// ErasedImages returns the digests of the erased images of posts that have a tombstone, by id and image.
func (w *Workspace) ErasedImages(ctx context.Context) ([]ErasedImage, error) {
	all, err := list(ctx, w.db, func(e *ErasedImage) []any {
		return []any{&e.ID, &e.Image, &e.File, &e.Stripped, &e.Pixels}
	}, "SELECT id, image, original_sha256, sha256, pixels_sha256 FROM erased_image ORDER BY id, image")
	if err != nil {
		return nil, fmt.Errorf("read the digests of erased images: %w", err)
	}
	return all, nil
}
