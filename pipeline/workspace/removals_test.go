package workspace

import (
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// TestTakenOver: a state.db that is as old as its log and lacks a removal, because somebody changed it or an earlier
// version compared the two, takes it over when it is opened for writing; one that lacks nothing is not changed.
func TestTakenOver(t *testing.T) {
	ctx := t.Context()
	for name, forget := range map[string]string{
		"an earlier version": "DELETE FROM trouble; DELETE FROM tombstone; DELETE FROM former_image; " +
			"DELETE FROM meta WHERE key = 'removals'",
		"changed": "DELETE FROM trouble; DELETE FROM tombstone; DELETE FROM former_image",
	} {
		w := loaded(t, entry(0, "g", 0), entry(1, "g", 1), entry(2, "p", 0))
		dir := w.Dir()
		store(t, w, key("g"), "one")
		store(t, w, manifest.Key{ID: "g", Image: 1}, "two")
		store(t, w, key("p"), "three")
		testkit.OK(t, w.DropImage(ctx, manifest.Key{ID: "g", Image: 1},
			Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery,
				Detail: "why"}, true), w.AddTombstones(ctx, []Tombstone{stone("p", manifest.StateRemoved, "takedown", 1)}),
			w.Erase(ctx, "p"), w.Close())
		w = open(t, dir)
		before := collect(t, w.Records(ctx, Select{}))
		erased, err := w.ErasedImages(ctx)
		testkit.Same(t, "digests", 2, len(erased), err)
		if name == "changed" { // behind the back of the last writer
			testkit.OK(t, w.Close())
			w, err = Open(ctx, dir, Options{ReadOnly: true})
			testkit.OK(t, err, w.db.Close(), w.connect(dir, writerParams()))
		}
		_, err = w.db.ExecContext(ctx, forget)
		testkit.OK(t, err, w.Close())
		w = open(t, dir)
		after := collect(t, w.Records(ctx, Select{}))
		before[1].Trouble.Detail, before[1].Trouble.Source = "", "" // no place of an image is in the log
		// The log's time is that of its record.
		if late := after[1].Trouble.At.Sub(before[1].Trouble.At); late < 0 || late > time.Minute {
			t.Errorf("%s: taken over as known since %s, and not %s", name, after[1].Trouble.At, before[1].Trouble.At)
		}
		before[1].Trouble.At = after[1].Trouble.At
		testkit.Same(t, "entries, "+name, before, after)
		again, err := w.ErasedImages(ctx)
		testkit.Same(t, "digests, "+name, erased, again, err)
		stones, err := w.Tombstones(ctx)
		testkit.Same(t, "tombstones, "+name, 1, len(stones), err)
		testkit.OK(t, w.Close())
	}
}
