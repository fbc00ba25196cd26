package ocr

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"unicode/utf8"
)

// ProtocolVersion is the version of the frames between supervisor and worker. A
// worker of another version is refused at its hello.
//
//	1: hello, request, answer
//	2: the request says whether to look for inverted text
const ProtocolVersion = 2

// A frame is a big-endian uint32 with the length of what follows, one byte of kind,
// and a body. The worker speaks first, with a hello; then each request has one answer.
//
//	hello    JSON {"protocol": n, "engine": {...}}
//	request  id uint64, psm uint8, invert uint8 (0, 1), width uint32, height uint32, width*height grey bytes
//	answer   JSON {"id": n, "words": [...]} or {"id": n, "error": "..."}
const (
	kindHello   = 'H'
	kindRequest = 'Q'
	kindAnswer  = 'A'
)

// Bounds of one frame. The largest request made is 1000 x 1000 pixels; the largest
// answer seen on noise has about 2,000 words of 100 bytes.
const (
	maxSide       = 4096
	maxPixels     = 4 << 20
	requestHeader = 8 + 1 + 1 + 4 + 4
	maxRequest    = 1 + requestHeader + maxPixels
	maxReply      = 4 << 20
	maxWords      = 10_000
	maxWordBytes  = 1024
	maxNumber     = 1 << 20 // block, paragraph and line numbers
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

type answer struct {
	ID    uint64     `json:"id"`
	Words []wireWord `json:"words,omitempty"`
	Error string     `json:"error,omitempty"`
}

type wireWord struct {
	Text       string  `json:"t"`
	Confidence float64 `json:"c"`
	Box        [4]int  `json:"b"` // left, top, right, bottom
	Line       [3]int  `json:"l"` // block, paragraph, line
}

// readFrame reads one frame of at most limit bytes after its length. It returns
// io.EOF between frames, io.ErrUnexpectedEOF inside one, and an errProtocol for a
// length out of bounds.
func readFrame(r io.Reader, limit uint32) (kind byte, body []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > limit {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, expected 1 to %d", errProtocol, n, limit)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return frame[0], frame[1:], nil
}

// writeFrame writes one frame in a single Write, so that two writers on a pipe could
// not interleave within its header.
func writeFrame(w io.Writer, kind byte, parts ...[]byte) error {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	frame := make([]byte, 0, 4+n)
	frame = binary.BigEndian.AppendUint32(frame, uint32(n))
	frame = append(frame, kind)
	for _, p := range parts {
		frame = append(frame, p...)
	}
	_, err := w.Write(frame)
	return err
}

func writeRequest(w io.Writer, q request) error {
	width, height := q.gray.Rect.Dx(), q.gray.Rect.Dy()
	if width < 1 || height < 1 || width > maxSide || height > maxSide || width*height > maxPixels {
		return fmt.Errorf("ocr request of %d x %d pixels: too small or too large to send", width, height)
	}
	head := make([]byte, 0, requestHeader)
	head = binary.BigEndian.AppendUint64(head, q.id)
	invert := byte(0)
	if q.mode.Invert {
		invert = 1
	}
	head = append(head, byte(q.mode.PSM), invert)
	head = binary.BigEndian.AppendUint32(head, uint32(width))
	head = binary.BigEndian.AppendUint32(head, uint32(height))
	return writeFrame(w, kindRequest, head, packed(q.gray))
}

// packed returns the pixels of g row by row without padding.
func packed(g *image.Gray) []byte {
	width, height := g.Rect.Dx(), g.Rect.Dy()
	if g.Stride == width {
		return g.Pix[:width*height]
	}
	out := make([]byte, 0, width*height)
	for y := range height {
		out = append(out, g.Pix[y*g.Stride:y*g.Stride+width]...)
	}
	return out
}

// readRequest reads one request. Errors are those of readFrame, and errProtocol for
// any other kind of frame or a body that does not fit its own header.
func readRequest(r io.Reader) (request, error) {
	kind, body, err := readFrame(r, maxRequest)
	if err != nil {
		return request{}, err
	}
	if kind != kindRequest || len(body) < requestHeader {
		return request{}, fmt.Errorf("%w: frame %q of %d bytes in place of a request", errProtocol, kind, len(body))
	}
	id, mode := binary.BigEndian.Uint64(body), Mode{PSM: int(body[8]), Invert: body[9] == 1}
	width, height := binary.BigEndian.Uint32(body[10:]), binary.BigEndian.Uint32(body[14:])
	pix := body[requestHeader:]
	if body[9] > 1 || width < 1 || height < 1 || width > maxSide || height > maxSide || uint64(width)*uint64(height) != uint64(len(pix)) {
		return request{}, fmt.Errorf("%w: request of %d x %d pixels with %d bytes", errProtocol, width, height, len(pix))
	}
	gray := &image.Gray{Pix: pix, Stride: int(width), Rect: image.Rect(0, 0, int(width), int(height))}
	return request{id: id, mode: mode, gray: gray}, nil
}

func writeHello(w io.Writer, h Hello) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode hello: %w", err)
	}
	return writeFrame(w, kindHello, body)
}

// readHello reads the worker's first frame. A worker of another protocol version is
// an errProtocol that names both versions.
func readHello(r io.Reader) (Hello, error) {
	kind, body, err := readFrame(r, maxReply)
	if err != nil {
		return Hello{}, err
	}
	if kind != kindHello {
		return Hello{}, fmt.Errorf("%w: frame %q in place of a hello", errProtocol, kind)
	}
	var h Hello
	if err := json.Unmarshal(body, &h); err != nil {
		return Hello{}, fmt.Errorf("%w: hello: %v", errProtocol, err)
	}
	if h.Protocol != ProtocolVersion {
		return Hello{}, fmt.Errorf("%w: the worker speaks version %d, this program version %d", errProtocol, h.Protocol, ProtocolVersion)
	}
	return h, nil
}

// writeAnswer sends words, or cause where it is not nil. bounds are those of the image
// read: boxes are cut to them, and numbers brought into range, because the reader
// refuses what is outside.
func writeAnswer(w io.Writer, id uint64, bounds image.Rectangle, words []RawWord, cause error) error {
	a := answer{ID: id}
	if cause == nil && len(words) > maxWords {
		cause = fmt.Errorf("%d words in one image, at most %d are sent", len(words), maxWords)
	}
	if cause != nil {
		a.Error = cause.Error()
	} else {
		for _, word := range words {
			a.Words = append(a.Words, wire(word, bounds))
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return writeFrame(w, kindAnswer, body)
}

func wire(w RawWord, bounds image.Rectangle) wireWord {
	text := w.Text
	if len(text) > maxWordBytes {
		text = text[:maxWordBytes]
	}
	confidence := w.Confidence
	if math.IsNaN(confidence) {
		confidence = 0
	}
	box := w.Box.Intersect(bounds).Sub(bounds.Min)
	number := func(n int) int { return min(max(n, 0), maxNumber) }
	return wireWord{
		Text:       text,
		Confidence: min(max(confidence, 0), 100),
		Box:        [4]int{box.Min.X, box.Min.Y, box.Max.X, box.Max.Y},
		Line:       [3]int{number(w.Block), number(w.Par), number(w.Line)},
	}
}

// An engineError is what the worker itself says went wrong with an image.
type engineError string

func (e engineError) Error() string { return string(e) }

// readAnswer reads the answer to request id for an image of the given size. Errors are
// those of readFrame, an engineError, and errProtocol for anything else, including
// words outside the image.
func readAnswer(r io.Reader, id uint64, width, height int) ([]RawWord, error) {
	kind, body, err := readFrame(r, maxReply)
	if err != nil {
		return nil, err
	}
	if kind != kindAnswer {
		return nil, fmt.Errorf("%w: frame %q in place of an answer", errProtocol, kind)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("%w: answer: %v", errProtocol, err)
	}
	if a.ID != id {
		return nil, fmt.Errorf("%w: answer to request %d, expected %d", errProtocol, a.ID, id)
	}
	if a.Error != "" {
		return nil, engineError(a.Error)
	}
	if len(a.Words) > maxWords {
		return nil, fmt.Errorf("%w: answer of %d words", errProtocol, len(a.Words))
	}
	words := make([]RawWord, len(a.Words))
	for i, w := range a.Words {
		words[i], err = unwire(w, width, height)
		if err != nil {
			return nil, err
		}
	}
	return words, nil
}

func unwire(w wireWord, width, height int) (RawWord, error) {
	b := w.Box
	switch {
	case b[0] < 0 || b[1] < 0 || b[2] < b[0] || b[3] < b[1] || b[2] > width || b[3] > height:
		return RawWord{}, fmt.Errorf("%w: word box %v in an image of %d x %d", errProtocol, b, width, height)
	case w.Confidence < 0 || w.Confidence > 100:
		return RawWord{}, fmt.Errorf("%w: word confidence %v", errProtocol, w.Confidence)
	case len(w.Text) > maxWordBytes+utf8.UTFMax:
		return RawWord{}, fmt.Errorf("%w: word of %d bytes", errProtocol, len(w.Text))
	}
	for _, n := range w.Line {
		if n < 0 || n > maxNumber {
			return RawWord{}, fmt.Errorf("%w: line number %v", errProtocol, w.Line)
		}
	}
	return RawWord{Text: w.Text, Confidence: w.Confidence, Box: image.Rect(b[0], b[1], b[2], b[3]),
		Block: w.Line[0], Par: w.Line[1], Line: w.Line[2]}, nil
}
