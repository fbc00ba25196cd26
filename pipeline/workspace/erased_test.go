package workspace

import (
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestErasedImagesOfAnEarlierVersion: a state.db that has room for one erased image of an entry is read as it is, and
// has room for more once it is opened for writing.
func TestErasedImagesOfAnEarlierVersion(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	dir := w.Dir()
	store(t, w, key("a000"), "one")
	testkit.OK(t, w.AddTombstones(ctx, []Tombstone{stone("a000", manifest.StateDeleted, "", 1)}), w.Erase(ctx, "a000"))
	before, err := w.ErasedImages(ctx)
	testkit.OK(t, err)
	for _, s := range []string{"DROP TABLE erased_image", `CREATE TABLE erased_image (
  id TEXT NOT NULL, image INTEGER NOT NULL,
  original_sha256 TEXT NOT NULL, sha256 TEXT NOT NULL, pixels_sha256 TEXT NOT NULL, PRIMARY KEY (id, image))`} {
		_, err := w.db.ExecContext(ctx, s)
		testkit.OK(t, err)
	}
	_, err = w.db.ExecContext(ctx, "INSERT INTO erased_image VALUES (?, ?, ?, ?, ?)", before[0].ID, before[0].Image,
		before[0].File, before[0].Stripped, before[0].Pixels)
	testkit.OK(t, err, w.Close())

	r, err := Open(ctx, dir, Options{ReadOnly: true})
	testkit.OK(t, err)
	read, err := r.ErasedImages(ctx)
	testkit.Same(t, "read only", before, read, err)
	testkit.OK(t, r.Close())
	w = open(t, dir)
	got, err := w.ErasedImages(ctx)
	testkit.Same(t, "opened for writing", before, got, err)
	foreign, err := w.ForeignSchema(ctx)
	testkit.Same(t, "tables of somebody else", 0, len(foreign), err)
	store(t, w, key("a000"), "two")
	testkit.OK(t, w.Erase(ctx, "a000"))
	got, err = w.ErasedImages(ctx)
	testkit.Same(t, "erased images", 2, len(got), err)
}
