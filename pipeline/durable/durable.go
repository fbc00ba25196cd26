// Package durable is the one writer of files and folders that must survive a kill and a power cut.
//
// A file is written in this order, and a kill leaves at each point:
//
//	open a temporary file in the target folder   the old file, and an empty temporary one
//	write, and compare the length                the old file, and a part
//	sync, read back where the caller wants to    the old file, and a whole temporary one
//	close, rename                                the new file; a power cut may bring the old one back
//	sync the folder                              the new file
//
// So the final name always means a whole file (but see Append). A folder is made, and a file removed, with a sync of
// the folder that names it. Temporary names begin with TempPrefix, or are the caller's own; one that is left
// after a kill may be removed.
//
// Folder works through an os.Root, so that no symbolic link in it leads out of it. The functions Create, Write
// and MkdirAll take plain paths.
//
// # Limitations
//
// The disk must honour fsync. A file that replaces another gets a new inode: it does not keep the owner,
// mode or hard links of the old one, and takes the place of a symbolic link.
package durable

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// TempPrefix begins the name of an unfinished file, unless Options.Temp names it.
const TempPrefix = ".tmp-"

// IsTemp reports whether base, a name without a folder, is one that Create makes up.
func IsTemp(base string) bool { return strings.HasPrefix(base, TempPrefix) }

// A Folder writes below an open root. It may be used by several goroutines.
type Folder struct {
	root *os.Root
	made sync.Map // folders (string) that exist, with synced names
}

// In returns a Folder that writes below root, which stays the caller's to close.
func In(root *os.Root) *Folder { return &Folder{root: root} }

// Options say how a file is made.
type Options struct {
	Mode fs.FileMode // permission bits before the umask; 0 means 0600
	Temp string      // the temporary name, in the same folder; a file there is removed. Empty means a random one
	Keep bool        // a file that has the name by the time of Publish stays, and Publish returns fs.ErrExist
}

// A File has no name yet. Write it, Publish it, and call Discard in any case, best deferred.
type File struct {
	ctx        context.Context // of the one call that writes the file
	folder     *Folder
	file       *os.File
	name, temp string
	keep       bool
	size       int64
	synced     bool
	published  bool
	owned      *os.Root // closed with the file; nil when it is the caller's
}

// Create begins the file that will be called name, a slash-separated path below the folder. Its folder
// must exist.
func (d *Folder) Create(ctx context.Context, name string, o Options) (*File, error) {
	f := &File{ctx: ctx, folder: d, name: name, temp: path.Join(path.Dir(name), cmp.Or(o.Temp, TempPrefix+rand.Text())),
		keep: o.Keep}
	if o.Temp != "" {
		if err := d.root.Remove(f.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := Step(ctx, "create", f.temp); err != nil {
		return nil, err
	}
	var err error
	f.file, err = d.root.OpenFile(f.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, cmp.Or(o.Mode, 0o600))
	if err != nil {
		return nil, hint(err)
	}
	if err := Step(ctx, "write", f.temp); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// Create begins a file that is named by a plain path.
func Create(ctx context.Context, name string, o Options) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	f, err := In(root).Create(ctx, filepath.Base(name), o)
	if err != nil {
		root.Close()
		return nil, err
	}
	f.owned = root
	return f, nil
}

// Write fails as soon as the context is over.
func (f *File) Write(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, hint(err)
}

// Temp returns the temporary name, for a writer that wants a file and not an io.Writer.
func (f *File) Temp() string { return f.temp }

// Size returns how many bytes were written.
func (f *File) Size() int64 { return f.size }

// ReadAt reads what was written, so that it can be checked before it gets its name.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.file.ReadAt(p, off) }

// Sync ends the writing: all of it is on the disk. Publish does it too.
func (f *File) Sync() error {
	if f.synced {
		return nil
	}
	if err := f.ctx.Err(); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.size && f.size > 0 { // 0: see Temp
		return fmt.Errorf("%d bytes written, the file has %d: check the disk", f.size, info.Size())
	}
	if err := Step(f.ctx, "sync", f.temp); err != nil {
		return err
	}
	f.synced = true
	return hint(f.file.Sync())
}

// Publish gives the file its name and makes the name durable. When it fails after the rename, the new file
// may be there and not yet durable.
func (f *File) Publish() error {
	if err := f.Sync(); err != nil {
		return err
	}
	// A network file system may report a failed write only now.
	if err := f.file.Close(); err != nil {
		return hint(err)
	}
	if f.keep {
		if _, err := f.folder.root.Lstat(f.name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fs.ErrExist)
		}
	}
	// The content is on the disk, so the name never means a part of it.
	err := f.folder.Rename(f.ctx, f.temp, f.name)
	f.published = err == nil
	return err
}

// Discard removes a file that was not published and closes it. Errors do not matter: the file goes.
func (f *File) Discard() {
	f.file.Close()
	if !f.published {
		f.folder.root.Remove(f.temp)
	}
	if f.owned != nil {
		f.owned.Close()
	}
}

// Append writes data after the first at bytes of the file called name, a slash-separated path below the folder,
// drops what followed them, and makes the file durable. A missing file is made. The file is changed in place: a
// kill leaves the first at bytes, and a part of data.
func (d *Folder) Append(ctx context.Context, name string, at int64, data []byte) error {
	if err := Step(ctx, "append", name); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return hint(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < at {
		return fmt.Errorf("%s has %d bytes, and is to have %d before it goes on", name, info.Size(), at)
	}
	if err := f.Truncate(at); err != nil {
		return err
	}
	if _, err := f.WriteAt(data, at); err != nil {
		return hint(err)
	}
	if err := Step(ctx, "sync", name); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return hint(err)
	}
	if at > 0 { // its name was made durable with its first bytes
		return nil
	}
	return d.Sync(ctx, path.Dir(name))
}

// Write makes the file at a plain path hold exactly what fill writes, readable for mode (see Options).
// Readers see the old file or the new one; after an error the old one is still there. A device or pipe is
// refused: the rename would replace it.
func Write(ctx context.Context, name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	f, err := Create(ctx, name, Options{Mode: mode})
	if err != nil {
		return err
	}
	defer f.Discard()
	b := bufio.NewWriterSize(f, 64<<10)
	if err := fill(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Publish()
}

// MkdirAll makes a folder below d and its parents.
func (d *Folder) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	if dir == "." {
		return nil
	}
	if _, ok := d.made.Load(dir); ok {
		return nil
	}
	parent := path.Dir(dir)
	if err := d.MkdirAll(ctx, parent, mode); err != nil {
		return err
	}
	if err := Step(ctx, "mkdir", dir); err != nil {
		return err
	}
	if err := d.root.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return hint(err)
	}
	info, err := d.root.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: move it away", dir)
	}
	// Once for each Folder, even when the directory existed: its maker may have been killed before the sync.
	if err := d.Sync(ctx, parent); err != nil {
		return err
	}
	d.made.Store(dir, true)
	return nil
}

// MkdirAll makes the folder at a plain path and its missing parents.
func MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	there := filepath.Clean(dir) // the deepest that exists
	for {
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	below, err := filepath.Rel(there, dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(there)
	if err != nil {
		return err
	}
	defer root.Close()
	return In(root).MkdirAll(ctx, filepath.ToSlash(below), mode)
}

// Remove removes files below d, then syncs their folders, each once. A missing file is not an error.
func (d *Folder) Remove(ctx context.Context, names ...string) error {
	dirs := map[string]bool{}
	for _, name := range names {
		if err := Step(ctx, "unlink", name); err != nil {
			return err
		}
		switch err := d.root.Remove(name); {
		case err == nil:
			dirs[path.Dir(name)] = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return err
		}
	}
	for dir := range dirs {
		if err := d.Sync(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// Rename gives a file or folder below d another name in the same folder. Its content must be on the disk already.
// A file replaces a file, and a folder replaces an empty folder.
func (d *Folder) Rename(ctx context.Context, from, to string) error {
	if err := Step(ctx, "rename", to); err != nil {
		return err
	}
	if err := d.root.Rename(from, to); err != nil {
		return err
	}
	return d.Sync(ctx, path.Dir(to))
}

// Sync makes the names in dir, a folder below d, durable.
func (d *Folder) Sync(ctx context.Context, dir string) error {
	if err := Step(ctx, "syncdir", dir); err != nil {
		return err
	}
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// Reader reads from r until ctx, that of the one call that made it, is over.
func Reader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// hint says what to do about a full disk.
func hint(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: free some space and run again, nothing was lost", err)
	}
	return err
}

// HookKey is the context key of a func(step, name string) error that is called before each step that changes
// the disk, and makes it fail by returning an error. Only tests set one.
type HookKey struct{}

// Step announces a step that changes the disk: create, write, sync, rename, syncdir, mkdir or unlink of this
// package, or one of the caller's own. An error means: do not take it.
func Step(ctx context.Context, step, name string) error {
	if hook, ok := ctx.Value(HookKey{}).(func(step, name string) error); ok && hook != nil {
		return hook(step, name)
	}
	return nil
}
