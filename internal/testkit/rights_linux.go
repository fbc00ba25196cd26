package testkit

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Forbidden runs do on a thread that no right of root's helps: a file without rights cannot be read there, whoever runs
// the tests. What do starts in other goroutines keeps its rights.
func Forbidden(t T, do func()) {
	t.Helper()
	failed := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and its missing rights with it.
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		err := unix.Capget(&header, &sets[0])
		if err == nil {
			sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
			err = unix.Capset(&header, &sets[0])
		}
		if err == nil {
			do()
		}
		failed <- err
	}()
	OK(t, <-failed)
}
