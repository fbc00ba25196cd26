package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// DigestsWritten counts the entries that WriteDigests wrote.
type DigestsWritten struct {
	Entries int `json:"entries"`
	Known   int `json:"with_digests"`
	Gone    int `json:"removed"` // of posts that are removed, or must be, by the workspace or by the release
	// Of Held the removal waits for a confirmation, and Heard are gone by an audit: the hash of their looks stays here.
	Held  int `json:"held_back,omitempty"`
	Heard int `json:"heard_gone,omitempty"`
}

// WriteDigests writes the annotations of a workspace as a manifest in JSON Lines, with the digests of each image that
// it has, or had until a purge. The entries of removed posts stay in it, as in a release: by their digests their images
// are recognised elsewhere. Of what must be hidden there is what HideContent leaves. Of c it reads what an export knows
// of the release and its workspace, which only has to be open. The error is *NotExportable for another edition.
func WriteDigests(ctx context.Context, c Config, w io.Writer) (wrote DigestsWritten, err error) {
	ws, rel := c.Workspace, c.Release
	b, _, err := ws.Binding(ctx)
	if err != nil {
		return wrote, err
	}
	if b.ReleaseDigest != rel.Digest || b.ManifestDigest != rel.ManifestDigest {
		return wrote, &NotExportable{Why: []string{otherVersion}} // its labels may be numbered otherwise
	}
	stones, err := state.Stones(ctx, ws, rel, c.Tombstones, c.Policy, c.Now())
	if err != nil {
		return wrote, err
	}
	gone, err := state.MustErase(ctx, ws, stones, c.Policy)
	held, heldWrong := state.Withheld(ctx, ws)
	heard, heardWrong := state.Heard(ctx, ws)
	hidden, hiddenWrong := state.MustHide(ctx, ws, stones, c.Policy)
	if err := errors.Join(err, heldWrong, heardWrong, hiddenWrong); err != nil {
		return wrote, err
	}
	out := manifest.NewWriter(w, manifest.JSONL, rel.Schema.Joined(), "", manifest.FieldImage, manifest.FieldSplit,
		manifest.FieldSHA256, manifest.FieldStripped, manifest.FieldPixels, manifest.FieldPHash)
	for e, err := range Digested(ctx, ws, c.Policy, hidden) {
		if err != nil {
			return DigestsWritten{}, err
		}
		if e.SHA256 != "" {
			wrote.Known++
		}
		row := e.Key.String()
		switch {
		case gone.HasRow(row):
			wrote.Gone++
		case held.HasRow(row):
			wrote.Held++
		case heard.HasRow(row):
			wrote.Heard++
		}
		wrote.Entries++
		out.Write(e)
	}
	return wrote, out.Flush()
}

// HideContent takes from an entry what is not handed out of a post, or an image, that is gone or held back: texts that
// pass through, which can be what somebody wrote in the post, and the hash of its looks, which tells of the image to
// whoever has one like it. Ids, labels, numbers, times and the digests of an unchanged copy stay.
func HideContent(s manifest.Schema, e *manifest.Entry) {
	e.PHash = ""
	e.Values = slices.Clone(e.Values)
	for i, c := range s.Columns {
		if c.Type == manifest.TypeText || c.Type == manifest.TypeJSON {
			e.Values[i] = nil
		}
	}
}

// isRefused reports whether the stored image of an entry is not the one that was labelled, or hardly: the policy or the
// release does not take it.
func isRefused(r workspace.Record, p policy.Policy) bool {
	img, t := r.Image, r.Trouble
	return t != nil && t.Beside == workspace.Out ||
		p.PlaceholderOf(img.OriginalSHA256, "", picture.Info{Format: img.Format, Width: img.Width, Height: img.Height},
			img.OriginalBytes) != nil
}

// AreOf reports whether the digests of known, which a workspace has of an image, are those that an entry names.
func AreOf(e, known manifest.Entry) bool {
	return state.Proven(e, workspace.Image{OriginalSHA256: known.SHA256, SHA256: known.StrippedSHA256,
		PixelsSHA256: known.PixelsSHA256})
}

// Digested gives the entries of a workspace with the digests of their images, as far as it has them, or had them until
// a purge, and takes them for those that were labelled; what the release names stays. Of hidden rows there is what
// HideContent leaves.
func Digested(ctx context.Context, ws *workspace.Workspace, p policy.Policy,
	hidden state.GoneSet) iter.Seq2[manifest.Entry, error] {
	return func(yield func(manifest.Entry, error) bool) {
		standIns, err := state.StandIns(ctx, ws, p)
		if err != nil {
			yield(manifest.Entry{}, err)
			return
		}
		noted, err := state.ReadNote[state.StandInsNote](ctx, ws)
		if err != nil {
			yield(manifest.Entry{}, err)
			return
		}
		erased, err := ws.ErasedImages(ctx)
		if err != nil {
			yield(manifest.Entry{}, err)
			return
		}
		b, _, err := ws.Binding(ctx)
		if err != nil {
			yield(manifest.Entry{}, err)
			return
		}
		gone := map[manifest.Key]workspace.Digests{}
		for _, e := range erased {
			gone[e.Key] = e.Digests
		}
		for r, err := range ws.Records(ctx, workspace.Select{}) {
			e, own, digests := r.Entry, r.Entry, gone[r.Key]
			// A stand-in is not the image that was labelled.
			if noted.Has(digests.File, r.Key, p) || p.PlaceholderOf(digests.File, "", picture.Info{}, -1) != nil {
				digests = workspace.Digests{}
			}
			e.PHash = ""
			if img := r.Image; img != nil && !standIns[r.Key] && !isRefused(r, p) {
				digests = workspace.Digests{File: img.OriginalSHA256, Stripped: img.SHA256, Pixels: img.PixelsSHA256}
				if !img.Flat { // the hash of a flat picture recognises nothing
					e.PHash = fmt.Sprintf("%016x", img.PHash)
				}
			}
			e.SHA256, e.StrippedSHA256, e.PixelsSHA256 = digests.File, digests.Stripped, digests.Pixels
			if own.Named() && !AreOf(own, e) {
				e.SHA256, e.StrippedSHA256, e.PixelsSHA256, e.PHash = own.SHA256, own.StrippedSHA256, own.PixelsSHA256, own.PHash
			}
			if hidden.HasRow(r.Key.String()) {
				HideContent(b.Schema, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
