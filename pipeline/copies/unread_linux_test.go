package copies

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestUnread: of a copy that cannot be read nobody is told that it is none, that it is still there, or to delete it.
func TestUnread(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	shard := filepath.Join(s.dir, "x/data/train-00000-of-00001.parquet")
	forbidden := func(name string, do func() error) (err error) {
		t.Helper()
		info, wrong := os.Stat(name)
		testkit.OK(t, wrong, os.Chmod(name, 0))
		testkit.Forbidden(t, func() { err = do() })
		testkit.OK(t, os.Chmod(name, info.Mode()))
		if err == nil || !strings.Contains(err.Error(), "permission denied") || strings.Contains(err.Error(), "delete") {
			t.Errorf("%s: %v", name, err)
		}
		return err
	}
	err := forbidden(shard, func() error { _, err := s.adopt("x"); return err })
	if errors.Is(err, ErrNotCopy) {
		t.Errorf("adopt: %v", err)
	}
	err = forbidden(s.dir, func() error {
		return Close(t.Context(), s.ws, filepath.Join(s.dir, "x"), "destroyed", "note", now)
	})
	if errors.Is(err, ErrCopyThere) {
		t.Errorf("close: %v", err)
	}
	// One that the copy does not know, among rows that must go.
	testkit.OK(t, os.WriteFile(filepath.Join(filepath.Dir(shard), "x.parquet"), []byte("x"), 0o600))
	_ = forbidden(filepath.Join(filepath.Dir(shard), "x.parquet"), func() error {
		root, err := openCopy(s.record("x"))
		testkit.OK(t, err)
		defer root.Close()
		return (&purging{ws: s.ws, root: root, copy: s.record("x"), gone: state.GoneSet{}}).prove(t.Context())
	})
}
