package pipeline

import (
	"context"

	"rehydrate/pipeline/state"
)

// Recheck asks about every post and takes out what is gone; no row comes in. It needs neither OCR nor access: the duty
// to delete outlives the permission to hold. The errors are those of Run.
func Recheck(ctx context.Context, c Config) (state.Summary, error) {
	r := newRun(c)
	sum, err := r.doAsking(ctx, r.isBound, func(ctx context.Context, s *asker) error { return r.ask(ctx, s) })
	sum.Recheck = true
	return sum, err
}
