package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/manifest"
)

// TestMain lets the test binary stand in for another run of the program.
func TestMain(m *testing.M) {
	if name := os.Getenv("WORKSPACE_TEST_CHILD"); name != "" {
		if err := children[name](os.Getenv("WORKSPACE_TEST_DIR"), os.Getenv("WORKSPACE_TEST_STEP")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(dir, step string) error{
	"hold":  holdChild,
	"crash": crashChild,
	"hot":   hotJournalChild,
}

func child(t *testing.T, name, dir, step string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "WORKSPACE_TEST_CHILD="+name, "WORKSPACE_TEST_DIR="+dir, "WORKSPACE_TEST_STEP="+step)
	return c
}

// hooked returns a context whose steps call f first.
func hooked(ctx context.Context, f func(step string) error) context.Context {
	return context.WithValue(ctx, durable.HookKey{}, func(step, _ string) error { return f(step) })
}

func open(t *testing.T, dir string) *Workspace { t.Helper(); return openAs(t, dir, Options{}) }

func readOnly(t *testing.T, dir string) *Workspace {
	t.Helper()
	return openAs(t, dir, Options{ReadOnly: true})
}

func openAs(t *testing.T, dir string, o Options) *Workspace {
	t.Helper()
	w, err := Open(t.Context(), dir, o)
	testkit.OK(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func files(t *testing.T, w *Workspace, under string) []string {
	t.Helper()
	names, err := w.Files(t.Context(), under)
	testkit.OK(t, err)
	return names
}

func text(s string) func(io.Writer) error {
	return func(f io.Writer) error { _, err := io.WriteString(f, s); return err }
}

func key(id string) manifest.Key { return manifest.Key{ID: manifest.PostID(id)} }

// loaded opens a new workspace that holds entries.
func loaded(t *testing.T, entries ...manifest.Entry) *Workspace {
	t.Helper()
	w := open(t, filepath.Join(t.TempDir(), "w"))
	testkit.OK(t, w.Load(t.Context(), binding("1"), seq(entries, nil), nil))
	return w
}

func binding(digest string) Binding {
	return Binding{Release: "figsim", ReleaseDigest: "r" + digest, ManifestDigest: "m" + digest, Splits: []string{"train"},
		Schema: manifest.Schema{Name: "s", Categories: []manifest.Category{{Name: "c", Kind: manifest.Multi,
			Labels: []manifest.Label{{Code: "A", Name: "Alpha"}}}}}}
}

func entry(ordinal int, id string, image int) manifest.Entry {
	return manifest.Entry{Key: manifest.Key{ID: manifest.PostID(id), Image: image}, Ordinal: ordinal, Line: ordinal + 2,
		Split: "train", Labels: [][]int{{ordinal}, {}, nil}}
}

// numbered makes n entries of n posts.
func numbered(n int) []manifest.Entry {
	var es []manifest.Entry
	for i := range n {
		es = append(es, entry(i, fmt.Sprintf("a%03d", i), 0))
	}
	return es
}

func seq[T any](items []T, last error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
		if last != nil {
			var zero T
			yield(zero, last)
		}
	}
}

func collect[T any](t *testing.T, s iter.Seq2[T, error]) []T {
	t.Helper()
	var items []T
	for item, err := range s {
		testkit.OK(t, err)
		items = append(items, item)
	}
	return items
}

func keys(t *testing.T, w *Workspace) string {
	t.Helper()
	var names []string
	for _, r := range collect(t, w.Records(t.Context(), Select{})) {
		names = append(names, r.Key.String())
	}
	return strings.Join(names, " ")
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func describe(body []byte, format string) Image {
	return Image{Source: "u", OriginalSHA256: digestOf([]byte(string(body) + " as sent")), SHA256: digestOf(body),
		PixelsSHA256: digestOf([]byte(string(body) + " seen")), Format: format, Width: 3, Height: 4, Bytes: int64(len(body)), PHash: 1<<63 | 5, Flat: true, HashKind: "k"}
}

func store(t *testing.T, w *Workspace, k manifest.Key, body string) Image {
	t.Helper()
	img := describe([]byte(body), "jpeg")
	testkit.OK(t, w.StoreImage(t.Context(), k, []byte(body), img))
	return img
}

// snapshot returns name, mode, size, time and content of everything below dir.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		all[name] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		if e.Type().IsRegular() {
			b, readErr := os.ReadFile(name)
			all[name] += " " + digestOf(b)
			err = errors.Join(err, readErr)
		}
		return err
	}))
	return all
}

func TestOpenMakesPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b? #%", "w")
	w := open(t, dir)
	testkit.OK(t, w.Load(t.Context(), binding("1"), seq(numbered(1), nil), nil))
	store(t, w, key("a000"), "body")
	_, err := w.Replace(t.Context(), "dataset/data/x.parquet", text(""), nil)
	testkit.OK(t, err)
	for name, what := range snapshot(t, dir) {
		if !strings.HasPrefix(what, "-rw-------") && !strings.HasPrefix(what, "drwx------") {
			t.Errorf("%s has the mode %.10s", name, what)
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "delete", "synchronous": "2", "secure_delete": "1", "temp_store": "2",
		"foreign_keys": "1", "trusted_schema": "0"} {
		var got string
		err := w.db.QueryRow("PRAGMA " + pragma).Scan(&got)
		testkit.Same(t, pragma, want, got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	write := func(t *testing.T, name, text string) { testkit.OK(t, os.WriteFile(name, []byte(text), 0o600)) }
	mkdir := func(t *testing.T, dir string) { testkit.OK(t, os.Mkdir(dir, 0o755)) }
	changed := func(statement string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			w := open(t, dir)
			_, err := w.db.Exec(statement)
			testkit.OK(t, err, w.Close())
		}
	}
	for _, tt := range []struct {
		name     string
		setup    func(t *testing.T, dir string)
		readOnly bool
		is       error
		says     string
	}{
		{"other files", func(t *testing.T, dir string) { mkdir(t, dir); write(t, dir+"/thesis.tex", "x") }, false, ErrNoWorkspace, "thesis.tex"},
		{"lost state.db and checkpoint", func(t *testing.T, dir string) {
			mkdir(t, dir)
			mkdir(t, dir+"/audit")
			write(t, dir+"/audit/records.jsonl", "x")
		}, false, ErrNoWorkspace, "it lost state.db and audit/checkpoint; put one of them back"},
		{"symbolic link", func(t *testing.T, dir string) { mkdir(t, dir+"-real"); testkit.OK(t, os.Symlink(dir+"-real", dir)) }, false,
			ErrNoWorkspace, "symbolic link"},
		{"file", func(t *testing.T, dir string) { write(t, dir, "x") }, false, ErrNoWorkspace, "not a folder"},
		{"state.db is a link", func(t *testing.T, dir string) {
			mkdir(t, dir)
			testkit.OK(t, os.Symlink("/etc/passwd", dir+"/state.db"))
		}, false,
			ErrNoWorkspace, "not a regular file"},
		{"not a database", func(t *testing.T, dir string) { mkdir(t, dir); write(t, dir+"/state.db", strings.Repeat("hello", 400)) }, false,
			ErrNoWorkspace, "not a SQLite database"},
		{"another program's database", changed("PRAGMA application_id = 7"), false, ErrNoWorkspace, "another program"},
		{"another schema", changed("UPDATE meta SET value = '99' WHERE key = 'schema_version'"), true, nil,
			"state.db has version 99 of its format, and this program reads version 6: use a rehydrate as new as"},
		{"read-only, missing", func(t *testing.T, dir string) {}, true, ErrNoWorkspace, "no such folder"},
		{"read-only, empty", mkdir, true, ErrNoWorkspace, "no state.db"},
		{"read-only, nothing in state.db", func(t *testing.T, dir string) { mkdir(t, dir); write(t, dir+"/state.db", "") }, true, ErrEmpty, "is empty"},
	} {
		dir := filepath.Join(t.TempDir(), "w")
		tt.setup(t, dir)
		w, err := Open(t.Context(), dir, Options{ReadOnly: tt.readOnly})
		if err == nil {
			w.Close()
		}
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: Open: %v; want %v saying %q", tt.name, err, tt.is, tt.says)
		}
	}
}

// A first Open that was killed leaves an empty state.db, or only the lock file.
func TestOpenGoesOnAfterKilledFirstOpen(t *testing.T) {
	for _, left := range [][]string{{}, {"lock"}, {"lock", "state.db"}} {
		dir := t.TempDir()
		for _, name := range left {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		w := open(t, dir)
		_, bound, err := w.Binding(t.Context())
		testkit.Same(t, "bound", false, bound, err, w.Close())
	}
}

func holdChild(dir, _ string) error {
	w, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent ends it
	return err
}

func TestLockIsTheKernels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	c := child(t, "hold", dir, "")
	in, err := c.StdinPipe()
	testkit.OK(t, err)
	defer in.Close()
	out, err := c.StdoutPipe()
	testkit.OK(t, err)
	testkit.OK(t, c.Start())
	if _, err := io.ReadFull(out, make([]byte, 5)); err != nil {
		t.Fatalf("the child did not take the lock: %v", err)
	}
	_, err = Open(t.Context(), dir, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d;", c.Process.Pid)) {
		t.Errorf("Open while held: %v; want ErrInUse naming process %d", err, c.Process.Pid)
	}
	reader := readOnly(t, dir)
	defer reader.Close()
	holder, err := reader.Holder()
	testkit.Same(t, "who holds it", fmt.Sprintf("process %d", c.Process.Pid), holder, err)
	testkit.OK(t, c.Process.Kill())
	c.Wait()
	holder, err = reader.Holder()
	testkit.Same(t, "who holds it after a kill", "", holder, err)
	// A writer that comes while somebody looks waits until they have looked.
	f, err := os.Open(filepath.Join(dir, lockName))
	testkit.OK(t, err)
	testkit.OK(t, unix.Flock(int(f.Fd()), unix.LOCK_SH))
	time.AfterFunc(2*time.Millisecond, func() { f.Close() })
	w := open(t, dir)
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("second Open in one process: %v, want ErrInUse", err)
	}
	w.Close()
	open(t, dir)
}

// TestExistingFolderIsNotMade: what must be there is not made, and no other folder is taken for it.
func TestExistingFolderIsNotMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "none")} {
		_, err := Open(t.Context(), name, Options{Existing: true})
		if left := snapshot(t, dir); !errors.Is(err, ErrNoWorkspace) || len(left) > 1 { // the folder itself
			t.Errorf("%s: %v, and it holds %v", name, err, left)
		}
	}
	open(t, dir).Close()
	w, err := Open(t.Context(), dir, Options{Existing: true})
	testkit.OK(t, err)
	testkit.OK(t, w.Close())
}

func TestLoadBindsAndDropsWhatLeft(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, entry(0, "aa1", 0), entry(1, "bb1", 0), entry(2, "bb1", 1), entry(3, "cc1", 0))
	store(t, w, manifest.Key{ID: "bb1", Image: 1}, "left")
	stays := store(t, w, key("cc1"), "stays")
	testkit.OK(t, w.SetPosts(ctx, []Post{{ID: "aa1", State: "live"}, {ID: "bb1", State: "live"}, {ID: "cc1", State: "live"}}))
	before := collect(t, w.Records(ctx, Select{}))
	testkit.OK(t, w.Load(ctx, binding("1"), seq[manifest.Entry](nil, errors.New("pulled")), nil)) // the same digests

	foreign := binding("1")
	foreign.Release = "other"
	var other *OtherRelease
	if err := w.Load(ctx, foreign, seq(numbered(1), nil), nil); !errors.As(err, &other) || *other != (OtherRelease{"figsim", "other"}) {
		t.Errorf("Load of another release: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	var asked []int
	refuse := func(images, of int) error { asked = append(asked, images, of); return errBoom }
	for name, bad := range map[string]iter.Seq2[manifest.Entry, error]{
		"line 5: no":             seq(numbered(3), errors.New("line 5: no")),
		"boom":                   seq([]manifest.Entry{entry(0, "cc1", 0)}, nil),
		context.Canceled.Error(): func(yield func(manifest.Entry, error) bool) { cancel(); seq(numbered(3), nil)(yield) },
	} {
		ctx := ctx
		if name == context.Canceled.Error() {
			ctx = cancelled
		}
		if err := w.Load(ctx, binding("2"), bad, refuse); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Load = %v, want %q", err, name)
		}
		testkit.Same(t, "entries after "+name, before, collect(t, w.Records(t.Context(), Select{})))
		b, _, err := w.Binding(t.Context())
		testkit.Same(t, "binding after "+name, binding("1"), b, err)
	}
	testkit.Same(t, "images to lose, of all", []int{1, 2}, asked)

	moved := entry(0, "cc1", 0)
	moved.Split = "test"
	next := []manifest.Entry{moved, entry(1, "bb1", 0), entry(5, "new1", 0)}
	testkit.OK(t, w.Load(ctx, binding("2"), seq(next, nil), func(int, int) error { return nil }))
	testkit.Same(t, "records", []Record{
		{Entry: moved, Post: Post{ID: "cc1", State: "live"}, Image: &stays},
		{Entry: entry(1, "bb1", 0), Post: Post{ID: "bb1", State: "live"}},
		{Entry: entry(5, "new1", 0), Post: Post{ID: "new1"}},
	}, collect(t, w.Records(ctx, Select{})))
	testkit.Same(t, "records of a split", []Record{{Entry: moved, Post: Post{ID: "cc1", State: "live"}, Image: &stays}}, collect(t, w.Records(ctx, Select{Split: "test"})))
	testkit.Same(t, "image files", []string{"images/cc/cc1.jpg"}, files(t, w, "images"))
	posts, err := texts(ctx, w.db, "SELECT id FROM post ORDER BY id")
	testkit.Same(t, "posts: the one that left must be forgotten", []string{"bb1", "cc1"}, posts, err)
	b, bound, err := w.Binding(ctx)
	testkit.Same(t, "binding", binding("2"), b, err)
	testkit.Same(t, "bound", true, bound)
	testkit.OK(t, w.Load(ctx, binding("3"), seq(next, nil), refuse)) // nothing is lost, so refuse is not called
}

func TestRecordsReturnWhatWasStored(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, entry(0, "aa1", 0), entry(1, "aa1", 1), entry(2, "bb1", 0))
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	post := Post{ID: "aa1", State: manifest.StateRemoved, Reason: "moderator", CheckedAt: at, LiveAt: at.Add(-time.Hour), Withheld: true}
	testkit.OK(t, w.SetPosts(ctx, []Post{{ID: "aa1", State: manifest.StateLive}, post}))
	img := store(t, w, manifest.Key{ID: "aa1", Image: 1}, "body")
	post.Unseen, post.GoneAt = true, at
	reading := Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "ONE DOES\nNOT", Confidence: 91.25,
		Words: []word.Word{{Text: "ONE", Confidence: 91.25, X: 1, Y: 2, W: 3, H: 4, Line: 5}}, Wide: &[4]uint64{1, 1 << 63, 3, ^uint64(0)},
		Failed: &Trouble{Outcome: manifest.Failed, Reason: "ocr_timeout", Detail: "d"}}
	testkit.OK(t, w.SetReadings(ctx, NewReading{Key: manifest.Key{ID: "aa1", Image: 1}, Reading: reading}))
	trouble := Trouble{Source: "s", Outcome: manifest.Gone, Reason: "http_404", Detail: "d"}
	testkit.OK(t, w.SetTrouble(ctx, key("bb1"), trouble))
	result := manifest.Result{Key: key("aa1"), Split: "train", Outcome: manifest.Duplicate, Reason: "r", Detail: "d",
		DuplicateOf: manifest.Key{ID: "bb1", Image: 0}}
	testkit.OK(t, w.SetResults(ctx, []manifest.Result{result}))
	want := []Record{
		{Entry: entry(0, "aa1", 0), Post: post, Result: &result},
		{Entry: entry(1, "aa1", 1), Post: post, Image: &img, Reading: &reading},
		{Entry: entry(2, "bb1", 0), Post: Post{ID: "bb1"}, Trouble: &trouble},
	}
	testkit.Same(t, "records with words", want, collect(t, w.Records(ctx, Select{WithWords: true})))
	reading.Words = nil
	testkit.Same(t, "records of aa1 without words", want[:2], collect(t, w.Records(ctx, Select{IDs: []manifest.PostID{"aa1"}})))
	testkit.Same(t, "posts", []Post{post, {ID: "bb1"}}, collect(t, w.Posts(ctx)))
	if err := w.SetResults(ctx, []manifest.Result{{Key: key("none"), Outcome: manifest.Kept}}); err == nil {
		t.Error("SetResults took a result of no entry")
	}
	if got := collect(t, w.Records(ctx, Select{IDs: []manifest.PostID{"aa1"}})); got[0].Result == nil {
		t.Error("a failed SetResults dropped the old results")
	}
}

// TestDuePostsWereNotSeenInTime: due are live posts that were not seen within the time, or not since their image was
// stored.
func TestDuePostsWereNotSeenInTime(t *testing.T) {
	w := loaded(t, numbered(6)...)
	live := Post{State: manifest.StateLive, LiveAt: hour(5)}
	posts := []Post{live, live, live, live, {State: manifest.StateRemoved, LiveAt: hour(1), Unseen: true}}
	posts[1].LiveAt, posts[2].LiveAt, posts[3].Unseen = hour(4), hour(7), true
	for i := range posts {
		posts[i].ID = manifest.PostID(fmt.Sprintf("a%03d", i))
	}
	testkit.OK(t, w.SetPosts(t.Context(), posts))
	testkit.Same(t, "due posts", posts[1:4], collect(t, w.DuePosts(t.Context(), hour(4), hour(6))))
}

func TestPagingWhileWriting(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, append(numbered(10), entry(10, "a003", 1), entry(11, "zz1", 0))...)
	for _, limit := range []int{1, 3, 12, 256} {
		w.limit = limit
		var got []string
		for p, err := range w.Posts(ctx) {
			testkit.OK(t, err)
			got = append(got, string(p.ID))
			testkit.OK(t, w.SetPosts(ctx, []Post{{ID: p.ID, State: manifest.StateLive, CheckedAt: time.Unix(int64(limit), 0)}}))
		}
		const first = "a000 a001 a002 a003 a004 a005 a006 a007 a008 a009 "
		testkit.Same(t, fmt.Sprintf("posts in pages of %d", limit), first+"zz1", strings.Join(got, " "))
		testkit.Same(t, fmt.Sprintf("records in pages of %d", limit), first+"a003/1 zz1", keys(t, w))
	}
	w.limit = 2
	for r, err := range w.Records(ctx, Select{}) {
		testkit.OK(t, err)
		store(t, w, r.Key, "body of "+r.Key.String())
		if r.Ordinal == 5 {
			break
		}
	}
	testkit.Same(t, "images stored within the loop", 6, len(files(t, w, "images")))
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range w.Records(ctx, Select{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Records after cancel: %v", err)
		}
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(3)...)
	img := store(t, w, key("a001"), "body")
	w.Close()
	before := snapshot(t, w.Dir())
	r := readOnly(t, w.Dir())
	testkit.Same(t, "records", "a000 a001 a002", keys(t, r))
	body, err := r.ReadImage(ctx, key("a001"), img)
	testkit.Same(t, "the image", "body", string(body), err)
	_, sweep := r.Sweep(ctx, nil)
	_, replace := r.Replace(ctx, "x", text(""), nil)
	for i, err := range []error{
		r.SetMeta(ctx, "k", "v"), r.StoreImage(ctx, key("a000"), []byte("x"), describe([]byte("x"), "png")),
		r.SetTrouble(ctx, key("a001"), Trouble{}), r.SetReadings(ctx, NewReading{Key: key("a001"), Reading: Reading{}}), r.Erase(ctx, "a001"),
		r.RemoveFile(ctx, "outcomes.csv"), r.Load(ctx, binding("2"), seq(numbered(1), nil), nil), r.publish(ctx), sweep, replace,
	} {
		if !errors.Is(err, ErrReadOnly) && i != 7 { // publish has nothing to do
			t.Errorf("change %d: %v, want ErrReadOnly", i, err)
		}
	}
	testkit.OK(t, r.Close())
	testkit.Same(t, "a read-only workspace changed its folder", before, snapshot(t, w.Dir()))
}

func TestConcurrentWriters(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(40)...)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := n; i < 40; i += 4 {
				k := manifest.Key{ID: manifest.PostID(fmt.Sprintf("a%03d", i))}
				body := fmt.Appendf(nil, "body %d", i)
				err := w.StoreImage(ctx, k, body, describe(body, "png"))
				if err := errors.Join(err, w.SetReadings(ctx, NewReading{Key: k, Reading: Reading{Fingerprint: "f", ImageSHA256: digestOf(body)}})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() { // beside the writers
		for _, err := range w.Records(ctx, Select{WithWords: true}) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	records := collect(t, w.Records(ctx, Select{}))
	testkit.Same(t, "records", 40, len(records))
	for _, r := range records {
		if r.Image == nil || r.Reading == nil {
			t.Errorf("%s has no image or reading", r.ID)
		}
	}
}

func contains(t *testing.T, name, text string) bool {
	t.Helper()
	b, err := os.ReadFile(name)
	testkit.OK(t, err)
	return bytes.Contains(b, []byte(text))
}
