package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/duckdb"
	"rehydrate/internal/word"
	"rehydrate/pipeline/ocr/layout"
)

// An element of hOCR, as XML says it.
type element struct {
	Class    string    `xml:"class,attr"`
	ID       string    `xml:"id,attr"`
	Title    string    `xml:"title,attr"`
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

func parseHOCR(t *testing.T, document string) []element {
	t.Helper()
	var html struct {
		XMLName xml.Name `xml:"http://www.w3.org/1999/xhtml html"`
		Title   string   `xml:"head>title"`
		Meta    []struct {
			Name    string `xml:"name,attr"`
			Content string `xml:"content,attr"`
		} `xml:"head>meta"`
		Pages []element `xml:"body>div"`
	}
	dec := xml.NewDecoder(strings.NewReader(document))
	if err := dec.Decode(&html); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("after the document: %v", err)
	}
	if html.Title == "" || len(html.Meta) != 3 || html.Meta[1].Name != "ocr-system" ||
		!strings.HasPrefix(html.Meta[1].Content, "tesseract ") {
		t.Errorf("head %+v", html)
	}
	return html.Pages
}

// words returns the lines of a page as text, and checks what every element must have.
func words(t *testing.T, page element, width, height int) string {
	t.Helper()
	var text strings.Builder
	for _, line := range page.Children {
		if line.Class != "ocr_line" || !strings.HasPrefix(line.Title, "bbox ") {
			t.Errorf("line %+v", line)
		}
		var read []string
		for _, w := range line.Children {
			var b image.Rectangle
			var confidence int
			n, err := fmt.Sscanf(w.Title, "bbox %d %d %d %d; x_wconf %d", &b.Min.X, &b.Min.Y, &b.Max.X, &b.Max.Y, &confidence)
			if w.Class != "ocrx_word" || n != 5 || err != nil || !b.In(image.Rect(0, 0, width, height)) ||
				confidence < 50 || confidence > 100 {
				t.Errorf("word %+v", w)
			}
			read = append(read, w.Text)
		}
		text.WriteString(strings.Join(read, " ") + "\n")
	}
	return text.String()
}

// TestHOCR has the document of several images, the files of a folder, and boxes that are upright.
func TestHOCR(t *testing.T) {
	name := `q"u<o>t&e\d.png`
	files := map[string][]byte{name: panelFile(t), "a/side.jpg": sideways(t, panelMeme(t)), "z.jpg": photoFile(t),
		"bad.jpg": []byte("\xff\xd8\xff")}
	dir, out := writeTree(t, files), filepath.Join(t.TempDir(), "new", "hocr")
	r := runProgram(t, "--hocr", dir)
	pages := parseHOCR(t, r.Stdout)
	if r.Status != exitSomeFailed || len(pages) != 3 {
		t.Fatalf("ocr --hocr = %d with %d pages, want 3 and 3; %s", r.Status, len(pages), r.Stderr)
	}
	title := `image "` + strings.NewReplacer(`\`, `\\`, `"`,
		`\"`).Replace(filepath.Join(dir, name)) + `"; bbox 0 0 600 400; ppageno 1`
	if pages[1].Class != "ocr_page" || pages[1].ID != "page_2" || pages[1].Title != title {
		t.Errorf("page %+v, want title %s", pages[1], title)
	}
	if got := words(t, pages[0], 600, 400) + words(t, pages[1], 600, 400) + words(t, pages[2], 640,
		480); got != panelText+panelText+photoText {
		t.Errorf("text %q", got)
	}
	if r := runProgram(t, "--hocr="+out, dir); r.Status != exitSomeFailed || r.Stdout != "" {
		t.Fatalf("ocr = %+v", r)
	}
	for name, want := range map[string]string{"a/side.jpg.hocr": panelText, name + ".hocr": panelText,
		"z.jpg.hocr": photoText} {
		body, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		pages := parseHOCR(t, string(body))
		if len(pages) != 1 || words(t, pages[0], 640, 480) != want {
			t.Errorf("%s holds %+v", name, pages)
		}
	}
	if empty := runProgram(t, "--hocr", t.TempDir()); len(parseHOCR(t, empty.Stdout)) != 0 {
		t.Errorf("hOCR of nothing: %+v", empty)
	}
}

func TestParquet(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a.png": panelFile(t), "bad.jpg": []byte("\xff\xd8\xff")})
	path := filepath.Join(t.TempDir(), "text.parquet")
	if r := runProgram(t, "--parquet", path, dir); r.Status != exitSomeFailed || r.Stdout != "" ||
		!strings.Contains(r.Stderr, "wrote "+path) {
		t.Fatalf("ocr --parquet = %+v", r)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("beside the Parquet: %v, %v", files, err)
	}
	type row struct {
		File     string  `json:"file"`
		Text     *string `json:"text"`
		Sure     *bool   `json:"sure"`
		Width    *int    `json:"width"`
		Height   *int    `json:"height"`
		Digest   *bool   `json:"digest"`
		Words    int     `json:"words"`
		Accepted int     `json:"accepted"`
		Reason   *string `json:"reason"`
	}
	file := "read_parquet(" + duckdb.Quote(path) + ")"
	var got []row
	duckdb.Query(t, &got, `SELECT file, text, confidence > 80 AS sure, width, height, sha256 = sha256(content) AS digest,
		len(words)::INT AS words, len(list_filter(words, lambda w: w.accepted AND w.x > 30 AND w.w > 50))::INT AS accepted, reason
		FROM `+file+" JOIN read_blob("+duckdb.Quote(filepath.Join(dir, "*"))+") AS blobs ON blobs.filename = file ORDER BY file")
	want := []row{
		{File: filepath.Join(dir, "a.png"), Text: new(strings.TrimSpace(panelText)), Sure: new(true), Width: new(600),
			Height: new(400),
			Digest: new(true), Words: 5, Accepted: 5},
		{File: filepath.Join(dir, "bad.jpg"), Reason: new("bad_header")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as DuckDB reads it (-want +got):\n%s", diff)
	}
}

func TestDraw(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "seen.png")
	if r := runProgram(t, "--draw", dest, writeFile(t, "panel.png", panelFile(t))); r.Status != 0 || r.Stdout != "" {
		t.Fatalf("ocr --draw = %+v", r)
	}
	body, err := os.ReadFile(dest)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size != image.Pt(900, overlayTop+600) {
		t.Errorf("the overlay has %v pixels", size)
	}
	// The picture is black on white: what is coloured was drawn.
	green := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); g>>8 > r>>8+50 && g>>8 > b>>8+50 {
				green++
			}
		}
	}
	if green < 2000 {
		t.Errorf("%d green pixels, want the boxes of 5 words", green)
	}
	if text := "iTXtDescription\x00\x00\x00\x00\x00" + strings.TrimSpace(panelText); !bytes.Contains(body, []byte(text)) {
		t.Error("the text is not stored in the PNG")
	}
}

// overlayOf draws a reading and decodes the picture.
func overlayOf(t *testing.T, img image.Image, words ...word.Word) image.Image {
	t.Helper()
	body, err := overlay(img, layout.Reading{Words: words})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return drawn
}

// A frame, two pixels wide, stands around the box of each word, in the colour of its confidence.
func TestOverlay(t *testing.T) {
	white := image.NewGray(image.Rect(10, 10, 1010, 510))
	for i := range white.Pix {
		white.Pix[i] = 255
	}
	at := func(x int, confidence float64, accepted bool) word.Word {
		return word.Word{Text: "W", Confidence: confidence, Accepted: accepted, X: x, Y: 110, W: 100, H: 50}
	}
	img := overlayOf(t, white, at(110, 99, true), at(310, 50, true), at(510, 72.5, true), at(710, 99, false))
	for x, want := range map[int]color.RGBA{100: {0, 230, 60, 255}, 300: {255, 165, 60, 255}, 500: {127, 197, 60, 255},
		700: {255, 70, 70, 255}} {
		y := overlayTop + 100
		for _, p := range []image.Point{{x - 2, y + 10}, {x - 1, y + 50}, {x + 50, y - 1}, {x + 50, y + 50},
			{x + 50, y + 51}, {x + 100, y + 9}, {x + 101, y + 51}} {
			if got := color.RGBAModel.Convert(img.At(p.X, p.Y)); got != want {
				t.Errorf("at %v: %v, want %v", p, got, want)
			}
		}
		for _, p := range []image.Point{{x - 3, y + 50}, {x, y}, {x + 99, y + 49}, {x + 102, y + 49}, {x + 50, y + 52}} {
			if got := color.RGBAModel.Convert(img.At(p.X, p.Y)); got != (color.RGBA{255, 255, 255, 255}) {
				t.Errorf("at %v: %v, want the picture", p, got)
			}
		}
	}
	for _, size := range []image.Point{{1, 1}, {16384, 3}, {3, 16384}, {5000, 4000}} {
		img := image.NewNRGBA(image.Rectangle{Max: size})
		b := overlayOf(t, img, word.Word{Text: "A LONG WORD", Confidence: 80, W: size.X, H: size.Y}).Bounds()
		if max(b.Dx(), b.Dy()-overlayTop) > overlayMax || b.Dx() < 1 || b.Dy() <= overlayTop {
			t.Errorf("%v became %v", size, b)
		}
	}
}

// Nothing that is read is written over, and nothing else without being told to.
func TestDrawRefuses(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"in/a.png": panelFile(t), "in/a.png.png": photoFile(t),
		"other/a.png": photoFile(t)})
	in, a, old := filepath.Join(dir, "in"), filepath.Join(dir, "in", "a.png"), filepath.Join(dir, "old.png")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	for _, tt := range []struct {
		message, hint string
		args          []string
	}{
		{"never written over", "another place", []string{"--draw", a, a}},
		{"never written over", "another place", []string{"--draw", in, a, filepath.Join(in, "a.png.png")}},
		{"never written over", "another place", []string{"--draw", a, filepath.Join(dir, "link.png")}},
		{"never written over", "another place", []string{"--parquet", a, a}},
		{"would be read the next time", "another folder", []string{"--draw", in, in}},
		{"would be read the next time", "another folder",
			[]string{"--draw", filepath.Join(dir, "new"), "--hocr=" + in, in}},
		{"would both be written", "above them", []string{"--draw", filepath.Join(dir, "new"), a,
			filepath.Join(dir, "other", "a.png")}},
		{"would both be written", "above them", []string{"--parquet", old, "--draw", old, a}},
	} {
		wantError(t, exitUsage, tt.message, tt.hint, append([]string{"--force"}, tt.args...)...)
	}
	wantError(t, exitUsage, "a file of that name", "--force", "--draw", old, a)
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
	if r := runProgram(t, "--force", "--draw", old, a); r.Status != 0 {
		t.Errorf("with --force: %+v", r)
	}
	if body, err := os.ReadFile(old); err != nil || !bytes.HasPrefix(body, []byte("\x89PNG")) {
		t.Errorf("the older file holds %.10q, %v", body, err)
	}
}

// Pictures drawn by an earlier run are not read by the next one.
func TestDrawnIsNotRead(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a.png": panelFile(t)})
	out := filepath.Join(dir, "drawn")
	for range 2 {
		if r := runProgram(t, "--force", "--draw", out, dir); r.Status != 0 ||
			r.Stderr != "ocr: 1 image read, wrote "+out+"\n" {
			t.Errorf("ocr = %+v", r)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(out, "*")); len(files) != 1 {
		t.Errorf("drawn: %v", files)
	}
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(dir, "old.png")) {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(body)
	}
	return files
}

func TestFilter(t *testing.T) {
	files := map[string][]byte{
		"english.png": panelFile(t),
		"blank.png":   pngBytes(t, drawMeme(t, 300, 200, sunset{image.Rect(0, 0, 300, 200)})),
		"german.png": pngBytes(t, drawMeme(t, 700, 300, image.White,
			caption{"WENN ICH NICHT SCHLAFEN KANN", 20, 90, 36, color.Black},
			caption{"UND DER KAFFEE IST AUCH WEG", 20, 250, 36, color.Black})),
		"cut.jpg": []byte("\xff\xd8\xff"),
	}
	dir := writeTree(t, files)
	want := "no_text\t" + filepath.Join(dir, "blank.png") + "\nenglish\t" + filepath.Join(dir, "english.png") +
		"\nnot_english\t" + filepath.Join(dir, "german.png") + "\n"
	if r := runProgram(t, "--filter", dir); r.Status != exitSomeFailed || r.Stdout != want {
		t.Errorf("ocr --filter = %+v, want %q", r, want)
	}
	r := runProgram(t, "--filter", "--json", filepath.Join(dir, "german.png"))
	if got := decoded[jsonDecision](t, r.Stdout); r.Status != 0 || got.Decision != "not_english" ||
		got.Reason != "foreign_words" || got.Tokens < 8 {
		t.Errorf("ocr --filter --json = %+v, %+v", r, got)
	}
}

// TestJSONOfRepairs: a word that no single reading gave as it is says so in --json, with what was read at its place.
func TestJSONOfRepairs(t *testing.T) {
	r := result{input: input{name: "a.png"}, Reading: layout.Reading{Words: []word.Word{
		{Text: "IT", Accepted: true, Repair: word.Mended, Readings: []string{"ITHAS"}},
		{Text: "HELPS", Accepted: true}}}}
	got, err := json.Marshal(newJSONReading(r))
	want := `{"file":"a.png","text":"","confidence":0,"words":[` +
		`{"text":"IT","confidence":0,"box":[0,0,0,0],"line":0,"accepted":true,"repair":"mended","readings":["ITHAS"]},` +
		`{"text":"HELPS","confidence":0,"box":[0,0,0,0],"line":0,"accepted":true}]}`
	testkit.Same(t, "JSON", want, string(got), err)
}
