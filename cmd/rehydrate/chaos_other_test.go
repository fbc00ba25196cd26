//go:build !linux

package main

// beAsked is for the faults of the chaos tests, which take Linux.
func beAsked() {}
