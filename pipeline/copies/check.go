package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A Difference says how a file of a registered copy is not the one that was recorded. Name is empty where the copy
// as a whole is not there.
type Difference struct{ Name, What string }

// Check holds the files of a registered copy, which is not closed, against their recorded digests. It reads them
// whole and writes nothing. Files that somebody added are not differences. The error is that of ctx.
func Check(ctx context.Context, c workspace.Copy) ([]Difference, error) {
	root, err := openCopy(c)
	if err != nil {
		return []Difference{{What: err.Error()}}, nil
	}
	defer root.Close()
	var list []Difference
	for _, f := range c.Files {
		now, err := stat(ctx, root, f.Name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			list = append(list, Difference{f.Name, orNotThere(err).Error()})
		case now != f && now.SHA256 != c.Next[f.Name]: // a purge that was killed left what it was about to record
			list = append(list, Difference{f.Name, errChanged.Error()})
		}
	}
	return list, nil
}

// List returns all registered copies, by path, closed ones too. It compares the files of each with their recorded
// digests and writes nothing: a copy that differs, or that has rows that must go, is an open obligation.
func List(ctx context.Context, ws *workspace.Workspace) ([]state.CopyReport, error) {
	list, err := state.ListCopies(ctx, ws)
	if err != nil {
		return nil, err
	}
	copies, err := ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range copies {
		report := &list[i]
		if _, err := os.Lstat(unfinishedPath(c.Path)); err == nil && report.State != state.CopyClosed {
			report.State = state.CopyUnfinished
		}
		if report.State == state.CopyClosed || report.State == state.CopyUnfinished {
			continue
		}
		trouble, err := Check(ctx, c)
		if err != nil {
			return nil, err
		}
		if len(trouble) > 0 {
			report.State, report.Told = state.CopyOpen, state.PrintableLine(describe(trouble))
		}
	}
	return list, nil
}

// errChanged is the trouble with a file that has another digest than the recorded one.
var errChanged = errors.New("somebody changed it: put it back as it was, or delete the copy and say so with --destroyed")

// orNotThere says plainly that a file of a copy is missing.
func orNotThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is not there any more: moved or handed out")
	}
	return err
}

// describe names the files that differ, the first of many.
func describe(list []Difference) string {
	const most = 5
	var parts []string
	for _, d := range list[:min(len(list), most)] {
		parts = append(parts, strings.TrimPrefix(d.Name+": "+d.What, ": "))
	}
	if n := len(list) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, "; ")
}

// openCopy opens the folder of a copy.
func openCopy(c workspace.Copy) (*os.Root, error) {
	info, err := os.Lstat(c.Path)
	switch {
	case isMissing(err):
		return nil, errors.New("it is not there any more: moved, handed out or on a disk that is not mounted")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errors.New("something else lies in its place")
	}
	return os.OpenRoot(c.Path)
}

// stat reads a regular file of the copy whole.
func stat(ctx context.Context, root *os.Root, name string) (workspace.File, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return workspace.File{}, err
	}
	if !info.Mode().IsRegular() {
		return workspace.File{}, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return workspace.File{}, err
	}
	defer f.Close()
	return workspace.Digest(ctx, f, name)
}
