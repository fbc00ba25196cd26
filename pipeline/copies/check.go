package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A look says how a file of a copy is as it lies there, as far as it looks at it.
type look func(ctx context.Context, root *os.Root, recorded workspace.File) (now workspace.File, err error)

// whole reads the file.
func whole(ctx context.Context, root *os.Root, recorded workspace.File) (workspace.File, error) {
	return stat(ctx, root, recorded.Name)
}

// glance takes a file of the recorded size for the recorded one.
func glance(_ context.Context, root *os.Root, recorded workspace.File) (workspace.File, error) {
	info, err := root.Lstat(recorded.Name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", recorded.Name)
	}
	if err != nil || info.Size() == recorded.Size {
		return recorded, err
	}
	return workspace.File{Name: recorded.Name, Size: info.Size()}, nil
}

// check holds the files of a registered copy, which is not closed, against their record, and writes nothing. Its error
// describes the differences. Files that somebody added are one where a row went, or has to.
func check(ctx context.Context, c workspace.Copy, at look, owes bool, others []string) error {
	root, err := openCopy(c)
	if err != nil {
		return err
	}
	defer root.Close()
	var list []error
	for _, f := range c.Files {
		now, err := at(ctx, root, f)
		err = orNotThere(err)
		// A purge that was killed left what it was about to record.
		next, killed := c.Next[f.Name]
		if err == nil && now != f && !(killed && (now.SHA256 == next || now.SHA256 == "")) {
			err = errChanged
		}
		if err != nil {
			list = append(list, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	if owes || c.Taken > 0 {
		if err := noForeign(root, c, others); err != nil {
			list = append(list, err)
		}
	}
	return describe(list)
}

// List returns all registered copies, by path, closed ones too. One whose files differ from their recorded digests,
// that has rows that must go or that an audit heard are gone, or that lost rows and holds files of somebody else, is an
// open obligation.
func List(ctx context.Context, ws *workspace.Workspace) ([]state.CopyReport, error) {
	all, err := list(ctx, ws, whole)
	if err != nil {
		return nil, err
	}
	return all, state.NoteHeard(ctx, ws, all)
}

// Glance is List by the names and sizes of the files alone, and by what jobs know: it reads none of a copy that is in
// order.
func Glance(ctx context.Context, ws *workspace.Workspace) ([]state.CopyReport, error) {
	return list(ctx, ws, glance)
}

func list(ctx context.Context, ws *workspace.Workspace, at look) ([]state.CopyReport, error) {
	gone, err := state.MustLeaveCopiesNow(ctx, ws)
	if err != nil {
		return nil, err
	}
	list, err := state.ListCopies(ctx, ws)
	if err != nil {
		return nil, err
	}
	copies, err := ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	for report, c := range state.Reported(list, copies) {
		if c.Format == state.ThirdParty {
			continue
		}
		back := standsAgain(ctx, copies, c)
		if back != nil {
			report.Files, report.Rows = back.Files, len(back.Rows)
		}
		left := Leftover(ctx, c)
		if left != "" && report.State != state.CopyClosed && len(report.Owed) == 0 {
			report.State, report.Told = state.CopyUnfinished, ""
			continue
		}
		err := examine(ctx, c, left, back != nil, at, gone.In(c), len(report.Owed) > 0, others(copies, c))
		switch {
		case err != nil:
			report.State, report.Told = state.CopyOpen, printable.Line(err.Error())
		case c.Open && strings.Contains(c.Told, notThere): // it is back since the purge that said so
			report.Told = state.NotPurged
		}
	}
	return list, ctx.Err()
}

// examine says why a copy is an open obligation as it lies there; left is its Leftover, back whether it stands again.
func examine(ctx context.Context, c workspace.Copy, left string, back bool, at look, gone state.GoneSet, owes bool,
	others []string) error {
	closed := state.StateOfCopy(c) == state.CopyClosed
	switch {
	case left != "" && closed:
		return fmt.Errorf("%s; %s stands there again: rehydrate purge deletes it", c.Told, left)
	case left != "":
		return fmt.Errorf("its export was never finished, and left %s: rehydrate purge deletes it", left)
	case back:
		return errors.New(c.Told + "; it stands there again: delete it, or rehydrate purge takes it up again")
	case closed:
		return lacksGone(ctx, c, gone)
	case len(c.Files) == 0:
		return lostFolder(unfinishedPath(c.Path))
	}
	return check(ctx, c, at, owes, others)
}

// errChanged is the trouble with a file that has another digest than the recorded one.
var errChanged = errors.New("somebody changed it: put it back as it was, or delete the copy and say so with " +
	"--destroyed; if a purge cleaned it after the backup that you restored: rehydrate export --adopt DIR --note WHO")

// notThere begins what is told of a copy, or of a file of it, that is missing.
const notThere = "it is not there any more: "

// errNotThere is the trouble with a file that is missing.
var errNotThere = errors.New("it is not there any more: moved or handed out")

// orNotThere says plainly that a file of a copy is missing.
func orNotThere(err error) error {
	// The operator knows where it went, and what to say of it.
	if errors.Is(err, fs.ErrNotExist) {
		return errNotThere
	}
	return err
}

// describe makes one error of what is wrong with the files of a copy, and names the first of many; nil for none.
func describe(list []error) error {
	const most = 5
	if n := len(list) - most; n > 0 {
		list = append(list[:most:most], fmt.Errorf("and %d more", n))
	}
	if len(list) == 0 {
		return nil
	}
	return errors.New(strings.ReplaceAll(errors.Join(list...).Error(), "\n", "; "))
}

// openCopy opens the folder of a copy.
func openCopy(c workspace.Copy) (*os.Root, error) {
	if c.Format == state.ThirdParty {
		return nil, errDisclosed
	}
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
	f, err := durable.OpenRegular(root, name)
	if err != nil {
		return workspace.File{}, err
	}
	defer f.Close()
	return workspace.Digest(ctx, f, name)
}
