package workspace

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestRowsOfOneImageAreJoinedInOrder joins the rows of an image in their order, and rows of one image cost no more than
// those of many.
func TestRowsOfOneImageAreJoinedInOrder(t *testing.T) {
	load := func(n, posts int) (*Workspace, uint64) {
		b := binding("1")
		b.Schema.Many = true
		w := open(t, t.TempDir()+"/w")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		testkit.OK(t, w.Load(t.Context(), b, func(yield func(manifest.Entry, error) bool) {
			for i := range n {
				e := entry(i, fmt.Sprintf("a%04d", i%posts), 0)
				e.Labels, e.Values = [][]int{{i}}, [][]string{{fmt.Sprint("row ", i)}, nil}
				if !yield(e, nil) {
					return
				}
			}
		}, nil))
		runtime.ReadMemStats(&after)
		return w, after.TotalAlloc - before.TotalAlloc
	}
	w, _ := load(5, 2)
	want := []manifest.Entry{entry(0, "a0000", 0), entry(1, "a0001", 0)}
	want[0].Labels, want[0].Values = [][]int{{0, 2, 4}},
		[][]string{{"row 0", "row 2", "row 4"}, {manifest.NoValue, manifest.NoValue, manifest.NoValue}}
	want[1].Labels, want[1].Values = [][]int{{1, 3}}, [][]string{{"row 1", "row 3"}, {manifest.NoValue, manifest.NoValue}}
	var got []manifest.Entry
	for _, r := range collect(t, w.Records(t.Context(), Select{})) {
		got = append(got, r.Entry)
	}
	testkit.Same(t, "joined", want, got)
	_, many := load(2000, 2000)
	for _, posts := range []int{1, 2} {
		if _, few := load(2000, posts); few > 2*many {
			t.Errorf("2000 rows of %d posts allocate %d bytes, those of 2000 posts %d", posts, few, many)
		}
	}
}

// TestReadmissionSuspendsATombstone suspends a tombstone, makes it hold again, and shows what replaces its state, time
// and reason.
func TestReadmissionSuspendsATombstone(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(1)...)
	const removed, deleted = manifest.StateRemoved, manifest.StateDeleted
	readmit := func(yes bool) func() error { return func() error { return w.SetReadmitted(ctx, yes, "a000") } }
	add := func(s manifest.PostState, r manifest.Reason, h int64) func() error {
		return func() error { return w.AddTombstones(ctx, []Tombstone{stone("a000", s, r, h)}) }
	}
	back := stone("a000", removed, "moderator", 1)
	back.Readmitted = true
	for _, step := range []struct {
		name   string
		do     func() error
		want   Tombstone
		erased int // posts whose content the next Sweep erases
	}{
		{"unavailable", add(manifest.StateUnavailable, "", 1), stone("a000", manifest.StateUnavailable, "", 1), 1},
		{"removed", add(removed, "moderator", 1), stone("a000", removed, "moderator", 1), 1},
		{"back", readmit(true), back, 0},
		{"not any more", readmit(false), stone("a000", removed, "moderator", 1), 1},
		{"back again", readmit(true), back, 0},
		{"removed again", add(removed, "automod_filtered", 2), stone("a000", removed, "automod_filtered", 2), 1},
		{"only unavailable", add(manifest.StateUnavailable, "", 3), stone("a000", removed, "automod_filtered", 2), 1},
		{"by somebody else", add(removed, "legal", 3), stone("a000", removed, "legal", 3), 1},
		{"published", add(removed, "", 4), stone("a000", removed, "", 3), 1},
		{"unavailable, and published", add(manifest.StateUnavailable, "", 5), stone("a000", removed, "", 3), 1},
		{"deleted", add(deleted, "author", 5), stone("a000", deleted, "author", 5), 1},
		{"removed after that", add(removed, "moderator", 6), stone("a000", deleted, "author", 6), 1},
		{"deleted, published", add(deleted, "", 8), stone("a000", deleted, "", 6), 1},
	} {
		testkit.OK(t, step.do())
		got, err := w.Tombstones(ctx)
		testkit.Same(t, step.name, []Tombstone{step.want}, got, err)
		store(t, w, key("a000"), "content")
		testkit.OK(t, w.SetPosts(ctx, []Post{{ID: "a000", State: manifest.StateLive}}))
		swept, err := w.Sweep(ctx, nil)
		testkit.Same(t, step.name+": Sweep", Swept{Erased: step.erased}, swept, err)
	}
	older := stone("b", manifest.StateUnavailable, "", 1)
	testkit.OK(t, w.AddTombstones(ctx, []Tombstone{older}))
	got, err := w.Tombstones(ctx)
	testkit.Same(t, "the oldest first", []Tombstone{older, stone("a000", deleted, "", 6)}, got, err)
	for _, bad := range []Tombstone{stone("c", manifest.StateLive, "", 1), stone("C", deleted, "", 1)} {
		if err := w.AddTombstones(ctx, []Tombstone{bad}); err == nil {
			t.Errorf("%+v became a tombstone", bad)
		}
	}
	testkit.OK(t, w.Close())
	told := 0
	for _, line := range logOf(t, w.Dir()) {
		if line == "tombstone a000:deleted:author" {
			told++
		}
	}
	testkit.Same(t, "records of the tombstone as it was when the post was deleted, and removed after that", 2, told)
}

// TestSharedImagesAreOfDifferentURLs counts URLs of live posts, not entries: one URL that many posts share says
// nothing, and neither does a post that is held or was absent.
func TestSharedImagesAreOfDifferentURLs(t *testing.T) {
	w := loaded(t, numbered(7)...)
	var posts []Post
	for i, e := range numbered(7) {
		body, source := "the same", fmt.Sprint("url ", i)
		if i > 3 {
			body, source = "another", "one url"
		}
		img := describe([]byte(body), "png")
		img.Source, img.OriginalSHA256 = source, digestOf([]byte(body))
		testkit.OK(t, w.StoreImage(t.Context(), e.Key, []byte(body), img))
		posts = append(posts, Post{ID: e.ID, State: manifest.StateLive})
	}
	for _, tt := range []struct {
		name  string
		first Post
		urls  int
		want  map[string]SharedImage
	}{
		{"all live", posts[0], 4, map[string]SharedImage{digestOf([]byte("the same")): {4, 4}}},
		{"too few URLs", posts[0], 5, map[string]SharedImage{}},
		{"one held", Post{ID: posts[0].ID, State: manifest.StateHeld}, 4, map[string]SharedImage{}},
		{"one absent", Post{ID: posts[0].ID, State: manifest.StateLive, AbsentAt: time.Unix(1e9, 0)}, 4,
			map[string]SharedImage{}},
	} {
		posts[0] = tt.first
		testkit.OK(t, w.SetPosts(t.Context(), posts))
		shared, err := w.SharedImages(t.Context(), tt.urls)
		testkit.Same(t, tt.name, tt.want, shared, err)
	}
	came, err := w.ImagesThatCame(t.Context(), []string{digestOf([]byte("the same"))})
	var keys []manifest.Key
	for _, r := range came {
		keys = append(keys, r.Key)
	}
	testkit.Same(t, "of that digest", []manifest.Key{key("a000"), key("a001"), key("a002"), key("a003")}, keys, err)
}

// TestErasureForgetsTheSubreddit: an image that is stored after the last answer marks the post until the next one; what
// Reddit said of the subreddit stands beside what the manifest says, and is forgotten with the rest.
func TestErasureForgetsTheSubreddit(t *testing.T) {
	e := numbered(1)[0]
	e.Subreddit = "told"
	w := loaded(t, e)
	seen := Post{ID: e.ID, State: manifest.StateLive, Subreddit: "seen", Told: "not to be stored"}
	answer := func() { testkit.OK(t, w.SetPosts(t.Context(), []Post{seen})) }
	for _, step := range []struct {
		when      string
		do        func()
		unseen    bool
		subreddit string
	}{
		{"never asked", func() {}, false, ""},
		{"asked", answer, false, "seen"},
		{"with a new image", func() { store(t, w, e.Key, "body") }, true, "seen"},
		{"seen again", answer, false, "seen"},
		{"erased", func() { testkit.OK(t, w.Erase(t.Context(), e.ID)) }, false, ""},
	} {
		step.do()
		got := collect(t, w.Posts(t.Context()))[0]
		want := Post{ID: e.ID, State: got.State, Unseen: step.unseen, Subreddit: step.subreddit, Told: "told"}
		testkit.Same(t, step.when, want, got)
		testkit.Same(t, step.when+": the record", want, collect(t, w.Records(t.Context(), Select{}))[0].Post)
	}
}
