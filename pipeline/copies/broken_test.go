package copies

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/brokenoff"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
)

// A job is what a user can do again when it was broken off.
type job struct {
	name          string
	before, after func(s *site)
	do            func(ctx context.Context, s *site) error
}

// jobs are all that the package does with a copy.
func jobs() []job {
	at := func(s *site) string { return filepath.Join(s.dir, "x") }
	// told makes an error of a copy that is not in order.
	told := func(reports []state.CopyReport, err error) error {
		for _, r := range reports {
			if r.State == state.CopyOpen {
				err = errors.Join(err, errors.New(r.Told))
			}
		}
		return err
	}
	closed := func(s *site) {
		if r := s.list("x"); r.State != state.CopyClosed || r.Told == "" {
			s.Errorf("it is listed as %+v", r)
		}
	}
	whole := func(s *site) {
		testkit.Same(s, "listed as", state.CopyGood, s.list("x").State)
		testkit.Same(s, "rows", ids, s.holds("x"))
	}
	export := func(format string) func(context.Context, *site) error {
		return func(ctx context.Context, s *site) error {
			_, err := Export(ctx, s.config("x", format))
			if errors.Is(err, ErrForeign) && s.list("x").State == state.CopyGood {
				return nil // the last failed when the copy had its name already
			}
			return err
		}
	}
	made := func(s *site) { s.copy("x", "folder") }
	return []job{
		{"an export", nil, whole, export("folder")},
		{"an export as it is", nil, whole, export("parquet")},
		{"a purge of a copy that stands there again", func(s *site) {
			s.copy("x", "folder")
			kept := filepath.Join(s.TempDir(), "kept")
			testkit.OK(s, os.Rename(at(s), kept), Close(s.Context(), s.ws, at(s), "destroyed", "n", now),
				os.Rename(kept, at(s)))
			s.gone("few001")
		}, func(s *site) {
			testkit.Same(s, "rows that stay", ids[1:], s.holds("x"))
			testkit.Same(s, "listed as", state.CopyGood, s.list("x").State)
			testkit.Same(s, "on record again", 1, len(s.events(auditlog.Copy))-1)
		}, func(ctx context.Context, s *site) error {
			gone := state.GoneSet{Posts: map[manifest.PostID]state.GonePost{"few001": {ID: "few001"}}}
			return told(purge(ctx, s.ws, gone))
		}},
		{"a purge of an unfinished copy", func(s *site) {
			s.copy("x", "folder")
			testkit.OK(s, os.Rename(at(s), unfinishedPath(at(s))))
		}, func(s *site) {
			closed(s)
			left, err := os.ReadDir(s.dir)
			testkit.Same(s, "what is left", 0, len(left), err)
		}, func(ctx context.Context, s *site) error { return told(purge(ctx, s.ws, state.GoneSet{})) }},
		{"the end", made, func(s *site) {
			closed(s)
			left, err := os.ReadDir(s.dir)
			testkit.Same(s, "what is left", 0, len(left), err)
		}, func(ctx context.Context, s *site) error { return told(End(ctx, s.ws, now)) }},
		{"an adoption", func(s *site) { s.copy("x", "parquet"); s.ws = s.open(); s.fill() }, whole,
			func(ctx context.Context, s *site) error { _, err := Adopt(ctx, s.ws, at(s), "n", now); return err }},
		{"a move", func(s *site) {
			s.copy("y", "folder")
			testkit.OK(s, os.Rename(filepath.Join(s.dir, "y"), at(s)))
		}, whole, func(ctx context.Context, s *site) error {
			_, err := Move(ctx, s.ws, filepath.Join(s.dir, "y"), at(s), now)
			return err
		}},
		{"a word on a copy", func(s *site) { s.copy("x", "folder"); testkit.OK(s, os.RemoveAll(at(s))) }, closed,
			func(ctx context.Context, s *site) error { return Close(ctx, s.ws, at(s), "destroyed", "n", now) }},
		{"a disclosure", nil, func(s *site) {
			r := find(s.T, must(List(s.Context(), s.ws)), state.ThirdPartyPath("a model"))
			testkit.Same(s, "rows disclosed", 1, r.Rows)
		}, func(ctx context.Context, s *site) error {
			return Disclose(ctx, s.ws, Disclosure{Name: "a model", Note: "n"}, []string{"few001"}, now)
		}},
		{"digests", nil, func(s *site) {
			wrote, err := WriteDigests(s.Context(), s.config("", ""), io.Discard)
			testkit.Same(s, "entries", 3, wrote.Entries, err)
		}, func(ctx context.Context, s *site) error {
			_, err := WriteDigests(ctx, s.config("", ""), io.Discard)
			return err
		}},
		{"a list", made, whole, func(ctx context.Context, s *site) error { return told(List(ctx, s.ws)) }},
		{"a glance", made, whole, func(ctx context.Context, s *site) error { return told(Glance(ctx, s.ws)) }},
	}
}

// TestStoppedLook: what looks at a copy and is stopped finds the same as one that is not, or says that it was stopped.
func TestStoppedLook(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	s.copy("y", "folder")
	s.copy("closed", "folder")
	at := filepath.Join(s.dir, "closed")
	kept := filepath.Join(t.TempDir(), "kept")
	testkit.OK(t, os.Rename(at, kept), Close(t.Context(), s.ws, at, "destroyed", "n", now), os.Rename(kept, at))
	s.purge("x", s.gone("few001"))
	testkit.OK(t, os.Rename(at, kept), Close(t.Context(), s.ws, at, "destroyed", "n", now))
	for name, look := range map[string]func(context.Context) (any, error){
		"list":   func(ctx context.Context) (any, error) { return List(ctx, s.ws) },
		"glance": func(ctx context.Context) (any, error) { return Glance(ctx, s.ws) },
		"digests": func(ctx context.Context) (any, error) {
			var b strings.Builder
			_, err := WriteDigests(ctx, s.config("", ""), &b)
			return b.String(), err
		},
		"destination": func(ctx context.Context) (any, error) {
			return Destination(ctx, s.ws, filepath.Join(s.dir, "new"))
		},
		"a destination in a copy": func(ctx context.Context) (any, error) {
			_, err := Destination(ctx, s.ws, filepath.Join(s.dir, "y", "new"))
			if errors.Is(err, ErrForeign) {
				return "refused", nil
			}
			return "taken", err
		},
		"entries": func(ctx context.Context) (any, error) { return noEntry(ctx, s.ws, []string{"few003", "zzz"}) },
	} {
		brokenoff.Look(t, name, look)
	}
}

// TestBrokenOffAnywhere: a job that is stopped, or whose disk fails, says so wherever that happens, and the same again
// goes on until all is done.
func TestBrokenOffAnywhere(t *testing.T) {
	for _, j := range jobs() {
		t.Run(j.name, func(t *testing.T) {
			brokenoff.Anywhere(t, func(t *testing.T, repeat func(func(context.Context) error)) {
				s := newSite(t)
				if j.before != nil {
					j.before(s)
				}
				repeat(func(ctx context.Context) error { return j.do(ctx, s) })
				j.after(s)
			})
		})
	}
}
