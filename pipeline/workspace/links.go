package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// A Linked says that a symbolic link is in a workspace. A removal would take away the link, and not what it points to.
type Linked struct {
	Name   string // of the link: slash-separated, relative to the workspace
	Target string // as the link has it
	Of     int    // how many links were found; this is the first
}

func (e *Linked) Error() string {
	others := ""
	if e.Of > 1 {
		others = fmt.Sprintf(", the first of %d links", e.Of)
	}
	return fmt.Sprintf("%s is a symbolic link to %s%s: a removal cannot reach what a link points to", e.Name,
		e.Target, others)
}

// CheckFolders fails with *Linked if a symbolic link is anywhere in the workspace that root is, but for the files of
// images/XX: it lists no folder that has one name for each image.
func CheckFolders(ctx context.Context, root *os.Root) error {
	return checkLinks(ctx, root, ".", func(name string) bool { return path.Dir(name) == imagesName })
}

// CheckLinks fails with *Linked where a command that writes would, because there is a symbolic link in the workspace.
func (w *Workspace) CheckLinks(ctx context.Context) error {
	if err := CheckFolders(ctx, w.root); err != nil {
		return err
	}
	return w.CheckImages(ctx)
}

// CheckImages fails with *Linked if one of the image files is a symbolic link.
func (w *Workspace) CheckImages(ctx context.Context) error {
	err := checkLinks(ctx, w.root, imagesName, func(string) bool { return false })
	wrap(&err, "look for links in the workspace")
	return err
}

// checkLinks looks for links in the folder under, and in those below it that skip does not name.
func checkLinks(ctx context.Context, root *os.Root, under string, skip func(folder string) bool) error {
	var found *Linked
	err := fs.WalkDir(root.FS(), under, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // there is none, or a run that is under way has taken it away
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case e.IsDir() && skip(name):
			return fs.SkipDir
		case e.Type()&fs.ModeSymlink == 0: // the folder's list says so: no file is asked for
			return nil
		case found != nil:
			found.Of++
			return nil
		}
		found, err = readLink(root, name)
		return err
	})
	if err == nil && found != nil {
		err = found
	}
	return err
}

// readLink describes a link.
func readLink(root *os.Root, name string) (*Linked, error) {
	target, err := root.Readlink(name)
	if err != nil {
		return nil, err
	}
	return &Linked{Name: name, Target: target, Of: 1}, nil
}

// noLink fails with *Linked if the file of this name is a symbolic link. It need not be there.
func noLink(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // whatever is wrong, opening or removing it says so
	}
	found, err := readLink(root, name)
	if err == nil {
		err = found
	}
	return err
}
