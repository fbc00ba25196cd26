// Package scratch makes temporary files and folders for content that may have to be erased. A file has no name that
// outlives the process, however it ends. A folder has one, and Sweep of any later process of the user removes it.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix begins the names of what is made here in the folder for temporary files, and of nothing else.
const prefix = "rehydrate-private-"

// File returns an empty temporary file that is gone when it is closed.
func File() (*os.File, error) { return nameless(os.TempDir()) }

// A Folder is a private temporary folder for what needs names. As long as this process lives, it is locked.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes a folder.
func NewFolder() (*Folder, error) {
	for {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockFolder(path)
		if err == nil {
			return &Folder{path, lock}, nil
		}
		// Another process may have swept it before it was locked.
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// Remove removes the folder and all in it. What is open there stays readable until it is closed, where the system can
// do so; elsewhere a later Sweep removes it.
func (f *Folder) Remove() error {
	return errors.Join(f.lock.Close(), os.RemoveAll(f.Path))
}

// Sweep removes the folders that processes of this user left which were killed. What belongs to another user, or to a
// process that lives, stays.
func Sweep() error {
	temp, err := os.Open(os.TempDir())
	if err != nil {
		return err
	}
	defer temp.Close()
	// By their names alone: such a folder may hold very much of others.
	names, err := temp.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			err = errors.Join(err, sweep(filepath.Join(os.TempDir(), name)))
		}
	}
	return err
}

// sweep removes a folder if it is this user's and no process has it locked.
func sweep(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !ours(info) {
		return nil
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil // its process is alive, or another one sweeps
	}
	return (&Folder{path, lock}).Remove()
}
