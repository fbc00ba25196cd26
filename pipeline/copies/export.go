package copies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Config is what an export works with. Access may be left out.
type Config struct {
	Release    *manifest.Release
	Tombstones []manifest.Tombstone // those that the release publishes
	Policy     policy.Policy
	Workspace  *workspace.Workspace // locked by this process
	Now        func() time.Time
	// Access says whether rows may be handed out at a time; nil if no grant is needed.
	Access func(now time.Time) error
}

// A Request says which copy of the dataset to make.
type Request struct {
	To     string // a folder that does not exist, or is empty
	Note   string // who gets it, in the operator's words
	Format string // one of Formats
}

// An exportFormat is a format of copies. write writes the rows of a split; nil copies the dataset folder.
type exportFormat struct {
	name  string
	write func(dataset.Sink, manifest.Schema, bool, string, iter.Seq2[dataset.Row, error]) (dataset.Stats, error)
}

var exportFormats = []exportFormat{
	{"parquet", nil},
	{"webdataset", dataset.WriteWebDataset},
	{"folder", dataset.WriteFolder},
}

// Formats are the formats of a copy.
func Formats() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return names
}

// A NotExportable says why the dataset may not be handed out as it is.
type NotExportable struct {
	Gone  []string // rows whose post is gone, withheld or not allowed
	Stale int      // rows whose post was last seen live too long ago
	Other int      // rows that the dataset would no longer have
	// Version says that the workspace has another version of the release than the one that was named.
	Version bool
	// Changed says that the files are not those of the last export, or that their rows differ from later decisions.
	Changed bool
}

func (e *NotExportable) Error() string {
	var why []string
	if e.Version {
		why = append(why, "it is of another version of the release")
	}
	if e.Changed {
		why = append(why, "its files are not those that a finished run or purge wrote")
	}
	if n := len(e.Gone); n > 0 {
		why = append(why, fmt.Sprintf("%d of its rows are of posts that are gone or withheld", n))
	}
	if e.Stale > 0 {
		why = append(why, fmt.Sprintf("%d of its rows are of posts last seen live too long ago", e.Stale))
	}
	if e.Other > 0 {
		why = append(why, fmt.Sprintf("%d of its rows would not be in it any more", e.Other))
	}
	return "the dataset may not be handed out: " + strings.Join(why, ", and ")
}

// ErrForeign means that a copy would have gone where it may not: over other files, or into the workspace.
var ErrForeign = errors.New("a copy needs a new or an empty folder outside the workspace")

// CheckNote refuses a note that is not a line of plain text.
func CheckNote(note string) error {
	switch {
	case strings.TrimSpace(note) == "" || len(note) > 200 || !utf8.ValidString(note):
		return errors.New("a note is one line of 1 to 200 bytes that says who has the copy")
	case strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("a note is plain text, without control characters")
	}
	return nil
}

// Export makes a copy of the dataset and registers it, so that Purge finds it later. It refuses unless every post
// was seen live within the policy's recheck_within and none is gone or withheld.
// The errors are *NotExportable, ErrForeign, those of c.Access and of the disk.
func Export(ctx context.Context, c Config, q Request) (state.CopyReport, error) {
	if c.Access != nil {
		if err := c.Access(c.Now()); err != nil {
			return state.CopyReport{}, err
		}
	}
	to, err := destination(ctx, c.Workspace, q.To)
	if err != nil {
		return state.CopyReport{}, err
	}
	e := &exporting{Config: c, temp: unfinishedPath(to),
		copy: workspace.Copy{Path: to, Note: q.Note, Format: q.Format, Made: c.Now().UTC().Truncate(time.Second)}}
	if err := e.readDataset(ctx); err != nil {
		return state.CopyReport{}, err
	}
	return e.make(ctx)
}

// destination returns the path of a new copy. It refuses a folder with files, the workspace, and the path of a
// registered copy that is not closed.
func destination(ctx context.Context, ws *workspace.Workspace, to string) (string, error) {
	to, err := copyPath(to)
	if err != nil {
		return "", err
	}
	copies, err := ws.Copies(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range copies {
		if s := state.StateOfCopy(c); c.Path == to && s != state.CopyClosed && s != state.CopyUnfinished {
			return "", fmt.Errorf("%w: one is on record at %s; say first what became of it (--returned, --destroyed)",
				ErrForeign, to)
		}
	}
	dir, err := filepath.EvalSymlinks(ws.Dir())
	if err != nil {
		return "", err
	}
	if inside(to, dir) || inside(dir, to) {
		return "", fmt.Errorf("%w: %s and the workspace lie in one another", ErrForeign, to)
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: there is no folder %s to make it in", ErrForeign, filepath.Dir(to))
	}
	list, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to, nil
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrForeign, err)
	case len(list) > 0:
		return "", fmt.Errorf("%w: %s holds %s", ErrForeign, to, list[0].Name())
	}
	return to, nil
}

// readDataset notes what the dataset has. The error is *NotExportable when it may not be handed out.
func (e *exporting) readDataset(ctx context.Context) (err error) {
	e.last, err = state.ReadNote[state.ExportNote](ctx, e.Workspace)
	if err != nil {
		return err
	}
	j, err := state.StoredJudge(ctx, e.Workspace, e.Now())
	if err != nil {
		return err
	}
	more, err := state.OtherTombstones(ctx, e.Workspace, e.Release, e.Tombstones, e.Now())
	if err != nil {
		return err
	}
	for _, t := range more {
		j.Tombstones[t.ID] = t
	}
	j.Policy = e.Policy
	e.bound, _, err = e.Workspace.Binding(ctx)
	if err != nil {
		return err
	}
	bad := &NotExportable{Changed: len(e.last.Files) == 0,
		Version: e.bound.ReleaseDigest != e.Release.Digest || e.bound.ManifestDigest != e.Release.ManifestDigest}
	present := map[string]bool{}
	for _, f := range e.last.Files {
		if now, err := e.Workspace.Stat(ctx, f.Name); err != nil || now != f {
			bad.Changed = true
		} else if dataset.Holds(f.Name) {
			_, err := state.ReadRows(ctx, e.Workspace, f.Name, present)
			bad.Changed = bad.Changed || err != nil
		}
	}
	for rec, err := range e.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Result == nil || rec.Result.Outcome != manifest.Kept {
			continue
		}
		e.copy.Rows = append(e.copy.Rows, rec.Key.String())
		e.flagged = e.flagged || rec.Result.Flagged()
		bad.add(j, rec)
		bad.Changed = bad.Changed || !present[rec.Key.String()]
	}
	// A run or purge that was killed may have decided without writing the files.
	bad.Changed = bad.Changed || len(present) != len(e.copy.Rows)
	if bad.Version || bad.Changed || len(bad.Gone)+bad.Stale+bad.Other > 0 {
		return bad
	}
	return nil
}

// add judges a row of the dataset by what is known now.
func (e *NotExportable) add(j state.Judge, rec workspace.Record) {
	switch res := j.Outcome(rec); {
	case res.Outcome == state.Candidate:
	case res.Outcome == manifest.Failed && res.Reason == "not_rechecked":
		e.Stale++
	case res.Outcome == manifest.Removed, res.Outcome == manifest.Deleted, res.Outcome == manifest.Unavailable, res.Outcome == manifest.Refused:
		e.Gone = append(e.Gone, rec.Key.String())
	default:
		e.Other++
	}
}

// exporting is one copy that is being made, first below a temporary name.
type exporting struct {
	Config
	bound   workspace.Binding
	last    state.ExportNote // what the dataset folder has
	flagged bool             // a row of it is marked by the filters
	copy    workspace.Copy
	temp    string
	root    *os.Root
}

// make makes the copy. A purge relies on the order: it finds each copy that anyone could have, and takes no other
// folder for one.
func (e *exporting) make(ctx context.Context) (state.CopyReport, error) {
	// On record without files: killed from here on, it is an unfinished copy, which the next export or purge
	// removes.
	if err := e.Workspace.SetCopy(ctx, e.copy); err != nil {
		return state.CopyReport{}, err
	}
	if err := durable.Step(ctx, "export begin", e.temp); err != nil {
		return state.CopyReport{}, err
	}
	if err := errors.Join(os.RemoveAll(e.temp), os.Mkdir(e.temp, 0o700)); err != nil {
		return state.CopyReport{}, err
	}
	root, err := os.OpenRoot(e.temp)
	if err != nil {
		return state.CopyReport{}, err
	}
	e.root = root
	// Each file is synced when it is written, the folders once at the end: nothing reads them before.
	if err := errors.Join(e.fill(ctx), e.syncFolders(ctx), e.root.Close()); err != nil {
		return state.CopyReport{}, errors.Join(err, os.RemoveAll(e.temp))
	}
	// The digests before the name: a copy with a name is one whose rows a purge can find. Killed between the
	// two, the temporary folder shows that it is unfinished.
	event := auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(e.copy.Path)), Format: e.copy.Format,
		Files: logFiles(e.copy.Files)}
	err = e.Workspace.SetCopy(ctx, e.copy, event)
	if err == nil {
		err = e.rename(ctx)
	}
	if err != nil {
		_, undone := removeUnfinished(ctx, e.Workspace, &e.copy)
		return state.CopyReport{}, errors.Join(err, undone)
	}
	return state.NewCopyReport(e.copy), nil
}

// rename gives the copy its name. It replaces an empty folder, and fails on one with files.
func (e *exporting) rename(ctx context.Context) error {
	if err := durable.Step(ctx, "export rename", e.copy.Path); err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(e.copy.Path))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := durable.In(parent).Rename(ctx, filepath.Base(e.temp), filepath.Base(e.copy.Path)); err != nil {
		return fmt.Errorf("give the copy its name: %w", err)
	}
	return nil
}

// fill writes the files.
func (e *exporting) fill(ctx context.Context) error {
	at := slices.Index(Formats(), e.copy.Format)
	if at < 0 {
		return fmt.Errorf("no format is called %q", e.copy.Format)
	}
	write := exportFormats[at].write
	if write == nil {
		return e.copyFiles(ctx)
	}
	sink := func(name string, write func(io.Writer) error) error { return e.file(ctx, name, write) }
	for _, split := range e.bound.Splits {
		if _, err := write(sink, e.bound.Schema, e.flagged, split, state.Rows(ctx, e.Workspace, e.Policy, split)); err != nil {
			return err
		}
	}
	return nil
}

// copyFiles copies the dataset folder, file by file, and compares each with its digest.
func (e *exporting) copyFiles(ctx context.Context) error {
	for _, f := range e.last.Files {
		from, err := e.Workspace.OpenFile(f.Name)
		if err != nil {
			return err
		}
		err = e.file(ctx, strings.TrimPrefix(f.Name, state.DatasetDir+"/"), func(w io.Writer) error {
			_, err := io.Copy(w, durable.Reader(ctx, from))
			return err
		})
		if err := errors.Join(err, from.Close()); err != nil {
			return err
		}
		if made := e.copy.Files[len(e.copy.Files)-1]; made.SHA256 != f.SHA256 {
			return fmt.Errorf("%s changed while it was copied", f.Name)
		}
	}
	return nil
}

// file writes one file of the copy, directly under its own name: the folder is still temporary.
func (e *exporting) file(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := durable.Step(ctx, "export write", name); err != nil {
		return err
	}
	if err := e.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := e.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s of the copy: %w", name, err)
	}
	defer f.Close()
	sum := sha256.New()
	if err := errors.Join(write(io.MultiWriter(f, sum)), ctx.Err(), f.Sync()); err != nil {
		return fmt.Errorf("write %s of the copy: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	e.copy.Files = append(e.copy.Files, workspace.File{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Size: info.Size()})
	return nil
}

// syncFolders makes the names of the files durable.
func (e *exporting) syncFolders(ctx context.Context) error {
	dirs := map[string]bool{".": true}
	for _, f := range e.copy.Files {
		for dir := path.Dir(f.Name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		if err := durable.In(e.root).Sync(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}
