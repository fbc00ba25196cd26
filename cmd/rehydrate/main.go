// Rehydrate turns an annotation-only release of a social media dataset back into a dataset,
// on the machine of someone who is allowed to have it.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"
	_ "time/tzdata" // for machines that have no list of time zones

	"rehydrate/internal/ending"
	"rehydrate/internal/secret"
	"rehydrate/policy"
)

func main() {
	// The environment and the memory hold credentials. They do so whether or not this succeeds, and it cannot fail on
	// Linux.
	_ = secret.NoDumps()
	os.Exit(realMain(nil))
}

// realMain connects the program to the process. adjust is process.adjust.
func realMain(adjust func(*policy.Policy)) int {
	if os.Getenv("GOMEMLIMIT") == "" {
		// Without a soft limit, the garbage of a few large images doubles the memory that they take. With the program
		// itself and SQLite beside it, it stays under 300 MB.
		debug.SetMemoryLimit(240 << 20)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var hungUp atomic.Bool
	// The first signal: finish what is in flight. The second: end at once.
	stop := ending.Watch(func() { hungUp.Store(true) }, cancel)
	return run(ctx, process{
		args: os.Args[1:], getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		executable: os.Executable, now: time.Now, stop: stop, hungUp: hungUp.Load, adjust: adjust,
	})
}
