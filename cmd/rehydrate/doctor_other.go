//go:build !linux

package main

// landlockABI is 0: only Linux has landlock.
func landlockABI() int { return 0 }
