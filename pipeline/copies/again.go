package copies

import (
	"context"
	"errors"
	"fmt"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// standsAgain reports whether a copy that was closed is back: a file of it with rows lies at its path as it was.
func standsAgain(ctx context.Context, c workspace.Copy) bool {
	if c.Was == nil { // it is not closed, or never was finished
		return false
	}
	root, err := openCopy(c)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, f := range c.Was.Files {
		// What the end of the workspace emptied and has yet to delete is no copy.
		if !state.HasRows(f.Name) || c.Next[f.Name] == f.SHA256 {
			continue
		}
		if now, err := stat(ctx, root, f.Name); err == nil && now == f {
			return true
		}
	}
	return false
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

// reopen puts a copy that stands there again on record as it was: what has to go is taken out of it as of any other.
func reopen(ctx context.Context, ws *workspace.Workspace, c *workspace.Copy) error {
	c.Files, c.Rows, c.Told, c.Was, c.Next = c.Was.Files, c.Was.Rows, "", nil, nil
	return ws.SetCopy(ctx, *c, auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(c.Path)), Format: c.Format,
		Files: logFiles(c.Files)})
}
