// Package regular reads files that a user names. What is not a regular file is refused: opening a pipe would wait for ever.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file to read; it has so many bytes.
func Open(path string) (f *os.File, size int64, err error) {
	// One that has become a pipe since it was found is not waited for.
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
