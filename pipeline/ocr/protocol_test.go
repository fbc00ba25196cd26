package ocr

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testGray(width, height int) *image.Gray {
	g := image.NewGray(image.Rect(0, 0, width, height))
	for i := range g.Pix {
		g.Pix[i] = uint8(i * 7)
	}
	return g
}

func TestRequestRoundTrip(t *testing.T) {
	whole := testGray(9, 7)
	for name, g := range map[string]*image.Gray{
		"plain":     whole,
		"subimage":  whole.SubImage(image.Rect(2, 3, 7, 6)).(*image.Gray),
		"one pixel": testGray(1, 1),
	} {
		var b bytes.Buffer
		if err := writeRequest(&b, request{id: 1<<63 + 5, mode: Mode{PSM: 11, Invert: true}, gray: g}); err != nil {
			t.Fatal(err)
		}
		got, err := readRequest(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.id != 1<<63+5 || got.mode != (Mode{PSM: 11, Invert: true}) || got.gray.Rect.Size() != g.Rect.Size() || !bytes.Equal(got.gray.Pix, packed(g)) {
			t.Errorf("%s: read back %+v", name, got)
		}
	}
	if err := writeRequest(io.Discard, request{gray: testGray(maxSide+1, 1)}); err == nil {
		t.Error("a request too large to read was written")
	}
}

func TestReadFrameErrors(t *testing.T) {
	var whole bytes.Buffer
	if err := writeRequest(&whole, request{id: 1, mode: Mode{PSM: 3}, gray: testGray(4, 4)}); err != nil {
		t.Fatal(err)
	}
	good := whole.Bytes()
	lengthIs := func(n uint32) []byte {
		return append(binary.BigEndian.AppendUint32(nil, n), good[4:]...)
	}
	tests := []struct {
		name string
		in   []byte
		want error
	}{
		{"end between frames", nil, io.EOF},
		{"end in the length", good[:2], io.ErrUnexpectedEOF},
		{"end after the length", good[:4], io.ErrUnexpectedEOF},
		{"end in the body", good[:20], io.ErrUnexpectedEOF},
		{"no kind", lengthIs(0), errProtocol},
		{"length over the bound", lengthIs(maxRequest + 1), errProtocol},
		{"text", []byte("Tesseract Open Source OCR Engine"), errProtocol},
		{"another kind", append(lengthIs(uint32(len(good) - 4))[:4], append([]byte{'A'}, good[5:]...)...), errProtocol},
		{"fewer pixels than told", lengthIs(uint32(len(good) - 5)), errProtocol},
		{"short header", append([]byte{0, 0, 0, 3, kindRequest}, 1, 2), errProtocol},
	}
	for _, tt := range tests {
		if _, err := readRequest(bytes.NewReader(tt.in)); !errors.Is(err, tt.want) {
			t.Errorf("%s: readRequest error = %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	bounds := image.Rect(0, 0, 100, 50)
	in := []RawWord{
		{Text: "DON'T", Confidence: 96.06798553466797, Box: image.Rect(1, 2, 30, 14), Block: 1, Par: 2, Line: 3},
		{Text: "ÉTÉ", Confidence: math.NaN(), Box: image.Rect(-5, 40, 500, 90)},
		{Text: strings.Repeat("X", 5000), Confidence: 101, Box: image.Rect(200, 200, 201, 201), Block: -1},
	}
	want := []RawWord{
		in[0],
		{Text: "ÉTÉ", Box: image.Rect(0, 40, 100, 50)},
		{Text: strings.Repeat("X", maxWordBytes), Confidence: 100},
	}
	var b bytes.Buffer
	if err := writeAnswer(&b, 7, bounds, in, nil); err != nil {
		t.Fatal(err)
	}
	got, err := readAnswer(&b, 7, 100, 50)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("readAnswer error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadAnswerErrors(t *testing.T) {
	frame := func(kind byte, body string) []byte {
		var b bytes.Buffer
		if err := writeFrame(&b, kind, []byte(body)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, in := range map[string][]byte{
		"hello":       frame(kindHello, `{}`),
		"no JSON":     frame(kindAnswer, `words`),
		"another id":  frame(kindAnswer, `{"id":8}`),
		"empty":       frame(kindAnswer, ``),
		"confidence":  frame(kindAnswer, `{"id":7,"words":[{"t":"A","c":100.5,"b":[0,0,1,1],"l":[0,0,0]}]}`),
		"box outside": frame(kindAnswer, `{"id":7,"words":[{"t":"A","c":1,"b":[0,0,11,1],"l":[0,0,0]}]}`),
		"box turned":  frame(kindAnswer, `{"id":7,"words":[{"t":"A","c":1,"b":[3,0,1,1],"l":[0,0,0]}]}`),
		"line number": frame(kindAnswer, `{"id":7,"words":[{"t":"A","c":1,"b":[0,0,1,1],"l":[0,-1,0]}]}`),
		"long word":   frame(kindAnswer, `{"id":7,"words":[{"t":"`+strings.Repeat("A", 2000)+`","c":1,"b":[0,0,1,1],"l":[0,0,0]}]}`),
		"many words":  frame(kindAnswer, `{"id":7,"words":[`+strings.Repeat(`{},`, maxWords)+`{}]}`),
	} {
		if _, err := readAnswer(bytes.NewReader(in), 7, 10, 10); !errors.Is(err, errProtocol) {
			t.Errorf("%s: readAnswer error = %v, want %v", name, err, errProtocol)
		}
	}
	_, err := readAnswer(bytes.NewReader(frame(kindAnswer, `{"id":7,"error":"no model"}`)), 7, 10, 10)
	if want := engineError("no model"); err != want {
		t.Errorf("readAnswer error = %v, want %v", err, want)
	}
}

func TestServe(t *testing.T) {
	var in, out bytes.Buffer
	for id := range uint64(2) {
		if err := writeRequest(&in, request{id: id, mode: Mode{PSM: 3}, gray: imageFor(imageOK + int(id)*(imageEngineError-imageOK)).(*image.Gray)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Serve(t.Context(), &in, &out, fakeRecognizer{Engine{Model: "fake"}}); err != nil {
		t.Fatalf("Serve = %v at the end of its input, want nil", err)
	}
	if h, err := readHello(&out); err != nil || h.Engine.Model != "fake" {
		t.Errorf("readHello = %+v, %v", h, err)
	}
	if words, err := readAnswer(&out, 0, fakeWidth, fakeUnit*imageOK); err != nil || len(words) != 4 {
		t.Errorf("first answer = %v, %v, want 4 words", words, err)
	}
	if _, err := readAnswer(&out, 1, fakeWidth, fakeUnit*imageEngineError); err == nil || err.Error() != "no such mode" {
		t.Errorf("second answer error = %v, want the engine's", err)
	}
}

func TestServeEnds(t *testing.T) {
	if err := Serve(t.Context(), strings.NewReader("hello worker"), io.Discard, fakeRecognizer{}); !errors.Is(err, errProtocol) {
		t.Errorf("Serve on garbage = %v, want %v", err, errProtocol)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, keepOpen := io.Pipe()
	defer keepOpen.Close()
	if err := Serve(ctx, in, io.Discard, fakeRecognizer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve on a cancelled context = %v, want %v", err, context.Canceled)
	}
}

// Whatever parses as a request encodes to the same bytes.
func FuzzReadRequest(f *testing.F) {
	var b bytes.Buffer
	if err := writeRequest(&b, request{id: 3, mode: Mode{PSM: 11}, gray: testGray(5, 3)}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:9])
	f.Add([]byte("Q"))
	f.Add([]byte{0, 0, 0, 19, 'Q', 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		q, err := readRequest(bytes.NewReader(in))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeRequest(&out, q); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(in, out.Bytes()) {
			t.Errorf("request %x was read from %x", out.Bytes(), in)
		}
	})
}

// Whatever a worker sends either fails or gives words inside the image, which survive
// being sent again.
func FuzzReadReply(f *testing.F) {
	var b bytes.Buffer
	if err := writeAnswer(&b, 1, image.Rect(0, 0, 10, 10), []RawWord{{Text: "WORD", Confidence: 90, Box: image.Rect(1, 1, 9, 9), Line: 1}}, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	b.Reset()
	if err := writeHello(&b, Hello{Protocol: ProtocolVersion, Engine: Engine{Model: "eng"}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("Estimating resolution as 120\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if h, err := readHello(bytes.NewReader(in)); err == nil && h.Protocol != ProtocolVersion {
			t.Errorf("hello of version %d accepted", h.Protocol)
		}
		words, err := readAnswer(bytes.NewReader(in), 1, 10, 10)
		if err != nil {
			return
		}
		bounds := image.Rect(0, 0, 10, 10)
		for _, w := range words {
			if w.Box.Min.X < 0 || w.Box.Min.Y < 0 || w.Box.Max.X > 10 || w.Box.Max.Y > 10 || !(w.Confidence >= 0 && w.Confidence <= 100) {
				t.Errorf("accepted %+v", w)
			}
			if r := newReading(merge(collect([]RawWord{w}, 0, bounds.Size(), bounds.Size(), lexicon{})), image.Point{}, lexicon{}); strings.ContainsAny(r.Text, "\x1b\r\t\u202e") {
				t.Errorf("text %q", r.Text)
			}
		}
	})
}
