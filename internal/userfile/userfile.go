// Package userfile opens files named by the user, and marks errors about those files and about flags as a *Fault.
package userfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// Open opens a regular file to read; it has so many bytes. What is not a regular file is refused.
func Open(path string) (f *os.File, size int64, err error) {
	// Opening a pipe would wait for ever.
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
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
