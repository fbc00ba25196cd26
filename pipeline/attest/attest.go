// Package attest has the two assertions that most tests need, and finds the strangers' programs that some read with.
// Only tests import it.
package attest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

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

// ModuleRoot is the nearest folder above the test's own that holds go.mod.
func ModuleRoot(t T) string {
	t.Helper()
	dir, err := os.Getwd()
	OK(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}

// Reader is the path of a file of an npm package that scripts/setup --with-readers installs.
func Reader(t T, file string) string {
	t.Helper()
	return filepath.Join(ModuleRoot(t), ".cache", "readers", "node_modules", filepath.FromSlash(file))
}

// Lacking skips the test for want of a part that scripts/setup --with-readers installs; under CI=true it fails.
func Lacking(t testing.TB, part string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed under CI (scripts/setup --with-readers): %v", part, err)
	}
	t.Skipf("no %s (scripts/setup --with-readers): %v", part, err)
}
