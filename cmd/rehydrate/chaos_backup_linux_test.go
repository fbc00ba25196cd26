package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestChaosBackups puts last week's files back over a workspace that was purged since, all of them and some alone. Nothing
// comes back: not by an export at once, not by a run, and not by the run after it.
func TestChaosBackups(t *testing.T) {
	long(t)
	t.Parallel()
	c := newChaosSite(t)
	backup := filepath.Join(t.TempDir(), "backup")
	copyFolder(t, c.workspace, backup)
	c.do(nil, c.purgeArgs()...).want(t, exitDone)
	kept := filepath.Join(t.TempDir(), "tombstones.csv")
	c.do(nil, "tombstones", "export", kept, "-w", c.workspace).want(t, exitDone)
	want, purged := c.made(t), c.workspace

	for _, scene := range []struct {
		name  string
		parts []string // of the workspace; nil is all of it
		told  bool     // by the tombstones that were kept elsewhere, which all of it takes: nothing else is left to know
	}{
		{"all", nil, true},
		{"state.db", []string{"state.db"}, false},
		{"audit", []string{"audit"}, false},
		{"the key", []string{"log.key"}, false},
		{"the dataset", []string{"dataset", "outcomes.csv"}, false},
		{"images", []string{"images"}, false},
		{"all but the log", []string{"state.db", "images", "dataset", "outcomes.csv", "tombstones.csv"}, false},
		{"the log with its key, and the dataset", []string{"audit", "log.key", "dataset"}, false},
	} {
		t.Run(scene.name, func(t *testing.T) {
			t.Parallel()
			c := c.at(t, c.place(t))
			copyFolder(t, purged, c.workspace)
			c.restore(t, backup, scene.parts)
			if scene.told {
				c.do(nil, "purge", c.release, "-w", c.workspace, "--offline", "--tombstones", kept).want(t, exitDone)
			}
			to := filepath.Join(filepath.Dir(c.workspace), "copy")
			if f := c.copyTo(to); f.code == exitDone {
				c.without(t, filepath.Join(to, "data"), "an export at once")
			} else {
				f.want(t, exitRetry, "may not be handed out")
			}
			for _, when := range []string{"the first run", "the second run"} {
				c.finish(t)
				c.without(t, filepath.Join(c.workspace, "dataset", "data"), when)
				for _, word := range purgedWords {
					c.grep(word, "a word of a purged post after "+when)
				}
				for id := range strings.SplitSeq(purgedIDs, ",") {
					if got := c.outcomeOf(manifest.PostID(id)); !strings.HasPrefix(got, "removed/") {
						t.Errorf("after %s %s is %s", when, id, got)
					}
				}
			}
			expect := maps.Clone(want)
			if scene.told { // a list for others gives no reasons
				expect["outcomes.csv"] = strings.ReplaceAll(want["outcomes.csv"], "takedown", "tombstone")
			}
			c.settled(t, expect)
		})
	}
}

// restore puts parts of a backup in the place of what the workspace has; nil is all of it.
func (c *chaosSite) restore(t *testing.T, backup string, parts []string) {
	t.Helper()
	if parts == nil {
		parts = []string{"."}
	}
	for _, part := range parts {
		from, to := filepath.Join(backup, part), filepath.Join(c.workspace, part)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		switch info, err := os.Stat(from); {
		case err != nil:
			t.Fatalf("the backup has no %s: %v", part, err)
		case info.IsDir():
			copyFolder(t, from, to)
		default:
			c.write(to, read(t, from))
		}
	}
}

// without asserts that a folder of Parquet files has rows, and none of a purged post.
func (c *chaosSite) without(t *testing.T, dir, when string) {
	t.Helper()
	ids := rowsOf(t, dir)
	if !ids["chaos00"] {
		t.Errorf("after %s there are no rows: %v", when, ids)
	}
	for id := range strings.SplitSeq(purgedIDs, ",") {
		if ids[id] {
			t.Errorf("after %s %s is back", when, id)
		}
	}
}
