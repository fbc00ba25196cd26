package copies

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// End takes all rows out of every registered copy that can be reached, deletes what is left of it, and closes its
// record. The others are open obligations. Killed anywhere, the next End completes it.
func End(ctx context.Context, ws *workspace.Workspace, now time.Time) ([]state.CopyReport, error) {
	list, err := ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	had := map[string]*workspace.ClosedCopy{}
	all := state.GoneSet{Posts: map[manifest.PostID]state.GonePost{}}
	for _, c := range list {
		// One that was closed may stand there again: then it is taken up, and ended as it was.
		had[c.Path] = cmp.Or(c.Was, &workspace.ClosedCopy{Files: c.Files, Rows: c.Rows})
		for _, row := range had[c.Path].Rows {
			id := dataset.PostOf(row)
			all.Posts[id] = state.GonePost{ID: id}
		}
		// A run can begin the workspace anew before one that is out of reach is back.
		c.Ended = had[c.Path].Rows
		if err := ws.SetCopy(ctx, c); err != nil {
			return nil, err
		}
	}
	// As a purge of every post, with all that it looks at: files that somebody changed or added are not ours to delete.
	purged, err := Purge(ctx, ws, all, nil, policy.Policy{})
	if err != nil {
		return nil, err
	}
	list, err = ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	reports := []state.CopyReport{}
	for _, c := range list {
		if state.StateOfCopy(c) == state.CopyGood {
			c, err = closeEmptied(ctx, ws, c, had[c.Path], now)
		}
		if err == nil && state.StateOfCopy(c) == state.CopyClosed && len(c.Next) > 0 {
			err = deleteEmptied(ctx, ws, c)
		}
		if err != nil {
			return nil, err
		}
		report := state.NewCopyReport(c)
		report.Owed = append(report.Owed, c.Rows...)
		for _, p := range purged { // an unfinished copy that was closed long ago, and cannot be deleted now
			if p.Path == c.Path && p.State == state.CopyOpen {
				report = p
			}
		}
		reports = append(reports, report)
	}
	lost, err := state.LostCopies(ctx, ws)
	return append(reports, lost...), err
}

// closeEmptied closes the record of a copy without rows, which had some. The record keeps which files are to be
// deleted.
func closeEmptied(
	ctx context.Context, ws *workspace.Workspace, c workspace.Copy, had *workspace.ClosedCopy, now time.Time,
) (workspace.Copy, error) {
	left := map[string]string{}
	for _, f := range c.Files {
		left[f.Name] = f.SHA256
	}
	c.Close("deleted " + now.UTC().Format(time.DateOnly) + ", when the workspace was ended")
	c.Next, c.Was = left, had
	return c, ws.SetCopy(ctx, c, purged(c, "told"))
}

// deleteEmptied deletes the files that are left of a copy whose rows are gone, and its folder if nothing else lies in
// it.
func deleteEmptied(ctx context.Context, ws *workspace.Workspace, c workspace.Copy) error {
	root, err := openCopy(c)
	if err != nil { // it went away meanwhile, and had no row any more
		return nil
	}
	defer root.Close()
	folders := map[string]bool{}
	for name, digest := range c.Next {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) { // also of a file that an earlier End deleted
			folders[dir] = true
		}
		now, err := stat(ctx, root, name)
		if err != nil || now.SHA256 != digest { // gone, or somebody's by now
			continue
		}
		if err := durable.In(root).Remove(ctx, name); err != nil {
			return err
		}
	}
	// The deepest first. A folder that holds something else stays.
	for _, dir := range slices.SortedFunc(maps.Keys(folders), func(a, b string) int { return len(b) - len(a) }) {
		_ = root.Remove(dir)
	}
	_ = os.Remove(c.Path)
	c.Next = nil
	return ws.SetCopy(ctx, c)
}
