package copies

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestExportIsCompleteAndOnRecord: a copy of every format has all rows, is on record with the digests of its files, and
// in the log.
func TestExportIsCompleteAndOnRecord(t *testing.T) {
	s := newSite(t)
	for _, format := range Formats() {
		report := s.copy(format, format)
		testkit.Same(t, format, ids, s.holds(format))
		want := workspace.Copy{Path: filepath.Join(s.dir, format), Note: "the lab", Format: format, Made: now,
			Files: report.Files,
			Rows:  []string{"few001", "few002", "few003"}}
		testkit.Same(t, "the record of "+format, want, s.record(format))
		testkit.Same(t, "the report on "+format, state.NewCopyReport(want), report)
		for _, f := range report.Files {
			body, err := os.ReadFile(filepath.Join(want.Path, f.Name))
			testkit.Same(t, f.Name, f, workspace.File{Name: f.Name, Size: int64(len(body)), SHA256: state.SHA256(body)}, err)
		}
		info, err := os.Stat(want.Path)
		testkit.Same(t, "the mode of a copy", fs.FileMode(0o700), info.Mode().Perm(), err)
		if got := s.list(format); got.State != state.CopyGood || got.Told != "" {
			t.Errorf("%s is listed as %+v", format, got)
		}
	}
	var paths []string
	for _, e := range s.events(auditlog.Copy) {
		paths = append(paths, e.Path+e.Format)
		if len(e.Files) == 0 {
			t.Errorf("the log has no files of %s", e.Format)
		}
	}
	var want []string
	for _, format := range Formats() {
		want = append(want, state.SHA256([]byte(filepath.Join(s.dir, format)))+format)
	}
	testkit.Same(t, "the log", want, paths)
	card, err := os.ReadFile(filepath.Join(s.dir, "folder", "README.md"))
	if err != nil || !strings.Contains(string(card), "Set") {
		t.Errorf("the card of a folder: %v\n%s", err, card)
	}
}

// TestWhatMayNotBeHandedOutIsNot: what may not be handed out is not, with every reason, and nothing is made or put on
// record.
func TestWhatMayNotBeHandedOutIsNot(t *testing.T) {
	refusal := errors.New("the grant has ended")
	for _, tt := range []struct {
		name   string
		change func(*site, *Config)
		want   string
	}{
		{"gone", func(s *site, _ *Config) { s.gone("few001") }, "1 of its rows are of posts that are gone or held back"},
		{"a tombstone of the release", func(_ *site, c *Config) {
			c.Tombstones = []manifest.Tombstone{{ID: "few002", State: manifest.StateRemoved, Time: now.Add(-time.Hour)}}
		}, "1 of its rows are of posts that are gone or held back"},
		{"a tombstone that the policy puts in force again", func(s *site, _ *Config) {
			testkit.OK(s, s.ws.AddTombstones(s.Context(), []workspace.Tombstone{{Reason: "moderator",
				Tombstone: manifest.Tombstone{ID: "few002", State: manifest.StateRemoved, Time: now.Add(-time.Hour)}}}),
				s.ws.SetReadmitted(s.Context(), true, "few002"))
		}, "1 of its rows are of posts that are gone or held back"},
		{"a picture that was taken down", func(s *site, _ *Config) {
			s.showsSame("few002", "few001")
			testkit.OK(s, s.ws.AddTombstones(s.Context(), []workspace.Tombstone{{Reason: "author",
				Tombstone: manifest.Tombstone{ID: "few001", State: manifest.StateDeleted, Time: now}}}))
		}, "1 of its rows show the picture of a post that is gone"},
		{"a host that is not named any more", func(_ *site, c *Config) {
			c.Policy.Images.Hosts = c.Policy.Images.Hosts[1:]
		}, "3 of its rows " + state.WhyStricter},
		{"smaller images", func(_ *site, c *Config) { c.Policy.Images.MaxSide = 41 },
			"1 of its rows " + state.WhyStricter},
		{"names in texts", func(s *site, _ *Config) {
			n, err := state.ReadNote[state.ExportNote](s.Context(), s.ws)
			n.Card.Provenance.OCRParameters = "psm=3"
			testkit.OK(s, err, state.WriteNote(s.Context(), s.ws, n))
		}, state.ErrNotMasked.Error()},
		{"in quarantine", func(s *site, _ *Config) {
			testkit.OK(t, s.ws.SetPosts(t.Context(), []workspace.Post{{ID: "few001", State: manifest.StateHeld,
				Reason: "quarantine", CheckedAt: now, LiveAt: now}}))
		}, "1 of its rows are of posts that the policy does not allow"},
		{"absent once", func(s *site, _ *Config) {
			testkit.OK(t, s.ws.SetPosts(t.Context(), []workspace.Post{{ID: "few001", State: manifest.StateLive,
				CheckedAt: now, LiveAt: now, AbsentAt: now}}))
		}, "1 of its rows are of posts that Reddit's last answer left out"},
		{"old", func(_ *site, c *Config) { c.Now = func() time.Time { return now.Add(100 * time.Hour) } },
			"3 of its rows are of posts last seen live too long ago"},
		{"in the future", func(_ *site, c *Config) { c.Now = func() time.Time { return now.Add(-time.Hour) } },
			"3 of its rows are of posts last seen live in the future: a clock was wrong"},
		{"another release", func(_ *site, c *Config) { r := *c.Release; r.Digest = "x"; c.Release = &r }, otherVersion},
		{"other annotations", func(_ *site, c *Config) { r := *c.Release; r.ManifestDigest = "x"; c.Release = &r },
			otherVersion},
		{"never written", func(s *site, _ *Config) {
			testkit.OK(s,
				state.ClearNote[state.ExportNote](s.Context(), s.ws))
		}, "its files are not those"},
		{"a file changed", func(s *site, _ *Config) {
			testkit.OK(s, os.WriteFile(filepath.Join(s.ws.Dir(), state.DatasetDir, "README.md"), []byte("x"), 0o600))
		}, "its files are not those"},
		{"the first of its files changed", func(s *site, _ *Config) {
			n, err := state.ReadNote[state.ExportNote](s.Context(), s.ws)
			slices.Reverse(n.Files) // the card before the shards
			testkit.OK(s, err, state.WriteNote(s.Context(), s.ws, n),
				os.WriteFile(filepath.Join(s.ws.Dir(), state.DatasetDir, "README.md"), []byte("x"), 0o600))
		}, "its files are not those"},
		{"a row more is kept", func(s *site, _ *Config) {
			testkit.OK(s, s.ws.SetResults(s.Context(),
				[]manifest.Result{{Key: manifest.Key{ID: "few001"}, Split: "train", Outcome: manifest.Duplicate},
					{Key: manifest.Key{ID: "few002"}, Split: "train", Outcome: manifest.Kept},
					{Key: manifest.Key{ID: "few003"}, Split: "test", Outcome: manifest.Kept}}))
		}, "its files are not those"},
		{"another row is kept", func(s *site, _ *Config) {
			outcomes := func(first, second manifest.Outcome) error {
				return s.ws.SetResults(s.Context(),
					[]manifest.Result{{Key: manifest.Key{ID: "few001"}, Split: "train", Outcome: first},
						{Key: manifest.Key{ID: "few002"}, Split: "train", Outcome: second},
						{Key: manifest.Key{ID: "few003"}, Split: "test", Outcome: manifest.Kept}})
			}
			bind, _, err := s.ws.Binding(s.Context())
			testkit.OK(s, err, outcomes(manifest.Duplicate, manifest.Kept))
			s.export(bind)
			testkit.OK(s, outcomes(manifest.Kept, manifest.Duplicate))
		}, "its files are not those"},
		{"a row is missing", func(s *site, _ *Config) {
			testkit.OK(s, s.ws.SetResults(s.Context(), []manifest.Result{{Key: manifest.Key{ID: "few001"}, Split: "train",
				Outcome: manifest.Pending, Reason: state.ReasonNotWritten},
				{Key: manifest.Key{ID: "few002"}, Split: "train", Outcome: manifest.Kept},
				{Key: manifest.Key{ID: "few003"}, Split: "test", Outcome: manifest.Kept}}))
		}, "1 of its rows are missing: "},
		{"not known any more", func(s *site, _ *Config) {
			testkit.OK(s, s.ws.SetPosts(s.Context(), []workspace.Post{{ID: "few001", State: manifest.StateUnknown,
				CheckedAt: now, LiveAt: now}}))
		}, "1 of its rows would not be in it any more"},
		{"without a card", func(s *site, _ *Config) {
			n, err := state.ReadNote[state.ExportNote](s.Context(), s.ws)
			n.Card = nil
			testkit.OK(s, err, state.WriteNote(s.Context(), s.ws, n))
		}, "its files are not those"},
		{"no access", func(_ *site, c *Config) { c.Access = func(time.Time) error { return refusal } }, refusal.Error()},
	} {
		s := newSite(t)
		c := s.config("x", "parquet")
		tt.change(s, &c)
		_, err := Export(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		why, is := errors.AsType[*NotExportable](err)
		if is == (tt.want == refusal.Error()) {
			t.Errorf("%s: the error is %T", tt.name, err)
		}
		if is && !slices.ContainsFunc(why.Why, func(s string) bool { return strings.HasPrefix(s, tt.want) }) {
			t.Errorf("%s: the reasons are %q, want %q", tt.name, why.Why, tt.want)
		}
		left, err := os.ReadDir(s.dir)
		all, err2 := s.ws.Copies(t.Context())
		if len(left)+len(all) > 0 || err != nil || err2 != nil {
			t.Errorf("%s: %v is left, and %v on record, %v %v", tt.name, left, all, err, err2)
		}
	}
}

// TestExportOverwritesNothing: a copy goes over nothing, into no workspace, through no link.
func TestExportOverwritesNothing(t *testing.T) {
	s := newSite(t)
	outside := t.TempDir()
	full := filepath.Join(s.dir, "full")
	testkit.OK(t, os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "mine.txt"), []byte("mine"), 0o600),
		os.WriteFile(filepath.Join(s.dir, "file"), nil, 0o600),
		os.Symlink(outside, filepath.Join(s.dir, "link")), syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o600))
	for to, want := range map[string]string{
		full: "holds mine.txt", filepath.Join(s.dir, "file"): "is not a folder",
		filepath.Join(s.dir, "link"): "is not a folder",
		filepath.Join(s.dir, "pipe"): "is not a folder", filepath.Join(s.dir, "none", "x"): "there is no folder",
		filepath.Join(s.dir, "file", "x"):              "there is no folder",
		filepath.Join(s.ws.Dir(), "x"):                 "is inside the workspace, or around it",
		s.ws.Dir():                                     "is inside the workspace, or around it",
		filepath.Dir(s.ws.Dir()):                       "is inside the workspace, or around it",
		filepath.Join(s.dir, strings.Repeat("x", 300)): "file name too long",
	} {
		c := s.config("", "parquet")
		c.To = to
		if _, err := Export(t.Context(), c); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), want) {
			t.Errorf("a copy to %s: %v, want %q", to, err, want)
		}
	}
	testkit.OK(t, os.Mkdir(filepath.Join(s.dir, "empty"), 0o700))
	s.copy("empty", "parquet")
	c := s.config("empty", "parquet")
	testkit.OK(t, os.RemoveAll(c.To))
	if _, err := Export(t.Context(), c); !errors.Is(err, ErrForeign) ||
		!strings.Contains(err.Error(), "one is on record") {
		t.Errorf("a copy in the place of one that is on record: %v", err)
	}
	testkit.OK(t, Close(t.Context(), s.ws, c.To, "destroyed", "shredded", now))
	s.copy("empty", "parquet")
	body, err := os.ReadFile(filepath.Join(full, "mine.txt"))
	testkit.Same(t, "the file that was there", "mine", string(body), err)
}

// TestExportMeetsAnother: what somebody puts in the place of a copy, or into the dataset, while the copy is made, ends
// the export, and stays; nothing else does.
func TestExportMeetsAnother(t *testing.T) {
	for _, tt := range []struct {
		step, want string
		meanwhile  func(s *site, to string) error
	}{
		{"", "holds theirs", func(_ *site, to string) error { return os.CopyFS(to, os.DirFS(to+"-theirs")) }},
		{"export rename", "give the copy its name", func(_ *site, to string) error {
			return os.CopyFS(to, os.DirFS(to+"-theirs"))
		}},
		{"export begin", "croissant.json changed while it was copied", func(s *site, _ string) error {
			return os.WriteFile(filepath.Join(s.ws.Dir(), state.DatasetDir, croissantName), []byte("{}"), 0o600)
		}},
		{"export begin", "no such file", func(s *site, _ string) error {
			return os.Remove(filepath.Join(s.ws.Dir(), state.DatasetDir, croissantName))
		}},
	} {
		s := newSite(t)
		c := s.config("x", "parquet")
		theirs := c.To + "-theirs"
		testkit.OK(t, os.Mkdir(theirs, 0o700), os.WriteFile(filepath.Join(theirs, "theirs"), []byte("theirs"), 0o600))
		at := sync.OnceValue(func() error { return tt.meanwhile(s, c.To) })
		c.Now = func() time.Time {
			if tt.step == "" {
				testkit.OK(t, at())
			}
			return now
		}
		ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, _ string) error {
			if step == tt.step {
				return at()
			}
			return nil
		})
		if _, err := Export(ctx, c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
		testkit.OK(t, os.RemoveAll(theirs))
		reports, err := purge(t.Context(), s.ws, state.GoneSet{})
		for _, r := range reports {
			testkit.Same(t, tt.want+": the record", state.CopyClosed, r.State, err)
		}
		var left []string
		testkit.OK(t, fs.WalkDir(os.DirFS(s.dir), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				left = append(left, name)
			}
			return err
		}))
		var want []string
		if strings.Contains("holds theirs, give the copy its name", tt.want) {
			want = []string{"x/theirs"}
		}
		testkit.Same(t, tt.want+": what is there", want, left)
	}
}

// TestPathsThatLeadNowhere: a path that no folder can have is refused by all that take one, and nothing is put on
// record.
func TestPathsThatLeadNowhere(t *testing.T) {
	s := newSite(t)
	loop := filepath.Join(s.dir, "loop")
	testkit.OK(t, os.Symlink("loop", loop))
	c := s.config("loop/x", "parquet")
	good := filepath.Join(s.dir, "y")
	_, exported := Export(t.Context(), c)
	_, adopted := Adopt(t.Context(), s.ws, c.To, "n", now)
	_, movedFrom := Move(t.Context(), s.ws, c.To, good, now)
	_, movedTo := Move(t.Context(), s.ws, good, c.To, now)
	for what, err := range map[string]error{
		"export": exported, "adopt": adopted,
		"derive":    Derive(t.Context(), s.ws, Derived{To: c.To, Format: "numbers", Made: now}),
		"close":     Close(t.Context(), s.ws, c.To, "destroyed", "n", now),
		"move from": movedFrom,
		"move to":   movedTo,
	} {
		if err == nil || !strings.Contains(err.Error(), "too many links") {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Its own name is short enough, and that of the unfinished copy is not.
	long := s.config(strings.Repeat("x", 250), "parquet")
	if _, err := Export(t.Context(), long); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a long name: %v", err)
	}
	wd := filepath.Join(t.TempDir(), "gone")
	testkit.OK(t, os.Mkdir(wd, 0o700))
	t.Chdir(wd)
	testkit.OK(t, os.Remove(wd))
	if to, err := Destination(t.Context(), s.ws, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path in a working directory that went: %q, %v", to, err)
	}
	all, err := s.ws.Copies(t.Context())
	testkit.Same(t, "on record", 0, len(all), err)
}

// TestPlantedUnfinishedFolderIsNotFollowed: what somebody put in the place of the unfinished copy is removed, and not
// followed.
func TestPlantedUnfinishedFolderIsNotFollowed(t *testing.T) {
	s := newSite(t)
	theirs := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(theirs, "theirs"), []byte("theirs"), 0o600))
	fill := func(ctx context.Context, _ string, sink func(string, func(io.Writer) error) error) ([]string, error) {
		return []string{"few001"}, sink("features.csv",
			func(w io.Writer) error { _, err := io.WriteString(w, "id,n\nfew001,1\n"); return err })
	}
	for name, plant := range map[string]func(temp string) error{
		"a link": func(temp string) error { return os.Symlink(theirs, temp) },
		"a pipe": func(temp string) error { return syscall.Mkfifo(temp, 0o600) },
		"a file": func(temp string) error { return os.WriteFile(temp, nil, 0o600) },
		"a folder": func(temp string) error {
			return errors.Join(os.Mkdir(temp, 0o777), os.Symlink(theirs, filepath.Join(temp, "link")))
		},
		"a part": func(temp string) error {
			return errors.Join(os.Mkdir(temp, 0o700), syscall.Mkfifo(filepath.Join(temp, "part"), 0o600))
		},
	} {
		testkit.OK(t, plant(unfinishedPath(filepath.Join(s.dir, name))),
			plant(unfinishedPath(filepath.Join(s.dir, name+" derived"))))
		testkit.Same(t, name, state.CopyGood, s.copy(name, "parquet").State)
		d := Derived{To: filepath.Join(s.dir, name+" derived"), Note: "n", Format: "numbers", Made: now, Part: "part",
			Fill: fill}
		testkit.OK(t, Derive(t.Context(), s.ws, d))
		list, err := os.ReadDir(d.To)
		testkit.Same(t, name, 1, len(list), err)
		body, err := os.ReadFile(filepath.Join(theirs, "theirs"))
		testkit.Same(t, name, "theirs", string(body), err)
	}
}

// TestOfTwoExportsOneWins: of two exports to one folder the first wins, the other says so and takes nothing away, and
// neither does a purge of its workspace.
func TestOfTwoExportsOneWins(t *testing.T) {
	s := newSite(t)
	other := newSite(t)
	other.dir = s.dir
	began, others := make(chan bool), make(chan bool)
	c := s.config("x", "mine")
	c.Fill = func(_ context.Context, sink dataset.Sink) ([]string, error) {
		err := sink("first.txt", func(w io.Writer) error { _, err := io.WriteString(w, "first"); return err })
		close(began)
		<-others
		return []string{"few001"}, err
	}
	done := make(chan error)
	go func() { _, err := Export(t.Context(), c); done <- err }()
	<-began
	for range 2 {
		if _, err := Export(t.Context(), other.config("x", "parquet")); !errors.Is(err, ErrBusy) {
			t.Errorf("the second export: %v", err)
		}
	}
	d := Derived{To: c.To, Format: "numbers", Made: now,
		Fill: func(context.Context, string, func(string, func(io.Writer) error) error) ([]string, error) {
			t.Error("a third one filled the folder")
			return nil, nil
		}}
	if err := Derive(t.Context(), nil, d); !errors.Is(err, ErrBusy) {
		t.Errorf("the third one: %v", err)
	}
	// A workspace that has an unfinished copy on record there must wait as well.
	testkit.OK(t, other.ws.SetCopy(t.Context(), workspace.Copy{Path: c.To, Format: "parquet", Made: now}))
	if r := other.purge("x", state.GoneSet{}); r.State != state.CopyOpen || !strings.Contains(r.Told, ErrBusy.Error()) {
		t.Errorf("a purge beside it: %+v", r)
	}
	close(others)
	testkit.OK(t, <-done)
	testkit.Same(t, "the first", state.CopyGood, s.list("x").State)
	body, err := os.ReadFile(filepath.Join(c.To, "first.txt"))
	testkit.Same(t, "the first's file", "first", string(body), err)
	if _, err := Export(t.Context(), other.config("x", "parquet")); !errors.Is(err, ErrForeign) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestMovedCopyStaysAnObligation: a copy that was moved away stays an obligation, whatever another workspace's export
// leaves in its place.
func TestMovedCopyStaysAnObligation(t *testing.T) {
	s := newSite(t)
	s.copy("x", "parquet")
	testkit.OK(t, os.Rename(filepath.Join(s.dir, "x"), filepath.Join(s.dir, "away")))
	left := unfinishedPath(filepath.Join(s.dir, "x"))
	testkit.OK(t, os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "README.md"), []byte("another's"), 0o600))
	if r := s.list("x"); r.State != state.CopyOpen || !strings.Contains(r.Told, "it is not there any more") {
		t.Errorf("before anything went it is listed as %+v", r)
	}
	if r := s.purge("x", s.gone("few001")); r.State != state.CopyOpen || !slices.Equal(r.Owed, []string{"few001"}) {
		t.Errorf("a copy that was moved: %+v", r)
	}
	if r := s.list("x"); r.State != state.CopyOpen {
		t.Errorf("a copy that was moved is listed as %+v", r)
	}
	at := must(openUnfinished(left)) // as the other's export has it
	if r := s.purge("x", s.gone("few001")); r.State != state.CopyOpen || strings.Contains(r.Told, ErrBusy.Error()) {
		t.Errorf("while the other is at work: %+v", r)
	}
	at.Close()
	if _, err := os.Stat(filepath.Join(left, "README.md")); err != nil {
		t.Error(err)
	}
}

// TestExportKilled: killed at any step, an export leaves a copy that is listed as unfinished, or none; a purge removes
// all of it, and another export takes its place.
func TestExportKilled(t *testing.T) {
	for n := 1; ; n++ {
		if testing.Short() && n%4 != 0 && n < 36 {
			continue
		}
		s := newSite(t)
		if !s.killed(n, func(ctx context.Context) error { _, err := Export(ctx, s.config("x", "folder")); return err }) {
			if n < 10 {
				t.Errorf("an export of %d steps", n)
			}
			return
		}
		list, err := s.ws.Copies(t.Context())
		testkit.OK(t, err)
		_, err = os.Stat(filepath.Join(s.dir, "x"))
		named := err == nil
		if len(list) == 1 {
			if r := s.list("x"); named == (r.State == state.CopyUnfinished) {
				t.Errorf("killed at step %d, the copy has its name: %t, and is listed as %s", n, named, r.State)
			}
		}
		switch {
		case named:
		case n%2 == 0:
			_, err := purge(t.Context(), s.ws, state.GoneSet{})
			testkit.OK(t, err)
			left, err := os.ReadDir(s.dir)
			if len(left) > 0 && len(list) > 0 {
				t.Errorf("killed at step %d and purged: %v is left, %v", n, left, err)
			}
			for _, r := range list {
				testkit.Same(t, "an unfinished copy after a purge", state.CopyClosed,
					find(t, must(List(t.Context(), s.ws)), r.Path).State)
			}
		default:
			testkit.Same(t, "an export after a killed one", state.CopyGood, s.copy("x", "folder").State)
			testkit.Same(t, "its rows", ids, s.holds("x"))
		}
	}
}

func must[T any](v T, _ error) T { return v }

// killed does something, and kills it before step n. It reports whether there was such a step.
func (s *site) killed(n int, do func(context.Context) error) (killed bool) {
	s.Helper()
	ctx := context.WithValue(s.Context(), durable.HookKey{}, func(step, _ string) error {
		if step == "commit" { // the database undoes what is half done, and makes an error of a panic
			return nil
		}
		if n--; n == 0 {
			panic(kill{step})
		}
		return nil
	})
	defer func() {
		if k, is := recover().(kill); is {
			killed = k.before != ""
		}
	}()
	testkit.OK(s, do(ctx))
	return false
}

type kill struct{ before string }

// TestFailedExportLeavesNothing: an export that the disk ends leaves no copy, and its record is closed, at the latest
// by the next purge.
func TestFailedExportLeavesNothing(t *testing.T) {
	full := errors.New("the disk is full")
	for _, step := range []string{"create", "export begin", "export rename"} {
		s := newSite(t)
		ctx := context.WithValue(t.Context(), durable.HookKey{}, func(at, name string) error {
			if at == step && strings.HasPrefix(name, s.dir) ||
				at == step && step == "create" && !strings.Contains(name, "audit") {
				return full
			}
			return nil
		})
		if _, err := Export(ctx, s.config("x", "parquet")); !errors.Is(err, full) {
			t.Errorf("%s: %v", step, err)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "x")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a copy: %v", step, err)
		}
		// Once it has begun, it takes its folder away itself.
		want, n := state.CopyClosed, 0
		if step == "export begin" {
			want, n = state.CopyUnfinished, 1
		}
		left, err := os.ReadDir(s.dir)
		testkit.Same(t, step+": state, and what is left", []any{want, n}, []any{s.list("x").State, len(left)}, err)
		_, err = purge(t.Context(), s.ws, state.GoneSet{})
		testkit.Same(t, step, state.CopyClosed, s.list("x").State, err)
		s.copy("x", "parquet")
	}
	s := newSite(t)
	c := s.config("x", "mine")
	c.Fill = func(context.Context, dataset.Sink) ([]string, error) { return nil, full }
	if _, err := Export(t.Context(), c); !errors.Is(err, full) {
		t.Error(err)
	}
	left, err := os.ReadDir(s.dir)
	testkit.Same(t, "what a failed format leaves", 0, len(left), err)
}

// TestDeriveGoesOnFromItsPart: a computation that is interrupted goes on from its part, and from nothing else.
func TestDeriveGoesOnFromItsPart(t *testing.T) {
	s := newSite(t)
	to := filepath.Join(s.dir, "numbers")
	interrupted := errors.New("interrupted")
	fill := func(fail error) func(context.Context, string, func(string, func(io.Writer) error) error) ([]string, error) {
		return func(_ context.Context, temp string, sink func(string, func(io.Writer) error) error) ([]string, error) {
			part, err := os.ReadFile(filepath.Join(temp, "part"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			list, err := os.ReadDir(temp)
			testkit.Same(t, "what is there", min(1, len(part)), len(list), err)
			err = sink("features.csv", func(w io.Writer) error {
				_, err := io.WriteString(w, "id,n\nfew001,1\nfew003,1\n"+string(part))
				return err
			})
			if fail != nil {
				testkit.OK(t, os.WriteFile(filepath.Join(temp, "part"), []byte("few002,1\n"), 0o600))
				return nil, fail
			}
			return []string{"few001", "few002", "few003"}, errors.Join(err, os.Remove(filepath.Join(temp, "part")))
		}
	}
	d := Derived{To: to, Note: "mine", Format: "numbers", Made: now, Part: "part", Fill: fill(interrupted)}
	if err := Derive(t.Context(), s.ws, d); !errors.Is(err, interrupted) {
		t.Fatal(err)
	}
	testkit.Same(t, "interrupted", state.CopyUnfinished, s.list("numbers").State)
	d.Fill = fill(nil)
	testkit.OK(t, Derive(t.Context(), s.ws, d))
	testkit.Same(t, "resumed", ids, s.holds("numbers"))
	r := s.purge("numbers", s.gone("few002"))
	testkit.Same(t, "purged", []string{"few002"}, r.Purged)
	testkit.Same(t, "rows that stay", []manifest.PostID{"few001", "few003"}, s.holds("numbers"))
	// A part has rows as well: a purge takes it with the folder.
	d.To, d.Fill = filepath.Join(s.dir, "again"), fill(interrupted)
	if err := Derive(t.Context(), s.ws, d); !errors.Is(err, interrupted) {
		t.Fatal(err)
	}
	s.purge("again", state.GoneSet{})
	if _, err := os.Stat(unfinishedPath(d.To)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part stays: %v", err)
	}
	// A dataset of no workspace has no record.
	d.To, d.Fill = filepath.Join(s.dir, "alone"),
		func(_ context.Context, _ string, sink func(string, func(io.Writer) error) error) ([]string, error) {
			return nil, sink("x", func(io.Writer) error { return nil })
		}
	testkit.OK(t, Derive(t.Context(), nil, d))
	d.To = filepath.Join(s.dir, "other")
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, _ string) error {
		if step == "export rename" {
			return interrupted
		}
		return nil
	})
	if err := Derive(ctx, nil, d); !errors.Is(err, interrupted) {
		t.Errorf("without a record, before it has its name: %v", err)
	}
}

// TestDigestsOfStoredAndPurgedImages: what is published of images is known of each that is stored, or was until a
// purge.
func TestDigestsOfStoredAndPurgedImages(t *testing.T) {
	s := newSite(t)
	s.gone("few001")
	testkit.OK(t, s.ws.AddTombstones(t.Context(),
		[]workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: "few001", State: manifest.StateRemoved, Time: now}}}),
		s.ws.Erase(t.Context(), "few001"))
	var b bytes.Buffer
	wrote, err := WriteDigests(t.Context(), s.config("", ""), &b)
	testkit.Same(t, "counts", DigestsWritten{Entries: 3, Known: 3, Gone: 1}, wrote, err)
	for i, id := range ids {
		line := strings.Split(b.String(), "\n")[i]
		for _, want := range []string{string(id), digest("original", id), digest("pixels", id)} {
			if !strings.Contains(line, want) {
				t.Errorf("line %d lacks %s: %s", i, want, line)
			}
		}
		if hash := strings.Contains(line, `"phash":"0000`); hash != (i > 0) {
			t.Errorf("line %d has a hash: %t: %s", i, hash, line)
		}
	}
	b.Reset()
	testkit.OK(t, s.ws.SetPosts(t.Context(), []workspace.Post{{ID: ids[2], State: manifest.StateDeleted, Reason: "author",
		Withheld: true, CheckedAt: now}}))
	wrote, err = WriteDigests(t.Context(), s.config("", ""), &b)
	testkit.Same(t, "counts", DigestsWritten{Entries: 3, Known: 3, Gone: 1, Held: 1}, wrote, err)
	if line := strings.Split(b.String(), "\n")[2]; strings.Contains(line, "phash") ||
		!strings.Contains(line, digest("original", ids[2])) {
		t.Errorf("of an image that is held back: %s", line)
	}
	b.Reset()
	c := s.config("", "")
	c.Tombstones = []manifest.Tombstone{{ID: ids[1], State: manifest.StateRemoved, Time: now},
		{ID: ids[2], State: manifest.StateDeleted, Time: now}}
	wrote, err = WriteDigests(t.Context(), c, &b)
	testkit.Same(t, "counts with tombstones of the release", DigestsWritten{Entries: 3, Known: 3, Gone: 3}, wrote, err)
	if strings.Contains(b.String(), "phash") {
		t.Errorf("of what the release names as gone: %s", b.String())
	}
	for name, change := range map[string]func(*manifest.Release){
		"another edition":   func(r *manifest.Release) { r.Digest = "x" },
		"other annotations": func(r *manifest.Release) { r.ManifestDigest = "x" },
	} {
		other, c := *s.rel, s.config("", "")
		change(&other)
		c.Release = &other
		if _, err := WriteDigests(t.Context(), c, &b); err == nil ||
			!strings.Contains(err.Error(), otherVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
