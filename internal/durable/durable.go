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
// So the final name always means a whole file (but see Append). The disk must honour fsync.
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
	"syscall"
)

// TempPrefix begins the name of an unfinished file, unless Options.Temp names it. After a kill it may be removed.
const TempPrefix = ".tmp-"

// IsTemp reports whether base, a name without a folder, is one that Create makes up.
func IsTemp(base string) bool { return strings.HasPrefix(base, TempPrefix) }

// A Folder writes below an open root, out of which no symbolic link leads. Names are slash-separated paths below it.
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
	published  bool     // nothing has the name temp any more
	owned      *os.Root // closed with the file; nil when it is the caller's
}

// Create begins the file that will be called name, in a folder that exists.
func (d *Folder) Create(ctx context.Context, name string, o Options) (*File, error) {
	f := &File{ctx: ctx, folder: d, name: name, keep: o.Keep,
		temp: path.Join(path.Dir(name), cmp.Or(o.Temp, TempPrefix+rand.Text()))}
	// What a killed writer left under this name is older, and O_EXCL would refuse it.
	if o.Temp != "" {
		if err := d.root.Remove(f.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	err := take(ctx, "create", f.temp, func() (err error) {
		f.file, err = d.root.OpenFile(f.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, cmp.Or(o.Mode, 0o600))
		return err
	})
	if err != nil {
		return nil, err
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
	f.synced = true
	return take(f.ctx, "sync", f.temp, f.file.Sync)
}

// Publish gives the file its name and makes the name durable.
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
	// The content is on the disk, so the name never means a part of it. An error after the rename leaves the new file,
	// not yet durable.
	err := f.folder.Rename(f.ctx, f.temp, f.name)
	f.published = err == nil
	return err
}

// Discard closes the file and removes it unless it was published. Errors do not matter: the file goes.
func (f *File) Discard() {
	f.file.Close()
	if !f.published {
		f.folder.root.Remove(f.temp)
	}
	if f.owned != nil {
		f.owned.Close()
	}
}

// Append writes data after the first at bytes of a file in place, drops what followed them, and syncs it. A missing
// file is made. A kill leaves the first at bytes, and a part of data.
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
	// Close reports what a network file system could not write.
	err = take(ctx, "sync", name, func() error { return errors.Join(f.Sync(), f.Close()) })
	if err != nil || at > 0 { // the name was made durable with the first bytes
		return err
	}
	return d.Sync(ctx, path.Dir(name))
}

// Write makes the file at a plain path hold exactly what fill writes, readable for mode (see Options). An error leaves
// the old file.
func Write(ctx context.Context, name string, mode fs.FileMode, fill func(io.Writer) error) error {
	// The rename would replace a device or a pipe.
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
	parent := path.Dir(dir)
	if _, ok := d.made.Load(dir); ok || parent == dir { // the root itself
		return nil
	}
	if err := d.MkdirAll(ctx, parent, mode); err != nil {
		return err
	}
	err := take(ctx, "mkdir", dir, func() error { return d.root.Mkdir(dir, mode) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := d.root.Lstat(dir); err != nil || !info.IsDir() {
		return cmp.Or(err, fmt.Errorf("%s is not a folder: move it away", dir))
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
	dir = filepath.Clean(dir) // of a/b/, too, the parent is a
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir { // . has no parent, and is missing in a folder that was removed
		if err := MkdirAll(ctx, parent, mode); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return In(root).MkdirAll(ctx, filepath.Base(dir), mode)
}

// Remove removes files below d, then syncs their folders, each once. A missing file is not an error.
func (d *Folder) Remove(ctx context.Context, names ...string) error {
	dirs := map[string]bool{}
	for _, name := range names {
		err := take(ctx, "unlink", name, func() error { return d.root.Remove(name) })
		if err == nil {
			dirs[path.Dir(name)] = true
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
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

// Rename gives a file or folder, with its content on the disk, another name in the same folder. A file replaces a file,
// a folder an empty folder.
func (d *Folder) Rename(ctx context.Context, from, to string) error {
	err := take(ctx, "rename", to, func() error {
		// Unlike the kernel's, Go's Rename refuses to replace any folder. Remove takes away no folder that holds something.
		if info, err := d.root.Lstat(to); err == nil && info.IsDir() {
			_ = d.root.Remove(to) // else Rename fails, and says why
		}
		return d.root.Rename(from, to)
	})
	if err != nil {
		return err
	}
	return d.Sync(ctx, path.Dir(to))
}

// Sync makes the names in dir, a folder below d, durable.
func (d *Folder) Sync(ctx context.Context, dir string) error {
	return take(ctx, "syncdir", dir, func() error {
		f, err := d.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(syncFolder(f), f.Close()); err != nil {
			return fmt.Errorf("sync folder %s: %w", dir, err)
		}
		return nil
	})
}

// Reader reads from r until ctx, that of the one call that made it, is over.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// take takes a step unless its announcement fails.
func take(ctx context.Context, step, name string, do func() error) error {
	if err := Step(ctx, step, name); err != nil {
		return err
	}
	return hint(do())
}

// hint says what to do about a full disk.
func hint(err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: free some space and run again, what was stored is whole", err)
	}
	return err
}

// HookKey is the context key of a func(step, name string) error that is called before each step that changes
// the disk, and makes it fail by returning an error. Only tests set one.
type HookKey struct{}

// Step announces a step that changes the disk, of this package or the caller's. An error means: do not take it.
func Step(ctx context.Context, step, name string) error {
	if hook, ok := ctx.Value(HookKey{}).(func(step, name string) error); ok && hook != nil {
		return hook(step, name)
	}
	return nil
}

// OpenRegular opens a regular file of a folder for reading, and nothing else.
func OpenRegular(root *os.Root, name string) (*os.File, error) {
	// Without O_NONBLOCK a pipe of that name, which may have been a file a moment ago, would be waited for.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
