package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/durable"
)

func TestImageName(t *testing.T) {
	w := &Workspace{}
	for _, tt := range []struct {
		id     string
		image  int
		format string
		want   string
	}{
		{"1n6oiw", 0, "jpeg", "images/1n/1n6oiw.jpg"},
		{"1n6oiw", 1, "png", "images/1n/1n6oiw-1.png"},
		{"a", 12, "webp", "images/a/a-12.webp"},
		{"ab", 0, "gif", "images/ab/ab.gif"},
		{"ab", 0, "tiff", ""},
		{"../../etc", 0, "png", ""},
		{"", 0, "png", ""},
		{"ab", -1, "png", ""},
	} {
		if got := w.ImageName(manifest.Key{ID: manifest.PostID(tt.id), Image: tt.image}, tt.format); got != tt.want {
			t.Errorf("ImageName(%s/%d, %s) = %q, want %q", tt.id, tt.image, tt.format, got, tt.want)
		}
	}
}

func TestStoreImageReplaces(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	k := key("a000")
	ok(t, w.SetTrouble(ctx, k, Trouble{Outcome: manifest.Failed}))
	check := func(step string, img Image, name string, trouble bool) {
		t.Helper()
		r := collect(t, w.Records(ctx, Select{}))[0]
		if r.Image == nil || *r.Image != img || (r.Trouble != nil) != trouble || r.Reading != nil {
			t.Errorf("%s: image %+v, trouble %v, reading %v", step, r.Image, r.Trouble, r.Reading)
		}
		same(t, fmt.Sprintf("%s: files", step), []string{name}, files(t, w, "images"))
	}
	first := store(t, w, k, "first")
	check("after trouble", first, "images/a0/a000.jpg", false)
	ok(t, w.SetReading(ctx, k, Reading{Fingerprint: "f", ImageSHA256: first.SHA256}))
	second := store(t, w, k, "second, longer")
	check("same name", second, "images/a0/a000.jpg", false)
	third := describe([]byte("third"), "png")
	if err := w.StoreImage(ctx, k, []byte("third"), Image{Source: third.Source, OriginalSHA256: third.OriginalSHA256, Format: "png", Width: 3, Height: 4,
		PHash: third.PHash, Flat: true, HashKind: "k", PixelsSHA256: third.PixelsSHA256}); err != nil {
		t.Fatal(err)
	}
	check("other name, digest and length filled in", third, "images/a0/a000.png", false)
	if err := w.SetReading(ctx, k, Reading{Fingerprint: "f", ImageSHA256: first.SHA256}); !errors.Is(err, ErrNoImage) {
		t.Errorf("reading of an old image: %v, want ErrNoImage", err)
	}
	if err := w.StoreImage(ctx, k, []byte("other"), third); err == nil {
		t.Error("bytes that are not the described ones were stored")
	}
	if err := w.StoreImage(ctx, key("zzz"), []byte("third"), third); !errors.Is(err, errNoEntry) {
		t.Errorf("image of no entry: %v", err)
	}
	check("after refusals", third, "images/a0/a000.png", false)
	ok(t, w.SetTrouble(ctx, k, Trouble{Outcome: manifest.Gone}))
	if files, err := w.Files(ctx, "images"); len(files) != 0 || err != nil {
		t.Errorf("after SetTrouble: files %v, %v", files, err)
	}
}

func TestReadImageFindsDamage(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	k := key("a000")
	img := store(t, w, k, "the body")
	name := filepath.Join(w.Dir(), "images/a0/a000.jpg")
	for _, tt := range []struct{ name, body string }{{"flipped bit", "the cody"}, {"short", "the bod"}, {"long", "the body!"}, {"missing", ""}} {
		ok(t, os.WriteFile(name, []byte(tt.body), 0o600))
		if tt.body == "" {
			os.Remove(name)
		}
		var damaged *Damaged
		if _, err := w.ReadImage(ctx, k, img); !errors.As(err, &damaged) || damaged.Key != k {
			t.Errorf("%s: %v, want *Damaged", tt.name, err)
		}
	}
}

func TestNoSymlinkLeadsOut(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	outside := t.TempDir()
	ok(t, os.Symlink(outside, filepath.Join(w.Dir(), "images")))
	ok(t, os.Symlink(outside, filepath.Join(w.Dir(), "dataset")))
	if err := w.StoreImage(ctx, key("a000"), []byte("x"), describe([]byte("x"), "png")); err == nil {
		t.Error("an image was stored through a symbolic link")
	}
	if _, err := w.Replace(ctx, "dataset/x", func(io.Writer) error { return nil }); err == nil {
		t.Error("a file was written through a symbolic link")
	}
	if list, err := os.ReadDir(outside); len(list) != 0 || err != nil {
		t.Errorf("outside the workspace: %v, %v", list, err)
	}
}

func TestReplace(t *testing.T) {
	ctx := t.Context()
	w := loaded(t)
	text := func(s string) func(io.Writer) error {
		return func(f io.Writer) error { _, err := io.WriteString(f, s); return err }
	}
	got, err := w.Replace(ctx, "dataset/data/x.parquet", text("old"))
	want := File{Name: "dataset/data/x.parquet", SHA256: digestOf([]byte("old")), Size: 3}
	if got != want || err != nil {
		t.Fatalf("Replace = %+v, %v; want %+v", got, err, want)
	}
	cancelled, cancel := context.WithCancel(ctx)
	boom := errors.New("boom")
	for name, try := range map[string]func() error{
		"write fails": func() error {
			_, err := w.Replace(ctx, want.Name, func(f io.Writer) error { return errors.Join(text("ne")(f), boom) })
			return err
		},
		"cancelled": func() error {
			_, err := w.Replace(cancelled, want.Name, func(f io.Writer) error { cancel(); return text("new")(f) })
			return err
		},
		"panics": func() (err error) {
			defer func() { err = recover().(error) }()
			w.Replace(ctx, want.Name, func(f io.Writer) error { panic(boom) })
			return nil
		},
	} {
		if err := try(); !errors.Is(err, boom) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if f, err := w.Stat(ctx, want.Name); f != want || err != nil {
			t.Errorf("%s: the file is %+v, %v; want the old one", name, f, err)
		}
	}
	if names := temps(t, w.Dir()); len(names) > 0 {
		t.Errorf("temporary files are left: %v", names)
	}
	for _, name := range []string{"../x", "/x", "", ".", "a//b", "state.db", "state.db-journal", "lock", "images/a0/a000.jpg", "images", ".tmp-x", "a\\b"} {
		if _, err := w.Replace(ctx, name, text("x")); err == nil {
			t.Errorf("Replace(%q) is not refused", name)
		}
		if err := w.RemoveFile(ctx, name); err == nil {
			t.Errorf("RemoveFile(%q) is not refused", name)
		}
	}
	if _, err := w.Replace(ctx, "outcomes.csv", text("o")); err != nil {
		t.Fatal(err)
	}
	same(t, "files", []string{"dataset/data/x.parquet", "lock", "outcomes.csv", "state.db"}, files(t, w, "."))
	if err := errors.Join(w.RemoveFile(ctx, want.Name), w.RemoveFile(ctx, want.Name)); err != nil {
		t.Errorf("RemoveFile twice: %v", err)
	}
	if _, err := w.Stat(ctx, want.Name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a removed file: %v", err)
	}
	if files, err := w.Files(ctx, "nowhere"); len(files) != 0 || err != nil {
		t.Errorf("Files of a missing folder: %v, %v", files, err)
	}
	if _, err := w.OpenFile("state.db"); err == nil {
		t.Error("OpenFile(state.db) is not refused")
	}
}

func temps(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for name := range snapshot(t, dir) {
		if durable.IsTemp(filepath.Base(name)) {
			names = append(names, name)
		}
	}
	return names
}

func TestSweep(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, append(numbered(5), entry(5, "z", 0))...)
	for i := range 5 {
		store(t, w, manifest.Key{ID: manifest.PostID(fmt.Sprintf("a%03d", i))}, fmt.Sprint("body ", i))
	}
	store(t, w, key("z"), "body z")
	if err := w.SetPosts(ctx, []Post{{ID: "a003", State: manifest.StateRemoved}, {ID: "a004", State: manifest.StateDeleted, Withheld: true}}); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(w.Dir(), name) }
	plant := func(name, body string) {
		ok(t, errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(body), 0o600)))
	}
	plant(".tmp-1", "x")
	plant("dataset/data/.tmp-2", "x")
	plant("images/a0/.tmp-3", "x")
	plant("images/a0/a001.png", "no row")      // the row speaks of a001.jpg
	plant("images/zz/zz9.jpg", "no such post") // a folder without any row
	plant("images/stray", "x")
	plant("images/a0/a001.jpg", "another length")
	plant("dataset/data/kept.parquet", "x")
	ok(t, errors.Join(os.Remove(at("images/a0/a000.jpg")), os.RemoveAll(at("images/z"))))
	got, err := w.Sweep(ctx)
	if want := (Swept{Temporary: 3, Orphans: 3, Lost: 3, Erased: 1}); got != want || err != nil {
		t.Errorf("Sweep = %+v, %v; want %+v", got, err, want)
	}
	files, err := w.Files(ctx, ".")
	if diff := cmp.Diff([]string{"dataset/data/kept.parquet", "images/a0/a002.jpg", "images/a0/a004.jpg", "lock", "state.db"}, files); diff != "" || err != nil {
		t.Errorf("files: %v\n%s", err, diff)
	}
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		if has := r.Image != nil; has != (r.ID == "a002" || r.ID == "a004") {
			t.Errorf("%s has an image row: %v", r.ID, has)
		}
	}
	if got, err := w.Sweep(ctx); got != (Swept{}) || err != nil {
		t.Errorf("second Sweep = %+v, %v; want nothing to do", got, err)
	}
}

func TestErase(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, entry(0, "aa1", 0), entry(1, "aa1", 1), entry(2, "bb1", 0), entry(3, "aa1", 2))
	for _, k := range []manifest.Key{{ID: "aa1"}, {ID: "aa1", Image: 1}, {ID: "bb1"}} {
		img := store(t, w, k, "body of "+k.String())
		ok(t, w.SetReading(ctx, k, Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "t"}))
	}
	ok(t, w.SetTrouble(ctx, manifest.Key{ID: "aa1", Image: 2}, Trouble{Outcome: manifest.Gone}))
	results := []manifest.Result{
		{Key: key("aa1"), Outcome: manifest.Duplicate, Detail: "near", DuplicateOf: key("bb1")},
		{Key: key("bb1"), Outcome: manifest.Kept, Detail: "d"},
	}
	ok(t, w.SetResults(ctx, results))
	ok(t, w.Erase(ctx, "aa1"))
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		gone := r.Image == nil && r.Reading == nil && r.Trouble == nil && (r.Result == nil || r.Result.Detail == "" && r.Result.DuplicateOf == manifest.Key{})
		if gone != (r.ID == "aa1") {
			t.Errorf("after Erase(aa1): %s is erased: %v", r.Key, gone)
		}
	}
	same(t, "files", []string{"images/bb/bb1.jpg"}, files(t, w, "images"))
	if err := w.Erase(ctx, "unknown1"); err != nil {
		t.Errorf("Erase of a post without entries: %v", err)
	}
}

// TestErasedTextIsGone looks for deleted text in the bytes of state.db, after stores, growing
// rewrites and erasures in random order have split and merged its pages. With secure_delete
// alone, the second seed leaves a text behind.
func TestErasedTextIsGone(t *testing.T) {
	for _, seed := range []uint64{1, 10} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { eraseAtRandom(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func eraseAtRandom(t *testing.T, random *rand.Rand) {
	ctx := t.Context()
	const posts = 80
	w := loaded(t, numbered(posts)...)
	ok(t, noSync(w))
	canary := func(i, round int) string { return fmt.Sprintf("CANARY-%d-%d-%s", i, round, "text that must not stay") }
	id := func(i int) manifest.PostID { return manifest.PostID(fmt.Sprintf("a%03d", i)) }
	images := map[int]Image{}
	for _, i := range random.Perm(posts) {
		images[i] = store(t, w, manifest.Key{ID: id(i)}, fmt.Sprint(i))
	}
	for round := range 3 {
		for _, i := range random.Perm(posts) {
			text := strings.Repeat(canary(i, round)+" ", 1+random.IntN(1+random.IntN(300)))
			r := Reading{Fingerprint: "f", ImageSHA256: images[i].SHA256, Text: text, Words: []Word{{Text: canary(i, round)}}}
			ok(t, w.SetReading(ctx, manifest.Key{ID: id(i)}, r))
		}
	}
	erased := random.Perm(posts)[:posts*2/3]
	isErased := map[int]bool{}
	for _, i := range erased {
		isErased[i] = true
		ok(t, w.Erase(ctx, id(i)))
	}
	ok(t, w.Close())
	state := filepath.Join(w.Dir(), stateName)
	for i := range posts {
		for round := range 3 {
			want := round == 2 && !isErased[i]
			if got := contains(t, state, canary(i, round)); got != want {
				t.Errorf("state.db holds the text of post %d, round %d: %v, want %v", i, round, got, want)
			}
		}
		if want := !isErased[i]; contains(t, state, images[i].SHA256) != want {
			t.Errorf("state.db holds the digest of post %d: %v", i, !want)
		}
	}
	if _, err := os.Stat(state + "-journal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal is left: %v", err)
	}
	checkSound(t, open(t, w.Dir()), true)
}

// A kill between Erase and Close leaves the rewrite of state.db to the next Open.
func TestOpenFinishesAnErase(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	store(t, w, key("a000"), "body")
	ok(t, w.Erase(ctx, "a000"))
	state := filepath.Join(w.Dir(), stateName)
	old, err := os.Stat(state)
	ok(t, err)
	w.finish = nil // as if killed
	w.Close()
	for _, rewritten := range []bool{true, false} {
		w = open(t, w.Dir())
		if got := keys(t, w); got != "a000" {
			t.Errorf("records: %s", got)
		}
		now, err := os.Stat(state)
		if err != nil || os.SameFile(old, now) == rewritten {
			t.Errorf("state.db was rewritten: %v, %v; want %v", !rewritten, err, rewritten)
		}
		old = now
		ok(t, w.Close())
	}
	var id int
	w = open(t, w.Dir())
	if err := w.db.QueryRow("PRAGMA application_id").Scan(&id); id != applicationID || err != nil {
		t.Errorf("application_id = %#x, %v", id, err)
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("state.db: %v, %v", info.Mode(), err)
	}
}
