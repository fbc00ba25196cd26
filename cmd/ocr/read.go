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

	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/policy"
)

// A result is what came of one input.
type result struct {
	input
	index int // of the input in the list
	ocr.Reading
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

// trouble is err as the trouble of a file, with a reason.
func trouble(err error) *badFile {
	var (
		known   *badFile
		fault   *policy.Fault
		failure *ocr.Failure
		path    *fs.PathError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &fault):
		return &badFile{fault.Reason, err}
	case errors.As(err, &failure):
		return &badFile{failure.Reason, err}
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such file")
		return &badFile{"not_found", err}
	case errors.As(err, &path): // the file's name stands before the message already
		return &badFile{"unreadable_file", path.Err}
	default:
		return &badFile{"unreadable_file", err}
	}
}

// A reader reads inputs, several at a time.
type reader struct {
	recognize func(context.Context, image.Image) (ocr.Reading, error)
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

// inOrder reads the inputs side by side and yields what came of them in the order given. At
// most one more than workers is in memory; a slow one keeps up to four times as many results
// waiting. When ctx ends, the results that are there are still yielded, and no others.
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
				continue
			}
			if !yield(next) {
				return
			}
		}
	}
}

// start reads the inputs and returns where each result will be, in order.
func (r *reader) start(ctx context.Context, list []input) <-chan chan result {
	running := make(chan struct{}, r.workers+1)
	slots := make(chan chan result, 4*r.workers)
	go func() {
		defer close(slots)
		for i, in := range list {
			select {
			case <-ctx.Done():
				return
			case running <- struct{}{}:
			}
			slot := make(chan result, 1)
			go func() {
				slot <- r.read(ctx, i, in)
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
func (r *reader) read(ctx context.Context, index int, in input) result {
	out := result{input: in, index: index}
	out.err = in.err
	if out.err == nil {
		out.err = r.fill(ctx, &out)
	}
	var failure *ocr.Failure
	var stopped *ocr.StartError
	switch {
	case out.err == nil || errors.As(out.err, &stopped) || errors.Is(out.err, ocr.ErrClosed) || errors.Is(out.err, errOverlay):
	case ctx.Err() != nil && !errors.As(out.err, &failure):
		out.err = ctx.Err()
	default:
		out.err = trouble(out.err)
	}
	return out
}

func (r *reader) fill(ctx context.Context, out *result) error {
	body, err := r.body(out.name)
	if err != nil {
		return err
	}
	img, release, err := r.decode(ctx, body)
	if err != nil {
		return err
	}
	defer release()
	sum := sha256.Sum256(body)
	out.sha256 = hex.EncodeToString(sum[:])
	out.width, out.height = img.Bounds().Dx(), img.Bounds().Dy()
	out.Reading, err = r.recognize(ctx, img)
	if err != nil {
		return err
	}
	if r.overlays {
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

// decode checks and decodes a file as rehydrate does a downloaded one, and turns the picture
// upright. The caller calls release.
func (r *reader) decode(ctx context.Context, body []byte) (img image.Image, release func(), err error) {
	info, fault := r.policy.InspectImage(body)
	if fault != nil {
		return nil, nil, fault
	}
	// All images decoded at once share the memory of the largest image allowed.
	weight := min(info.DecodedBytes, r.policy.Images.MaxDecodedBytes())
	if err := r.memory.Acquire(ctx, weight); err != nil {
		return nil, nil, err
	}
	release = func() { r.memory.Release(weight) }
	img, err = policy.DecodeImage(body)
	if err != nil {
		release()
		return nil, nil, &badFile{"undecodable", err}
	}
	return policy.Upright(img, body), release, nil
}
