package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInspect reads the files of a workspace, and a copy of its database, without opening either.
func TestInspect(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	k := key("a000")
	img := describe([]byte("body"), "png")
	ok(t, w.StoreImage(ctx, k, []byte("body"), img))
	img.SHA256, img.PHash = digestOf([]byte("body")), 7
	ok(t, w.SetHash(ctx, k, img))
	ok(t, w.SetReading(ctx, k, Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "text"}))
	ok(t, w.Close())
	files, err := OpenFiles(w.Dir())
	ok(t, err)
	defer files.Close()
	var names []string
	for _, f := range collect(t, files.Walk(ctx)) {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "audit/seal.json", "images/a0/a000.png", "lock", "log.key", "state.db"}, names); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	if _, err := OpenFiles(filepath.Join(w.Dir(), "none")); err == nil {
		t.Error("a folder that is not there was opened")
	}
	database, err := os.ReadFile(filepath.Join(w.Dir(), stateName))
	ok(t, err)
	if diff := cmp.Diff([]StoredPost{{Key: k, Image: true, SHA256: img.SHA256, PHash: 7, Text: "text"}}, collect(t, ReadCopy(ctx, database))); diff != "" {
		t.Errorf("the copy (-want +got)\n%s", diff)
	}
	for p, err := range ReadCopy(ctx, []byte("no database")) {
		if err == nil {
			t.Errorf("%+v was read from no database", p)
		}
	}
}
