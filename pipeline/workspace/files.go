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
	"iter"
	"os"
	"path"
	"regexp"
	"slices"

	"rehydrate/internal/durable"
)

// A File is the name, digest and size of a file of the workspace.
type File struct {
	Name   string `json:"name"`   // slash-separated, relative to the workspace
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`   // bytes
}

// Replace makes the file called name, a slash-separated path inside the workspace, hold exactly what write writes.
// Readers see the old file or the new one. check (nil for none) reads the new file back, all size bytes of it, before
// it takes the name. An error leaves the old file. The name is none of this package's.
func (w *Workspace) Replace(ctx context.Context, name string, write func(io.Writer) error,
	check func(r io.ReaderAt, size int64) error) (f File, err error) {
	defer wrap(&err, "write %s", name)
	if err := w.writable(ctx); err != nil {
		return f, err
	}
	whole := false
	f, err = WriteFile(ctx, w.files, name, "", write, func(r io.ReaderAt, f File) (err error) {
		if check != nil {
			err = check(r, f.Size)
		}
		whole = err == nil
		return err
	})
	switch {
	case err == nil:
		w.digests.Store(name, f) // the seal gets the digest of what was written, not of what lies there then
	case whole:
		w.unfinished.Store(true) // it may have its name, without a row
	}
	return f, err
}

// putBytes is Replace for data that is in memory.
func (w *Workspace) putBytes(ctx context.Context, name string, data []byte) error {
	_, err := w.Replace(ctx, name, func(f io.Writer) error { _, err := f.Write(data); return err }, nil)
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
	if err := w.Flush(); err != nil {
		return File{}, err
	}
	if err := f.Sync(); err != nil {
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
	w.digests.Delete(name) // the seal must not list it
	return w.unlink(ctx, name)
}

// A Found is anything in the workspace but a folder.
type Found struct {
	Name string // slash-separated, relative to the workspace
	Mode fs.FileMode
	Size int64  // bytes
	Link string // where a symbolic link points to
}

// Walk yields everything in the folder under ("." for all) and its subfolders but folders: unfinished files, links and
// unknown files too. A folder that does not exist is empty. With an error about a file or a folder it yields the name
// and the mode of that, and continues with the rest if the caller does.
func (w *Workspace) Walk(ctx context.Context, under string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		failed := func(name string, mode fs.FileMode, err error) error {
			if yield(w.unreachable(Found{Name: name, Mode: mode}), fmt.Errorf("look through the workspace: %w", err)) {
				return nil
			}
			return fs.SkipAll
		}
		// Links are not followed.
		_ = fs.WalkDir(w.root.FS(), under, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil && name == under && errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return failed(name, fs.ModeDir, err)
			case ctx.Err() != nil:
				yield(Found{}, fmt.Errorf("look through the workspace: %w", ctx.Err()))
				return fs.SkipAll
			case e.IsDir():
				return nil
			}
			info, err := e.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // a run that is under way has taken it away
			case err != nil:
				return failed(name, e.Type(), err)
			}
			found := Found{Name: name, Mode: info.Mode(), Size: info.Size()}
			if info.Mode()&fs.ModeSymlink != 0 {
				found.Link, err = w.root.Readlink(name)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return failed(name, e.Type(), err)
			case !yield(found, nil):
				return fs.SkipAll
			}
			return nil
		})
	}
}

// unreachable is what keeps a file or folder from being read: a folder above it whose rights forbid to look at anything
// in it, or itself.
func (w *Workspace) unreachable(f Found) Found {
	for f.Name != "." {
		_, err := w.root.Lstat(f.Name)
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
		f = Found{Name: path.Dir(f.Name), Mode: fs.ModeDir}
	}
	return f
}

// ownFolder matches the folders of a workspace that may be empty: what was in them is not there yet, or was erased.
var ownFolder = regexp.MustCompile(`^(\.|` + auditName + `(/lifts)?|` + imagesName +
	`(/[0-9a-z]{1,2})?|dataset(/data)?|shards)$`)

// EmptyFolders returns the folders with nothing in them that no command makes or leaves, in byte order of their names.
// A folder that cannot be read is none of them: Walk names it.
func (w *Workspace) EmptyFolders(ctx context.Context) (names []string, err error) {
	err = fs.WalkDir(w.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && !ownFolder.MatchString(name) {
			var in []fs.DirEntry
			in, err = fs.ReadDir(w.root.FS(), name)
			if err == nil && len(in) == 0 {
				names = append(names, name)
			}
		}
		if errors.Is(err, fs.ErrNotExist) || Unread(err) {
			err = nil // a run that is under way has taken it away, or nobody can say what is in it
		}
		return cmp.Or(err, ctx.Err())
	})
	if err != nil {
		return nil, fmt.Errorf("look for empty folders of the workspace: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Files returns the names of the regular files that Walk yields, but for unfinished ones, in byte order.
func (w *Workspace) Files(ctx context.Context, under string) ([]string, error) {
	var names []string
	for f, err := range w.Walk(ctx, under) {
		if err != nil {
			return nil, err
		}
		if f.Mode.IsRegular() && !durable.IsTemp(path.Base(f.Name)) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names) // Walk sorts by folder: a/b comes before a.b
	return names, nil
}

// OpenFile opens a regular file of the workspace for reading. The error is fs.ErrNotExist when there is none. Closing
// state.db drops SQLite's locks of this process on it: open that one only while no other call is under way.
func (w *Workspace) OpenFile(name string) (*os.File, error) {
	if err := noLink(w.root, name); err != nil {
		return nil, err
	}
	return durable.OpenRegular(w.root, name)
}

// readSmall reads a file of at most limit bytes. Of a longer one it returns one byte too many, so that it does not
// pass.
func (w *Workspace) readSmall(name string, limit int64) ([]byte, error) {
	f, err := w.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// Stat reads a file of the workspace whole. The error is fs.ErrNotExist when there is none.
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

// unlink removes files durably, with the folders that it leaves empty and that no command makes. A missing file is not
// an error.
func (w *Workspace) unlink(ctx context.Context, names ...string) error {
	// Only this is asked for: a context that ends stops no removal that has begun.
	if w.lock == nil {
		return ErrReadOnly
	}
	for _, name := range names {
		if err := noLink(w.root, name); err != nil { // what it points to would stay, and nothing would know of it
			return err
		}
	}
	err := w.files.Remove(ctx, names...)
	if err == nil {
		err = w.removeEmptied(ctx, names)
	}
	if err != nil {
		w.unfinished.Store(true)
	}
	return err
}

// removeEmptied removes the folders of files that were removed, where they are empty and no command makes them.
func (w *Workspace) removeEmptied(ctx context.Context, files []string) error {
	for _, name := range files {
		for dir := path.Dir(name); !ownFolder.MatchString(dir); dir = path.Dir(dir) {
			in, err := fs.ReadDir(w.root.FS(), dir)
			if err != nil || len(in) > 0 {
				break // one that cannot be read may hold something
			}
			if err := w.files.Remove(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}
