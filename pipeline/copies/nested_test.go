package copies

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestNoCopyInOrAroundAnother: no command registers a folder inside a registered copy, or around one: of two records of
// the same files, each would take for a change by somebody what a purge of the other did.
func TestNoCopyInOrAroundAnother(t *testing.T) {
	s := newSite(t)
	testkit.OK(t, os.Mkdir(filepath.Join(s.dir, "lab"), 0o700))
	s.copy("lab/x", "parquet")
	s.copy("moved", "parquet")
	testkit.OK(t, os.Rename(filepath.Join(s.dir, "moved"), filepath.Join(s.dir, "lab/x/sub")))
	before, err := s.ws.Copies(t.Context())
	testkit.OK(t, err)
	for _, name := range []string{"lab", "lab/x/data", "lab/x/new", "lab/x/sub"} {
		to := filepath.Join(s.dir, name)
		_, adopted := s.adopt(name)
		_, exported := Export(t.Context(), s.config(name, "parquet"))
		derived := Derive(t.Context(), s.ws, Derived{To: to, Note: "n", Format: "numbers", Made: now,
			Fill: func(context.Context, string, func(string, func(io.Writer) error) error) ([]string, error) {
				t.Error("a copy inside another one was filled")
				return nil, nil
			}})
		_, moved := Move(t.Context(), s.ws, filepath.Join(s.dir, "moved"), to, now)
		for how, err := range map[string]error{"adopted": adopted, "exported": exported, "derived": derived,
			"moved": moved} {
			if !errors.Is(err, ErrForeign) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
	after, err := s.ws.Copies(t.Context())
	testkit.Same(t, "the register", before, after, err)
	// A copy that is gone is in nobody's way, and neither is a folder with a longer name.
	testkit.OK(t, os.RemoveAll(filepath.Join(s.dir, "lab/x")),
		Close(t.Context(), s.ws, filepath.Join(s.dir, "lab/x"), "destroyed", "n", now))
	s.copy("lab/x-2", "parquet")
	testkit.OK(t, os.Mkdir(filepath.Join(s.dir, "lab/x"), 0o700))
	testkit.Same(t, "afterwards", state.CopyGood, s.copy("lab/x/new", "parquet").State)
}

// TestAdoptForgetsNoUnfinishedCopy: a folder at the path of an export that was never finished is adopted once a purge
// has found what that left, and not before.
func TestAdoptForgetsNoUnfinishedCopy(t *testing.T) {
	s := newSite(t)
	s.copy("y", "parquet")
	left := s.cutOff()
	place := func() error { return os.CopyFS(filepath.Join(s.dir, "usb/x"), os.DirFS(filepath.Join(s.dir, "y"))) }
	testkit.OK(t, place())
	if _, err := s.adopt("usb/x"); !errors.Is(err, ErrNotCopy) {
		t.Errorf("its disk is away: %v", err)
	}
	testkit.OK(t, os.RemoveAll(filepath.Join(s.dir, "usb/x")))
	s.mount()
	testkit.OK(t, place())
	if _, err := s.adopt("usb/x"); !errors.Is(err, ErrNotCopy) {
		t.Errorf("it is there: %v", err)
	}
	_, err := purge(t.Context(), s.ws, state.GoneSet{})
	testkit.OK(t, err)
	if _, err := os.Lstat(left); err == nil {
		t.Error("it is there after a purge")
	}
	report, err := s.adopt("usb/x")
	testkit.Same(t, "adopted", state.CopyGood, report.State, err)
}
