package pipeline

import (
	"context"

	"rehydrate/pipeline/state"
)

// Run rebuilds the dataset: it asks about every post, fetches and reads side by side, asks again about what has become old
// meanwhile, and writes. The summary says what became of every entry. The errors are state.ErrInterrupted, ctx's error,
// *reddit.Denied, that of Config.Access and those of the workspace, which is whole after each: the next Run goes on from there.
func Run(ctx context.Context, c Config) (state.Summary, error) {
	r := newRun(c)
	if err := r.access(); err != nil {
		return state.Summary{}, err
	}
	// A misspelt word is found before anything is asked or changed.
	if err := checkRetry(ctx, c.Workspace, c.Retry); err != nil {
		return state.Summary{}, err
	}
	return r.doAsking(ctx, r.load, func(ctx context.Context, s *resolver) error {
		r.Progress.stage("ask, fetch and read")
		if err := r.gather(ctx, s); err != nil {
			return err
		}
		return r.publish(ctx, s)
	})
}
