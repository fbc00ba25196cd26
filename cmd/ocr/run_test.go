package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"rehydrate/cmd/internal/console"
)

// TestRuns has what is printed for files, folders and stdin.
func TestRuns(t *testing.T) {
	panel, photo := panelFile(t), photoFile(t)
	damaged := bytes.Clone(panel)
	damaged[len(damaged)/2] ^= 0xff
	blank := pngBytes(t, drawMeme(t, 300, 200, sunset{image.Rect(0, 0, 300, 200)}))
	dir := writeTree(t, map[string][]byte{
		"panel.png": panel, "photo.jpg": photo, "blank.png": blank, "text": []byte("no image"), "empty": nil,
		"damaged.png": damaged,
		"list":        []byte("panel.png\n"), "tree/b/deep/photo.txt": photo, "tree/a.png": panel, "tree/b.png": photo,
		"tree/b/panel":   panel,
		"tree/B/cut.jpg": photo[:len(photo)/3], "tree/notes.png": []byte("no image"), "tree/empty.jpg": nil,
		"tree/page.svg": []byte("<svg/>"), "few/a.png": panel, "none/a.txt": []byte("text")})
	t.Chdir(dir)
	for name, to := range map[string]string{"tree/link.png": "a.png", "tree/b/loop": "..", "linked": "few"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("tree/pipe.png", 0o600); err != nil {
		t.Fatal(err)
	}
	const notImage, nothing = "invalid/not_an_image: the bytes are of no known kind, not JPEG, PNG, GIF or WebP\n",
		"invalid/empty_body: the file has no bytes\n"
	for _, tt := range []struct {
		args, stdin string
		want        ran
	}{
		{"panel.png", "", ran{0, panelText, ""}},
		{"photo.jpg blank.png panel.png --workers 2", "",
			ran{0, "==> photo.jpg <==\n" + photoText + "\n==> blank.png <==\n\n==> panel.png <==\n" + panelText, ""}},
		{"-", string(panel), ran{0, panelText, ""}},
		{"", string(panel), ran{0, panelText, ""}},
		{"", "", ran{exitSomeFailed, "", "ocr: -: " + nothing}},
		{"--json", "<html>", ran{exitSomeFailed,
			`{"file":"-","error":"invalid/not_an_image_html: the bytes are html, not JPEG, PNG, GIF or WebP","reason":"not_an_image_html"}` + "\n", ""}},
		{"text empty damaged.png tree/B/cut.jpg list missing panel.png", "",
			ran{exitSomeFailed, "==> panel.png <==\n" + panelText,
				"ocr: text: " + notImage + "ocr: empty: " + nothing +
					"ocr: damaged.png: decode png: png: invalid format: bad filter type\n" +
					"ocr: tree/B/cut.jpg: decode jpeg: invalid JPEG format: short Huffman data\n" +
					"ocr: list: " + notImage + "ocr: missing: no such file\n" +
					"ocr: 1 image read, 6 could not be read\n"}},
		{"tree", "", ran{exitSomeFailed, "==> tree/a.png <==\n" + panelText + "\n==> tree/b.png <==\n" + photoText +
			"\n==> tree/b/deep/photo.txt <==\n" + photoText + "\n==> tree/b/panel <==\n" + panelText,
			"ocr: tree/B/cut.jpg: decode jpeg: invalid JPEG format: short Huffman data\n" +
				"ocr: 4 images read, 1 could not be read, 6 other files skipped\n"}},
		{"linked", "", ran{0, "==> linked/a.png <==\n" + panelText, "ocr: 1 image read\n"}},
		{"--json none", "", ran{0, "", "ocr: 0 images read, 1 other file skipped\n"}},
	} {
		wantRan(t, tt.args, tt.want, runWith(t.Context(), []byte(tt.stdin), strings.Fields(tt.args)...))
	}
}

func TestJSON(t *testing.T) {
	panel := writeFile(t, "panel.png", panelFile(t))
	missing := filepath.Join(t.TempDir(), "missing.png")
	r := runProgram(t, "--json", missing, panel)
	lines := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
	if r.Status != exitSomeFailed || len(lines) != 2 || r.Stderr != "ocr: 1 image read, 1 could not be read\n" {
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

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, message, hint string }{
		{"--no-such-flag x", "unknown flag", "--help"}, {"--workers 0 x", "--workers takes 1 or more", ""},
		{"--timeout 0s x", "--timeout takes a time over zero", ""},
		{"worker x", "worker takes no arguments", ""}, {"doctor x", "doctor takes no arguments", ""},
		{"- -", "name - once", ""},
		{"--json --hocr x", "both print to stdout", "--hocr=DIR"}, {"--filter --hocr x", "no text for", "twice"},
		{"--filter --parquet f x", "no text for", "twice"}, {"--filter --draw d x", "no text for", "twice"},
	} {
		wantError(t, exitUsage, tt.message, tt.hint, strings.Fields(tt.args)...)
	}
	if r := runWith(t.Context(), nil); r.Status != exitUsage || !strings.Contains(r.Stderr, "no image was named") {
		t.Errorf("ocr without arguments or stdin = %+v", r)
	}
	r := runProgram(t, "--help")
	if r.Status != 0 || !strings.Contains(r.Stdout, "Exit status:") || strings.Contains(r.Stdout, "supervisor") {
		t.Errorf("ocr --help = %+v", r)
	}
}

// TestMissingModel: without a model that can be loaded nothing is read, and doctor says why.
func TestMissingModel(t *testing.T) {
	panel, empty := writeFile(t, "panel.png", panelFile(t)), t.TempDir()
	damaged := writeTree(t, map[string][]byte{modelFile(""): bytes.Repeat([]byte("no model "), 1000)})
	for _, tt := range []struct{ dir, want, finding string }{
		{empty, "no eng.traineddata in " + empty, "model"},
		{damaged, "load " + modelFile(damaged), "worker"},
		{strings.Repeat("/long", 50), "longer than 160 bytes", "model"},
	} {
		wantError(t, exitFailed, tt.want, "run scripts/setup", "--tessdata-dir", tt.dir, panel)
		r := runProgram(t, "doctor", "--json", "--tessdata-dir", tt.dir)
		var got struct {
			OK     bool
			Checks []console.Finding
		}
		if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
			t.Fatal(err)
		}
		for _, f := range got.Checks {
			if f.OK == (f.Name == tt.finding) || !f.OK && (f.Hint == "" || !strings.Contains(f.Found, tt.want)) {
				t.Errorf("%s: finding %+v", tt.finding, f)
			}
		}
		if r.Status != exitFailed || r.Stderr != "" || got.OK || len(got.Checks) < 4 {
			t.Errorf("ocr doctor --tessdata-dir %.40s = %+v", tt.dir, r)
		}
	}
}

func TestDoctor(t *testing.T) {
	r := runProgram(t, "doctor")
	if r.Status != 0 || r.Stderr != "" || strings.Contains(r.Stdout, "FAIL") {
		t.Fatalf("ocr doctor = %+v, want status 0", r)
	}
	e := startPool(t, benchConfig(t)).Engine()
	if listedCalls && !strings.Contains(r.Stdout, "seccomp: a worker tried 25 ways") {
		t.Errorf("ocr doctor does not say what a worker tried:\n%s", r.Stdout)
	}
	for _, want := range []string{e.Tesseract, e.Leptonica, e.ModelSHA256[:16], "eng.traineddata", "OMP_THREAD_LIMIT=1",
		"read back", "gosseract v"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("ocr doctor does not say %q:\n%s", want, r.Stdout)
		}
	}
}

// A pipe that nothing is written to does not keep an interrupted program, nor does one that came too late read a file.
func TestInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil { // once the program has opened it
			t.Cleanup(func() { f.Close() })
		}
		cancel()
	}()
	for _, file := range []string{pipe, writeFile(t, "panel.png", panelFile(t))} {
		if r := runWith(ctx, nil, file); r.Status != exitInterrupted || r.Stdout != "" {
			t.Errorf("interrupted ocr = %+v, want status 130 and no text", r)
		}
	}
}

// SIGINT leaves whole lines, no Parquet and no torso of one.
func TestSIGINT(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	files, panel := map[string][]byte{}, panelFile(t)
	for i := range 150 {
		files[fmt.Sprintf("%03d.png", i)] = panel
	}
	dir, out := writeTree(t, files), t.TempDir()
	cmd := self(t, "program", "--json", "--parquet", filepath.Join(out, "text.parquet"), dir)
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
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("ended with %d, want status 130", got)
	}
	printed := string(head) + string(rest)
	lines := strings.Count(printed, "\n")
	for line := range strings.Lines(printed) {
		if got := decoded[jsonReading](t, line); got.Text+"\n" != panelText {
			t.Errorf("line %+v", got)
		}
	}
	if lines == 0 || lines == len(files) || !strings.HasSuffix(printed, "\n") {
		t.Errorf("%d lines, the last one whole: %v", lines, strings.HasSuffix(printed, "\n"))
	}
	summary := regexp.MustCompile(`ocr: (\d+) images? read, \d+ not reached\nocr: interrupted\n$`)
	if m := summary.FindStringSubmatch(stderr.String()); m == nil || m[1] != fmt.Sprint(lines) {
		t.Errorf("stderr %q, want a summary of %d images", stderr.String(), lines)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("left in the output folder: %v, %v", left, err)
	}
}

func TestProgress(t *testing.T) {
	want := console.Progress{Words: "images, 1 could not be read", Line: "3 of 10 images, 1 could not be read", Done: 3,
		Total: 10}
	if got := progress(counts{read: 2, failed: 1}, 3, 10); got != want {
		t.Errorf("progress = %+v, want %+v", got, want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFullDisk(t *testing.T) {
	blank := writeFile(t, "blank.png", pngBytes(t, image.NewGray(image.Rect(0, 0, 8, 8))))
	for _, args := range [][]string{{"--hocr", blank}, {"--filter", blank}, {"doctor", "--tessdata-dir", "/none"}} {
		var stderr bytes.Buffer
		if status := run(t.Context(), args, os.Environ(), nil, full{}, &stderr); status != exitFailed ||
			!strings.Contains(stderr.String(), "disk full") {
			t.Errorf("ocr %q to a full disk = %d, %s", args, status, stderr.String())
		}
	}
}
