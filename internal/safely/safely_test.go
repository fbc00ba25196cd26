package safely

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestDo: an error passes as it is, and a panic of any kind becomes one.
func TestDo(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func() error
		want string // of the Panic; empty for none
	}{
		{"nothing", func() error { return nil }, ""},
		{"an error", func() error { return io.ErrUnexpectedEOF }, ""},
		{"a text", func() error { panic("boom") }, "internal error: boom"},
		{"a wrapped error", func() error { panic(io.ErrUnexpectedEOF) }, "internal error: unexpected EOF"},
		{"an index", func() error { return []error{}[len(t.Name())] }, "internal error: runtime error: index out of range"},
		{"nil", func() error { panic(error(nil)) }, "internal error: panic called with nil argument"},
	} {
		err := Do(tt.f)
		var internal *Panic
		if errors.As(err, &internal) != (tt.want != "") {
			t.Errorf("%s: Do = %v", tt.name, err)
			continue
		}
		if tt.want == "" {
			if want := tt.f(); err != want {
				t.Errorf("%s: Do = %v, want %v", tt.name, err, want)
			}
			continue
		}
		if !strings.HasPrefix(err.Error(), tt.want) || !strings.Contains(string(internal.Stack), "TestDo") {
			t.Errorf("%s: %v with the stack\n%s", tt.name, err, internal.Stack)
		}
	}
}

// TestGo: a panic in one goroutine ends the others of its group, and is the group's error.
func TestGo(t *testing.T) {
	g, ctx := errgroup.WithContext(t.Context())
	Go(g, func() error { panic("boom") })
	Go(g, func() error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Minute):
			return errors.New("the others went on")
		}
	})
	var internal *Panic
	if err := g.Wait(); !errors.As(err, &internal) || internal.Value != "boom" {
		t.Errorf("Wait = %v, want the panic", err)
	}
}
