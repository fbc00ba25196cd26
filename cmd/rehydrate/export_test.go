package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestCopyOutOfReach purges with copies that were moved, changed, added to or replaced: each is an open
// obligation until somebody says what became of it, or it can be purged after all.
func TestCopyOutOfReach(t *testing.T) {
	t.Parallel()
	posts := fewPosts(4)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	parquet := filepath.Join("data", "train-00000-of-00001.parquet")
	for _, name := range []string{"moved", "changed", "added", "replaced", "fine"} {
		s.copyTo(at(name)).want(t, exitDone)
	}
	whole := read(t, filepath.Join(at("changed"), parquet))
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(at(from), at(to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("moved", "elsewhere")
	s.write(filepath.Join(at("changed"), parquet), whole+"PAR1")
	s.write(filepath.Join(at("added"), "mine.parquet"), whole)
	rename("replaced", "away")
	s.write(at("replaced"), "a file")
	s.becomes(redditemu.Deleted, posts[0]) // of train

	report := s.purge(exitRetry)
	want := map[string]string{"moved": "not there any more", "changed": "somebody changed it", "added": "mine.parquet", "replaced": "something else", "fine": ""}
	for _, c := range report.Copies {
		told := want[filepath.Base(c.Path)]
		switch {
		case told == "" && (c.State != state.CopyGood || len(c.Purged) != 1):
			t.Errorf("%s: %+v, want it purged", c.Path, c)
		case told != "" && (c.State != state.CopyOpen || !strings.Contains(c.Told, told) || !slices.Equal(c.Owed, []string{"few000"})):
			t.Errorf("%s: %s, %q, owes %v, want open because of %q", c.Path, c.State, c.Told, c.Owed, told)
		}
	}
	if got := read(t, filepath.Join(at("changed"), parquet)); got != whole+"PAR1" {
		t.Error("a changed file was written over")
	}
	if list := s.copies(exitRetry); len(list) != 5 {
		t.Errorf("%d copies listed, want 5", len(list))
	}

	s.do(nil, "export", "--destroyed", at("fine"), "--note", "nobody", "-w", s.workspace).want(t, exitUsage, "still there")
	s.do(nil, "export", "--returned", at("never"), "--note", "nobody", "-w", s.workspace).want(t, exitUsage, "no copy is registered")
	s.do(nil, "export", "--destroyed", at("moved"), "--note", "A. Holder", "-w", s.workspace).want(t, exitDone, "was destroyed")
	s.write(filepath.Join(at("changed"), parquet), whole)
	if err := os.Remove(filepath.Join(at("added"), "mine.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(at("replaced")); err != nil {
		t.Fatal(err)
	}
	rename("away", "replaced")
	s.offline(exitDone)
	for _, name := range []string{"changed", "added", "replaced"} {
		if ids := rowsOf(t, filepath.Join(at(name), "data")); ids["few000"] || !ids["few003"] {
			t.Errorf("%s has the rows %v", name, ids)
		}
	}
	for _, c := range s.copies(exitDone) {
		if moved := filepath.Base(c.Path) == "moved"; moved != (c.State == state.CopyClosed) || moved && !strings.Contains(c.Told, "A. Holder") {
			t.Errorf("in the end %s is %s: %s", c.Path, c.State, c.Told)
		}
	}
}

// TestExportRefuses: a copy goes nowhere but into a new folder outside the workspace, and holds nothing that may not
// be handed out now.
func TestExportRefuses(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.do(nil, "export", s.release, "-w", s.workspace, "--to", filepath.Join(t.TempDir(), "x"), "--note", "a test").want(t, exitUsage, "no such folder")
	s.run(exitDone)
	root := t.TempDir()
	to := filepath.Join(root, "copy")
	link := filepath.Join(root, "link")
	if err := os.Symlink(s.workspace, link); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(root, "full", "mine.txt"), "mine")
	for _, c := range []struct {
		name string
		args []string
		said string
	}{
		{"into the workspace", []string{"--to", filepath.Join(s.workspace, "copy"), "--note", "x"}, "workspace"},
		{"into the workspace by a link", []string{"--to", filepath.Join(link, "copy"), "--note", "x"}, "workspace"},
		{"over the workspace", []string{"--to", filepath.Dir(s.workspace), "--note", "x"}, "workspace"},
		{"where there is no folder", []string{"--to", filepath.Join(root, "none", "copy"), "--note", "x"}, "no folder"},
		{"over files", []string{"--to", filepath.Join(root, "full"), "--note", "x"}, "mine.txt"},
		{"without a note", []string{"--to", to}, "--note"},
		{"with a note of two lines", []string{"--to", to, "--note", "a\nb"}, "--note"},
		{"with a note that moves the cursor", []string{"--to", to, "--note", "a\x1b[2J"}, "--note"},
		{"in no format", []string{"--to", to, "--note", "x", "--format", "zip"}, "--format"},
		{"and listed", []string{"--to", to, "--note", "x", "--list"}, "one of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.do(nil, append([]string{"export", s.release, "-w", s.workspace}, c.args...)...).want(t, exitUsage, c.said)
		})
	}
	if got := read(t, filepath.Join(root, "full", "mine.txt")); got != "mine" || len(s.copies(exitDone)) != 0 {
		t.Error("something was written")
	}

	s.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	s.copyTo(to).want(t, exitRetry, "last seen live too long ago")
	s.now = time.Now
	s.becomes(redditemu.Removed, posts[:2]...)
	s.run(exitRetry) // a mass removal: withheld, and the dataset is without them
	s.copyTo(to).want(t, exitDone, "1 row in")
	if ids := rowsOf(t, filepath.Join(to, "data")); ids["few000"] || ids["few001"] {
		t.Errorf("withheld rows were handed out: %v", ids)
	}
	s.copyTo(to).want(t, exitUsage, "on record")
	if err := os.Rename(to, to+"-moved"); err != nil {
		t.Fatal(err)
	}
	s.copyTo(to).want(t, exitUsage, "on record")
	s.write(filepath.Join(s.workspace, "dataset", "data", "train-00000-of-00001.parquet"), "PAR1")
	s.copyTo(to+"-2").want(t, exitRetry, "not those that a finished run")
}

// TestExportKilled leaves a copy as kills before each of its steps do: no half copy has its name, none is
// unknown, and the next purge removes what is left.
func TestExportKilled(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	steps := 0
	for at := 0; ; at++ {
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
	if steps < 5 {
		t.Errorf("only %d steps were killed", steps)
	}
}
