package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// ErrWaits means that a copy may have rows which state.db does not know: the next purge would take them out.
var ErrWaits = errors.New("state.db does not know images of the workspace, whose rows the next purge would take out of " +
	"the copy")

// Adopt puts a folder on record as a copy, as it lies there now: one that the workspace forgot when a backup was put
// back, or whose files another state of the workspace wrote. Every row in it is one of the release's entries, or was in
// an earlier edition, and every file is named as one of a copy of some format. What has to go is taken out by the next
// Purge. The errors are ErrNotCopy, of which ErrNoEntry is one, ErrForeign and ErrWaits.
func Adopt(ctx context.Context, ws *workspace.Workspace, name, note string, now time.Time) (state.CopyReport, error) {
	name, err := copyPath(name)
	if err != nil {
		return state.CopyReport{}, err
	}
	later, err := state.ReadNote[state.LaterNote](ctx, ws)
	if err == nil && later != 0 {
		err = ErrWaits
	}
	if err != nil {
		return state.CopyReport{}, err
	}
	registered, err := ws.Copies(ctx)
	if err != nil {
		return state.CopyReport{}, err
	}
	if err := apart(ws, registered, name); err != nil {
		return state.CopyReport{}, err
	}
	at := slices.IndexFunc(registered, func(r workspace.Copy) bool { return r.Path == name })
	if at >= 0 {
		if err := settled(ctx, registered[at]); err != nil {
			return state.CopyReport{}, notCopy(ctx, name, err)
		}
	}
	c := workspace.Copy{Path: name, Note: note, Made: now.UTC().Truncate(time.Second)}
	if err := readCopy(ctx, &c); err != nil {
		return state.CopyReport{}, notCopy(ctx, name, err)
	}
	unknown, err := noEntry(ctx, ws, c.Rows)
	if err != nil {
		return state.CopyReport{}, err
	}
	if unknown != "" {
		return state.CopyReport{}, notCopy(ctx, name, fmt.Errorf("it has a row of %s, %w", unknown, ErrNoEntry))
	}
	if at >= 0 {
		was := registered[at]
		if back := standsAgain(ctx, registered, was); back != nil && back.Back != "" {
			was = *back
		}
		c.Format, c.Made, c.Taken, c.Former, c.Back = was.Format, was.Made, was.Taken, was.Former, was.Back
		// What lies at the path of a closed copy can be of the workspace that began anew.
		if state.StateOfCopy(was) != state.CopyClosed {
			c.Ended = was.Ended
		}
	}
	event := auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(name)), Format: c.Format,
		Files: logFiles(c.Files)}
	if err := ws.SetCopy(ctx, c, event); err != nil {
		return state.CopyReport{}, err
	}
	return owing(ctx, ws, c)
}

// owing reports on a copy that was just put on record: it is open where rows in it must go.
func owing(ctx context.Context, ws *workspace.Workspace, c workspace.Copy) (state.CopyReport, error) {
	gone, err := state.MustLeaveCopiesNow(ctx, ws)
	report := state.NewCopyReport(c)
	report.Owed = state.Owed(c, gone.In(c))
	if len(report.Owed) > 0 {
		report.State = state.CopyOpen
	}
	return report, err
}

// notCopy says what is wrong with a folder, unless the job was stopped or the folder could not be read.
func notCopy(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if workspace.Unread(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrNotCopy, name, err)
}

// apart refuses a folder in the workspace or in another registered copy, or around one of them. Of two copies with the
// same files each would take for a change by somebody what a purge of the other did.
func apart(ws *workspace.Workspace, registered []workspace.Copy, name string) error {
	dir, err := filepath.EvalSymlinks(ws.Dir())
	switch {
	case err != nil:
		return err
	case inside(name, dir) || inside(dir, name):
		return fmt.Errorf("%w: %s is inside the workspace, or around it", ErrForeign, name)
	}
	for _, other := range others(registered, workspace.Copy{Path: name}) {
		if inside(name, other) || inside(other, name) {
			return fmt.Errorf("%w: %s is inside the registered copy %s, or around it", ErrForeign, name, other)
		}
	}
	return nil
}

// settled fails while an export of the copy was never finished and no purge has removed what it left: another record of
// the path would forget it.
func settled(ctx context.Context, c workspace.Copy) error {
	left := Leftover(ctx, c)
	switch {
	case left != "":
		return fmt.Errorf("an export to it was never finished, and left %s: rehydrate purge deletes it", left)
	case len(c.Files) == 0 && state.StateOfCopy(c) != state.CopyClosed:
		return lostFolder(unfinishedPath(c.Path))
	}
	return nil
}

// readCopy reads what lies in the folder of a copy: its files, rows and format.
func readCopy(ctx context.Context, c *workspace.Copy) error {
	info, err := os.Lstat(c.Path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	rows := map[string]bool{}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return ctx.Err()
		case !state.HasRows(name) && !dataset.Describes(name):
			return fmt.Errorf("%s is no file of an export: move it out of the folder, or delete it", name)
		}
		f, err := stat(ctx, root, name)
		if err != nil {
			return err
		}
		c.Files = append(c.Files, f)
		return rowsOf(ctx, root, f, rows)
	})
	if err != nil {
		return err
	}
	c.Rows = slices.Sorted(maps.Keys(rows))
	names := make([]string, len(c.Files))
	for i, f := range c.Files {
		names[i] = f.Name
	}
	c.Format = string(dataset.FormatOf(names))
	if len(rows) == 0 {
		return errors.New("it has no row of a dataset")
	}
	return nil
}

// rowsOf adds the rows of a file of a copy.
func rowsOf(ctx context.Context, root *os.Root, file workspace.File, rows map[string]bool) error {
	if image := dataset.ImageID(file.Name); image != "" {
		rows[image] = true
		return nil
	}
	if !dataset.Holds(file.Name) {
		return nil
	}
	f, err := durable.OpenRegular(root, file.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	for id, err := range dataset.RowIDs(ctx, file.Name, f, file.Size) {
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		rows[id] = true
	}
	return nil
}

// noEntry returns the first of the rows that is of no entry, "" for none. An entry is one of the release that the
// workspace has, or of an earlier edition of it: the log names the images that were fetched for it.
func noEntry(ctx context.Context, ws *workspace.Workspace, rows []string) (string, error) {
	unknown := map[string]bool{}
	for _, row := range rows {
		unknown[row] = true
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return "", err
		}
		delete(unknown, rec.Key.String())
	}
	if len(unknown) == 0 {
		return "", nil
	}
	first := func() string { return slices.Min(slices.Collect(maps.Keys(unknown))) }
	log, err := ws.LogReader(ctx)
	if errors.Is(err, auditlog.ErrNoLog) || errors.As(err, new(*auditlog.Broken)) {
		return first(), nil // nothing that can be believed says what was fetched
	}
	if err != nil {
		return "", err
	}
	for e, err := range log.Records(ctx, 0) {
		if err != nil {
			return "", err
		}
		for _, p := range e.Posts {
			if e.Kind == auditlog.Fetch {
				delete(unknown, manifest.Key{ID: p.ID, Image: e.Image}.String())
			}
		}
	}
	if len(unknown) == 0 {
		return "", nil
	}
	return first(), nil
}
