package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestStricterPolicyIsAppliedBeforeRowsGoOut: when the policy names a host less, no row is handed out until a run has
// found which images came from the hosts that are left.
func TestStricterPolicyIsAppliedBeforeRowsGoOut(t *testing.T) {
	w := newWorld(t, numbered(3)...).do("run; copy a").ok()
	for _, tt := range []struct {
		change, steps string
		there         bool
	}{
		{"a host less", "copy b", false},
		{"", "recheck; copy b", false},
		{"", "run; copy b", true},
	} {
		if tt.change != "" {
			w.policy.Images.Hosts = slices.Clone(w.policy.Images.Hosts[:1])
		}
		w.do(tt.steps).ok()
		_, err := os.Stat(filepath.Join(w.dir, "copies", "b"))
		testkit.Same(t, tt.change+" "+tt.steps, tt.there, err == nil)
	}
	testkit.Same(t, "rows", "p00 p01 p02", namesOf(w.checkSound().rows))
}

// TestStricterPolicyReachesCopies: the row of an image that the policy does not allow any more leaves registered copies
// with the dataset, also one that could not be reached then; the image stays here, and a policy that allows it again
// brings the row back into the dataset.
func TestStricterPolicyReachesCopies(t *testing.T) {
	w := newWorld(t, numbered(12)...).do("run; copy a; copy b").ok()
	largest := int64(0)
	for _, rec := range w.inspect().records {
		largest = max(largest, rec.Image.OriginalBytes)
	}
	var rest []string
	for row, rec := range w.inspect().records {
		if rec.Image.OriginalBytes < largest {
			rest = append(rest, row)
		}
	}
	slices.Sort(rest)
	before := w.policy.Images.MaxBytes
	w.policy.Images.MaxBytes = largest - 1
	w.do("recheck").ok() // which applies no policy
	testkit.Same(t, "rows before a run", 12, len(w.checkSound().rows))
	away := filepath.Join(w.dir, "away")
	testkit.OK(t, os.Rename(filepath.Join(w.dir, "copies", "b"), away))
	w.do("run").ok()
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		list, err := state.ListCopies(ctx, ws)
		testkit.OK(t, err)
		testkit.Same(t, "rows that the copy owes", 12-len(rest), len(list[1].Owed))
		testkit.Same(t, "its state", state.CopyOpen, list[1].State)
	})
	testkit.OK(t, os.Rename(away, filepath.Join(w.dir, "copies", "b")))
	w.do("recheck").ok()
	s := w.checkSound()
	testkit.Same(t, "rows of the dataset", strings.Join(rest, " "), namesOf(s.rows))
	testkit.Same(t, "rows of the copies", strings.Join(rest, " "), namesOf(s.copied))
	testkit.Same(t, "images", 12, len(w.imagesOf()))
	testkit.Same(t, "copies that are open", 0, s.status.OpenCopies)
	w.policy.Images.MaxBytes = before
	w.do("run").ok()
	testkit.Same(t, "rows under the policy of before", 12, len(w.checkSound().rows))
}
