package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// logged returns the records that audit/ holds, after Log.Verify.
func logged(t *testing.T, w *Workspace) []auditlog.Event {
	t.Helper()
	log, err := w.LogReader(t.Context())
	if errors.Is(err, auditlog.ErrNoLog) {
		return nil
	}
	testkit.OK(t, err)
	testkit.OK(t, log.Verify(t.Context()))
	return collect(t, log.Records(t.Context(), 0))
}

// story tells records in short: kind, verdict, posts.
func story(events []auditlog.Event) []string {
	out := []string{}
	for _, e := range events {
		text := strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Phase, " ", e.Verdict, " ", e.Note)), " ")
		for _, p := range e.Posts {
			text += fmt.Sprintf(" %s:%s:%s", p.ID, p.State, p.Reason)
		}
		out = append(out, text)
	}
	return out
}

// logOf is the story of the log in a folder.
func logOf(t *testing.T, dir string) []string {
	t.Helper()
	r := readOnly(t, dir)
	defer r.Close()
	return story(logged(t, r))
}

// tell stores one record for each note.
func tell(t *testing.T, w *Workspace, notes ...any) {
	t.Helper()
	for _, note := range notes {
		testkit.OK(t, w.Note(t.Context(), auditlog.Event{Kind: auditlog.Copy, Note: fmt.Sprint(note)}))
	}
}

// waiting is the story of the records that are not published.
func waiting(t *testing.T, w *Workspace) []string {
	t.Helper()
	queue, err := w.Unpublished(t.Context())
	testkit.OK(t, err)
	return story(queue)
}

// hour is so many hours after some moment.
func hour(h int64) time.Time { return time.Unix(1.7e9+h*3600, 0).UTC() }

func stone(id manifest.PostID, state manifest.PostState, reason manifest.Reason, h int64) Tombstone {
	return Tombstone{Tombstone: manifest.Tombstone{ID: id, State: state, Time: hour(h)}, Reason: reason}
}

// noCommit is a context in which each commit fails.
func noCommit(t *testing.T) context.Context {
	return hooked(t.Context(), func(step string) error {
		if step == "commit" {
			return errBoom
		}
		return nil
	})
}

var errBoom = errors.New("boom")

// TestEachChangeIsRecorded does one of everything that is told to the log.
func TestEachChangeIsRecorded(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "w")
	w := open(t, dir)
	w.now = func() time.Time { return hour(9) }
	live := Post{ID: "a000", State: manifest.StateLive, CheckedAt: hour(1), LiveAt: hour(1)}
	gone := Post{ID: "a001", State: manifest.StateRemoved, Reason: "moderator", CheckedAt: hour(1), Withheld: true}
	absent, confirmed := live, gone
	absent.AbsentAt, confirmed.Withheld = hour(2), false
	odd := Post{ID: "a002", State: manifest.StateRemoved, Reason: "By A Name", CheckedAt: hour(1)}
	stones := []Tombstone{stone("a001", manifest.StateRemoved, "moderator", 1)}
	body := []byte("body")
	for i, err := range []error{
		w.Load(ctx, binding("1"), seq(numbered(4), nil), nil),
		w.SetPosts(ctx, []Post{live, gone}),
		w.SetPosts(ctx, []Post{live, gone}), // no answer came: nothing new
		w.StoreImage(ctx, key("a000"), body, describe(body, "png")),
		w.SetPosts(ctx, []Post{live}), // seen again, in the same second
		w.SetPosts(ctx, []Post{absent}),
		w.AddTombstones(ctx, stones),
		w.AddTombstones(ctx, stones),
		w.SetPosts(ctx, []Post{confirmed}),
		w.SetReadmitted(ctx, true, "a001", "a000"),
		w.SetReadmitted(ctx, true, "a001"),
		w.SetReadmitted(ctx, false, "a001"),
		w.LiftTombstones(ctx, digestOf(body), "a001", "a003"),
		w.LiftTombstones(ctx, digestOf(body), "a001"),
		w.Erase(ctx, "a001"),
		w.SetPosts(ctx, []Post{odd}),
		w.Note(ctx, auditlog.Event{Kind: auditlog.Run, Phase: auditlog.Ended}),
		w.Load(ctx, binding("2"), seq(numbered(4)[1:], nil), nil), // a000 left
	} {
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	testkit.Same(t, "records to be published", []string{"verdicts a000:live: a001:removed:moderator", "fetch a000::",
		"verdicts a000:live:",
		"verdicts a000:unknown:absent_once", "tombstone a001:removed:moderator", "readmitted a001::",
		"readmitted revoked a001::",
		"lifted a001::", "erased a001:removed:", "verdicts a002:removed:other", "run ended",
		"erased left_manifest a000::"}, waiting(t, w))
	queue, err := w.Unpublished(ctx)
	next, nextErr := w.LogNext(ctx)
	testkit.OK(t, err, nextErr, w.Close())
	r := readOnly(t, dir)
	events := logged(t, r)
	testkit.Same(t, "published", queue, events)
	for i, e := range events {
		if e.Seq != int64(i) || !e.Time.Equal(hour(9)) {
			t.Errorf("record %d has number %d and time %v", i, e.Seq, e.Time)
		}
	}
	if e := events[1]; e.SHA256 != digestOf(body) || e.Image != 0 {
		t.Errorf("the record of the fetch is %+v", e)
	}
	if after, err := r.LogNext(ctx); next != int64(len(events)) || after != next || err != nil {
		t.Errorf("LogNext = %d, then %d, %v, want %d", next, after, err, len(events))
	}
	if err := r.Note(ctx, auditlog.Event{Kind: auditlog.Run}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Note, read-only: %v", err)
	}
}

// A change that fails leaves no record, and a record that is none no change.
func TestRecordsOfFailedChange(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	if err := w.SetPosts(noCommit(t), []Post{{ID: "a000", State: manifest.StateLive}}); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	testkit.Same(t, "records of a change that failed", []string{}, waiting(t, w))
	if err := w.SetCopy(ctx, Copy{Path: "/x"}, auditlog.Event{Kind: auditlog.Copy, Path: "/x"}); err == nil {
		t.Error("a path became a record")
	}
	copies, err := w.Copies(ctx)
	testkit.Same(t, "copies", []Copy(nil), copies, err)
}

// TestPublishInBatches publishes more records than one batch holds, more than once.
func TestPublishInBatches(t *testing.T) {
	w := loaded(t, numbered(1)...)
	testkit.OK(t, noSync(w))
	w.batch = 3
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprint("copy ", i))
		tell(t, w, i)
		if i > 9 && i%7 == 0 {
			testkit.OK(t, w.publish(t.Context()))
		}
		if left := len(waiting(t, w)); left >= w.batch {
			t.Errorf("%d records wait after %d were stored", left, i+1)
		}
	}
	testkit.OK(t, w.Close())
	testkit.Same(t, "log", want, logOf(t, w.Dir()))
}

// Stopped between the checkpoint and its note of it, publish leaves each record once to a reader.
func TestPublishedUnnoted(t *testing.T) {
	w := loaded(t, numbered(1)...)
	tell(t, w, 1)
	if err := w.publish(noCommit(t)); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	tell(t, w, 2)
	testkit.Same(t, "published and not", []string{"copy 1", "copy 2"}, append(story(logged(t, w)), waiting(t, w)...))
}

// What state.db knows of the log may be damaged: nothing is published then.
func TestDamagedQueue(t *testing.T) {
	for statement, want := range map[string]string{
		"UPDATE meta SET value = '{' WHERE key = 'log_head'": "the note log_head cannot be read",
		"DELETE FROM log_queue WHERE seq = 1":                "record 1 is missing",
		"UPDATE log_queue SET line = 'x' WHERE seq = 1":      "invalid character",
	} {
		w := loaded(t, numbered(1)...)
		tell(t, w, 0)
		testkit.OK(t, w.publish(t.Context()))
		tell(t, w, 1, 2)
		_, err := w.db.Exec(statement)
		testkit.OK(t, err)
		_, readErr := w.Unpublished(t.Context())
		for _, err := range []error{readErr, w.publish(t.Context()), w.Close()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", statement, err, want)
			}
		}
	}
}

func TestManyVerdictsAreSplit(t *testing.T) {
	w := loaded(t, numbered(250)...)
	var posts []Post
	for _, e := range numbered(250) {
		posts = append(posts, Post{ID: e.ID, State: manifest.StateLive, CheckedAt: hour(0)})
	}
	testkit.OK(t, w.SetPosts(t.Context(), posts))
	queue, err := w.Unpublished(t.Context())
	if err != nil || len(queue) != 3 || len(queue[0].Posts) != 100 || len(queue[2].Posts) != 50 {
		t.Errorf("%d records, %v", len(queue), err)
	}
}

// TestClockOfAGonePostRunsFromTheFirstSign follows the clock of a post that is gone and still has content here; a001
// never has content.
func TestClockOfAGonePostRunsFromTheFirstSign(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	image := func() { store(t, w, key("a000"), "body") }
	damaged := func() {
		testkit.OK(t, w.DropImage(ctx, key("a000"), Trouble{Outcome: manifest.Invalid, Reason: "damaged"}, false))
	}
	erased := func() { testkit.OK(t, w.Erase(ctx, "a000")) }
	for _, tt := range []struct {
		what                  string
		before                func()
		state                 manifest.PostState
		checked, absent, gone int64 // hours; 0 for never
	}{
		{"live", nil, manifest.StateLive, 1, 0, 0},
		{"live, with an image", image, manifest.StateLive, 2, 0, 0},
		{"absent once", nil, manifest.StateLive, 2, 3, 3},
		{"absent twice", nil, manifest.StateUnavailable, 4, 3, 3},
		{"live again", nil, manifest.StateLive, 5, 0, 0},
		{"removed", nil, manifest.StateRemoved, 6, 0, 6},
		{"deleted since", nil, manifest.StateDeleted, 7, 0, 6},
		{"deleted, and its image is damaged and dropped", damaged, manifest.StateDeleted, 7, 0, 0},
		{"deleted, with another image", image, manifest.StateDeleted, 8, 0, 8},
		{"erased", erased, manifest.StateDeleted, 8, 0, 0},
	} {
		if tt.before != nil {
			tt.before()
		}
		at := func(h int64) (when time.Time) {
			if h > 0 {
				when = hour(h)
			}
			return when
		}
		post := Post{ID: "a000", State: tt.state, CheckedAt: at(tt.checked), AbsentAt: at(tt.absent)}
		other := post
		other.ID = "a001"
		testkit.OK(t, w.SetPosts(ctx, []Post{post, other}))
		posts := collect(t, w.Posts(ctx))
		testkit.Same(t, tt.what, []time.Time{at(tt.gone), {}}, []time.Time{posts[0].GoneAt, posts[1].GoneAt})
	}
	// A copy can have the row of what is held back, also where nothing of it is here.
	for i, held := range []bool{true, true, false} {
		testkit.OK(t, w.SetPosts(ctx, []Post{{ID: "a001", State: manifest.StateDeleted, CheckedAt: hour(20 + int64(i)),
			Withheld: held}}))
		want := time.Time{}
		if held {
			want = hour(20)
		}
		testkit.Same(t, fmt.Sprint("held back ", held), want, collect(t, w.Posts(ctx))[1].GoneAt)
	}
}

func TestCopiesReturnWhatWasRegistered(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	c := Copy{Path: "/copy", Note: "the lab", Format: "folder", Made: hour(1),
		Files: []File{{Name: "x", SHA256: "d", Size: 3}},
		Rows:  []string{"a"}, Next: map[string]string{"x": "e"}}
	event := auditlog.Event{Kind: auditlog.Copy, Path: digestOf([]byte(c.Path)), Note: c.Note}
	testkit.OK(t, w.SetCopy(ctx, c, event))
	c.Open, c.Told = true, "asked the lab"
	testkit.OK(t, w.SetCopy(ctx, c), w.SetCopy(ctx, Copy{Path: "/another", Made: c.Made}))
	got, err := w.Copies(ctx)
	testkit.Same(t, "copies", []Copy{{Path: "/another", Made: c.Made}, c}, got, err)
	testkit.Same(t, "records", []string{"copy the lab"}, waiting(t, w))
}

// put replaces a file or folder by a copy of another.
func put(t *testing.T, from, to string) {
	t.Helper()
	testkit.OK(t, os.RemoveAll(to))
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		testkit.OK(t, os.CopyFS(to, os.DirFS(from)))
	} else if err == nil {
		testkit.OK(t, os.Link(from, to))
	}
}

// TestOlderStateTakesTombstonesFromTheLog puts parts of a workspace back from a backup. The next writer notes it, loses
// no record that is there, and takes the tombstones over that the log knows, and into the log those that state.db
// knows.
func TestOlderStateTakesTombstonesFromTheLog(t *testing.T) {
	buried := []Tombstone{stone("a001", manifest.StateDeleted, "author", 1),
		stone("a000", manifest.StateRemoved, "moderator", 1)}
	all := []string{"copy before", "tombstone a001:deleted:author a000:removed:moderator", "lifted a000::"}
	older := append(slices.Clone(all), "restored state", "tombstone a001:deleted:author a000:removed:moderator",
		"copy after")
	for _, tt := range []struct {
		name   string
		parts  []string
		kill   bool // the backup is of a killed writer, with a record that is not published
		stones int  // that there are afterwards
		want   []string
	}{
		{"nothing", nil, false, 1, append(slices.Clone(all), "copy after")},
		{"everything", []string{"state.db", "audit", "log.key"}, false, 0, []string{"copy before", "copy after"}},
		{"state.db", []string{"state.db"}, false, 2, older},
		{"state.db of a killed writer", []string{"state.db"}, true, 2, older},
		{"audit/", []string{"audit"}, false, 1,
			[]string{"copy before", "restored log", "tombstone a001:deleted:author", "copy after"}},
		{"the checkpoint", []string{"audit/checkpoint"}, false, 1,
			append(slices.Clone(all), "restored checkpoint", "copy after")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			w := loaded(t, numbered(2)...)
			tell(t, w, "before")
			if tt.kill {
				w.finish = nil
			}
			testkit.OK(t, w.Close())
			backup := t.TempDir()
			testkit.OK(t, os.CopyFS(backup, os.DirFS(w.Dir())))
			w = open(t, w.Dir())
			testkit.OK(t, w.AddTombstones(ctx, buried), w.LiftTombstones(ctx, digestOf(nil), "a000"), w.Close())
			for _, name := range tt.parts {
				put(t, filepath.Join(backup, name), filepath.Join(w.Dir(), name))
			}
			w = open(t, w.Dir())
			tell(t, w, "after")
			stones, err := w.Tombstones(ctx)
			if err != nil || len(stones) != tt.stones {
				t.Errorf("tombstones: %v, %v", stones, err)
			}
			testkit.OK(t, w.Close())
			testkit.Same(t, "the log", tt.want, logOf(t, w.Dir()))
			checkQuiet(t, w.Dir())
		})
	}
}

// checkQuiet asserts that opening and closing a workspace adds no record.
func checkQuiet(t *testing.T, dir string) {
	t.Helper()
	before := logOf(t, dir)
	testkit.OK(t, open(t, dir).Close())
	testkit.Same(t, "the log after a writer that did nothing", before, logOf(t, dir))
}

// TestLostCopies: a state.db of before a copy was registered does not hide it, from a reader either, which only looks.
func TestLostCopies(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	dir := w.Dir()
	testkit.OK(t, w.Close())
	older, err := os.ReadFile(filepath.Join(dir, stateName))
	testkit.OK(t, err)
	w = open(t, dir)
	c := Copy{Path: "/copy", Format: "parquet", Made: hour(1), Files: []File{{Name: "a"}}}
	testkit.OK(t, w.SetCopy(ctx, c, auditlog.Event{Kind: auditlog.Copy, Path: digestOf([]byte("/copy")),
		Format: "parquet",
		Time:   hour(1)}), w.Close())
	lost := func(o Options) (paths []string) {
		w, err := Open(ctx, dir, o)
		testkit.OK(t, err)
		list, err := w.LostCopies(ctx)
		testkit.OK(t, err, w.Close())
		for _, l := range list {
			paths = append(paths, l.Path)
		}
		return paths
	}
	testkit.Same(t, "with the state.db that has it", []string(nil), lost(Options{ReadOnly: true}))
	testkit.OK(t, os.WriteFile(filepath.Join(dir, stateName), older, 0o600))
	want := []string{digestOf([]byte("/copy"))}
	before := snapshot(t, dir)
	testkit.Same(t, "for a reader", want, lost(Options{ReadOnly: true}))
	testkit.Same(t, "what a reader leaves", before, snapshot(t, dir))
	testkit.Same(t, "for a writer", want, lost(Options{}))
	testkit.Same(t, "for a reader after it", want, lost(Options{ReadOnly: true}))
}

// TestForeignLogIsRefused gives a workspace the log of another one, or a damaged log, or takes its key away.
func TestForeignLogIsRefused(t *testing.T) {
	ctx := t.Context()
	made := func(note string) string {
		w := loaded(t, numbered(1)...)
		tell(t, w, note)
		testkit.OK(t, w.Close())
		return w.Dir()
	}
	var broken *auditlog.Broken
	t.Run("log of another workspace", func(t *testing.T) {
		dir, other := made("one"), made("two")
		put(t, filepath.Join(other, "audit"), filepath.Join(dir, "audit"))
		w := open(t, dir)
		tell(t, w, "three")
		if _, err := w.LogReader(ctx); !errors.As(err, &broken) || !strings.Contains(broken.What, "another key") {
			t.Errorf("LogReader: %v", err)
		}
		if err := w.Close(); !errors.As(err, &broken) {
			t.Errorf("Close: %v, want that the log is not published", err)
		}
		w = open(t, dir)
		testkit.Same(t, "records kept", []string{"copy three"}, waiting(t, w))
		w.finish = nil
		testkit.OK(t, os.RemoveAll(filepath.Join(dir, "audit")), w.Close(), open(t, dir).Close()) // what the error asks for
		testkit.Same(t, "log", []string{"restored log", "copy three"}, logOf(t, dir))
	})
	t.Run("log and key of another workspace", func(t *testing.T) {
		dir, other := made("one"), made("two")
		for _, name := range []string{"audit", "log.key"} {
			put(t, filepath.Join(other, name), filepath.Join(dir, name))
		}
		testkit.OK(t, open(t, dir).Close())
		testkit.Same(t, "log", []string{"copy two", "restored other_log"}, logOf(t, dir))
		checkQuiet(t, dir)
	})
	t.Run("key lost", func(t *testing.T) {
		dir := made("one")
		before, err := readOnly(t, dir).LogReader(ctx)
		testkit.OK(t, err, os.Remove(filepath.Join(dir, "log.key")))
		w := open(t, dir)
		w.finish = nil // killed before it published: the next one does not note it again
		testkit.OK(t, w.Close(), open(t, dir).Close())
		testkit.Same(t, "log", []string{"copy one", "restored key"}, logOf(t, dir))
		after, err := readOnly(t, dir).LogReader(ctx)
		if err != nil || after.Checkpoint().Key == before.Checkpoint().Key {
			t.Errorf("the key did not change: %v", err)
		}
		checkQuiet(t, dir)
	})
	t.Run("damaged", func(t *testing.T) {
		dir := made("one")
		name := filepath.Join(dir, "audit", "records.jsonl")
		whole, err := os.ReadFile(name)
		testkit.OK(t, err, os.WriteFile(name, whole[:len(whole)-5], 0o600))
		w := open(t, dir)
		tell(t, w, "two")
		if err := w.Close(); !errors.As(err, &broken) || broken.Record != 0 {
			t.Errorf("Close: %v", err)
		}
		if _, sealed, err := readOnly(t, dir).ReadSeal(ctx); sealed || err != nil {
			t.Errorf("sealed with a damaged log: %t, %v", sealed, err)
		}
		testkit.OK(t, os.WriteFile(name, whole, 0o600), open(t, dir).Close())
		testkit.Same(t, "log after it was mended", []string{"copy one", "copy two"}, logOf(t, dir))
	})
}

// TestSealKeepsDigests damages a file between two writers that do not write it: the second one's
// seal still has what it was.
func TestSealKeepsDigests(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	want, err := w.Replace(ctx, "dataset/x", text("whole"), nil)
	_, errY := w.Replace(ctx, "dataset/y", text(""), nil)
	testkit.OK(t, err, errY, w.Close(), os.WriteFile(filepath.Join(w.Dir(), "dataset", "x"), []byte("whale"), 0o600))
	w = open(t, w.Dir())
	if _, sealed, err := w.ReadSeal(ctx); sealed || err != nil {
		t.Errorf("sealed under a writer: %t, %v", sealed, err)
	}
	testkit.OK(t, w.RemoveFile(ctx, "dataset/y"), w.Close())
	seal, sealed, err := readOnly(t, w.Dir()).ReadSeal(ctx)
	if err != nil || !sealed || !slices.Contains(seal.Files, want) {
		t.Errorf("the seal has %+v, want %+v; %t, %v", seal.Files, want, sealed, err)
	}
	if slices.ContainsFunc(seal.Files, func(f File) bool {
		return f.Name == "dataset/y" || strings.HasPrefix(f.Name, "images/") || f.Name == "lock"
	}) {
		t.Errorf("the seal has files that it should not: %+v", seal.Files)
	}
}

// TestCheckFile: a file that no command left as it is, beside a state.db that is as sealed, is told from one that
// belongs to a state.db of another time, or to none that is known.
func TestCheckFile(t *testing.T) {
	change := func(dir string) error { return os.WriteFile(filepath.Join(dir, "ids.txt"), []byte("b"), 0o600) }
	for name, c := range map[string]struct {
		harm    func(dir string) error
		altered bool
	}{
		"as it was": {func(string) error { return nil }, false},
		"changed":   {change, true},
		"gone":      {func(dir string) error { return os.Remove(filepath.Join(dir, "ids.txt")) }, false},
		"without a seal": {func(dir string) error {
			return errors.Join(change(dir), os.Remove(filepath.Join(dir, sealName)))
		}, false},
		"with another state.db": {func(dir string) error {
			return errors.Join(change(dir), os.Rename(filepath.Join(dir, "older"), filepath.Join(dir, stateName)))
		}, false},
	} {
		ctx := t.Context()
		w := loaded(t, numbered(1)...)
		testkit.OK(t, w.Close())
		older, err := os.ReadFile(filepath.Join(w.Dir(), stateName))
		testkit.OK(t, err)
		w = open(t, w.Dir())
		_, err = w.Replace(ctx, "ids.txt", text("a"), nil)
		testkit.OK(t, err, w.Note(ctx, auditlog.Event{Kind: auditlog.Audit, Verdict: "pass"}),
			w.CheckFile(ctx, "ids.txt"), w.Close(), os.WriteFile(filepath.Join(w.Dir(), "older"), older, 0o600), c.harm(w.Dir()))
		for _, how := range []func(*testing.T, string) *Workspace{readOnly, open, open} {
			w := how(t, w.Dir())
			err := w.CheckFile(ctx, "ids.txt")
			if errors.As(err, new(*Altered)) != c.altered || !c.altered && err != nil {
				t.Errorf("%s, writing %t: %v", name, w.lock != nil, err)
			}
			testkit.OK(t, w.Close())
		}
	}
	w := loaded(t, numbered(1)...)
	testkit.OK(t, w.Close(), os.WriteFile(filepath.Join(w.Dir(), "ids.txt"), []byte("a"), 0o600))
	for range 2 { // a writer that is refused must not seal it
		w := open(t, w.Dir())
		if err := w.CheckFile(t.Context(), "ids.txt"); !errors.As(err, new(*Altered)) {
			t.Errorf("a file that somebody put there: %v", err)
		}
		testkit.OK(t, w.Close())
	}
}

func TestCheckStateFindsDamage(t *testing.T) {
	w := loaded(t, numbered(300)...)
	found, err := w.CheckState(t.Context())
	testkit.Same(t, "a whole database", []string(nil), found, err)
	_, err = w.db.Exec("PRAGMA foreign_keys = OFF; INSERT INTO trouble VALUES ('none', 0, '', 'gone', '', '', '', 0)")
	testkit.OK(t, err)
	found, err = w.CheckState(t.Context())
	testkit.Same(t, "a row without its entry", []string{"row 1 of trouble has no entry"}, found, err)
}

// TestAnyHistory does anything in any order, with a kill at any step: the log verifies, has every
// acknowledged record once and in order, and agrees with each checkpoint that there ever was.
//
// Not beside tests that start processes: between fork and exec those hold the locks of this one.
func TestAnyHistory(t *testing.T) {
	kills := 0
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "w")
		testkit.OK(r, err)
		dir = filepath.Join(dir, "w")
		var checkpoints [][]byte
		told, unsure := []string{}, map[string]bool{}
		for session := range rapid.IntRange(1, 3).Draw(r, "sessions") {
			left := rapid.IntRange(0, 80).Draw(r, "steps")
			ctx := hooked(t.Context(), func(string) error {
				left--
				if left < 0 {
					return errBoom
				}
				return nil
			})
			w, err := Open(ctx, dir, Options{})
			for i := range rapid.IntRange(0, 8).Draw(r, "operations") {
				if err != nil {
					break
				}
				testkit.OK(r, noSync(w))
				note := fmt.Sprintf("%d of %d", i, session)
				switch rapid.IntRange(0, 5).Draw(r, "operation") {
				case 0, 1:
					err = w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: note})
					if err == nil {
						told = append(told, note)
					} else {
						unsure[note] = true
					}
				case 2:
					err = w.publish(ctx)
				case 3:
					err = w.SetPosts(ctx, []Post{{ID: "a000", State: manifest.StateLive, CheckedAt: time.Unix(int64(1e9+i), 0)}})
				case 4:
					err = w.AddTombstones(ctx, []Tombstone{stone("a001", manifest.StateDeleted, "", 0)})
				case 5:
					err = w.Erase(ctx, "a000")
				}
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil { // as if killed then: nothing of the writer's own closing is done
				kills++
				if left >= 0 || !errors.Is(err, errBoom) {
					r.Fatal(err)
				}
				if w != nil {
					w.finish = nil
					w.Close()
				}
			}
			checkpoints = append(checkpoints, checkHistory(t, r, dir, checkpoints, nil, nil)...)
		}
		w, err := Open(t.Context(), dir, Options{})
		testkit.OK(r, err)
		testkit.OK(r, w.Close())
		checkHistory(t, r, dir, checkpoints, told, unsure)
	})
	if kills < 10 { // of 20 to 60 sessions when short
		t.Errorf("only %d kills", kills)
	}
}

// checkHistory verifies a log, against earlier checkpoints too, and returns its checkpoint. With told it
// wants each of these notes once and in order, and no other that is not unsure.
func checkHistory(t *testing.T, r *rapid.T, dir string, earlier [][]byte, told []string,
	unsure map[string]bool) [][]byte {
	ctx := t.Context()
	w, err := Open(ctx, dir, Options{ReadOnly: true})
	if errors.Is(err, ErrNoWorkspace) {
		return nil
	}
	testkit.OK(r, err)
	defer w.Close()
	log, err := w.LogReader(ctx)
	if errors.Is(err, auditlog.ErrNoLog) && len(told) == 0 {
		return nil
	}
	testkit.OK(r, err)
	testkit.OK(r, log.Verify(ctx))
	queue, err := w.Unpublished(ctx)
	if err != nil || len(queue) > 0 && queue[0].Seq != log.Size() {
		r.Fatalf("%d records published, and %+v are to be, %v", log.Size(), queue, err)
	}
	for _, c := range earlier {
		_, err := log.Since(ctx, c)
		testkit.OK(r, err)
	}
	got := []string{}
	for e, err := range log.Records(ctx, 0) {
		testkit.OK(r, err)
		if e.Kind == auditlog.Restored {
			r.Fatalf("record %d: %+v, and nothing was restored", e.Seq, e)
		}
		if e.Kind == auditlog.Copy && !unsure[e.Note] {
			got = append(got, e.Note)
		}
	}
	if told != nil && !slices.Equal(told, got) {
		r.Fatalf("acknowledged records: %q, want %q", got, told)
	}
	return [][]byte{log.Checkpoint().Signed}
}

// TestLogIsReadBesideAWriter reads the log while a writer goes on to add to it and to publish.
func TestLogIsReadBesideAWriter(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	testkit.OK(t, noSync(w))
	add := func() error {
		return errors.Join(w.Note(ctx, auditlog.Event{Kind: auditlog.Copy}), w.publish(ctx))
	}
	testkit.OK(t, add())
	r := readOnly(t, w.Dir())
	l, err := r.LogReader(ctx)
	testkit.OK(t, err)
	var g errgroup.Group
	over := make(chan struct{})
	g.Go(func() error {
		for {
			select {
			case <-over:
				return nil
			default:
				if err := add(); err != nil {
					return err
				}
			}
		}
	})
	for range 20 {
		_, err := r.Unpublished(ctx)
		if err := errors.Join(l.Verify(ctx), err); err != nil {
			t.Error(err)
		}
	}
	close(over)
	testkit.OK(t, g.Wait(), add(), l.Verify(ctx)) // of a log that was opened before the last records
}

// TestEndlessFilesAreNotReadWhole puts a file that has no end, or as good as none, in the place of each that is read
// whole.
func TestEndlessFilesAreNotReadWhole(t *testing.T) {
	w := loaded(t, numbered(1)...)
	tell(t, w, "x")
	testkit.OK(t, w.Close())
	for _, name := range []string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "log.key",
		"audit/seal.json"} {
		dir := t.TempDir()
		testkit.OK(t, os.CopyFS(dir, os.DirFS(w.Dir())), os.Truncate(filepath.Join(dir, name), 1<<40))
		r := readOnly(t, dir)
		l, err := r.LogReader(t.Context())
		if err == nil {
			err = l.Verify(t.Context())
		}
		_, _, sealErr := r.ReadSeal(t.Context())
		if inLog := strings.HasPrefix(name, "audit/") && name != sealName; inLog && err == nil ||
			name == sealName && sealErr == nil {
			t.Errorf("%s: %v, %v", name, err, sealErr)
		}
	}
}

// TestSealBesideLinks: a link in the workspace does not keep it from being sealed, wherever it leads.
func TestSealBesideLinks(t *testing.T) {
	for name, to := range map[string]string{"outside": t.TempDir(), "nowhere": "gone", "inside": "images"} {
		t.Run(name, func(t *testing.T) {
			w := loaded(t, numbered(1)...)
			testkit.OK(t, os.Symlink(to, filepath.Join(w.Dir(), "link")))
			testkit.OK(t, w.Close())
			if _, err := os.Stat(filepath.Join(w.Dir(), sealName)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSealAfterKill closes a writer that did not sweep what a killed one left: the workspace stays without a
// seal until one does.
func TestSealAfterKill(t *testing.T) {
	w := loaded(t, numbered(1)...)
	dir := w.Dir()
	w.finish = nil
	testkit.OK(t, w.Close(), os.WriteFile(filepath.Join(dir, durable.TempPrefix+"left"), nil, 0o600))
	for _, sweep := range []bool{false, true, false} {
		w := open(t, dir)
		if sweep {
			_, err := w.Sweep(t.Context(), nil)
			testkit.OK(t, err)
		}
		testkit.OK(t, w.Close())
		_, sealed, err := readOnly(t, dir).ReadSeal(t.Context())
		_, left := os.Stat(filepath.Join(dir, durable.TempPrefix+"left"))
		if err != nil || sealed == (left == nil) {
			t.Errorf("swept %t: sealed %t, an unfinished file: %v, %v", sweep, sealed, left, err)
		}
	}
	// A change that comes too late may be that of a file which has changed already.
	w = open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.SetResults(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a change after cancel: %v", err)
	}
	testkit.OK(t, w.Close())
	if _, sealed, err := readOnly(t, dir).ReadSeal(t.Context()); sealed || err != nil {
		t.Errorf("sealed after a change that did not come: %t, %v", sealed, err)
	}
}

// TestRestoredManyQueued gives state.db back what it had before more than a batch was published: the records are
// those of the log, and none is doubled.
func TestRestoredManyQueued(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	tell(t, w, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	w.batch = 3
	want := waiting(t, w)
	_, queue, err := w.readUnpublished(ctx, -1)
	testkit.OK(t, err, w.publish(ctx), w.change(ctx, "restore", func(ctx context.Context, t *tx) {
		for i, line := range queue {
			t.exec(ctx, "INSERT INTO log_queue (seq, line) VALUES (?, ?)", i, string(line))
		}
		t.exec(ctx, "DELETE FROM meta WHERE key = ?", metaLogHead)
	}), w.reconcile(ctx, false))
	tell(t, w, 10)
	testkit.OK(t, w.Close())
	testkit.Same(t, "log", append(want, "copy 10"), logOf(t, w.Dir()))
}

// TestInspectFindsWhatIsForeign reads the files of a workspace, and what is foreign in its database.
func TestInspectFindsWhatIsForeign(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	k := key("a000")
	img := describe([]byte("body"), "png")
	testkit.OK(t, w.StoreImage(ctx, k, []byte("body"), img))
	img.SHA256, img.PHash = digestOf([]byte("body")), 7
	testkit.OK(t, w.SetHash(ctx, k, img))
	testkit.OK(t, w.SetReadings(ctx, NewReading{Key: k,
		Reading: Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "text"}}))
	foreign, err := w.ForeignSchema(ctx)
	testkit.Same(t, "foreign tables of our own", []string(nil), foreign, err)
	const two = "meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);\nCREATE TABLE entry"
	_, err = w.db.ExecContext(ctx, "CREATE TABLE stash (x PRIMARY KEY); CREATE VIEW v AS SELECT 1; CREATE INDEX i ON post (state); CREATE TABLE `"+two+"` (x)")
	testkit.OK(t, err)
	foreign, err = w.ForeignSchema(ctx)
	testkit.Same(t, "foreign tables", []string{"table stash", "view v", "index i", "table " + two}, foreign, err)
	testkit.OK(t, w.Close())
	files, err := Open(ctx, w.Dir(), Options{ReadOnly: true, FilesOnly: true})
	testkit.OK(t, err)
	defer files.Close()
	var names []string
	for _, f := range collect(t, files.Walk(ctx, ".")) {
		names = append(names, f.Name)
	}
	testkit.Same(t, "files", []string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "audit/seal.json",
		"images/a0/a000.png", "lock",
		"log.key", "state.db"}, names)
	if _, err := Open(ctx, filepath.Join(w.Dir(), "none"), Options{ReadOnly: true, FilesOnly: true}); err == nil {
		t.Error("a folder that is not there was opened")
	}
}

// TestStatementsThatWereCutOff: wherever the keeping of a statement is cut off, the log is whole.
func TestStatementsThatWereCutOff(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	dir := w.Dir()
	store(t, w, key("a000"), "one")
	testkit.OK(t, w.Close())
	body := []byte("{}\n")
	name := filepath.Join(dir, "audit", auditlog.StatementName(digestOf(body)))
	for _, cut := range []string{"", name + ".sig", name} {
		w = open(t, dir)
		testkit.OK(t, w.KeepStatement(ctx, digestOf(body), body, []byte("signature")), w.Close())
		if cut != "" {
			testkit.OK(t, os.Remove(name+".sig"))
		}
		if cut == name {
			testkit.OK(t, os.Remove(name))
		}
		w = open(t, dir)
		log, err := w.LogReader(ctx)
		testkit.OK(t, err, log.Verify(ctx))
		empty, err := w.EmptyFolders(ctx)
		testkit.Same(t, "empty folders", 0, len(empty), err)
		testkit.OK(t, w.Close())
	}
}
