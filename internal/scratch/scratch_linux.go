package scratch

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameless makes a file that never has a name, where the file system can.
func nameless(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|unix.O_EXCL, 0o600)
	if err != nil {
		return named(dir)
	}
	return f, nil
}
