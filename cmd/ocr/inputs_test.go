package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/semaphore"

	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// What the hostile corpus holds costs its own file alone, with the reason that rehydrate
// gives; nothing hidden in a file is shown.
func TestHostileCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	files := map[string][]byte{"zz_last.png": panelFile(t)}
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
	if r.Status != exitSomeFailed {
		t.Errorf("status %d, want 3", r.Status)
	}
	if strings.Contains(r.Stdout+r.Stderr, hostile.CanaryMetadata) {
		t.Error("what a file hides beside its pixels was printed")
	}
	got := map[string]manifest.Reason{}
	for line := range strings.Lines(r.Stdout) {
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

// A file's name reaches a terminal in no form that it would obey.
func TestNamesAreEscaped(t *testing.T) {
	name := "a\x1b[2J\u009b\u202e\n.png"
	dir := writeTree(t, map[string][]byte{name: pngBytes(t, image.NewGray(image.Rect(0, 0, 8, 8))),
		"b" + name: []byte("\x89PNG\r\n\x1a\ncut")})
	for _, args := range [][]string{{dir, filepath.Join(dir, "none\x1b")}, {"--hocr", dir}, {"--filter", dir},
		{"--json", dir}} {
		r := runProgram(t, args...)
		if strings.ContainsAny(r.Stdout+r.Stderr, "\x1b\u009b\u202e") || r.Status != exitSomeFailed {
			t.Errorf("ocr %q = %+v: want status 3 and no control character", args, r)
		}
		if args[0] == "--json" {
			line, _, _ := strings.Cut(r.Stdout, "\n")
			if got := decoded[jsonReading](t, line).File; got != filepath.Join(dir, name) {
				t.Errorf("the name in JSON is %q, want it back as it was", got)
			}
		}
	}
}

// fakeReader reads the files of list without Tesseract, two at a time.
func fakeReader(recognize func(context.Context, image.Image) (layout.Reading, error)) *reader {
	return &reader{recognize: recognize, policy: policy.Default(), workers: 1, memory: semaphore.NewWeighted(1 << 30)}
}

// pictures are n inputs of one file, numbered in rel.
func pictures(t *testing.T, n int) []input {
	path := writeFile(t, "p.png", pngBytes(t, image.NewGray(image.Rect(0, 0, 8, 8))))
	var list []input
	for i := range n {
		list = append(list, input{name: path, rel: fmt.Sprint(i)})
	}
	return list
}

// However long each takes, results come in the order of the inputs, and no more are read than are waited for.
func TestInOrder(t *testing.T) {
	list := pictures(t, 30)
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan int, 100)
		for i := range cap(calls) {
			calls <- i
		}
		r := fakeReader(func(context.Context, image.Image) (layout.Reading, error) {
			time.Sleep(time.Duration(<-calls*7%5) * time.Second) // of the bubble's clock
			return layout.Reading{Text: "x"}, nil
		})
		next := 0
		for got := range r.inOrder(t.Context(), list) {
			if got.rel != fmt.Sprint(next) || got.err != nil || got.Text != "x" {
				t.Fatalf("result %d: %+v", next, got)
			}
			next++
			if next == 3 {
				synctest.Wait()
				// Waiting: 4 results in the channel, one more at its door, one that may start.
				if begun := cap(calls) - len(calls); begun > 3+6 {
					t.Errorf("%d images begun when 3 have been taken", begun)
				}
			}
		}
		if next != 30 {
			t.Errorf("%d results, want 30", next)
		}
	})
}

// What was read when the interrupt came is yielded, in order; the rest is not waited for.
func TestInOrderInterrupted(t *testing.T) {
	list := pictures(t, 20)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		hang := make(chan struct{}, 1)
		hang <- struct{}{}
		r := fakeReader(func(context.Context, image.Image) (layout.Reading, error) {
			select {
			case <-hang:
				<-release // a reading that does not notice
			default:
			}
			return layout.Reading{}, nil
		})
		go func() {
			synctest.Wait() // one hangs, and no more begin
			cancel()
		}()
		var got []string
		for res := range r.inOrder(ctx, list) {
			got = append(got, res.rel)
		}
		// Beside the one that hangs a second one is read at a time, and four more wait for their turn.
		if len(got) < 1 || len(got) > 7 || !slices.IsSorted(got) {
			t.Errorf("results %q, want all but the one that hangs, in order", got)
		}
		close(release)
	})
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
		r := fakeReader(func(context.Context, image.Image) (layout.Reading, error) { return layout.Reading{}, tt.err })
		got := r.read(t.Context(), pictures(t, 1)[0])
		if _, bad := errors.AsType[*badFile](got.err); bad != tt.file || !errors.Is(got.err, tt.err) {
			t.Errorf("%v came out as %#v, want a file's trouble: %v", tt.err, got.err, tt.file)
		}
	}
}
