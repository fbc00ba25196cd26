package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// keepOwed notes what each copy owes, before a manifest is loaded that may not have the posts.
func (r *run) keepOwed(ctx context.Context, next workspace.Binding) error {
	have, bound, err := r.Workspace.Binding(ctx)
	if err != nil || !bound || have.ReleaseDigest == next.ReleaseDigest && have.ManifestDigest == next.ManifestDigest {
		return err
	}
	gone := state.GoneSet{}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if p.State.Gone() {
			gone[p.ID] = state.GonePost{ID: p.ID, State: p.State, Reason: p.Reason}
		}
	}
	copies, err := r.Workspace.Copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		all, err := state.GoneFrom(ctx, r.Workspace, c, gone)
		if err != nil {
			return err
		}
		if rows := state.Owed(c, all); state.StateOfCopy(c) != state.CopyClosed && !slices.Equal(rows, c.Owed) {
			c.Owed = rows
			if err := r.Workspace.SetCopy(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// purgeCopies takes rows that must go out of every registered copy that can be reached, and opens an
// obligation for every other one. A copy's own trouble is in its report.
func (r *run) purgeCopies(ctx context.Context, gone state.GoneSet) ([]state.CopyReport, error) {
	copies, err := r.Workspace.Copies(ctx)
	if err != nil {
		return nil, err
	}
	reports := []state.CopyReport{}
	// The last path first: a copy that lies in another one is purged before that is looked through.
	for _, c := range slices.Backward(copies) {
		if state.StateOfCopy(c) == state.CopyClosed {
			if err := removeLater(c); err != nil {
				report := state.NewCopyReport(c)
				report.State, report.Told = state.CopyOpen, state.PrintableLine(err.Error())
				reports = append(reports, report)
			}
			continue
		}
		report, err := r.purgeCopy(ctx, c, gone)
		if err != nil {
			return nil, fmt.Errorf("purge the copy %s: %w", c.Path, err)
		}
		reports = append(reports, report)
	}
	slices.Reverse(reports)
	return reports, nil
}

func (r *run) purgeCopy(ctx context.Context, c workspace.Copy, gone state.GoneSet) (state.CopyReport, error) {
	gone, err := state.GoneFrom(ctx, r.Workspace, c, gone)
	if err != nil {
		return state.CopyReport{}, err
	}
	if removed, err := r.removeUnfinished(ctx, &c); err != nil || removed {
		report := state.NewCopyReport(c)
		if err != nil && ctx.Err() == nil {
			report.State, report.Told, report.Owed = state.CopyOpen, state.PrintableLine(err.Error()), state.Owed(c, gone)
		}
		return report, ctx.Err()
	}
	ids := state.Owed(c, gone)
	p := &copyPurge{run: r, copy: c, gone: gone}
	var trouble error
	if idle := len(ids) == 0 && !c.Open; idle {
		trouble = p.putBack(ctx)
	} else {
		trouble = p.do(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return state.CopyReport{}, ctx.Err()
	case trouble == nil && len(ids) == 0 && !c.Open:
		return state.NewCopyReport(c), nil
	}
	event := auditlog.Event{Kind: auditlog.CopyPurged, Path: state.SHA256([]byte(c.Path)), Format: c.Format, Files: logFiles(p.copy.Files)}
	if trouble != nil {
		p.copy.Open, p.copy.Told, event.Verdict = true, state.PrintableLine(trouble.Error()), "open"
	} else {
		p.copy.Open, p.copy.Told = false, ""
		p.copy.Rows = slices.DeleteFunc(p.copy.Rows, func(id string) bool { return gone.Has(dataset.PostOf(id)) })
		p.copy.Next, p.copy.Owed = nil, nil
	}
	for _, id := range ids[:min(len(ids), auditlog.MaxPosts)] {
		event.Posts = append(event.Posts, auditlog.Post{ID: dataset.PostOf(id)})
	}
	if err := r.Workspace.SetCopy(ctx, p.copy, event); err != nil {
		return state.CopyReport{}, err
	}
	report := state.NewCopyReport(p.copy)
	if trouble != nil {
		report.Owed = ids
	} else {
		report.Purged = ids
	}
	return report, nil
}

// logFiles are files as a record has them. A record has room for so many; the digests of all are in the
// workspace.
func logFiles(files []workspace.File) []auditlog.File {
	var list []auditlog.File
	for _, f := range files[:min(len(files), auditlog.MaxFiles)] {
		list = append(list, auditlog.File{Name: f.Name, SHA256: f.SHA256})
	}
	return list
}

// neverFinished is what is told of a copy that never had its name.
const neverFinished = "never finished"

// removeUnfinished removes what a killed export left, and reports whether there was nothing else. A copy that has its
// name has nothing under the other one any more: while that is there, whatever lies in the copy's place is
// somebody else's.
func (r *run) removeUnfinished(ctx context.Context, c *workspace.Copy) (bool, error) {
	temp := unfinishedPath(c.Path)
	_, err := os.Lstat(temp)
	switch {
	case isMissing(err) && len(c.Files) > 0:
		return false, nil
	case isMissing(err):
		if _, err := os.Stat(filepath.Dir(c.Path)); err != nil {
			return false, fmt.Errorf("what a killed export left there can't be looked for: %w", err)
		}
	case err != nil:
		return false, err
	}
	if len(c.Files) > 0 { // killed before the rest is done, it is on record as what it is
		c.Files, c.Open, c.Told = nil, false, ""
		if err := r.Workspace.SetCopy(ctx, *c); err != nil {
			return false, err
		}
	}
	if err := os.RemoveAll(temp); err != nil {
		return false, err
	}
	c.Told = neverFinished
	return true, r.Workspace.SetCopy(ctx, *c, auditlog.Event{Kind: auditlog.CopyPurged, Path: state.SHA256([]byte(c.Path)), Format: c.Format, Verdict: "unfinished"})
}

// removeLater removes what is left of a copy that never had its name, and was on a disk that was away when it was closed.
func removeLater(c workspace.Copy) error {
	if c.Told != neverFinished {
		return nil
	}
	if err := os.RemoveAll(unfinishedPath(c.Path)); !isMissing(err) {
		return err
	}
	return nil
}

// isMissing reports whether an error means that nothing is there, not even a folder to be in.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// unfinishedPath is where a copy is made before it has its name.
func unfinishedPath(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".rehydrate-unfinished")
}

// A copyPurge takes rows out of one copy.
type copyPurge struct {
	*run
	copy workspace.Copy
	gone state.GoneSet
	root *os.Root
}

// The files of a dataset folder that describe it. They name the digests of the others, so that they no
// longer fit when a row has gone.
var descriptions = []string{"README.md", "croissant.json"}

// do takes the rows out and looks whether they are gone. Its error is the trouble with the copy. One file's
// trouble keeps no other from being written.
func (p *copyPurge) do(ctx context.Context) error {
	if err := p.open(); err != nil {
		return err
	}
	defer p.root.Close()
	var trouble error
	var files []workspace.File
	for i := range p.copy.Files {
		f := p.copy.Files[i]
		after, err := p.file(ctx, i)
		if err != nil {
			after = &f
			if trouble == nil {
				trouble = fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		if after != nil {
			files = append(files, *after)
		}
	}
	if p.copy.Files = files; trouble != nil {
		return trouble
	}
	return p.prove(ctx)
}

// putBack looks through a copy from which nothing has to go, as far as is known: somebody may have put back what a
// purge took out. One that is not there, or can't be looked through, owes nothing.
func (p *copyPurge) putBack(ctx context.Context) error {
	if p.open() != nil {
		return nil
	}
	defer p.root.Close()
	var there *state.RowThere
	if err := p.prove(ctx); errors.As(err, &there) {
		return err
	}
	return nil
}

func (p *copyPurge) open() error {
	info, err := os.Lstat(p.copy.Path)
	switch {
	case isMissing(err):
		return errors.New("it is not there any more: moved, handed out or on a disk that is not mounted")
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("something else lies in its place")
	}
	p.root, err = os.OpenRoot(p.copy.Path)
	return err
}

// file takes rows out of the file i, and returns it as it is then; nil when it is no part of the copy any more.
func (p *copyPurge) file(ctx context.Context, i int) (*workspace.File, error) {
	f := p.copy.Files[i]
	if err := p.root.Remove(tempName(f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	image := dataset.ImageID(f.Name)
	goes := image != "" && p.gone.Has(dataset.PostOf(image))
	describes := slices.Contains(descriptions, f.Name)
	if !goes && !describes && !dataset.Holds(f.Name) {
		return &f, nil
	}
	now, err := statIn(ctx, p.root, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (goes || describes):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("it is not there any more: moved or handed out")
	case err != nil:
		return nil, err
	case now == f && (goes || describes):
		return nil, p.remove(ctx, f.Name)
	case describes:
		return nil, nil // somebody's own now
	case now.SHA256 == p.copy.Next[f.Name] && now != f:
		// A purge that was killed had written it. What has gone since may be in it.
		p.copy.Files[i] = now
		if err := p.Workspace.SetCopy(ctx, p.copy); err != nil {
			return nil, err
		}
		return p.rewrite(ctx, now)
	case now != f:
		return nil, errors.New("somebody changed it, so that it can't be written anew: take the rows out by hand, or delete it")
	}
	return p.rewrite(ctx, f)
}

// rewrite writes a file without the rows, reads it back, and gives it its name.
func (p *copyPurge) rewrite(ctx context.Context, f workspace.File) (*workspace.File, error) {
	old, err := p.root.Open(f.Name)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	temp := tempName(f.Name)
	if err := durable.Step(ctx, "copy write", f.Name); err != nil {
		return nil, err
	}
	after, err := writeIn(ctx, p.root, temp, func(w *os.File) error {
		return dataset.WriteWithout(w, f.Name, old, f.Size, p.gone.Has)
	})
	if err == nil {
		after.Name = f.Name
		err = p.absent(ctx, temp, f.Name)
	}
	if err != nil || after == f {
		return &f, errors.Join(err, p.root.Remove(temp))
	}
	next := maps.Clone(p.copy.Next)
	if next == nil {
		next = map[string]string{}
	}
	next[f.Name] = after.SHA256
	p.copy.Next = next
	if err := p.Workspace.SetCopy(ctx, p.copy); err != nil {
		return nil, err
	}
	if err := durable.Step(ctx, "copy rename", f.Name); err != nil {
		return nil, err
	}
	if err := p.root.Rename(temp, f.Name); err != nil {
		return nil, err
	}
	return &after, syncIn(p.root, path.Dir(f.Name))
}

func (p *copyPurge) remove(ctx context.Context, name string) error {
	if err := durable.Step(ctx, "copy unlink", name); err != nil {
		return err
	}
	if err := p.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncIn(p.root, path.Dir(name))
}

// absent reads a file back, which is one of the kind of name, and fails when a row is in it that must go.
func (p *copyPurge) absent(ctx context.Context, file, name string) error {
	f, err := p.root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return state.LacksRows(ctx, f, info.Size(), name, p.gone)
}

// prove looks through all that lies in the copy's folder, also what somebody put there.
func (p *copyPurge) prove(ctx context.Context) error {
	return fs.WalkDir(p.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		image := dataset.ImageID(name)
		switch {
		case !e.Type().IsRegular():
			return ctx.Err()
		case image != "" && p.gone.Has(dataset.PostOf(image)):
			return fmt.Errorf("%s shows a post that must go: delete it: %w", name, &state.RowThere{ID: image})
		case !dataset.Holds(name):
			return ctx.Err()
		}
		err = p.absent(ctx, name, name)
		ours := slices.ContainsFunc(p.copy.Files, func(f workspace.File) bool { return f.Name == name })
		if err != nil && !ours {
			return fmt.Errorf("%s, which is no part of the copy: %w; look at it, and delete it", name, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// CloseCopy notes what the operator tells of a copy that is no longer there: it was returned or destroyed.
// note is in the operator's words. A copy that still lies where it was registered is refused.
func CloseCopy(ctx context.Context, ws *workspace.Workspace, name, how, note string, now time.Time) error {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return err
	}
	if name, err = copyPath(name); err != nil {
		return err
	}
	at := slices.IndexFunc(copies, func(c workspace.Copy) bool { return c.Path == name })
	switch {
	case at < 0:
		return fmt.Errorf("%w %s", ErrNoCopy, name)
	case state.StateOfCopy(copies[at]) == state.CopyClosed:
		return nil
	}
	if _, err := os.Lstat(name); !isMissing(err) {
		return fmt.Errorf("%w: %s", ErrCopyThere, name)
	}
	c := copies[at]
	c.Files, c.Open, c.Rows, c.Next, c.Owed = nil, false, nil, nil, nil
	c.Told = how + " " + now.UTC().Format(time.DateOnly) + ": " + note
	return ws.SetCopy(ctx, c, auditlog.Event{Kind: auditlog.CopyPurged, Path: state.SHA256([]byte(c.Path)), Format: c.Format, Verdict: "told"})
}

// Errors of CloseCopy.
var (
	ErrNoCopy    = errors.New("no copy is registered at")
	ErrCopyThere = errors.New("the copy is still there")
)

// copyPath is the path that names a copy: absolute, and with no link above its last part.
func copyPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if isMissing(err) {
		return abs, nil // of a copy that is gone with the folder it was in
	}
	return filepath.Join(parent, filepath.Base(abs)), err
}

// inside reports whether a path is that folder or below it.
func inside(name, folder string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
