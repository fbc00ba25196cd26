package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"strconv"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
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
	var f *policy.Fault
	if errors.As(err, &f) {
		return g.setTrouble(ctx, j.entry.Key, g.taken.source(g.Policy, j.entry.ID, g.attempt(j.entry, j.candidate), f.Reason), f)
	}
	if err != nil {
		return fmt.Errorf("fetch the image of %s: %w", j.entry.ID, err)
	}
	return nil
}

func undecodable(err error) bool {
	var f *policy.Fault
	return errors.As(err, &f) && f.Outcome == manifest.Invalid && (f.Reason == "undecodable" || f.Reason == "bad_container")
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
		return &policy.Fault{Outcome: manifest.Failed, Reason: "damaged_on_its_way", Detail: "two downloads gave different bytes, and neither decodes"}
	}
	return err
}

// admit strips, decodes, hashes and compares a downloaded image, stores it and sends it to
// the readers. What it stores decodes. A *policy.Fault says why it is not stored.
func (g *gatherer) admit(ctx context.Context, j fetchJob, d reddit.Download) error {
	body, err := workspace.Strip(d.Body, d.Info.Format)
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_container", Detail: err.Error()}
	}
	// What is stored is inspected, not only what was sent: stripping could have uncovered something else.
	info, fault := g.Policy.InspectImage(body)
	if fault != nil {
		return fault
	}
	img := workspace.Image{Source: j.source, Limits: g.limits, OriginalSHA256: state.SHA256(d.Body), OriginalBytes: int64(len(d.Body)),
		Format: info.Format, Width: info.Width, Height: info.Height, Bytes: int64(len(body))}
	if err := g.hash(ctx, info, body, &img); err != nil {
		return err
	}
	img.SHA256 = img.OriginalSHA256
	if !bytes.Equal(body, d.Body) {
		img.SHA256 = state.SHA256(body)
	}
	// An image that is not the one the manifest means never reaches the disk.
	if f := g.compare(j.entry, img); f != nil {
		return f
	}
	if f := g.taken.refuses(g.Policy, j.entry.ID, img); f != nil {
		return f
	}
	// Stored before it is read: a run that is killed in between reads it from its file.
	if err := g.Workspace.StoreImage(ctx, j.entry.Key, body, img); err != nil {
		return err
	}
	g.Progress.fetched()
	// Its memory is free by now: readers wait for that, and this waits for a reader.
	return send(ctx, g.run, g.read, workspace.Record{Entry: j.entry, Image: &img})
}

// hash decodes an image and notes what it shows.
func (g *gatherer) hash(ctx context.Context, info policy.ImageInfo, body []byte, img *workspace.Image) error {
	free, err := g.room(ctx, info)
	if err != nil {
		return err
	}
	defer free()
	decoded, err := policy.DecodeImage(body)
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	hash, err := dedupe.HashImage(decoded)
	if err != nil {
		return &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	img.PHash, img.Flat, img.HashKind = hash.Bits, hash.Flat, dedupe.HashKind()
	img.PixelsSHA256 = policy.PixelDigest(policy.Upright(decoded, body))
	return nil
}

// room waits for the memory that a decoded image takes. All of them together take no more than the largest that
// the policy allows.
func (g *gatherer) room(ctx context.Context, info policy.ImageInfo) (free func(), err error) {
	size := min(info.DecodedBytes, g.Policy.Images.MaxDecodedBytes())
	if err := g.memory.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { g.memory.Release(size) }, nil
}

// compare holds an image against the digests that the manifest names; one that matches is enough. The sha256 may
// be that of the image as it was downloaded or as rehydrate stores it. Where the manifest has a phash, a
// fault says how far from it the image is: one that was only encoded again is near.
func (g *gatherer) compare(e manifest.Entry, img workspace.Image) *policy.Fault {
	distance, radius := 0, g.Policy.Dedupe.HashRadius
	if e.PHash != "" {
		want, err := strconv.ParseUint(e.PHash, 16, 64)
		if err != nil {
			return &policy.Fault{Outcome: manifest.Invalid, Reason: "bad_phash", Detail: e.PHash}
		}
		distance = bits.OnesCount64(want ^ img.PHash)
	}
	named := e.SHA256 != "" || e.StrippedSHA256 != "" || e.PixelsSHA256 != ""
	same := e.SHA256 == img.OriginalSHA256 || e.SHA256 == img.SHA256 || e.StrippedSHA256 == img.SHA256 || e.PixelsSHA256 == img.PixelsSHA256
	if named && !same {
		f := &policy.Fault{Outcome: manifest.Changed, Reason: "sha256", Detail: "the image has sha256 " + img.OriginalSHA256}
		if e.PHash != "" {
			f.Detail += fmt.Sprintf(" and is %d bits from the manifest's phash", distance)
		}
		return f
	}
	if distance > radius {
		return &policy.Fault{Outcome: manifest.Changed, Reason: "phash",
			Detail: fmt.Sprintf("the image is %d bits from the manifest's phash, %d are allowed", distance, radius)}
	}
	return nil
}

// readImage reads the text of one stored image.
func (g *gatherer) readImage(ctx context.Context, rec workspace.Record) error {
	body, err := g.Workspace.ReadImage(ctx, rec.Key, *rec.Image)
	var damaged *workspace.Damaged
	if errors.As(err, &damaged) {
		return g.setTrouble(ctx, rec.Key, "", damagedFile())
	}
	if err != nil {
		return err
	}
	info, fault := g.Policy.InspectImage(body)
	if fault != nil {
		return g.setTrouble(ctx, rec.Key, "", fault)
	}
	kind := rec.Image.HashKind
	reading, err := g.recognize(ctx, rec, info, body)
	if err != nil {
		return err
	}
	if err := g.storeReading(ctx, rec, reading); err != nil {
		return err
	}
	// After the reading: killed in between, the older kind of hash has the image read once more.
	if rec.Image.HashKind != kind {
		if err := g.Workspace.SetHash(ctx, rec.Key, *rec.Image); err != nil {
			return err
		}
	}
	if reading.Failed != nil {
		g.settled(rec.Key, manifest.Result{Outcome: reading.Failed.Outcome, Reason: reading.Failed.Reason})
		return nil
	}
	g.Log.Debug("image read", "id", rec.Key.ID, "image", rec.Key.Image, "words", len(reading.Words))
	g.Progress.read()
	return nil
}

// storeReading stores a reading, in a re-reading beside the text of the one it replaces.
func (g *gatherer) storeReading(ctx context.Context, rec workspace.Record, reading workspace.Reading) error {
	if !g.keepTexts || rec.Reading == nil {
		return g.Workspace.SetReading(ctx, rec.Key, reading)
	}
	old := rec.Reading.Text
	if g.Policy.Text.MaskNames {
		old = state.MaskText(old)
	}
	return g.Workspace.Reread(ctx, rec.Key, reading, old)
}

// recognize has an image read, and hashes it in its record where the hash is of another kind. Trouble with the image is in
// the reading.
func (g *gatherer) recognize(ctx context.Context, rec workspace.Record, info policy.ImageInfo, body []byte) (workspace.Reading, error) {
	out := workspace.Reading{Fingerprint: g.fingerprint, ImageSHA256: rec.Image.SHA256}
	free, err := g.room(ctx, info)
	if err != nil {
		return out, err
	}
	defer free() // before the database is waited for
	img, err := policy.DecodeImage(body)
	if err != nil {
		out.Failed = &workspace.Trouble{Outcome: manifest.Failed, Reason: "undecodable", Detail: err.Error()}
		return out, nil
	}
	if rec.Image.HashKind != dedupe.HashKind() {
		hash, err := dedupe.HashImage(img)
		if err != nil {
			return out, fmt.Errorf("hash %s again: %w", rec.Key.ID, err)
		}
		rec.Image.PHash, rec.Image.Flat, rec.Image.HashKind = hash.Bits, hash.Flat, dedupe.HashKind()
	}
	read, err := g.OCR.Read(ctx, policy.Upright(img, body))
	var failure *ocr.Failure
	if errors.As(err, &failure) {
		out.Failed = &workspace.Trouble{Outcome: manifest.Failed, Reason: failure.Reason, Detail: failure.Detail}
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read the image of %s: %w", rec.Key.ID, err)
	}
	out.Text, out.Confidence = read.Text, read.Confidence
	out.Words = make([]workspace.Word, len(read.Words))
	for i, w := range read.Words {
		out.Words[i] = workspace.Word{Text: w.Text, Confidence: w.Confidence, Line: w.Line,
			X: w.Box.Min.X, Y: w.Box.Min.Y, W: w.Box.Dx(), H: w.Box.Dy(), Accepted: w.Accepted}
	}
	// Before it is stored: what was read unmasked never reaches the disk.
	if g.Policy.Text.MaskNames {
		state.MaskReading(&out)
	}
	if len(state.Tokens(out.Words)) == 0 {
		// Nothing to tell two images apart by but the image: dedupe wants a finer hash.
		wide, err := dedupe.HashImage256(img)
		if err != nil {
			return out, fmt.Errorf("hash %s: %w", rec.Key.ID, err)
		}
		out.Wide = (*[4]uint64)(&wide)
	}
	return out, nil
}
