package pipeline

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"rehydrate/internal/testkit"
)

// phases are functions of the engine, the innermost of which says in which phase a step on the disk is made.
var phases = []string{"open", "settle", "record", "settleReplacements", "fetchImage", "readImage", "storeResults",
	"dropRemovedPictures", "clearDataset", "clear", "export", "takeDown", "finishPurge", "end", "doAsking", "Split",
	"Merge", "ReadAgain"}

// phase says in which phase the caller's caller is, "" for what surrounds the jobs.
func phase() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		name, engine := strings.CutPrefix(f.Function, "rehydrate/pipeline.")
		for _, p := range phases {
			if engine && (name == p || strings.HasSuffix(name, ")."+p) || strings.HasPrefix(name, p+".func") ||
				strings.Contains(name, ")."+p+".func")) {
				return p
			}
		}
		if !more {
			return ""
		}
	}
}

var accidental = regexp.MustCompile(`\.tmp-[A-Z0-9]+|/tmp/[^ ]*/copies/`)

// stepName names a step that changes the disk the same in every world.
func stepName(step, name string) string {
	return fmt.Sprintf("%s: %s %s", phase(), step, accidental.ReplaceAllString(name, ""))
}

// TestFaultAtEachNamedStep lets each step that changes the disk fail once, by its name: of write, of settle, of what is
// taken out, of asking and of the frame of the jobs. The same job, done again, gives the bytes that an undisturbed one
// gives, and nothing of what was removed is anywhere. A step that several jobs share is tried in the first of them; in
// all of them with REHYDRATE_TEST=full.
func TestFaultAtEachNamedStep(t *testing.T) {
	ran, tried := newRan(t, "drop"), map[string]bool{}
	for _, job := range []string{"run", "recheck", "purge", "purge offline id=p01", "reread", "split",
		"split; work; merge"} {
		steps, want := traced(changedFor(t, ran, job), job)
		for n, step := range slices.Sorted(maps.Keys(steps)) {
			if tried[step] && os.Getenv("REHYDRATE_TEST") != "full" {
				continue
			}
			tried[step] = true
			if leftOut(n, 5) {
				continue
			}
			t.Run(job+", "+step, func(t *testing.T) {
				t.Parallel()
				w := changedFor(t, ran, job)
				text := w.inspect().rows["p01"].Text
				var once sync.Once
				w.hook = func(kind, name string) (err error) {
					if stepName(kind, name) == step {
						once.Do(func() { err = errFault })
					}
					return err
				}
				w.do(job)
				w.hook = nil
				w.do(job).ok()
				got := w.checkSound()
				testkit.Same(t, "files", want.files, got.files)
				testkit.Same(t, "outcomes", want.outcomes, got.outcomes)
				testkit.Same(t, "rows of copies", want.copied, got.copied)
				if !want.imageOf("p01") {
					w.checkNowhere(text)
				}
			})
		}
	}
	// Each phase of the engine has a step here: else the names above are those of functions that are gone.
	found := map[string]bool{}
	for step := range tried {
		name, _, _ := strings.Cut(step, ":")
		found[name] = true
	}
	for _, p := range phases {
		if !found[p] {
			t.Errorf("no step was made in %s", p)
		}
	}
}

// traced returns the names of the steps of an undisturbed job, and what it leaves.
func traced(w *world, job string) (map[string]bool, inventory) {
	var mu sync.Mutex
	steps := map[string]bool{}
	w.hook = func(kind, name string) error {
		mu.Lock()
		defer mu.Unlock()
		steps[stepName(kind, name)] = true
		return nil
	}
	w.do(job).ok()
	return steps, w.checkSound()
}
