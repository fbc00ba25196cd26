//go:build unix

package copies

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder has the folder until the file is closed, or this process ends. The error is ErrBusy where another has it.
func lockFolder(root *os.Root) (*os.File, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	err = ofLock(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ofLock is what the error of a lock comes to: ErrBusy where another has it, and none on a file system without such
// locks, which is used without one.
func ofLock(err error) error {
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrBusy
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS):
		return nil
	}
	return err
}
