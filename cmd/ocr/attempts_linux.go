package main

import (
	"errors"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// An attempt is one thing that a confined worker must not be able to do.
type attempt struct {
	name string
	try  func(outside) error
}

// attempts reach for files, the network and other processes. They leave nothing behind where they are not refused.
var attempts = []attempt{
	{"read a file", func(o outside) error { return opened(unix.Open(o.File, unix.O_RDONLY|unix.O_CLOEXEC, 0)) }},
	{"write a file", func(o outside) error {
		return opened(unix.Open(o.Dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600))
	}},
	{"look up a file", func(o outside) error { return unix.Stat(o.File, new(unix.Stat_t)) }},
	{"connect by TCP", func(o outside) error { return connect(unix.IPPROTO_TCP, o.TCP) }},
	{"connect by MPTCP", func(o outside) error { return connect(unix.IPPROTO_MPTCP, o.TCP) }},
	{"listen by TCP", func(outside) error { return listen(unix.IPPROTO_TCP) }},
	{"listen by MPTCP", func(outside) error { return listen(unix.IPPROTO_MPTCP) }},
	{"send by UDP", func(o outside) error {
		return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
			return unix.Sendto(fd, []byte("leak"), 0, address(o.UDP))
		})
	}},
	{"connect to a UNIX socket", func(o outside) error {
		return withSocket(unix.AF_UNIX, unix.SOCK_STREAM, 0, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrUnix{Name: o.Unix})
		})
	}},
	{"open a netlink socket", func(outside) error { return withSocket(unix.AF_NETLINK, unix.SOCK_RAW, 0, nil) }},
	{"open a raw socket", func(outside) error {
		return withSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, nil)
	}},
	{"open a packet socket", func(outside) error { return withSocket(unix.AF_PACKET, unix.SOCK_DGRAM, 0, nil) }},
	{"open a vsock", func(outside) error { return withSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0, nil) }},
	{"make a pair of sockets", func(outside) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			return errors.Join(unix.Close(pair[0]), unix.Close(pair[1]))
		}
		return err
	}},
	// The flags are no valid ones, so that no process comes of it: EINVAL says that the call was let through.
	{"fork", func(outside) error { return call(unix.SYS_CLONE, unix.CLONE_SIGHAND) }},
	{"trace a process", func(o outside) error { return unix.PtraceSeize(o.Parent) }},
	{"read another process's memory", func(o outside) error {
		here := make([]byte, 8)
		local := []unix.Iovec{{Base: &here[0]}}
		local[0].SetLen(len(here))
		_, err := unix.ProcessVMReadv(o.Parent, local, []unix.RemoteIovec{{Base: 4096, Len: len(here)}}, 0)
		return err
	}},
	{"signal a process", func(o outside) error { return unix.Kill(o.Parent, 0) }},
	{"hold a process", func(o outside) error { return opened(unix.PidfdOpen(o.Parent, 0)) }},
	{"limit a process", func(o outside) error { return unix.Prlimit(o.Parent, unix.RLIMIT_AS, nil, new(unix.Rlimit)) }},
	// Without an address for its parameters the call fails, but not with EPERM.
	{"use io_uring", func(outside) error { return call(unix.SYS_IO_URING_SETUP, 1) }},
	// A process of several threads has no right to it: EINVAL says that the call was let through.
	{"make a namespace", func(outside) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
	{"make a file in memory", func(outside) error { return opened(unix.MemfdCreate("", unix.MFD_CLOEXEC)) }},
	{"share memory", func(outside) error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), 0o600)
		if err == nil {
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
		return err
	}},
}

// tryAll makes every attempt. It returns their number, and the names of those that were not refused.
func tryAll(o outside) (tried int, done []string) {
	for _, a := range attempts {
		if !refused(a.try(o)) {
			done = append(done, a.name)
		}
	}
	return len(attempts), done
}

// become starts a program in this process, which ends by it. It returns where that is refused.
func become(program string, args ...string) error {
	return unix.Exec(program, append([]string{program}, args...), nil)
}

// refused reports whether the kernel did not let a call through, or has no such thing. Any other error is of a call
// that was let through, with nobody at its other end.
func refused(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT,
		unix.ESOCKTNOSUPPORT}, func(no error) bool { return errors.Is(err, no) })
}

func call(number, argument uintptr) error {
	if _, _, errno := unix.RawSyscall(number, argument, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func opened(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func withSocket(family, kind, protocol int, use func(fd int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	if use != nil {
		err = use(fd)
	}
	return errors.Join(err, unix.Close(fd))
}

func connect(protocol int, to netip.AddrPort) error {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, protocol,
		func(fd int) error { return unix.Connect(fd, address(to)) })
}

func listen(protocol int) error {
	return withSocket(unix.AF_INET, unix.SOCK_STREAM, protocol, func(fd int) error {
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	})
}

func address(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}
