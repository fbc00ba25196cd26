package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"io"
	"io/fs"
	"iter"
	"os"

	"golang.org/x/sync/semaphore"

	"rehydrate/internal/picture"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/policy"
)

// A result is what came of one input.
type result struct {
	input
	layout.Reading
	width, height int    // of the upright picture, which the boxes are in
	sha256        string // of the file
	overlay       []byte // a PNG, where one is wanted
	err           error  // a *badFile; anything else ends the run
}

// A badFile is the trouble of one file.
type badFile struct {
	reason manifest.Reason
	err    error
}

func (b *badFile) Error() string { return b.err.Error() }
func (b *badFile) Unwrap() error { return b.err }

// unopened is the trouble of a file that could not be opened or read.
func unopened(err error) *badFile {
	if errors.Is(err, fs.ErrNotExist) {
		return &badFile{"not_found", errors.New("no such file")}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok { // the file's name stands before the message already
		err = path.Err
	}
	return &badFile{"unreadable_file", err}
}

// A reader reads inputs, several at a time.
type reader struct {
	recognize func(context.Context, image.Image) (layout.Reading, error)
	policy    policy.Policy
	stdin     io.Reader
	workers   int
	overlays  bool
	memory    *semaphore.Weighted // bytes of decoded images at once
}

func newReader(pool *ocr.Pool, o options, stdin io.Reader) *reader {
	p := policy.Default()
	return &reader{recognize: pool.Read, policy: p, stdin: stdin, workers: o.workers, overlays: o.draw != "",
		memory: semaphore.NewWeighted(p.Images.MaxDecodedBytes())}
}

// inOrder reads the inputs side by side and yields what came of them in the order given. When ctx ends, the results
// that are there are still yielded, and no others.
func (r *reader) inOrder(ctx context.Context, list []input) iter.Seq[result] {
	return func(yield func(result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for slot := range r.start(ctx, list) {
			var next result
			select {
			case next = <-slot:
			case <-ctx.Done(): // not waited for: a file can be a pipe without a writer
				select {
				case next = <-slot:
				default:
					continue
				}
			}
			if ctx.Err() != nil && errors.Is(next.err, ctx.Err()) {
				continue // not read: an error of the interrupt's, not of the file's
			}
			if !yield(next) {
				return
			}
		}
	}
}

// start reads the inputs and returns where each result will be, in order.
func (r *reader) start(ctx context.Context, list []input) <-chan chan result {
	// One more than workers, so that a worker never waits for an image to be decoded.
	running := make(chan struct{}, r.workers+1)
	// A slow image keeps so many results waiting, without their pictures, and the workers busy.
	slots := make(chan chan result, 4*r.workers)
	go func() {
		defer close(slots)
		for _, in := range list {
			select {
			case <-ctx.Done():
				return
			case running <- struct{}{}:
			}
			slot := make(chan result, 1) // with room, so that no goroutine waits for a reader that has left
			go func() {
				slot <- r.read(ctx, in)
				<-running
			}()
			select {
			case <-ctx.Done():
				return
			case slots <- slot:
			}
		}
	}()
	return slots
}

// read reads one input. Whatever is wrong with it is a *badFile in the result.
func (r *reader) read(ctx context.Context, in input) result {
	out := result{input: in}
	out.err = r.fill(ctx, &out)
	return out
}

// fill checks and decodes a file, turns the picture upright and reads it.
func (r *reader) fill(ctx context.Context, out *result) error {
	if out.input.err != nil {
		return unopened(out.input.err)
	}
	body, err := r.body(out.name)
	if err != nil {
		return unopened(err)
	}
	// As rehydrate does with what it has downloaded: the same files are refused, for the same reasons.
	info, fault := r.policy.InspectImage(body)
	if fault != nil {
		return &badFile{fault.Reason, fault}
	}
	// All images decoded at once share the memory of the largest image allowed.
	weight := min(info.DecodedBytes, r.policy.Images.MaxDecodedBytes())
	if err := r.memory.Acquire(ctx, weight); err != nil {
		return err
	}
	defer r.memory.Release(weight)
	img, err := picture.Decode(body)
	if err != nil {
		return &badFile{"undecodable", err}
	}
	img = picture.Upright(img, body)
	sum := sha256.Sum256(body)
	out.sha256, out.width, out.height = hex.EncodeToString(sum[:]), img.Bounds().Dx(), img.Bounds().Dy()
	out.Reading, err = r.recognize(ctx, img)
	if failure, ok := errors.AsType[*ocr.Failure](err); ok {
		return &badFile{failure.Reason, failure}
	}
	if err == nil && r.overlays {
		out.overlay, err = overlay(img, out.Reading)
	}
	return err
}

func (r *reader) body(name string) ([]byte, error) {
	from := r.stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	// One byte over the limit is enough for InspectImage to refuse the file.
	return io.ReadAll(io.LimitReader(from, r.policy.Images.MaxBytes+1))
}
