package secret

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// NoDumps keeps the memory of this process, and the environment that it was started with, out of crash dumps and from
// debuggers of the same user. It holds until the process ends; programs that it starts are not affected. On other
// systems than Linux it does nothing.
func NoDumps() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep this process out of crash dumps: %w", err)
	}
	return nil
}
