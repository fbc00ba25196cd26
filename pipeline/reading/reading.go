// Package reading reads the text of one stored image. The engine and the shards of a cluster share it, so that equal
// images have equal readings wherever they are read.
//
// It promises that all images which are decoded or read at one time take no more memory than the largest image that the
// policy allows, that names are masked before a reading is returned if the policy says so, and that trouble of the OCR
// engine with an image is in the reading and not an error.
package reading

import (
	"context"
	"errors"
	"fmt"
	"image"
	"sync"

	"golang.org/x/sync/semaphore"

	"rehydrate/dedupe"
	"rehydrate/internal/picture"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// An Engine reads the text of pictures. *ocr.Pool is one.
type Engine interface {
	Engine() ocr.Engine
	// Read fails with an *ocr.Failure where the picture is the trouble.
	Read(context.Context, image.Image) (layout.Reading, error)
}

// A Reader decodes images and reads them. It may be used by several goroutines.
type Reader struct {
	// Fingerprint is of a reading that Read makes, empty without an engine.
	Fingerprint string
	engine      Engine
	policy      policy.Policy
	memory      *semaphore.Weighted // bytes, of images that are being decoded and read
}

// New returns a Reader by a policy. With a nil engine it only decodes.
func New(engine Engine, p policy.Policy) *Reader {
	r := &Reader{engine: engine, policy: p, memory: semaphore.NewWeighted(p.Images.MaxDecodedBytes())}
	if engine != nil {
		r.Fingerprint = state.ReadingFingerprint(engine.Engine().Fingerprint(), p)
	}
	return r
}

// A Picture is a decoded image, as the file has it and as it is to be seen.
type Picture struct {
	Image, Upright image.Image
	Free           func() // gives its memory back
}

// Decode decodes an image in memory that it waits for. A *policy.Fault says that it does not decode.
func (r *Reader) Decode(ctx context.Context, info picture.Info, body []byte) (*Picture, error) {
	// Images that are decoded or read at one time take no more than the largest that the policy allows.
	if err := r.memory.Acquire(ctx, info.DecodedBytes); err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() { r.memory.Release(info.DecodedBytes) })
	img, err := picture.Decode(body)
	if err != nil {
		free()
		return nil, &policy.Fault{Outcome: manifest.Invalid, Reason: "undecodable", Detail: err.Error()}
	}
	return &Picture{img, picture.Upright(img, body), free}, nil
}

// Current reports whether a stored image's hash and reading were made by the present code and engine.
func (r *Reader) Current(img workspace.Image, last *workspace.Reading) bool {
	return img.HashKind == dedupe.HashKind() && last != nil && last.Failed == nil &&
		last.Fingerprint == r.Fingerprint && last.ImageSHA256 == img.SHA256
}

// Read reads the text of a picture, which it frees, and hashes it in img where the hash there is of another kind.
// Trouble with OCR is in the reading.
func (r *Reader) Read(ctx context.Context, img *workspace.Image, pic *Picture) (workspace.Reading, error) {
	out := workspace.Reading{Fingerprint: r.Fingerprint, ImageSHA256: img.SHA256}
	defer pic.Free()
	if img.HashKind != dedupe.HashKind() {
		hash, err := dedupe.HashImage(pic.Image)
		if err != nil {
			return out, fmt.Errorf("hash it again: %w", err)
		}
		img.PHash, img.Flat, img.HashKind = hash.Bits, hash.Flat, dedupe.HashKind()
	}
	read, err := r.engine.Read(ctx, pic.Upright)
	if failure, ok := errors.AsType[*ocr.Failure](err); ok {
		out.Failed = &workspace.Trouble{Outcome: manifest.Failed, Reason: failure.Reason, Detail: failure.Detail}
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Text, out.Confidence, out.Words = read.Text, read.Confidence, read.Words
	if out.Words == nil {
		// The database tells an image without words from one whose words are not known.
		out.Words = []word.Word{}
	}
	// Before it is stored: what was read unmasked never reaches the disk.
	if r.policy.Text.MaskNames {
		state.MaskReading(&out)
	}
	if len(dedupe.Tokens(out.Words)) == 0 {
		// Nothing to tell two images apart by but the image: dedupe wants a finer hash.
		wide, err := dedupe.HashImage256(pic.Image)
		if err != nil {
			return out, fmt.Errorf("hash it: %w", err)
		}
		out.Wide = (*[4]uint64)(&wide)
	}
	return out, nil
}
