package policy

import (
	"bytes"
	"cmp"
	"crypto/md5" // the hash under which a known placeholder was published, not a defence
	"crypto/sha256"
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

	"rehydrate/manifest"
)

// ImageInfo is what the header of an image says.
type ImageInfo struct {
	Format        string // jpeg, png, gif or webp
	Width, Height int    // pixels; of a GIF, the canvas
	DecodedBytes  int64  // what DecodeImage will allocate: an estimate on the high side, at most Images.MaxDecodedBytes
}

// A Fault is an entry's trouble as data: the outcome it leads to, and why. Detail is for
// people; it never holds a URL, a user name or a title.
type Fault struct {
	Outcome manifest.Outcome
	Reason  manifest.Reason
	Detail  string
}

// Error makes a Fault an error, so that one can travel as such to where it is stored.
func (f *Fault) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s: %s", f.Outcome, f.Reason, f.Detail), ": ")
}

// maxScans bounds the scans of a JPEG. Progressive files have about 10; libjpeg-turbo's fuzzer stops at 500.
const maxScans = 100

// InspectImage decides from its bytes alone whether a downloaded body may be decoded: the size, the magic bytes (a
// Content-Type or a file extension never counts), the header, the caps on side, pixels and decoded bytes, and the known
// placeholders. It reads no pixels. The fault is nil exactly when the body may go to DecodeImage.
func (p Policy) InspectImage(body []byte) (ImageInfo, *Fault) {
	invalid := func(reason manifest.Reason, detail string, args ...any) (ImageInfo, *Fault) {
		return ImageInfo{}, &Fault{manifest.Invalid, reason, fmt.Sprintf(detail, args...)}
	}
	if len(body) == 0 {
		return invalid("empty_body", "the host sent no bytes")
	}
	if int64(len(body)) > p.Images.MaxBytes {
		return invalid("too_large", "%d bytes, the policy allows %d", len(body), p.Images.MaxBytes)
	}
	format := sniff(body)
	c, ok := codecs[format]
	if !ok {
		reason := strings.TrimSuffix("not_an_image_"+format, "_")
		return invalid(manifest.Reason(reason), notDecoded, cmp.Or(format, "of no known kind"))
	}
	const kind, flags, animation = 12, 20, 0x02 // of WebP's extended header: "RIFF", size, "WEBP", "VP8X", size, flags
	if format == "webp" && len(body) > flags && string(body[kind:kind+4]) == "VP8X" && body[flags]&animation != 0 {
		return invalid("animated_webp", "an animated WebP; no decoder here reads its first frame")
	}
	cfg, err := guarded(func() (image.Config, error) { return c.config(bytes.NewReader(body)) })
	if err != nil {
		return invalid("bad_header", "%s: %v", format, err)
	}
	info := ImageInfo{Format: format, Width: cfg.Width, Height: cfg.Height}
	// A placeholder has a reason of its own, so it is known before the limits are held.
	long, short := "", ""
	if p.mayBePlaceholder(len(body)) {
		long, short = fmt.Sprintf("%x", sha256.Sum256(body)), fmt.Sprintf("%x", md5.Sum(body))
	}
	if fault := p.PlaceholderOf(long, short, info, int64(len(body))); fault != nil {
		return ImageInfo{}, fault
	}
	switch w, h := int64(info.Width), int64(info.Height); {
	case w <= 0 || h <= 0:
		return invalid("bad_header", "%s: %d by %d pixels", format, w, h)
	case max(w, h) > int64(p.Images.MaxSide):
		return invalid("side_too_long", "%d by %d pixels, the policy allows a side of %d", w, h, p.Images.MaxSide)
	case w*h > p.Images.MaxPixels:
		return invalid("too_many_pixels", "%d by %d pixels, the policy allows %d in all", w, h, p.Images.MaxPixels)
	}
	// Each scan walks the whole picture again, so a small file with thousands of them decodes for minutes.
	if n := bytes.Count(body, []byte{0xFF, 0xDA}); format == "jpeg" && n > maxScans {
		return invalid("too_many_scans", "%d scans, at most %d are decoded", n, maxScans)
	}
	info.DecodedBytes = decodedBytes(format, body, int64(info.Width), int64(info.Height))
	if limit := p.Images.MaxDecodedBytes(); info.DecodedBytes > limit {
		return invalid("too_many_bytes_decoded",
			"%s, %d by %d pixels: needs about %d bytes decoded, the policy allows %d (4 for each of max_pixels)",
			format, info.Width, info.Height, info.DecodedBytes, limit)
	}
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

// DecodeImage decodes a body that InspectImage has passed. Of an animated GIF it is the first frame, on a canvas of
// the GIF's size, however many follow; of an animated PNG the picture that viewers without animation show. A body in
// another format, and a decoder that panics, are errors.
func DecodeImage(body []byte) (image.Image, error) {
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
		// Only now: the picture must have the size that InspectImage named.
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

// SniffBytes is how many bytes from the start of a file ImageFormat looks at.
const SniffBytes = 16

// ImageFormat names the format of a file by its first SniffBytes bytes: jpeg, png, gif or webp, "" for everything else.
// The rest of the file may be anything: see InspectImage.
func ImageFormat(head []byte) string {
	if format := sniff(head); codecs[format].decode != nil {
		return format
	}
	return ""
}

// magics are the first bytes of the formats that are worth naming, the codecs' and others; ? is any byte. The first
// that fits counts.
var magics = []struct{ format, magic string }{
	{"jpeg", "\xFF\xD8\xFF"}, {"png", "\x89PNG\r\n\x1a\n"}, {"gif", "GIF87a"}, {"gif", "GIF89a"}, {"webp", "RIFF????WEBP"},
	{"pdf", "%PDF-"}, {"zip", "PK\x03\x04"}, {"zip", "PK\x05\x06"}, {"gzip", "\x1f\x8b"},
	{"avif", "????ftypavif"}, {"avif", "????ftypavis"}, {"heic", "????ftyphei"}, {"heic", "????ftypmif1"},
	{"mp4", "????ftyp"}, {"webm", "\x1aE\xdf\xa3"}, {"tiff", "II*\x00"}, {"tiff", "MM\x00*"}, {"bmp", "BM"},
	{"ico", "\x00\x00\x01\x00"}, {"jxl", "\xFF\x0A"}, {"jxl", "\x00\x00\x00\x0CJXL \r\n\x87\n"},
	{"jp2", "\xFF\x4F\xFF\x51"}, {"jp2", "\x00\x00\x00\x0CjP  \r\n\x87\n"},
}

// texts are the starts of the kinds of text that hosts send in place of an image.
var texts = []struct{ format, start string }{
	{"html", "<!doctype html"}, {"html", "<head"}, {"html", "<body"}, {"html", "<script"},
	{"xml", "<"}, {"json", "{"}, {"json", "["},
}

// sniff names what the bytes are by their first ones; "" stands for an unknown format.
func sniff(b []byte) string {
	for _, m := range magics {
		i := 0
		for i < len(m.magic) && i < len(b) && (m.magic[i] == '?' || m.magic[i] == b[i]) {
			i++
		}
		if i == len(m.magic) {
			return m.format
		}
	}
	// Pages and answers of an API begin with a byte order mark or blanks at times, and are in any case.
	text := bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	text = bytes.ToLower(bytes.TrimLeft(text[:min(len(text), 1024)], " \t\r\n"))
	for _, format := range []string{"svg", "html"} { // these may follow an XML declaration or a comment
		if bytes.Contains(text, []byte("<"+format)) {
			return format
		}
	}
	for _, t := range texts {
		if bytes.HasPrefix(text, []byte(t.start)) {
			return t.format
		}
	}
	return ""
}
