//go:build !linux

package ocr

import "syscall"

// Elsewhere a worker ends with its stdin, and only the deadline bounds it.
func processAttributes() *syscall.SysProcAttr { return nil }

func limitAddressSpace(int, int64) error { return nil }

func residentBytes(int) int64 { return 0 }
