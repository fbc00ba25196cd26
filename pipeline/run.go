package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// Run rebuilds the dataset: it asks about every post, fetches and reads side by side, asks again about what has become
// old meanwhile, and writes. The summary says what became of every entry. The errors are state.ErrInterrupted, ctx's
// error, *reddit.Denied, that of Config.Access and those of the workspace, which is whole after each: the next Run goes
// on from there.
func Run(ctx context.Context, c Config) (state.Summary, error) {
	r := newRun(c)
	if err := r.mayFetch(ctx); err != nil {
		return state.Summary{}, err
	}
	return r.doAsking(ctx, r.load, func(ctx context.Context, s *asker) error {
		r.Progress.stage("download and read")
		if err := r.gather(ctx, s); err != nil {
			return err
		}
		if err := r.publish(ctx, s); err != nil {
			return err
		}
		return cluster.Overtake(ctx, r.Workspace)
	})
}

// mayFetch says why a job that fetches must not begin: without access, or with a misspelt word, which is found before
// anything is asked or changed.
func (r *run) mayFetch(ctx context.Context) error {
	if err := r.access(); err != nil {
		return err
	}
	return CheckRetry(ctx, r.Workspace, r.Retry)
}

// An UnknownRetry says that a word of Config.Retry is neither an outcome nor a reason with which a download ended.
type UnknownRetry struct {
	Word  string
	Known []string // the reasons that entries of the workspace have now
}

func (e *UnknownRetry) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("--retry %s: no download has failed in this workspace", e.Word)
	}
	return fmt.Sprintf("--retry %s: no download ended so; the reasons here are %s", e.Word,
		strings.Join(e.Known, ", "))
}

// CheckRetry refuses a word of Config.Retry that would do nothing because it is misspelt.
func CheckRetry(ctx context.Context, ws *workspace.Workspace, words []string) error {
	// Outcomes are a closed list; reasons are not, so that one counts only where some entry has it.
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return slices.Contains(manifest.Outcomes(),
			manifest.Outcome(w))
	})
	if len(words) == 0 {
		return nil
	}
	reasons := map[string]bool{}
	for rec, err := range ws.Records(ctx, workspace.Select{}) {
		if err != nil {
			return err
		}
		if rec.Trouble != nil && rec.Trouble.Reason != "" {
			reasons[string(rec.Trouble.Reason)] = true
		}
		if state.WasSuspected(rec) {
			reasons[string(state.ReasonSuspected)] = true
		}
	}
	for _, w := range words {
		if !reasons[w] {
			return &UnknownRetry{Word: w, Known: slices.Sorted(maps.Keys(reasons))}
		}
	}
	return nil
}
