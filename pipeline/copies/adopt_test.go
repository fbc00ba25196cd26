package copies

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
)

// adopt registers the folder of a name as it lies there.
func (s *site) adopt(name string) (state.CopyReport, error) {
	return Adopt(s.Context(), s.ws, filepath.Join(s.dir, name), "found again", now)
}

// TestAdoptForgotten: a copy that a restored workspace does not know is purged like any other once it was adopted.
func TestAdoptForgotten(t *testing.T) {
	for _, format := range Formats() {
		s := newSite(t)
		s.copy("x", format)
		s.ws = s.open() // an older backup
		s.fill()
		gone := s.gone("few001")
		report, err := s.adopt("x")
		testkit.OK(t, err)
		testkit.Same(t, format+": adopted", []any{state.CopyOpen, format, 3, []string{"few001"}},
			[]any{report.State, report.Format, report.Rows, report.Owed})
		testkit.Same(t, format+": after the purge", state.CopyGood, s.purge("x", gone).State)
		testkit.Same(t, format+": rows that stay", ids[1:], s.holds("x"))
		testkit.Same(t, format+": listed", state.CopyGood, s.list("x").State)
		if n := len(s.events(auditlog.Copy)); n != 1 {
			t.Errorf("%s: %d records of a copy in the log, want that of the adopted one", format, n)
		}
	}
}

// TestAdoptCleaned: a copy that was purged after the backup was made is in order again once it was adopted.
func TestAdoptCleaned(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	before := s.record("x")
	gone := s.gone("few001")
	s.purge("x", gone)
	testkit.OK(t, s.ws.SetCopy(t.Context(), before)) // as the backup knows it
	testkit.Same(t, "before", state.CopyOpen, s.purge("x", gone).State)
	report, err := Adopt(t.Context(), s.ws, filepath.Join(s.dir, "x"), "found again", now.Add(time.Hour))
	testkit.OK(t, err)
	testkit.Same(t, "adopted", []any{state.CopyGood, 2, 0}, []any{report.State, report.Rows, len(report.Owed)})
	testkit.Same(t, "after", state.CopyGood, s.purge("x", gone).State)
	testkit.Same(t, "made, as it was recorded", before.Made, s.record("x").Made)
	// What a purge took out before it was adopted is remembered, so that a file of somebody's still opens it.
	taken := s.record("x")
	taken.Taken = 1
	testkit.OK(t, s.ws.SetCopy(t.Context(), taken))
	_, err = s.adopt("x")
	testkit.OK(t, err, os.WriteFile(filepath.Join(s.dir, "x", "theirs"), []byte("x"), 0o600))
	testkit.Same(t, "with a file of somebody's", state.CopyOpen, s.list("x").State)
}

// TestAdoptRefuses: what is no copy of this release is not registered, and says why.
func TestAdoptRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *site, dir string) error
		want  error
		says  string
	}{
		"another file": {func(_ *site, dir string) error {
			return os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600)
		},
			ErrNotCopy, "notes.txt is no file of an export"},
		"a damaged shard": {func(_ *site, dir string) error {
			return os.WriteFile(filepath.Join(dir, "data/train-00000-of-00001.parquet"), []byte("PAR1"), 0o600)
		}, ErrNotCopy, "train-00000-of-00001.parquet: "},
		"nothing": {func(_ *site, dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
			ErrNotCopy, "it has no row of a dataset"},
		"no folder": {func(_ *site, dir string) error {
			return errors.Join(os.RemoveAll(dir),
				os.WriteFile(dir, nil, 0o600))
		},
			ErrNotCopy, "it is not a folder"},
		"a link": {func(_ *site, dir string) error { return os.Symlink("README.md", filepath.Join(dir, "a.parquet")) },
			ErrNotCopy, "a.parquet is not a regular file"},
		"another release's row": {func(s *site, dir string) error {
			return os.WriteFile(filepath.Join(dir, "data/zzz999.png"), []byte("x"), 0o600)
		}, ErrNotCopy, "it has a row of zzz999, which is no entry of the release"},
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		testkit.OK(t, test.spoil(s, filepath.Join(s.dir, "x")))
		before := s.record("x")
		if _, err := s.adopt("x"); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
		testkit.Same(t, name+": the record", before, s.record("x"))
	}
	s := newSite(t)
	if _, err := Adopt(t.Context(), s.ws, filepath.Join(s.ws.Dir(), state.DatasetDir), "x", now); !errors.Is(err,
		ErrForeign) {
		t.Errorf("the workspace's own dataset: %v", err)
	}
}
