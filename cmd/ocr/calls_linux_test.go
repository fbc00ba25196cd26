//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// callEverything is a process that makes every call that is not on the list, on a thread that is older than the filter.
// It prints those that the kernel let through.
func callEverything() {
	start, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		<-start
		if _, _, errno := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EPERM {
			fmt.Println("not confined:", errno)
			return
		}
		special := []uintptr{unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_TGKILL}
		if runtime.GOARCH == "amd64" {
			special = append(special, 335, 336) // uretprobe and uprobe, which the kernel shows to no filter
		}
		for call := range uintptr(2000) {
			// Bit 30 is what calls of the x32 architecture have.
			for _, number := range []uintptr{call, call | 1<<30} {
				if slices.Contains(neededCalls, number) || slices.Contains(special, number) {
					continue
				}
				if _, _, errno := unix.RawSyscall(number, 0, 0, 0); errno != unix.EPERM {
					fmt.Println("call", number, errno)
				}
			}
		}
		// What is let through on conditions.
		for _, c := range []struct {
			name             string
			call, arg1, arg2 uintptr
			want             error
		}{
			{"clone3", unix.SYS_CLONE3, 0, 0, unix.ENOSYS},
			{"fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, unix.EPERM},
			{"signal to init", unix.SYS_TGKILL, 1, 1, unix.EPERM},
			{"signal to the parent", unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), unix.EPERM},
			// Refused by the kernel for other reasons, so it was let through.
			{"a thread", unix.SYS_CLONE, unix.CLONE_THREAD, 0, unix.EINVAL},
			{"signal to itself", unix.SYS_TGKILL, uintptr(os.Getpid()), uintptr(unix.Gettid()), syscall.Errno(0)},
		} {
			if _, _, errno := unix.RawSyscall(c.call, c.arg1, c.arg2, 0); errno != c.want {
				fmt.Printf("%s: %v, want %v\n", c.name, errno, c.want)
			}
		}
	}()
	ok, err := allowCalls()
	fmt.Println(ok, err)
	close(start)
	<-done
}

// TestOnlyNeededCalls: the kernel refuses whatever is not on the list, to threads that were there before as well.
func TestOnlyNeededCalls(t *testing.T) {
	out, err := self(t, "call-everything").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "true <nil>" {
		t.Errorf("a confined process: %v\n%.2000s", err, got)
	}
}
