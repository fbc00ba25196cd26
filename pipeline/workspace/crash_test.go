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
	"syscall"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// life does one of everything that changes a workspace, and can be started again after a stop
// anywhere, as a run can.
func life(ctx context.Context, w *Workspace) error {
	k := func(id string) manifest.Key { return manifest.Key{ID: manifest.PostID(id)} }
	if _, err := w.Sweep(ctx); err != nil {
		return err
	}
	if err := w.Load(ctx, binding("1"), seq(numbered(4), nil), nil); err != nil {
		return err
	}
	for _, id := range []string{"a000", "a001", "a001", "a002"} {
		body := fmt.Append(nil, id, "a body")
		if err := w.StoreImage(ctx, k(id), body, describe(body, "png")); err != nil {
			return err
		}
		if err := w.SetReading(ctx, k(id), Reading{Fingerprint: "f", ImageSHA256: digestOf(body), Text: "t"}); err != nil {
			return err
		}
	}
	again := Reading{Fingerprint: "g", ImageSHA256: digestOf([]byte("a002a body")), Text: "u"}
	if err := errors.Join(w.BeginReread(ctx), w.Reread(ctx, k("a002"), again, "t"), w.EndReread(ctx)); err != nil {
		return err
	}
	other := []byte("another body in the same place")
	if err := w.StoreImage(ctx, k("a000"), other, describe(other, "png")); err != nil {
		return err
	}
	if err := w.SetTrouble(ctx, k("a001"), Trouble{Outcome: manifest.Gone}); err != nil {
		return err
	}
	if err := w.SetPosts(ctx, []Post{{ID: "a002", State: manifest.StateRemoved}}); err != nil {
		return err
	}
	if err := w.Erase(ctx, "a002"); err != nil {
		return err
	}
	for _, text := range []string{"first", "second"} {
		if _, err := w.Replace(ctx, "dataset/x", func(f io.Writer) error { _, err := io.WriteString(f, text); return err }); err != nil {
			return err
		}
	}
	return nil
}

// checkSound asserts what must hold after a kill anywhere: before a Sweep, every row of an
// image speaks of a whole file, unless an Erase or a SetTrouble was under way; after it, rows
// and files agree, and nothing unfinished is left.
func checkSound(t *testing.T, w *Workspace, swept bool) {
	t.Helper()
	ctx := t.Context()
	var want []string
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		if r.Image == nil {
			continue
		}
		if swept && r.Post.State.Gone() {
			t.Errorf("post %s is %s and still has an image", r.ID, r.Post.State)
		}
		var damaged *Damaged
		body, err := w.ReadImage(ctx, r.Key, *r.Image)
		if errors.As(err, &damaged) && damaged.What == "is missing" && !swept {
			continue
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
	if !swept {
		return
	}
	same(t, "image files", want, files(t, w, "images"))
	if names := temps(t, w.Dir()); len(names) > 0 {
		t.Errorf("temporary files are left: %v", names)
	}
}

func checkEnd(t *testing.T, w *Workspace) {
	t.Helper()
	checkSound(t, w, true)
	got, err := w.Files(t.Context(), ".")
	got = slices.DeleteFunc(got, func(name string) bool { return name == logKeyName || strings.HasPrefix(name, auditName+"/") })
	same(t, "files in the end", []string{"dataset/x", "images/a0/a000.png", "lock", "state.db"}, got, err)
}

// checkClosed asserts what a writer that closed leaves, whatever was killed before: a seal that
// holds, and a log that is whole and has each record of told once.
func checkClosed(t *testing.T, dir string, told []string) {
	t.Helper()
	ctx := t.Context()
	r := readOnly(t, dir)
	defer r.Close()
	checkSeal(t, r)
	queue, err := r.Unpublished(ctx)
	if err != nil || len(queue) > 0 {
		t.Errorf("not published: %v, %v", queue, err)
	}
	log, err := r.LogReader(ctx)
	ok(t, err)
	if err := log.Verify(ctx); err != nil {
		t.Error(err)
	}
	notes := map[string]int{}
	for e, err := range log.Records(ctx, 0) {
		ok(t, err)
		if e.Kind == auditlog.Restored {
			t.Errorf("record %d names a backup, and there was none: %+v", e.Seq, e)
		}
		notes[e.Note]++
	}
	for _, note := range told {
		if notes[note] != 1 {
			t.Errorf("record %q stands %d times in the log", note, notes[note])
		}
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
		if f.Name == stateName {
			now, err = w.StatState(t.Context())
		}
		if err != nil || now != f {
			t.Errorf("%s was sealed as %+v and is %+v, %v", f.Name, f, now, err)
		}
		names = append(names, f.Name)
	}
	for _, name := range []string{"audit/checkpoint", "audit/log.pub", "audit/records.jsonl", "dataset/x", "log.key", "state.db"} {
		if !slices.Contains(names, name) {
			t.Errorf("the seal does not have %s: %q", name, names)
		}
	}
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
	n := 0
	ctx = hooked(ctx, func(string) error {
		if n++; n == at {
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

// TestKilledAtEveryStep kills a process at its first step, at its second, and so on until it
// gets through, and each time checks what it left and continues from there.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	stride := 1
	if testing.Short() {
		stride = 5
	}
	killed := 0
	for n := 1; ; n += stride {
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
		r.Close()
		same(t, fmt.Sprintf("step %d: reading changed the folder", n), before, snapshot(t, dir))
		w := open(t, dir)
		if _, err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkSound(t, w, true)
		ok(t, errors.Join(noSync(w), life(t.Context(), w)))
		checkEnd(t, w)
		ok(t, w.Close())
		checkClosed(t, dir, strings.FieldsFunc(stdout.String(), func(c rune) bool { return c == '\n' }))
		if t.Failed() {
			t.Fatalf("killed at step %d", n)
		}
		if err == nil {
			break
		}
	}
	if killed < 50/stride {
		t.Errorf("only %d kills: the steps are not announced any more", killed)
	}
}

// TestFailedAtEveryStep makes each step fail in turn, as a full or dying disk would, and goes
// on in the same process.
func TestFailedAtEveryStep(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for n := 1; ; n++ {
		w := open(t, filepath.Join(t.TempDir(), "w"))
		ok(t, noSync(w))
		at := 0
		failing := hooked(t.Context(), func(string) error {
			if at++; at == n {
				return boom
			}
			return nil
		})
		err := life(failing, w)
		if err == nil {
			err = errors.Join(w.publish(failing), w.scrub(failing), w.seal(failing))
		}
		if err == nil {
			if at >= n {
				t.Errorf("step %d failed and nothing said so", n)
			}
			if n < 50 {
				t.Errorf("only %d steps: they are not announced any more", n)
			}
			return
		}
		if !errors.Is(err, boom) {
			t.Fatalf("step %d: %v", n, err)
		}
		if names := temps(t, w.Dir()); len(names) > 0 {
			t.Errorf("step %d: temporary files are left: %v", n, names)
		}
		checkSound(t, w, false)
		if err := life(t.Context(), w); err != nil {
			t.Fatalf("after step %d failed: %v", n, err)
		}
		checkEnd(t, w)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
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
	return w.change(ctx, "die", func(t *tx) {
		t.exec("UPDATE entry SET split = 'HOT' || split")
		for i := range 50 {
			t.exec("INSERT INTO meta (key, value) VALUES (?, hex(randomblob(4000)))", i)
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
	same(t, "read-only after a kill", want, collect(t, r.Records(ctx, Select{})))
	if err := r.SetMeta(ctx, "k", "v"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("SetMeta: %v", err)
	}
	r.Close()
	same(t, "a read-only workspace changed its folder", before, snapshot(t, w.Dir()))
}
