package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the name of every unfinished file.
const tempPrefix = ".tmp-"

// A File names a file of the workspace and what it holds.
type File struct {
	Name   string `json:"name"`   // slash-separated, relative to the workspace
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`   // bytes
}

// Replace makes the file called name (a slash-separated path inside the workspace, such as
// dataset/data/train-00000-of-00001.parquet) hold exactly what write writes, making folders as
// needed. Readers see the old file or the new one, never a part; an error of write, a cancelled
// ctx or a full disk leaves the old file, and no temporary one.
//
// The names of this package (state.db, lock, log.key, images/..., audit/...) are refused.
func (w *Workspace) Replace(ctx context.Context, name string, write func(io.Writer) error) (File, error) {
	return w.ReplaceChecked(ctx, name, write, nil)
}

// ReplaceChecked is Replace that reads the new file back, all size bytes of it, before it takes the
// name: an error of check leaves the old file, and no other.
func (w *Workspace) ReplaceChecked(ctx context.Context, name string, write func(io.Writer) error, check func(r io.ReaderAt, size int64) error) (File, error) {
	if err := w.writable(ctx); err != nil {
		return File{}, fmt.Errorf("write %s: %w", name, err)
	}
	if err := checkName(name); err != nil {
		return File{}, fmt.Errorf("write: %w", err)
	}
	f, err := w.replace(ctx, name, write, check)
	if err != nil {
		return File{}, fmt.Errorf("write %s: %w", name, err)
	}
	return f, nil
}

// replace is ReplaceChecked for any name. The seal gets the digest of what was written.
func (w *Workspace) replace(ctx context.Context, name string, write func(io.Writer) error, check func(io.ReaderAt, int64) error) (File, error) {
	sum := sha256.New()
	size, err := w.putChecked(ctx, name, func(f io.Writer) error {
		return write(io.MultiWriter(f, sum))
	}, check)
	if err != nil {
		return File{}, err
	}
	f := File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}
	w.digests.Store(name, f)
	return f, nil
}

// RemoveFile unlinks a file that Replace made and syncs its folder. A missing file is no error.
func (w *Workspace) RemoveFile(ctx context.Context, name string) error {
	err := w.writable(ctx)
	if err == nil {
		err = checkName(name)
	}
	if err == nil {
		err = w.unlink(name)
	}
	if err == nil {
		w.digests.Delete(name)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Files returns the names of the regular files in the folder under ("." for all), in byte
// order, with those in its subfolders; none when there is no such folder. Unfinished temporary
// files are left out.
func (w *Workspace) Files(ctx context.Context, under string) ([]string, error) {
	if !fs.ValidPath(under) {
		return nil, fmt.Errorf("list files: %q is not a path inside the workspace", under)
	}
	var names []string
	err := fs.WalkDir(w.root.FS(), under, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			if name == under && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if e.Type().IsRegular() && !isTemp(e.Name()) {
			names = append(names, name)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list files under %s: %w", under, err)
	}
	sort.Strings(names)
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
	return digest(ctx, f, name)
}

// digest reads the file called name to its end and returns its size and digest.
func digest(ctx context.Context, f io.Reader, name string) (File, error) {
	sum := sha256.New()
	size, err := io.Copy(&guardedWriter{ctx: ctx, w: sum}, f)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}, nil
}

// checkName refuses what Replace must not touch.
func checkName(name string) error {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("%q is not a path inside the workspace", name)
	case first == stateName || first == journalName || first == lockName || first == imagesName || first == auditName || first == logKeyName || isTemp(path.Base(name)):
		return fmt.Errorf("%q is not the caller's to change", name)
	}
	return nil
}

// put is the one way in which a file gets its final name: temporary file in the same folder,
// write, length check, sync, close, rename, folder sync. It returns the length.
func (w *Workspace) put(ctx context.Context, name string, write func(io.Writer) error) (size int64, err error) {
	return w.putChecked(ctx, name, write, nil)
}

// putChecked is put that reads the synced file back before it takes its name, where check is not nil.
func (w *Workspace) putChecked(ctx context.Context, name string, write func(io.Writer) error, check func(io.ReaderAt, int64) error) (size int64, err error) {
	dir := path.Dir(name)
	if err := w.makeDir(dir); err != nil {
		return 0, err
	}
	temp := path.Join(dir, tempPrefix+rand.Text())
	if err := w.step("create", temp); err != nil {
		return 0, err
	}
	f, err := w.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, err
	}
	renamed := false
	defer func() { // also when write panics
		f.Close()
		if !renamed {
			w.root.Remove(temp)
		}
	}()
	if size, err = w.fill(ctx, f, temp, write); err == nil && check != nil {
		err = check(f, size)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			err = fmt.Errorf("%w: free some space and run again, nothing was lost", err)
		}
		return 0, err
	}
	if err := w.step("rename", name); err != nil {
		return 0, err
	}
	if err := w.root.Rename(temp, name); err != nil {
		return 0, err
	}
	renamed = true
	if err := w.syncDir(dir); err != nil {
		w.unfinished.Store(true)
		return 0, err
	}
	return size, nil
}

// fill writes a temporary file, checks its length and syncs it.
func (w *Workspace) fill(ctx context.Context, f *os.File, temp string, write func(io.Writer) error) (int64, error) {
	if err := w.step("write", temp); err != nil {
		return 0, err
	}
	to := &guardedWriter{ctx: ctx, w: f}
	if err := write(to); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() != to.n {
		return 0, fmt.Errorf("%d bytes written, the file has %d: check the disk", to.n, info.Size())
	}
	if err := w.step("sync", temp); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return to.n, nil
}

// A guardedWriter counts what it writes and stops when its context ends.
type guardedWriter struct {
	ctx context.Context // of the one call that made it
	w   io.Writer
	n   int64
}

func (g *guardedWriter) Write(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := g.w.Write(p)
	g.n += int64(n)
	return n, err
}

// makeDir makes a folder of the workspace and its parents. Each folder's parent is synced once
// per process even when the folder exists: the run that made it may have been killed before
// its sync.
func (w *Workspace) makeDir(dir string) error {
	if dir == "." {
		return nil
	}
	if _, ok := w.known.Load(dir); ok {
		return nil
	}
	parent := path.Dir(dir)
	if err := w.makeDir(parent); err != nil {
		return err
	}
	if err := w.step("mkdir", dir); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := w.root.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: move it away", dir)
	}
	if err := w.syncDir(parent); err != nil {
		return err
	}
	w.known.Store(dir, true)
	return nil
}

func (w *Workspace) syncDir(dir string) error {
	if err := w.step("syncdir", dir); err != nil {
		return err
	}
	d, err := w.root.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// unlink removes files and syncs their folders, each once. A missing file is no error.
func (w *Workspace) unlink(names ...string) (err error) {
	defer func() {
		if err != nil {
			w.unfinished.Store(true)
		}
	}()
	dirs := map[string]bool{}
	for _, name := range names {
		if err := w.step("unlink", name); err != nil {
			return err
		}
		switch err := w.root.Remove(name); {
		case err == nil:
			dirs[path.Dir(name)] = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return err
		}
	}
	for dir := range dirs {
		if err := w.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
