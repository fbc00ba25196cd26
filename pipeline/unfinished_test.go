package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// left is what state.Remnants finds, as a summary has it.
func (w *world) left() (texts []string) {
	w.Helper()
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		var s state.Summary
		testkit.OK(w, s.FindRemnants(ctx, ws))
		texts = s.Unfinished
	})
	return texts
}

// TestUnfinishedRemovals: a job whose removal could not be written says which file still has what must go, and so does
// the status until a job has taken it out.
func TestUnfinishedRemovals(t *testing.T) {
	shards := []string{"dataset/data/test-00000-of-00001.parquet", "dataset/data/train-00000-of-00001.parquet"}
	for name, tt := range map[string]struct {
		before, job string
		files       []string // one of which is named
	}{
		"recheck":         {"post deleted p01", "recheck unwritable=dataset/data/", shards},
		"run":             {"post deleted p01", "run unwritable=dataset/data/", shards},
		"purge":           {"", "purge offline id=p01 unwritable=dataset/data/", shards},
		"a re-reading":    {"stones removed p01", "reread unwritable=dataset/data/", shards},
		"held back":       {"post deleted p01 p02 p03", "recheck unwritable=dataset/data/", shards},
		"an image":        {"post deleted p01", "recheck unwritable=images/", []string{"images/p0/p01.png"}},
		"an image, purge": {"", "purge offline id=p01 unwritable=images/", []string{"images/p0/p01.png"}},
		"an image that left its post": {"image left g/1", "recheck unwritable=images/",
			[]string{"images/g/g-1.png"}},
		"when it is opened": {"stones removed p01", "recheck unwritable=images/", []string{"images/p0/p01.png"}},
		"a list of a shard": {"engine B; split", "purge offline id=p01 unwritable=shards/",
			[]string{"shards/work-00000.jsonl", "shards/work-00001.jsonl"}},
		"results of a shard": {"engine B; split; work", "purge offline id=p01 unwritable=shards/result",
			[]string{"shards/result-00000.jsonl", "shards/result-00001.jsonl"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "p00", "p01", "p02", "p03", "g*2").do("run").ok()
			if left := w.do(tt.before).left(); len(left) > 0 && !strings.HasPrefix(tt.before, "stones") {
				t.Errorf("before: %q", left)
			}
			w.do(tt.job)
			told, ok := errors.AsType[*state.Unremoved](w.err)
			if !ok {
				t.Fatalf("%v, want *state.Unremoved", w.err)
			}
			named := func(r state.Remnant) bool { return slices.Contains(tt.files, r.File) }
			if !slices.ContainsFunc(told.Left, named) || !strings.Contains(w.err.Error(), told.Left[0].File) {
				t.Errorf("%+v, want one of %q: %v", told.Left, tt.files, w.err)
			}
			testkit.Same(t, "left by the status", state.Texts(told.Left), w.left())
			again, _, _ := strings.Cut(tt.job, " unwritable")
			w.do(again).ok()
			testkit.Same(t, "left after "+again, []string(nil), w.left())
		})
	}
}

// TestCalmErrors: the error of a job that has taken out what must go says nothing of it.
func TestCalmErrors(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; post deleted p01; recheck; run denied")
	if w.err == nil || errors.As(w.err, new(*state.Unremoved)) {
		t.Error(w.err)
	}
}

// TestShardOfSomebody: a file that is named as a shard of the dataset and that no run wrote goes with the next job,
// though nothing else changed: it can have the row of a removed post.
func TestShardOfSomebody(t *testing.T) {
	for _, job := range []string{"run", "recheck"} {
		w := newWorld(t, numbered(8)...).do("run").ok()
		data := filepath.Join(w.dir, "ws", "dataset", "data")
		old, err := os.ReadFile(filepath.Join(data, "train-00000-of-00001.parquet"))
		testkit.OK(t, err)
		var id string
		for row := range w.inspect().rows {
			if strings.Contains(string(old), row) {
				id = row
			}
		}
		w.do("post deleted " + id + "; run").ok()
		testkit.OK(t, os.WriteFile(filepath.Join(data, "train-00001-of-00002.parquet"), old, 0o600))
		testkit.Same(t, "left before", []string{
			"dataset/data/train-00001-of-00002.parquet: the row of " + id + " is still in it"}, w.left())
		w.do(job).ok()
		testkit.Same(t, "left after "+job, []string(nil), w.left())
		w.checkSound()
	}
}

// TestCopiesGoBeforeTheNote: what the policy says by now of shared pictures is noted after the copies have lost their
// rows, so that a note that cannot be written keeps none in.
func TestCopiesGoBeforeTheNote(t *testing.T) {
	for _, job := range []string{"recheck", "purge"} {
		w := newWorld(t, numbered(4)...).do("run; copy c; post deleted p01").ok()
		w.policy.Images.AllowSame = []manifest.PostID{"p02"}
		if w.do(job + " unwritable=policy"); !errors.Is(w.err, errFault) {
			t.Errorf("%s: %v, want errFault", job, w.err)
		}
		testkit.Same(t, "rows of the copy after "+job, "p00 p02 p03", namesOf(w.inspect().copied))
	}
}
