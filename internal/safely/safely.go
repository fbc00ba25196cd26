// Package safely turns a panic into an error, so that a mistake in this program ends a run as any
// other error does, with its workspace closed.
package safely

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// A Panic is a mistake in this program: a panic that was caught.
type Panic struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("internal error: %v", p.Value) }

// Do calls f and returns its error, or a *Panic when f panics. Every goroutine that works on data goes through Do
// or Go; those that only wait for a signal, a process or the end of an answer do not.
func Do(f func() error) (err error) {
	// A panic of any goroutine would end the whole program, with the workspace open.
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()} // of here still: the deferred call runs on the panic's stack
		}
	}()
	return f()
}

// Go starts f in the group; a panic of f becomes the group's error.
func Go(g *errgroup.Group, f func() error) {
	g.Go(func() error { return Do(f) })
}

// Ahead yields what seq yields, which runs in a goroutine of its own.
func Ahead[T any](ctx context.Context, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		group, running := errgroup.WithContext(ctx)
		// On two cores a manifest is decoded while its entries are stored: half a second in 100,000.
		items := make(chan T, 256)
		Go(group, func() error {
			defer close(items)
			for v, err := range seq {
				if err != nil {
					return err
				}
				select {
				case items <- v:
				case <-running.Done():
					return running.Err()
				}
			}
			return nil
		})
		for v := range items {
			if !yield(v, nil) {
				stop()
				_ = group.Wait() // its error is that it was stopped
				return
			}
		}
		// Cut short, the list must not pass for a whole one.
		if err := group.Wait(); err != nil {
			var none T
			yield(none, err)
		}
	}
}
