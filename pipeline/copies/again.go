package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// standsAgain returns the record that a closed copy has to get because it is back: a file of it with rows lies at its
// path as it was. It returns nil where none does. A copy that was moved away and back lies there as the last purge left
// it at the other place, and not as it was before.
func standsAgain(ctx context.Context, copies []workspace.Copy, c workspace.Copy) *workspace.Copy {
	if c.Was == nil { // it is not closed, or never was finished
		return nil
	}
	root, err := openCopy(c)
	if err != nil {
		return nil
	}
	defer root.Close()
	there := func(files []workspace.File) (n int) {
		for _, f := range files {
			// What the end of the workspace emptied and has yet to delete is no copy.
			if !state.HasRows(f.Name) || c.Next[f.Name] == f.SHA256 {
				continue
			}
			if now, err := stat(ctx, root, f.Name); err == nil && now == f {
				n++
			}
		}
		return n
	}
	n := there(c.Was.Files)
	if to := movedTo(copies, c); to != nil {
		// Of a backup that was made before the move more files are as they were then.
		if m := there(to.Files); m > 0 && m >= n {
			to.Path, to.Back, to.Open, to.Told = c.Path, to.Path, false, ""
			return to
		}
	}
	if n == 0 {
		return nil
	}
	c.Files, c.Rows, c.Told, c.Was, c.Next = c.Was.Files, c.Was.Rows, "", nil, nil
	return &c
}

// movedTo returns the record of the place to which a closed copy was moved, on from place to place; nil where it was
// not moved, or was closed there.
func movedTo(copies []workspace.Copy, c workspace.Copy) *workspace.Copy {
	was := c.Was
	for range copies {
		if was == nil {
			return nil
		}
		at := slices.IndexFunc(copies, func(to workspace.Copy) bool {
			return to.Path == was.To && to.Made.Equal(c.Made) // else it is one that was made there since
		})
		switch {
		case at < 0:
			return nil
		case state.StateOfCopy(copies[at]) != state.CopyClosed:
			to := copies[at]
			return &to
		}
		was = copies[at].Was
	}
	return nil
}

// lacksGone fails when a row that must go is in the folder at the path of a copy that was closed, whoever made it.
func lacksGone(ctx context.Context, c workspace.Copy, gone state.GoneSet) error {
	if c.Was == nil {
		return nil
	}
	root, err := openCopy(c)
	if err != nil {
		return nil
	}
	defer root.Close()
	err = (&purging{copy: c, root: root, gone: gone}).prove(ctx)
	if errors.As(err, new(*state.RowThere)) {
		return fmt.Errorf("%s; something stands there again: %w", c.Told, err)
	}
	return nil // what cannot be read need not be of this workspace
}

// reopen puts a copy that stands there again on record: what has to go is taken out of it as of any other.
func reopen(ctx context.Context, ws *workspace.Workspace, c workspace.Copy) error {
	return ws.SetCopy(ctx, c, auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(c.Path)), Format: c.Format,
		Files: logFiles(c.Files)})
}
