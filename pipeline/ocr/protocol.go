package ocr

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"rehydrate/internal/word"
)

// ProtocolVersion is the version of the messages between supervisor and worker. A worker of another version is
// refused at its hello.
//
//	1: hello, request, answer
//	2: the request says whether to look for inverted text
//	3: words go as word.Raw
//	4: a message is a line of JSON, no frame
//	5: a request has several pictures, an answer the words of each
//	6: a line goes as mode 13
const ProtocolVersion = 6

// A message is one line of JSON; the grey bytes of its pictures follow that of a request, one picture after the other.
// The worker speaks first, with a hello; then each request has one answer.
//
// The largest request made is 1000 x 1000 pixels; the largest answer seen on noise has about 2,000 words of 150 bytes.
const (
	maxSide     = 4096
	maxPixels   = 4 << 20 // of all pictures of a request
	maxPictures = 64
	maxAnswer   = 4 << 20
	maxWords    = 10_000 // of an answer: the merge compares each with each
)

// errProtocol marks everything a peer sent that is not the protocol.
var errProtocol = errors.New("not the worker protocol")

// A Hello is what a worker says of itself before anything else.
type Hello struct {
	Protocol int    `json:"protocol"`
	Engine   Engine `json:"engine"`
}

// An Engine names what reads the images.
type Engine struct {
	Name        string `json:"name,omitempty"` // name and version of another engine than Tesseract, which has no library versions
	Tesseract   string `json:"tesseract"`      // library version
	Leptonica   string `json:"leptonica"`      // library version
	Gosseract   string `json:"gosseract"`      // module version
	Model       string `json:"model"`          // language model: eng
	ModelSHA256 string `json:"model_sha256"`   // hex digest of the traineddata file
	// Parameters are the worker's own settings in its hello; in Pool.Engine every
	// constant of the reading follows them.
	Parameters string `json:"parameters"`
}

// String names the engine for a dataset's provenance.
func (e Engine) String() string {
	if e.Name != "" {
		return oneLine(e.Name)
	}
	return fmt.Sprintf("tesseract %s, leptonica %s, gosseract %s", e.Tesseract, e.Leptonica, e.Gosseract)
}

// Fingerprint is the hex SHA-256 of everything that decides what an image reads as, after the engine's Name if it has
// one.
func (e Engine) Fingerprint() string {
	// The Go version is among it, because thresholds sit on the pixels of its decoders.
	body, _ := json.Marshal(struct {
		Engine
		Go string `json:"go"`
	}{e, runtime.Version()}) // a struct of strings always encodes
	sum := sha256.Sum256(body)
	return strings.TrimSpace(oneLine(e.Name) + " " + hex.EncodeToString(sum[:]))
}

// A Mode is how Tesseract reads an image.
type Mode struct {
	PSM    int  // page segmentation mode
	Invert bool // lines that give little are read inverted as well
}

// The modes of a line as it is cut out, which Tesseract looks for no line in, and of a whole picture.
var (
	lineMode = Mode{PSM: 13}
	pageMode = Mode{PSM: 11, Invert: true}
)

// parameters describes the mode in Engine.Parameters.
func (m Mode) parameters() string {
	if m.Invert {
		return fmt.Sprintf("psm %d invert", m.PSM)
	}
	return fmt.Sprintf("psm %d", m.PSM)
}

type request struct {
	ID    uint64
	Mode  Mode
	Sizes []image.Point // of the pictures
}

func (q request) wrongSize() error {
	if len(q.Sizes) < 1 || len(q.Sizes) > maxPictures {
		return fmt.Errorf("%w: request of %d pictures", errProtocol, len(q.Sizes))
	}
	pixels := 0
	for _, s := range q.Sizes {
		// The sides first: their product could overflow.
		if s.X < 1 || s.Y < 1 || s.X > maxSide || s.Y > maxSide {
			return fmt.Errorf("%w: request of %d x %d pixels", errProtocol, s.X, s.Y)
		}
		pixels += s.X * s.Y
	}
	if pixels > maxPixels {
		return fmt.Errorf("%w: request of %d pixels", errProtocol, pixels)
	}
	return nil
}

type answer struct {
	ID    uint64       `json:"id"`
	Words [][]word.Raw `json:"words,omitempty"` // of each picture
	Error string       `json:"error,omitempty"`
}

// readLine reads one message of at most r's size. Errors are io.EOF between messages, io.ErrUnexpectedEOF inside one,
// and errProtocol.
func readLine(r *bufio.Reader, v any) error {
	// What does not begin as a message may never end as one: waiting for its line end takes until the deadline.
	if head, err := r.Peek(1); err == nil && head[0] != '{' {
		return fmt.Errorf("%w: it begins with %q", errProtocol, head)
	}
	line, err := r.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) > 0:
		return io.ErrUnexpectedEOF
	case err == bufio.ErrBufferFull:
		return fmt.Errorf("%w: a line of more than %d bytes", errProtocol, r.Size())
	case err != nil:
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w: %v", errProtocol, err)
	}
	return nil
}

// writeLine writes one message, and pixels behind it.
func writeLine(w io.Writer, v any, pixels []byte) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	_, err = w.Write(append(append(line, '\n'), pixels...))
	return err
}

func writeRequest(w io.Writer, id uint64, m Mode, pictures []*image.Gray) error {
	q := request{ID: id, Mode: m}
	for _, g := range pictures {
		q.Sizes = append(q.Sizes, g.Rect.Size())
	}
	if err := q.wrongSize(); err != nil {
		return err
	}
	var pixels []byte
	for _, g := range pictures {
		// Row by row, because a part of an image has other pixels between its rows.
		for y := range g.Rect.Dy() {
			pixels = append(pixels, g.Pix[y*g.Stride:y*g.Stride+g.Rect.Dx()]...)
		}
	}
	return writeLine(w, q, pixels)
}

func readRequest(r *bufio.Reader) (q request, pictures []*image.Gray, err error) {
	if err := readLine(r, &q); err != nil {
		return q, nil, err
	}
	if err := q.wrongSize(); err != nil {
		return q, nil, err
	}
	for _, size := range q.Sizes {
		g := image.NewGray(image.Rectangle{Max: size})
		if _, err := io.ReadFull(r, g.Pix); err != nil {
			return q, nil, io.ErrUnexpectedEOF // also where nothing came: the request is half
		}
		pictures = append(pictures, g)
	}
	return q, pictures, nil
}

// readHello reads the worker's first message. A worker of another protocol version is
// an errProtocol that names both versions.
func readHello(r *bufio.Reader) (Hello, error) {
	var h Hello
	err := readLine(r, &h)
	if err == nil && h.Protocol != ProtocolVersion {
		err = fmt.Errorf("%w: the worker speaks version %d, this program version %d", errProtocol, h.Protocol,
			ProtocolVersion)
	}
	return h, err
}

// writeAnswer sends the words of each picture, or cause where it is not nil.
func writeAnswer(w io.Writer, id uint64, sizes []image.Point, words [][]word.Raw, cause error) error {
	if cause != nil {
		return writeLine(w, answer{ID: id, Error: cause.Error()}, nil)
	}
	a := answer{ID: id}
	for i, of := range words {
		// The engine is not held to its own bounds, and the reader refuses what is outside of them.
		of = slices.Clone(of)
		for k, word := range of {
			if math.IsNaN(word.Confidence) { // JSON has no way to write it
				word.Confidence = 0
			}
			of[k].Confidence = min(max(word.Confidence, 0), 100)
			of[k].Box = word.Box.Intersect(image.Rectangle{Max: sizes[i]})
		}
		a.Words = append(a.Words, of)
	}
	return writeLine(w, a, nil)
}

// An engineError is what the worker itself says went wrong with an image.
type engineError string

func (e engineError) Error() string { return string(e) }

// readAnswer reads the answer to request id for pictures of the given sizes. Errors are those of readLine, an
// engineError, and errProtocol for anything else, including words outside their picture.
func readAnswer(r *bufio.Reader, id uint64, pictures []*image.Gray) ([][]word.Raw, error) {
	var a answer
	if err := readLine(r, &a); err != nil {
		return nil, err
	}
	switch {
	case a.ID != id:
		return nil, fmt.Errorf("%w: answer to request %d, expected %d", errProtocol, a.ID, id)
	case a.Error != "":
		return nil, engineError(a.Error)
	case len(a.Words) != len(pictures):
		return nil, fmt.Errorf("%w: answer for %d pictures, expected %d", errProtocol, len(a.Words), len(pictures))
	}
	all := 0
	for i, words := range a.Words {
		all += len(words)
		if all > maxWords {
			return nil, fmt.Errorf("%w: answer of more than %d words", errProtocol, maxWords)
		}
		size := pictures[i].Rect.Size()
		for _, w := range words {
			b := w.Box
			// Not Rectangle.In, which takes every empty box for inside.
			inside := b == b.Canon() && b.Min.X >= 0 && b.Min.Y >= 0 && b.Max.X <= size.X && b.Max.Y <= size.Y
			if !inside || !(w.Confidence >= 0 && w.Confidence <= 100) {
				return nil, fmt.Errorf("%w: word %v with confidence %v in a picture of %v", errProtocol, b, w.Confidence, size)
			}
		}
	}
	return a.Words, nil
}

// Serve is the worker's loop: it says hello on out, then answers one request after the
// other until in ends, which is its way to be told to stop (nil). recognize reads one picture
// with the engine e; an error is this request's trouble, and the next may be read all the same.
// A request that is not the protocol ends Serve with an error.
func Serve(in io.Reader, out io.Writer, e Engine, recognize func(*image.Gray, Mode) ([]word.Raw, error)) error {
	if err := writeLine(out, Hello{Protocol: ProtocolVersion, Engine: e}, nil); err != nil {
		return fmt.Errorf("say hello to the supervisor: %w", err)
	}
	requests := bufio.NewReader(in)
	for {
		q, pictures, err := readRequest(requests)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		words := make([][]word.Raw, len(pictures))
		for i := 0; i < len(pictures) && err == nil; i++ {
			words[i], err = recognize(pictures[i], q.Mode)
		}
		if err := writeAnswer(out, q.ID, q.Sizes, words, err); err != nil {
			return fmt.Errorf("answer request %d: %w", q.ID, err)
		}
	}
}
