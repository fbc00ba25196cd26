package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"rehydrate/internal/testkit"
)

// steps returns a context that makes its nth step fail, 0 for none, and the steps seen so far. Random names
// are shown as a star.
func steps(t *testing.T, n int) (context.Context, *[]string) {
	var seen []string
	return context.WithValue(t.Context(), HookKey{}, func(step, name string) error {
		if at := strings.Index(name, TempPrefix); at >= 0 {
			name = name[:at] + "*"
		}
		if seen = append(seen, step+" "+name); len(seen) == n {
			return errBoom
		}
		return nil
	}), &seen
}

var errBoom = errors.New("boom")

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// tree returns what is in dir: content by name, "/" for a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		content := "/"
		if !e.IsDir() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			content = string(b)
		}
		rel, err := filepath.Rel(dir, name)
		all[rel] = content
		return err
	})
	testkit.OK(t, err)
	return all
}

func in(t *testing.T, dir string) *Folder {
	t.Helper()
	root, err := os.OpenRoot(dir)
	testkit.OK(t, err)
	t.Cleanup(func() { root.Close() })
	return In(root)
}

// TestOrder holds the order of the steps, and that one that fails leaves the old file or the new one, nothing
// beside it, and is an error.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, dir string) error
		want []string
		tree map[string]string
	}{
		{"below a root", func(ctx context.Context, dir string) error {
			d := in(t, dir)
			for range 2 { // the second time the folders are known
				if err := d.MkdirAll(ctx, "a/b", 0o700); err != nil {
					return err
				}
			}
			f, err := d.Create(ctx, "a/b/x", Options{})
			if err != nil {
				return err
			}
			defer f.Discard()
			if _, err := io.WriteString(f, "new"); err != nil {
				return err
			}
			return f.Publish()
		}, []string{"mkdir a", "syncdir .", "mkdir a/b", "syncdir a", "create a/b/*", "write a/b/*", "sync a/b/*",
			"rename a/b/x", "syncdir a/b"},
			map[string]string{"a": "/", "a/b": "/", "a/b/x": "new", "old": "old"}},
		{"remove", func(ctx context.Context, dir string) error {
			return in(t, dir).Remove(ctx, "old", "none",
				"old/below")
		},
			[]string{"unlink old", "unlink none", "unlink old/below", "syncdir ."}, map[string]string{}},
		{"by a path", func(ctx context.Context, dir string) error {
			return Write(ctx, filepath.Join(dir, "old"), 0, text("new"))
		}, []string{"create *", "write *", "sync *", "rename old", "syncdir ."}, map[string]string{"old": "new"}},
		{"folders by a path", func(ctx context.Context,
			dir string) error {
			return MkdirAll(ctx, filepath.Join(dir, "a", "b"), 0o700)
		},
			[]string{"mkdir a", "syncdir .", "mkdir b", "syncdir ."}, map[string]string{"a": "/", "a/b": "/", "old": "old"}},
		{"another name", func(ctx context.Context, dir string) error { return in(t, dir).Rename(ctx, "old", "new") },
			[]string{"rename new", "syncdir ."}, map[string]string{"new": "old"}},
	} {
		for n := 0; n <= len(tt.want); n++ {
			dir := t.TempDir()
			testkit.OK(t, os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600))
			ctx, seen := steps(t, n)
			err := tt.do(ctx, dir)
			left := tree(t, dir)
			if n > 0 {
				if !errors.Is(err, errBoom) || len(*seen) != n {
					t.Errorf("%s, step %d fails: %v after %d steps", tt.name, n, err, len(*seen))
				}
				for name, content := range left {
					want, known := tt.tree[name]
					if (!known || content != want) && (name != "old" || content != "old") {
						t.Errorf("%s, step %d fails: %s is %q, want %q (%t)", tt.name, n, name, content, want, known)
					}
				}
				continue
			}
			testkit.Same(t, tt.name, tt.want, *seen, err)
			testkit.Same(t, tt.name+" left", tt.tree, left)
		}
	}
}

// TestFile holds what a writer is told and what is left when it stops.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	testkit.OK(t, Write(t.Context(), path, 0o640, text("old")))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	func() {
		defer func() { recover() }()
		Write(t.Context(), path, 0, func(w io.Writer) error { w.Write(make([]byte, 1<<20)); panic("boom") })
	}()
	if err := Write(t.Context(), path, 0, func(io.Writer) error { return errBoom }); err != errBoom {
		t.Errorf("a writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Write(ctx, path, 0, func(w io.Writer) error { cancel(); _, err := w.Write(make([]byte, 1<<20)); return err })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a writer whose context ends: %v", err)
	}
	if err := Write(ctx, path, 0, text("")); !errors.Is(err, context.Canceled) {
		t.Errorf("an empty file of a context that is over: %v", err)
	}
	if err := Write(t.Context(), dir, 0, text("")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if err := Write(t.Context(), filepath.Join(dir, "none", "x"), 0, text("")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	f, err := Create(t.Context(), path, Options{Keep: true})
	testkit.OK(t, err)
	if _, err := io.WriteString(f, "another"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Size())
	if _, err := f.ReadAt(b, 0); string(b) != "another" || err != nil {
		t.Errorf("read back: %q, %v", b, err)
	}
	if err := f.Publish(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Publish over a file that is to stay: %v", err)
	}
	f.Discard()
	testkit.Same(t, "left", map[string]string{"x": "old"}, tree(t, dir))
}

// TestAppend: a file goes on from any of its bytes, and no step that fails touches those before.
func TestAppend(t *testing.T) {
	dir := t.TempDir()
	d := in(t, dir)
	for n := range 6 {
		os.Remove(filepath.Join(dir, "x"))
		ctx, seen := steps(t, n)
		err := d.Append(ctx, "x", 0, []byte("new"))
		if err == nil {
			err = d.Append(ctx, "x", 2, []byte("st"))
		}
		want := []string{"append x", "sync x", "syncdir .", "append x", "sync x"}
		left := tree(t, dir)["x"]
		if n == 0 && (err != nil || left != "nest" || cmp.Diff(want, *seen) != "") || n > 0 && !errors.Is(err, errBoom) ||
			n > 3 && !strings.HasPrefix(left, "ne") {
			t.Errorf("step %d fails: %q, %v after %q", n, left, err, *seen)
		}
	}
	if err := d.Append(t.Context(), "x", 9, nil); err == nil || !strings.Contains(err.Error(), "is to have 9") {
		t.Errorf("beyond the end: %v", err)
	}
}

// TestTemp: what a killed writer left under a fixed temporary name goes, and a file that grew behind the
// writer's back gets no name.
func TestTemp(t *testing.T) {
	dir := t.TempDir()
	d := in(t, dir)
	left := filepath.Join(dir, ".unfinished-x")
	testkit.OK(t, os.WriteFile(left, []byte("left by a kill"), 0o600))
	f, err := d.Create(t.Context(), "x", Options{Temp: ".unfinished-x"})
	testkit.OK(t, err)
	defer f.Discard()
	if _, err := io.WriteString(f, "new"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(left); string(b) != "new" || err != nil || f.Temp() != ".unfinished-x" {
		t.Errorf("the temporary file %s holds %q, %v", f.Temp(), b, err)
	}
	testkit.OK(t, os.WriteFile(left, []byte("newer"), 0o600))
	if err := f.Publish(); err == nil || !strings.Contains(err.Error(), "3 bytes written, the file has 5") {
		t.Errorf("Publish: %v", err)
	}
}

// TestFolders: a file in the place of a folder is an error.
func TestFolders(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.OK(t, os.WriteFile(file, nil, 0o600), MkdirAll(ctx, dir, 0o700))
	for _, err := range []error{in(t, dir).MkdirAll(ctx, "file", 0o700), MkdirAll(ctx, file, 0o700),
		MkdirAll(ctx, filepath.Join(file, "below"), 0o700)} {
		if err == nil {
			t.Error("a file became a folder")
		}
	}
}

func TestHint(t *testing.T) {
	err := hint(fmt.Errorf("write: %w", unix.ENOSPC))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "free some space") || hint(io.EOF) != io.EOF {
		t.Errorf("%v has no hint, or all errors have one", err)
	}
}

// TestRename: a folder takes the place of an empty one, and of nothing else.
func TestRename(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"from/x", "empty", "full/y"} {
		testkit.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, to := range []string{"full", "file"} {
		if err := in(t, dir).Rename(t.Context(), "from", to); err == nil {
			t.Errorf("a folder took the place of %s", to)
		}
	}
	testkit.OK(t, in(t, dir).Rename(t.Context(), "from", "empty"))
	if _, err := os.Stat(filepath.Join(dir, "empty", "x")); err != nil {
		t.Error(err)
	}
}
