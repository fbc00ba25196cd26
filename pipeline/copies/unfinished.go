package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// ErrBusy means that another process is making a copy at the same path.
var ErrBusy = errors.New("another process is making a copy there")

// An unfinished is the folder of a copy that has no name yet. One process at a time has it.
type unfinished struct {
	root *os.Root
	lock *os.File // nil where the system has no such locks
}

// claim makes the folder, or takes over one that a killed export left; the caller closes it. What lies there and is no
// folder, such as a link, is removed and not followed. The error is ErrBusy where another process has the folder.
func claim(temp string) (*unfinished, error) {
	// Each round but the last meets what another process has just made, renamed or removed.
	for range 3 {
		if err := os.Mkdir(temp, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		u, err := openUnfinished(temp)
		switch {
		case isMissing(err):
			continue
		case errors.Is(err, errNoFolder):
			if err := os.Remove(temp); err != nil && !isMissing(err) {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		// One that others may write to is not ours, or was not: it fails for one of another user.
		if err := u.root.Chmod(".", 0o700); err != nil {
			u.Close()
			return nil, err
		}
		return u, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrBusy, temp)
}

// errNoFolder is the trouble with a link, a pipe or a file in the place of the folder.
var errNoFolder = errors.New("it is not a folder")

// openUnfinished takes the folder that is there.
func openUnfinished(temp string) (*unfinished, error) {
	info, err := os.Lstat(temp)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", temp, errNoFolder)
	}
	root, err := os.OpenRoot(temp)
	if err != nil {
		return nil, err
	}
	u := &unfinished{root: root}
	u.lock, err = lockFolder(root)
	if err == nil {
		err = u.liesAt(temp)
	}
	if err != nil {
		u.Close()
		return nil, fmt.Errorf("%w: %s", err, temp)
	}
	return u, nil
}

// liesAt fails where the folder is at the path no longer: while its lock was waited for, it may have got its name, or a
// link may have taken its place.
func (u *unfinished) liesAt(temp string) error {
	now, err := os.Lstat(temp)
	if err != nil {
		return err
	}
	have, err := u.root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(now, have) {
		return ErrBusy
	}
	return nil
}

// clear removes what the folder holds, but for the regular file keep.
func (u *unfinished) clear(keep string) error {
	list, err := fs.ReadDir(u.root.FS(), ".")
	for _, f := range list {
		if f.Name() != keep || !f.Type().IsRegular() {
			err = errors.Join(err, u.root.RemoveAll(f.Name()))
		}
	}
	return err
}

// holds reports whether the folder has the files of a copy. A copy that is on record with files has them all before it
// gets its name; a folder that lacks one is of another export to the same path.
func (u *unfinished) holds(ctx context.Context, files []workspace.File) bool {
	for _, f := range files {
		now, err := stat(ctx, u.root, f.Name)
		if err != nil || now != f {
			return false
		}
	}
	return true
}

// Leftover returns the path of the folder that the export of a copy left when it was killed, or "" if none is there. It
// takes no lock: who only looks is in nobody's way.
func Leftover(ctx context.Context, c workspace.Copy) string {
	if c.Format == state.ThirdParty || c.Was != nil {
		return "" // it never had one, or was finished
	}
	temp := unfinishedPath(c.Path)
	info, err := os.Lstat(temp)
	switch {
	case isMissing(err):
		return ""
	case len(c.Files) == 0:
		return temp
	case err != nil || !info.IsDir():
		return ""
	}
	root, err := os.OpenRoot(temp)
	if err != nil {
		return ""
	}
	defer root.Close()
	if !(&unfinished{root: root}).holds(ctx, c.Files) {
		return "" // of an export of another workspace
	}
	return temp
}

// neverFinished is the note on a copy that never got its name.
const neverFinished = "never finished"

// removeUnfinished removes what a killed export left, and reports whether the copy is gone with it. An export makes its
// folder before its record: one that is not found was deleted, or lies on a disk that is away, and is an error.
func removeUnfinished(ctx context.Context, ws *workspace.Workspace, c *workspace.Copy) (bool, error) {
	if c.Format == state.ThirdParty {
		return false, nil
	}
	temp := unfinishedPath(c.Path)
	u, err := openUnfinished(temp)
	switch {
	case len(c.Files) > 0 && (isMissing(err) || errors.Is(err, ErrBusy) || errors.Is(err, errNoFolder)):
		return false, nil // the copy has its name, and another workspace its own record
	case isMissing(err):
		return false, lostFolder(temp)
	case errors.Is(err, errNoFolder):
		return true, closeUnfinished(ctx, ws, c, os.Remove)
	case err != nil:
		return false, err
	}
	defer u.Close()
	if !u.holds(ctx, c.Files) {
		return false, nil
	}
	return true, closeUnfinished(ctx, ws, c, os.RemoveAll)
}

// closeUnfinished closes the record of a copy that was never finished, and removes what lies at its temporary path. The
// record comes first: after a kill between the two, every look at the copy finds the Leftover, and the next purge
// removes it. A record without a folder would be open for good.
func closeUnfinished(ctx context.Context, ws *workspace.Workspace, c *workspace.Copy, remove func(string) error) error {
	c.Files = nil
	c.Close(neverFinished)
	err := ws.SetCopy(ctx, *c, purged(*c, "unfinished"))
	if err == nil {
		err = remove(unfinishedPath(c.Path))
	}
	return err
}

// lostFolder is the trouble with a copy that was never finished and whose folder cannot be found.
func lostFolder(temp string) error {
	return fmt.Errorf("cannot check for the files of a killed export: %s is not there: put its disk in; if the folder "+
		"was deleted, say so with --destroyed", temp)
}

// Close gives the folder up, and leaves what it holds. Nothing is written through what it closes.
func (u *unfinished) Close() {
	u.root.Close()
	u.lock.Close()
}

// discard removes the folder of an unfinished copy, unless another process is at work in it: ErrBusy.
func discard(temp string) error {
	u, err := openUnfinished(temp)
	switch {
	case isMissing(err):
		return nil
	case errors.Is(err, errNoFolder):
		return os.Remove(temp)
	case err != nil:
		return err
	}
	defer u.Close()
	return os.RemoveAll(temp)
}

// vacant refuses a path at which something is, but for an empty folder.
func vacant(to string) error {
	info, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder", ErrForeign, to)
	}
	list, err := os.ReadDir(to)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case len(list) > 0:
		return fmt.Errorf("%w: %s holds %s", ErrForeign, to, list[0].Name())
	}
	return nil
}

// unfinishedPath returns the path of a copy before it has its name.
func unfinishedPath(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".rehydrate-unfinished")
}
