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
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	// A file system without such locks is used without one.
	if err != nil && (errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOSYS)) {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
