package main

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// olderCalls are needed calls that only this architecture has.
var olderCalls = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_TIME}
