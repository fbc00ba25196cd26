package safely

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
)

// TestAhead: all comes through in order; an error, a panic and the end of the context do not pass for the end of
// the list; and who leaves early leaves nothing running.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	numbers := func(then func(yield func(int, error) bool)) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range 1000 {
				if !yield(i, nil) {
					return
				}
			}
			then(yield)
		}
	}
	read := func(ctx context.Context, seq iter.Seq2[int, error]) (all []int, err error) {
		for i, failed := range Ahead(ctx, seq) {
			if failed != nil {
				return all, failed
			}
			all = append(all, i)
		}
		return all, nil
	}
	want := slices.Collect(func(yield func(int) bool) {
		for i := range 1000 {
			yield(i)
		}
	})
	all, err := read(t.Context(), numbers(func(func(int, error) bool) {}))
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%d of 1000 came through in order, %v", len(all), err)
	}
	if all, err := read(t.Context(), numbers(func(yield func(int, error) bool) {
		yield(0,
			broken)
	})); len(all) != 1000 || err != broken {
		t.Errorf("an error at the end: %d numbers, %v", len(all), err)
	}
	var internal *Panic
	if _, err := read(t.Context(), numbers(func(func(int, error) bool) { panic("boom") })); !errors.As(err, &internal) {
		t.Errorf("a panic at the end is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan bool)
	n, err := 0, error(nil)
	for _, failed := range Ahead(ctx, func(yield func(int, error) bool) {
		defer close(ended)
		for yield(1, nil) {
		}
	}) {
		n++
		if n == 500 {
			cancel()
		}
		err = failed
	}
	if <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context is %v", err)
	}
	left := false
	for range Ahead(t.Context(), func(yield func(int, error) bool) {
		for yield(1, nil) {
		}
		left = true
	}) {
		break
	}
	if !left {
		t.Error("the list is still being made when its reader has gone on")
	}
}
