package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/dataset/duckdbtest"
	"rehydrate/pipeline/durable"
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
	if html.Title == "" || len(html.Meta) != 3 || html.Meta[1].Name != "ocr-system" || !strings.HasPrefix(html.Meta[1].Content, "tesseract ") {
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
			if w.Class != "ocrx_word" || n != 5 || err != nil || !b.In(image.Rect(0, 0, width, height)) || confidence < 50 || confidence > 100 {
				t.Errorf("word %+v", w)
			}
			read = append(read, w.Text)
		}
		text.WriteString(strings.Join(read, " ") + "\n")
	}
	return text.String()
}

func TestHOCR(t *testing.T) {
	name := `q"u<o>t&e\d.png`
	dir := writeTree(t, map[string][]byte{name: pngBytes(t, panelMeme(t)), "z.jpg": jpegBytes(t, photoMeme(t)), "bad.jpg": []byte("\xff\xd8\xff")})
	r := runProgram(t, "--hocr", dir)
	pages := parseHOCR(t, r.stdout)
	if r.status != exitSomeFailed || len(pages) != 2 {
		t.Fatalf("ocr --hocr = %d with %d pages, want 3 and 2; %s", r.status, len(pages), r.stderr)
	}
	title := `image "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filepath.Join(dir, name)) + `"; bbox 0 0 600 400; ppageno 0`
	if pages[0].Class != "ocr_page" || pages[0].ID != "page_1" || pages[0].Title != title {
		t.Errorf("page %+v, want title %s", pages[0], title)
	}
	if got := words(t, pages[0], 600, 400) + words(t, pages[1], 640, 480); got != panelText+photoText {
		t.Errorf("text %q", got)
	}
}

func TestHOCRFiles(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a/x.png": pngBytes(t, panelMeme(t)), "b/x.png": jpegBytes(t, photoMeme(t))})
	out := filepath.Join(t.TempDir(), "new", "hocr")
	if r := runProgram(t, "--hocr="+out, dir); r.status != 0 || r.stdout != "" {
		t.Fatalf("ocr = %+v", r)
	}
	for name, want := range map[string]string{"a/x.png.hocr": panelText, "b/x.png.hocr": photoText} {
		body, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		pages := parseHOCR(t, string(body))
		if len(pages) != 1 || words(t, pages[0], 640, 480) != want {
			t.Errorf("%s holds %+v", name, pages)
		}
	}
	if empty := runWith(t, nil, "--hocr", writeTree(t, nil)); len(parseHOCR(t, empty.stdout)) != 0 {
		t.Errorf("hOCR of nothing: %+v", empty)
	}
}

func TestParquet(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a.png": pngBytes(t, panelMeme(t)), "bad.jpg": []byte("\xff\xd8\xff")})
	path := filepath.Join(t.TempDir(), "text.parquet")
	if r := runProgram(t, "--parquet", path, dir); r.status != exitSomeFailed || r.stdout != "" || !strings.Contains(r.stderr, "wrote "+path) {
		t.Fatalf("ocr --parquet = %+v", r)
	}
	if r := runProgram(t, "--parquet", path, dir); r.status != exitUsage || !strings.Contains(r.stderr, "--force") {
		t.Errorf("over an older file: %+v, want status 2", r)
	}
	if r := runProgram(t, "--force", "--parquet", path, dir); r.status != exitSomeFailed {
		t.Errorf("with --force: %+v, want status 3", r)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), durable.TempPrefix+"*")); left != nil {
		t.Errorf("left behind: %v", left)
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
	file := "read_parquet(" + duckdbtest.Quote(path) + ")"
	var got []row
	duckdbtest.Query(t, &got, `SELECT file, text, confidence > 80 AS sure, width, height, sha256 = sha256(content) AS digest,
		len(words)::INT AS words, len(list_filter(words, lambda w: w.accepted AND w.x > 30 AND w.w > 50))::INT AS accepted, reason
		FROM `+file+" JOIN read_blob("+duckdbtest.Quote(filepath.Join(dir, "*"))+") AS blobs ON blobs.filename = file ORDER BY file")
	want := []row{
		{File: filepath.Join(dir, "a.png"), Text: new(strings.TrimSpace(panelText)), Sure: new(true), Width: new(600), Height: new(400),
			Digest: new(true), Words: 5, Accepted: 5},
		{File: filepath.Join(dir, "bad.jpg"), Reason: new("bad_header")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as DuckDB reads it (-want +got):\n%s", diff)
	}
}

func TestDraw(t *testing.T) {
	panel := panelMeme(t)
	file := writeFile(t, "panel.png", pngBytes(t, panel))
	dest := filepath.Join(t.TempDir(), "seen.png")
	if r := runProgram(t, "--draw", dest, file); r.status != 0 || r.stdout != "" {
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
	text := []byte("iTXtDescription\x00\x00\x00\x00\x00" + strings.TrimSpace(panelText))
	if !bytes.Contains(body, text) {
		t.Error("the text is not stored in the PNG")
	}
}

// A box is where the word was drawn, labels or not.
func TestOverlayColours(t *testing.T) {
	blank := image.NewGray(image.Rect(10, 10, 1010, 510))
	for i := range blank.Pix {
		blank.Pix[i] = 255
	}
	body, err := overlay(blank, readingOf(word("SURE", 99, true, image.Rect(110, 110, 310, 160)), word("unsure", 60, false, image.Rect(510, 310, 710, 360))))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		x, y int
		red  bool
	}{{200, 99, false}, {99, 125, false}, {600, 299, true}, {701, 320, true}} {
		r, g, _, _ := img.At(tt.x, overlayTop+tt.y).RGBA()
		if (r > g) != tt.red || r == g {
			t.Errorf("at %d,%d: red %d, green %d, want red %v", tt.x, tt.y, r>>8, g>>8, tt.red)
		}
	}
}

func TestOverlayOfOddSizes(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {16384, 3}, {3, 16384}, {5000, 4000}} {
		img := image.NewNRGBA(image.Rectangle{Max: size})
		body, err := overlay(img, readingOf(word("A LONG WORD", 80, true, img.Rect)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if b := got.Bounds(); max(b.Dx(), b.Dy()-overlayTop) > overlayMax || b.Dx() < 1 || b.Dy() <= overlayTop {
			t.Errorf("%v became %v", size, b)
		}
	}
}

// Nothing that is read is written over, and nothing else without being told to.
func TestDrawRefuses(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"in/a.png": pngBytes(t, panelMeme(t)), "in/a.png.png": pngBytes(t, photoMeme(t)), "other/a.png": pngBytes(t, photoMeme(t))})
	in, a, old := filepath.Join(dir, "in"), filepath.Join(dir, "in", "a.png"), filepath.Join(dir, "old.png")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	tests := []struct {
		name, want string
		args       []string
	}{
		{"the input", "never written over", []string{"--force", "--draw", a, a}},
		{"the input by its folder", "never written over", []string{"--force", "--draw", in, a, filepath.Join(in, "a.png.png")}},
		{"the input behind a link", "never written over", []string{"--force", "--draw", a, filepath.Join(dir, "link.png")}},
		{"the folder that is read", "would be read the next time", []string{"--force", "--draw", in, in}},
		{"an older file", "--force", []string{"--draw", old, a}},
		{"Parquet over the input", "never written over", []string{"--force", "--parquet", a, a}},
		{"two into one", "would both be written", []string{"--draw", filepath.Join(dir, "new"), a, filepath.Join(dir, "other", "a.png")}},
	}
	for _, tt := range tests {
		r := runProgram(t, tt.args...)
		if r.status != exitUsage || !strings.Contains(r.stderr, tt.want) || !strings.Contains(r.stderr, "ocr: hint: ") {
			t.Errorf("%s: ocr = %+v, want status 2 and %q", tt.name, r, tt.want)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
	if r := runProgram(t, "--force", "--draw", old, a); r.status != 0 {
		t.Errorf("with --force: %+v", r)
	}
	if body, err := os.ReadFile(old); err != nil || !bytes.HasPrefix(body, []byte("\x89PNG")) {
		t.Errorf("the older file holds %.10q, %v", body, err)
	}
}

// Pictures drawn by an earlier run are not read by the next one.
func TestDrawnIsNotRead(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"a.png": pngBytes(t, panelMeme(t))})
	out := filepath.Join(dir, "drawn")
	for range 2 {
		if r := runProgram(t, "--force", "--draw", out, dir); r.status != 0 || r.stderr != "ocr: 1 image read, wrote "+out+"\n" {
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
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		files[path] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilter(t *testing.T) {
	files := map[string][]byte{
		"english.png": pngBytes(t, panelMeme(t)),
		"blank.png":   pngBytes(t, drawMeme(t, 300, 200, sunset{image.Rect(0, 0, 300, 200)})),
		"german.png": pngBytes(t, drawMeme(t, 700, 300, image.White,
			caption{"WENN ICH NICHT SCHLAFEN KANN", 20, 90, 36, color.Black},
			caption{"UND DER KAFFEE IST AUCH WEG", 20, 250, 36, color.Black})),
		"cut.jpg": []byte("\xff\xd8\xff"),
	}
	dir := writeTree(t, files)
	want := "no_text\t" + filepath.Join(dir, "blank.png") + "\nenglish\t" + filepath.Join(dir, "english.png") +
		"\nnot_english\t" + filepath.Join(dir, "german.png") + "\n"
	if r := runProgram(t, "--filter", dir); r.status != exitSomeFailed || r.stdout != want {
		t.Errorf("ocr --filter = %+v, want %q", r, want)
	}
	r := runProgram(t, "--filter", "--json", filepath.Join(dir, "german.png"))
	if got := decoded[jsonDecision](t, r.stdout); r.status != 0 || got.Decision != "not_english" || got.Reason != "foreign_words" || got.Tokens < 8 {
		t.Errorf("ocr --filter --json = %+v, %+v", r, got)
	}
}

// SIGINT leaves whole lines, no Parquet and no torso of one.
func TestSIGINT(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for i := range 200 {
		files[fmt.Sprintf("%03d.png", i)] = pngBytes(t, panelMeme(t))
	}
	dir, out := writeTree(t, files), t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, "program", "--json", "--parquet", filepath.Join(out, "text.parquet"), dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1)
	if _, err := io.ReadFull(stdout, head); err != nil {
		t.Fatalf("no line: %v\n%s", err, stderr.String())
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ended with %v, want status 130", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v to end", took)
	}
	printed := string(head) + string(rest)
	lines := 0
	for line := range strings.Lines(printed) {
		lines++
		if got := decoded[jsonReading](t, line); got.Text+"\n" != panelText {
			t.Errorf("line %d: %+v", lines, got)
		}
	}
	if lines == 0 || lines == len(files) || !strings.HasSuffix(printed, "\n") {
		t.Errorf("%d lines, the last one whole: %v", lines, strings.HasSuffix(printed, "\n"))
	}
	summary := regexp.MustCompile(`ocr: (\d+) images? read, \d+ not reached\nocr: error: interrupted\n$`)
	if m := summary.FindStringSubmatch(stderr.String()); m == nil || m[1] != fmt.Sprint(lines) {
		t.Errorf("stderr %q, want a summary of %d images", stderr.String(), lines)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("left in the output folder: %v, %v", left, err)
	}
}
