package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rehydrate/internal/durable"
	"rehydrate/internal/safely"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// storing returns what stores an image of each of numbered(n).
func storing(ctx context.Context, w *Workspace, n int) (all []func() error) {
	for i := range n {
		all = append(all, func() error {
			body := fmt.Appendf(nil, "body %d", i)
			return w.StoreImage(ctx, numbered(n)[i].Key, body, describe(body, "png"))
		})
	}
	return all
}

// stored asserts that w has images of these entries, each with its file, and no other file.
func stored(t *testing.T, w *Workspace, want string) {
	t.Helper()
	checkSound(t, w, true)
	var have []string
	for _, r := range collect(t, w.Records(t.Context(), Select{})) {
		if r.Image != nil {
			have = append(have, r.Key.String())
		}
	}
	testkit.Same(t, "images", want, strings.Join(have, " "))
}

// TestChangesFollowEachOther: whatever is stored at the same time, an image's file has content and name on the disk
// before its row is committed.
func TestChangesFollowEachOther(t *testing.T) {
	w := loaded(t, numbered(5)...)
	var mu sync.Mutex
	var steps []string
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, name string) error {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, step+" "+name)
		return nil
	})
	at := func(from int, step string) int {
		i := slices.Index(steps[from:], step)
		if i < 0 {
			t.Fatalf("no %q after step %d of %q", step, from, steps)
		}
		return from + i
	}
	for i, f := range storing(ctx, w, 2) { // one at a time
		steps = nil
		testkit.OK(t, f())
		made := slices.IndexFunc(steps, func(s string) bool { return strings.HasPrefix(s, "create ") })
		_, temp, _ := strings.Cut(steps[made], " ")
		testkit.Same(t, "", []string{"create " + temp, "write " + temp, "sync " + temp,
			fmt.Sprintf("rename images/a0/a00%d.png", i),
			"syncdir images/a0", "commit write the row"}, steps[made:])
	}
	steps = nil
	testkit.OK(t, together(storing(ctx, w, 5)[2:]...))
	for i := 2; i < 5; i++ { // a row each, of which any may be that of this file
		name := fmt.Sprintf("images/a0/a00%d.png", i)
		at(at(at(0, "rename "+name), "syncdir "+path.Dir(name)), "commit write the row")
	}
}

// TestAFailedChangeFailsAlone: of changes that are made at the same time each fails by its own trouble only, and leaves
// nothing.
func TestAFailedChangeFailsAlone(t *testing.T) {
	ctx := t.Context()
	for name, bad := range map[string]func(w *Workspace) error{
		"image of no entry": func(w *Workspace) error {
			return w.StoreImage(ctx, key("zzz"), []byte("body"), describe([]byte("body"), "png"))
		},
		"refused": func(w *Workspace) error {
			return w.change(ctx, "try", func(ctx context.Context,
				t *tx) {
				t.dropRows(ctx, key("a000"), "0")
				t.fail(errBoom)
			})
		},
		"panic": func(w *Workspace) error {
			return w.change(ctx, "try", func(ctx context.Context,
				t *tx) {
				t.exec(ctx, "DELETE FROM entry")
				panic("boom")
			})
		},
		"over before it began": func(w *Workspace) error {
			over, cancel := context.WithCancel(ctx)
			cancel()
			return w.change(over, "try", func(ctx context.Context, t *tx) { t.dropRows(ctx, key("a000"), "0") })
		},
		"over in the middle": func(w *Workspace) error {
			over, cancel := context.WithCancel(ctx)
			return w.change(over, "try", func(ctx context.Context,
				t *tx) {
				t.dropRows(ctx, key("a000"), "0")
				cancel()
				t.dropRows(ctx, key("a001"), "0")
			})
		},
		"the disk": func(w *Workspace) error {
			return w.change(ctx, "try", func(ctx context.Context, t *tx) {
				t.exec(ctx, "ROLLBACK") // what SQLite does by itself when it cannot read or write
				t.fail(errBoom)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := loaded(t, numbered(4)...)
			testkit.OK(t, noSync(w))
			var got error
			try := func() error { got = bad(w); return nil }
			testkit.OK(t, together(append(storing(ctx, w, 4), try)...))
			if got == nil || name == "panic" && !errors.As(got, new(*safely.Panic)) {
				t.Errorf("it ended with %v", got)
			}
			stored(t, w, "a000 a001 a002 a003")
			testkit.Same(t, "records of the log", 4, len(waiting(t, w)))
		})
	}
}

// TestFullDiskStoresNothing: what does not fit is not stored, and the next change is.
func TestFullDiskStoresNothing(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(3)...)
	_, err := w.db.Exec("PRAGMA max_page_count = 40")
	testkit.OK(t, err, noSync(w))
	err = w.change(ctx, "try", func(ctx context.Context, t *tx) { t.setMeta(ctx, "large", strings.Repeat("x", 1<<20)) })
	if err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("it ended with %v", err)
	}
	testkit.OK(t, together(storing(ctx, w, 3)...))
	stored(t, w, "a000 a001 a002")
}

// TestBusyStateStoresNothing: a commit that waits too long for another program to end its reading is not stored; the
// next one is.
func TestBusyStateStoresNothing(t *testing.T) {
	w := loaded(t, numbered(2)...)
	_, err := w.db.Exec("PRAGMA busy_timeout = 1")
	other, opened := sql.Open("sqlite", filepath.Join(w.dir, stateName))
	testkit.OK(t, err, opened, noSync(w))
	defer other.Close()
	reading, err := other.Query("SELECT id FROM entry")
	testkit.OK(t, err)
	reading.Next()
	store := storing(t.Context(), w, 2)
	if err := store[0](); err == nil || !strings.Contains(err.Error(), "close the program that uses it") {
		t.Errorf("it ended with %v", err)
	}
	testkit.OK(t, reading.Close(), store[1]())
	stored(t, w, "a001")
}

// TestImagesOfAPostChangeOneByOne: while an image of a post is changed, no other change of its images begins.
func TestImagesOfAPostChangeOneByOne(t *testing.T) {
	w := loaded(t, numbered(1)...)
	steps := 0
	ctx := hooked(t.Context(), func(step string) error {
		if steps++; w.post("a000").TryLock() {
			t.Errorf("another change of the post may begin before step %d, %q", steps, step)
		}
		return nil
	})
	for range 2 {
		testkit.OK(t, storing(ctx, w, 1)[0]())
	}
	testkit.OK(t, w.DropImage(ctx, key("a000"), Trouble{Outcome: manifest.Gone}, false), w.Erase(ctx, "a000"))
	testkit.Same(t, "", true, steps > 15 && w.post("a000").TryLock())
}

// TestEndedBeforeItsCommit: a change whose statements are done is stored, though its context ends before the commit.
func TestEndedBeforeItsCommit(t *testing.T) {
	w := loaded(t)
	ctx, cancel := context.WithCancel(t.Context())
	testkit.OK(t, w.change(ctx, "try", func(ctx context.Context, t *tx) { t.setMeta(ctx, "a", "there"); cancel() }))
	value, err := w.Meta(t.Context(), "a")
	testkit.Same(t, "a", "there", value, err)
}
