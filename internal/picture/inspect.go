package picture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/webp"
)

// Info is what the header of an image says.
type Info struct {
	Format        string // jpeg, png, gif or webp
	Width, Height int    // pixels; of a GIF, the canvas
	DecodedBytes  int64  // what Decode will allocate: an estimate on the high side, at most Limits.MaxDecodedBytes
}

// Limits bound the files that may be decoded. The zero value allows none.
type Limits struct {
	MaxBytes  int64 // of the file
	MaxPixels int64 // width times height
	MaxSide   int   // pixels
}

// A Fault says why a file may not be decoded.
type Fault struct {
	Reason  string // empty_body, not_an_image_html, too_many_pixels...: lower-case words joined by underscores
	Detail  string // for people: what was found
	Allowed string // for people: what the limit that is broken allows; "" where none is
}

// maxScans bounds the scans of a JPEG. Progressive files have about 10; libjpeg-turbo's fuzzer stops at 500.
const maxScans = 100

// Inspect decides from its bytes alone whether a file may be decoded: the size, the magic bytes (a Content-Type or a
// file extension never counts), the header, and the limits on side, pixels and decoded bytes. It reads no pixels. The
// fault is nil exactly when the file may go to Decode. With a fault, Info has the format and the size if the header
// could be read, and is zero otherwise.
func Inspect(body []byte, l Limits) (Info, *Fault) {
	if len(body) == 0 {
		return Info{}, &Fault{Reason: "empty_body", Detail: "the file has no bytes"}
	}
	if int64(len(body)) > l.MaxBytes {
		return Info{}, &Fault{"too_large", fmt.Sprintf("%d bytes", len(body)), fmt.Sprint(l.MaxBytes)}
	}
	format := sniff(body)
	c, ok := codecs[format]
	if !ok {
		reason := strings.TrimSuffix("not_an_image_"+format, "_")
		return Info{}, &Fault{Reason: reason, Detail: fmt.Sprintf(notDecoded, cmp.Or(format, "of no known kind"))}
	}
	const kind, flags, animation = 12, 20, 0x02 // of WebP's extended header: "RIFF", size, "WEBP", "VP8X", size, flags
	if format == "webp" && len(body) > flags && string(body[kind:kind+4]) == "VP8X" && body[flags]&animation != 0 {
		return Info{}, &Fault{Reason: "animated_webp", Detail: "an animated WebP; no decoder here reads its first frame"}
	}
	cfg, err := guarded(func() (image.Config, error) { return c.config(bytes.NewReader(body)) })
	if err != nil {
		return Info{}, &Fault{Reason: "bad_header", Detail: fmt.Sprintf("%s: %v", format, err)}
	}
	info := Info{Format: format, Width: cfg.Width, Height: cfg.Height}
	size := fmt.Sprintf("%d by %d pixels", cfg.Width, cfg.Height)
	w, h := int64(info.Width), int64(info.Height)
	switch {
	case w <= 0 || h <= 0:
		return info, &Fault{Reason: "bad_header", Detail: format + ": " + size}
	case max(w, h) > int64(l.MaxSide):
		return info, &Fault{"side_too_long", size, fmt.Sprintf("a side of %d", l.MaxSide)}
	case w*h > l.MaxPixels:
		return info, &Fault{"too_many_pixels", size, fmt.Sprintf("%d in all", l.MaxPixels)}
	}
	// Each scan walks the whole picture again, so a small file with thousands of them decodes for minutes.
	if n := bytes.Count(body, []byte{0xFF, mSOS}); format == "jpeg" && n > maxScans {
		return info, &Fault{Reason: "too_many_scans", Detail: fmt.Sprintf("%d scans, at most %d are decoded", n, maxScans)}
	}
	needed := decodedBytes(format, body, w, h)
	if limit := l.MaxDecodedBytes(); needed > limit {
		return info, &Fault{"too_many_bytes_decoded",
			fmt.Sprintf("%s, %s: needs about %d bytes decoded", format, size, needed),
			fmt.Sprintf("%d (4 for each of max_pixels)", limit)}
	}
	info.DecodedBytes = needed
	return info, nil
}

const notDecoded = "the bytes are %s, not JPEG, PNG, GIF or WebP"

// A codec is called by its own name and never through image.Decode, so that a decoder that some other package registers
// is never reached.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[string]codec{
	"jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"png":  {png.DecodeConfig, png.Decode},
	"gif":  {gif.DecodeConfig, gif.Decode}, // gif.Decode stops after the first frame
	"webp": {webp.DecodeConfig, webp.Decode},
}

// Decode decodes a file that Inspect has passed. Of an animated GIF it is the first frame, on a canvas of
// the GIF's size, however many follow; of an animated PNG the picture that viewers without animation show. A body in
// another format, and a decoder that panics, are errors.
func Decode(body []byte) (image.Image, error) {
	format := sniff(body)
	c, ok := codecs[format]
	if !ok {
		return nil, fmt.Errorf("decode image: "+notDecoded, cmp.Or(format, "of no known kind"))
	}
	img, err := guarded(func() (image.Image, error) { return c.decode(bytes.NewReader(body)) })
	if err == nil && img.Bounds().Empty() { // a GIF's first frame may be
		err = errors.New("the image has no pixels")
	}
	if err == nil && format == "gif" {
		// Only now: the picture must have the size that Inspect named.
		img, err = onCanvas(img, body)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", format, err)
	}
	return img, nil
}

// onCanvas puts a GIF frame that covers a part of the canvas in its place.
func onCanvas(frame image.Image, body []byte) (image.Image, error) {
	cfg, err := gif.DecodeConfig(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	canvas := image.Rect(0, 0, cfg.Width, cfg.Height)
	if frame.Bounds() == canvas {
		return frame, nil
	}
	whole := image.NewNRGBA(canvas)
	draw.Draw(whole, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
	return whole, nil
}

// guarded runs a decoder and turns its panic into an error.
func guarded[T any](decode func() (T, error)) (result T, err error) {
	defer func() {
		// Past ones are known (Go vulnerability GO-2026-4961 in the WebP decoder), and one bad image costs one row.
		if v := recover(); v != nil {
			err = fmt.Errorf("the decoder failed on damaged data: %v", v)
		}
	}()
	return decode()
}
