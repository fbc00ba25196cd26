package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	panelText = "NOBODY EXPECTS\nTHE SECOND COFFEE\n"
	photoText = "ONE DOES NOT SIMPLY\nMERGE ON FRIDAY\n"
)

func TestText(t *testing.T) {
	panel := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	photo := writeFile(t, "photo.jpg", jpegBytes(t, photoMeme(t)))
	blank := writeFile(t, "blank.png", pngBytes(t, drawMeme(t, 300, 200, sunset{image.Rect(0, 0, 300, 200)})))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"black on white", []string{panel}, panelText},
		{"white on a photo", []string{photo}, photoText},
		{"no text", []string{blank}, ""},
		{"several, in the order given", []string{photo, blank, panel, "--workers", "2"},
			"==> " + photo + " <==\n" + photoText + "\n==> " + blank + " <==\n\n==> " + panel + " <==\n" + panelText},
	}
	for _, tt := range tests {
		got := runProgram(t, tt.args...)
		if diff := cmp.Diff(ran{0, tt.want, ""}, got, cmp.AllowUnexported(ran{})); diff != "" {
			t.Errorf("%s: ocr (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestJSON(t *testing.T) {
	panel := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	missing := filepath.Join(t.TempDir(), "missing.png")
	r := runProgram(t, "--json", missing, panel)
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if r.status != exitSomeFailed || len(lines) != 2 || r.stderr != "ocr: 1 image read, 1 could not be read\n" {
		t.Fatalf("ocr --json = %+v, want status 3 and two lines", r)
	}
	if want := (jsonTrouble{missing, "no such file", "not_found"}); decoded[jsonTrouble](t, lines[0]) != want {
		t.Errorf("first line %s, want %+v", lines[0], want)
	}
	read := decoded[jsonReading](t, lines[1])
	if read.File != panel || read.Text+"\n" != panelText || read.Confidence < 80 || len(read.Words) != 5 {
		t.Errorf("second line %+v", read)
	}
	for i, w := range read.Words {
		line := 0
		if i >= 2 { // NOBODY EXPECTS
			line = 1
		}
		if w.Box[0] < 30 || w.Box[0]+w.Box[2] > 570 || w.Box[3] < 25 || w.Box[3] > 50 || w.Line != line || !w.Accepted {
			t.Errorf("word %+v is not where it was drawn, or not accepted", w)
		}
	}
}

// decoded decodes a whole line of JSON that has no other fields.
func decoded[T any](t *testing.T, line string) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// A picture that lies on its side, and says so, is read upright; its boxes are upright, too.
func TestOrientation(t *testing.T) {
	upright := panelMeme(t)
	size := upright.Bounds().Size()
	lying := image.NewRGBA(image.Rect(0, 0, size.Y, size.X))
	for y := range size.Y {
		for x := range size.X {
			lying.Set(y, size.X-1-x, upright.At(x, y))
		}
	}
	body := jpegBytes(t, lying)
	const turnRight = 6
	exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"), turnRight, 0, 0, 0, 0, 0, 0, 0)
	file := writeFile(t, "lying.jpg", slices.Concat(body[:2], exif, body[2:]))
	r := runProgram(t, "--hocr", file)
	pages := parseHOCR(t, r.stdout)
	if r.status != 0 || len(pages) != 1 || !strings.Contains(pages[0].Title, "bbox 0 0 600 400") || words(t, pages[0], 600, 400) != panelText {
		t.Errorf("ocr --hocr = %+v", r)
	}
}

func TestBadFiles(t *testing.T) {
	whole := jpegBytes(t, photoMeme(t))
	panel := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	damaged := pngBytes(t, panelMeme(t))
	damaged[len(damaged)/2] ^= 0xff
	tests := []struct {
		name string
		body []byte
		want string // in the error
	}{
		{"text", []byte("not an image"), "invalid"},
		{"empty", nil, "invalid"},
		{"truncated JPEG", whole[:len(whole)/3], "decode jpeg"},
		{"damaged PNG", damaged, "decode png"},
		{"a list of paths", []byte(panel + "\n"), "invalid"},
		{"SVG", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><text>HELLO</text></svg>`), "invalid"},
	}
	var files []string
	for _, tt := range tests {
		files = append(files, writeFile(t, "bad", tt.body))
	}
	r := runProgram(t, append(files, panel)...)
	errors := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if r.status != exitSomeFailed || len(errors) != len(tests)+1 {
		t.Fatalf("ocr = %+v, want status 3, %d errors and a summary", r, len(tests))
	}
	for i, tt := range tests {
		if !strings.HasPrefix(errors[i], "ocr: error: "+files[i]+": ") || !strings.Contains(errors[i], tt.want) {
			t.Errorf("%s: error %q, want one with %q", tt.name, errors[i], tt.want)
		}
	}
	if want := "==> " + panel + " <==\n" + panelText; r.stdout != want {
		t.Errorf("stdout %q, want the good file's text", r.stdout)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--no-such-flag", "x"}, {"--workers", "0", "x"}, {"--timeout", "0s", "x"}, {"worker", "x"},
		{"doctor", "x"}, {"-", "-"}, {"--json", "--hocr", "x"}, {"--filter", "--hocr", "x"}, {"--filter", "--parquet", "f", "x"},
		{"--filter", "--draw", "d", "x"}} {
		r := runProgram(t, args...)
		if r.status != exitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "ocr: error: ") || !strings.Contains(r.stderr, "ocr: hint: ") {
			t.Errorf("ocr %v = %+v, want status 2 with an error and a hint", args, r)
		}
	}
	var stderr bytes.Buffer
	if status := run(t.Context(), nil, os.Environ(), nil, io.Discard, &stderr); status != exitUsage || !strings.Contains(stderr.String(), "no image was named") {
		t.Errorf("ocr without arguments or stdin = %d, %s", status, stderr.String())
	}
	r := runProgram(t, "--help")
	if r.status != 0 || !strings.Contains(r.stdout, "Exit status:") || strings.Contains(r.stdout, "supervisor") {
		t.Errorf("ocr --help = %+v", r)
	}
}

func TestMissingModel(t *testing.T) {
	panel := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	empty := t.TempDir()
	damaged := t.TempDir()
	if err := os.WriteFile(modelFile(damaged), bytes.Repeat([]byte("no model "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ dir, want string }{
		{empty, "no eng.traineddata in " + empty},
		{damaged, "load " + modelFile(damaged)},
		{strings.Repeat("/long", 50), "longer than 160 bytes"},
	}
	for _, tt := range tests {
		r := runProgram(t, "--tessdata-dir", tt.dir, panel)
		if r.status != exitFailed || !strings.Contains(r.stderr, tt.want) || !strings.Contains(r.stderr, "ocr: hint: run scripts/setup") {
			t.Errorf("ocr --tessdata-dir %.40s = %+v, want status 1, %q and a hint", tt.dir, r, tt.want)
		}
	}
}

// A pipe that nobody writes to does not keep an interrupted program.
func TestInterruptedOnAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if status := run(ctx, []string{pipe}, os.Environ(), nil, io.Discard, io.Discard); status != exitInterrupted {
		t.Errorf("interrupted ocr = %d, want 130", status)
	}
}

func TestInterrupted(t *testing.T) {
	panel := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if status := run(ctx, []string{panel}, os.Environ(), nil, &stdout, &stderr); status != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("interrupted ocr = %d with %q, want 130 and nothing", status, stdout.String())
	}
}
