package ocr

import (
	"fmt"
	"image"
	"io"
)

// Serve is the worker's loop: it says hello on out, then answers one request after the
// other until in ends, which is its way to be told to stop (nil). recognize reads one image
// with the engine e; an error is this image's trouble, and the next may be read all the same.
// A request that is not the protocol ends Serve with an error.
func Serve(in io.Reader, out io.Writer, e Engine, recognize func(*image.Gray, Mode) ([]RawWord, error)) error {
	if err := writeJSON(out, kindHello, Hello{Protocol: ProtocolVersion, Engine: e}); err != nil {
		return fmt.Errorf("say hello to the supervisor: %w", err)
	}
	for {
		q, err := readRequest(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		words, err := recognize(q.gray, q.mode)
		if err := writeAnswer(out, q.id, q.gray.Rect, words, err); err != nil {
			return fmt.Errorf("answer request %d: %w", q.id, err)
		}
	}
}
