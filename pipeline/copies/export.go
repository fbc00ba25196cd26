package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
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
	To     string // a folder that does not exist, or is empty
	Note   string // who gets it, in the operator's words
	Format string // one of Formats, or another one that Fill writes
	// Fill writes the files of a format that is not one of Formats, by sink, and returns the ids of their rows. Each
	// post of a kept row has passed the checks of an export.
	Fill func(ctx context.Context, sink dataset.Sink) ([]string, error)
}

// Formats are the formats of a copy.
func Formats() []string { return []string{"parquet", "webdataset", "folder"} }

// A NotExportable says why the dataset may not be handed out as it is.
type NotExportable struct {
	Why   []string
	Waits bool // rows go or stay with posts that are held back: no run lets them out before these are settled
}

func (e *NotExportable) Error() string {
	return "the dataset may not be handed out: " + strings.Join(e.Why, ", and ")
}

// showsWithheld says why rows stay here as long as another post is held back.
const showsWithheld = "show the picture of a post that is held back, and go or stay with that post"

// otherVersion says that the workspace has another version of the release than the one that was named.
const otherVersion = "it is of another version of the release"

// ErrForeign means that a copy would have gone where it may not: over other files, or into the workspace.
var ErrForeign = errors.New("a copy needs a new or an empty folder outside the workspace")

// CheckNote refuses a note that is not a line of plain text.
func CheckNote(note string) error {
	// It is shown in a terminal, long after it was written.
	if !printable.Is(note) || strings.TrimSpace(note) == "" || len(note) > 200 {
		return errors.New("a note is one line of 1 to 200 bytes of plain text that says who has the copy")
	}
	return nil
}

// Export makes a copy of the dataset and registers it, so that Purge finds it later. The errors are *NotExportable,
// ErrForeign, *auditlog.Broken, those of c.Access and of the disk.
func Export(ctx context.Context, c Config) (state.CopyReport, error) {
	if c.Access != nil {
		if err := c.Access(c.Now()); err != nil {
			return state.CopyReport{}, err
		}
	}
	to, err := Destination(ctx, c.Workspace, c.To)
	if err != nil {
		return state.CopyReport{}, err
	}
	e := &exporting{Config: c, temp: unfinishedPath(to),
		copy: workspace.Copy{Path: to, Note: c.Note, Format: c.Format, Made: c.Now().UTC().Truncate(time.Second)}}
	if err := e.readDataset(ctx); err != nil {
		return state.CopyReport{}, err
	}
	// Beside a damaged log the copy would have no record, and a removal that only the log has would be in it.
	if err := c.Workspace.CheckLog(ctx); err != nil {
		return state.CopyReport{}, fmt.Errorf("the copy cannot be recorded: %w", err)
	}
	return e.make(ctx)
}

// Destination returns the path of a new copy, or ErrForeign with the reason why none may be there.
func Destination(ctx context.Context, ws *workspace.Workspace, to string) (string, error) {
	to, err := copyPath(to)
	if err != nil {
		return "", err
	}
	if ws != nil {
		if err := checkRegister(ctx, ws, to); err != nil {
			return "", err
		}
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: there is no folder %s to make it in", ErrForeign, filepath.Dir(to))
	}
	return to, vacant(to)
}

// checkRegister refuses the path of another copy, and one in another copy or the workspace, or around it.
func checkRegister(ctx context.Context, ws *workspace.Workspace, to string) error {
	copies, err := ws.Copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		if c.Path == to && state.StateOfCopy(c) != state.CopyClosed && Leftover(ctx, c) == "" {
			return fmt.Errorf("%w: one is on record at %s; say first what became of it (--returned, --destroyed)",
				ErrForeign, to)
		}
	}
	return apart(ws, copies, to)
}

// readDataset notes what the dataset has. The error is *NotExportable when it may not be handed out.
func (e *exporting) readDataset(ctx context.Context) (err error) {
	e.last, err = state.ReadNote[state.ExportNote](ctx, e.Workspace)
	if err != nil {
		return err
	}
	j, err := state.JudgeBy(ctx, e.Workspace, e.Release, e.Tombstones, e.Policy, e.Now())
	if err != nil {
		return err
	}
	e.bound, _, err = e.Workspace.Binding(ctx)
	if err != nil {
		return err
	}
	// Nothing was written yet, the files are not those of the last export, or they differ from later decisions.
	changed := len(e.last.Files) == 0
	present := map[string]bool{}
	for _, f := range e.last.Files {
		if now, err := e.Workspace.Stat(ctx, f.Name); err != nil || now != f {
			changed = true
		} else if dataset.Holds(f.Name) {
			_, err := state.ReadRows(ctx, e.Workspace, f.Name, present)
			changed = changed || err != nil
		}
	}
	why, missing := map[string]int{}, 0
	for rec, err := range e.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if state.IsUnwritten(rec) {
			missing++
		}
		if rec.Result == nil || rec.Result.Outcome != manifest.Kept {
			continue
		}
		e.copy.Rows = append(e.copy.Rows, rec.Key.String())
		changed = changed || !present[rec.Key.String()]
		// The row by what is known now: the last run can be older than the last answer of Reddit.
		res := j.HandedOut(rec)
		switch {
		case res.Outcome == state.Candidate:
		case res.Reason == "not_rechecked" && policy.Ahead(rec.Post.LiveAt, e.Now()):
			why["are of posts last seen live in the future: a clock was wrong"]++
		case res.Reason == "not_rechecked":
			why["are of posts last seen live too long ago"]++
		case res.Reason == "absent_once":
			why["are of posts that Reddit's last answer left out"]++
		case res.Reason == state.ReasonStricter:
			why[state.WhyStricter]++
		case res.Reason == policy.SameAsRemoved && j.ShowsWithheld(rec):
			why[showsWithheld]++
		case res.Reason == policy.SameAsRemoved:
			why["show the picture of a post that is gone"]++
		case res.Outcome == manifest.Refused:
			why["are of posts that the policy does not allow"]++
		case manifest.PostState(res.Outcome).Gone():
			why["are of posts that are gone or held back"]++
		default:
			why["would not be in it any more"]++
		}
	}
	// A run or purge that was killed may have decided without writing the files.
	changed = changed || len(present) != len(e.copy.Rows)
	var all []string
	if e.bound.ReleaseDigest != e.Release.Digest || e.bound.ManifestDigest != e.Release.ManifestDigest {
		all = append(all, otherVersion)
	}
	if changed || e.last.Card == nil {
		all = append(all, "its files are not those that a finished run or purge wrote")
	}
	err = state.CheckMasked(ctx, e.Workspace, e.Policy)
	if errors.Is(err, state.ErrNotMasked) {
		all = append(all, err.Error())
	} else if err != nil {
		return err
	}
	if missing > 0 {
		all = append(all, fmt.Sprintf("%d of its rows are missing: %s", missing, state.WhyUnwritten))
	}
	for _, what := range slices.Sorted(maps.Keys(why)) {
		all = append(all, fmt.Sprintf("%d of its rows %s", why[what], what))
	}
	if len(all) == 0 {
		return nil
	}
	return &NotExportable{Why: all, Waits: why[showsWithheld] > 0}
}

// exporting is one copy that is being made, first below a temporary name.
type exporting struct {
	Config
	bound  workspace.Binding
	last   state.ExportNote // what the dataset folder has
	copy   workspace.Copy
	temp   string
	folder *durable.Folder // temp

	claimed *unfinished // temp
}

// make makes the copy. A purge relies on the order: it finds each copy that anyone could have.
func (e *exporting) make(ctx context.Context) (state.CopyReport, error) {
	err := e.begin(ctx, "")
	if err != nil {
		return state.CopyReport{}, err
	}
	defer e.claimed.Close()
	if err := e.fill(ctx); err != nil {
		e.copy.Files = nil // none of them is on record
		return state.CopyReport{}, errors.Join(err, e.undo(ctx))
	}
	return e.publish(ctx)
}

// undo removes the folder of a copy of a workspace that will not be finished, also after an interrupt, and closes its
// record.
func (e *exporting) undo(ctx context.Context) error {
	e.claimed.Close()
	_, err := removeUnfinished(context.WithoutCancel(ctx), e.Workspace, &e.copy)
	return err
}

// A Derived is a folder of files with rows that are computed from the dataset: a copy, as far as a purge is concerned.
type Derived struct {
	To, Note, Format string
	Made             time.Time
	Part             string // the name of a file that Fill may leave in the folder temp when it fails, to go on from, until a purge
	// Fill writes the files by sink and returns the ids of their rows.
	Fill func(ctx context.Context, temp string, sink func(name string, write func(io.Writer) error) error) ([]string,
		error)
}

// Derive makes the folder, and registers it with the workspace, nil for a dataset that has none here. The error is
// ErrForeign, or one of d.Fill and the disk.
func Derive(ctx context.Context, ws *workspace.Workspace, d Derived) error {
	to, err := Destination(ctx, ws, d.To)
	if err != nil {
		return err
	}
	e := &exporting{Config: Config{Workspace: ws}, temp: unfinishedPath(to),
		copy: workspace.Copy{Path: to, Note: d.Note, Format: d.Format, Made: d.Made.UTC().Truncate(time.Second)}}
	if err := e.begin(ctx, d.Part); err != nil {
		return err
	}
	defer e.claimed.Close()
	e.copy.Rows, err = d.Fill(ctx, e.temp, func(name string, write func(io.Writer) error) error {
		_, err := e.file(ctx, name, write)
		return err
	})
	if err == nil {
		_, err = e.publish(ctx)
	}
	return err
}

// begin takes the temporary folder, which no other process then has, and puts the copy on record. Of what a killed
// export left in the folder, the file keep stays.
func (e *exporting) begin(ctx context.Context, keep string) (err error) {
	e.claimed, err = claim(e.temp)
	if err != nil {
		return err
	}
	begun := false
	defer func() {
		if !begun {
			e.claimed.Close()
		}
	}()
	// Another process may have finished a copy there meanwhile.
	if err := vacant(e.copy.Path); err != nil {
		return err
	}
	// On record without files: killed from here on, it is an unfinished copy, which the next export or purge removes.
	if err := e.register(ctx); err != nil {
		return err
	}
	if err := durable.Step(ctx, "export begin", e.temp); err != nil {
		return err
	}
	if err := e.claimed.clear(keep); err != nil { // no record would know of it
		return err
	}
	e.folder, begun = durable.In(e.claimed.root), true
	return nil
}

// register puts the copy on record, if it is of a workspace.
func (e *exporting) register(ctx context.Context, events ...auditlog.Event) error {
	if e.Workspace == nil {
		return nil
	}
	return e.Workspace.SetCopy(ctx, e.copy, events...)
}

// publish registers the files of the copy and gives it its name.
func (e *exporting) publish(ctx context.Context) (state.CopyReport, error) {
	// The digests before the name: a copy with a name is one whose rows a purge can find. Killed between the
	// two, the temporary folder shows that it is unfinished.
	event := auditlog.Event{Kind: auditlog.Copy, Path: state.SHA256([]byte(e.copy.Path)), Format: e.copy.Format,
		Files: logFiles(e.copy.Files)}
	err := e.register(ctx, event)
	if err == nil {
		err = e.rename(ctx)
	}
	switch {
	case err == nil:
		return state.NewCopyReport(e.copy), nil
	case e.Workspace != nil:
		err = errors.Join(err, e.undo(ctx))
	}
	return state.CopyReport{}, err
}

// rename gives the copy its name.
func (e *exporting) rename(ctx context.Context) error {
	if err := durable.Step(ctx, "export rename", e.copy.Path); err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(e.copy.Path))
	if err != nil {
		return err
	}
	defer parent.Close()
	e.claimed.root.Close() // an open folder gets no other name on Windows; the lock stays
	// It replaces an empty folder, and fails on one with files.
	if err := durable.In(parent).Rename(ctx, filepath.Base(e.temp), filepath.Base(e.copy.Path)); err != nil {
		return fmt.Errorf("give the copy its name: %w", err)
	}
	return nil
}

// fill writes the files.
func (e *exporting) fill(ctx context.Context) error {
	sink := func(name string, write func(io.Writer) error) error { _, err := e.file(ctx, name, write); return err }
	switch {
	case e.Fill != nil:
		rows, err := e.Fill(ctx, sink)
		e.copy.Rows = rows
		return err
	case e.copy.Format == "parquet":
		return e.copyFiles(ctx)
	}
	card := *e.last.Card
	card.Format, card.Splits = dataset.Format(e.copy.Format), nil
	// The rows come from the dataset's files, not from the workspace's state, which can be ahead of them.
	for _, split := range e.bound.Splits {
		rows, written, err := e.rows(ctx, split), dataset.Split{}, error(nil)
		if card.Format == dataset.Folder {
			written, err = dataset.WriteFolder(sink, e.bound.Schema, card.Provenance, card.Flagged, split, rows)
		} else {
			written, err = dataset.WriteWebDataset(sink, e.bound.Schema, card.Flagged, split, rows)
		}
		if err != nil {
			return err
		}
		card.Splits = append(card.Splits, written)
	}
	return sink("README.md", func(w io.Writer) error { return dataset.WriteCard(w, card) })
}

// rows yields those of a split of the dataset.
func (e *exporting) rows(ctx context.Context, split string) iter.Seq2[dataset.Row, error] {
	return func(yield func(dataset.Row, error) bool) {
		for _, f := range e.last.Files {
			if of, _ := dataset.SplitOf(strings.TrimPrefix(f.Name, state.DatasetDir+"/")); of != split {
				continue
			}
			for row, err := range state.RowsOf(ctx, e.Workspace, f.Name) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// copyFiles copies the dataset folder, file by file, and compares each with its digest.
func (e *exporting) copyFiles(ctx context.Context) error {
	for _, f := range e.last.Files {
		from, err := e.Workspace.OpenFile(f.Name)
		if err != nil {
			return err
		}
		made, err := e.file(ctx, strings.TrimPrefix(f.Name, state.DatasetDir+"/"), func(w io.Writer) error {
			_, err := io.Copy(w, from)
			return err
		})
		from.Close() // it was only read
		if err != nil {
			return err
		}
		if made.SHA256 != f.SHA256 {
			return fmt.Errorf("%s changed while it was copied", f.Name)
		}
	}
	return nil
}

// file writes one file of the copy.
func (e *exporting) file(ctx context.Context, name string, write func(io.Writer) error) (workspace.File, error) {
	f, err := workspace.WriteFile(ctx, e.folder, name, "", write, nil)
	if err != nil {
		return f, fmt.Errorf("write %s of the copy: %w", name, err)
	}
	e.copy.Files = append(e.copy.Files, f)
	return f, nil
}
