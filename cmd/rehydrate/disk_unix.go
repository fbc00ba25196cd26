//go:build unix

package main

import "syscall"

// freeBytes returns the number of bytes that this user may still write to the disk of a folder.
func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
