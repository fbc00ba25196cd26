package main

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// olderCalls are needed calls that only this architecture has.
var olderCalls []uintptr
