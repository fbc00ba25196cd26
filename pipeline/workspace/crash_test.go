package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// life does one of everything that changes a workspace, and can be started again after a stop
// anywhere, as a run can.
func life(ctx context.Context, w *Workspace) error {
	body := func(id string) []byte { return []byte(id + "a body") }
	read := func(id string) func() error {
		return func() error {
			return w.SetReadings(ctx, NewReading{Key: key(id),
				Reading: Reading{Fingerprint: "f", ImageSHA256: digestOf(body(id)), Text: "t"}})
		}
	}
	store := func(id string, body []byte) func() error {
		return func() error { return w.StoreImage(ctx, key(id), body, describe(body, "png")) }
	}
	replace := func(s string) func() error {
		return func() error { _, err := w.Replace(ctx, "dataset/x", text(s), nil); return err }
	}
	for _, do := range []func() error{
		func() error { _, err := w.Sweep(ctx, nil); return err },
		func() error { return w.Load(ctx, binding("1"), seq(numbered(4), nil), nil) },
		store("a000", body("a000")), read("a000"),
		func() error {
			return together(store("a001", body("a001")), store("a002", body("a002")), read("a000"))
		},
		read("a001"), store("a001", body("a001")), read("a001"), read("a002"),
		func() error { return w.BeginReread(ctx) },
		func() error {
			old := "t"
			return w.SetReadings(ctx, NewReading{Key: key("a002"),
				Reading: Reading{Fingerprint: "g", ImageSHA256: digestOf(body("a002")), Text: "u"}, Old: &old})
		},
		func() error { return w.EndReread(ctx) },
		func() error {
			return together(store("a000", []byte("another body in the same place")),
				func() error { return w.DropImage(ctx, key("a001"), Trouble{Outcome: manifest.Gone}, true) })
		},
		func() error { return w.SetPosts(ctx, []Post{{ID: "a002", State: manifest.StateRemoved}}) },
		func() error { return w.Erase(ctx, "a002") },
		replace("first"), replace("second"),
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// together runs changes of several goroutines.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, do := range all {
		group.Go(func() { errs[i] = do() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkSound asserts what must hold after a kill anywhere: before a Sweep, every row of an image, or what is to take
// its place, speaks of a whole file, unless an Erase or a DropImage was under way; after it, rows and files agree, and
// nothing unfinished is left.
func checkSound(t *testing.T, w *Workspace, swept bool) {
	t.Helper()
	var want []string
	for _, r := range collect(t, w.Records(t.Context(), Select{})) {
		if swept && r.Trouble != nil && r.Trouble.Beside == Going {
			t.Errorf("the image of %s is still to go", r.ID)
		}
		if r.Image == nil {
			continue
		}
		if swept && r.Post.State.Gone() {
			t.Errorf("post %s is %s and still has an image", r.ID, r.Post.State)
		}
		var damaged *Damaged
		body, err := w.ReadImage(t.Context(), r.Key, *r.Image)
		if errors.As(err, &damaged) && damaged.What == "is missing" && !swept {
			continue
		}
		if err != nil && !swept {
			nexts, failed := list(t.Context(), w.db, func(next *Image) []any { return []any{jsonColumn{next}} },
				"SELECT next FROM image WHERE id = ? AND image = ? AND next IS NOT NULL", r.ID, r.Key.Image)
			testkit.OK(t, failed)
			for _, next := range nexts {
				*r.Image = next
				body, err = w.ReadImage(t.Context(), r.Key, next)
			}
		}
		if err != nil || digestOf(body) != r.Image.SHA256 {
			t.Errorf("image of %s: %v", r.ID, err)
		}
		want = append(want, w.ImageName(r.Key, r.Image.Format))
	}
	if f, err := w.OpenFile("dataset/x"); err == nil {
		b, err := io.ReadAll(f)
		if text := string(b); err != nil || text != "first" && text != "second" {
			t.Errorf("dataset/x holds %q, %v", text, err)
		}
		f.Close()
	}
	if swept {
		testkit.Same(t, "image files", want, files(t, w, "images"))
		testkit.Same(t, "temporary files", []string(nil), temps(t, w.Dir()))
	}
}

func checkEnd(t *testing.T, w *Workspace) {
	t.Helper()
	checkSound(t, w, true)
	got := slices.DeleteFunc(files(t, w, "."), func(name string) bool {
		return name == logKeyName ||
			strings.HasPrefix(name, auditName+"/")
	})
	testkit.Same(t, "files in the end", []string{"dataset/x", "images/a0/a000.png", "lock", "state.db"}, got)
}

// checkClosed asserts what a writer that closed leaves, whatever was killed before: a seal that
// holds, and a log that is whole and has each record of told once.
func checkClosed(t *testing.T, dir string, told []string) {
	t.Helper()
	r := readOnly(t, dir)
	defer r.Close()
	checkSeal(t, r)
	testkit.Same(t, "not published", []string{}, waiting(t, r))
	notes := map[string]int{}
	for _, e := range logged(t, r) {
		if e.Kind == auditlog.Restored {
			t.Errorf("record %d names a backup, and there was none: %+v", e.Seq, e)
		}
		notes[e.Note]++
	}
	for _, note := range told {
		testkit.Same(t, fmt.Sprintf("times that %q stands in the log", note), 1, notes[note])
	}
}

// checkSeal asserts that the workspace is what its seal says.
func checkSeal(t *testing.T, w *Workspace) {
	t.Helper()
	seal, sealed, err := w.ReadSeal(t.Context())
	if err != nil || !sealed {
		t.Fatalf("sealed: %t, %v", sealed, err)
	}
	names := []string{}
	for _, f := range seal.Files {
		now, err := w.Stat(t.Context(), f.Name)
		testkit.Same(t, f.Name+" as it was sealed", f, now, err)
		names = append(names, f.Name)
	}
	testkit.Same(t, "files of the seal", []string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl",
		"dataset/x", "log.key", "state.db"}, names)
}

// noSync makes commits cheap where no power can be lost.
func noSync(w *Workspace) error {
	_, err := w.db.Exec("PRAGMA synchronous = OFF")
	return err
}

// crashChild lives and kills itself at the given step.
func crashChild(dir, step string) error {
	at, err := strconv.Atoi(step)
	if err != nil {
		return err
	}
	ctx := context.Background()
	first, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	if err := first.Close(); err != nil {
		return err
	}
	var n atomic.Int64
	ctx = hooked(ctx, func(string) error {
		if n.Add(1) == int64(at) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})
	w, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	if err := noSync(w); err != nil {
		return err
	}
	for i := range 3 { // each is acknowledged once it is stored, the second after a publication
		note := fmt.Sprint("note ", i)
		if err := w.Note(ctx, auditlog.Event{Kind: auditlog.Copy, Note: note}); err != nil {
			return err
		}
		fmt.Println(note)
		if i == 0 {
			if err := w.publish(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(life(ctx, w), w.Close())
}

// stride is how many steps a short test leaves out between two.
func stride(of int) int {
	if testing.Short() {
		return of
	}
	return 1
}

// TestKilledAtEveryStep kills a process at its first step, at its second, and so on until it
// gets through, and each time checks what it left and continues from there.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	killed := 0
	for n := 1; ; n += stride(7) {
		dir := filepath.Join(t.TempDir(), "w")
		c := child(t, "crash", dir, strconv.Itoa(n))
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		err := c.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			killed++
		} else if err != nil {
			t.Fatalf("step %d: %v: %s", n, err, stderr.Bytes())
		}
		before := snapshot(t, dir)
		r := readOnly(t, dir)
		checkSound(t, r, false)
		testkit.OK(t, r.Close())
		testkit.Same(t, fmt.Sprintf("step %d: the folder after reading", n), before, snapshot(t, dir))
		w := open(t, dir)
		_, sweepErr := w.Sweep(t.Context(), nil)
		testkit.OK(t, sweepErr)
		checkSound(t, w, true)
		testkit.OK(t, noSync(w), life(t.Context(), w))
		checkEnd(t, w)
		testkit.OK(t, w.Close())
		checkClosed(t, dir, strings.FieldsFunc(stdout.String(), func(c rune) bool { return c == '\n' }))
		if t.Failed() {
			t.Fatalf("killed at step %d", n)
		}
		if err == nil {
			break
		}
	}
	if killed < 50/stride(7) {
		t.Errorf("only %d kills: the steps are not announced any more", killed)
	}
}

// TestFailedAtEveryStep makes each step fail in turn, as a full or dying disk would, and goes
// on in the same process.
func TestFailedAtEveryStep(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += stride(4) {
		w := open(t, filepath.Join(t.TempDir(), "w"))
		testkit.OK(t, noSync(w))
		var steps atomic.Int64
		failing := hooked(t.Context(), func(string) error {
			if steps.Add(1) == int64(n) {
				return errBoom
			}
			return nil
		})
		err := life(failing, w)
		if err == nil {
			err = errors.Join(w.publish(failing), w.scrub(failing), w.seal(failing))
		}
		if err == nil {
			if at := int(steps.Load()); at >= n || n < 50 {
				t.Errorf("%d steps, and no error when step %d failed: they are not announced any more", at, n)
			}
			return
		}
		if !errors.Is(err, errBoom) {
			t.Fatalf("step %d: %v", n, err)
		}
		testkit.Same(t, "temporary files", []string(nil), temps(t, w.Dir()))
		checkSound(t, w, false)
		swept, err := w.Sweep(t.Context(), nil)
		testkit.Same(t, "files without a row", 0, swept.Orphans, err)
		testkit.OK(t, life(t.Context(), w))
		checkEnd(t, w)
		testkit.OK(t, w.Close())
		checkClosed(t, w.Dir(), nil)
		if t.Failed() {
			t.Fatalf("step %d failed", n)
		}
	}
}

// hotJournalChild dies in a transaction that has already overwritten pages of state.db.
func hotJournalChild(dir, _ string) error {
	ctx := context.Background()
	w, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	if _, err := w.db.Exec("PRAGMA cache_size = 2"); err != nil {
		return err
	}
	return w.change(ctx, "die", func(ctx context.Context, t *tx) {
		t.exec(ctx, "UPDATE entry SET split = 'HOT' || split")
		for i := range 50 {
			t.exec(ctx, "INSERT INTO meta (key, value) VALUES (?, hex(randomblob(4000)))", i)
		}
		t.fail(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	})
}

// TestReadOnlyRollsBack reads what a killed transaction overwrote: the workspace stays as it is, and nothing
// stays of the copy in which it is rolled back.
func TestReadOnlyRollsBack(t *testing.T) {
	ctx := t.Context()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	w := loaded(t, numbered(600)...)
	want := collect(t, w.Records(ctx, Select{}))
	w.Close()
	if err := child(t, "hot", w.Dir(), "").Run(); err == nil {
		t.Fatal("the child did not die")
	}
	if !contains(t, filepath.Join(w.Dir(), stateName), "HOTtrain") {
		t.Fatal("the child did not overwrite state.db: the test shows nothing")
	}
	before := snapshot(t, w.Dir())
	r := readOnly(t, w.Dir())
	if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
		t.Errorf("the copy is still there: %v, %v", left, err)
	}
	testkit.Same(t, "read-only after a kill", want, collect(t, r.Records(ctx, Select{})))
	if err := r.SetMeta(ctx, "k", "v"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("SetMeta: %v", err)
	}
	r.Close()
	testkit.Same(t, "a read-only workspace changed its folder", before, snapshot(t, w.Dir()))
}
