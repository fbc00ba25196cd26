//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder makes the names in an open folder durable.
func syncFolder(f *os.File) error { return f.Sync() }

// isFull reports whether err says that the disk, or the user's share of it, is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
