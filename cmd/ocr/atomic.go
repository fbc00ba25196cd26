package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A newFile is a file that gets its name when it is complete.
type newFile struct {
	*os.File
	path  string
	force bool
}

// create starts a file that will be called path, in the same folder, which is made where
// it lacks.
func create(path string, force bool) (*newFile, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", shown(path), err)
	}
	f, err := os.CreateTemp(dir, ".ocr-*")
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", shown(path), err)
	}
	return &newFile{f, path, force}, nil
}

// finish makes the file durable and names it. Where there is a file of that name it is
// replaced with force, else this one is thrown away.
func (f *newFile) finish() error {
	err := f.Sync()
	if err == nil {
		err = f.Close()
	}
	if err == nil && !f.force {
		err = vacant(f.path)
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		f.drop()
		return fmt.Errorf("write %s: %w", shown(f.path), err)
	}
	return nil
}

// drop throws the file away. What is wrong with one that goes is of no interest.
func (f *newFile) drop() {
	f.Close()
	os.Remove(f.Name())
}

// writeWhole writes a file of that name, or none.
func writeWhole(path string, force bool, fill func(io.Writer) error) error {
	f, err := create(path, force)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		f.drop()
		return fmt.Errorf("write %s: %w", shown(path), err)
	}
	return f.finish()
}

var errExists = errors.New("there is a file of that name already")

// vacant reports that nothing is called path yet.
func vacant(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return errExists
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}
