// Package brokenoff breaks jobs off at every place where they can be: wherever they look whether they are stopped, and
// before each step that changes the disk.
package brokenoff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
)

// Anywhere runs a subtest for each cause: the context is stopped, or the disk is full. Its test does a job again and
// again by repeat, which breaks it off some places later each time, and checks that its error names the cause: a step
// that fails is never passed over. Repeat returns when the job is done. Without REHYDRATE_TEST=full it takes every
// fifth place.
func Anywhere(t *testing.T, test func(t *testing.T, repeat func(job func(context.Context) error))) {
	full, failed := errors.New("the disk is full"), "" // the step that it failed, by the last job
	for cause, start := range map[error]func(context.Context, int) (context.Context, context.CancelFunc){
		context.Canceled: StopAt,
		full: func(ctx context.Context, n int) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, durable.HookKey{}, func(step, name string) error {
				n--
				if n == 0 {
					failed = step + " " + name
					return full
				}
				return nil
			}), func() {}
		},
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			test(t, func(job func(context.Context) error) {
				for n := 1; ; n += testkit.Stride(5) {
					failed = ""
					ctx, stop := start(t.Context(), n)
					err := job(ctx)
					stop()
					if err == nil && failed != "" {
						t.Fatalf("broken off at %d, it passes over what failed: %s", n, failed)
					}
					if err == nil {
						return
					}
					if !strings.Contains(err.Error(), cause.Error()) {
						t.Fatalf("broken off at %d, it says: %v", n, err)
					}
				}
			})
		})
	}
}

// Look does what only looks again and again, stopped one place later each time, until it is done. Stopped it says so,
// and else it gives what it gives when nobody stops it.
func Look(t *testing.T, name string, look func(context.Context) (any, error)) {
	t.Helper()
	want, err := look(t.Context())
	testkit.OK(t, err)
	for n, done := 1, false; !done; n++ {
		ctx, stop := StopAt(t.Context(), n)
		got, err := look(ctx)
		stop()
		done = err == nil
		if done {
			testkit.Same(t, fmt.Sprintf("%s, stopped at %d", name, n), want, got)
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s, stopped at %d: %v", name, n, err)
		}
	}
}

// StopAt returns a context that is stopped when it is asked for the nth time whether it is.
func StopAt(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	s := &stopping{Context: ctx, stop: stop}
	s.left.Store(int64(n))
	return s, stop
}

type stopping struct {
	context.Context
	stop context.CancelFunc
	left atomic.Int64
}

func (s *stopping) Err() error            { s.look(); return s.Context.Err() }
func (s *stopping) Done() <-chan struct{} { s.look(); return s.Context.Done() }

func (s *stopping) look() {
	if s.left.Add(-1) == 0 {
		s.stop()
	}
}
