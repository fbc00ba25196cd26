package ocr

import (
	"bytes"
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
		"largest":   testGray(maxPixels/maxSide, maxSide),
	} {
		var b bytes.Buffer
		q := request{id: 1<<63 + 5, mode: Mode{PSM: 11, Invert: true}, gray: g}
		if err := writeRequest(&b, q); err != nil {
			t.Fatal(err)
		}
		got, err := readRequest(&b)
		want := newPlanes(g).luma // at the origin, without padding
		if err != nil || got.id != q.id || got.mode != q.mode || got.gray.Rect != want.Rect || !bytes.Equal(got.gray.Pix, want.Pix) {
			t.Errorf("%s: read back %d %v, %v", name, got.id, got.mode, err)
		}
	}
	for _, size := range []image.Point{{maxSide + 1, 1}, {1, maxSide + 1}, {maxPixels/maxSide + 1, maxSide}, {0, 1}, {1, 0}} {
		if err := writeRequest(io.Discard, request{gray: testGray(size.X, size.Y)}); err == nil {
			t.Errorf("a request of %v pixels was written", size)
		}
	}
}

func TestReadRequestErrors(t *testing.T) {
	var whole bytes.Buffer
	if err := writeRequest(&whole, request{id: 1, mode: Mode{PSM: 3}, gray: testGray(4, 4)}); err != nil {
		t.Fatal(err)
	}
	good := whole.String()
	length := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	for _, tt := range []struct {
		name, in string
		want     error
	}{
		{"end between frames", "", io.EOF},
		{"end in the length", good[:2], io.ErrUnexpectedEOF},
		{"end after the length", good[:4], io.ErrUnexpectedEOF},
		{"end in the body", good[:20], io.ErrUnexpectedEOF},
		{"no kind", length(0) + good[4:], errProtocol},
		{"length over the bound", length(maxRequest+1) + good[4:], errProtocol},
		{"text", "Tesseract Open Source OCR Engine", errProtocol},
		{"another kind", good[:4] + "A" + good[5:], errProtocol},
		{"fewer pixels than told", length(uint32(len(good)-5)) + good[4:], errProtocol},
		{"short header", "\x00\x00\x00\x03Q\x01\x02", errProtocol},
		{"no width", length(19) + "Q" + strings.Repeat("\x00", 17) + "\x01", errProtocol},
	} {
		if _, err := readRequest(strings.NewReader(tt.in)); !errors.Is(err, tt.want) {
			t.Errorf("%s: readRequest error = %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	in := []RawWord{
		{Text: "DON'T", Confidence: 96.06798553466797, Box: image.Rect(1, 2, 30, 14), Block: 1, Par: 2, Line: 3},
		{Text: "ÉTÉ", Confidence: math.NaN(), Box: image.Rect(-5, 40, 500, 90)},
		{Text: "X", Confidence: 101, Box: image.Rect(200, 200, 201, 201), Block: -1},
		{Text: "low", Confidence: -1, Box: image.Rect(0, 0, 100, 50)},
	}
	want := []RawWord{in[0], {Text: "ÉTÉ", Box: image.Rect(0, 40, 100, 50)}, {Text: "X", Confidence: 100, Block: -1},
		{Text: "low", Box: in[3].Box}}
	var b bytes.Buffer
	if err := writeAnswer(&b, 7, image.Rect(0, 0, 100, 50), in, nil); err != nil {
		t.Fatal(err)
	}
	got, err := readAnswer(&b, 7, image.Pt(100, 50))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("readAnswer error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadAnswerErrors(t *testing.T) {
	word := func(w string) string { return `{"id":7,"words":[` + w + `]}` }
	for _, tt := range []struct {
		kind byte
		body string
		want error
	}{
		{kindHello, `{}`, errProtocol},
		{kindAnswer, `words`, errProtocol},
		{kindAnswer, ``, errProtocol},
		{kindAnswer, `{"id":8}`, errProtocol},
		{kindAnswer, word(`{"Confidence":100.5}`), errProtocol},
		{kindAnswer, word(`{"Confidence":-0.5}`), errProtocol},
		{kindAnswer, word(`{"Box":{"Max":{"X":11,"Y":1}}}`), errProtocol},
		{kindAnswer, word(`{"Box":{"Max":{"X":1,"Y":21}}}`), errProtocol},
		{kindAnswer, word(`{"Box":{"Min":{"X":-1},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{kindAnswer, word(`{"Box":{"Min":{"Y":-1},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{kindAnswer, word(`{"Box":{"Min":{"X":3},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{kindAnswer, word(strings.Repeat(`{},`, maxWords) + `{}`), errProtocol},
		{kindAnswer, word(strings.Repeat(`{},`, maxWords-1) + `{"Box":{"Max":{"X":10,"Y":20}}}`), nil},
		{kindAnswer, `{"id":7,"error":"no model"}`, engineError("no model")},
	} {
		var b bytes.Buffer
		if err := writeFrame(&b, tt.kind, []byte(tt.body)); err != nil {
			t.Fatal(err)
		}
		if _, err := readAnswer(&b, 7, image.Pt(10, 20)); !errors.Is(err, tt.want) {
			t.Errorf("%.60s: readAnswer error = %v, want %v", tt.body, err, tt.want)
		}
	}
}

func TestServe(t *testing.T) {
	var in, out bytes.Buffer
	for id, kind := range []int{imageOK, imageEngineError} {
		if err := writeRequest(&in, request{id: uint64(id), mode: Mode{PSM: 3}, gray: imageFor(kind)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Serve(&in, &out, Engine{Model: "fake"}, fakeRecognize); err != nil {
		t.Fatalf("Serve = %v at the end of its input, want nil", err)
	}
	if h, err := readHello(&out); err != nil || h.Engine.Model != "fake" {
		t.Errorf("readHello = %+v, %v", h, err)
	}
	if words, err := readAnswer(&out, 0, image.Pt(fakeWidth, fakeUnit*imageOK)); err != nil || len(words) != 4 {
		t.Errorf("first answer = %v, %v, want 4 words", words, err)
	}
	if _, err := readAnswer(&out, 1, image.Pt(fakeWidth, 1)); err != engineError("no such mode") {
		t.Errorf("second answer error = %v, want the engine's", err)
	}
	if err := Serve(strings.NewReader("hello worker"), io.Discard, Engine{}, fakeRecognize); !errors.Is(err, errProtocol) {
		t.Errorf("Serve on garbage = %v, want %v", err, errProtocol)
	}
}

// FuzzReadRequest: whatever parses as a request is sent again as the same one.
func FuzzReadRequest(f *testing.F) {
	var b bytes.Buffer
	if err := writeRequest(&b, request{id: 3, mode: Mode{PSM: 11}, gray: testGray(5, 3)}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:9])
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
		again, err := readRequest(&out)
		if err != nil || again.id != q.id || again.mode != q.mode || !cmp.Equal(again.gray, q.gray) {
			t.Errorf("request %+v, sent again %+v, %v", q, again, err)
		}
	})
}

// FuzzReadReply: whatever a worker sends either fails or gives words inside the image, whose text is safe to show.
func FuzzReadReply(f *testing.F) {
	size := image.Pt(10, 10)
	var b bytes.Buffer
	words := []RawWord{{Text: "WORD\x1b", Confidence: 90, Box: image.Rect(1, 1, 9, 9), Line: 1}}
	if err := writeAnswer(&b, 1, image.Rectangle{Max: size}, words, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("Estimating resolution as 120\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		words, err := readAnswer(bytes.NewReader(in), 1, size)
		if err != nil {
			return
		}
		r := newReading(merge(collect(words, 0, size, size, lexicon{})), image.Point{}, lexicon{})
		if strings.ContainsAny(r.Text, "\x1b\r\t\u202e") {
			t.Errorf("text %q", r.Text)
		}
		for _, w := range r.Words {
			if !w.Box.In(image.Rectangle{Max: size}) || !(w.Confidence >= 0 && w.Confidence <= 100) {
				t.Errorf("accepted %+v", w)
			}
		}
	})
}
