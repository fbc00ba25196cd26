//go:build amd64 || arm64

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// listedCalls says whether allowCalls has a list for this system.
const listedCalls = true

// neededCalls are all that a worker with its model in memory asks of the kernel, beside those of callsFilter: to
// compute, to run its threads, to tell the time, and to use the files that it has open. None of them opens anything, or
// names another process.
var neededCalls = append([]uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK,
	// what Go's runtime waits for files with
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_MEMBARRIER,
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_GETCPU,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
}, olderCalls...)

// Where seccomp shows a filter the number of a call, the architecture that it is of, and the lower half of its first
// argument.
const (
	callNumber   = 0
	callArch     = 4
	callArgument = 16
)

// callsFilter lets through what neededCalls has, new threads, and signals of process pid to itself. All other calls
// fail with EPERM, those of later kernels and of other architectures' numbers among them.
func callsFilter(pid int) []bpf.Instruction {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	unknown := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	filter := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
	}
	answer := func(call uintptr, answer ...bpf.Instruction) {
		filter = append(filter, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(call), SkipFalse: uint8(len(answer))})
		filter = append(filter, answer...)
	}
	for _, call := range neededCalls {
		answer(call, allow)
	}
	argument := bpf.LoadAbsolute{Off: callArgument, Size: 4}
	answer(unix.SYS_CLONE, argument, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_THREAD, SkipFalse: 1}, allow,
		refuse)
	answer(unix.SYS_TGKILL, argument, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(pid), SkipFalse: 1}, allow, refuse)
	// A filter cannot see the flags of clone3; the C library then falls back to clone.
	answer(unix.SYS_CLONE3, unknown)
	return append(filter, refuse)
}

// allowCalls refuses all threads of this process every call but the needed ones, for good. It reports false where the
// kernel has no seccomp.
func allowCalls() (bool, error) {
	raw, err := bpf.Assemble(callsFilter(os.Getpid()))
	if err != nil {
		return false, fmt.Errorf("assemble the filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Both calls have to come from one thread: the first is about that thread alone, and the second gives the others
	// both.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return false, fmt.Errorf("give up new privileges: %w", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	switch {
	case errno == unix.ENOSYS || errno == unix.EINVAL:
		return false, nil
	case errno != 0:
		return false, fmt.Errorf("seccomp: %w", errno)
	case thread != 0:
		return false, errors.New("seccomp: a thread has a filter of its own")
	}
	return true, nil
}
