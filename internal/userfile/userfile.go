// Package userfile opens files named by the user, passes over byte order marks, and marks errors about those files and
// about flags as a *Fault.
package userfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A Fault is something wrong with what the user gave.
type Fault struct {
	Err  error
	Hint string // what to try
	Flag bool   // a flag is wrong: the command's help says more
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Wrong is the fault of a flag.
func Wrong(format string, args ...any) error {
	return &Fault{Err: fmt.Errorf(format, args...), Flag: true}
}

// Faulty makes an error about the user's files a fault.
func Faulty(err error) error {
	if errors.Is(err, context.Canceled) { // what the user stopped is not wrong
		return err
	}
	return &Fault{Err: err}
}

// Missing is a file or folder that the user named, and that is not there.
type Missing struct {
	Path string
	In   string // the folder from which Path is read; "" where Path is whole
}

func (m *Missing) Error() string {
	text := "there is no file or folder " + strconv.QuoteToGraphic(m.Path)
	if m.In != "" {
		text += " in " + m.In
	}
	return text
}

func (m *Missing) Is(target error) bool { return target == fs.ErrNotExist }

// Exists returns a *Missing where path names nothing, and nil where it names something, readable or not.
func Exists(path string) error {
	_, err := os.Stat(path)
	return orMissing(path, err)
}

// orMissing makes an error that says that path names nothing a *Missing.
func orMissing(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m := &Missing{Path: path}
	if !filepath.IsAbs(path) {
		m.In, _ = os.Getwd() // without it the message is shorter
	}
	return m
}

// Open opens a regular file to read; it has so many bytes. What is not a regular file is refused. Where there is
// nothing the error is a *Missing.
func Open(path string) (f *os.File, size int64, err error) {
	// Opening a pipe would wait for ever.
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, cmp.Or(orMissing(path, err), err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, not a file", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// mostSmall is more than any file of settings, key, grant or statement has: a wrong, large file costs little.
const mostSmall = 64 << 20

// Read reads a file of at most 64 MiB.
func Read(path string) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostSmall+1))
	if err == nil && len(b) > mostSmall {
		err = fmt.Errorf("%s has more than 64 MiB", path)
	}
	return b, err
}
