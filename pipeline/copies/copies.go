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
	lost, err := lostAt(ctx, ws, name)
	if lost == nil || err != nil {
		return false, err
	}
	if err := away(lost.Format, name); err != nil {
		return true, err
	}
	return true, ws.CloseLostCopy(ctx, *lost, purged(workspace.Copy{Path: name, Format: lost.Format}, "told"))
}

// lostAt returns the copy that only the log knows, and that was at the path name; nil for none.
func lostAt(ctx context.Context, ws *workspace.Workspace, name string) (*workspace.LostCopy, error) {
	all, err := ws.LostCopies(ctx)
	at := slices.IndexFunc(all, func(l workspace.LostCopy) bool { return l.Path == state.SHA256([]byte(name)) })
	if at < 0 || err != nil {
		return nil, err
	}
	return &all[at], nil
}

// Move records that a registered copy lies elsewhere now: every file there has the digest that is on record. One that
// only the log knows is registered there with the files that lie there, unless it is on record there already, as after
// an Adopt: those of which its last record names the digest are as it says. The report is about the copy at its new
// place.
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
	isFrom := func(c workspace.Copy) bool { return c.Path == from }
	at := slices.IndexFunc(copies, isFrom)
	var lost *workspace.LostCopy
	if at < 0 || state.StateOfCopy(copies[at]) == state.CopyClosed {
		lost, err = lostAt(ctx, ws, from)
		if err != nil {
			return none, err
		}
		if lost == nil {
			return none, fmt.Errorf("%w %s", ErrNoCopy, from)
		}
	}
	if _, err := os.Lstat(from); !isMissing(err) {
		return none, fmt.Errorf("%w: %s", ErrCopyThere, from)
	}
	if err := apart(ws, slices.DeleteFunc(slices.Clone(copies), isFrom), to); err != nil {
		return none, err
	}
	var old workspace.Copy
	if lost == nil {
		old = copies[at]
	} else {
		old, err = lostCopy(ctx, ws, *lost, to)
		if err != nil {
			return none, err
		}
		old.Path = from
	}
	moved := old
	moved.Path = to
	there := slices.IndexFunc(copies, func(c workspace.Copy) bool {
		return c.Path == to && state.StateOfCopy(c) != state.CopyClosed
	})
	if there >= 0 {
		same := copies[there]
		switch {
		case lost != nil: // somebody registered it there since
			moved = same
		case !same.Made.Equal(old.Made) || same.Back != from && old.Back != to:
			// Its record, and what it owes, would be forgotten.
			return none, fmt.Errorf("%w: another one is on record at %s", ErrForeign, to)
		case same.Back == from: // it was moved back, and a purge took it up before that was told
			moved, moved.Back = same, ""
		default:
			moved.Back = ""
		}
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

// lostCopy returns the record that a copy which only the log knows gets where it lies now, at the path name. Its files
// are as the last record of the log has them, which names MaxFiles at most, and every row is of an entry.
func lostCopy(
	ctx context.Context, ws *workspace.Workspace, lost workspace.LostCopy, name string,
) (workspace.Copy, error) {
	c := workspace.Copy{Path: name, Note: state.UnknownHolder}
	if err := readOurs(ctx, ws, &c); err != nil {
		return c, err
	}
	c.Format, c.Made = lost.Format, lost.Made
	log, err := ws.LogReader(ctx)
	if err != nil {
		return c, err
	}
	var last []auditlog.File
	for e, err := range log.Records(ctx, lost.Record) {
		if err != nil {
			return c, err
		}
		if e.Path == lost.Path && len(e.Files) > 0 {
			last = e.Files
		}
	}
	there := logFilesOf(c.Files)
	for _, f := range last {
		if !slices.Contains(there, f) {
			return c, notCopy(ctx, name, fmt.Errorf("%s is not as the log has it", f.Name))
		}
	}
	return c, nil
}

// purged returns the log's record of a copy that lost rows, or that is gone.
func purged(c workspace.Copy, verdict string) auditlog.Event {
	return auditlog.Event{Kind: auditlog.CopyPurged, Path: state.SHA256([]byte(c.Path)), Format: c.Format,
		Verdict: verdict}
}

// logFiles returns as many files as a log record has room for. The workspace has the digests of all.
func logFiles(files []workspace.File) []auditlog.File {
	return logFilesOf(files[:min(len(files), auditlog.MaxFiles)])
}

// logFilesOf returns files as a log record has them.
func logFilesOf(files []workspace.File) []auditlog.File {
	var list []auditlog.File
	for _, f := range files {
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
