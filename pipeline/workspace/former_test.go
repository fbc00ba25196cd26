package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// TestErasedImagesOfAnEarlierVersion: a state.db that has the digests of erased images alone, one of an entry or
// several, is read as it is, and once it is opened for writing it has all that the log has.
func TestErasedImagesOfAnEarlierVersion(t *testing.T) {
	ctx := t.Context()
	for _, unique := range []string{"id, image", "id, image, sha256"} {
		w := loaded(t, numbered(3)...)
		dir := w.Dir()
		store(t, w, key("a000"), "one")
		store(t, w, key("a001"), "two")
		store(t, w, key("a001"), "three")
		store(t, w, key("a002"), "four")
		testkit.OK(t, w.AddTombstones(ctx, []Tombstone{stone("a000", manifest.StateDeleted, "", 1)}), w.Erase(ctx, "a000"),
			w.DropImage(ctx, key("a001"), Trouble{Outcome: manifest.Failed}, false), w.Close())
		w = open(t, dir) // the log is whole
		before, err := w.ErasedImages(ctx)
		testkit.Same(t, "erased images", 1, len(before), err)
		all, err := w.FormerImages(ctx, nil)
		testkit.Same(t, "former images", 3, len(all), err)
		for _, s := range []string{"DROP TABLE former_image", `CREATE TABLE erased_image (
  id TEXT NOT NULL, image INTEGER NOT NULL,
  original_sha256 TEXT NOT NULL, sha256 TEXT NOT NULL, pixels_sha256 TEXT NOT NULL, PRIMARY KEY (` + unique + "))",
			"UPDATE meta SET value = '2' WHERE key = 'removals'"} {
			_, err := w.db.ExecContext(ctx, s)
			testkit.OK(t, err)
		}
		_, err = w.db.ExecContext(ctx, "INSERT INTO erased_image VALUES (?, ?, ?, ?, ?)", before[0].ID, before[0].Image,
			before[0].File, before[0].Stripped, before[0].Pixels)
		testkit.OK(t, err, w.Close())

		r, err := Open(ctx, dir, Options{ReadOnly: true})
		testkit.OK(t, err)
		foreign, err := r.ForeignSchema(ctx)
		testkit.Same(t, "tables of somebody else, read only", 0, len(foreign), err)
		read, err := r.ErasedImages(ctx)
		testkit.Same(t, "read only", before, read, err)
		read, err = r.FormerImages(ctx, []manifest.PostID{"a000"})
		testkit.Same(t, "of a post, read only", before, read, err)
		read, err = r.LostImages(ctx, []manifest.PostID{"a000"})
		testkit.Same(t, "of entries without an image, read only", before, read, err)
		testkit.OK(t, r.Close())
		w = open(t, dir)
		got, err := w.ErasedImages(ctx)
		testkit.Same(t, "opened for writing", before, got, err)
		got, err = w.FormerImages(ctx, nil)
		testkit.Same(t, "all, opened for writing", all, got, err)
		foreign, err = w.ForeignSchema(ctx)
		testkit.Same(t, "tables of somebody else", 0, len(foreign), err)
		testkit.OK(t, w.Close())
	}
}

// TestOrigins: from which item of a gallery an image came is known while it is stored and once it went, also where
// state.db was lost, the image was taken back without it, and that state.db was lost, too. A state.db of an earlier
// version has it of those that are stored.
func TestOrigins(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	dir := w.Dir()
	put := func(k manifest.Key, body, url string) {
		t.Helper()
		img := describe([]byte(body), "jpeg")
		img.Source, img.Item = digestOf([]byte(url)), true
		testkit.OK(t, w.StoreImage(ctx, k, []byte(body), img))
	}
	put(key("a000"), "one", "first")
	put(key("a001"), "two", "first")
	put(key("a001"), "three", "second")
	put(key("a002"), "four", "third")
	testkit.OK(t, w.Erase(ctx, "a002"))
	check := func(when string, w *Workspace, want Origins) {
		t.Helper()
		got, err := w.Origins(ctx, []manifest.PostID{"a000", "a001", "a002", "a003"})
		testkit.Same(t, when, want, got, err)
	}
	all := Origins{"a000": {0: digestOf([]byte("first"))}, "a001": {0: digestOf([]byte("second"))},
		"a002": {0: digestOf([]byte("third"))}}
	check("stored and erased", w, all)
	testkit.OK(t, w.DropImage(ctx, key("a001"), Trouble{Outcome: manifest.Failed, Reason: "damaged_file"}, false))
	check("lost", w, all)
	for range 2 {
		testkit.OK(t, w.Close(), os.Remove(filepath.Join(dir, stateName)))
		w = open(t, dir)
		testkit.OK(t, w.Load(ctx, binding("4"), seq(numbered(4), nil), nil))
		check("of a lost state.db", w, all)
		img := describe([]byte("one"), "jpeg")
		img.Source = ""
		testkit.OK(t, w.TakeBack(ctx, key("a000"), img))
		check("taken back", w, all)
	}
	put(key("a003"), "five", "fourth")
	_, err := w.db.ExecContext(ctx, "DROP TABLE origin")
	testkit.OK(t, err, w.Close())
	w, err = Open(ctx, dir, Options{ReadOnly: true})
	testkit.OK(t, err)
	check("of an earlier version, read only", w, Origins{"a003": {0: digestOf([]byte("fourth"))}})
	testkit.OK(t, w.Close())
	w = open(t, dir)
	check("opened for writing", w, Origins{"a003": {0: digestOf([]byte("fourth"))}})
	testkit.OK(t, w.DropImage(ctx, key("a003"), Trouble{Outcome: manifest.Failed, Reason: "damaged_file"}, false))
	check("lost, and no item that is known", w, Origins{})
}

// TestFormerImages: whatever takes the image of an entry away, its digests stay. With those of stored images they are
// those of the log, also once state.db is lost.
func TestFormerImages(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(7)...)
	dir := w.Dir()
	for _, e := range numbered(7) {
		store(t, w, e.Key, "first of "+e.Key.String())
	}
	store(t, w, key("a000"), "second of a000") // another one in its place
	store(t, w, key("a001"), "second of a001")
	store(t, w, key("a001"), "first of a001") // and back
	testkit.OK(t, w.Erase(ctx, "a002"),
		w.DropImage(ctx, key("a003"), Trouble{Outcome: manifest.Failed, Reason: "damaged_file"}, false),
		w.unlink(ctx, w.ImageName(key("a004"), "jpeg")),
		w.AddTombstones(ctx, []Tombstone{stone("a005", manifest.StateRemoved, "", 1)}), w.Erase(ctx, "a005"),
		w.LiftTombstones(ctx, digestOf(nil), "a005"))
	_, err := w.Sweep(ctx, nil)
	testkit.OK(t, err, w.Load(ctx, binding("6"), seq(numbered(6), nil), nil)) // a006 is no entry any more
	check := func(when string, stored int) {
		t.Helper()
		testkit.OK(t, w.Close())
		w = open(t, dir)
		var got, want []string
		former, err := w.FormerImages(ctx, nil)
		testkit.OK(t, err)
		for _, f := range former {
			got = append(got, fmt.Sprint(f.Key, f.Digests))
		}
		images := 0
		for _, rec := range collect(t, w.Records(ctx, Select{})) {
			if i := rec.Image; i != nil {
				got = append(got, fmt.Sprint(rec.Key, Digests{i.OriginalSHA256, i.SHA256, i.PixelsSHA256}))
				images++
			}
		}
		for _, e := range logged(t, w) {
			if e.Kind == auditlog.Fetch {
				want = append(want, fmt.Sprint(manifest.Key{ID: e.Posts[0].ID, Image: e.Image},
					Digests{e.Original, e.SHA256, e.Pixels}))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		testkit.Same(t, when, slices.Compact(want), slices.Compact(got))
		testkit.Same(t, "images, "+when, stored, images)
	}
	check("by state.db", 2)
	testkit.OK(t, w.Clear(ctx))
	check("after the end", 0)
	testkit.OK(t, w.Close(), os.Remove(filepath.Join(dir, stateName)))
	w = open(t, dir)
	check("after state.db was lost", 0)
	testkit.OK(t, w.Close())
}

// TestLeftOfAnEarlierVersion: a note of images that left their posts which has the reasons alone is read.
func TestLeftOfAnEarlierVersion(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	testkit.OK(t, w.SetMeta(ctx, metaLeft, `{"a001":"gallery_item_deleted"}`),
		w.Load(ctx, binding("2"), seq(numbered(2), nil), nil))
	rec := collect(t, w.Records(ctx, Select{}))[1]
	testkit.Same(t, "trouble", &Trouble{Outcome: manifest.Gone, Reason: "gallery_item_deleted"}, rec.Trouble)
}

// TestInsteadOfStored: what comes for an entry that has another image is known from then on, by its places, unless it
// is stored; the same image is none.
func TestInsteadOfStored(t *testing.T) {
	ctx, w := t.Context(), loaded(t, numbered(3)...)
	store(t, w, key("a000"), "one")
	store(t, w, key("a001"), "two")
	stage := func(k, body, from string) *Staged {
		img := describe([]byte(body), "jpeg")
		img.Source = digestOf([]byte(from))
		s, err := w.Stage(ctx, key(k), []byte(body), img)
		testkit.OK(t, err)
		return s
	}
	check := func(when string, want map[string][]string) {
		t.Helper()
		got, err := w.InsteadOfStored(ctx)
		testkit.Same(t, when, want, got, err)
	}
	same := stage("a000", "one", "here")
	check("the same image", map[string][]string{})
	testkit.OK(t, same.Store(ctx))
	for _, k := range []string{"a000", "a001"} {
		testkit.OK(t, stage(k, "other", "here").Discard(ctx))
	}
	last, digest := stage("a001", "other", "there"), describe([]byte("other"), "jpeg").OriginalSHA256
	both := []string{digestOf([]byte("here")), digestOf([]byte("there"))}
	slices.Sort(both)
	check("another one from two places", map[string][]string{digest: both})
	testkit.OK(t, last.Store(ctx))
	check("stored from one of them", map[string][]string{digest: {digestOf([]byte("here"))}})
}
