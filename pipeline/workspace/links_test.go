package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
)

// TestLinksAreFoundAndNotFollowed: a workspace with a symbolic link in it is not opened for writing, and is as it was;
// among the image files CheckImages finds it. It is read as before.
func TestLinksAreFoundAndNotFollowed(t *testing.T) {
	for _, name := range []string{"link", "dataset", "dataset/data", "dataset/data/x.parquet", "dataset/deep/er/link",
		"images", "images/a0",
		"shards/plan.json", "audit", "audit/records.jsonl", "log.key", "images/a0/a000.jpg", "images/a0/deep/link"} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w := loaded(t, numbered(2)...)
			store(t, w, key("a000"), "body of a000")
			_, err := w.Replace(ctx, "dataset/data/x.parquet", text("x"), nil)
			testkit.OK(t, err, w.Close())
			dir := w.Dir()
			at, away := filepath.Join(dir, name), filepath.Join(t.TempDir(), "away")
			_ = os.Rename(at, away) // some of the names are not there
			testkit.OK(t, os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(away, at))
			before := contents(t, dir)
			w, err = Open(ctx, dir, Options{})
			if err == nil { // it did not look among the images
				err = w.CheckImages(ctx)
				testkit.OK(t, w.Close())
			}
			linked, ok := errors.AsType[*Linked](err)
			if !ok {
				t.Fatalf("opened: %v, want *Linked", err)
			}
			if diff := cmp.Diff(&Linked{Name: name, Target: away, Of: 1}, linked); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// contents are the files of a folder by name, and the links in it.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == path.Base(sealName) { // which has a time
			return err
		}
		var body []byte
		if e.Type().IsRegular() {
			body, err = os.ReadFile(name)
		}
		all[name] = string(body)
		return err
	}))
	return all
}

// TestLinksDuringAJob: a link that comes while a workspace is open is neither followed nor removed.
func TestLinksDuringAJob(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	img := store(t, w, key("a000"), "body of a000")
	at := filepath.Join(w.Dir(), "images/a0/a000.jpg")
	testkit.OK(t, os.Rename(at, filepath.Join(w.Dir(), "images/inside")), os.Symlink("../inside", at))
	_, read := w.ReadImage(ctx, key("a000"), img)
	_, sweep := w.Sweep(ctx, nil)
	for i, err := range []error{read, sweep, w.Erase(ctx, "a000"), w.RemoveFile(ctx, "images/a0/a000.jpg"),
		w.RemoveFiles(ctx, "images", func(string) bool { return true })} {
		if linked, ok := errors.AsType[*Linked](err); !ok || linked.Name != "images/a0/a000.jpg" ||
			linked.Target != "../inside" {
			t.Errorf("call %d: %v, want *Linked", i, err)
		}
	}
	if _, err := os.Lstat(at); err != nil {
		t.Error(err)
	}
}
