package verify_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/audit/verify"
	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
)

// made returns a workspace that was opened and closed once, and so is sealed.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
	testkit.OK(t, err)
	testkit.OK(t, ws.Close())
	return dir
}

// TestWorkspace damages a sealed workspace in one file after another.
func TestWorkspace(t *testing.T) {
	for name, test := range map[string]struct {
		harm  func(dir string) error
		where string // the file that is named, "" for none
	}{
		"nothing": {func(string) error { return nil }, ""},
		"a bit": {func(dir string) error { return flip(filepath.Join(dir, "state.db"), 4000) },
			"state.db"},
		"the seal": {func(dir string) error {
			return flip(filepath.Join(dir, "audit/seal.json"),
				0)
		}, "audit/seal.json"},
		"a missing file": {func(dir string) error { return os.Remove(filepath.Join(dir, "state.db")) },
			"state.db"},
		"a stray file": {func(dir string) error { return write(dir, "images/zz.txt", "stray") },
			"images/zz.txt"},
		"an empty folder": {func(dir string) error { return os.Mkdir(filepath.Join(dir, "foo"), 0o700) },
			"foo"},
		"an empty folder of a post": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir,
				"dataset/1q2wbv"), 0o700)
		}, "dataset/1q2wbv"},
		"a folder whose images are erased": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "images/1q"),
				0o700)
		}, ""},
		"a journal": {func(dir string) error { return write(dir, "state.db-journal", "x") },
			"state.db-journal"},
		"a stuffed lock": {func(dir string) error {
			return write(dir, "lock",
				"1 and what somebody hid in it, behind it")
		}, "lock"},
		"another's file": {func(dir string) error { return write(dir, "notes.md", "x") }, "notes.md"},
		"a broken key": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "audit/seal.json")), write(dir, "log.key", "broken\n"))
		}, "log.key"},
		"a symbolic link": {func(dir string) error { return os.Symlink("state.db", filepath.Join(dir, "link")) }, "link"},
	} {
		dir := made(t)
		testkit.OK(t, test.harm(dir))
		r, err := verify.Workspace(t.Context(), dir)
		testkit.OK(t, err)
		named := map[string]bool{}
		for _, d := range r.Damage {
			named[d.Where] = true
			if d.What == "" || d.Mend == "" {
				t.Errorf("%s: %+v says too little", name, d)
			}
		}
		if r.Whole != (test.where == "") || test.where != "" && !named[test.where] {
			t.Errorf("%s: whole %t, damage %+v, want it in %q", name, r.Whole, r.Damage, test.where)
		}
	}
}

// TestNoWorkspace names a folder that is none, and one that is missing.
func TestNoWorkspace(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := verify.Workspace(t.Context(), dir); !errors.Is(err, workspace.ErrNoWorkspace) {
			t.Errorf("%s: %v, want ErrNoWorkspace", dir, err)
		}
	}
}

// flip turns the lowest bit of one byte of a file.
func flip(name string, at int) error {
	b, err := os.ReadFile(name)
	if err == nil {
		b[at] ^= 1
		err = os.WriteFile(name, b, 0o600)
	}
	return err
}

// write writes a file below dir, and the folder that it lies in.
func write(dir, name, text string) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// TestChangedBefore: a change of state.db between two writers stays damage, though the second one seals what it left.
func TestChangedBefore(t *testing.T) {
	dir := made(t)
	reopened := func() verify.Report {
		ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
		testkit.OK(t, err)
		testkit.OK(t, ws.Note(t.Context(), auditlog.Event{Kind: auditlog.Run, Phase: auditlog.Started}), ws.Close())
		r, err := verify.Workspace(t.Context(), dir)
		testkit.OK(t, err)
		return r
	}
	if r := reopened(); !r.Whole {
		t.Fatalf("before: %+v", r.Damage)
	}
	older, err := os.ReadFile(filepath.Join(dir, "state.db"))
	testkit.OK(t, err)
	if r := reopened(); !r.Whole {
		t.Fatalf("before: %+v", r.Damage)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	testkit.OK(t, err)
	_, err = db.Exec("INSERT INTO meta (key, value) VALUES ('x', 'by hand')")
	testkit.OK(t, err, db.Close())
	for range 2 {
		if r := reopened(); r.Whole || !strings.Contains(r.Damage[0].What, "was changed or damaged before") {
			t.Fatalf("changed by hand: %+v", r)
		}
	}
	// An older one from a backup is no damage: the log tells its age, and what was changed is gone.
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "state.db"), older, 0o600))
	if r := reopened(); !r.Whole {
		t.Errorf("an older one: %+v", r.Damage)
	}
}

// TestDamagedTombstones: no command works beside a tombstones.csv that is no list, and no job believes one that was
// changed, so verify says that it has to go.
func TestDamagedTombstones(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		dir := made(t)
		const none = "id,state,time\n"
		testkit.OK(t, write(dir, "tombstones.csv", none)) // by hand
		if r, err := verify.Workspace(t.Context(), dir); err != nil || len(r.Damage) != 1 || !mendsList(r.Damage[0]) {
			t.Errorf("put there: %v: %+v", err, r)
		}
		ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
		testkit.OK(t, err)
		_, err = ws.Replace(t.Context(), "tombstones.csv", func(w io.Writer) error {
			_, err := io.WriteString(w, none)
			return err
		}, nil)
		testkit.OK(t, err, ws.Close())
		if !sealed {
			testkit.OK(t, os.Remove(filepath.Join(dir, "audit/seal.json")))
		}
		r, err := verify.Workspace(t.Context(), dir)
		if err != nil || !r.Whole || strings.Contains(strings.Join(r.Notes, "\n"), "tombstones.csv") {
			t.Errorf("sealed %t: %v: %+v", sealed, err, r)
		}
		for text, broken := range map[string]bool{"nonsense\n": true,
			"id,state,time\n1aa001,removed,2026-01-01T00:00:00Z\n": false} {
			testkit.OK(t, write(dir, "tombstones.csv", text))
			r, err := verify.Workspace(t.Context(), dir)
			testkit.OK(t, err)
			if (len(r.Damage) == 1) != (sealed || broken) {
				t.Errorf("sealed %t, %q: %+v", sealed, text, r.Damage)
			}
			for _, d := range r.Damage {
				if !mendsList(d) {
					t.Errorf("sealed %t, %q: %+v", sealed, text, d)
				}
			}
		}
	}
}

// mendsList reports whether what is wrong is tombstones.csv, with what to do about it.
func mendsList(d verify.Damage) bool {
	return d.Where == "tombstones.csv" && strings.HasPrefix(d.Mend, "move it out of the workspace, then ")
}

// TestDamagedSeal: the next job replaces a seal that is damaged. Nobody touched state.db, and neither the log nor
// verify says so.
func TestDamagedSeal(t *testing.T) {
	for name, harm := range map[string]func(name string) error{
		"another object": func(name string) error { return os.WriteFile(name, []byte("{}\n"), 0o600) },
		"cut":            func(name string) error { return os.Truncate(name, 100) },
		"empty":          func(name string) error { return os.Truncate(name, 0) },
		"a bit":          func(name string) error { return flip(name, 40) },
		"a folder":       func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t)
			again := func() (verify.Report, error) {
				ws, err := workspace.Open(t.Context(), dir, workspace.Options{})
				testkit.OK(t, err)
				_, err = ws.Sweep(t.Context(), nil)
				testkit.OK(t, err, ws.Note(t.Context(), auditlog.Event{Kind: auditlog.Run, Phase: auditlog.Started}), ws.Close())
				return verify.Workspace(t.Context(), dir)
			}
			r, err := again()
			testkit.OK(t, err, harm(filepath.Join(dir, "audit/seal.json")))
			if damaged, err := verify.Workspace(t.Context(), dir); err != nil || !r.Whole || damaged.Whole {
				t.Errorf("before: whole %t, with the damage %t, %v", r.Whole, damaged.Whole, err)
			}
			r, err = again()
			if err != nil || !r.Whole || !r.Sealed || r.Records != 2 {
				t.Errorf("after: whole %t, sealed %t, %d records of the log, want 2, %v: %+v", r.Whole, r.Sealed, r.Records, err,
					r.Damage)
			}
		})
	}
}

// TestWorkspaceBesideACommand: without a seal, damage that is another at the next look is that of a file that a command
// is writing. Damage that stays is damage.
func TestWorkspaceBesideACommand(t *testing.T) {
	half := func(whole []byte) []byte { return whole[:len(whole)/2] }
	other := func(whole []byte) []byte { return []byte("no database") }
	whole := func(whole []byte) []byte { return whole }
	for name, tt := range map[string]struct {
		state [2]func(whole []byte) []byte // of state.db, at each look
		want  error
		whole bool
	}{
		"it changes":     {[2]func([]byte) []byte{half, other}, workspace.ErrInUse, false},
		"it is finished": {[2]func([]byte) []byte{half, whole}, nil, true},
		"it stays":       {[2]func([]byte) []byte{half, half}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, looks := made(t), 0
			file := filepath.Join(dir, "state.db")
			body, err := os.ReadFile(file)
			testkit.OK(t, err, os.Remove(filepath.Join(dir, "audit/seal.json")))
			ctx := context.WithValue(t.Context(), durable.HookKey{}, func(string, string) error {
				looks++
				return os.WriteFile(file, tt.state[looks-1](body), 0o600)
			})
			r, err := verify.Workspace(ctx, dir)
			if !errors.Is(err, tt.want) || looks != 2 || r.Whole != tt.whole {
				t.Errorf("%v after %d looks, want %v, whole %v: %+v", err, looks, tt.want, tt.whole, r.Damage)
			}
		})
	}
}
