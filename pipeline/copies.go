package pipeline

import (
	"context"
	"encoding/json"
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

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/workspace"
)

// A CopyState is what is known of a registered copy.
type CopyState string

// The states of a copy.
const (
	CopyGood       CopyState = "good"       // nothing in it must go
	CopyOpen       CopyState = "open"       // an open obligation: rows in it must go, and a purge could not reach them
	CopyUnfinished CopyState = "unfinished" // an export that was killed; the next export or purge removes it
	CopyClosed     CopyState = "closed"     // returned, destroyed or never finished
)

// A CopyReport is a registered copy, and what became of it.
type CopyReport struct {
	Path   string           `json:"path"`
	Note   string           `json:"note"` // who has it, in the operator's words
	Format string           `json:"format"`
	Made   time.Time        `json:"made"`
	Files  []workspace.File `json:"files"`
	Rows   int              `json:"rows"`
	State  CopyState        `json:"state"`
	Told   string           `json:"told"` // why it is closed, or why it is open
	Owed   []string         `json:"owed"` // rows in it that must go
	// Purged are the rows that this purge took out of it.
	Purged []string `json:"purged"`
}

// stateOf tells in which state a copy is as it is on record. One without files has been closed, if
// somebody told so, or was never finished.
func stateOf(c workspace.Copy) CopyState {
	switch {
	case len(c.Files) > 0 && c.Open:
		return CopyOpen
	case len(c.Files) > 0:
		return CopyGood
	case c.Told != "":
		return CopyClosed
	}
	return CopyUnfinished
}

// A copyNote is what the workspace notes of a copy beside workspace.Copy.
type copyNote struct {
	Rows []string `json:"rows"` // ids of its rows
	// Next has the digests of files that are about to be written anew: a purge that was killed
	// finds either digest.
	Next map[string]string `json:"next,omitempty"`
	// Owed are rows whose posts were gone when a manifest came that does not have them: nobody is asked about
	// those any more, and the row still has to go.
	Owed []string `json:"owed,omitempty"`
}

func copyKey(path string) string { return "copy " + path }

func readCopyNote(ctx context.Context, ws *workspace.Workspace, path string) (copyNote, error) {
	var n copyNote
	text, err := ws.Meta(ctx, copyKey(path))
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &n)
	}
	if err != nil {
		return n, fmt.Errorf("read the note of the copy %s: %w", path, err)
	}
	return n, nil
}

func writeCopyNote(ctx context.Context, ws *workspace.Workspace, path string, n copyNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return ws.SetMeta(ctx, copyKey(path), string(text))
}

func newCopyReport(c workspace.Copy, n copyNote) CopyReport {
	files := c.Files
	if files == nil {
		files = []workspace.File{}
	}
	return CopyReport{Path: c.Path, Note: c.Note, Format: c.Format, Made: c.Made, Files: files, Rows: len(n.Rows), State: stateOf(c),
		Told: c.Told, Owed: []string{}, Purged: []string{}}
}

// ListCopies tells of all registered copies, by path, closed ones too. It reads the workspace alone
// and looks at no copy: one that is good may hold rows that have to go since the last purge, and then
// is open.
func ListCopies(ctx context.Context, ws *workspace.Workspace) ([]CopyReport, error) {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{Config: Config{Workspace: ws}}
	if r.buried, err = holding(ctx, ws); err != nil {
		return nil, err
	}
	gone, err := r.mustGo(ctx)
	if err != nil {
		return nil, err
	}
	list := []CopyReport{}
	for _, c := range copies {
		n, err := readCopyNote(ctx, ws, c.Path)
		if err != nil {
			return nil, err
		}
		all, err := alsoOwed(ctx, ws, n, gone)
		if err != nil {
			return nil, err
		}
		report := newCopyReport(c, n)
		if report.Owed = owed(n, all); len(report.Owed) > 0 && report.State == CopyGood {
			report.State, report.Told = CopyOpen, "not purged yet: run rehydrate purge"
		}
		list = append(list, report)
	}
	return list, nil
}

// openCopies counts the registered copies that owe a removal. Without copies it costs nothing.
func openCopies(ctx context.Context, ws *workspace.Workspace) (int, error) {
	copies, err := ws.Copies(ctx)
	if err != nil || len(copies) == 0 {
		return 0, err
	}
	list, err := ListCopies(ctx, ws)
	open := 0
	for _, c := range list {
		if c.State == CopyOpen {
			open++
		}
	}
	return open, err
}

// holding are the tombstones of a workspace that hold.
func holding(ctx context.Context, ws *workspace.Workspace) (map[manifest.PostID]workspace.Tombstone, error) {
	all, err := ws.Tombstones(ctx)
	if err != nil {
		return nil, err
	}
	hold := make(map[manifest.PostID]workspace.Tombstone, len(all))
	for _, t := range all {
		if !t.Readmitted {
			hold[t.ID] = t
		}
	}
	return hold, nil
}

// owed are the rows of a copy that must go.
func owed(n copyNote, gone goneSet) []string {
	ids := []string{}
	for _, id := range n.Rows {
		if gone.has(dataset.PostOf(id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// alsoOwed adds to the posts that are gone those that a copy owes the rows of since they left the manifest.
func alsoOwed(ctx context.Context, ws *workspace.Workspace, n copyNote, gone goneSet) (goneSet, error) {
	all := maps.Clone(gone)
	for _, row := range n.Owed {
		id := dataset.PostOf(row)
		left := !gone.has(id)
		for _, err := range ws.Records(ctx, workspace.Select{ID: id}) {
			if err != nil {
				return nil, err
			}
			left = false // what is said of it now counts
			break
		}
		if left {
			all[id] = PurgedPost{ID: id, State: manifest.StateUnavailable}
		}
	}
	return all, nil
}

// keepOwed notes what each copy owes, before a manifest is loaded that may not have the posts.
func (r *run) keepOwed(ctx context.Context, next workspace.Binding) error {
	have, bound, err := r.Workspace.Binding(ctx)
	if err != nil || !bound || have.ReleaseDigest == next.ReleaseDigest && have.ManifestDigest == next.ManifestDigest {
		return err
	}
	gone := goneSet{}
	for p, err := range r.Workspace.Posts(ctx) {
		if err != nil {
			return err
		}
		if p.State.Gone() {
			gone[p.ID] = PurgedPost{p.ID, p.State, p.Reason}
		}
	}
	copies, err := r.Workspace.Copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		n, err := readCopyNote(ctx, r.Workspace, c.Path)
		if err != nil {
			return err
		}
		all, err := alsoOwed(ctx, r.Workspace, n, gone)
		if err != nil {
			return err
		}
		if rows := owed(n, all); stateOf(c) != CopyClosed && !slices.Equal(rows, n.Owed) {
			n.Owed = rows
			if err := writeCopyNote(ctx, r.Workspace, c.Path, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// purgeCopies takes rows that must go out of every registered copy that can be reached, and opens an
// obligation for every other one. A copy's own trouble is in its report.
func (r *run) purgeCopies(ctx context.Context, gone goneSet) ([]CopyReport, error) {
	copies, err := r.Workspace.Copies(ctx)
	if err != nil {
		return nil, err
	}
	reports := []CopyReport{}
	// The last path first: a copy that lies in another one is purged before that is looked through.
	for _, c := range slices.Backward(copies) {
		if stateOf(c) == CopyClosed {
			if err := removeLater(c); err != nil {
				report := newCopyReport(c, copyNote{})
				report.State, report.Told = CopyOpen, printableLine(err.Error())
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

func (r *run) purgeCopy(ctx context.Context, c workspace.Copy, gone goneSet) (CopyReport, error) {
	n, err := readCopyNote(ctx, r.Workspace, c.Path)
	if err != nil {
		return CopyReport{}, err
	}
	if gone, err = alsoOwed(ctx, r.Workspace, n, gone); err != nil {
		return CopyReport{}, err
	}
	if removed, err := r.removeUnfinished(ctx, &c); err != nil || removed {
		report := newCopyReport(c, n)
		if err != nil && ctx.Err() == nil {
			report.State, report.Told, report.Owed = CopyOpen, printableLine(err.Error()), owed(n, gone)
		}
		return report, ctx.Err()
	}
	ids := owed(n, gone)
	p := &copyPurge{run: r, copy: c, note: n, gone: gone}
	var trouble error
	if idle := len(ids) == 0 && !c.Open; idle {
		trouble = p.putBack(ctx)
	} else {
		trouble = p.do(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return CopyReport{}, ctx.Err()
	case trouble == nil && len(ids) == 0 && !c.Open:
		return newCopyReport(c, n), nil
	}
	event := auditlog.Event{Kind: auditlog.CopyPurged, Path: sourceOf(c.Path), Format: c.Format, Files: logFiles(p.copy.Files)}
	if trouble != nil {
		p.copy.Open, p.copy.Told, event.Verdict = true, printableLine(trouble.Error()), "open"
	} else {
		p.copy.Open, p.copy.Told = false, ""
		p.note.Rows = slices.DeleteFunc(p.note.Rows, func(id string) bool { return gone.has(dataset.PostOf(id)) })
		p.note.Next, p.note.Owed = nil, nil
	}
	for _, id := range ids[:min(len(ids), auditlog.MaxPosts)] {
		event.Posts = append(event.Posts, auditlog.Post{ID: dataset.PostOf(id)})
	}
	if err := r.Workspace.SetCopy(ctx, p.copy, event); err != nil {
		return CopyReport{}, err
	}
	if err := writeCopyNote(ctx, r.Workspace, c.Path, p.note); err != nil {
		return CopyReport{}, err
	}
	report := newCopyReport(p.copy, p.note)
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
	return true, r.Workspace.SetCopy(ctx, *c, auditlog.Event{Kind: auditlog.CopyPurged, Path: sourceOf(c.Path), Format: c.Format, Verdict: "unfinished"})
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
	note copyNote
	gone goneSet
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
	var there *rowThere
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
	goes := image != "" && p.gone.has(dataset.PostOf(image))
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
		return nil, p.remove(f.Name)
	case describes:
		return nil, nil // somebody's own now
	case now.SHA256 == p.note.Next[f.Name] && now != f:
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
	if err := p.step("copy write", f.Name); err != nil {
		return nil, err
	}
	after, err := writeIn(ctx, p.root, temp, func(w *os.File) error {
		return dataset.WriteWithout(w, f.Name, old, f.Size, p.gone.has)
	})
	if err == nil {
		after.Name = f.Name
		err = p.absent(ctx, temp, f.Name)
	}
	if err != nil || after == f {
		return &f, errors.Join(err, p.root.Remove(temp))
	}
	next := maps.Clone(p.note.Next)
	if next == nil {
		next = map[string]string{}
	}
	next[f.Name] = after.SHA256
	p.note.Next = next
	if err := writeCopyNote(ctx, p.Workspace, p.copy.Path, p.note); err != nil {
		return nil, err
	}
	if err := p.step("copy rename", f.Name); err != nil {
		return nil, err
	}
	if err := p.root.Rename(temp, f.Name); err != nil {
		return nil, err
	}
	return &after, syncIn(p.root, path.Dir(f.Name))
}

func (p *copyPurge) remove(name string) error {
	if err := p.step("copy unlink", name); err != nil {
		return err
	}
	if err := p.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncIn(p.root, path.Dir(name))
}

// rowThere is the trouble that a row is there which must go.
type rowThere struct{ id string }

func (e *rowThere) Error() string { return fmt.Sprintf("the row of %s is still in it", e.id) }

// absent reads a file back, which is one of the kind of name, and fails when a row is in it that must go.
func (p *copyPurge) absent(ctx context.Context, file, name string) error {
	f, err := p.root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return lacksRows(ctx, f, name, p.gone)
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
		case image != "" && p.gone.has(dataset.PostOf(image)):
			return fmt.Errorf("%s shows a post that must go: delete it: %w", name, &rowThere{image})
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
	case stateOf(copies[at]) == CopyClosed:
		return nil
	}
	if _, err := os.Lstat(name); !isMissing(err) {
		return fmt.Errorf("%w: %s", ErrCopyThere, name)
	}
	c := copies[at]
	c.Files, c.Open, c.Told = nil, false, how+" "+now.UTC().Format(time.DateOnly)+": "+note
	if err := ws.SetCopy(ctx, c, auditlog.Event{Kind: auditlog.CopyPurged, Path: sourceOf(c.Path), Format: c.Format, Verdict: "told"}); err != nil {
		return err
	}
	return ws.SetMeta(ctx, copyKey(name), "")
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
