package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/reading"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// fetchImage downloads one image, checks it and stores it.
func (g *gatherer) fetchImage(ctx context.Context, j fetchJob) error {
	if g.access() != nil {
		return nil // publish says so, when the sweep is done
	}
	g.known.asks(j)
	// The client checks length, magic bytes, header and placeholders before it returns a body.
	d, err := g.Reddit.Download(ctx, j.candidate)
	if err == nil {
		err = g.admit(ctx, j, d)
	}
	if undecodable(err) {
		first := sha256.Sum256(d.Body)
		d.Body = nil // two bodies at a time would be twice the memory
		err = g.fetchAgain(ctx, j, first, err)
	}
	if f, ok := errors.AsType[*policy.Fault](err); ok {
		if policy.IsOfPlaceholder(f.Reason) && d.Body != nil { // a known one tells nothing of its host
			if err := g.noteNamed(ctx, state.SHA256(d.Body)); err != nil {
				return err
			}
			d.Body = nil
		}
		f = g.known.answered(refusal{j, *f, state.SHA256(d.Body)})
		if !j.stored {
			g.settled(j.entry.Key, manifest.Result{Outcome: f.Outcome, Reason: f.Reason})
		}
		return g.noImage(ctx, j, f)
	}
	if err != nil {
		return fmt.Errorf("fetch the image of %s: %w", j.entry.ID, err)
	}
	return nil
}

// noteNamed notes that the policy names a file as a stand-in, so that it stays nobody's image when nothing else but its
// digest is known.
func (g *gatherer) noteNamed(ctx context.Context, digest string) error {
	return state.AddStandIns(ctx, g.Workspace, state.StandInsNote{digest: {Named: true}})
}

func undecodable(err error) bool {
	f, ok := errors.AsType[*policy.Fault](err)
	return ok && f.Outcome == manifest.Invalid && (f.Reason == "undecodable" || f.Reason == "bad_container")
}

// fetchAgain downloads an image that did not decode once more.
func (g *gatherer) fetchAgain(ctx context.Context, j fetchJob, first [sha256.Size]byte, trouble error) error {
	d, err := g.Reddit.Download(ctx, j.candidate)
	switch {
	case err != nil:
		return err
	case sha256.Sum256(d.Body) == first:
		return trouble // the same bytes twice are what the host has
	}
	// Other bytes: one of the two was cut or damaged on its way.
	err = g.admit(ctx, j, d)
	if undecodable(err) {
		return &policy.Fault{Outcome: manifest.Failed, Reason: "damaged_on_its_way",
			Detail: "two downloads gave different bytes, and neither decodes"}
	}
	return err
}

// examine strips and decodes what a host sent. A *policy.Fault says why it is no image that can be stored.
func (g *gatherer) examine(ctx context.Context, d reddit.Download) ([]byte, picture.Info, *reading.Picture, error) {
	body, err := picture.Strip(d.Body, d.Info.Format)
	if err != nil {
		f := &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_container", Detail: err.Error()}
		return nil, picture.Info{}, nil, f
	}
	// What is stored is inspected, not only what was sent: stripping could have uncovered something else.
	info, fault := g.Policy.InspectImage(body)
	if fault != nil {
		return nil, info, nil, fault
	}
	pic, err := g.reader.Decode(ctx, info, body)
	return body, info, pic, err
}

// admit checks a downloaded image, stores it and sends it to the readers. A *policy.Fault says why it is not stored.
func (g *gatherer) admit(ctx context.Context, j fetchJob, d reddit.Download) error {
	body, info, pic, err := g.examine(ctx, d)
	if err != nil {
		return err
	}
	defer pic.Free()
	img := workspace.Image{Source: j.source, Item: j.candidate.Media != "", Limits: g.terms.limits,
		OriginalSHA256: state.SHA256(d.Body), OriginalBytes: int64(len(d.Body)),
		Format: info.Format, Width: info.Width, Height: info.Height, Bytes: int64(len(body)),
		Redirected:   d.Redirected,
		PixelsSHA256: picture.ShownDigest(body, info.Format, pic.Upright)}
	g.known.sent(j, img.PixelsSHA256) // a whole image: half of one is what a host in trouble sends
	hash, err := dedupe.HashImage(pic.Image)
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	img.PHash, img.Flat, img.HashKind = hash.Bits, hash.Flat, dedupe.HashKind()
	img.SHA256 = img.OriginalSHA256
	if !bytes.Equal(body, d.Body) {
		img.SHA256 = state.SHA256(body)
	}
	// An image that is not the one the manifest means never reaches the disk.
	if f := state.Compare(g.terms.policy, j.entry, img); f != nil {
		return f
	}
	if e := j.erased; e != nil && e.File != img.OriginalSHA256 && e.Stripped != img.SHA256 &&
		e.Pixels != img.PixelsSHA256 {
		return reddit.AnotherImage("it is not the one that was taken out of the gallery")
	}
	if of, ok := j.ofAnother(img); ok && !j.stored { // else settleReplacements decides
		return reddit.AnotherImage("it is the image of " + of.String())
	}
	if f := g.terms.removed.Refuses(g.Policy, j.entry.ID, img); f != nil {
		return f
	}
	if j.stored {
		return g.replacements.stage(ctx, g.Workspace, j, body, img)
	}
	if writesOver, err := g.writesOver(ctx, j.entry.Key, img); err != nil || writesOver {
		g.settled(j.entry.Key, manifest.Result{})
		return err
	}
	job := readJob{Record: workspace.Record{Entry: j.entry, Image: &img}}
	// A picture that waits has memory of its own: readers wait for the memory of those that are decoded, and this waits
	// for a reader. Where there is none, the reader decodes the file.
	if g.OCR != nil && g.waiting.TryAcquire(info.DecodedBytes) {
		job.picture = &reading.Picture{Image: pic.Image, Upright: pic.Upright,
			Free: func() { g.waiting.Release(info.DecodedBytes) }}
	}
	pic.Free()
	// Stored before it is read: a run that is killed in between reads it from its file.
	if err := g.Workspace.StoreImage(ctx, job.Key, body, img); err != nil {
		return err
	}
	g.storedNow.Store(job.Key, true)
	g.Progress.fetched()
	if g.OCR == nil { // shards read it
		g.settled(job.Key, manifest.Result{})
		return nil
	}
	return send(ctx, g.run, g.read, job)
}

// writesOver reports whether another image of the entry stays where this one would be stored: see keepUnknown.
func (g *gatherer) writesOver(ctx context.Context, k manifest.Key, img workspace.Image) (bool, error) {
	l, there := g.later[k]
	if !there {
		return false, nil
	}
	_, err := g.Workspace.ReadImage(ctx, k, workspace.Image{Format: l.Format, Bytes: l.Bytes, SHA256: img.SHA256})
	_, other := errors.AsType[*workspace.Damaged](err)
	if other {
		return true, nil
	}
	return false, err
}
