package main

import (
	"context"
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/semaphore"

	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

func TestStdin(t *testing.T) {
	panel := pngBytes(t, panelMeme(t))
	tests := []struct {
		name  string
		stdin []byte
		args  []string
		want  ran
	}{
		{"named", panel, []string{"-"}, ran{0, panelText, ""}},
		{"piped", panel, nil, ran{0, panelText, ""}},
		{"nothing", nil, nil, ran{exitSomeFailed, "", "ocr: error: -: invalid/empty_body: the host sent no bytes\n"}},
		{"text", []byte("<html>"), []string{"--json"}, ran{exitSomeFailed,
			`{"file":"-","error":"invalid/not_an_image_html: the bytes are html, not JPEG, PNG, GIF or WebP","reason":"not_an_image_html"}` + "\n", ""}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, runWith(t, tt.stdin, tt.args...), cmp.AllowUnexported(ran{})); diff != "" {
			t.Errorf("%s: ocr %v (-want +got):\n%s", tt.name, tt.args, diff)
		}
	}
}

// A folder is walked to the bottom in byte order; content decides what is an image.
func TestFolder(t *testing.T) {
	panel, photo := pngBytes(t, panelMeme(t)), jpegBytes(t, photoMeme(t))
	dir := writeTree(t, map[string][]byte{
		"b/deep/photo.txt": photo, "a.png": panel, "b.png": photo, "b/panel": panel,
		"B/cut.jpg": photo[:len(photo)/3], "notes.png": []byte("no image"), "empty.jpg": nil, "page.svg": []byte("<svg/>"),
	})
	if err := os.Symlink(filepath.Join(dir, "a.png"), filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "b", "loop")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runProgram(t, dir)
	header := func(name string) string { return "==> " + filepath.Join(dir, name) + " <==\n" }
	wantOut := header("a.png") + panelText + "\n" + header("b.png") + photoText + "\n" +
		header("b/deep/photo.txt") + photoText + "\n" + header("b/panel") + panelText
	wantErr := "ocr: error: " + filepath.Join(dir, "B/cut.jpg") + ": decode jpeg: invalid JPEG format: short Huffman data\n" +
		"ocr: 4 images read, 1 could not be read, 6 other files skipped\n"
	if diff := cmp.Diff(ran{exitSomeFailed, wantOut, wantErr}, r, cmp.AllowUnexported(ran{})); diff != "" {
		t.Errorf("ocr DIR (-want +got):\n%s", diff)
	}
}

// A link to a folder is followed where it is named.
func TestLinkedFolder(t *testing.T) {
	dir := writeTree(t, map[string][]byte{"real/a.png": pngBytes(t, panelMeme(t))})
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	r := runProgram(t, link)
	if want := (ran{0, "==> " + filepath.Join(link, "a.png") + " <==\n" + panelText, "ocr: 1 image read\n"}); r != want {
		t.Errorf("ocr = %+v, want %+v", r, want)
	}
}

func TestFolderOfNothing(t *testing.T) {
	r := runProgram(t, "--json", writeTree(t, map[string][]byte{"a.txt": []byte("text")}))
	if want := (ran{0, "", "ocr: 0 images read, 1 other file skipped\n"}); r != want {
		t.Errorf("ocr = %+v, want %+v", r, want)
	}
}

// What the hostile corpus holds costs its own file alone, with the reason that rehydrate
// gives; nothing hidden in a file is shown.
func TestHostileCorpus(t *testing.T) {
	files := map[string][]byte{"zz_last.png": pngBytes(t, panelMeme(t))}
	want := map[string]manifest.Reason{"zz_last.png": ""}
	for _, h := range hostile.Images("127.0.0.1:9") {
		var b strings.Builder
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		files[h.Name], want[h.Name] = []byte(b.String()), ""
		switch {
		case h.Reason == "bad_container": // rehydrate strips metadata before it decodes
			want[h.Name] = "undecodable"
		case h.Outcome != manifest.Kept:
			want[h.Name] = h.Reason
		}
	}
	dir := writeTree(t, files)
	var paths []string
	for name := range files {
		paths = append(paths, filepath.Join(dir, name))
	}
	slices.Sort(paths)
	r := runProgram(t, append([]string{"--json"}, paths...)...)
	if r.status != exitSomeFailed {
		t.Errorf("status %d, want 3", r.status)
	}
	if strings.Contains(r.stdout+r.stderr, redditemu.CanaryMetadata) {
		t.Error("what a file hides beside its pixels was printed")
	}
	got := map[string]manifest.Reason{}
	for line := range strings.Lines(r.stdout) {
		if strings.Contains(line, `"reason":`) {
			bad := decoded[jsonTrouble](t, line)
			got[filepath.Base(bad.File)] = bad.Reason
			continue
		}
		got[filepath.Base(decoded[jsonReading](t, line).File)] = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestShown(t *testing.T) {
	tests := map[string]string{
		"plain name.jpg":         "plain name.jpg",
		"caf\u00e9 \u6f22.png":   "caf\u00e9 \u6f22.png",
		"\x1b[31mred\n\t":        `\x1b[31mred\n\t`,
		"c1\u009b31m":            `c1\u009b31m`,
		"flip\u202egpj.exe":      `flip\u202egpj.exe`,
		"bad\xff":                `bad\xff`,
		`quote"back\slash'`:      `quote"back\slash'`,
		"tag\U000e0041":          `tag\U000e0041`,
		"\u2028line\u2029":       `\u2028line\u2029`,
		"no-break\u00a0 \u0000.": "no-break\u00a0 " + `\x00.`,
	}
	for s, want := range tests {
		if got := shown(s); got != want {
			t.Errorf("shown(%q) = %s, want %s", s, got, want)
		}
	}
}

// A file's name reaches a terminal in no form that it would obey.
func TestNamesAreEscaped(t *testing.T) {
	name := "a\x1b[2J\u009b\u202e\n.png"
	dir := writeTree(t, map[string][]byte{name: pngBytes(t, panelMeme(t)), "b" + name: []byte("\x89PNG\r\n\x1a\ncut")})
	for _, args := range [][]string{{dir}, {"--json", dir}, {"--hocr", dir}, {"--filter", dir}, {filepath.Join(dir, "none\x1b")}} {
		r := runProgram(t, args...)
		if strings.ContainsAny(r.stdout+r.stderr, "\x1b\u009b\u202e") || r.status != exitSomeFailed {
			t.Errorf("ocr %q = %d, %q, %q: want status 3 and no control character", args, r.status, r.stdout, r.stderr)
		}
	}
	line, _, _ := strings.Cut(runProgram(t, "--json", dir).stdout, "\n")
	if got := decoded[jsonReading](t, line).File; got != filepath.Join(dir, name) {
		t.Errorf("the name in JSON is %q, want it back as it was", got)
	}
}

// fakeReader reads the files of list without Tesseract.
func fakeReader(recognize func(context.Context, image.Image) (ocr.Reading, error)) *reader {
	return &reader{recognize: recognize, policy: policy.Default(), workers: 2, memory: semaphore.NewWeighted(1 << 30)}
}

func pictures(t *testing.T, n int) []input {
	path := writeFile(t, "panel.png", pngBytes(t, panelMeme(t)))
	var list []input
	for range n {
		list = append(list, input{name: path, rel: "panel.png"})
	}
	return list
}

func TestInOrder(t *testing.T) {
	calls := make(chan int, 100)
	for i := range 100 {
		calls <- i
	}
	r := fakeReader(func(context.Context, image.Image) (ocr.Reading, error) {
		time.Sleep(time.Duration(<-calls%3) * time.Millisecond)
		return ocr.Reading{Text: "x"}, nil
	})
	next := 0
	for got := range r.inOrder(t.Context(), pictures(t, 30)) {
		if got.index != next || got.err != nil || got.Text != "x" {
			t.Fatalf("result %d: %+v", next, got)
		}
		next++
	}
	if next != 30 {
		t.Errorf("%d results, want 30", next)
	}
}

// What was read when the interrupt came is yielded, in order; the rest is not waited for.
func TestInOrderInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	first := make(chan struct{}, 1)
	first <- struct{}{}
	r := fakeReader(func(context.Context, image.Image) (ocr.Reading, error) {
		select {
		case <-first:
			return ocr.Reading{Text: "done"}, nil
		default:
			cancel()
			<-release // a reading that does not notice
			return ocr.Reading{}, nil
		}
	})
	r.workers = 1
	var got []string
	for res := range r.inOrder(ctx, pictures(t, 20)) {
		got = append(got, res.Text)
	}
	if len(got) > 1 || len(got) == 1 && got[0] != "done" {
		t.Errorf("results %q, want at most the one that was done", got)
	}
}

// An engine that cannot be started ends the run; a file's trouble does not.
func TestWhatEndsARun(t *testing.T) {
	for _, tt := range []struct {
		err  error
		file bool
	}{
		{&ocr.Failure{Reason: ocr.ReasonTimeout, Detail: "no answer"}, true},
		{&ocr.StartError{Err: errors.New("gone")}, false},
		{ocr.ErrClosed, false},
	} {
		r := fakeReader(func(context.Context, image.Image) (ocr.Reading, error) { return ocr.Reading{}, tt.err })
		got := r.read(t.Context(), 0, pictures(t, 1)[0])
		var bad *badFile
		if errors.As(got.err, &bad) != tt.file || !errors.Is(got.err, tt.err) {
			t.Errorf("%v came out as %#v, want a file's trouble: %v", tt.err, got.err, tt.file)
		}
	}
}
