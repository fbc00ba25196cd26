package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// syncFolder does nothing: Windows flushes files, refuses to flush a folder, and keeps names in the journal of NTFS.
func syncFolder(*os.File) error { return nil }

// isFull reports whether err says that the disk, or the user's share of it, is full.
func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
