package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
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
