//go:build unix

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// errLocked is the error of lockForOne and lockForMany while another process has the lock.
const errLocked = unix.EWOULDBLOCK

// writable returns an error where a workspace cannot be written safely.
func writable() error { return nil }

// lockForOne locks f for this process alone, without waiting.
func lockForOne(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// lockForMany locks f together with others that do the same, without waiting.
func lockForMany(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// unlock gives the lock of f back.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
