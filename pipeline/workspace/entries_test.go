package workspace

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"rehydrate/manifest"
)

// TestLoadAsksBeforeItLoses gives the workspace a manifest without two of three stored images.
func TestLoadAsksBeforeItLoses(t *testing.T) {
	w := loaded(t, numbered(3)...)
	for _, e := range numbered(3) {
		store(t, w, e.Key, "image "+string(e.ID))
	}
	refused := errors.New("refused")
	var images, of int
	err := w.Load(t.Context(), binding("2"), seq(numbered(1), nil), func(i, o int) error {
		images, of = i, o
		return refused
	})
	if !errors.Is(err, refused) || images != 2 || of != 3 {
		t.Errorf("Load: %v, asked about %d of %d, want refused, 2 of 3", err, images, of)
	}
	if n := len(collect(t, w.Records(t.Context(), Select{}))); n != 3 {
		t.Errorf("a refused Load left %d entries of 3", n)
	}
	ok(t, w.Load(t.Context(), binding("2"), seq(numbered(1), nil), func(int, int) error { return nil }))
	if files, err := w.Files(t.Context(), imagesName); err != nil || len(files) != 1 {
		t.Errorf("files after an allowed Load: %v, %v, want one", files, err)
	}
}

// TestSweepErasesTombstoned brings a tombstone to a post that has content, as a release does
// whose list grew.
func TestSweepErasesTombstoned(t *testing.T) {
	w := loaded(t, numbered(2)...)
	ids := []manifest.PostID{numbered(2)[0].ID, numbered(2)[1].ID}
	for _, e := range numbered(2) {
		store(t, w, e.Key, "image "+string(e.ID))
		ok(t, w.SetPosts(t.Context(), []Post{{ID: e.ID, State: manifest.StateLive, LiveAt: time.Unix(1e9, 0)}}))
	}
	if err := w.AddTombstones(t.Context(), []Tombstone{{Tombstone: manifest.Tombstone{ID: ids[0], State: manifest.StateDeleted, Time: time.Unix(1e9, 0)}}}); err != nil {
		t.Fatal(err)
	}
	swept, err := w.Sweep(t.Context())
	if err != nil || swept.Erased != 1 {
		t.Errorf("Sweep = %+v, %v, want one erased", swept, err)
	}
	for _, rec := range collect(t, w.Records(t.Context(), Select{})) {
		if has := rec.Image != nil; has != (rec.ID == ids[1]) {
			t.Errorf("post %s has an image: %t", rec.ID, has)
		}
	}
	if swept, err = w.Sweep(t.Context()); err != nil || swept != (Swept{}) {
		t.Errorf("a second Sweep = %+v, %v, want nothing to do", swept, err)
	}
}

// TestReadmitted suspends a tombstone, makes it hold again, and shows what replaces its reason.
func TestReadmitted(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	id := numbered(1)[0].ID
	at := func(h int64) time.Time { return time.Unix(h*3600, 0).UTC() }
	stone := func(s manifest.PostState, r manifest.Reason, h int64) Tombstone {
		return Tombstone{Tombstone: manifest.Tombstone{ID: id, State: s, Time: at(h)}, Reason: r}
	}
	readmit := func(yes bool) func() error { return func() error { return w.SetReadmitted(ctx, yes, id) } }
	add := func(s manifest.PostState, r manifest.Reason, h int64) func() error {
		return func() error { return w.AddTombstones(ctx, []Tombstone{stone(s, r, h)}) }
	}
	back := stone(manifest.StateRemoved, "moderator", 1)
	back.Readmitted = true
	steps := []struct {
		name   string
		do     func() error
		want   Tombstone
		erased int // posts whose content the next Sweep erases
	}{
		{"removed", add(manifest.StateRemoved, "moderator", 1), stone(manifest.StateRemoved, "moderator", 1), 1},
		{"back", readmit(true), back, 0},
		{"not any more", readmit(false), stone(manifest.StateRemoved, "moderator", 1), 1},
		{"back again", readmit(true), back, 0},
		{"removed again", add(manifest.StateRemoved, "automod_filtered", 2), stone(manifest.StateRemoved, "automod_filtered", 2), 1},
		{"by somebody else", add(manifest.StateRemoved, "legal", 3), stone(manifest.StateRemoved, "legal", 3), 1},
		{"published", add(manifest.StateRemoved, "", 4), stone(manifest.StateRemoved, "", 3), 1},
		{"deleted", add(manifest.StateDeleted, "author", 5), stone(manifest.StateDeleted, "author", 5), 1},
		{"removed after that", add(manifest.StateRemoved, "moderator", 6), stone(manifest.StateDeleted, "author", 6), 1},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got, err := w.Tombstones(ctx)
		same(t, fmt.Sprintf("%s", step.name), []Tombstone{step.want}, got, err)
		store(t, w, manifest.Key{ID: id}, "content")
		ok(t, w.SetPosts(ctx, []Post{{ID: id, State: manifest.StateLive}}))
		if swept, err := w.Sweep(ctx); err != nil || swept.Erased != step.erased {
			t.Errorf("%s: Sweep = %+v, %v, want %d erased", step.name, swept, err, step.erased)
		}
	}
}

// TestSharedImages counts URLs of live posts, not entries: one URL that many posts share says
// nothing, and neither does a post that is held or was absent.
func TestSharedImages(t *testing.T) {
	w := loaded(t, numbered(7)...)
	var posts []Post
	for i, e := range numbered(7) {
		body, source := "the same", fmt.Sprint("url ", i)
		if i > 3 {
			body, source = "another", "one url"
		}
		img := describe([]byte(body), "png")
		img.Source, img.OriginalSHA256 = source, digestOf([]byte(body))
		ok(t, w.StoreImage(t.Context(), e.Key, []byte(body), img))
		posts = append(posts, Post{ID: e.ID, State: manifest.StateLive})
	}
	for _, tt := range []struct {
		name  string
		first Post
		urls  int
		want  map[string]bool
	}{
		{"all live", posts[0], 4, map[string]bool{digestOf([]byte("the same")): true}},
		{"too few URLs", posts[0], 5, map[string]bool{}},
		{"one held", Post{ID: posts[0].ID, State: manifest.StateHeld}, 4, map[string]bool{}},
		{"one absent", Post{ID: posts[0].ID, State: manifest.StateLive, AbsentAt: time.Unix(1e9, 0)}, 4, map[string]bool{}},
	} {
		posts[0] = tt.first
		ok(t, w.SetPosts(t.Context(), posts))
		got, err := w.SharedImages(t.Context(), tt.urls)
		same(t, fmt.Sprintf("%s", tt.name), tt.want, got, err)
	}
}

// TestUnseen: an image that is stored after the last answer is marked until the next one.
func TestUnseen(t *testing.T) {
	e := numbered(1)[0]
	w := loaded(t, e)
	is := func(when string, want bool) {
		t.Helper()
		if got := collect(t, w.Posts(t.Context()))[0].Unseen; got != want {
			t.Errorf("%s: unseen is %t", when, got)
		}
	}
	seen := func() {
		ok(t, w.SetPosts(t.Context(), []Post{{ID: e.ID, State: manifest.StateLive}}))
	}
	seen()
	is("before its image", false)
	store(t, w, e.Key, "body")
	is("with a new image", true)
	seen()
	is("seen again", false)
}

// TestSubreddit keeps what Reddit said apart from what the manifest says, and forgets it with
// the rest.
func TestSubreddit(t *testing.T) {
	e := numbered(1)[0]
	e.Subreddit = "told"
	w := loaded(t, e)
	is := func(when, want string) {
		t.Helper()
		for p, err := range w.Posts(t.Context()) {
			if err != nil || p.Subreddit != want || p.Told != "told" {
				t.Errorf("%s: subreddit %q, told %q, %v, want %q", when, p.Subreddit, p.Told, err, want)
			}
			p.Told = "not to be stored"
			ok(t, w.SetPosts(t.Context(), []Post{p}))
		}
		if rec := collect(t, w.Records(t.Context(), Select{}))[0]; rec.Post.Subreddit != want || rec.Post.Told != "told" {
			t.Errorf("%s: record has %q and %q", when, rec.Post.Subreddit, rec.Post.Told)
		}
	}
	is("never asked", "")
	ok(t, w.SetPosts(t.Context(), []Post{{ID: e.ID, State: manifest.StateLive, Subreddit: "seen"}}))
	is("seen", "seen")
	ok(t, w.Erase(t.Context(), e.ID))
	is("erased", "")
}
