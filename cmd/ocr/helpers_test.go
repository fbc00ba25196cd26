package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"rehydrate/pipeline/ocr"
)

// startPool starts a pool whose workers are this test binary as the program.
func startPool(t testing.TB, c ocr.Config) *ocr.Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Command = []string{self, "worker"}
	c.Env = append(c.Env, asProgram+"=1")
	pool, err := ocr.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// processCPU is the CPU time of this process without its children.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
