//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// named is nameless where a file gets a name before it loses it. It is empty until then.
func named(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "rehydrate-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockFolder opens a folder and locks it for this process. The error is fs.ErrNotExist where it was removed meanwhile.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) { // whoever has it removes it
		err = errors.Join(err, fs.ErrNotExist)
	}
	if err == nil {
		var have, there os.FileInfo
		have, err = f.Stat()
		if err == nil {
			there, err = os.Lstat(path)
		}
		if err == nil && !os.SameFile(have, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ours reports whether a file is this user's.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
