package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"rehydrate/internal/picture"
)

// stdinName stands for the image on stdin, on the command line and in the output.
const stdinName = "-"

// An input is one image to read.
type input struct {
	name string // as the output calls it: the path as given, or as found below a folder
	rel  string // the path below the folder that was given, or the base name: what is made of it is called after that
	err  error  // it was found and cannot be read
}

// inputs are what the arguments came to.
type inputs struct {
	list    []input
	folders []string // those of the arguments that are folders
	skipped int      // files in folders that are no images, and links
}

// several reports whether more than one image was asked for, so that the output has to name them.
func (f inputs) several() bool { return f.folders != nil || len(f.list) > 1 }

// findInputs lists the images that args name: files as they are, folders walked to the bottom but for the folder avoid,
// the images of each in the byte order of their paths.
func findInputs(ctx context.Context, args []string, avoid string) (inputs, error) {
	var found inputs
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == stdinName || err != nil || !info.IsDir() {
			// A missing file is reported when its turn comes: the others are read all the same.
			in := input{name: arg, rel: filepath.Base(arg)}
			if arg == stdinName {
				in.rel = "stdin"
			}
			found.list = append(found.list, in)
			continue
		}
		found.folders = append(found.folders, arg)
		if err := found.walk(ctx, arg, avoid); err != nil {
			return inputs{}, err
		}
	}
	return found, nil
}

// walk adds the images below root.
func (f *inputs) walk(ctx context.Context, root, avoid string) error {
	first := len(f.list)
	root += string(filepath.Separator) // a link that was named is followed
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, relErr := filepath.Rel(root, path)
		format := ""
		switch {
		case relErr != nil:
			return relErr
		case err != nil: // a folder that may not be read
		case d.IsDir():
			if path != root && avoid != "" && realPath(path) == realPath(avoid) {
				return filepath.SkipDir
			}
			return nil
		// Links are not followed, which could lead out of the folder or round in it.
		case d.Type().IsRegular():
			format, err = formatOf(path)
		}
		if err == nil && format == "" {
			f.skipped++
			return nil
		}
		f.list = append(f.list, input{name: path, rel: rel, err: err})
		return nil
	})
	if err != nil {
		return err
	}
	// WalkDir goes by names: a.png would stand after all of a/.
	slices.SortFunc(f.list[first:], func(a, b input) int { return strings.Compare(a.name, b.name) })
	return nil
}

// formatOf decides from the first bytes, never from the name; "" is not an image.
func formatOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	// No more than that: a folder can hold a film of a terabyte.
	head := make([]byte, picture.SniffBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return picture.Format(head[:n]), nil
}

// realPath is path with all links followed.
func realPath(path string) string {
	// An output does not exist yet, but its folder may.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// piped reports whether stdin holds something that was sent there on purpose.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	// /dev/null is a device too, and what services have for a stdin.
	return err == nil && info.Mode()&os.ModeCharDevice == 0 && !term.IsTerminal(int(f.Fd()))
}
