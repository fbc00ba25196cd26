package copies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/brokenoff"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestMove: a copy that lies elsewhere as it was is on record there, and is purged there; the old record says where it
// went.
func TestMove(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	before := s.record("x")
	from, to := before.Path, filepath.Join(s.dir, "y")
	testkit.OK(t, os.Rename(from, to))
	testkit.Same(t, "out of reach", state.CopyOpen, s.purge("x", s.gone("few001")).State)
	report, err := Move(t.Context(), s.ws, from, to, now)
	testkit.Same(t, "what it still owes", fmt.Sprint(state.CopyOpen, []string{"few001"}),
		fmt.Sprint(report.State, report.Owed), err)
	testkit.Same(t, "the old place", "moved 2026-01-10 to "+to, s.record("x").Told)
	moved := s.record("y")
	testkit.Same(t, "files and rows on record", fmt.Sprint(before.Files, before.Rows, false, ""),
		fmt.Sprint(moved.Files, moved.Rows, moved.Open, moved.Told))
	r := s.purge("y", s.gone("few001"))
	testkit.Same(t, "purged there", fmt.Sprint(state.CopyGood, []string{"few001"}), fmt.Sprint(r.State, r.Purged))
	testkit.Same(t, "rows that stay", ids[1:], s.holds("y"))
	log := s.events(auditlog.Copy)
	testkit.Same(t, "the log", state.SHA256([]byte(to)), log[len(log)-1].Path)
}

// TestMovedBack: a copy that was moved, purged and moved back is the one that was purged, whether the next purge comes
// before that is told or after it. Then it is told as any other move, and adopted or not.
func TestMovedBack(t *testing.T) {
	for i, when := range []string{"told first", "purged first", "purged, and a post is gone", "adopted first",
		"nothing went at the other place", "a backup from before the move", "moved on, and back"} {
		format := Formats()[i%len(Formats())]
		s := newSite(t)
		s.copy("x", format)
		kept, x, y := filepath.Join(t.TempDir(), "kept"), filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y")
		testkit.OK(t, os.CopyFS(kept, os.DirFS(x)))
		move := func(from, to string) error {
			_, err := Move(t.Context(), s.ws, from, to, now)
			return err
		}
		testkit.OK(t, os.Rename(x, y), move(x, y))
		gone := state.GoneSet{}
		if when != "nothing went at the other place" {
			gone = s.gone("few001")
			testkit.Same(t, "purged at the other place", state.CopyGood, s.purge("y", gone).State)
		}
		if when == "moved on, and back" {
			testkit.OK(t, os.Rename(y, filepath.Join(s.dir, "z")), move(y, filepath.Join(s.dir, "z")))
			y = filepath.Join(s.dir, "z")
		}
		if when == "a backup from before the move" {
			testkit.OK(t, os.CopyFS(x, os.DirFS(kept)))
			r := s.purge("x", gone)
			testkit.Same(t, format+", "+when, fmt.Sprint(state.CopyGood, []string{"few001"}), fmt.Sprint(r.State, r.Purged))
			testkit.OK(t, os.RemoveAll(y))
			if err := move(y, x); !errors.Is(err, ErrForeign) {
				t.Errorf("%s, %s: %v", format, when, err)
			}
			continue
		}
		testkit.OK(t, os.Rename(y, x))
		if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it stands there again") ||
			r.Rows != len(s.holds("x")) {
			t.Errorf("%s, %s, it is listed as %+v", format, when, r)
		}
		switch when {
		case "told first":
		case "adopted first":
			_, err := s.adopt("x")
			testkit.OK(t, err)
		case "purged, and a post is gone":
			gone = s.gone("few001", "few003")
			testkit.Same(t, "taken out where it is now", []string{"few003"}, s.purge("x", gone).Purged)
		default:
			testkit.Same(t, format+", "+when, state.CopyGood, s.purge("x", gone).State)
			testkit.Same(t, "where it was", state.CopyOpen, find(t, must(List(t.Context(), s.ws)), y).State)
		}
		testkit.OK(t, move(y, x))
		for _, all := range [][]state.CopyReport{must(purge(t.Context(), s.ws, gone)), must(List(t.Context(), s.ws))} {
			for _, r := range all {
				want := state.CopyClosed
				if r.Path == x {
					want = state.CopyGood
				}
				testkit.Same(t, format+", "+when+": "+r.Path, want, r.State)
			}
		}
		left := s.holds("x")
		testkit.Same(t, "rows on record", fmt.Sprint(left), fmt.Sprint(s.record("x").Rows))
		for _, id := range left {
			testkit.Same(t, "a row that went", false, gone.HasRow(string(id)))
		}
	}
}

// TestMovedToAndFro: told late, that a copy was moved back and then away once more is told as any other move. What was
// made at its former place since is another copy.
func TestMovedToAndFro(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	x, y, z := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y"), filepath.Join(s.dir, "z")
	move := func(from, to string) error {
		_, err := Move(t.Context(), s.ws, from, to, now)
		return err
	}
	testkit.OK(t, os.Rename(x, y), move(x, y), os.Rename(y, x))
	s.purge("x", state.GoneSet{})
	testkit.OK(t, os.Rename(x, y), move(x, y))
	testkit.Same(t, "to", []state.CopyState{state.CopyClosed, state.CopyGood},
		[]state.CopyState{s.list("x").State, s.list("y").State})
	testkit.OK(t, os.Rename(y, x))
	s.purge("x", state.GoneSet{})
	testkit.OK(t, os.Rename(x, z), move(x, z), move(y, z))
	testkit.Same(t, "and on", []state.CopyState{state.CopyClosed, state.CopyClosed, state.CopyGood},
		[]state.CopyState{s.list("x").State, s.list("y").State, s.list("z").State})

	testkit.OK(t, os.Rename(z, y), move(z, y), os.Rename(y, z))
	s.purge("z", state.GoneSet{})
	testkit.OK(t, Close(t.Context(), s.ws, y, "destroyed", "n", now))
	c := s.config("y", "parquet")
	c.Now = func() time.Time { return now.Add(time.Hour) }
	_, err := Export(t.Context(), c)
	testkit.OK(t, err, os.RemoveAll(y))
	if err := move(y, z); !errors.Is(err, ErrForeign) {
		t.Errorf("one that was made since: %v", err)
	}
}

// TestMoveBrokenOff: broken off anywhere, a move leaves the copy registered at one of the two places, and so does the
// log.
func TestMoveBrokenOff(t *testing.T) {
	brokenoff.Anywhere(t, func(t *testing.T, repeat func(job func(context.Context) error)) {
		s := newSite(t)
		s.copy("x", "parquet")
		from, to := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y")
		testkit.OK(t, os.Rename(from, to))
		repeat(func(ctx context.Context) error {
			_, err := Move(ctx, s.ws, from, to, now)
			var open []string
			for _, r := range must(state.ListCopies(t.Context(), s.ws)) {
				if r.State != state.CopyClosed {
					open = append(open, r.Path)
				}
			}
			want := []string{from}
			if len(s.events(auditlog.CopyPurged)) > 0 {
				want = []string{to}
			}
			testkit.Same(t, "registered", want, open)
			return err
		})
		testkit.Same(t, "in the end", state.CopyGood, find(t, must(List(t.Context(), s.ws)), to).State)
	})
}

// TestMoveOntoACopy: a copy does not take the path of another one, though note, format, files and time are the same.
func TestMoveOntoACopy(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	s.copy("y", "parquet")
	from, to := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y")
	testkit.OK(t, os.Rename(to, filepath.Join(s.dir, "handed out")), os.Rename(from, to))
	before := must(s.ws.Copies(t.Context()))
	if _, err := Move(t.Context(), s.ws, from, to, now); !errors.Is(err, ErrForeign) {
		t.Errorf("onto another copy's path: %v", err)
	}
	testkit.Same(t, "on record", before, must(s.ws.Copies(t.Context())))
}

// TestLostCopyIsClosedByWord: a copy that only the log knows, because state.db is from a backup, is closed by the
// operator's word when it is not there.
func TestLostCopyIsClosedByWord(t *testing.T) {
	s := newSite(t)
	dir, third := s.ws.Dir(), state.ThirdPartyPath("a model")
	db := filepath.Join(dir, "state.db")
	reopened := func(meanwhile func()) {
		testkit.OK(t, s.ws.Close())
		meanwhile()
		var err error
		s.ws, err = workspace.Open(t.Context(), dir, workspace.Options{})
		testkit.OK(t, err)
	}
	var backup []byte
	reopened(func() { backup = must(os.ReadFile(db)) })
	s.copy("x", "parquet")
	testkit.OK(t, Disclose(t.Context(), s.ws, Disclosure{Name: "a model", Note: "n"}, []string{"few001"}, now))
	reopened(func() { testkit.OK(t, os.WriteFile(db, backup, 0o600)) })
	t.Cleanup(func() { s.ws.Close() })
	at := filepath.Join(s.dir, "x")
	if err := Close(t.Context(), s.ws, at, "destroyed", "n", now); !errors.Is(err, ErrCopyThere) {
		t.Errorf("it is there: %v", err)
	}
	testkit.OK(t, os.RemoveAll(at))
	// stopped does something again and again, stopped one place later each time, until it fails no more.
	stopped := func(do func(ctx context.Context) error) {
		for n := 1; ; n++ {
			ctx, stop := brokenoff.StopAt(t.Context(), n)
			err := do(ctx)
			stop()
			if err == nil {
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped at %d: %v", n, err)
			}
		}
	}
	want := 2 // as many as the log registers
	for _, name := range []string{at, third} {
		var purged, ended []state.CopyReport
		stopped(func(ctx context.Context) (err error) { purged, err = purge(ctx, s.ws, state.GoneSet{}); return err })
		stopped(func(ctx context.Context) (err error) { ended, err = End(ctx, s.ws, now); return err })
		list, err := s.ws.LostCopies(t.Context())
		testkit.Same(t, "lost before "+name, [3]int{want, want, want}, [3]int{len(list), len(purged), len(ended)}, err)
		stopped(func(ctx context.Context) error { return Close(ctx, s.ws, name, "destroyed", "n", now) })
		want--
	}
	list, err := s.ws.LostCopies(t.Context())
	testkit.Same(t, "lost", 0, len(list), err)
	var told []string
	for _, e := range s.events(auditlog.CopyPurged) {
		told = append(told, e.Path+e.Format+e.Verdict)
	}
	testkit.Same(t, "the log", []string{state.SHA256([]byte(at)) + "parquet" + "told",
		state.SHA256([]byte(third)) + state.ThirdParty + "told"}, told)
	if err := Close(t.Context(), s.ws, at, "destroyed", "n", now); !errors.Is(err, ErrNoCopy) {
		t.Errorf("said again: %v", err)
	}
}

// TestMoveBesideFiles: a file of somebody's in a copy that lost no row stands in the way of no move.
func TestMoveBesideFiles(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	from, to := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y")
	testkit.OK(t, os.Rename(from, to), os.WriteFile(filepath.Join(to, "notes.txt"), []byte("theirs"), 0o600))
	report, err := Move(t.Context(), s.ws, from, to, now)
	testkit.Same(t, "moved", state.CopyGood, report.State, err)
}

// TestMoveRefuses: what is not the copy that was registered takes no place of it.
func TestMoveRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(s *site, from, to string) error
		want  error
	}{
		{"still there", func(_ *site, from, to string) error { return os.CopyFS(to, os.DirFS(from)) }, ErrCopyThere},
		{"not there", func(_ *site, from, _ string) error { return os.RemoveAll(from) }, ErrNotCopy},
		{"a file changed", func(_ *site, from, to string) error {
			return errors.Join(os.Rename(from, to), os.WriteFile(filepath.Join(to, "README.md"), []byte("x"), 0o600))
		}, ErrNotCopy},
		{"not on record", func(s *site, from, to string) error {
			return errors.Join(os.Rename(from, to), Close(s.Context(), s.ws, from, "destroyed", "n", now))
		}, ErrNoCopy},
		{"never finished", func(s *site, from, to string) error {
			c := s.record("x")
			c.Files = nil
			return errors.Join(os.Rename(from, to), s.ws.SetCopy(s.Context(), c))
		}, ErrNotCopy},
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		from, to := filepath.Join(s.dir, "x"), filepath.Join(s.dir, "y")
		testkit.OK(t, test.spoil(s, from, to))
		before := s.record("x")
		if _, err := Move(t.Context(), s.ws, from, to, now); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		all, err := s.ws.Copies(t.Context())
		testkit.Same(t, test.name+": on record", []workspace.Copy{before}, all, err)
		if _, err := Move(t.Context(), s.ws, filepath.Join(s.dir, "z"), to, now); !errors.Is(err, ErrNoCopy) {
			t.Errorf("what was never on record: %v", err)
		}
	}
}

// TestGlance: names and sizes tell a copy in order from one that is not, but for a file of the same size.
func TestGlance(t *testing.T) {
	const shard = "data/train-00000-of-00001.parquet"
	for _, test := range []struct {
		name  string
		spoil func(at string) error
		want  string // of a glance; "" for in order
	}{
		{"in order", func(string) error { return nil }, ""},
		{"another size", func(at string) error { return os.WriteFile(at, []byte("x"), 0o600) },
			shard + ": somebody changed it"},
		{"the same size", func(at string) error {
			body, err := os.ReadFile(at)
			return errors.Join(err, os.WriteFile(at, []byte(strings.Repeat("x", len(body))), 0o600))
		}, ""},
		{"gone", os.Remove, shard + ": it is not there any more"},
		{"a link", func(at string) error { return errors.Join(os.Remove(at), os.Symlink("README.md", at)) },
			shard + " is not a regular file"},
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		testkit.OK(t, test.spoil(filepath.Join(s.dir, "x", shard)))
		r := find(t, must(Glance(t.Context(), s.ws)), filepath.Join(s.dir, "x"))
		if (r.State == state.CopyGood) != (test.want == "") || !strings.Contains(r.Told, test.want) {
			t.Errorf("%s: %+v, want %q", test.name, r, test.want)
		}
	}
}

// TestChangedFilesAreCounted: of files that somebody changed five are named, and the others counted.
func TestChangedFilesAreCounted(t *testing.T) {
	for _, n := range []int{5, 6} {
		s := newSite(t)
		files := s.copy("x", "folder").Files
		for _, f := range files[:n] {
			testkit.OK(t, os.WriteFile(filepath.Join(s.dir, "x", f.Name), []byte("x"), 0o600))
		}
		told, want := s.list("x").Told, ""
		if n > 5 {
			want = fmt.Sprintf("; and %d more", n-5)
		}
		_, after, _ := strings.Cut(told, files[4].Name+": "+errChanged.Error())
		if strings.Count(told, errChanged.Error()) != 5 || after != want {
			t.Errorf("%d files: %s", n, told)
		}
	}
}

// TestForeignFilesAreNamed: of files that are not part of a copy three are named, and the others counted.
func TestForeignFilesAreNamed(t *testing.T) {
	for n, want := range map[int]string{
		1: "m1, which is not part of the copy (any more), may hold a row that went: move it out of the copy, or delete it",
		2: "m1 and m2, which are not part of the copy (any more), may hold rows",
		3: "m1, m2 and m3, which are not part", 4: "m1, m2, m3 and 1 more, which are not part",
		6: "m1, m2, m3 and 3 more, which",
	} {
		s := newSite(t)
		s.copy("x", "parquet")
		for i := range n {
			testkit.OK(t, os.WriteFile(filepath.Join(s.dir, "x", fmt.Sprint("m", i+1)), []byte("x"), 0o600))
		}
		if r := s.purge("x", s.gone("few001")); !strings.HasPrefix(r.Told, want) {
			t.Errorf("%d files: %s, want %s", n, r.Told, want)
		}
	}
}
