//go:build unix

package copies

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"rehydrate/internal/testkit"
)

// TestLock: one opener at a time has a folder, and a file system without such locks is used without one.
func TestLock(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	testkit.OK(t, err)
	defer root.Close()
	first, err := lockFolder(root)
	testkit.OK(t, err)
	if second, err := lockFolder(root); !errors.Is(err, ErrBusy) || second != nil {
		t.Errorf("a second opener has it: %v", err)
	}
	testkit.OK(t, first.Close())
	again, err := lockFolder(root)
	testkit.OK(t, err)
	testkit.OK(t, again.Close(), root.Close())
	if locked, err := lockFolder(root); err == nil || errors.Is(err, ErrBusy) || locked != nil {
		t.Errorf("a folder that was given up: %v", err)
	}
	for of, want := range map[error]error{nil: nil, unix.EWOULDBLOCK: ErrBusy, unix.ENOTSUP: nil, unix.ENOLCK: nil,
		unix.ENOSYS: nil, unix.EIO: unix.EIO} {
		if got := ofLock(of); got != want {
			t.Errorf("%v comes to %v, want %v", of, got, want)
		}
	}
}
