package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strconv"

	"rehydrate/dedupe"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

type exported struct {
	files     []workspace.File
	unchanged bool
	looks     state.Looks // of the run until then
}

// publish writes outcomes.csv and the dataset from answers that are fresh enough.
func (r *run) publish(ctx context.Context) (exported, error) {
	if err := r.access(); err != nil {
		return exported{}, err
	}
	looks := state.Looks{Resolve: r.looks}
	if err := r.lastLook(ctx); err != nil {
		return exported{}, err
	}
	looks.Last = r.looks - looks.Resolve
	if r.stopping() {
		return exported{}, state.ErrInterrupted
	}
	if err := r.access(); err != nil {
		return exported{}, err
	}
	out, err := r.write(ctx)
	out.looks = looks
	return out, err
}

// write decides every outcome and writes outcomes.csv and the dataset.
func (r *run) write(ctx context.Context) (exported, error) {
	// A file found damaged while the dataset is written costs its row, and makes all others
	// be looked at: then everything is decided again without them.
	const rounds = 3
	for range rounds {
		if err := r.decideForExport(ctx); err != nil {
			return exported{}, err
		}
		out, err := r.export(ctx)
		var damaged *workspace.Damaged
		if !errors.As(err, &damaged) {
			return out, err
		}
		if err := r.dropDamaged(ctx); err != nil {
			return exported{}, err
		}
	}
	return exported{}, fmt.Errorf("stored images keep turning out damaged: check the disk that holds %s", r.Workspace.Dir())
}

// dropDamaged looks at every stored image and forgets those that are not what they were.
func (r *run) dropDamaged(ctx context.Context) error {
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Image == nil {
			continue
		}
		_, err := r.Workspace.ReadImage(ctx, rec.Key, *rec.Image)
		var damaged *workspace.Damaged
		if err != nil && !errors.As(err, &damaged) {
			return err
		}
		if damaged == nil {
			continue
		}
		r.Log.Warn("a stored image is damaged and left out", "file", damaged.Name, "what", damaged.What)
		f := damagedFile()
		if err := r.Workspace.SetTrouble(ctx, rec.Key, workspace.Trouble{Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail}); err != nil {
			return err
		}
	}
	return nil
}

// lastLook asks again about the posts whose rows may not be exported as they are: those last
// seen live so long ago that it does not count, because a run can take longer than the policy's
// recheck_within, and those of which an image was stored since, because a post can be removed
// between the answer and the download. A finished workspace needs none. What stays unanswered
// stays out: judge sees to that.
func (r *run) lastLook(ctx context.Context) error {
	due := func(p workspace.Post) bool {
		return p.State == manifest.StateLive && (p.Unseen || r.Policy.Stale(p.LiveAt, r.Now()))
	}
	r.Progress.stage("last look before the export")
	noMore := func(context.Context, workspace.Post, reddit.Answer) error { return nil }
	return r.sweep(ctx, &sweep{then: noMore}, due)
}

// export writes outcomes.csv and, when anything in it changed, the dataset.
func (r *run) export(ctx context.Context) (exported, error) {
	r.Progress.stage("export")
	if _, err := r.Workspace.Replace(ctx, manifest.OutcomesName, func(w io.Writer) error {
		return manifest.WriteOutcomes(w, state.Outcomes(ctx, r.Workspace))
	}); err != nil {
		return exported{}, fmt.Errorf("write the outcomes: %w", err)
	}
	if err := state.WriteTombstones(ctx, r.Workspace); err != nil {
		return exported{}, err
	}
	if r.purge != nil && len(r.purge.files)+len(r.purge.present) == 0 {
		return exported{}, nil // no dataset, and none that a killed purge was writing: a purge makes none
	}
	b, _, err := r.Workspace.Binding(ctx)
	if err != nil {
		return exported{}, err
	}
	inputs, err := r.inputs(ctx, b)
	if err != nil {
		return exported{}, err
	}
	if files, ok := r.sameExport(ctx, inputs); ok {
		return exported{files: files, unchanged: true}, nil
	}
	files, err := r.writeDataset(ctx, b)
	if err != nil {
		return exported{}, err
	}
	return exported{files: files}, state.WriteNote(ctx, r.Workspace, state.ExportNote{Inputs: inputs, Files: files})
}

// sameExport returns the files of the last export if they were made of the same inputs and
// stand where they were written.
func (r *run) sameExport(ctx context.Context, inputs string) ([]workspace.File, bool) {
	last, err := state.ReadNote[state.ExportNote](ctx, r.Workspace)
	if err != nil || last.Inputs != inputs {
		return nil, false
	}
	for _, f := range last.Files {
		if now, err := r.Workspace.Stat(ctx, f.Name); err != nil || now != f {
			return nil, false
		}
	}
	return last.Files, true
}

// inputs is the digest of everything that the dataset is made of.
func (r *run) inputs(ctx context.Context, b workspace.Binding) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	if err := enc.Encode([]any{b, r.provenance(), r.Release.Date, r.Release.Homepage, r.Release.License, r.Release.Citation}); err != nil {
		return "", err
	}
	for rec, err := range r.Workspace.Records(ctx, workspace.Select{}) {
		if err != nil {
			return "", err
		}
		line := []any{rec.Entry, rec.Result}
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
			line = append(line, rec.Image, state.ShownReading(*rec.Reading, r.Policy).Text, rec.Reading.Confidence)
		}
		if err := enc.Encode(line); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeDataset writes the shards of each split, the card and the Croissant description. What an older dataset
// has beyond that goes first: a loader takes every data/train-*, and a run killed in between must leave no row
// twice.
func (r *run) writeDataset(ctx context.Context, b workspace.Binding) ([]workspace.File, error) {
	card := r.card(b)
	plans, names, err := r.planShards(ctx, b.Splits)
	if err != nil {
		return nil, err
	}
	if err := r.removeOthers(ctx, names); err != nil {
		return nil, err
	}
	check, err := r.checkRows(ctx)
	if err != nil {
		return nil, err
	}
	var files []workspace.File
	sink := func(name string, write func(io.Writer) error) error {
		name = path.Join(state.DatasetDir, name)
		f, err := r.Workspace.ReplaceChecked(ctx, name, write, check(name))
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		files = append(files, f)
		return nil
	}
	for _, split := range b.Splits {
		shards, err := dataset.WriteShards(sink, b.Schema, card.Provenance, card.Flagged, split, plans[split], state.Rows(ctx, r.Workspace, r.Policy, split))
		if err != nil {
			return nil, err
		}
		card.Splits = append(card.Splits, dataset.NewSplit(split, shards))
	}
	if err := r.countOutcomes(ctx, &card); err != nil {
		return nil, err
	}
	if err := sink("README.md", func(w io.Writer) error { return dataset.WriteCard(w, card) }); err != nil {
		return nil, err
	}
	if err := sink("croissant.json", func(w io.Writer) error { return dataset.WriteCroissant(w, card) }); err != nil {
		return nil, err
	}
	return files, r.noteExport(ctx, files, card)
}

// planShards says how many rows each shard of each split gets, and names the shards as the workspace does.
func (r *run) planShards(ctx context.Context, splits []string) (plans map[string][]int, names []string, err error) {
	plans = map[string][]int{}
	for _, split := range splits {
		plan, err := dataset.PlanShards(func(yield func(int64, error) bool) {
			for rec, err := range state.Kept(ctx, r.Workspace, split) {
				size := int64(0)
				if err == nil {
					size = dataset.RowBytes(rec.Image.Bytes, int64(len(rec.Reading.Text)))
				}
				if !yield(size, err) {
					return
				}
			}
		})
		if err != nil {
			return nil, nil, err
		}
		plans[split] = plan
		for i := range plan {
			names = append(names, path.Join(state.DatasetDir, dataset.FileName(split, i, len(plan))))
		}
	}
	return plans, names, nil
}

// removeOthers removes the Parquet files of an older dataset that are no part of this one.
// Files that somebody else put into the folder stay.
func (r *run) removeOthers(ctx context.Context, keep []string) error {
	have, err := r.Workspace.Files(ctx, path.Join(state.DatasetDir, "data"))
	if err != nil {
		return err
	}
	for _, name := range have {
		if !state.IsShard(name) || slices.Contains(keep, name) {
			continue
		}
		if err := r.Workspace.RemoveFile(ctx, name); err != nil {
			return fmt.Errorf("remove %s of an older dataset: %w", name, err)
		}
	}
	return nil
}

// provenance binds the dataset to all that made it. No clock value is in it.
func (r *run) provenance() dataset.Provenance {
	rel, e := r.Release, r.engine
	if r.purge != nil {
		return r.purge.provenance(r)
	}
	parameters := e.Parameters + " " + language.Fingerprint()
	if r.Policy.Text.MaskNames {
		parameters += ", names masked " + strconv.Itoa(language.MaskVersion)
	}
	return dataset.Provenance{
		Release: r.releaseName(), Version: rel.Version, ReleaseDigest: rel.Digest, ManifestDigest: rel.ManifestDigest,
		PolicyDigest: r.Policy.Digest(), ToolVersion: r.Version,
		OCREngine:     fmt.Sprintf("tesseract %s, leptonica %s, gosseract %s", e.Tesseract, e.Leptonica, e.Gosseract),
		OCRModel:      fmt.Sprintf("%s sha256:%s", e.Model, e.ModelSHA256),
		OCRParameters: parameters,
		Dedupe:        "keep-first in manifest order, " + state.NearRule(r.Policy).String(),
		HashKind:      dedupe.HashKind(),
		GoVersion:     runtime.Version(),
	}
}

func (r *run) card(b workspace.Binding) dataset.Card {
	rel := r.Release
	c := dataset.Card{Name: r.releaseName(), Version: rel.Version, Date: rel.Date, Homepage: rel.Homepage, License: rel.License,
		Citation: rel.Citation, Schema: b.Schema, Provenance: r.provenance(), Flagged: r.Policy.Filter.Mode == policy.Flag}
	if r.Rehearsal {
		c.Description = "A rehearsal: posts and images are made up, and the labels do not describe them."
	}
	return c
}

func (r *run) countOutcomes(ctx context.Context, card *dataset.Card) error {
	card.Outcomes = map[string]map[manifest.Outcome]int{}
	for res, err := range state.Outcomes(ctx, r.Workspace) {
		if err != nil {
			return err
		}
		if card.Outcomes[res.Split] == nil {
			card.Outcomes[res.Split] = map[manifest.Outcome]int{}
		}
		card.Outcomes[res.Split][res.Outcome]++
	}
	return nil
}
