package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Taking out ends every job, one that failed or was stopped as well. It rewrites the dataset's files without the rows
// that must go, as it does with registered copies: every other row keeps its bytes, its age and what made it, and none
// comes in.

// takeOut takes what must go out of the dataset, the shards of a cluster and the registered copies.
func (r *run) takeOut(ctx context.Context) error {
	if r.cleared {
		return nil
	}
	ctx, cancel := r.lastAct(ctx) // what this can't finish the next job does
	defer cancel()
	err := r.clear(ctx)
	if r.stopping() && errors.Is(err, context.DeadlineExceeded) {
		r.Log.Warn("no time to take the posts that are gone out of the dataset and the copies: the next run does")
		return nil
	}
	r.cleared = err == nil
	return err
}

// noteAllowed notes which posts may show the same image as one that was taken down: a list of copies says what they owe
// by that, as this job does, and not by the policy of the last run.
func (r *run) noteAllowed(ctx context.Context) error {
	last, err := state.LastPolicy(ctx, r.Workspace)
	if err != nil || slices.Equal(last.Images.AllowSame, r.Policy.Images.AllowSame) {
		return err
	}
	last.Images.AllowSame = r.Policy.Images.AllowSame
	return state.WriteNote(ctx, r.Workspace, state.PolicyNote{Policy: last})
}

// clear is takeOut without its time.
func (r *run) clear(ctx context.Context) error {
	r.Progress.stage("remove deleted posts")
	if !r.wrote { // else a dataset was just written without what must go
		if err := r.dropRemovedPictures(ctx); err != nil {
			return err
		}
		if err := r.clearDataset(ctx); err != nil {
			return err
		}
	}
	if err := r.noteExportAgain(ctx); err != nil {
		return err
	}
	erased, err := state.MustErase(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return err
	}
	if err := r.removeLater(ctx, erased); err != nil {
		return err
	}
	if err := cluster.Drop(ctx, r.Workspace, erased.HasRow); err != nil {
		return err
	}
	// The dataset before the copies: an export that begins now must not bring back what a copy has lost.
	list, err := r.Workspace.Copies(ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		r.Progress.stage("update copies")
	}
	r.copies, err = copies.Purge(ctx, r.Workspace, erased, r.stones, r.Policy)
	if err != nil {
		return err
	}
	if err := r.noteAllowed(ctx); err != nil { // after the copies: no row stays in one for a note
		return err
	}
	if err := r.eraseLaterPictures(ctx); err != nil { // behind all that no file can keep from going
		return err
	}
	strays, err := state.Strays(ctx, r.Workspace, erased) // last: it can read long, and takes nothing out
	r.out.Strays = state.Texts(strays)
	return err
}

// unfinished adds to the error of a job what had to go and is still there.
func (r *run) unfinished(ctx context.Context, err error) error {
	if err == nil || r.stones == nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := r.lastAct(ctx)
	defer cancel()
	left, _, failed := state.Remnants(ctx, r.Workspace, r.stones, r.Policy)
	if failed != nil || len(left) == 0 {
		return err // the trouble with the disk is the job's own
	}
	return errors.Join(err, &state.Unremoved{Left: left})
}

// noteExportAgain notes the last export again where state.db or the log came from elsewhere: else another one would
// seem to be the last.
func (r *run) noteExportAgain(ctx context.Context) error {
	unsure, err := r.Workspace.ExportUnsure(ctx)
	if err != nil || !unsure {
		return err
	}
	if !r.wrote || r.out.Unchanged {
		last, err := state.ReadNote[state.ExportNote](ctx, r.Workspace)
		if err != nil || last.Card == nil || !r.stands(ctx, last) {
			return err // what lies there is on no record: the next run writes it again
		}
		if err := r.noteExport(ctx, last.Files, *last.Card); err != nil {
			return err
		}
	}
	return r.Workspace.ExportSure(ctx)
}

// clearDataset takes rows out of the dataset, and brings the outcomes in line with the rows that it has then.
func (r *run) clearDataset(ctx context.Context) error {
	d, err := r.readDataset(ctx)
	if err != nil {
		return err
	}
	_, err = r.Workspace.Stat(ctx, manifest.OutcomesName)
	if errors.Is(err, fs.ErrNotExist) && len(d.files)+len(d.other) == 0 {
		// There is nothing to take out of, and only what reads images makes a dataset.
		return state.WriteTombstones(ctx, r.Workspace)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	noted, err := state.NotedStandIns(ctx, r.Workspace, r.Policy)
	if err != nil {
		return err
	}
	out, err := state.Judge{Policy: r.Policy, Tombstones: r.stones, Now: r.Now()}.TakeOut(
		r.Workspace.Records(ctx, workspace.Select{Bare: true}), d.rows, noted, r.ConfirmRemovals)
	if err != nil {
		return err
	}
	r.out.Before = len(d.rows)
	if len(r.out.Stay) == 0 { // else the job has said which rows it would not let go
		r.out.Stay = out.Stay
	}
	r.out.Left = append(r.out.Left, out.Left...)
	// The outcomes first: killed after them, they say of some rows that these are gone while the dataset still has
	// them.
	if err := out.Store(ctx, r.Workspace); err != nil {
		return err
	}
	if err := r.writeOutcomes(ctx, out.All()); err != nil {
		return err
	}
	return d.takeOut(ctx, r, out)
}

// A written dataset is what lies in the folder of the dataset.
type written struct {
	last  state.ExportNote
	files []workspace.File // shards that the last export wrote, or what a removal made of them
	other []string         // what stands where shards of ours would
	rows  map[string]bool  // of files
}

// readDataset reads which rows the dataset has.
func (r *run) readDataset(ctx context.Context) (*written, error) {
	d := &written{rows: map[string]bool{}}
	var err error
	d.last, err = state.ReadNote[state.ExportNote](ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	files, err := state.Shards(ctx, r.Workspace)
	if err != nil {
		return nil, err
	}
	isNext := func(f workspace.File) bool { return d.last.Wrote(f) && !slices.Contains(d.last.Files, f) }
	// Behind the others: it has rows of one that was not written yet where a row moved.
	files = slices.Concat(slices.DeleteFunc(slices.Clone(files), isNext),
		slices.DeleteFunc(slices.Clone(files), func(f workspace.File) bool { return !isNext(f) }))
	for _, f := range files {
		if !d.last.Wrote(f) || !r.readRows(ctx, f, d.rows) {
			d.other = append(d.other, f.Name)
			continue
		}
		d.files = append(d.files, f)
		if isNext(f) { // from now on it is what another one can replace
			d.last.Files = append(slices.DeleteFunc(slices.Clone(d.last.Files),
				func(old workspace.File) bool { return old.Name == f.Name }), f)
		}
	}
	return d, ctx.Err()
}

// readRows adds the rows of a file of the dataset to have, and reports whether it is of use: it can be read, and none
// of its rows is there already, in a file that a job which was cut off had not written yet.
func (r *run) readRows(ctx context.Context, f workspace.File, have map[string]bool) bool {
	rows := map[string]bool{}
	if _, err := state.ReadRows(ctx, r.Workspace, f.Name, rows); err != nil {
		r.Log.Warn("a file of the dataset can't be read", "file", f.Name, "error", err)
		return false
	}
	for row := range rows {
		if have[row] {
			return false
		}
	}
	maps.Copy(have, rows)
	return true
}

// takeOut rewrites the files without the rows that leave. Killed anywhere, the next job finds each file as it was or as
// it is to be, and goes on.
func (d *written) takeOut(ctx context.Context, r *run, out *state.TakenOut) error {
	removed, err := d.removeOthers(ctx, r)
	if err != nil {
		return err
	}
	changed := removed || len(d.last.Next) > 0 // a job that replaced files was cut off
	for i, f := range d.files {
		leaves, err := d.anyLeaves(ctx, r, f.Name, out.Leave)
		if err != nil {
			return err
		}
		if !leaves {
			continue
		}
		changed = true
		d.files[i], err = d.rewrite(ctx, r, f, func(row string) bool { return out.Leave[row] })
		if err != nil {
			return fmt.Errorf("take rows out of %s: %w", f.Name, err)
		}
	}
	if d.last.Card == nil { // of an export that was killed, or of none
		return nil
	}
	card := *d.last.Card
	card.Outcomes = out.Counts()
	if !changed && equalCounts(card.Outcomes, d.last.Card.Outcomes) {
		return nil
	}
	return d.describe(ctx, r, card)
}

// anyLeaves reports whether a file has a row that leaves.
func (d *written) anyLeaves(ctx context.Context, r *run, name string, leave map[string]bool) (bool, error) {
	if len(leave) == 0 { // most often: the files need not be read
		return false, nil
	}
	ids := map[string]bool{}
	_, err := state.ReadRows(ctx, r.Workspace, name, ids)
	for id := range ids {
		if leave[id] {
			return true, err
		}
	}
	return false, err
}

// removeOthers removes the files of unwanted. The next run writes them again.
func (d *written) removeOthers(ctx context.Context, r *run) (removed bool, err error) {
	unwanted, err := d.unwanted(ctx, r)
	if err != nil {
		return false, err
	}
	for _, name := range unwanted {
		if err := r.Workspace.RemoveFile(ctx, name); err != nil {
			return removed, err
		}
		removed = true
		r.out.FilesGone = append(r.out.FilesGone, name)
	}
	return removed, nil
}

// unwanted lists what stands where a shard of ours would and is not the one on record, where it has a row that the
// dataset must not have or cannot be read.
func (d *written) unwanted(ctx context.Context, r *run) (names []string, err error) {
	if len(d.other) == 0 {
		return nil, nil
	}
	gone, err := state.MustLeaveDataset(ctx, r.Workspace, r.stones, r.Policy)
	if err != nil {
		return nil, err
	}
	for _, name := range d.other {
		err := state.FileLacksRows(ctx, r.Workspace.OpenFile, name, gone)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Log.Warn("a file of the dataset is not the one that was written, and is removed: run again to have it back",
				"file", name, "error", err)
			names = append(names, name)
		}
	}
	return names, nil
}

// rewrite replaces a file of the dataset by one without the rows.
func (d *written) rewrite(ctx context.Context, r *run, f workspace.File,
	gone func(row string) bool) (workspace.File, error) {
	old, err := r.Workspace.OpenFile(f.Name)
	if err != nil {
		return f, err
	}
	defer old.Close()
	return r.Workspace.Replace(ctx, f.Name, func(w io.Writer) error {
		return dataset.WriteWithout(w, f.Name, old, f.Size, gone)
	}, func(made io.ReaderAt, size int64) error {
		// It is read back before it gets the name: a fault of the writer must not publish a removed post.
		for id, err := range dataset.RowIDs(ctx, f.Name, made, size) {
			if err != nil {
				return err
			}
			if gone(id) {
				return &state.RowThere{ID: id}
			}
		}
		return r.noteNext(ctx, &d.last, f.Name, made, size)
	})
}

// noteNext puts a file on record that is to take the name of another one of the last export: after a kill before or
// after that, either file is known.
func (r *run) noteNext(ctx context.Context, last *state.ExportNote, name string, made io.ReaderAt, size int64) error {
	after, err := workspace.Digest(ctx, io.NewSectionReader(made, 0, size), name)
	if err != nil {
		return err
	}
	if last.Next == nil {
		last.Next = map[string]string{}
	}
	last.Next[name] = after.SHA256
	return state.WriteNote(ctx, r.Workspace, *last)
}

// describe writes card and Croissant for the files as they are now, and puts them on record.
func (d *written) describe(ctx context.Context, r *run, card dataset.Card) error {
	files := slices.Clone(d.files)
	sink := func(name string, write func(io.Writer) error) error {
		f, err := r.Workspace.Replace(ctx, path.Join(state.DatasetDir, name), write, nil)
		files = append(files, f)
		return err
	}
	whole, err := d.splits(ctx, r, &card)
	switch {
	case err != nil:
		return err
	case whole:
		err = writeCard(sink, card)
	default: // a shard is missing, whose digest they name: the next run writes all of them
		err = r.Workspace.RemoveFile(ctx, path.Join(state.DatasetDir, "README.md"))
		if err == nil {
			err = r.Workspace.RemoveFile(ctx, path.Join(state.DatasetDir, "croissant.json"))
		}
	}
	if err != nil {
		return err
	}
	if err := r.noteExport(ctx, files, card); err != nil {
		return err
	}
	// Inputs that no run has: the next one writes the dataset again, so that a row that comes back is in it.
	return state.WriteNote(ctx, r.Workspace, state.ExportNote{Files: files, Card: &card})
}

// splits fills in the card's figures of the files, and reports whether each shard is there. A split that lacks one
// keeps its figures, so that the next job misses it, too.
func (d *written) splits(ctx context.Context, r *run, card *dataset.Card) (whole bool, err error) {
	whole = true
	card.Splits = slices.Clone(card.Splits)
	for i, split := range card.Splits {
		now, lacks := dataset.Split{Name: split.Name}, false
		for n := range split.Shards {
			name := path.Join(state.DatasetDir, dataset.FileName(split.Name, n, len(split.Shards)))
			at := slices.IndexFunc(d.files, func(f workspace.File) bool { return f.Name == name })
			if at < 0 {
				whole, lacks = false, true
				continue
			}
			rows := map[string]bool{}
			if _, err := state.ReadRows(ctx, r.Workspace, name, rows); err != nil {
				return false, err
			}
			now.Add(dataset.Stats{Rows: len(rows), Bytes: d.files[at].Size, SHA256: d.files[at].SHA256})
		}
		if !lacks {
			card.Splits[i] = now
		}
	}
	return whole, nil
}

func equalCounts(a, b map[string]map[manifest.Outcome]int) bool {
	text := func(m map[string]map[manifest.Outcome]int) string { return strings.TrimSpace(fmt.Sprint(m)) } // keys in order
	return text(a) == text(b)
}
