package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
)

// TestExportFormats copies a dataset in every format, purges a post, and finds neither its row nor its picture in
// any copy, and everything else as it was.
func TestExportFormats(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root, before := t.TempDir(), map[string]map[string]string{}
	for _, format := range copies.Formats() {
		to := filepath.Join(root, format)
		s.copyTo(to, "--format", format).want(t, exitDone, "6 rows in "+to)
		before[format] = tree(t, to)
	}
	if diff := cmp.Diff(s.dataset(), before["parquet"]); diff != "" {
		t.Error("the parquet copy is not the dataset folder")
	}
	picture := read(t, s.images()[2])[64:192]
	text := readText(t, s, "few002")
	s.becomes(redditemu.Removed, posts[2])
	report := s.purge(exitDone)
	if len(report.Copies) != len(before) {
		t.Fatalf("%d copies in the report, want %d", len(report.Copies), len(before))
	}
	for _, c := range report.Copies {
		if c.State != state.CopyGood || c.Rows != 5 || !slices.Equal(c.Purged, []string{"few002"}) {
			t.Errorf("%s: %+v", c.Format, c)
		}
		after := tree(t, c.Path)
		for name, text := range after {
			if strings.Contains(text, picture) || strings.Contains(name, "few002") || strings.Contains(text, "few002") {
				t.Errorf("%s: %s still has the purged post", c.Format, name)
			}
			was := before[c.Format][name]
			if image := strings.HasSuffix(name, ".png") || strings.HasSuffix(name, ".jpg"); image && was != text {
				t.Errorf("%s: %s is another picture than before", c.Format, name)
			}
		}
		if c.Format == "folder" && len(text) > 12 && strings.Contains(strings.Join(slices.Collect(values(after)), ""), strings.Split(text, "\n")[0]) {
			t.Error("the text of the purged post is still in the folder")
		}
	}
	if diff := cmp.Diff(onlyParquet(s.dataset()), onlyParquet(tree(t, filepath.Join(root, "parquet")))); diff != "" {
		t.Error("the Parquet of the copy is not that of the dataset after the purge")
	}
	if again := s.purge(exitDone); len(again.Copies[0].Purged) != 0 {
		t.Errorf("a second purge took out %v", again.Copies[0].Purged)
	}
}

func values(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, text := range files {
			if !yield(text) {
				return
			}
		}
	}
}

func onlyParquet(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		if strings.HasSuffix(name, ".parquet") {
			out[name] = text
		}
	}
	return out
}

// TestExportKilled leaves a copy as kills before each of its steps do: no half copy has its name, none is
// unknown, and the next purge removes what is left.
func TestExportKilled(t *testing.T) {
	long(t)
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	steps := 0
	for at := 0; ; at += often(1, 4) {
		to, n := filepath.Join(root, "copies", "copy"), 0
		s.write(filepath.Join(root, "copies", "mine.txt"), "mine")
		s.step = func(step, _ string) error {
			if !strings.HasPrefix(step, "export") {
				return nil
			}
			if n++; n <= at {
				return nil
			}
			panic("killed") // nothing of what is open is finished
		}
		f := s.copyTo(to)
		s.step = nil
		if f.code == exitDone {
			break
		}
		steps++
		f.want(t, exitFailed, "killed")
		if _, err := os.Lstat(to); err == nil {
			t.Errorf("step %d: a copy that is not whole has its name", at)
		}
		if list := s.copies(exitDone); len(list) != 1 {
			t.Errorf("step %d: %d copies on record, want the one", at, len(list))
		}
		s.offline(exitDone)
		if left := tree(t, filepath.Join(root, "copies")); len(left) != 1 {
			t.Errorf("step %d: the next purge left %d files", at, len(left)-1)
		}
		if list := s.copies(exitDone); list[0].State != state.CopyClosed || list[0].Told != "never finished" {
			t.Errorf("step %d: on record as %s, %q", at, list[0].State, list[0].Told)
		}
	}
	if steps < 2 {
		t.Errorf("only %d steps were killed", steps)
	}
}
