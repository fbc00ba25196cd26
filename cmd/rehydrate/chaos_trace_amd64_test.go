//go:build linux

package main

import "golang.org/x/sys/unix"

// Calls that newer architectures do not have.
var (
	oldRenames = []uintptr{unix.SYS_RENAME}
	oldUnlinks = []uintptr{unix.SYS_UNLINK}
)
