package workspace

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
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

// commits is how often state.db was changed: SQLite counts it in the header ("The Database File Format", 1.3.9).
func commits(t *testing.T, w *Workspace) uint32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.Dir(), stateName))
	testkit.OK(t, err)
	return binary.BigEndian.Uint32(b[24:])
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

// TestOrder: whatever is stored at the same time, an image's file has content and name on the disk before its row is
// committed.
func TestOrder(t *testing.T) {
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
		testkit.Same(t, "", []string{"create " + temp, "write " + temp, "sync " + temp, fmt.Sprintf("rename images/a0/a00%d.png", i),
			"syncdir images/a0", "commit write the row"}, steps[made:])
	}
	steps = nil
	testkit.OK(t, together(w, storing(ctx, w, 5)[2:]...))
	first := at(0, "commit write the row")
	for i := 2; i < 5; i++ {
		name := fmt.Sprintf("images/a0/a00%d.png", i)
		if at(at(0, "rename "+name), "syncdir "+path.Dir(name)) > first {
			t.Errorf("a row was committed before the name of %s was on the disk: %q", name, steps)
		}
	}
}

// A lateEnd ends after it was asked once.
type lateEnd struct {
	context.Context
	asked bool
}

func (c *lateEnd) Err() error {
	if c.asked {
		return context.Canceled
	}
	c.asked = true
	return nil
}

// TestSharedCommit: changes that come while another is being committed share the next transaction; each fails by its own
// trouble only.
func TestSharedCommit(t *testing.T) {
	ctx := t.Context()
	for name, bad := range map[string]func(w *Workspace) error{
		"image of no entry": func(w *Workspace) error {
			return w.StoreImage(ctx, key("zzz"), []byte("body"), describe([]byte("body"), "png"))
		},
		"refused": func(w *Workspace) error {
			return w.change(ctx, "try", func(t *tx) { t.dropRows(key("a000")); t.fail(errBoom) })
		},
		"panic": func(w *Workspace) error {
			return w.change(ctx, "try", func(t *tx) { t.exec("DELETE FROM entry"); panic("boom") })
		},
		"over before it began": func(w *Workspace) error {
			over, cancel := context.WithCancel(ctx)
			cancel()
			return w.change(over, "try", func(t *tx) { t.dropRows(key("a000")) })
		},
		"over before its savepoint": func(w *Workspace) error {
			return w.change(&lateEnd{Context: ctx}, "try", func(t *tx) { t.dropRows(key("a000")) })
		},
		"over in the middle": func(w *Workspace) error {
			over, cancel := context.WithCancel(ctx)
			return w.change(over, "try", func(t *tx) { t.dropRows(key("a000")); cancel(); t.dropRows(key("a001")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range 3 { // the first in line has no savepoint
				w := loaded(t, numbered(4)...)
				testkit.OK(t, noSync(w))
				before := commits(t, w)
				var got error
				try := func() error { got = bad(w); return nil }
				testkit.OK(t, together(w, slices.Insert(storing(ctx, w, 4), at*2, try)...))
				if got == nil || name == "panic" && !errors.As(got, new(*safely.Panic)) {
					t.Errorf("it ended with %v", got)
				}
				stored(t, w, "a000 a001 a002 a003")
				if n := commits(t, w) - before; n < 1 || n > 2 { // where the first one fails, the rest begins again
					t.Errorf("%d commits of 4 images", n)
				}
				testkit.Same(t, "records of the log", 4, len(waiting(t, w)))
			}
		})
	}
}

// TestReadByAnother: a commit that waits too long for another program to end its reading is not stored; the next one is.
func TestReadByAnother(t *testing.T) {
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

// TestDiskFailsInSharedCommit: where the disk is full or broken in the middle of a shared transaction, who is told so has
// left nothing, and who is not has all.
func TestDiskFailsInSharedCommit(t *testing.T) {
	ctx := t.Context()
	for i := range 8 {
		w := loaded(t, numbered(3)...)
		_, err := w.db.Exec("PRAGMA max_page_count = 40")
		testkit.OK(t, err, noSync(w))
		full, at := i%2 == 0, i/2
		errs := make([]error, 4)
		all := slices.Insert(storing(ctx, w, 3), at, func() error {
			return w.change(ctx, "try", func(t *tx) {
				if full {
					t.setMeta("large", strings.Repeat("x", 1<<20))
				}
				t.exec("ROLLBACK") // what SQLite does by itself when it cannot read or write
				t.fail(errBoom)
			})
		})
		for i, f := range all {
			all[i] = func() error { errs[i] = f(); return nil }
		}
		testkit.OK(t, together(w, all...))
		if err := errs[at]; err == nil || full && !strings.Contains(err.Error(), "free some space") {
			t.Errorf("where the disk fails: %v", err)
		}
		var want []string
		for i, err := range slices.Delete(errs, at, at+1) {
			if err == nil {
				want = append(want, numbered(3)[i].Key.String())
			}
		}
		stored(t, w, strings.Join(want, " "))
		swept, err := w.Sweep(ctx, nil)
		testkit.Same(t, "left to sweep", Swept{}, swept, err)
		testkit.OK(t, together(w, storing(ctx, w, 3)...))
		stored(t, w, "a000 a001 a002")
	}
}

// TestOnePost: while an image of a post is changed, no other change of its images begins.
func TestOnePost(t *testing.T) {
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

// TestContextOfAnother: a change that is done outlives its context, also before it is committed, and so do those beside it.
func TestContextOfAnother(t *testing.T) {
	w := loaded(t)
	var cancels []func()
	change := func(name string) func() error {
		return func() error {
			ctx, cancel := context.WithCancel(t.Context())
			return w.change(ctx, "try", func(t *tx) {
				for _, cancel := range cancels { // of those that had their turn
					cancel()
				}
				cancels = append(cancels, cancel)
				for i := range 200 {
					t.setMeta(fmt.Sprint(name, i), "there")
				}
			})
		}
	}
	testkit.OK(t, together(w, change("a"), change("b"), change("c")))
	for _, name := range []string{"a0", "b199", "c199"} {
		value, err := w.Meta(t.Context(), name)
		testkit.Same(t, name, "there", value, err)
	}
}
