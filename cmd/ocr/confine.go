package main

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// confine takes files and network from this process for good, but for reading the model's folder.
func confine(tessdata string) error {
	// A worker computes on what others made, and pipes are all that it needs. BestEffort: on kernels without Landlock,
	// or with an older one, it does what it can without an error.
	if err := landlock.V6.BestEffort().Restrict(landlock.RODirs(tessdata)); err != nil {
		return fmt.Errorf("confine the worker to %s: %w", tessdata, err)
	}
	return nil
}
