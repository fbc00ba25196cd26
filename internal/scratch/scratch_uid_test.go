//go:build unix

package scratch

import (
	"os"
	"path/filepath"
	"testing"

	"rehydrate/internal/testkit"
)

// TestSweepOfOthers leaves what belongs to another user, even where it could be removed.
func TestSweepOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	inTemp(t)
	theirs := filepath.Join(os.TempDir(), prefix+"theirs")
	testkit.OK(t, os.Mkdir(theirs, 0o700))
	testkit.OK(t, os.Chown(theirs, 12345, 12345))
	testkit.OK(t, Sweep())
	testkit.Same(t, "names that are left", 1, len(names(t)))
}
