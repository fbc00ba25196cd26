package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
)

// copied is what a list of copies says of the one at path.
func copied(t *testing.T, list []state.CopyReport, path string) state.CopyReport {
	t.Helper()
	at := slices.IndexFunc(list, func(c state.CopyReport) bool { return c.Path == path })
	if at < 0 {
		t.Fatalf("no copy at %s in %+v", path, list)
	}
	return list[at]
}

// TestCopyRestored: a copy from which rows were taken out, and which somebody put back as it was, is no good one.
func TestCopyRestored(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	to := filepath.Join(t.TempDir(), "copy")
	s.copyTo(to).want(t, exitDone)
	before := read(t, filepath.Join(to, shardOf("train")))
	s.offline(exitDone, "--id", "few000")
	after := read(t, filepath.Join(to, shardOf("train")))
	s.write(filepath.Join(to, shardOf("train")), before)
	if c := copied(t, s.offline(exitRetry).Copies, to); c.State != state.CopyOpen || !strings.Contains(c.Told, "few000") {
		t.Errorf("a copy that was put back: %s, %q", c.State, c.Told)
	}
	s.write(filepath.Join(to, shardOf("train")), after)
	if c := copied(t, s.offline(exitDone).Copies, to); c.State != state.CopyGood || c.Told != "" {
		t.Errorf("the purged file again in its place: %s, %q", c.State, c.Told)
	}
}

// TestCopyOwesAfterRun: a run that erases a post says that a copy still has its row, until a purge took it out there.
func TestCopyOwesAfterRun(t *testing.T) {
	t.Parallel()
	posts := fewPosts(12)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.copyTo(filepath.Join(t.TempDir(), "copy")).want(t, exitDone)
	s.becomes(redditemu.Deleted, posts[3])
	if sum := s.run(exitRetry); sum.OpenCopies != 1 || sum.Withheld != 0 {
		t.Errorf("after the run %d copies are open and %d posts withheld, want 1 and 0", sum.OpenCopies, sum.Withheld)
	}
	s.do(nil, "status", "-w", s.workspace).want(t, exitRetry, "1 registered copy may still hold rows that must go: rehydrate purge")
	s.offline(exitDone)
	if sum := s.run(exitDone); sum.OpenCopies != 0 {
		t.Errorf("after the purge %d copies are open", sum.OpenCopies)
	}
}

// TestCopyOwnFiles: what somebody wrote into a copy under the name of a file of it is not removed.
func TestCopyOwnFiles(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	parquet, folder := filepath.Join(root, "parquet"), filepath.Join(root, "folder")
	s.copyTo(parquet).want(t, exitDone)
	s.copyTo(folder, "--format", "folder").want(t, exitDone)
	pictures, _ := filepath.Glob(filepath.Join(folder, "train", "few000.*"))
	if len(pictures) != 1 {
		t.Fatalf("pictures %v, want one", pictures)
	}
	s.write(filepath.Join(parquet, "README.md"), "my own notes")
	s.write(pictures[0], "a picture of mine")
	report := s.offline(exitRetry, "--id", "few000")
	if got := read(t, filepath.Join(parquet, "README.md")); got != "my own notes" {
		t.Errorf("somebody's README.md is %q", got)
	}
	if c := copied(t, report.Copies, parquet); c.State != state.CopyGood || len(c.Purged) != 1 {
		t.Errorf("the copy with notes: %+v", c)
	}
	if got := read(t, pictures[0]); got != "a picture of mine" {
		t.Errorf("somebody's picture is %q", got)
	}
	if c := copied(t, report.Copies, folder); c.State != state.CopyOpen || !strings.Contains(c.Told, "few000") {
		t.Errorf("the copy with another picture: %s, %q", c.State, c.Told)
	}
	if _, err := os.Stat(filepath.Join(parquet, "croissant.json")); err == nil {
		t.Error("croissant.json, which nobody changed, is still there")
	}
}

// TestCopyNested: copies that lie in one another are all purged at once.
func TestCopyNested(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	outer := filepath.Join(t.TempDir(), "outer")
	for _, to := range []string{outer, filepath.Join(outer, "inner"), filepath.Join(outer, "data", "deep")} {
		s.copyTo(to).want(t, exitDone)
	}
	for _, c := range s.offline(exitDone, "--id", "few000").Copies {
		if c.State != state.CopyGood || len(c.Purged) != 1 {
			t.Errorf("%s: %s, %q, took out %v", c.Path, c.State, c.Told, c.Purged)
		}
	}
}

// TestCopyWithoutFolder: a copy that can't be looked at keeps no other from being purged, and can be closed.
func TestCopyWithoutFolder(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	gone, fine := filepath.Join(root, "a", "copy"), filepath.Join(root, "b")
	s.write(filepath.Join(root, "a", "mine.txt"), "mine")
	s.copyTo(gone).want(t, exitDone)
	s.copyTo(fine).want(t, exitDone)
	if err := os.RemoveAll(filepath.Dir(gone)); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Dir(gone), "a file where the folder was")
	report := s.offline(exitRetry, "--id", "few000")
	if c := copied(t, report.Copies, gone); c.State != state.CopyOpen {
		t.Errorf("a copy out of reach: %s, %q", c.State, c.Told)
	}
	if c := copied(t, report.Copies, fine); c.State != state.CopyGood || len(c.Purged) != 1 {
		t.Errorf("the other: %s, %q, took out %v", c.State, c.Told, c.Purged)
	}
	s.do(nil, "export", "--destroyed", gone, "--note", "A. Holder", "-w", s.workspace).want(t, exitDone)
	s.offline(exitDone)
}

// TestCopyWithoutName: an export that could not give its copy the name leaves neither files nor a copy on record that nobody could
// ever put in order.
func TestCopyWithoutName(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	for _, killed := range []bool{false, true} {
		root := t.TempDir()
		to := filepath.Join(root, "copy")
		s.step = func(step, _ string) error {
			if step == "export rename" {
				s.write(filepath.Join(to, "mine.txt"), "mine")
				if killed {
					panic("killed")
				}
			}
			return nil
		}
		s.copyTo(to).want(t, exitFailed)
		s.step = nil
		if left, _ := filepath.Glob(filepath.Join(root, ".*")); !killed && len(left) > 0 {
			t.Errorf("%v is left", left)
		}
		s.offline(exitDone)
		if c := copied(t, s.copies(exitDone), to); c.State != state.CopyClosed {
			t.Errorf("killed %v: the copy is %s, %q, want it closed: it never had its name", killed, c.State, c.Told)
		}
		if left, _ := filepath.Glob(filepath.Join(root, ".*")); len(left) > 0 {
			t.Errorf("killed %v: %v is left after a purge", killed, left)
		}
		if got := read(t, filepath.Join(to, "mine.txt")); got != "mine" {
			t.Errorf("somebody's file is %q", got)
		}
	}
}

// TestCopyUnfinishedAway: what a killed export left on a disk that is away is removed when the disk is back.
func TestCopyUnfinishedAway(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	disk := filepath.Join(t.TempDir(), "disk")
	s.write(filepath.Join(disk, "mine.txt"), "mine")
	to, written := filepath.Join(disk, "copy"), 0
	s.step = func(step, _ string) error {
		if step == "export write" {
			if written++; written == 3 {
				panic("killed")
			}
		}
		return nil
	}
	s.copyTo(to).want(t, exitFailed, "killed")
	s.step = nil
	for _, mountPoint := range []bool{false, true} {
		if err := os.Rename(disk, disk+"-away"); err != nil {
			t.Fatal(err)
		}
		if mountPoint {
			if err := os.Mkdir(disk, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		report := s.do(nil, "purge", s.release, "-w", s.workspace, "--offline")
		if !mountPoint && report.code != exitRetry {
			t.Errorf("the folder is away: exit %d, want %d", report.code, exitRetry)
		}
		os.Remove(disk)
		if err := os.Rename(disk+"-away", disk); err != nil {
			t.Fatal(err)
		}
	}
	s.offline(exitDone)
	if left := tree(t, disk); len(left) != 1 {
		t.Errorf("%d files are left of a copy that never had its name", len(left)-1)
	}
}

// TestCopyKilledThenMore: a purge of a copy that was killed between two files goes on at once, also when another post went
// in between.
func TestCopyKilledThenMore(t *testing.T) {
	t.Parallel()
	posts := fewPosts(9)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	to := filepath.Join(t.TempDir(), "copy")
	s.copyTo(to).want(t, exitDone)
	for _, kill := range []struct {
		rename int // before which rename of a file of the copy
		ids    string
	}{{2, "few000,few001"}, {1, "few003,few004"}} {
		n := 0
		s.step = func(step, name string) error {
			if step == "rename" && strings.HasPrefix(name, "data/") {
				n++
				if n == kill.rename {
					panic("killed")
				}
			}
			return nil
		}
		s.do(nil, "purge", s.release, "-w", s.workspace, "--offline", "--id", kill.ids).want(t, exitFailed, "killed")
		s.step = nil
	}
	c := copied(t, s.offline(exitDone, "--id", "few006").Copies, to)
	if c.State != state.CopyGood || c.Rows != 4 {
		t.Errorf("the copy is %s with %d rows, %q, want it good with 4", c.State, c.Rows, c.Told)
	}
	if rows := rowsOf(t, filepath.Join(to, "data")); rows["few000"] || rows["few001"] || rows["few003"] || rows["few004"] || rows["few006"] || !rows["few008"] {
		t.Error("the copy has rows that were purged, or lacks one that was not")
	}
}

// TestCopyOwesAfterManifest: what a copy owes it owes also when the next manifest no longer has the post.
func TestCopyOwesAfterManifest(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	to := filepath.Join(t.TempDir(), "copy")
	s.copyTo(to).want(t, exitDone)
	s.becomes(redditemu.AbsentPrivate, posts[5])
	s.run(exitRetry)
	if c := copied(t, s.copies(exitRetry), to); !slices.Equal(c.Owed, []string{"few005"}) {
		t.Fatalf("the copy owes %v, want few005", c.Owed)
	}
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts[:5]))
	s.run(exitRetry)
	if c := copied(t, s.copies(exitRetry), to); c.State != state.CopyOpen || !slices.Equal(c.Owed, []string{"few005"}) {
		t.Errorf("after the new manifest the copy is %s and owes %v", c.State, c.Owed)
	}
	if c := copied(t, s.offline(exitDone).Copies, to); !slices.Equal(c.Purged, []string{"few005"}) {
		t.Errorf("took out %v, want few005", c.Purged)
	}
	if rows := rowsOf(t, filepath.Join(to, "data")); rows["few005"] {
		t.Error("the row is still in the copy")
	}
}

// TestExportOfThisRelease: a copy is of the release that was named, and of nothing that a tombstone is known for.
func TestExportOfThisRelease(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	root := t.TempDir()
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts[:5]))
	s.copyTo(filepath.Join(root, "old")).want(t, exitRetry, "another version of the release")
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts))
	s.copyTo(filepath.Join(root, "new")).want(t, exitDone)

	backup := filepath.Join(root, "backup")
	copyFolder(t, s.workspace, backup)
	s.offline(exitDone, "--id", "few002")
	own := read(t, filepath.Join(s.workspace, "tombstones.csv"))
	if err := os.RemoveAll(s.workspace); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, backup, s.workspace)
	s.write(filepath.Join(s.workspace, "tombstones.csv"), own)
	s.do(nil, "purge", s.release, "-w", s.workspace, "--dry-run").want(t, exitDone, "few002")
	s.copyTo(filepath.Join(root, "restored")).want(t, exitRetry, "gone or withheld")
}
