package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracedVar makes the child announce each of its diskCalls to its tracer.
const tracedVar = "REHYDRATE_TEST_TRACED"

// A diskCall is a system call by which a run changes what is on the disk.
type diskCall struct {
	name    string
	numbers []uintptr
}

// diskCalls are counted together, over all threads of the process: strace counts those of each thread by
// themselves, so its when=N is not the N-th of a run.
var diskCalls = []diskCall{
	{"rename", append([]uintptr{unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2}, oldRenames...)},
	{"fsync", []uintptr{unix.SYS_FSYNC, unix.SYS_FDATASYNC}},
	{"unlink", append([]uintptr{unix.SYS_UNLINKAT}, oldUnlinks...)},
	{"pwrite", []uintptr{unix.SYS_PWRITE64}},
}

// announceDiskCalls has the kernel stop this process for its tracer before each of its diskCalls.
func announceDiskCalls() error {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for _, c := range diskCalls {
		for _, n := range c.numbers {
			filter = append(filter,
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(n)},
				unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE})
		}
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install a seccomp filter: %w", errno)
	}
	return nil
}

// A point is the n-th diskCall of a kind, counted from 1; the zero point is none.
type point struct {
	kind string
	n    int
}

func (p point) String() string { return fmt.Sprint(p.kind, "-", p.n) }

// traced is what became of a process that was traced.
type traced struct {
	calls  []string // names of the diskCalls that it came to, the one before which it was killed included
	status syscall.WaitStatus
}

// killed reports whether SIGKILL ended the process.
func (t traced) killed() bool { return t.status.Signaled() && t.status.Signal() == syscall.SIGKILL }

// kindsOf names the diskCalls by their number.
var kindsOf = func() map[uint64]string {
	kinds := map[uint64]string{}
	for _, c := range diskCalls {
		for _, n := range c.numbers {
			kinds[uint64(n)] = c.name
		}
	}
	return kinds
}()

// traceKill starts cmd, a child of announceDiskCalls, and kills it with SIGKILL at a point, before the call is
// made. It returns once no thread of it is left. Nobody may wait for cmd.
func traceKill(cmd *exec.Cmd, at point) (traced, error) {
	type result struct {
		traced traced
		err    error
	}
	done := make(chan result)
	go func() {
		// A tracer is a thread. It is not unlocked, so it ends with this goroutine.
		runtime.LockOSThread()
		t, err := traceHere(cmd, at)
		done <- result{t, err}
	}()
	r := <-done
	return r.traced, r.err
}

func traceHere(cmd *exec.Cmd, at point) (traced, error) {
	cmd.Env = append(cmd.Env, tracedVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return traced{}, err
	}
	pid := cmd.Process.Pid
	defer cmd.Process.Release()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return traced{}, fmt.Errorf("wait for the exec: %w", err)
	}
	err := syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACESECCOMP|unix.PTRACE_O_EXITKILL)
	if err == nil {
		err = syscall.PtraceCont(pid, 0)
	}
	if err != nil {
		return traced{}, fmt.Errorf("trace: %w", err)
	}
	var t traced
	seen := map[string]int{}
	for {
		// Children of other threads are other tests'.
		tid, err := syscall.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return t, fmt.Errorf("wait for the traced process: %w", err)
		case !status.Stopped():
			if tid == pid {
				t.status = status
				return t, nil
			}
			continue
		}
		if status.TrapCause() == unix.PTRACE_EVENT_SECCOMP {
			kind, err := callOf(tid)
			if err == nil {
				t.calls = append(t.calls, kind)
				seen[kind]++
			}
			if err == nil && kind == at.kind && seen[kind] == at.n {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					return t, err
				}
				continue // the call is not made any more
			}
		}
		// The thread may be gone by now: then its end is waited for next.
		_ = syscall.PtraceCont(tid, forward(status))
	}
}

// forward is the signal to go on with: none of those that are the tracer's own.
func forward(status syscall.WaitStatus) int {
	signal := status.StopSignal()
	if slices.Contains([]syscall.Signal{syscall.SIGTRAP, syscall.SIGSTOP}, signal) {
		return 0
	}
	return int(signal)
}

// callOf names the call before which a thread is stopped.
func callOf(tid int) (string, error) {
	var info [88]byte // struct ptrace_syscall_info
	size, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), uintptr(len(info)), uintptr(unsafe.Pointer(&info[0])), 0, 0)
	if errno != 0 {
		return "", errno
	}
	if size < 32 || info[0] != unix.PTRACE_SYSCALL_INFO_SECCOMP {
		return "", fmt.Errorf("no call at the stop (%d bytes, kind %d)", size, info[0])
	}
	return kindsOf[binary.NativeEndian.Uint64(info[24:])], nil
}

// canTrace returns nil where traceKill works.
var canTrace = sync.OnceValue(func() error {
	cmd := exec.Command(os.Args[0], "version")
	cmd.Env = append(os.Environ(), childVar+"=1")
	t, err := traceKill(cmd, point{})
	if err == nil && (!t.status.Exited() || t.status.ExitStatus() != 0) {
		err = fmt.Errorf("a traced process ended with %v", t.status)
	}
	return err
})
