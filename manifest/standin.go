package manifest

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// standIns are files that stand where data should be, by how they begin, in lower case: they hold none, under any name.
var standIns = []struct{ start, what, hint string }{
	{"<!doctype html", webPage, getFile},
	{"<html", webPage, getFile},
	{"version https://git-lfs.github.com/spec/", "the file is a pointer of Git LFS, and the data is elsewhere",
		"run git lfs pull in the folder that you cloned, or download the file itself"},
}

const (
	webPage = "the file is a web page, and holds no data"
	getFile = "download the file itself, not the page that shows it: on GitHub with its button Raw"
)

// standIn says what a file is that stands where the data should be, nil for another. It reads the beginning of the file
// and goes back to it.
func standIn(f *os.File, path string) error {
	start := make([]byte, 4096)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(start[:n], []byte("\ufeff")), " \t\r\n")
	for _, of := range standIns {
		if bytes.HasPrefix(bytes.ToLower(text), []byte(of.start)) {
			line := 1 + bytes.Count(start[:n-len(text)], []byte("\n"))
			return &Problem{File: path, Line: line, Message: of.what, Hint: of.hint}
		}
	}
	return nil
}
