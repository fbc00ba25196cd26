package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/pipeline/near"
	"rehydrate/pipeline/redditemu"
)

// memes is a folder of harmless memes: one with a smaller and a recompressed copy, another caption on
// its template, one alone, and a text that is called a picture.
func memes(t *testing.T) (dir string, texts map[string]string) {
	t.Helper()
	dir, texts = t.TempDir(), map[string]string{}
	first := redditemu.Spec{Seed: 3, Template: 50, Style: redditemu.StylePanel, Caption: redditemu.Caption(1)}
	for name, s := range map[string]redditemu.Spec{
		"a.jpg":          first,
		"b/smaller.png":  {CopyOf: &first, Scale: 0.6, Format: "png"},
		"b/worse.webp":   {CopyOf: &first, Format: "webp"},
		"c caption.jpg":  {Seed: 4, Template: 50, Style: redditemu.StylePanel, Caption: redditemu.Caption(2)},
		"d another.jpeg": {Seed: 9, Template: 51, Style: redditemu.StyleOutline, Caption: redditemu.Caption(3)},
	} {
		drawn, err := redditemu.Draw(s)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = strings.Join(drawn.Words, " ")
		writeIn(t, dir, name, drawn.Body)
	}
	writeIn(t, dir, "e.png", []byte("only text"))
	return dir, texts
}

func writeIn(t *testing.T, dir, name string, body []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

// dedupeIn runs dedupe with a clock of its own.
func dedupeIn(ctx context.Context, now func() time.Time, stop chan struct{}, args ...string) finished {
	var stdout, stderr bytes.Buffer
	code := run(ctx, process{args: append([]string{"dedupe"}, args...), getenv: func(string) string { return "" }, stdin: strings.NewReader(""),
		stdout: &stdout, stderr: &stderr, executable: os.Executable, now: now, stop: stop})
	return finished{stdout.String(), stderr.String(), code}
}

func TestDedupe(t *testing.T) {
	dir, texts := memes(t)
	var lines bytes.Buffer
	for file, text := range texts {
		b, err := json.Marshal(map[string]string{"file": file, "text": text})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(b, '\n'))
	}
	writeIn(t, dir, "texts.jsonl", lines.Bytes())
	out := filepath.Join(t.TempDir(), "out")
	texted := []string{dir, "--out", out, "--text", filepath.Join(dir, "texts.jsonl")}
	f := dedupeIn(t.Context(), time.Now, nil, texted...)
	for _, want := range []string{"6 pictures in " + dir + "; 1 other file skipped", "unreadable: 1 (1 not_an_image)", "fewer than 3 words differ; 5 of 5 have text",
		"1 group with 2 duplicates (2 same_text)", "wrote " + filepath.Join(out, "groups.csv")} {
		if f.code != exitDone || !strings.Contains(f.stdout, want) {
			t.Errorf("dedupe = exit %d, want %q:\n%s%s", f.code, want, f.stdout, f.stderr)
		}
	}
	groups, err := os.ReadFile(filepath.Join(out, "groups.csv"))
	if err != nil || !strings.Contains(string(groups), "1,b/worse.webp,false,a.jpg,") {
		t.Errorf("groups.csv (%v):\n%s", err, groups)
	}
	f = dedupeIn(t.Context(), time.Now, nil, append(texted, "--force", "--json", "--words", "1")...)
	var s near.Summary
	if err := json.Unmarshal([]byte(f.stdout), &s); err != nil || f.code != exitDone || f.stderr != "" {
		t.Fatalf("dedupe --json = exit %d, %v\n%s%s", f.code, err, f.stdout, f.stderr)
	}
	if s.Files != 6 || s.Unreadable != 1 || s.Groups != 1 || s.Duplicates != 2 || s.Words != 1 || s.Shown != 3 {
		t.Errorf("summary: %+v", s)
	}
}

// TestDedupeProgress: in a pipe, progress is a line every few seconds, and the answer alone is on stdout.
func TestDedupeProgress(t *testing.T) {
	dir, _ := memes(t)
	now := time.Now()
	tick := func() time.Time { now = now.Add(3 * time.Second); return now }
	f := dedupeIn(t.Context(), tick, nil, dir, "--out", filepath.Join(t.TempDir(), "out"), "--workers", "1")
	if f.code != exitDone || !strings.Contains(f.stderr, "rehydrate: hash: 3 of 6 pictures, about ") || strings.ContainsAny(f.stderr, "\r\x1b") {
		t.Errorf("exit %d:\n%s", f.code, f.stderr)
	}
}

// TestDedupeInterrupted: Ctrl-C at any time is exit 130, and nothing is written.
func TestDedupeInterrupted(t *testing.T) {
	dir, _ := memes(t)
	out := filepath.Join(t.TempDir(), "out")
	stopped := make(chan struct{})
	close(stopped)
	runs := map[string]finished{"at once": dedupeIn(t.Context(), time.Now, stopped, dir, "--out", out)}
	for _, n := range []int{1, 4, 6, 8} { // the clock is read once a picture, and again for those that are shown
		ctx, cancel := context.WithCancel(t.Context())
		readings := 0
		runs[fmt.Sprint("reading ", n)] = dedupeIn(ctx, func() time.Time {
			if readings++; readings == n {
				cancel()
			}
			return time.Now()
		}, nil, dir, "--out", out)
		cancel()
	}
	for when, f := range runs {
		if f.code != exitInterrupted || strings.Contains(f.stdout, "wrote") {
			t.Errorf("%s: exit %d, want %d\n%s%s", when, f.code, exitInterrupted, f.stdout, f.stderr)
		}
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the answer is there (%v)", err)
	}
}

// TestDedupeOfDataset: a run's own Parquet is read with its text, and the user is told that no
// purge knows of what is written. Nothing is written into the workspace.
func TestDedupeOfDataset(t *testing.T) {
	t.Parallel()
	posts := []redditemu.Post{captioned("few000", 0, 1, 0), captioned("few001", 1, 2, 0)}
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	tables, err := filepath.Glob(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no dataset: %v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	read := 0
	for _, table := range slices.Concat(tables, []string{filepath.Join(s.workspace, "images")}) {
		f := s.do(nil, "dedupe", table, "--out", out, "--force")
		if f.code != exitDone || !strings.Contains(f.stdout, "purge does not know") {
			t.Errorf("dedupe %s = exit %d\n%s%s", table, f.code, f.stdout, f.stderr)
		}
		if strings.Contains(f.stdout, "text from column ocr_text") {
			read++
		}
	}
	if read != len(tables) {
		t.Errorf("the text of %d of %d tables was used", read, len(tables))
	}
	if f := s.do(nil, "dedupe", tables[0], "--out", filepath.Join(s.workspace, "dup")); f.code != exitUsage {
		t.Errorf("an answer in the workspace = exit %d\n%s", f.code, f.stderr)
	}
}
