package ocr

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"slices"
)

// ProtocolVersion is the version of the frames between supervisor and worker. A
// worker of another version is refused at its hello.
//
//	1: hello, request, answer
//	2: the request says whether to look for inverted text
//	3: words go as RawWord
const ProtocolVersion = 3

// A frame is a big-endian uint32 with the length of what follows, one byte of kind,
// and a body. The worker speaks first, with a hello; then each request has one answer.
//
//	hello    JSON {"protocol": n, "engine": {...}}
//	request  a requestHeader, then width*height grey bytes
//	answer   JSON {"id": n, "words": [...]} or {"id": n, "error": "..."}
const (
	kindHello   = 'H'
	kindRequest = 'Q'
	kindAnswer  = 'A'
)

// Bounds of one frame. The largest request made is 1000 x 1000 pixels; the largest
// answer seen on noise has about 2,000 words of 150 bytes.
const (
	maxSide    = 4096
	maxPixels  = 4 << 20
	maxRequest = 1 + 18 + maxPixels
	maxReply   = 4 << 20
	maxWords   = 10_000 // the merge compares each with each
)

// errProtocol marks everything a peer sent that is not the protocol.
var errProtocol = errors.New("not the worker protocol")

// A Hello is what a worker says of itself before anything else.
type Hello struct {
	Protocol int    `json:"protocol"`
	Engine   Engine `json:"engine"`
}

// A RawWord is one word as the engine gives it, in pixels of the image it was asked
// to read. Block, Par and Line number the engine's layout; one word of them is equal
// to another's exactly where both stand on one line.
type RawWord struct {
	Text             string
	Confidence       float64 // 0..100
	Box              image.Rectangle
	Block, Par, Line int
}

// A Mode is how Tesseract reads an image.
type Mode struct {
	PSM    int  // page segmentation mode: 3 automatic, 7 one line, 11 sparse text
	Invert bool // lines that give little are read inverted as well
}

type request struct {
	id   uint64
	mode Mode
	gray *image.Gray
}

type requestHeader struct {
	ID            uint64
	PSM           uint8
	Invert        bool
	Width, Height uint32
}

func (h requestHeader) tooLarge() bool {
	return h.Width < 1 || h.Height < 1 || h.Width > maxSide || h.Height > maxSide || h.Width*h.Height > maxPixels
}

type answer struct {
	ID    uint64    `json:"id"`
	Words []RawWord `json:"words,omitempty"`
	Error string    `json:"error,omitempty"`
}

// readFrame reads one frame of a kind, of at most limit bytes after its length. It returns
// io.EOF between frames, io.ErrUnexpectedEOF inside one, and an errProtocol for a
// length out of bounds and for another kind.
func readFrame(r io.Reader, kind byte, limit uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > limit {
		return nil, fmt.Errorf("%w: frame of %d bytes, expected 1 to %d", errProtocol, n, limit)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if frame[0] != kind {
		return nil, fmt.Errorf("%w: frame %q in place of %q", errProtocol, frame[0], kind)
	}
	return frame[1:], nil
}

// writeFrame writes one frame in a single Write, so that two writers on a pipe could
// not interleave within its header.
func writeFrame(w io.Writer, kind byte, body []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(1+len(body)))
	_, err := w.Write(append(append(frame, kind), body...))
	return err
}

func writeJSON(w io.Writer, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame %q: %w", kind, err)
	}
	return writeFrame(w, kind, body)
}

func readJSON(r io.Reader, kind byte, v any) error {
	body, err := readFrame(r, kind, maxReply)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: frame %q: %v", errProtocol, kind, err)
	}
	return nil
}

func writeRequest(w io.Writer, q request) error {
	size := q.gray.Rect.Size()
	head := requestHeader{q.id, uint8(q.mode.PSM), q.mode.Invert, uint32(size.X), uint32(size.Y)}
	if head.tooLarge() {
		return fmt.Errorf("ocr request of %d x %d pixels: too small or too large to send", size.X, size.Y)
	}
	body, err := binary.Append(nil, binary.BigEndian, head)
	if err != nil {
		return fmt.Errorf("encode ocr request: %w", err)
	}
	body = slices.Grow(body, size.X*size.Y)
	for y := range size.Y {
		body = append(body, q.gray.Pix[y*q.gray.Stride:y*q.gray.Stride+size.X]...)
	}
	return writeFrame(w, kindRequest, body)
}

// readRequest reads one request. Errors are those of readFrame, and errProtocol for
// a body that does not fit its own header.
func readRequest(r io.Reader) (request, error) {
	body, err := readFrame(r, kindRequest, maxRequest)
	if err != nil {
		return request{}, err
	}
	var h requestHeader
	n, err := binary.Decode(body, binary.BigEndian, &h)
	if err != nil {
		return request{}, fmt.Errorf("%w: request of %d bytes", errProtocol, len(body))
	}
	pix := body[n:]
	if h.tooLarge() || int(h.Width*h.Height) != len(pix) {
		return request{}, fmt.Errorf("%w: request of %d x %d pixels with %d bytes", errProtocol, h.Width, h.Height, len(pix))
	}
	gray := &image.Gray{Pix: pix, Stride: int(h.Width), Rect: image.Rect(0, 0, int(h.Width), int(h.Height))}
	return request{id: h.ID, mode: Mode{PSM: int(h.PSM), Invert: h.Invert}, gray: gray}, nil
}

// readHello reads the worker's first frame. A worker of another protocol version is
// an errProtocol that names both versions.
func readHello(r io.Reader) (Hello, error) {
	var h Hello
	if err := readJSON(r, kindHello, &h); err != nil {
		return Hello{}, err
	}
	if h.Protocol != ProtocolVersion {
		return Hello{}, fmt.Errorf("%w: the worker speaks version %d, this program version %d",
			errProtocol, h.Protocol, ProtocolVersion)
	}
	return h, nil
}

// writeAnswer sends words, or cause where it is not nil. Boxes are cut to those of the image
// read, and confidences brought into range, because the reader refuses what is outside.
func writeAnswer(w io.Writer, id uint64, bounds image.Rectangle, words []RawWord, cause error) error {
	if cause != nil {
		return writeJSON(w, kindAnswer, answer{ID: id, Error: cause.Error()})
	}
	a := answer{ID: id, Words: slices.Clone(words)}
	for i, word := range a.Words {
		if math.IsNaN(word.Confidence) { // JSON has no way to write it
			word.Confidence = 0
		}
		a.Words[i].Confidence = min(max(word.Confidence, 0), 100)
		a.Words[i].Box = word.Box.Intersect(bounds)
	}
	return writeJSON(w, kindAnswer, a)
}

// An engineError is what the worker itself says went wrong with an image.
type engineError string

func (e engineError) Error() string { return string(e) }

// readAnswer reads the answer to request id for an image of the given size. Errors are
// those of readFrame, an engineError, and errProtocol for anything else, including
// words outside the image.
func readAnswer(r io.Reader, id uint64, size image.Point) ([]RawWord, error) {
	var a answer
	if err := readJSON(r, kindAnswer, &a); err != nil {
		return nil, err
	}
	switch {
	case a.ID != id:
		return nil, fmt.Errorf("%w: answer to request %d, expected %d", errProtocol, a.ID, id)
	case a.Error != "":
		return nil, engineError(a.Error)
	case len(a.Words) > maxWords:
		return nil, fmt.Errorf("%w: answer of %d words", errProtocol, len(a.Words))
	}
	for _, w := range a.Words {
		b := w.Box
		inside := b == b.Canon() && b.Min.X >= 0 && b.Min.Y >= 0 && b.Max.X <= size.X && b.Max.Y <= size.Y
		if !inside || !(w.Confidence >= 0 && w.Confidence <= 100) {
			return nil, fmt.Errorf("%w: word %v with confidence %v in an image of %v", errProtocol, b, w.Confidence, size)
		}
	}
	return a.Words, nil
}
