package state

import (
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestFirstOfSameImagesIsKept: of entries with one image the first that may be in the dataset is kept, whatever the
// filters' mode; and what the dataset is made of changes with nothing else.
func TestFirstOfSameImagesIsKept(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	ws := sameImages(t, now, "aaa1", "bbb2", "ccc3", "gone4")
	stones := Holding{"gone4": {Tombstone: manifest.Tombstone{ID: "gone4", State: manifest.StateDeleted, Time: now}}}
	words, err := language.New()
	testkit.OK(t, err)
	decide := func(mode policy.Mode) (outcomes string, d *Decisions) {
		p := policy.Default()
		p.Filter.Mode = mode
		draft, err := DraftAll(t.Context(), ws, words, p)
		testkit.OK(t, err)
		d, err = Judge{Policy: p, Tombstones: stones, Now: now}.Decide(t.Context(), ws, draft)
		testkit.OK(t, err, d.Store(t.Context(), ws))
		var all []string
		for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
			testkit.OK(t, err)
			all = append(all, strings.TrimSpace(string(rec.Result.Outcome)+" "+string(rec.Result.DuplicateOf.ID)))
		}
		return strings.Join(all, ", "), d
	}
	for _, tt := range []struct {
		mode policy.Mode
		want string
	}{
		{policy.Drop, "kept, duplicate aaa1, duplicate aaa1, deleted"},
		{policy.Flag, "kept, kept aaa1, kept aaa1, deleted"},
		{policy.Drop, "kept, duplicate aaa1, duplicate aaa1, deleted"},
	} {
		if got, _ := decide(tt.mode); got != tt.want {
			t.Errorf("mode %v: %s, want %s", tt.mode, got, tt.want)
		}
	}
	// What changes after the draft was made counts, and only what differs is written.
	p := policy.Default()
	draft, err := DraftAll(t.Context(), ws, words, p)
	testkit.OK(t, err, ws.SetPosts(t.Context(),
		[]workspace.Post{{ID: "aaa1", State: manifest.StateRemoved, Reason: "moderator", CheckedAt: now}}))
	d, err := Judge{Policy: p, Tombstones: stones, Now: now}.Decide(t.Context(), ws, draft)
	testkit.OK(t, err, d.Store(t.Context(), ws))
	for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
		testkit.Same(t, "the stored result", d.Results[rec.Ordinal], *rec.Result, err)
	}
	if d.Results[0].Outcome != manifest.Removed || d.Results[1].Outcome != manifest.Kept ||
		d.Results[2].DuplicateOf.ID != "bbb2" {
		t.Errorf("results %+v", d.Results)
	}
	testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{{ID: "aaa1", State: manifest.StateLive, CheckedAt: now,
		LiveAt: now}}))

	_, one := decide(policy.Drop)
	_, again := decide(policy.Drop)
	_, flagged := decide(policy.Flag)
	inputs := func(d *Decisions, more ...any) string {
		s, err := d.Inputs(more...)
		testkit.OK(t, err)
		return s
	}
	if a, b, c, e := inputs(one), inputs(again), inputs(flagged), inputs(one, "more"); a != b || a == c || a == e {
		t.Errorf("inputs %s, again %s, flagged %s, with more %s", a, b, c, e)
	}
	if !one.Gone.Has("gone4") || len(one.Gone.Posts) != 1 {
		t.Errorf("gone: %v", one.Gone)
	}
	want := map[string]map[manifest.Outcome]int{"train": {manifest.Kept: 1, manifest.Duplicate: 1, manifest.Deleted: 1},
		"test": {manifest.Duplicate: 1}}
	testkit.Same(t, "counts", want, one.Counts())
	rows := map[string]int{}
	for _, split := range []string{"train", "test"} {
		for n := range flagged.RowBytes(split) {
			if n < 4 {
				t.Errorf("a row of %d bytes", n)
			}
			rows[split]++
		}
		for row, err := range Rows(t.Context(), ws, policy.Default(), split) {
			if err != nil || row.Filter == "" && row.ID != "aaa1" {
				t.Errorf("row %s with the filter %q, %v", row.ID, row.Filter, err)
			}
			rows[split+" written"]++
		}
	}
	testkit.Same(t, "rows", map[string]int{"train": 2, "test": 1, "train written": 2, "test written": 1}, rows)
}

// sameImages is a workspace of live posts with one image and no text. Every third entry is of the split test.
func sameImages(t *testing.T, now time.Time, ids ...manifest.PostID) *workspace.Workspace {
	t.Helper()
	ctx := t.Context()
	ws, err := workspace.Open(ctx, t.TempDir(), workspace.Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { ws.Close() })
	entries := func(yield func(manifest.Entry, error) bool) {
		for i, id := range ids {
			split := "train"
			if i%3 == 2 {
				split = "test"
			}
			if !yield(manifest.Entry{Key: manifest.Key{ID: id}, Ordinal: i, Line: i + 2, Split: split}, nil) {
				return
			}
		}
	}
	testkit.OK(t, ws.Load(ctx, workspace.Binding{Release: "R", Splits: []string{"train", "test"}}, entries, nil))
	var posts []workspace.Post
	for _, id := range ids {
		key, body := manifest.Key{ID: id}, []byte("\xff\xd8\xff?")
		testkit.OK(t, ws.StoreImage(ctx, key, body,
			workspace.Image{Source: "one place", Format: "jpeg", Width: 9, Height: 9, PHash: 0x0f0f0f0f0f0f0f0f}))
		testkit.OK(t, ws.SetReadings(ctx, workspace.NewReading{Key: key,
			Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: SHA256(body), Wide: &[4]uint64{1}}}))
		posts = append(posts, workspace.Post{ID: id, State: manifest.StateLive, CheckedAt: now, LiveAt: now})
	}
	testkit.OK(t, ws.SetPosts(ctx, posts))
	return ws
}
