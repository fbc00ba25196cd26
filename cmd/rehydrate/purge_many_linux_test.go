package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/workspace"
)

// TestPurgedCanaries purges 200 posts, each with a text of its own, and then finds none of the texts in any byte of
// the workspace: not in free pages of state.db, not in a Parquet, not in the log.
func TestPurgedCanaries(t *testing.T) {
	long(t)
	t.Parallel()
	const all, gone = 210, 200
	posts := fewPosts(all)
	for i := range posts {
		posts[i].Images = []redditemu.Image{sketch(i%3, 1000+uint64(i), 0, "png")}
	}
	o := redditemu.Options{Seed: 1, RequestsPerWindow: 1 << 20, Window: 10 * time.Second}
	c := &chaosSite{site: newSiteOn(t, o, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)}
	c.finish(t)

	canary := func(i int) string { return fmt.Sprintf("canary%03dq", i) }
	n := 0
	c.age(func(r *workspace.Record) {
		last := &r.Reading.Words[len(r.Reading.Words)-1]
		r.Reading.Text = strings.Replace(r.Reading.Text, last.Text, canary(n), 1)
		last.Text = canary(n)
		n++
	})
	c.finish(t)
	state := []byte(read(t, filepath.Join(c.workspace, "state.db")))
	for i := range all {
		if !bytes.Contains(state, []byte(canary(i))) {
			t.Fatalf("%s is not in state.db before the purge: the search after it proves nothing", canary(i))
		}
	}
	if rows := c.exported(); len(rows) != all {
		t.Fatalf("%d rows before the purge, want %d", len(rows), all)
	}

	c.becomes(redditemu.Removed, posts[:gone]...)
	c.purge(exitDone)
	for name, b := range everyFile(t, c.workspace) {
		for i := range gone {
			if bytes.Contains(b, []byte(canary(i))) {
				t.Errorf("%s holds %s", name, canary(i))
			}
		}
	}
	if rows := c.exported(); len(rows) != all-gone {
		t.Errorf("%d rows after the purge, want %d", len(rows), all-gone)
	}
	if images, _ := filepath.Glob(filepath.Join(c.workspace, "images", "*", "*")); len(images) != all-gone {
		t.Errorf("%d image files after the purge, want %d", len(images), all-gone)
	}
}
