package ocr

import (
	"bufio"
	"bytes"
	"errors"
	"image"
	"image/draw"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr/layout"
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
	pictures := []*image.Gray{whole, whole.SubImage(image.Rect(2, 3, 7, 6)).(*image.Gray), testGray(1, 1),
		testGray(maxSide, 3)}
	var b bytes.Buffer
	mode := Mode{PSM: 11, Invert: true}
	testkit.OK(t, writeRequest(&b, 1<<63+5, mode, pictures))
	q, got, err := readRequest(bufio.NewReader(&b))
	if err != nil || q.ID != 1<<63+5 || q.Mode != mode || len(got) != len(pictures) {
		t.Fatalf("read back %+v with %d pictures, %v", q, len(got), err)
	}
	for i, g := range pictures {
		want := image.NewGray(image.Rectangle{Max: g.Rect.Size()}) // at the origin, without padding
		draw.Draw(want, want.Rect, g, g.Rect.Min, draw.Src)
		if got[i].Rect != want.Rect || !bytes.Equal(got[i].Pix, want.Pix) {
			t.Errorf("picture %d was read back as one of %v", i, got[i].Rect)
		}
	}
	largest := testGray(maxPixels/maxSide, maxSide)
	testkit.OK(t, writeRequest(io.Discard, 1, Mode{}, []*image.Gray{largest}))
	strips := slices.Repeat([]*image.Gray{testGray(layout.StripWidth, layout.StripHeight)}, layout.BatchSize)
	testkit.OK(t, writeRequest(io.Discard, 1, lineMode, strips))
	testkit.OK(t, writeRequest(io.Discard, 1, pageMode, []*image.Gray{testGray(layout.PageSide, layout.PageSide)}))
	for name, pictures := range map[string][]*image.Gray{
		"no picture": nil, "too many": slices.Repeat([]*image.Gray{testGray(1, 1)}, maxPictures+1),
		"too wide": {testGray(maxSide+1, 1)}, "too high": {testGray(1, maxSide+1)},
		"no column": {testGray(0, 1)}, "no row": {testGray(1, 0)}, "too many pixels": {largest, testGray(1, 1)},
	} {
		if err := writeRequest(io.Discard, 1, Mode{}, pictures); !errors.Is(err, errProtocol) {
			t.Errorf("%s: a request was written, %v", name, err)
		}
	}
}

func TestReadRequestErrors(t *testing.T) {
	var whole bytes.Buffer
	testkit.OK(t, writeRequest(&whole, 1, Mode{PSM: 3}, []*image.Gray{testGray(4, 4)}))
	good := whole.String()
	line, _, _ := strings.Cut(good, "\n")
	for _, tt := range []struct {
		name, in string
		want     error
	}{
		{"end between requests", "", io.EOF},
		{"end in the line", good[:2], io.ErrUnexpectedEOF},
		{"end after the line", line + "\n", io.ErrUnexpectedEOF},
		{"end in the pixels", good[:len(good)-1], io.ErrUnexpectedEOF},
		{"text", "Tesseract Open Source OCR Engine", errProtocol},
		{"not JSON", "{text}\n", errProtocol},
		{"a long line", `{"ID":` + strings.Repeat("1", 5000) + "\n", errProtocol},
		{"no width", strings.Replace(good, `"X":4`, `"X":0`, 1), errProtocol},
		{"less than nothing", strings.ReplaceAll(good, `:4`, `:-4`), errProtocol},
		{"a product that overflows", strings.ReplaceAll(good, `:4`, `:4294967296`), errProtocol},
	} {
		if _, _, err := readRequest(bufio.NewReader(strings.NewReader(tt.in))); !errors.Is(err, tt.want) {
			t.Errorf("%s: readRequest error = %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	in := []word.Raw{
		{Text: "DON'T", Confidence: 96.06798553466797, Box: image.Rect(1, 2, 30, 14), Block: 1, Par: 2, Line: 3},
		{Text: "ÉTÉ", Confidence: math.NaN(), Box: image.Rect(-5, 40, 500, 90)},
		{Text: "X", Confidence: 101, Box: image.Rect(200, 200, 201, 201), Block: -1},
		{Text: "low", Confidence: -1, Box: image.Rect(0, 0, 100, 50)},
	}
	want := []word.Raw{in[0], {Text: "ÉTÉ", Box: image.Rect(0, 40, 100, 50)}, {Text: "X", Confidence: 100, Block: -1},
		{Text: "low", Box: in[3].Box}}
	var b bytes.Buffer
	testkit.OK(t, writeAnswer(&b, 7, []image.Point{{100, 50}, {1, 1}}, [][]word.Raw{in, nil}, nil))
	got, err := readAnswer(bufio.NewReader(&b), 7, []*image.Gray{testGray(100, 50), testGray(1, 1)})
	testkit.Same(t, "readAnswer", [][]word.Raw{want, nil}, got, err)
}

func TestReadAnswerErrors(t *testing.T) {
	answering := func(w string) string { return `{"id":7,"words":[[],[` + w + `]]}` }
	for _, tt := range []struct {
		line string
		want error
	}{
		{`{"protocol":4}`, errProtocol}, {`words`, errProtocol}, {``, errProtocol}, {`{"id":8}`, errProtocol},
		{`{"id":7,"words":[[]]}`, errProtocol}, {`{"id":7,"words":[[],[],[]]}`, errProtocol},
		{answering(`{"Confidence":100.5}`), errProtocol},
		{answering(`{"Confidence":-0.5}`), errProtocol},
		{answering(`{"Box":{"Max":{"X":11,"Y":1}}}`), errProtocol},
		{answering(`{"Box":{"Max":{"X":1,"Y":21}}}`), errProtocol},
		{answering(`{"Box":{"Min":{"X":-1},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{answering(`{"Box":{"Min":{"Y":-1},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{answering(`{"Box":{"Min":{"X":3},"Max":{"X":1,"Y":1}}}`), errProtocol},
		{answering(strings.Repeat(`{},`, maxWords) + `{}`), errProtocol},
		{answering(strings.Repeat(`{},`, maxWords-1) + `{"Box":{"Max":{"X":10,"Y":20}}}`), nil},
		{`{"id":7,"error":"no model"}`, engineError("no model")},
	} {
		pictures := []*image.Gray{testGray(50, 50), testGray(10, 20)}
		if _, err := readAnswer(bufio.NewReaderSize(strings.NewReader(tt.line+"\n"), maxAnswer), 7,
			pictures); !errors.Is(err, tt.want) {
			t.Errorf("%.60s: readAnswer error = %v, want %v", tt.line, err, tt.want)
		}
	}
}

func TestServe(t *testing.T) {
	var in, out bytes.Buffer
	for id, kinds := range [][]int{{imageNoText, imageOK}, {imageOK, imageEngineError}} {
		testkit.OK(t, writeRequest(&in, uint64(id), Mode{PSM: 3}, imagesFor(kinds)))
	}
	testkit.OK(t, Serve(&in, &out, Engine{Model: "fake"}, fakeRecognize)) // nil at the end of its input
	said := bufio.NewReader(&out)
	if h, err := readHello(said); err != nil || h.Engine.Model != "fake" {
		t.Errorf("readHello = %+v, %v", h, err)
	}
	words, err := readAnswer(said, 0, imagesFor([]int{imageNoText, imageOK}))
	if err != nil || len(words[0]) != 0 || len(words[1]) != 4 {
		t.Errorf("first answer = %v, %v, want no word and 4 words", words, err)
	}
	if _, err := readAnswer(said, 1, nil); err != engineError("no such mode") {
		t.Errorf("second answer error = %v, want the engine's", err)
	}
	if err := Serve(strings.NewReader("hello worker"), io.Discard, Engine{}, fakeRecognize); !errors.Is(err,
		errProtocol) {
		t.Errorf("Serve on garbage = %v, want %v", err, errProtocol)
	}
}

// TestModes: a strip is read as a line, and a whole page as sparse text.
func TestModes(t *testing.T) {
	for whole, want := range map[bool]Mode{false: {PSM: 13}, true: {PSM: 11, Invert: true}} {
		var sent bytes.Buffer
		w := &worker{in: openEnded{&sent}, frames: bufio.NewReader(strings.NewReader(`{"id":1,"words":[[]]}` + "\n"))}
		_, err := w.read([]*image.Gray{testGray(1, 1)}, whole)
		q, _, readErr := readRequest(bufio.NewReader(&sent))
		testkit.Same(t, "Mode", want, q.Mode, err, readErr)
	}
}

// An openEnded is a writer that needs no Close.
type openEnded struct{ io.Writer }

func (openEnded) Close() error { return nil }

// FuzzReadRequest: whatever parses as a request is sent again as the same one.
func FuzzReadRequest(f *testing.F) {
	var b bytes.Buffer
	testkit.OK(f, writeRequest(&b, 3, Mode{PSM: 11}, []*image.Gray{testGray(5, 3), testGray(1, 2)}))
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:9])
	f.Add([]byte(`{"Sizes":[{"X":-1,"Y":-1}]}` + "\n1"))
	f.Fuzz(func(t *testing.T, in []byte) {
		q, g, err := readRequest(bufio.NewReader(bytes.NewReader(in)))
		if err != nil {
			return
		}
		var out bytes.Buffer
		testkit.OK(t, writeRequest(&out, q.ID, q.Mode, g))
		if again, same, err := readRequest(bufio.NewReader(&out)); err != nil || !cmp.Equal(again, q) ||
			!cmp.Equal(same, g) {
			t.Errorf("request %+v, sent again %+v, %v", q, again, err)
		}
	})
}

// FuzzReadReply: whatever a worker sends either fails or gives words inside the image, whose text is safe to show.
func FuzzReadReply(f *testing.F) {
	// Blank, so that it is asked for as a whole, four times as large.
	page := layout.Find(image.NewGray(image.Rect(0, 0, 10, 10)), layout.Rules{})
	size := image.Pt(40, 40)
	var b bytes.Buffer
	words := []word.Raw{{Text: "WORD\x1b", Confidence: 90, Box: image.Rect(1, 1, 9, 9), Line: 1}}
	testkit.OK(f, writeAnswer(&b, 1, []image.Point{size}, [][]word.Raw{words}, nil))
	f.Add(b.Bytes())
	f.Add([]byte("Estimating resolution as 120\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		words, err := page.Read(func(pictures []*image.Gray, _ bool) ([][]word.Raw, error) {
			return readAnswer(bufio.NewReader(bytes.NewReader(in)), 1, pictures)
		})
		if err != nil {
			return
		}
		r := words.Reading()
		if strings.ContainsAny(r.Text, "\x1b\r\t\u202e") {
			t.Errorf("text %q", r.Text)
		}
		for _, w := range r.Words {
			if !w.Box().In(image.Rect(0, 0, 10, 10)) || !(w.Confidence >= 0 && w.Confidence <= 100) {
				t.Errorf("accepted %+v", w)
			}
		}
	})
}
