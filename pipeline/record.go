package pipeline

import (
	"context"
	"errors"
	"path"
	"slices"

	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Most records of the audit log are written by the workspace, with the change they tell of. What is
// no change of the state is noted here: that a run began and ended, what was withheld and
// confirmed, and the files of a dataset.

// runEvent is the record of a run: what made it, and from what.
func (r *run) runEvent(phase, verdict string) auditlog.Event {
	return auditlog.Event{Kind: auditlog.Run, Phase: phase, Verdict: verdict, Tool: r.Version,
		Release: r.Release.Digest, Manifest: r.Release.ManifestDigest, Policy: r.Policy.Digest()}
}

// noteEnd tells the log how a run ended and returns its error. A run without such a record was killed.
func (r *run) noteEnd(ctx context.Context, err error) error {
	verdict := "done"
	switch {
	case errors.Is(err, state.ErrInterrupted) || errors.Is(err, context.Canceled):
		verdict = "interrupted"
	case err != nil:
		verdict = "failed"
	}
	return errors.Join(err, r.Workspace.Note(context.WithoutCancel(ctx), r.runEvent(auditlog.Ended, verdict)))
}

// notePosts tells the log of posts, as many records as it takes.
func (r *run) notePosts(ctx context.Context, kind auditlog.Kind, posts []workspace.Post) error {
	var events []auditlog.Event
	for chunk := range slices.Chunk(posts, auditlog.MaxPosts) {
		e := auditlog.Event{Kind: kind}
		for _, p := range chunk {
			e.Posts = append(e.Posts, auditlog.Post{ID: p.ID, State: p.State, Reason: auditlog.Word(p.Reason)})
		}
		events = append(events, e)
	}
	return r.Workspace.Note(ctx, events...)
}

// noteExport tells the log of the files of a dataset, with the rows of those that have some.
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
