package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/report"
	"rehydrate/pipeline/state"
)

// purge runs purge with --json and returns its report; any status but want ends the test.
func (s *site) purge(want int, more ...string) pipeline.PurgeReport {
	s.t.Helper()
	var report pipeline.PurgeReport
	s.into(&report, want, append([]string{"purge", s.release, "-w", s.workspace, "--approval", "TEST-1",
		"--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert}, more...)...)
	return report
}

// offline is purge --offline, without credentials.
func (s *site) offline(want int, more ...string) pipeline.PurgeReport {
	s.t.Helper()
	var report pipeline.PurgeReport
	s.intoAs(nil, &report, want, append([]string{"purge", s.release, "-w", s.workspace, "--offline"}, more...)...)
	return report
}

// into runs a command with --json and reads what it prints.
func (s *site) into(v any, want int, args ...string) {
	s.t.Helper()
	s.intoAs(s.env(), v, want, args...)
}

func (s *site) intoAs(env map[string]string, v any, want int, args ...string) {
	s.t.Helper()
	f := s.do(env, append(args, "--json")...)
	if f.code != want {
		s.t.Fatalf("%s = exit %d, want %d\n%s%s", strings.Join(args, " "), f.code, want, f.stderr, f.stdout)
	}
	if err := json.Unmarshal([]byte(f.stdout), v); err != nil {
		s.t.Fatalf("%s --json: %v\n%s", strings.Join(args, " "), err, f.stdout)
	}
}

// copyTo makes a registered copy.
func (s *site) copyTo(to string, more ...string) finished {
	s.t.Helper()
	return s.do(s.env(), append([]string{"export", s.release, "-w", s.workspace, "--to", to, "--note", "a test"}, more...)...)
}

// copies lists the registered copies.
func (s *site) copies(want int) []state.CopyReport {
	s.t.Helper()
	var list []state.CopyReport
	s.into(&list, want, "export", "--list", "-w", s.workspace)
	return list
}

// twins are posts of which the first three show the same picture in different files.
func twins(n int) []redditemu.Post {
	posts := fewPosts(n)
	for i, format := range []string{"png", "jpeg", "webp"} {
		posts[i].Images = []redditemu.Image{{Spec: redditemu.Spec{Seed: 7, Caption: "when the twins both say the same thing", Format: format}}}
	}
	return posts
}

// copyFolder copies a folder.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestPurgeLeavesNoText purges many posts: no text of theirs is in any byte of the workspace, nor any
// image.
func TestPurgeLeavesNoText(t *testing.T) {
	t.Parallel()
	posts := fewPosts(24)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	s.do(s.env(), "ocr", s.release, "-w", s.workspace, "--ocr", s.reader, "--force").want(t, exitDone)
	texts := map[manifest.PostID]string{}
	for _, p := range posts[:18] {
		text, _, _ := strings.Cut(readText(t, s, p.ID), "\n")
		if len(text) >= 12 {
			texts[p.ID] = text
		}
	}
	if len(texts) < 10 {
		t.Fatalf("only %d posts have a text to look for", len(texts))
	}
	pictures := map[manifest.PostID][]byte{}
	for _, name := range s.images() {
		id := manifest.PostID(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
		pictures[id] = []byte(read(t, name))[64:192]
	}
	s.write(filepath.Join(s.workspace, "report.html"), "<p>"+texts[posts[0].ID])
	s.becomes(redditemu.Deleted, posts[:18]...)
	s.purge(exitDone)
	left := texts
	for _, p := range posts[18:] { // what stays may say the same
		stays := readText(t, s, p.ID)
		for id, text := range left {
			if strings.Contains(stays, text) {
				delete(left, id)
			}
		}
	}
	if len(left) < 8 {
		t.Fatalf("only %d texts are of purged posts alone", len(left))
	}
	for id, text := range left {
		s.grep(text, "the text of "+string(id))
		for word := range strings.FieldsSeq(text) {
			if len(word) > 9 && !strings.Contains(fmt.Sprint(left), word) {
				s.grep(word, "a word of "+string(id))
			}
		}
	}
	for _, p := range posts[:18] {
		if b := pictures[p.ID]; len(b) > 0 {
			s.grep(string(b), "a picture of "+string(p.ID))
		}
	}
	if len(s.images()) != 6 {
		t.Errorf("%d images left, want 6", len(s.images()))
	}
}

// A killPoint is a workspace with its copy as they were before a step.
type killPoint struct{ step, workspace, copied string }

// TestPurgeKilledAtEveryStep keeps the folders as they are before each step of a purge that changes the disk,
// as a kill there would leave them. From each the purge completes, and none of them exports a removed row.
func TestPurgeKilledAtEveryStep(t *testing.T) {
	long(t)
	t.Parallel()
	posts := twins(7)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	root := t.TempDir()
	copied := filepath.Join(root, "copy")
	s.copyTo(copied).want(t, exitDone)
	gone := []string{"few000", "few004"}
	text := readText(t, s, "few004")
	s.becomes(redditemu.Deleted, posts[0], posts[4])

	var shots []killPoint
	steps := 0
	s.step = func(step, name string) error {
		if steps++; steps%often(1, 9) != 0 {
			return nil
		}
		n := len(shots)
		shot := killPoint{fmt.Sprint(n, " ", step, " ", name), filepath.Join(root, fmt.Sprint("ws", n)), filepath.Join(root, fmt.Sprint("copy", n))}
		copyFolder(t, s.workspace, shot.workspace)
		copyFolder(t, copied, shot.copied)
		shots = append(shots, shot)
		return nil
	}
	live := s.workspace
	s.purge(exitDone)
	s.step = nil
	want, wantCopy := s.dataset(), tree(t, copied)
	if steps < 30 {
		t.Fatalf("only %d steps were seen", steps)
	}
	t.Logf("killed at %d of %d steps", len(shots), steps)
	for i, shot := range shots {
		s.workspace = shot.workspace
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(shot.copied, copied); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 { // no state in between hands out a removed row
			to := filepath.Join(root, fmt.Sprint("exported", i))
			f := s.copyTo(to)
			for _, id := range gone {
				if rowsOf(t, filepath.Join(to, "data"))[id] && knows(s, id) {
					t.Errorf("killed before %s: export handed out %s (exit %d)", shot.step, id, f.code)
				}
			}
		}
		same := func(files map[string]string) map[string]string { return files }
		if i%4 == 0 {
			s.purge(exitDone)
		} else { // asked for, instead of asking: without the pause between two requests; the card counts them otherwise
			s.offline(exitDone, "--id", strings.Join(gone, ","))
			same = onlyParquet
		}
		if diff := cmp.Diff(same(want), same(s.dataset())); diff != "" {
			t.Errorf("killed before %s: the dataset is another one", shot.step)
		}
		if i%5 != 0 {
			if diff := cmp.Diff(wantCopy, tree(t, copied)); diff != "" {
				t.Errorf("killed before %s: the copy is another one", shot.step)
			}
		}
		s.grep(text, "the text of a purged post, killed before "+shot.step)
		if t.Failed() {
			break
		}
		for _, dir := range []string{shot.workspace, shot.copied} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.workspace = live
}

// knows reports whether the workspace knows that a post is gone.
func knows(s *site, id string) bool {
	s.t.Helper()
	var x report.Explanation
	s.into(&x, exitDone, "explain", id, "-w", s.workspace)
	return x.Post.State.Gone() || x.Tombstone != nil
}

// tree returns the bytes of all files in a folder, by name.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = read(t, path)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// rowsOf are the ids in the Parquet files of a folder, none where there is no such folder. The tool's own reader is
// enough to see which rows there are.
func rowsOf(t testing.TB, dir string) map[string]bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, name := range found {
		table, err := scan.OpenManifest(name, []string{"id"})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(table.Columns(), "id")
		cells, err := table.Next()
		for ; err == nil; cells, err = table.Next() {
			ids[cells[at].Text] = true
		}
		if table.Close(); !errors.Is(err, io.EOF) {
			t.Fatalf("read %s: %v", name, err)
		}
	}
	return ids
}
