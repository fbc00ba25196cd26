package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/durable"
)

// logged returns the records that audit/ holds, after Log.Verify.
func logged(t *testing.T, w *Workspace) []auditlog.Event {
	t.Helper()
	log, err := w.LogReader(t.Context())
	if errors.Is(err, auditlog.ErrNoLog) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return collect(t, log.Records(t.Context(), 0))
}

// story tells records in short: kind, verdict, posts.
func story(events []auditlog.Event) []string {
	out := []string{}
	for _, e := range events {
		text := string(e.Kind)
		for _, part := range []string{e.Phase, e.Verdict, e.Note} {
			if part != "" {
				text += " " + part
			}
		}
		for _, p := range e.Posts {
			text += fmt.Sprintf(" %s:%s:%s", p.ID, p.State, p.Reason)
		}
		out = append(out, text)
	}
	return out
}

func closed(t *testing.T, w *Workspace) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRecords does one of everything that is told to the log.
func TestRecords(t *testing.T) {
	ctx := t.Context()
	at := func(h int64) time.Time { return time.Unix(1.7e9+h*3600, 0).UTC() }
	dir := filepath.Join(t.TempDir(), "w")
	w := open(t, dir, Options{})
	w.now = func() time.Time { return at(9) }
	k := func(id string) manifest.Key { return manifest.Key{ID: manifest.PostID(id)} }
	live := Post{ID: "a000", State: manifest.StateLive, CheckedAt: at(1), LiveAt: at(1)}
	gone := Post{ID: "a001", State: manifest.StateRemoved, Reason: "moderator", CheckedAt: at(1), Withheld: true}
	absent := live
	absent.AbsentAt = at(2)
	odd := Post{ID: "a002", State: manifest.StateRemoved, Reason: "By A Name", CheckedAt: at(1)}
	confirmed := gone
	confirmed.Withheld = false
	stone := Tombstone{Tombstone: manifest.Tombstone{ID: "a001", State: manifest.StateRemoved, Time: at(1)}, Reason: "moderator"}
	body := []byte("body")
	for i, do := range []func() error{
		func() error { return w.Load(ctx, binding("1"), seq(numbered(4), nil), nil) },
		func() error { return w.SetPosts(ctx, []Post{live, gone}) },
		func() error { return w.SetPosts(ctx, []Post{live, gone}) }, // no answer came: nothing new
		func() error { return w.StoreImage(ctx, k("a000"), body, describe(body, "png")) },
		func() error { return w.SetPosts(ctx, []Post{live}) }, // seen again, in the same second
		func() error { return w.SetPosts(ctx, []Post{absent}) },
		func() error { return w.AddTombstones(ctx, []Tombstone{stone}) },
		func() error { return w.AddTombstones(ctx, []Tombstone{stone}) },
		func() error { return w.SetPosts(ctx, []Post{confirmed}) },
		func() error { return w.SetReadmitted(ctx, true, "a001", "a000") },
		func() error { return w.SetReadmitted(ctx, true, "a001") },
		func() error { return w.SetReadmitted(ctx, false, "a001") },
		func() error { return w.LiftTombstones(ctx, digestOf(body), "a001", "a003") },
		func() error { return w.LiftTombstones(ctx, digestOf(body), "a001") },
		func() error { return w.Erase(ctx, "a001") },
		func() error { return w.SetPosts(ctx, []Post{odd}) },
		func() error { return w.Note(ctx, auditlog.Event{Kind: auditlog.Run, Phase: auditlog.Ended}) },
		func() error { return w.Load(ctx, binding("2"), seq(numbered(4)[1:], nil), nil) }, // a000 left
	} {
		if err := do(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want := []string{"verdicts a000:live: a001:removed:moderator", "fetch a000::", "verdicts a000:live:", "verdicts a000:unknown:absent_once",
		"tombstone a001:removed:moderator", "readmitted a001::", "readmitted revoked a001::", "lifted a001::", "erased a001:removed:",
		"verdicts a002:removed:other", "run ended", "erased left_manifest a000::"}
	queue, err := w.Unpublished(ctx)
	if diff := cmp.Diff(want, story(queue)); diff != "" || err != nil {
		t.Errorf("records to be published: %v (-want +got)\n%s", err, diff)
	}
	closed(t, w)
	r := open(t, dir, Options{ReadOnly: true})
	events := logged(t, r)
	if diff := cmp.Diff(queue, events); diff != "" {
		t.Errorf("published (-stored +published)\n%s", diff)
	}
	for i, e := range events {
		if e.Seq != int64(i) || !e.Time.Equal(at(9)) {
			t.Errorf("record %d has number %d and time %v", i, e.Seq, e.Time)
		}
	}
	if e := events[1]; e.SHA256 != digestOf(body) || e.Image != 0 {
		t.Errorf("the record of the fetch is %+v", e)
	}
	if err := r.Note(ctx, auditlog.Event{Kind: auditlog.Run}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Note, read-only: %v", err)
	}
}

// TestRecordsOfFailedChange holds that a change that fails leaves no record, and a record that is none no change.
func TestRecordsOfFailedChange(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	boom := errors.New("boom")
	failing := hooked(ctx, func(step string) error {
		if step == "commit" {
			return boom
		}
		return nil
	})
	if err := w.SetPosts(failing, []Post{{ID: "a000", State: manifest.StateLive}}); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if queue, err := w.Unpublished(ctx); len(queue) > 0 || err != nil {
		t.Errorf("records of a change that failed: %v, %v", queue, err)
	}
	if err := w.SetCopy(ctx, Copy{Path: "/x"}, auditlog.Event{Kind: auditlog.Copy, Path: "/x"}); err == nil {
		t.Error("a path became a record")
	}
	if copies, err := w.Copies(ctx); len(copies) > 0 || err != nil {
		t.Errorf("copies: %v, %v", copies, err)
	}
}

// TestPublishInBatches publishes more records than one batch holds, more than once.
func TestPublishInBatches(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	if err := noSync(w); err != nil {
		t.Fatal(err)
	}
	w.batch = 3
	var want []string
	note := func(i int) error {
		return w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: fmt.Sprint(i)})
	}
	for i := range 40 {
		want = append(want, fmt.Sprint("copy ", i))
	}
	for i := range 10 {
		if err := note(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := 10; i < 40; i++ {
		if err := note(i); err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			if err := w.publish(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed(t, w)
	if diff := cmp.Diff(want, story(logged(t, open(t, w.Dir(), Options{ReadOnly: true})))); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}

// TestPublishedUnnoted stops publish between the checkpoint and its note of it: a reader sees each record once.
func TestPublishedUnnoted(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: "1"}); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	failing := hooked(ctx, func(step string) error {
		if step == "commit" {
			return boom
		}
		return nil
	})
	if err := w.publish(failing); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: "2"}); err != nil {
		t.Fatal(err)
	}
	queue, err := w.Unpublished(ctx)
	if diff := cmp.Diff([]string{"copy 1", "copy 2"}, append(story(logged(t, w)), story(queue)...)); diff != "" || err != nil {
		t.Errorf("published and not: %v\n%s", err, diff)
	}
}

func TestManyVerdictsAreSplit(t *testing.T) {
	w := loaded(t, numbered(250)...)
	var posts []Post
	for _, e := range numbered(250) {
		posts = append(posts, Post{ID: e.ID, State: manifest.StateLive, CheckedAt: time.Unix(1e9, 0)})
	}
	if err := w.SetPosts(t.Context(), posts); err != nil {
		t.Fatal(err)
	}
	queue, err := w.Unpublished(t.Context())
	if err != nil || len(queue) != 3 || len(queue[0].Posts) != 100 || len(queue[2].Posts) != 50 {
		t.Errorf("%d records, %v", len(queue), err)
	}
}

// TestGoneAt follows the clock of a post that is gone and still has content here.
func TestGoneAt(t *testing.T) {
	ctx := t.Context()
	at := func(h int64) time.Time { return time.Unix(1.7e9+h*3600, 0).UTC() }
	w := loaded(t, numbered(2)...)
	k := manifest.Key{ID: "a000"}
	is := func(what string, want time.Time) {
		t.Helper()
		for _, p := range collect(t, w.Posts(ctx)) {
			if p.ID == "a000" && !p.GoneAt.Equal(want) {
				t.Errorf("%s: gone since %v, want %v", what, p.GoneAt, want)
			}
			if p.ID == "a001" && !p.GoneAt.IsZero() {
				t.Errorf("%s: a001 has no content and is gone since %v", what, p.GoneAt)
			}
		}
	}
	set := func(p Post) {
		t.Helper()
		p.ID = "a000"
		other := p
		other.ID = "a001"
		if err := w.SetPosts(ctx, []Post{p, other}); err != nil {
			t.Fatal(err)
		}
	}
	set(Post{State: manifest.StateLive, CheckedAt: at(1)})
	store(t, w, k, "body")
	set(Post{State: manifest.StateLive, CheckedAt: at(2)})
	is("live", time.Time{})
	set(Post{State: manifest.StateLive, CheckedAt: at(2), AbsentAt: at(3)})
	is("absent once", at(3))
	set(Post{State: manifest.StateUnavailable, CheckedAt: at(4), AbsentAt: at(3)})
	is("absent twice", at(3))
	set(Post{State: manifest.StateLive, CheckedAt: at(5)})
	is("live again", time.Time{})
	set(Post{State: manifest.StateRemoved, CheckedAt: at(6), Withheld: true})
	is("removed and withheld", at(6))
	set(Post{State: manifest.StateDeleted, CheckedAt: at(7), Withheld: true})
	is("deleted since", at(6))
	if err := w.SetTrouble(ctx, k, Trouble{Outcome: manifest.Invalid, Reason: "damaged"}); err != nil {
		t.Fatal(err)
	}
	set(Post{State: manifest.StateDeleted, CheckedAt: at(7), Withheld: true})
	is("deleted, and its image is damaged and dropped", time.Time{})
	store(t, w, k, "body")
	set(Post{State: manifest.StateDeleted, CheckedAt: at(8), Withheld: true})
	is("deleted, with another image", at(8))
	if err := w.Erase(ctx, "a000"); err != nil {
		t.Fatal(err)
	}
	is("erased", time.Time{})
	set(Post{State: manifest.StateDeleted, CheckedAt: at(8)})
	is("asked again", time.Time{})
}

func TestCopies(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	c := Copy{Path: "/copy", Note: "the lab", Format: "folder", Made: time.Unix(1e9, 0).UTC(), Files: []File{{Name: "x", SHA256: "d", Size: 3}}}
	event := auditlog.Event{Kind: auditlog.Copy, Path: digestOf([]byte(c.Path)), Note: c.Note}
	if err := w.SetCopy(ctx, c, event); err != nil {
		t.Fatal(err)
	}
	c.Open, c.Told = true, "asked the lab"
	if err := errors.Join(w.SetCopy(ctx, c), w.SetCopy(ctx, Copy{Path: "/another", Made: c.Made})); err != nil {
		t.Fatal(err)
	}
	got, err := w.Copies(ctx)
	if diff := cmp.Diff([]Copy{{Path: "/another", Made: c.Made}, c}, got); diff != "" || err != nil {
		t.Errorf("copies: %v\n%s", err, diff)
	}
	queue, err := w.Unpublished(ctx)
	if err != nil || len(queue) != 1 || queue[0].Kind != auditlog.Copy {
		t.Errorf("records: %v, %v", queue, err)
	}
	for _, path := range []string{"", "copy", "/copy/", "/a/../copy"} {
		if err := w.SetCopy(ctx, Copy{Path: path}); err == nil {
			t.Errorf("a copy at %q was registered", path)
		}
	}
}

// save and restore copy files of a closed workspace.
func save(t *testing.T, dir string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range names {
		put(t, filepath.Join(dir, name), filepath.Join(to, name))
	}
	return to
}

func put(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else if err == nil {
		var b []byte
		if b, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestored puts parts of a workspace back from a backup. The next writer notes it, loses no record that
// is there, and takes the tombstones over that the log knows.
func TestRestored(t *testing.T) {
	stone := Tombstone{Tombstone: manifest.Tombstone{ID: "a001", State: manifest.StateDeleted, Time: time.Unix(1e9, 0).UTC()}, Reason: "author"}
	lift := Tombstone{Tombstone: manifest.Tombstone{ID: "a000", State: manifest.StateRemoved, Time: time.Unix(1e9, 0).UTC()}, Reason: "moderator"}
	all := []string{"before", "tombstone a001:deleted:author a000:removed:moderator", "lifted a000::"}
	tests := []struct {
		name  string
		parts []string
		kill  bool // the backup is of a killed writer, with a record that is not published
		want  []string
	}{
		{"nothing", nil, false, append(slices.Clone(all), "after")},
		{"everything", []string{"state.db", "audit", "log.key"}, false, []string{"before", "after"}},
		{"state.db", []string{"state.db"}, false, append(slices.Clone(all), "restored state", "tombstone a001:deleted:author", "after")},
		{"state.db of a killed writer", []string{"state.db"}, true,
			append(slices.Clone(all), "restored state", "tombstone a001:deleted:author", "after")},
		{"audit/", []string{"audit"}, false, []string{"before", "restored log", "after"}},
		{"the checkpoint", []string{"audit/checkpoint"}, false, append(slices.Clone(all), "restored checkpoint", "after")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			w := loaded(t, numbered(2)...)
			dir := w.Dir()
			told := func(w *Workspace, what string) {
				t.Helper()
				if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: what}); err != nil {
					t.Fatal(err)
				}
			}
			told(w, "before")
			if tt.kill {
				w.finish = nil
			}
			closed(t, w)
			backup := save(t, dir, "state.db", "audit", "log.key")
			w = open(t, dir, Options{})
			if err := errors.Join(w.AddTombstones(ctx, []Tombstone{stone, lift}), w.LiftTombstones(ctx, digestOf(nil), "a000")); err != nil {
				t.Fatal(err)
			}
			closed(t, w)
			for _, name := range tt.parts {
				put(t, filepath.Join(backup, name), filepath.Join(dir, name))
			}
			w = open(t, dir, Options{})
			told(w, "after")
			stones, err := w.Tombstones(ctx)
			if err != nil || len(stones) != 1 && tt.name != "everything" {
				t.Errorf("tombstones: %v, %v", stones, err)
			}
			closed(t, w)
			got := story(logged(t, open(t, dir, Options{ReadOnly: true})))
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "copy ")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the log (-want +got)\n%s", diff)
			}
			checkQuiet(t, dir)
		})
	}
}

// checkQuiet asserts that opening and closing a workspace adds no record.
func checkQuiet(t *testing.T, dir string) {
	t.Helper()
	before := len(logged(t, open(t, dir, Options{ReadOnly: true})))
	w := open(t, dir, Options{})
	closed(t, w)
	if after := len(logged(t, open(t, dir, Options{ReadOnly: true}))); after != before {
		t.Errorf("a writer that did nothing added %d records", after-before)
	}
}

// TestForeignLog gives a workspace the log of another one, or a rewritten log, or takes its key or its log away.
func TestForeignLog(t *testing.T) {
	ctx := t.Context()
	note := func(w *Workspace, what string) {
		t.Helper()
		if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: what}); err != nil {
			t.Fatal(err)
		}
	}
	make := func(what string) string {
		w := loaded(t, numbered(1)...)
		note(w, what)
		closed(t, w)
		return w.Dir()
	}
	t.Run("log of another workspace", func(t *testing.T) {
		dir, other := make("one"), make("two")
		put(t, filepath.Join(other, "audit"), filepath.Join(dir, "audit"))
		w := open(t, dir, Options{})
		note(w, "three")
		var broken *auditlog.Broken
		if _, err := w.LogReader(ctx); !errors.As(err, &broken) || !strings.Contains(broken.What, "another key") {
			t.Errorf("LogReader: %v", err)
		}
		if err := w.Close(); !errors.As(err, &broken) {
			t.Errorf("Close: %v, want that the log is not published", err)
		}
		w = open(t, dir, Options{})
		if queue, err := w.Unpublished(ctx); err != nil || len(queue) != 1 {
			t.Errorf("records kept: %v, %v", queue, err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "audit")); err != nil { // what the error asks for
			t.Fatal(err)
		}
		w.finish = nil
		closed(t, w)
		closed(t, open(t, dir, Options{}))
		if diff := cmp.Diff([]string{"restored log", "copy three"}, story(logged(t, open(t, dir, Options{ReadOnly: true})))); diff != "" {
			t.Errorf("log\n%s", diff)
		}
	})
	t.Run("log and key of another workspace", func(t *testing.T) {
		dir, other := make("one"), make("two")
		for _, name := range []string{"audit", "log.key"} {
			put(t, filepath.Join(other, name), filepath.Join(dir, name))
		}
		closed(t, open(t, dir, Options{}))
		got := story(logged(t, open(t, dir, Options{ReadOnly: true})))
		if diff := cmp.Diff([]string{"copy two", "restored other_log"}, got); diff != "" {
			t.Errorf("log\n%s", diff)
		}
		checkQuiet(t, dir)
	})
	t.Run("key lost", func(t *testing.T) {
		dir := make("one")
		old := open(t, dir, Options{ReadOnly: true})
		before, err := old.LogReader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "log.key")); err != nil {
			t.Fatal(err)
		}
		closed(t, open(t, dir, Options{}))
		r := open(t, dir, Options{ReadOnly: true})
		if diff := cmp.Diff([]string{"copy one", "restored key"}, story(logged(t, r))); diff != "" {
			t.Errorf("log\n%s", diff)
		}
		after, err := r.LogReader(ctx)
		if err != nil || after.Checkpoint().Key == before.Checkpoint().Key {
			t.Errorf("the key did not change: %v", err)
		}
		checkQuiet(t, dir)
	})
	t.Run("damaged", func(t *testing.T) {
		dir := make("one")
		name := filepath.Join(dir, "audit", "records.jsonl")
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, whole[:len(whole)-5], 0o600); err != nil {
			t.Fatal(err)
		}
		w := open(t, dir, Options{})
		note(w, "two")
		var broken *auditlog.Broken
		if err := w.Close(); !errors.As(err, &broken) || broken.Record != 0 {
			t.Errorf("Close: %v", err)
		}
		r := open(t, dir, Options{ReadOnly: true})
		if _, sealed, err := r.ReadSeal(ctx); sealed || err != nil {
			t.Errorf("sealed with a damaged log: %t, %v", sealed, err)
		}
		r.Close()
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		closed(t, open(t, dir, Options{}))
		if diff := cmp.Diff([]string{"copy one", "copy two"}, story(logged(t, open(t, dir, Options{ReadOnly: true})))); diff != "" {
			t.Errorf("log after it was mended\n%s", diff)
		}
	})
}

// TestSealKeepsDigests damages a file between two writers that do not write it: the second one's
// seal still has what it was.
func TestSealKeepsDigests(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	want, err := w.Replace(ctx, "dataset/x", func(f io.Writer) error { _, err := io.WriteString(f, "whole"); return err })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Replace(ctx, "dataset/y", func(f io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	if err := os.WriteFile(filepath.Join(w.Dir(), "dataset", "x"), []byte("whale"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = open(t, w.Dir(), Options{})
	if _, sealed, err := w.ReadSeal(ctx); sealed || err != nil {
		t.Errorf("sealed under a writer: %t, %v", sealed, err)
	}
	if err := w.RemoveFile(ctx, "dataset/y"); err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	seal, sealed, err := open(t, w.Dir(), Options{ReadOnly: true}).ReadSeal(ctx)
	if err != nil || !sealed {
		t.Fatal(sealed, err)
	}
	if !slices.Contains(seal.Files, want) {
		t.Errorf("the seal has %+v, want %+v", seal.Files, want)
	}
	if slices.ContainsFunc(seal.Files, func(f File) bool {
		return f.Name == "dataset/y" || strings.HasPrefix(f.Name, "images/") || f.Name == "lock"
	}) {
		t.Errorf("the seal has files that it should not: %+v", seal.Files)
	}
}

func TestCheckState(t *testing.T) {
	w := loaded(t, numbered(300)...)
	if found, err := w.CheckState(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("a whole database: %q, %v", found, err)
	}
	if _, err := w.db.Exec("PRAGMA foreign_keys = OFF; INSERT INTO trouble VALUES ('none', 0, '', 'gone', '', '')"); err != nil {
		t.Fatal(err)
	}
	if found, err := w.CheckState(t.Context()); len(found) != 1 || err != nil {
		t.Errorf("a row without its entry: %q, %v", found, err)
	}
}

// TestAnyHistory does anything in any order, with a kill at any step: the log verifies, has every
// acknowledged record once and in order, and agrees with each checkpoint that there ever was.
//
// Not beside tests that start processes: between fork and exec those hold the locks of this one.
func TestAnyHistory(t *testing.T) {
	kills := 0
	rapid.Check(t, func(r *rapid.T) {
		ctx := t.Context()
		dir, err := os.MkdirTemp(t.TempDir(), "w")
		if err != nil {
			r.Fatal(err)
		}
		dir = filepath.Join(dir, "w")
		var checkpoints [][]byte
		var told []string
		unsure := map[string]bool{}
		for session := range rapid.IntRange(1, 3).Draw(r, "sessions") {
			left := rapid.IntRange(0, 120).Draw(r, "steps")
			dead := false
			ctx := hooked(ctx, func(string) error {
				if left--; left < 0 {
					dead = true
					return errors.New("killed")
				}
				return nil
			})
			w, err := Open(ctx, dir, Options{})
			if err != nil {
				if !dead {
					r.Fatal(err)
				}
				kills++
				continue
			}
			if err := noSync(w); err != nil {
				r.Fatal(err)
			}
			for i := range rapid.IntRange(0, 8).Draw(r, "operations") {
				note := fmt.Sprintf("%d of %d", i, session)
				var err error
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
					err = w.AddTombstones(ctx, []Tombstone{{Tombstone: manifest.Tombstone{ID: "a001", State: manifest.StateDeleted}}})
				case 5:
					err = w.Erase(ctx, "a000")
				}
				if err != nil && !dead {
					r.Fatal(err)
				}
				if dead {
					break
				}
			}
			if !dead {
				if err := w.Close(); err != nil && !dead {
					r.Fatal(err)
				}
			}
			if dead {
				kills++
				w.finish = nil
				w.Close()
			}
			checkpoints = append(checkpoints, checkHistory(t, r, dir, checkpoints, nil, nil)...)
		}
		w, err := Open(ctx, dir, Options{})
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			r.Fatal(err)
		}
		checkHistory(t, r, dir, checkpoints, told, unsure)
	})
	if kills < 20 {
		t.Errorf("only %d kills", kills)
	}
}

// checkHistory verifies a log, against earlier checkpoints too, and returns its checkpoint. With told it
// wants each of these notes once and in order, and no other that is not unsure.
func checkHistory(t *testing.T, r *rapid.T, dir string, earlier [][]byte, told []string, unsure map[string]bool) [][]byte {
	w, err := Open(t.Context(), dir, Options{ReadOnly: true})
	if errors.Is(err, ErrNoWorkspace) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	defer w.Close()
	log, err := w.LogReader(t.Context())
	if errors.Is(err, auditlog.ErrNoLog) && len(told) == 0 {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	if err := log.Verify(t.Context()); err != nil {
		r.Fatal(err)
	}
	queue, err := w.Unpublished(t.Context())
	if err != nil || len(queue) > 0 && queue[0].Seq != log.Size() {
		r.Fatalf("%d records published, and %+v are to be, %v", log.Size(), queue, err)
	}
	for _, c := range earlier {
		if _, err := log.Since(t.Context(), c); err != nil {
			r.Fatal(err)
		}
	}
	var got []string
	for e, err := range log.Records(t.Context(), 0) {
		if err != nil {
			r.Fatal(err)
		}
		if e.Kind == auditlog.Restored {
			r.Fatalf("record %d: %+v, and nothing was restored", e.Seq, e)
		}
		if e.Kind == auditlog.Copy && !unsure[e.Note] {
			got = append(got, e.Note)
		}
	}
	if told != nil {
		if diff := cmp.Diff(told, got); diff != "" {
			r.Fatalf("acknowledged records (-want +got)\n%s", diff)
		}
	}
	return [][]byte{log.Checkpoint().Signed}
}

// TestReadBesideWriter reads the log while a writer goes on to add to it and to publish.
func TestReadBesideWriter(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	if err := noSync(w); err != nil {
		t.Fatal(err)
	}
	add := func() error {
		return errors.Join(w.Note(ctx, auditlog.Event{Kind: auditlog.Copy}), w.publish(ctx))
	}
	if err := add(); err != nil {
		t.Fatal(err)
	}
	r := open(t, w.Dir(), Options{ReadOnly: true})
	l, err := r.LogReader(ctx)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := l.Verify(ctx); err != nil {
			t.Error(err)
		}
		if _, err := r.Unpublished(ctx); err != nil {
			t.Error(err)
		}
	}
	close(over)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if err := add(); err != nil {
		t.Error(err)
	}
	if err := l.Verify(ctx); err != nil {
		t.Errorf("of a log that was opened before the last records: %v", err)
	}
}

// TestLargeFiles puts a file that has no end, or as good as none, in the place of each that is read whole.
func TestLargeFiles(t *testing.T) {
	for _, name := range []string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "log.key", "audit/seal.json"} {
		w := loaded(t, numbered(1)...)
		if err := w.Note(t.Context(), auditlog.Event{Kind: auditlog.Copy}); err != nil {
			t.Fatal(err)
		}
		closed(t, w)
		if err := os.Truncate(filepath.Join(w.Dir(), name), 1<<40); err != nil {
			t.Fatal(err)
		}
		r := open(t, w.Dir(), Options{ReadOnly: true})
		l, err := r.LogReader(t.Context())
		if err == nil {
			err = l.Verify(t.Context())
		}
		_, _, sealErr := r.ReadSeal(t.Context())
		if inLog := strings.HasPrefix(name, "audit/") && name != sealName; inLog && err == nil || name == sealName && sealErr == nil {
			t.Errorf("%s: %v, %v", name, err, sealErr)
		}
	}
}

// TestSealAfterKill closes a writer that did not sweep what a killed one left: the workspace stays without a
// seal until one does.
func TestSealAfterKill(t *testing.T) {
	w := loaded(t, numbered(1)...)
	dir := w.Dir()
	w.finish = nil
	closed(t, w)
	if err := os.WriteFile(filepath.Join(dir, durable.TempPrefix+"left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sweep := range []bool{false, true, false} {
		w := open(t, dir, Options{})
		if sweep {
			if _, err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, w)
		r := open(t, dir, Options{ReadOnly: true})
		_, sealed, err := r.ReadSeal(t.Context())
		_, left := os.Stat(filepath.Join(dir, durable.TempPrefix+"left"))
		if err != nil || sealed == (left == nil) {
			t.Errorf("swept %t: sealed %t, an unfinished file: %v, %v", sweep, sealed, left, err)
		}
	}
}

// TestRestoredManyQueued gives state.db back what it had before more than a batch was published: the records are
// those of the log, and none is doubled.
func TestRestoredManyQueued(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	w.batch = 3
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint("copy ", i))
		if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, queue, err := w.readUnpublished(ctx, -1)
	if err := errors.Join(err, w.publish(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := w.change(ctx, "restore", func(t *tx) {
		for i, line := range queue {
			t.exec("INSERT INTO log_queue (seq, line) VALUES (?, ?)", i, string(line))
		}
		t.exec("DELETE FROM meta WHERE key = ?", metaLogHead)
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.reconcile(ctx), w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: "10"})); err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	if diff := cmp.Diff(append(want, "copy 10"), story(logged(t, open(t, w.Dir(), Options{ReadOnly: true})))); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}
