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
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/policy"
)

func TestImageName(t *testing.T) {
	w := &Workspace{}
	for _, tt := range []struct {
		id           manifest.PostID
		image        int
		format, want string
	}{
		{"1n6oiw", 0, "jpeg", "images/1n/1n6oiw.jpg"}, {"1n6oiw", 1, "png", "images/1n/1n6oiw-1.png"},
		{"a", 12, "webp", "images/a/a-12.webp"},
		{"ab", 0, "gif", "images/ab/ab.gif"}, {"ab", 0, "tiff", ""}, {"../../etc", 0, "png", ""}, {"", 0, "png", ""},
		{"ab", -1, "png", ""},
	} {
		testkit.Same(t, string(tt.id), tt.want, w.ImageName(manifest.Key{ID: tt.id, Image: tt.image}, tt.format))
	}
}

func TestStoreImageReplaces(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	k := key("a000")
	testkit.OK(t, w.DropImage(ctx, k, Trouble{Outcome: manifest.Failed}, false))
	check := func(step string, img Image, name string) {
		t.Helper()
		testkit.Same(t, step, []Record{{Entry: numbered(1)[0], Post: Post{ID: "a000"}, Image: &img}},
			collect(t, w.Records(ctx, Select{})))
		testkit.Same(t, step+": files", []string{name}, files(t, w, "images"))
	}
	first := store(t, w, k, "first")
	check("after trouble", first, "images/a0/a000.jpg")
	testkit.OK(t, w.SetReadings(ctx, NewReading{Key: k, Reading: Reading{Fingerprint: "f", ImageSHA256: first.SHA256}}))
	second := store(t, w, k, "second, longer")
	check("same name", second, "images/a0/a000.jpg")
	third := describe([]byte("third"), "png")
	short := third
	short.SHA256, short.Bytes = "", 0
	testkit.OK(t, w.StoreImage(ctx, k, []byte("third"), short))
	check("other name, digest and length filled in", third, "images/a0/a000.png")
	if err := w.SetReadings(ctx, NewReading{Key: k,
		Reading: Reading{Fingerprint: "f", ImageSHA256: first.SHA256}}); !errors.Is(err, ErrNoImage) {
		t.Errorf("reading of an old image: %v, want ErrNoImage", err)
	}
	if err := w.SetHash(ctx, k, first); !errors.Is(err, ErrNoImage) {
		t.Errorf("hash of an old image: %v, want ErrNoImage", err)
	}
	if err := w.StoreImage(ctx, k, []byte("other"), Image{Format: "tiff"}); err == nil {
		t.Error("a TIFF was stored")
	}
	if err := w.StoreImage(ctx, key("zzz"), []byte("third"), third); err == nil {
		t.Error("an image of no entry was stored")
	}
	check("after refusals", third, "images/a0/a000.png")
	testkit.OK(t, w.DropImage(ctx, k, Trouble{Outcome: manifest.Gone}, false))
	testkit.Same(t, "files after DropImage", []string(nil), files(t, w, "images"))
}

func TestReadImageFindsDamage(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	k := key("a000")
	img := store(t, w, k, "the body")
	name := filepath.Join(w.Dir(), "images/a0/a000.jpg")
	for _, tt := range []struct{ name, body string }{{"flipped bit", "the cody"}, {"short", "the bod"},
		{"long", "the body!"}, {"missing", ""}} {
		testkit.OK(t, os.WriteFile(name, []byte(tt.body), 0o600))
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
	testkit.OK(t, os.Symlink(outside, filepath.Join(w.Dir(), "images")),
		os.Symlink(outside, filepath.Join(w.Dir(), "dataset")))
	_, write := w.Replace(ctx, "dataset/x", text(""), nil)
	_, sweep := w.Sweep(ctx, nil)
	for i, err := range []error{w.StoreImage(ctx, key("a000"), []byte("x"), describe([]byte("x"), "png")), write, sweep} {
		if err == nil {
			t.Errorf("change %d went through a symbolic link", i)
		}
	}
	if list, err := os.ReadDir(outside); len(list) != 0 || err != nil {
		t.Errorf("outside the workspace: %v, %v", list, err)
	}
}

func TestReplaceChecksBeforeTheName(t *testing.T) {
	ctx := t.Context()
	w := loaded(t)
	want := File{Name: "dataset/data/x.parquet", SHA256: digestOf([]byte("old")), Size: 3}
	got, err := w.Replace(ctx, want.Name, text("old"), nil)
	testkit.Same(t, "Replace", want, got, err)
	cancelled, cancel := context.WithCancel(ctx)
	noCheck := func(r io.ReaderAt, size int64) error {
		b, err := io.ReadAll(io.NewSectionReader(r, 0, size))
		return errors.Join(err, fmt.Errorf("%s: %w", b, errBoom))
	}
	for want, try := range map[string]func() (File, error){
		"boom": func() (File, error) {
			return w.Replace(ctx, want.Name, func(f io.Writer) error { return errors.Join(text("ne")(f), errBoom) }, nil)
		},
		"canceled": func() (File, error) {
			return w.Replace(cancelled, want.Name, func(f io.Writer) error { cancel(); return text("new")(f) }, nil)
		},
		"write dataset/data/x.parquet: new: boom": func() (File,
			error) {
			return w.Replace(ctx, want.Name, text("new"), noCheck)
		},
		"panic": func() (_ File, err error) {
			defer func() { err = fmt.Errorf("panic: %v", recover()) }()
			return w.Replace(ctx, want.Name, func(f io.Writer) error { panic("!") }, nil)
		},
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	got, err = w.Stat(ctx, want.Name)
	testkit.Same(t, "the old file", want, got, err)
	testkit.Same(t, "temporary files", []string(nil), temps(t, w.Dir()))
	for _, name := range []string{"../x", "/x", "", "."} {
		if _, err := w.Replace(ctx, name, text("x"), nil); err == nil {
			t.Errorf("Replace(%q) is not refused", name)
		}
	}
	_, err = w.Replace(ctx, "dataset.csv", text("o"), nil)
	testkit.OK(t, err)
	testkit.Same(t, "files", []string{"dataset.csv", "dataset/data/x.parquet", "lock", "state.db"}, files(t, w, "."))
	testkit.OK(t, w.RemoveFile(ctx, want.Name), w.RemoveFile(ctx, want.Name))
	if _, err := w.Stat(ctx, want.Name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a removed file: %v", err)
	}
	testkit.Same(t, "files of a missing folder", []string(nil), files(t, w, "nowhere"))
	for _, name := range []string{"dataset", "../x"} {
		if f, err := w.OpenFile(name); err == nil {
			f.Close()
			t.Errorf("OpenFile(%s) is not refused", name)
		}
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

func TestSweepRepairsWhatAKillLeft(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, append(numbered(5), entry(5, "z", 0))...)
	for i := range 5 {
		store(t, w, key(fmt.Sprintf("a%03d", i)), fmt.Sprint("body ", i))
	}
	store(t, w, key("z"), "body z")
	testkit.OK(t, w.SetPosts(ctx, []Post{{ID: "a003", State: manifest.StateRemoved},
		{ID: "a004", State: manifest.StateDeleted, Withheld: true}}))
	at := func(name string) string { return filepath.Join(w.Dir(), name) }
	for name, body := range map[string]string{".tmp-1": "x", "dataset/data/.tmp-2": "x", "images/a0/.tmp-3": "x",
		"images/a0/a001.png": "no row",       // the row speaks of a001.jpg
		"images/zz/zz9.jpg":  "no such post", // a folder without any row
		"images/stray":       "x", "images/a0/a001.jpg": "another length", "dataset/data/kept.parquet": "x"} {
		testkit.OK(t, os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(body), 0o600))
	}
	testkit.OK(t, os.Remove(at("images/a0/a000.jpg")), os.RemoveAll(at("images/z")))
	got, err := w.Sweep(ctx, nil)
	testkit.Same(t, "Sweep", Swept{Temporary: 3, Orphans: 3, Strays: 1, Lost: 3, Erased: 1}, got, err)
	testkit.Same(t, "files", []string{"dataset/data/kept.parquet", "images/a0/a002.jpg", "images/a0/a004.jpg", "lock",
		"state.db"}, files(t, w, "."))
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		if has := r.Image != nil; has != (r.ID == "a002" || r.ID == "a004") {
			t.Errorf("%s has an image row: %v", r.ID, has)
		}
	}
	got, err = w.Sweep(ctx, nil)
	testkit.Same(t, "a second Sweep", Swept{}, got, err)
}

// TestRemovedFilesLeaveNoFolder: a folder that no command makes goes with the last file that is removed from it.
func TestRemovedFilesLeaveNoFolder(t *testing.T) {
	w := loaded(t, numbered(1)...)
	put := func(name string) {
		file := filepath.Join(w.Dir(), name)
		testkit.OK(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600))
	}
	put("images/1a/sub/deep/a.jpg")
	put("images/1a/sub/b.jpg")
	put("shards/of mine/a.jsonl")
	put("dataset/mine/a.csv")
	put("dataset/mine/b.csv")
	_, err := w.Sweep(t.Context(), nil)
	testkit.OK(t, err, w.RemoveFile(t.Context(), "shards/of mine/a.jsonl"),
		w.RemoveFile(t.Context(), "dataset/mine/a.csv"))
	empty, err := w.EmptyFolders(t.Context())
	testkit.Same(t, "empty folders", []string(nil), empty, err)
	for name, want := range map[string]bool{"images/1a": true, "images/1a/sub": false, "shards": true,
		"shards/of mine": false, "dataset/mine/b.csv": true} {
		if _, err := os.Stat(filepath.Join(w.Dir(), name)); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", name, err == nil, want)
		}
	}
}

func TestEraseRemovesAllOfAPost(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, entry(0, "aa1", 0), entry(1, "aa1", 1), entry(2, "bb1", 0), entry(3, "aa1", 2))
	for _, k := range []manifest.Key{key("aa1"), {ID: "aa1", Image: 1}, key("bb1")} {
		img := store(t, w, k, "body of "+k.String())
		testkit.OK(t, w.SetReadings(ctx, NewReading{Key: k,
			Reading: Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Text: "t"}}))
	}
	_, err := w.Replace(ctx, ReportName, text("shows all"), nil)
	testkit.OK(t, err, w.DropImage(ctx, manifest.Key{ID: "aa1", Image: 2}, Trouble{Outcome: manifest.Gone}, false),
		w.SetResults(ctx, []manifest.Result{
			{Key: key("aa1"), Outcome: manifest.Duplicate, Detail: "near", DuplicateOf: key("bb1")},
			{Key: key("bb1"), Outcome: manifest.Kept, Detail: "d"},
		}), w.Erase(ctx, "aa1"))
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		gone := r.Image == nil && r.Reading == nil && r.Trouble == nil &&
			(r.Result == nil || r.Result.Detail == "" && r.Result.DuplicateOf == manifest.Key{})
		if gone != (r.ID == "aa1") {
			t.Errorf("after Erase(aa1): %s is erased: %v", r.Key, gone)
		}
	}
	testkit.Same(t, "files", []string{"images/bb/bb1.jpg", "lock", "state.db"}, files(t, w, "."))
	testkit.OK(t, w.Erase(ctx, "unknown1")) // without entries
	if err := w.Erase(ctx, "../x"); err == nil {
		t.Error("Erase took a path")
	}
	blocked := hooked(ctx, func(string) error {
		for _, name := range temps(t, w.Dir()) {
			testkit.OK(t, os.WriteFile(name, []byte("in the way"), 0o600))
		}
		return nil
	})
	if err := w.scrub(blocked); err == nil {
		t.Error("state.db was rewritten into a file that is no database")
	}
	testkit.Same(t, "records after the rewrite failed", "aa1 aa1/1 bb1 aa1/2", keys(t, w)) // of the old state.db
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
	testkit.OK(t, noSync(w))
	canary := func(i, round int) string { return fmt.Sprintf("CANARY-%d-%d-%s", i, round, "text that must not stay") }
	id := func(i int) manifest.PostID { return manifest.PostID(fmt.Sprintf("a%03d", i)) }
	images := map[int]Image{}
	for _, i := range random.Perm(posts) {
		images[i] = store(t, w, manifest.Key{ID: id(i)}, fmt.Sprint(i))
	}
	for round := range 3 {
		for _, i := range random.Perm(posts) {
			text := strings.Repeat(canary(i, round)+" ", 1+random.IntN(1+random.IntN(300)))
			r := Reading{Fingerprint: "f", ImageSHA256: images[i].SHA256, Text: text,
				Words: []word.Word{{Text: canary(i, round)}}}
			testkit.OK(t, w.SetReadings(ctx, NewReading{Key: manifest.Key{ID: id(i)}, Reading: r}))
		}
	}
	erased := random.Perm(posts)[:posts*2/3]
	isErased := map[int]bool{}
	for _, i := range erased {
		isErased[i] = true
		testkit.OK(t, w.Erase(ctx, id(i)))
	}
	testkit.OK(t, w.Close())
	state := filepath.Join(w.Dir(), stateName)
	for i := range posts {
		for round := range 3 {
			testkit.Same(t, canary(i, round)+" is in state.db", round == 2 && !isErased[i],
				contains(t, state, canary(i, round)))
		}
		testkit.Same(t, "its digest is in state.db", true, contains(t, state, images[i].SHA256)) // which gives nothing away
	}
	if _, err := os.Stat(state + "-journal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal is left: %v", err)
	}
	checkSound(t, open(t, w.Dir()), true)
}

// A kill between Erase and Close leaves the rewrite of state.db to the next Open.
func TestOpenFinishesAnErase(t *testing.T) {
	for _, erase := range []func(w *Workspace) error{
		func(w *Workspace) error { return w.Erase(t.Context(), "a000") },
		func(w *Workspace) error {
			return w.DropImage(t.Context(), key("a000"), Trouble{Outcome: manifest.Invalid}, false)
		},
	} {
		w := loaded(t, numbered(1)...)
		store(t, w, key("a000"), "body")
		testkit.OK(t, erase(w))
		state := filepath.Join(w.Dir(), stateName)
		old, err := os.Stat(state)
		w.finish = nil // as if killed
		testkit.OK(t, err, w.Close())
		for _, rewritten := range []bool{true, false} {
			w = open(t, w.Dir())
			testkit.Same(t, "records", "a000", keys(t, w))
			now, err := os.Stat(state)
			if err != nil || os.SameFile(old, now) == rewritten || now.Mode().Perm() != 0o600 {
				t.Errorf("state.db was rewritten: %v, %v; want %v", !rewritten, err, rewritten)
			}
			old = now
			testkit.OK(t, w.Close(), w.Close()) // the second time does nothing
		}
	}
}

// What is erased of a post, and what is taken out of one, counts as erased until the tombstone is lifted or the image
// is back. Another image of the entry leaves it so, and counts itself when it goes. What only got lost does not.
func TestDigestsOfErasedImagesStay(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(6)...)
	gone := func(id manifest.PostID) Tombstone { return stone(id, manifest.StateRemoved, "", 1) }
	images := map[manifest.PostID]Image{}
	for _, id := range []manifest.PostID{"a000", "a001", "a002", "a003", "a004", "a005"} {
		images[id] = store(t, w, manifest.Key{ID: id}, "image of "+string(id))
	}
	testkit.OK(t, w.AddTombstones(ctx, []Tombstone{gone("a000"), gone("a001"), gone("a002")}))
	for _, id := range []manifest.PostID{"a000", "a001", "a002", "a003"} { // a003 has no tombstone
		testkit.OK(t, w.Erase(ctx, id))
	}
	testkit.OK(t, w.DropImage(ctx, key("a004"), Trouble{Outcome: manifest.Gone, Reason: "gallery_item_deleted"}, true),
		w.DropImage(ctx, key("a005"), Trouble{Outcome: manifest.Failed, Reason: "damaged_file"}, false))
	testkit.OK(t, w.Erase(ctx, "a000"), w.LiftTombstones(ctx, digestOf(nil), "a001")) // a000 once more: nothing is lost
	store(t, w, key("a002"), "image of a002")                                         // it is back
	images["other"] = store(t, w, key("a003"), "another image of a003")
	testkit.OK(t, w.Erase(ctx, "a003"))
	got, err := w.ErasedImages(ctx)
	var want []FormerImage
	for _, id := range []manifest.PostID{"a000", "a003", "other", "a004"} {
		img := images[id]
		if id == "other" {
			id = "a003"
		}
		want = append(want, FormerImage{Erased: true, Key: manifest.Key{ID: id},
			Digests: Digests{File: img.OriginalSHA256, Stripped: img.SHA256, Pixels: img.PixelsSHA256}})
	}
	testkit.Same(t, "", want, got, err)
}

// TestWaitingOutlivesTheImage: that the removal of an image waits stays known where the image turns out to be damaged,
// is stored again, or has other trouble, until it is decided.
func TestWaitingOutlivesTheImage(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	k := key("a000")
	store(t, w, k, "first")
	waits := Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, Beside: Unconfirmed, At: time.Unix(1e9, 0).UTC()}
	testkit.OK(t, w.SetTrouble(ctx, k, waits))
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a fault of a shard", func() error {
			return w.SetTrouble(ctx, k, Trouble{Outcome: manifest.Invalid, Reason: "bad_container"})
		}},
		{"damaged", func() error {
			return w.DropImage(ctx, k, Trouble{Outcome: manifest.Failed, Reason: "damaged_file"}, false)
		}},
		{"stored again", func() error { store(t, w, k, "first"); return nil }},
		{"lost", func() error { return os.Remove(filepath.Join(w.Dir(), "images/a0/a000.jpg")) }},
		{"swept", func() error { _, err := w.Sweep(ctx, nil); return err }},
	} {
		testkit.OK(t, step.do())
		for _, rec := range collect(t, w.Records(ctx, Select{})) {
			testkit.Same(t, step.name, &waits, rec.Trouble)
		}
	}
	left := Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, At: waits.At}
	testkit.OK(t, w.DropImage(ctx, k, left, true))
	for _, rec := range collect(t, w.Records(ctx, Select{})) {
		testkit.Same(t, "decided", &left, rec.Trouble)
	}
	erased, err := w.ErasedImages(ctx)
	testkit.OK(t, err)
	testkit.Same(t, "images of which there are digests", 1, len(erased))
}

// TestRepairs counts the accepted words of readings that were repaired.
func TestRepairs(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(2)...)
	for _, id := range []manifest.PostID{"a000", "a001"} {
		img := store(t, w, key(string(id)), "image of "+string(id))
		testkit.OK(t, w.SetReadings(ctx, NewReading{Key: key(string(id)),
			Reading: Reading{Fingerprint: "f", ImageSHA256: img.SHA256, Words: []word.Word{
				{Text: "A", Accepted: true}, {Text: "B", Accepted: true, Repair: word.Mended, Readings: []string{"8"}},
				{Text: "C", Repair: word.Mended}, {Text: "D", Accepted: true, Repair: word.Filled}}}}))
	}
	got, err := w.Repairs(ctx)
	testkit.Same(t, "repairs", map[word.Repair]int{word.Mended: 2, word.Filled: 2}, got, err)
}

// TestEarlierTextsStayUntilARereadingEnds walks through a re-reading: what it compares with is the first text and
// outcome, is not lost by a second begin, and is gone with the post, with the image or in the end.
func TestEarlierTextsStayUntilARereadingEnds(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	key := func(i int) manifest.Key { return numbered(4)[i].Key }
	reading := func(i int, text string) Reading {
		return Reading{Fingerprint: "f", ImageSHA256: digestOf([]byte("body of " + key(i).String())), Text: text, Masked: i}
	}
	again := func(i int, text, old string) {
		t.Helper()
		testkit.OK(t, w.SetReadings(ctx, NewReading{Key: key(i), Reading: reading(i, text), Old: &old}))
	}
	var results []manifest.Result
	for i := range 4 {
		store(t, w, key(i), "body of "+key(i).String())
		testkit.OK(t, w.SetReadings(ctx, NewReading{Key: key(i), Reading: reading(i, "first text")}))
		results = append(results, manifest.Result{Key: key(i), Outcome: manifest.Unreadable, Reason: "r", Detail: "d"})
	}
	earlier := func() []Earlier {
		t.Helper()
		var all []Earlier
		for _, r := range collect(t, w.Records(ctx, Select{WithEarlier: true})) {
			all = append(all, r.Earlier)
		}
		return all
	}
	testkit.OK(t, w.SetResults(ctx, results))
	testkit.OK(t, w.BeginReread(ctx))
	again(0, "second text", "safe text")
	again(1, "second text", "safe text")
	again(2, "second text", "safe text")
	results[0].Outcome = manifest.Kept
	testkit.OK(t, w.SetResults(ctx, results))
	testkit.OK(t, w.BeginReread(ctx)) // as after a kill
	again(0, "third text", "not the first")
	was := Earlier{Outcome: manifest.Unreadable, Reason: "r"}
	read := Earlier{Read: true, Text: "safe text", Outcome: manifest.Unreadable, Reason: "r"}
	testkit.Same(t, "what is compared with", []Earlier{read, read, read, was}, earlier())
	if r := collect(t, w.Records(ctx, Select{}))[1]; r.Reading.Text != "second text" || r.Reading.Masked != 1 {
		t.Errorf("the new reading = %+v", r.Reading)
	}
	testkit.OK(t, w.Erase(ctx, key(1).ID))
	testkit.OK(t, w.DropImage(ctx, key(2), Trouble{Outcome: manifest.Gone}, false))
	testkit.Same(t, "after an erase and a trouble", []Earlier{read, was, was, was}, earlier())
	store(t, w, key(0), "another body")
	testkit.Same(t, "after another image", []Earlier{was, was, was, was}, earlier())
	again(3, "second text", "safe text")
	if on, err := w.Rereading(ctx); !on || err != nil {
		t.Errorf("Rereading = %v, %v while it goes on", on, err)
	}
	testkit.OK(t, w.EndReread(ctx))
	testkit.Same(t, "in the end", make([]Earlier, 4), earlier())
	if on, err := w.Rereading(ctx); on || err != nil {
		t.Errorf("Rereading = %v, %v in the end", on, err)
	}
	testkit.OK(t, w.Close())
	if contains(t, filepath.Join(w.Dir(), stateName), "safe text") {
		t.Error("state.db still holds a text that was compared with")
	}
}
