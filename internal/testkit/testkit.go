// Package testkit has the two assertions that most tests need, and finds the strangers' programs that some read with.
// Only tests import it.
package testkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
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

// HearHangups lets SIGHUP reach the programs that the tests start, also where the tests run under nohup: a program
// inherits what is ignored, and not what is caught.
func HearHangups() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
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

// Node runs a script in node, with the folder of the npm packages and args behind its name and in on its stdin, and
// decodes the JSON that it prints into answer. The script is named from the module's root, and needs the npm package.
// Any failure ends t.
func Node(t testing.TB, answer any, npm, script, in string, args ...string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(Reader(t, npm))
	}
	if err != nil {
		Lacking(t, npm, err)
	}
	root := ModuleRoot(t)
	cmd := exec.CommandContext(t.Context(), node,
		append([]string{filepath.Join(root, script), filepath.Join(root, ".cache", "readers")}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s\nof: %.1000s", npm, err, errs.Bytes(), in)
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		t.Fatalf("%s: decode %.300s: %v\nof: %.1000s", npm, out.Bytes(), err, in)
	}
}

// Lacking skips the test for want of a part that scripts/setup --with-readers installs; under CI=true it fails.
func Lacking(t testing.TB, part string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed under CI (scripts/setup --with-readers): %v", part, err)
	}
	t.Skipf("no %s (scripts/setup --with-readers): %v", part, err)
}

// Stride is how far apart the points are that a campaign takes: as far as a sample's, or 1 for all with
// REHYDRATE_TEST=full.
func Stride(sample int) int {
	if os.Getenv("REHYDRATE_TEST") == "full" {
		return 1
	}
	return sample
}
