package copies

import (
	"context"
	"fmt"
	"io"

	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// WriteDigests writes the annotations of a workspace as a manifest in JSON Lines, with the digests of each image that it
// has, or had until a purge, and returns how many entries have them. The error is *NotExportable for another edition.
func WriteDigests(ctx context.Context, ws *workspace.Workspace, rel *manifest.Release, w io.Writer) (entries, known int, err error) {
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return 0, 0, err
	}
	if b.ReleaseDigest != rel.Digest || b.ManifestDigest != rel.ManifestDigest {
		return 0, 0, &NotExportable{[]string{otherVersion}} // its labels may be numbered otherwise
	}
	erased, err := ws.ErasedImages(ctx)
	if err != nil {
		return 0, 0, err
	}
	gone := map[manifest.Key]workspace.Digests{}
	for _, e := range erased {
		gone[e.Key] = e.Digests
	}
	out := manifest.NewWriter(w, manifest.JSONL, rel.Schema.Joined(), "", "image", "split", "sha256", "sha256_stripped", "sha256_pixels", "phash")
	for r, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return 0, 0, err
		}
		digests, phash := gone[r.Key], ""
		if img := r.Image; img != nil {
			digests = workspace.Digests{File: img.OriginalSHA256, Stripped: img.SHA256, Pixels: img.PixelsSHA256}
			if !img.Flat { // the hash of a flat picture recognises nothing
				phash = fmt.Sprintf("%016x", img.PHash)
			}
		}
		if digests.File != "" {
			known++
		}
		entries++
		e := r.Entry
		e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash = digests.File, digests.Stripped, digests.Pixels, phash
		out.Write(e)
	}
	return entries, known, out.Flush()
}
