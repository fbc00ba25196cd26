package ocr

import (
	"context"
	"fmt"
	"image"
	"io"
)

// A Recognizer is the engine inside a worker. Serve calls it from one goroutine.
type Recognizer interface {
	// Hello tells the engine's versions and model. It is ready to read when Serve is
	// called: whatever can be missing has been looked for.
	Hello() Engine
	// Recognize reads one image in the given mode. An error is this image's trouble; the
	// next image may be read all the same.
	Recognize(gray *image.Gray, m Mode) ([]RawWord, error)
	Close() error
}

// Serve is the worker's loop: it says hello on out, then answers one request after the
// other until in ends, which is its way to be told to stop (nil), or ctx does. It does
// not close r. A request that is not the protocol ends it with an error.
func Serve(ctx context.Context, in io.Reader, out io.Writer, r Recognizer) error {
	if err := writeHello(out, Hello{Protocol: ProtocolVersion, Engine: r.Hello()}); err != nil {
		return fmt.Errorf("say hello to the supervisor: %w", err)
	}
	requests := readRequests(ctx, in)
	for {
		var next incoming
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case next = <-requests:
		}
		if next.err == io.EOF {
			return nil
		}
		if next.err != nil {
			return fmt.Errorf("read a request: %w", next.err)
		}
		words, err := r.Recognize(next.gray, next.mode)
		if err := writeAnswer(out, next.id, next.gray.Rect, words, err); err != nil {
			return fmt.Errorf("answer request %d: %w", next.id, err)
		}
	}
}

type incoming struct {
	request
	err error
}

// readRequests reads in on a goroutine of its own, because a read of stdin cannot be
// cancelled. The goroutine ends after the first error, or with ctx at its next frame.
func readRequests(ctx context.Context, in io.Reader) <-chan incoming {
	requests := make(chan incoming)
	go func() {
		for {
			q, err := readRequest(in)
			select {
			case <-ctx.Done():
				return
			case requests <- incoming{q, err}:
			}
			if err != nil {
				return
			}
		}
	}()
	return requests
}
