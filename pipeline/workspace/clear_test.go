package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestClearKeepsOnlyTombstonesAndLog: no content is left, in files or in the bytes of state.db, whoever put it there;
// what says which posts must not come back is.
func TestClearKeepsOnlyTombstonesAndLog(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(3)...)
	img := store(t, w, key("a000"), "body of a000")
	store(t, w, key("a001"), "body of a001")
	const secret = "a text that was read and must go"
	read := Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: secret}
	testkit.OK(t, w.SetReadings(ctx, NewReading{Key: key("a000"), Reading: read}),
		w.SetAnswers(ctx, []Answer{{Key: key("a000"), Asked: "q", ImageSHA256: img.SHA256, Text: secret,
			At: time.Unix(1, 0)}}, "m", Spending{}),
		w.DropImage(ctx, key("a002"), Trouble{Outcome: manifest.Gone}, false),
		w.SetPosts(ctx, []Post{{ID: "a000", State: manifest.StateLive, Subreddit: secret},
			{ID: "a001", State: manifest.StateRemoved, Withheld: true}}),
		w.AddTombstones(ctx, []Tombstone{stone("a001", manifest.StateRemoved, "", 1)}),
		w.SetResults(ctx, []manifest.Result{{Key: key("a000"), Outcome: manifest.Kept, Detail: secret}}),
		w.SetCopy(ctx, Copy{Path: "/copy", Rows: []string{"a000"}}))
	images := filepath.Join(w.Dir(), "images")
	testkit.OK(t, os.MkdirAll(filepath.Join(images, "zz"), 0o700),
		os.WriteFile(filepath.Join(images, "zz", "stray"), nil, 0o600))

	testkit.OK(t, w.Clear(ctx), w.Clear(ctx)) // once more: nothing is lost
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		p := r.Post
		if r.Image != nil || r.Reading != nil || r.Trouble != nil || r.Result != nil || p.Withheld || p.Subreddit != "" {
			t.Errorf("after Clear there is %+v", r)
		}
	}
	stones, err := w.Tombstones(ctx)
	testkit.Same(t, "tombstones", 1, len(stones), err)
	copies, err := w.Copies(ctx)
	testkit.Same(t, "copies on record", 1, len(copies), err)
	erased, err := w.ErasedImages(ctx)
	testkit.Same(t, "digests of erased images", 1, len(erased), err)
	if erased[0].ID != "a001" {
		t.Errorf("the digests of %s are kept: a post that may come back", erased[0].ID)
	}
	if _, err := os.Lstat(filepath.Join(w.Dir(), "images")); err == nil {
		t.Error("the folder of the images is left")
	}
	dir := w.Dir()
	testkit.OK(t, w.Close())
	if contains(t, filepath.Join(dir, stateName), secret) {
		t.Error("a text is left in state.db")
	}
}

// TestClearKilled: ended before any step, the rows and files of a Clear agree so far that the next one completes it.
func TestClearKilled(t *testing.T) {
	for n, done := 1, false; !done; n++ {
		w := loaded(t, numbered(2)...)
		store(t, w, key("a000"), "body of a000")
		store(t, w, key("a001"), "body of a001")
		left, stopped := n, context.Canceled
		err := w.Clear(hooked(t.Context(), func(string) error {
			if left--; left == 0 {
				return stopped
			}
			return nil
		}))
		done = err == nil
		testkit.OK(t, w.Clear(t.Context()))
		testkit.Same(t, "files", []string{"lock", "state.db"}, files(t, w, "."))
		if n > 20 {
			t.Fatal("Clear does not end")
		}
	}
}
