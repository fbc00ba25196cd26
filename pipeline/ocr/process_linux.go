package ocr

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes make a worker die with its supervisor and stay out of the
// terminal's process group: Ctrl-C reaches the supervisor, which decides.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// limitAddressSpace sets RLIMIT_AS of another process of this user.
func limitAddressSpace(pid int, bytes int64) error {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	err := unix.Prlimit(pid, unix.RLIMIT_AS, &limit, nil)
	if err == unix.ESRCH {
		return nil // it has ended already: its hello will not come, and that says why
	}
	return err
}

// residentBytes reads the second field of statm, resident pages; 0 once the process is
// gone.
func residentBytes(pid int) int64 {
	var all, resident int64
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err == nil {
		_, err = fmt.Sscan(string(statm), &all, &resident)
	}
	if err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
