package copies

import (
	"context"
	"encoding/json"
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
		// A struct cannot have the schema's keys, and a map would not keep the order that people read them in.
		line := []byte("{")
		put := func(key string, value any) {
			// Strings, numbers and lists of strings: marshalling them cannot fail.
			text, _ := json.Marshal(map[string]any{key: value})
			if len(line) > 1 {
				line = append(line, ',')
			}
			line = append(line, text[1:len(text)-1]...)
		}
		put("id", r.ID)
		put("image", r.Key.Image)
		put("split", r.Split)
		for i, c := range rel.Schema.Categories {
			put(c.Name, codes(c, r.Labels[i]))
		}
		for _, d := range []struct{ key, digest string }{
			{"sha256", digests.File}, {"sha256_stripped", digests.Stripped}, {"sha256_pixels", digests.Pixels}, {"phash", phash},
		} {
			if d.digest != "" {
				put(d.key, d.digest)
			}
		}
		if _, err := w.Write(append(line, "}\n"...)); err != nil {
			return 0, 0, err
		}
	}
	return entries, known, nil
}

// codes returns the labels of a category as a manifest has them: a code, a list of codes, or nil for none.
func codes(c manifest.Category, labels []int) any {
	if labels == nil {
		return nil
	}
	list := make([]string, len(labels))
	for i, l := range labels {
		list[i] = c.Labels[l].Code
	}
	if c.Kind == manifest.Multi {
		return list
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
