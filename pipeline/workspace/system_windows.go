package workspace

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errLocked is an error that no function of this file returns.
const errLocked = syscall.EWOULDBLOCK

// writable refuses: a mode does not keep other users of Windows from reading a folder, and no lock ends with its
// holder.
func writable() error {
	return fmt.Errorf("%w: Windows has no mode 0700 and no flock, so a workspace opens for reading only; "+
		"write it on Linux or macOS", errors.ErrUnsupported)
}

// lockForOne is not reached: writable refuses before.
func lockForOne(*os.File) error { return errors.ErrUnsupported }

// lockForMany needs no lock: no process of this system writes a workspace, so nobody holds one.
func lockForMany(*os.File) error { return nil }

// unlock has nothing to give back.
func unlock(*os.File) error { return nil }
