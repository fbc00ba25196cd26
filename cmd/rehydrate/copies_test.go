package main

import (
	"path/filepath"
	"slices"
	"testing"

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
