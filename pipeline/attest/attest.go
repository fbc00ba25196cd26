// Package attest has the two assertions that most tests need. Only tests import it.
package attest

import (
	"errors"

	"github.com/google/go-cmp/cmp"
)

// T is what the assertions need of a *testing.T, or of a test that draws its values.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// OK ends the test at an error.
func OK(t T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Same reports an error, and how got differs from want.
func Same(t T, what string, want, got any, errs ...error) {
	t.Helper()
	diff, err := cmp.Diff(want, got), errors.Join(errs...)
	if diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got)\n%.3000s", what, err, diff)
	}
}
