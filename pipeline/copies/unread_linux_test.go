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
	for _, name := range []string{shard, filepath.Dir(shard), filepath.Join(s.dir, "x")} {
		err := forbidden(name, func() error { _, err := s.adopt("x"); return err })
		if errors.Is(err, ErrNotCopy) {
			t.Errorf("adopt: %v", err)
		}
	}
	err := forbidden(s.dir, func() error {
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

// TestUnreadable: what cannot be read or removed in a copy, or in the place of one, keeps it open, and is named.
func TestUnreadable(t *testing.T) {
	const shard = "data/train-00000-of-00001.parquet"
	for _, test := range []struct {
		name, forbidden string
		mode            os.FileMode
		before          func(s *site, at func(string) string) error
	}{
		{"a folder that is not part of it", "private", 0,
			func(_ *site, at func(string) string) error { return os.Mkdir(at("private"), 0o700) }},
		{"what a killed purge left", "data", 0o500, func(_ *site, at func(string) string) error {
			return os.WriteFile(at("data/"+tempName(shard)), []byte("x"), 0o600)
		}},
		{"the copy itself", "", 0, func(*site, func(string) string) error { return nil }},
		{"its parent", "..", 0, func(*site, func(string) string) error { return nil }},
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		gone := s.gone("few001")
		s.purge("x", gone)
		at := func(name string) string { return filepath.Join(s.dir, "x", name) }
		testkit.OK(t, test.before(s, at), os.Chmod(at(test.forbidden), test.mode))
		testkit.Forbidden(t, func() {
			all := map[string][]state.CopyReport{"the purge": must(purge(t.Context(), s.ws, gone))}
			if test.mode == 0 { // the list removes nothing
				all["the list"] = must(List(t.Context(), s.ws))
			}
			for what, reports := range all {
				if r := find(t, reports, at("")); r.State != state.CopyOpen ||
					!strings.Contains(r.Told, "permission denied") {
					t.Errorf("%s: %s says %+v", test.name, what, r)
				}
			}
		})
		testkit.OK(t, os.Chmod(at(test.forbidden), 0o700))
		testkit.Same(t, test.name+": afterwards", state.CopyGood, s.purge("x", gone).State)
	}
}

// TestUnfinishedInAFolderWithoutRights: a folder in which nothing can be removed or made is an error of an export, and
// an unfinished folder that cannot be opened is of nobody.
func TestUnfinishedInAFolderWithoutRights(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	at := filepath.Join(s.dir, "x")
	temp := func(name string) string { return unfinishedPath(filepath.Join(s.dir, name)) }
	testkit.OK(t, os.Rename(at, at+"-away"), os.Mkdir(temp("x"), 0), os.Symlink("x-away", temp("a link")),
		os.Mkdir(temp("a folder without rights"), 0), os.Mkdir(filepath.Join(s.dir, "a destination without rights"), 0),
		os.MkdirAll(filepath.Join(temp("what cannot be removed"), "sub", "sub"), 0o700),
		os.Chmod(filepath.Join(temp("what cannot be removed"), "sub"), 0o500), os.Chmod(s.dir, 0o500))
	testkit.Forbidden(t, func() {
		for _, to := range []string{"a link", "a folder without rights", "a destination without rights",
			"what cannot be removed", "nothing"} {
			if _, err := Export(t.Context(), s.config(to, "parquet")); !errors.Is(err, os.ErrPermission) {
				t.Errorf("%s in the place of the folder: %v", to, err)
			}
		}
		if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it is not there any more") {
			t.Errorf("it is listed as %+v", r)
		}
	})
	testkit.OK(t, os.Chmod(s.dir, 0o700), os.Chmod(filepath.Join(temp("what cannot be removed"), "sub"), 0o700))
}
