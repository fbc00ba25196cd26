package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"runtime"
	"slices"
	"strconv"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// publish writes outcomes.csv and the dataset from answers that are fresh enough.
func (r *run) publish(ctx context.Context, s *asker) error {
	if err := r.access(); err != nil {
		return err // the sweep is done, so what is gone has gone
	}
	asked := s.sweep.Asked
	r.Progress.stage("last check with Reddit")
	if err := s.resolve(ctx, s.duePosts(ctx), nil); err != nil {
		return err
	}
	r.out.Looks = &state.Looks{Resolve: asked, Last: s.sweep.Asked - asked}
	// Stopped in the last look, some rows were not checked. And asking takes time in which a grant can expire.
	if r.stopping() {
		return state.ErrInterrupted
	}
	if err := s.followParents(ctx); err != nil {
		return err
	}
	if err := r.access(); err != nil {
		return err
	}
	return r.write(ctx)
}

// write decides every outcome and writes outcomes.csv and the dataset.
func (r *run) write(ctx context.Context) error {
	// A file found damaged while the dataset is written loses its row, and all other files are
	// rechecked: then everything is decided again without them.
	const rounds = 3
	if err := r.bind(ctx); err != nil { // what came back in this run gets its values again
		return err
	}
	if err := r.dropRemovedPictures(ctx); err != nil {
		return err
	}
	for range rounds {
		d, err := r.decide(ctx)
		if err != nil {
			return err
		}
		err = r.export(ctx, d)
		if _, damaged := errors.AsType[*workspace.Damaged](err); !damaged {
			return err
		}
		if err := r.dropDamaged(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("stored images keep turning out damaged: check the disk that holds %s", r.Workspace.Dir())
}

// forgetUnwritten has entries that are kept without a row wait to be written, as takeOut does at the end of a job: one
// that was killed after it stored its outcomes has not done it. Else they would pass for rows that are there, which may
// be of any age.
func (r *run) forgetUnwritten(ctx context.Context) error {
	names, err := r.Workspace.Files(ctx, state.DatasetDir)
	if err != nil {
		return err
	}
	rows := map[string]bool{}
	for _, name := range names {
		if !state.IsShard(name) {
			continue
		}
		if _, err := state.ReadRows(ctx, r.Workspace, name, rows); err != nil {
			r.Log.Warn("a file of the dataset can't be read", "file", name, "error", err)
		}
	}
	var waiting []manifest.Result
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return err
		}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept && !rows[rec.Key.String()] {
			waiting = append(waiting, manifest.Result{Key: rec.Key, Split: rec.Split, Outcome: manifest.Pending,
				Reason: state.ReasonNotWritten})
		}
	}
	if len(waiting) == 0 {
		return ctx.Err()
	}
	return r.Workspace.SetResults(ctx, waiting)
}

// decide gives every entry its outcome.
func (r *run) decide(ctx context.Context) (*state.Decisions, error) {
	r.Progress.stage("find near-duplicates")
	draft := r.draft
	r.draft = nil // Decide uses it up
	if draft == nil {
		var err error
		draft, err = state.DraftAll(ctx, r.Workspace, r.Language, r.Policy)
		if err != nil {
			return nil, err
		}
	}
	return state.Judge{Policy: r.Policy, Tombstones: r.stones, Now: r.Now()}.Decide(ctx, r.Workspace, draft)
}

// dropDamaged reads every stored image and forgets those that are not what they were.
func (r *run) dropDamaged(ctx context.Context) error {
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Image == nil {
			continue
		}
		_, err := r.readStored(ctx, rec)
		if damaged, ok := errors.AsType[*workspace.Damaged](err); ok {
			r.Log.Warn("a stored image is damaged and left out", "file", damaged.Name, "what", damaged.What)
			err = r.dropImage(ctx, rec.Key, damagedFile())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// export writes outcomes.csv and, when anything in it changed, the dataset. Killed after any step, no row of a removed
// post is where it was not, none is there twice, and the next job goes on. When so many rows would leave for anything
// but a removal that something else must be wrong, it writes nothing.
func (r *run) export(ctx context.Context, d *state.Decisions) error {
	r.Progress.stage("write the dataset")
	b, _, err := r.Workspace.Binding(ctx)
	if err != nil {
		return err
	}
	last, err := state.ReadNote[state.ExportNote](ctx, r.Workspace)
	if err != nil {
		return err
	}
	card := r.card(b, d)
	r.out.Before = d.Before
	if r.asksFirst(d, last, card) {
		r.out.Stay = d.Leave
		return nil
	}
	r.out.Left = d.Leave
	// The outcomes first, then the files. Killed in between, they say of some rows that these are gone or kept while
	// the dataset is still the old one, and the end of the next job makes them agree.
	if err := d.Store(ctx, r.Workspace); err != nil {
		return err
	}
	if err := r.writeOutcomes(ctx, d.All()); err != nil {
		return err
	}
	rel := r.Release
	inputs, err := d.Inputs(b, card.Provenance, rel.Date, rel.Homepage, rel.License, rel.Citation)
	if err != nil {
		return err
	}
	same, err := r.sameExport(ctx, last, inputs)
	if err != nil {
		return err
	}
	if same {
		r.out.Files, r.out.Unchanged, r.out.GuardSpares, r.wrote = last.Files, true, d.Spared, true
		return nil
	}
	plans := map[string][]int{}
	var names []string
	for _, split := range b.Splits {
		plans[split] = dataset.PlanShards(d.RowBytes(split))
		for i := range plans[split] {
			names = append(names, shardName(split, i, plans))
		}
	}
	if err := r.checkMoving(ctx, d, plans); err != nil {
		return err
	}
	// What an older dataset has beyond this one goes before anything is written: a loader takes every
	// data/train-*, and two sets of shards would have rows twice. Killed here the dataset lacks rows.
	if err := r.removeOthers(ctx, names); err != nil {
		return err
	}
	var files []workspace.File
	sink := func(name string, write func(io.Writer) error) error {
		name = path.Join(state.DatasetDir, name)
		// Written under another name, synced, read back, renamed, the folder synced. The check in between is
		// the last that could keep a row of a removed post out: a fault of the writer must not publish one.
		f, err := r.Workspace.Replace(ctx, name, write, func(f io.ReaderAt, size int64) error {
			err := state.LacksRows(ctx, f, size, name, d.Gone)
			if err != nil || !madeAlike(last, card) || !state.IsShard(name) {
				return err
			}
			// Cut off then, its rows are rows, and the job that ends first describes the dataset as it is. The card
			// says of all rows by what they were made.
			return r.noteNext(ctx, &last, name, f, size)
		})
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		files = append(files, f)
		return nil
	}
	for _, split := range b.Splits {
		written, err := dataset.WriteShards(sink, b.Schema, card.Provenance, card.Flagged, split, plans[split],
			state.Rows(ctx, r.Workspace, r.Policy, split))
		if err != nil {
			return err
		}
		card.Splits = append(card.Splits, written)
	}
	if err := writeCard(sink, card); err != nil {
		return err
	}
	// The log, then the note. Killed before the log the files are on no record, and verify and audit say so until
	// the next run writes them again; killed before the note the next run finds other inputs and does that.
	if err := r.noteExport(ctx, files, card); err != nil {
		return err
	}
	r.out.Files, r.out.GuardSpares, r.wrote = files, d.Spared, true
	return state.WriteNote(ctx, r.Workspace, state.ExportNote{Inputs: inputs, Files: files, Card: &card})
}

// shardName is a shard of a split in the workspace, of as many as are planned.
func shardName(split string, shard int, plans map[string][]int) string {
	return path.Join(state.DatasetDir, dataset.FileName(split, shard, len(plans[split])))
}

// asksFirst reports whether so many rows would leave for anything but a removal, although nothing that makes the
// dataset changed, that they only leave when the operator confirms it.
func (r *run) asksFirst(d *state.Decisions, last state.ExportNote, card dataset.Card) bool {
	leave := 0
	for _, c := range d.Leave {
		leave += c.Entries
	}
	return madeAlike(last, card) && !r.ConfirmRemovals && state.TooMany(leave, d.Before)
}

// madeAlike reports whether the last export that ended made its rows as this one does.
func madeAlike(last state.ExportNote, card dataset.Card) bool {
	return last.Card != nil && last.Card.Provenance == card.Provenance && last.Card.Flagged == card.Flagged
}

// writeOutcomes writes outcomes.csv and tombstones.csv.
func (r *run) writeOutcomes(ctx context.Context, results iter.Seq2[manifest.Result, error]) error {
	if _, err := r.Workspace.Replace(ctx, manifest.OutcomesName, func(w io.Writer) error {
		return manifest.WriteOutcomes(w, results)
	}, nil); err != nil {
		return fmt.Errorf("write the outcomes: %w", err)
	}
	return state.WriteTombstones(ctx, r.Workspace)
}

// writeCard writes the card and Croissant. They name the digests of the shards, so they come behind them.
func writeCard(sink dataset.Sink, card dataset.Card) error {
	if err := sink("README.md", func(w io.Writer) error { return dataset.WriteCard(w, card) }); err != nil {
		return err
	}
	return sink("croissant.json", func(w io.Writer) error { return dataset.WriteCroissant(w, card) })
}

// sameExport reports whether the files of the last export were made of the same inputs, stand where they were written,
// and have no other shards beside them.
func (r *run) sameExport(ctx context.Context, last state.ExportNote, inputs string) (bool, error) {
	// Equal inputs are not enough: somebody may have changed or deleted a file, or put one there.
	if last.Inputs != inputs || last.Card == nil || len(last.Next) > 0 || !r.stands(ctx, last) {
		return false, nil
	}
	names, err := r.Workspace.Files(ctx, state.DatasetDir)
	return !slices.ContainsFunc(names, func(name string) bool {
		wrote := func(f workspace.File) bool { return f.Name == name }
		return state.IsShard(name) && !slices.ContainsFunc(last.Files, wrote)
	}), err
}

// stands reports whether the files of the last export are as it wrote them.
func (r *run) stands(ctx context.Context, last state.ExportNote) bool {
	for _, f := range last.Files {
		if now, err := r.Workspace.Stat(ctx, f.Name); err != nil || now != f {
			return false
		}
	}
	return true
}

// removeOthers removes the Parquet files of an older dataset that are not part of this one.
func (r *run) removeOthers(ctx context.Context, keep []string) error {
	have, err := r.Workspace.Files(ctx, path.Join(state.DatasetDir, "data"))
	if err != nil {
		return err
	}
	for _, name := range have {
		if !state.IsShard(name) || slices.Contains(keep, name) {
			continue // a file that someone else put there stays
		}
		if err := r.Workspace.RemoveFile(ctx, name); err != nil {
			return fmt.Errorf("remove %s of an older dataset: %w", name, err)
		}
	}
	return nil
}

// engineProvenance names the OCR engine, the tool and the Go version that make a dataset.
func engineProvenance(e ocr.Engine, p policy.Policy, version string) dataset.Provenance {
	parameters := e.Parameters + " " + language.Fingerprint()
	if p.Text.MaskNames {
		parameters += ", names masked " + strconv.Itoa(language.MaskVersion)
	}
	return dataset.Provenance{ToolVersion: version, GoVersion: runtime.Version(),
		OCREngine:     e.String(),
		OCRModel:      fmt.Sprintf("%s sha256:%s", e.Model, e.ModelSHA256),
		OCRParameters: parameters,
	}
}

// card describes the dataset but for its shards.
func (r *run) card(b workspace.Binding, d *state.Decisions) dataset.Card {
	made, rel := r.made, r.Release
	// No clock value is among them: equal inputs give equal bytes.
	made.Release, made.Version = r.releaseName(), rel.Version
	made.ReleaseDigest, made.ManifestDigest = rel.Digest, rel.ManifestDigest
	made.PolicyDigest, made.HashKind = r.Policy.Digest(), dedupe.HashKind()
	made.Dedupe = "keep-first in manifest order, " + state.NearRule(r.Policy).String()
	c := dataset.Card{Name: r.releaseName(), Version: rel.Version, Date: rel.Date, Homepage: rel.Homepage,
		License: rel.License, Citation: rel.Citation, Schema: b.Schema, Provenance: made,
		Flagged:   r.Policy.Filter.Mode == policy.Flag,
		Outcomes:  d.Counts(),
		RobotsTag: d.Because(policy.RobotsTag)}
	if r.Rehearsal {
		c.Description = "A rehearsal: posts and images are made up, and the labels do not describe them."
		c.ContentWarning = "Nobody posted these images. Their texts are made up, too."
		c.Terms = "The licence of the release covers its annotations. The images are made up, for trying the program."
	}
	return c
}

// noteExport records the files of a dataset in the log, with their rows.
func (r *run) noteExport(ctx context.Context, files []workspace.File, card dataset.Card) error {
	rows := map[string]int64{}
	for _, split := range card.Splits {
		for i, shard := range split.Shards {
			rows[path.Join(state.DatasetDir, dataset.FileName(split.Name, i, len(split.Shards)))] = int64(shard.Rows)
		}
	}
	var events []auditlog.Event
	for chunk := range slices.Chunk(files, auditlog.MaxFiles) {
		e := auditlog.Event{Kind: auditlog.Export}
		for _, f := range chunk {
			e.Files = append(e.Files, auditlog.File{Name: f.Name, SHA256: f.SHA256, Rows: rows[f.Name]})
		}
		events = append(events, e)
	}
	return r.Workspace.Note(ctx, events...)
}
