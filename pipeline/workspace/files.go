package workspace

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rehydrate/pipeline/durable"
)

// A File is the name, digest and size of a file of the workspace.
type File struct {
	Name   string `json:"name"`   // slash-separated, relative to the workspace
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`   // bytes
}

// Replace makes the file called name, a slash-separated path inside the workspace, hold exactly what write writes.
// Readers see the old file or the new one, and an error leaves the old one. The names of this package are refused.
func (w *Workspace) Replace(ctx context.Context, name string, write func(io.Writer) error) (File, error) {
	return w.ReplaceChecked(ctx, name, write, nil)
}

// ReplaceChecked is Replace that reads the new file back, all size bytes of it, before it takes the
// name: an error of check leaves the old file, and no other.
func (w *Workspace) ReplaceChecked(ctx context.Context, name string, write func(io.Writer) error,
	check func(r io.ReaderAt, size int64) error) (f File, err error) {
	defer wrap(&err, "write %s", name)
	if err := cmp.Or(w.writable(ctx), checkName(name)); err != nil {
		return f, err
	}
	return w.put(ctx, name, write, check)
}

// put is ReplaceChecked for any name. The seal gets the digest of what was written.
func (w *Workspace) put(ctx context.Context, name string, write func(io.Writer) error,
	check func(io.ReaderAt, int64) error) (File, error) {
	whole := false
	f, err := WriteFile(ctx, w.files, name, "", write, func(r io.ReaderAt, f File) error {
		if check != nil {
			if err := check(r, f.Size); err != nil {
				return err
			}
		}
		whole = true
		return nil
	})
	switch {
	case err == nil:
		w.digests.Store(name, f)
	case whole:
		w.unfinished.Store(true) // it may have its name, without a row
	}
	return f, err
}

// putBytes makes a file of this package hold data.
func (w *Workspace) putBytes(ctx context.Context, name string, data []byte) error {
	_, err := w.put(ctx, name, func(f io.Writer) error { _, err := f.Write(data); return err }, nil)
	return err
}

// WriteFile makes the file called name, and its missing folders, below a folder. check gets the synced file before
// it takes its name (nil for not); an error leaves the old file. temp is as in durable.Options.
func WriteFile(ctx context.Context, d *durable.Folder, name, temp string, write func(io.Writer) error,
	check func(io.ReaderAt, File) error) (File, error) {
	if err := d.MkdirAll(ctx, path.Dir(name), dirMode); err != nil {
		return File{}, err
	}
	f, err := d.Create(ctx, name, durable.Options{Mode: fileMode, Temp: temp})
	if err != nil {
		return File{}, err
	}
	defer f.Discard() // also when write panics
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 64<<10)
	if err := write(w); err != nil {
		return File{}, err
	}
	if err := cmp.Or(w.Flush(), f.Sync()); err != nil {
		return File{}, err
	}
	made := File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: f.Size()}
	if check != nil {
		if err := check(f, made); err != nil {
			return File{}, err
		}
	}
	return made, f.Publish()
}

// RemoveFile unlinks a file that Replace made and syncs its folder. A missing file is not an error.
func (w *Workspace) RemoveFile(ctx context.Context, name string) (err error) {
	defer wrap(&err, "remove %s", name)
	if err := cmp.Or(w.writable(ctx), checkName(name)); err != nil {
		return err
	}
	w.digests.Delete(name)
	return w.unlink(ctx, name)
}

// walk calls visit for everything in a folder and its subfolders but folders. A folder that does not exist is empty;
// links are not followed.
func (w *Workspace) walk(ctx context.Context, under string, visit func(name string, e fs.DirEntry) error) error {
	return fs.WalkDir(w.root.FS(), under, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name == under && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil || e.IsDir():
			return ctx.Err()
		}
		return visit(name, e)
	})
}

// Files returns the names of the regular files in the folder under ("." for all) and its subfolders, in byte order.
// Unfinished temporary files are left out.
func (w *Workspace) Files(ctx context.Context, under string) ([]string, error) {
	var names []string
	err := w.walk(ctx, under, func(name string, e fs.DirEntry) error {
		if e.Type().IsRegular() && !durable.IsTemp(e.Name()) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list files under %s: %w", under, err)
	}
	slices.Sort(names)
	return names, nil
}

// OpenFile opens a regular file of the workspace for reading. The error is fs.ErrNotExist when
// there is none. The state database is not a file in this sense and is refused.
func (w *Workspace) OpenFile(name string) (*os.File, error) {
	// A descriptor of state.db closed outside SQLite would drop SQLite's own locks on it.
	if !fs.ValidPath(name) || name == stateName || name == journalName {
		return nil, fmt.Errorf("open file: %q is not a file inside the workspace", name)
	}
	// Without O_NONBLOCK a fifo of that name would hang the program.
	f, err := w.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Stat reads a file of the workspace whole and returns its size and digest. The error is
// fs.ErrNotExist when there is none.
func (w *Workspace) Stat(ctx context.Context, name string) (File, error) {
	f, err := w.OpenFile(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	return Digest(ctx, f, name)
}

// Digest reads the file called name to its end and returns its size and digest.
func Digest(ctx context.Context, f io.Reader, name string) (File, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, durable.Reader(ctx, f))
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}, nil
}

// hexDigest returns the SHA-256 of b in hex.
func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// checkName refuses names that Replace must not change.
func checkName(name string) error {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("%q is not a path inside the workspace", name)
	case slices.Contains([]string{stateName, journalName, lockName, imagesName, auditName, logKeyName}, first) || durable.IsTemp(path.Base(name)):
		return fmt.Errorf("%q is not the caller's to change", name)
	}
	return nil
}

// unlink removes files durably. A missing file is not an error.
func (w *Workspace) unlink(ctx context.Context, names ...string) error {
	err := w.files.Remove(ctx, names...)
	if err != nil {
		w.unfinished.Store(true)
	}
	return err
}
