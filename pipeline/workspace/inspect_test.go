package workspace

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/attest"
)

// TestInspect reads the files of a workspace, and what is foreign in its database.
func TestInspect(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	k := key("a000")
	img := describe([]byte("body"), "png")
	attest.OK(t, w.StoreImage(ctx, k, []byte("body"), img))
	img.SHA256, img.PHash = digestOf([]byte("body")), 7
	attest.OK(t, w.SetHash(ctx, k, img))
	attest.OK(t, w.SetReading(ctx, k, Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "text"}, nil))
	if foreign, err := w.ForeignSchema(ctx); err != nil || len(foreign) > 0 {
		t.Errorf("a workspace of our own has %q (%v)", foreign, err)
	}
	_, err := w.db.ExecContext(ctx, "CREATE TABLE stash (x); CREATE VIEW v AS SELECT 1")
	attest.OK(t, err)
	if foreign, err := w.ForeignSchema(ctx); err != nil || !cmp.Equal([]string{"table stash", "view v"}, foreign) {
		t.Errorf("foreign tables: %q (%v)", foreign, err)
	}
	attest.OK(t, w.Close())
	files, err := Open(ctx, w.Dir(), Options{ReadOnly: true, FilesOnly: true})
	attest.OK(t, err)
	defer files.Close()
	var names []string
	for _, f := range collect(t, files.Walk(ctx, ".")) {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "audit/seal.json", "images/a0/a000.png", "lock", "log.key", "state.db"}, names); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	if _, err := Open(ctx, filepath.Join(w.Dir(), "none"), Options{ReadOnly: true, FilesOnly: true}); err == nil {
		t.Error("a folder that is not there was opened")
	}
}
