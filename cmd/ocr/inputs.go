package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"rehydrate/policy"
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
	folders bool // one of the arguments is a folder
	skipped int  // files in folders that are no images, and links
}

// several reports whether more than one image was asked for, so that the output has to name them.
func (f inputs) several() bool { return f.folders || len(f.list) > 1 }

// findInputs lists the images that args name: files as they are, folders walked to the
// bottom, the images of each in the byte order of their paths. What is an image is decided
// from the first bytes, never from the name. Links below a folder are not followed. avoid is
// a folder that is not walked: the one that gets the output.
func findInputs(ctx context.Context, args []string, avoid string) (inputs, error) {
	var found inputs
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == stdinName || err != nil || !info.IsDir() {
			// A missing file is reported when its turn comes: the others are read all the same.
			found.list = append(found.list, input{name: arg, rel: outputName(arg)})
			continue
		}
		found.folders = true
		if err := found.walk(ctx, arg, avoid); err != nil {
			return inputs{}, err
		}
	}
	return found, nil
}

func outputName(arg string) string {
	if arg == stdinName {
		return "stdin"
	}
	return filepath.Base(arg)
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
		switch {
		case relErr != nil:
			return relErr
		case err != nil: // a folder that may not be read
			f.list = append(f.list, input{path, rel, err})
			return nil
		case d.IsDir():
			if path != root && avoid != "" && sameFile(path, avoid) {
				return filepath.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			f.skipped++
			return nil
		}
		format, err := formatOf(path)
		if err == nil && format == "" {
			f.skipped++
			return nil
		}
		f.list = append(f.list, input{path, rel, err})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(f.list[first:], func(a, b input) int { return strings.Compare(a.name, b.name) })
	return nil
}

// formatOf reads no more than the bytes that tell the format.
func formatOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	head := make([]byte, policy.SniffBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return policy.ImageFormat(head[:n]), nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// piped reports whether stdin holds something that was sent there on purpose.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0 && !term.IsTerminal(int(f.Fd()))
}

// shown makes a file's name, or an error that repeats one, fit for a terminal and for a line: control and format
// characters become escapes, as Go writes them.
func shown(s string) string {
	quoted := strconv.QuoteToGraphic(s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}
