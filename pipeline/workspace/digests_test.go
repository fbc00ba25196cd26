package workspace

import (
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/attest"
)

// What is erased of a post that must stay away leaves its digests, until the tombstone is lifted or the image is back.
func TestErasedImages(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	stone := func(id manifest.PostID) Tombstone {
		return Tombstone{Tombstone: manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: time.Unix(1e9, 0)}}
	}
	images := map[manifest.PostID]Image{}
	for _, id := range []manifest.PostID{"a000", "a001", "a002", "a003"} {
		images[id] = store(t, w, manifest.Key{ID: id}, "image of "+string(id))
	}
	attest.OK(t, w.AddTombstones(ctx, []Tombstone{stone("a000"), stone("a001"), stone("a002")}))
	for id := range images { // a003 only left the manifest
		attest.OK(t, w.Erase(ctx, id))
	}
	if err := w.Erase(ctx, "a000"); err != nil { // once more: nothing is lost
		t.Fatal(err)
	}
	attest.OK(t, w.LiftTombstones(ctx, digestOf(nil), "a001"))
	store(t, w, key("a002"), "back again")
	got, err := w.ErasedImages(ctx)
	img := images["a000"]
	want := []ErasedImage{{Key: key("a000"), Digests: Digests{File: img.OriginalSHA256, Stripped: img.SHA256, Pixels: img.PixelsSHA256}}}
	attest.Same(t, "", want, got, err)
}
