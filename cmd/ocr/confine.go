package main

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"rehydrate/internal/secret"
)

// A confinement is what a process was confined with.
type confinement struct {
	Landlock int  `json:"landlock"` // the kernel's version, 0 where it has none
	Seccomp  bool `json:"seccomp"`
}

func (c confinement) String() string {
	switch {
	case c.Landlock > 0 && c.Seccomp:
		return fmt.Sprintf("landlock, version %d, and seccomp", c.Landlock)
	case c.Landlock > 0:
		return fmt.Sprintf("landlock, version %d, without seccomp", c.Landlock)
	case c.Seccomp:
		return "seccomp, without landlock"
	}
	return "this kernel has neither landlock nor seccomp for this program, and OCR workers run without them"
}

// confine takes files, network and other processes from this process for good. What is left is its memory, its threads,
// the clock and the files that are open. On a kernel that has not all of it, it does what it can, and returns what that
// is.
func confine(tessdata string) (did confinement, err error) {
	// A crash dump would hold a picture, and its text, where no purge looks.
	if err := secret.NoDumps(); err != nil {
		return did, err
	}
	// A worker computes on what others made, and pipes are all that it needs. Landlock first: it makes calls that are
	// refused afterwards. Without seccomp, its folder is all that a worker can read.
	if err := landlock.V11.BestEffort().Restrict(landlock.RODirs(tessdata)); err != nil {
		return did, fmt.Errorf("confine the worker to %s: %w", tessdata, err)
	}
	abi, err := llsyscall.LandlockGetABIVersion()
	if err == nil {
		did.Landlock = abi
	}
	did.Seccomp, err = allowCalls()
	if err != nil {
		return did, fmt.Errorf("confine the worker to the calls that it needs: %w", err)
	}
	return did, nil
}
