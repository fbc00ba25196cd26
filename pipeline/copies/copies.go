// Package copies makes copies of a dataset outside the workspace, registers them, and takes rows out of them again.
// All work in the folder of a copy goes through an os.Root, so that no link in it leads out.
package copies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Errors of Close, Move and Adopt.
var (
	ErrNoCopy    = errors.New("no copy is registered at")
	ErrCopyThere = errors.New("the copy is still there")
	ErrNotCopy   = errors.New("it is not the copy that was registered")
	// ErrNoEntry ends what is said of a row that no edition of the release had.
	ErrNoEntry = errors.New("which is no entry of the release")
)

// Close records the operator's word, note, on a copy that was returned or destroyed. One that is still there is
// refused.
func Close(ctx context.Context, ws *workspace.Workspace, name, how, note string, now time.Time) error {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(name, state.ThirdPartyPath("")) {
		name, err = copyPath(name)
		if err != nil {
			return err
		}
	}
	at := slices.IndexFunc(copies, func(c workspace.Copy) bool { return c.Path == name })
	if at < 0 || state.StateOfCopy(copies[at]) == state.CopyClosed {
		if lost, err := closeLost(ctx, ws, name); lost || err != nil {
			return err
		}
	}
	switch {
	case at < 0:
		return fmt.Errorf("%w %s", ErrNoCopy, name)
	case Leftover(ctx, copies[at]) != "":
		return fmt.Errorf("%w: its export was never finished, and left %s", ErrCopyThere, Leftover(ctx, copies[at]))
	case standsAgain(ctx, copies, copies[at]) != nil:
		return fmt.Errorf("%w: %s", ErrCopyThere, name)
	case state.StateOfCopy(copies[at]) == state.CopyClosed:
		return nil
	}
	c := copies[at]
	if len(c.Files) > 0 { // what lies at the path of a copy that was never finished is somebody else's
		if err := away(c.Format, name); err != nil {
			return err
		}
	}
	c.Close(how + " " + now.UTC().Format(time.DateOnly) + ": " + note)
	return ws.SetCopy(ctx, c, purged(c, "told"))
}

// away fails with ErrCopyThere if something is at the path of a copy, and with another error if that cannot be told.
func away(format, name string) error {
	if format == state.ThirdParty {
		return nil
	}
	_, err := os.Lstat(name)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return fmt.Errorf("look whether the copy is still there: %w", err)
	}
	return fmt.Errorf("%w: %s", ErrCopyThere, name)
}

// closeLost is Close for a copy of which only the log knows, and reports whether name is one.
func closeLost(ctx context.Context, ws *workspace.Workspace, name string) (bool, error) {
	all, err := ws.LostCopies(ctx)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(all, func(l workspace.LostCopy) bool { return l.Path == state.SHA256([]byte(name)) })
	if at < 0 {
		return false, nil
	}
	if err := away(all[at].Format, name); err != nil {
		return true, err
	}
	return true, ws.CloseLostCopy(ctx, all[at], purged(workspace.Copy{Path: name, Format: all[at].Format}, "told"))
}

// Move records that a registered copy lies elsewhere now: every file there has the digest that is on record. The report
// is about the copy at its new place.
func Move(
	ctx context.Context, ws *workspace.Workspace, from, to string, now time.Time,
) (state.CopyReport, error) {
	var none state.CopyReport
	copies, err := ws.Copies(ctx)
	if err != nil {
		return none, err
	}
	for _, name := range []*string{&from, &to} {
		*name, err = copyPath(*name)
		if err != nil {
			return none, err
		}
	}
	at := slices.IndexFunc(copies, func(c workspace.Copy) bool { return c.Path == from })
	if at < 0 || state.StateOfCopy(copies[at]) == state.CopyClosed {
		return none, fmt.Errorf("%w %s", ErrNoCopy, from)
	}
	if _, err := os.Lstat(from); !isMissing(err) {
		return none, fmt.Errorf("%w: %s", ErrCopyThere, from)
	}
	if err := apart(ws, slices.Delete(slices.Clone(copies), at, at+1), to); err != nil {
		return none, err
	}
	old, moved := copies[at], copies[at]
	moved.Path = to
	there := slices.IndexFunc(copies, func(c workspace.Copy) bool {
		return c.Path == to && state.StateOfCopy(c) != state.CopyClosed
	})
	if there >= 0 {
		same := copies[there]
		if !same.Made.Equal(old.Made) || same.Back != from && old.Back != to {
			// Its record, and what it owes, would be forgotten.
			return none, fmt.Errorf("%w: another one is on record at %s", ErrForeign, to)
		}
		if same.Back == from { // it was moved back, and a purge took it up before that was told
			moved = same
		}
		moved.Back = ""
	}
	if err := check(ctx, moved, whole, false, nil); err != nil || len(old.Files) == 0 {
		return none, fmt.Errorf("%w: %s: %w", ErrNotCopy, to, cmp.Or(err, errors.New("its export was never finished")))
	}
	// What the last purge said of the old place, that it is out of reach, is over.
	moved.Open, moved.Told = false, ""
	report, err := owing(ctx, ws, moved)
	if err != nil {
		return none, err
	}
	old.Close("moved " + now.UTC().Format(time.DateOnly) + " to " + to)
	old.Was.To = to
	event := auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(to)), Format: moved.Format,
		Files: logFiles(moved.Files)}
	return report, ws.MoveCopy(ctx, old, moved, event, purged(old, "told"))
}

// purged returns the log's record of a copy that lost rows, or that is gone.
func purged(c workspace.Copy, verdict string) auditlog.Event {
	return auditlog.Event{Kind: auditlog.CopyPurged, Path: state.SHA256([]byte(c.Path)), Format: c.Format,
		Verdict: verdict}
}

// logFiles returns as many files as a log record has room for. The workspace has the digests of all.
func logFiles(files []workspace.File) []auditlog.File {
	var list []auditlog.File
	for _, f := range files[:min(len(files), auditlog.MaxFiles)] {
		list = append(list, auditlog.File{Name: f.Name, SHA256: f.SHA256})
	}
	return list
}

// isMissing reports whether an error means that the file, or a folder above it, does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// copyPath returns the path that names a copy: absolute, and without links above its last part.
func copyPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if isMissing(err) {
		return abs, nil // the copy is gone together with its folder
	}
	return filepath.Join(parent, filepath.Base(abs)), err
}

// Around returns the path of the registered copy that a file lies in, or would; "" for none.
func Around(ctx context.Context, ws *workspace.Workspace, name string) (string, error) {
	name, err := copyPath(name)
	if err != nil {
		return "", err
	}
	copies, err := ws.Copies(ctx)
	for _, c := range copies {
		if state.StateOfCopy(c) != state.CopyClosed && inside(name, c.Path) {
			return c.Path, err
		}
	}
	return "", err
}

// Met returns the path of a registered copy that a folder or file lies in, or of one with files of images that lies in
// the folder now; "" for none. Links are followed.
func Met(ctx context.Context, ws *workspace.Workspace, name string) (string, error) {
	name, err := filepath.EvalSymlinks(name)
	if err == nil {
		name, err = filepath.Abs(name)
	}
	if err != nil {
		return "", err
	}
	copies, err := ws.Copies(ctx)
	for _, c := range copies {
		if state.StateOfCopy(c) == state.CopyClosed {
			continue
		}
		below := inside(c.Path, name) && c.Format == string(dataset.Folder)
		_, there := os.Lstat(c.Path)
		if below && !isMissing(there) || inside(name, c.Path) {
			return c.Path, err
		}
	}
	return "", err
}

// inside reports whether a path is the folder or below it.
func inside(name, folder string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && filepath.IsLocal(rel)
}
