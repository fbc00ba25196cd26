package main

// #include <unistd.h>
import "C"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"rehydrate/internal/ending"
	"rehydrate/pipeline/ocr"
)

// workerCommand is what a supervisor starts; people have no use for it.
func workerCommand(env []string, stdin io.Reader, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Answer a supervisor on stdin and stdout",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			return serve(env, stdin, stdout)
		},
	}
}

// serve is the worker: one Tesseract client in one process.
func serve(env []string, stdin io.Reader, stdout io.Writer) (err error) {
	if !slices.Contains(env, "OMP_THREAD_LIMIT=1") {
		return usage("", "the worker needs OMP_THREAD_LIMIT=1 in its environment before it starts: "+
			"without it Tesseract's threads slow it down two to seven times")
	}
	// A signal ends the worker at once: it has nothing to tidy up, and a read of stdin cannot be interrupted.
	signal.Reset(ending.Signals()...)
	frames, err := reserveStdout(stdout)
	if err != nil {
		return err
	}
	r, _, err := startEngine(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return ocr.Serve(stdin, frames, r.engine, r.recognize)
}

// startEngine loads the model, then confines this process. The caller closes the engine.
func startEngine(env []string) (*tesseract, confinement, error) {
	dir, err := tessdataDir(env)
	if err != nil {
		return nil, confinement{}, err
	}
	// One client alone: gosseract's Init moves the process's stderr about.
	r, err := newTesseract(dir)
	if err != nil {
		return nil, confinement{}, err
	}
	// The model is loaded: from here on only pipes are used.
	did, err := confine(dir)
	if err != nil {
		return nil, did, errors.Join(err, r.Close())
	}
	return r, did, nil
}

// reserveStdout moves the process's stdout away and lets file descriptor 1 mean stderr. Any other writer is returned as
// it is.
func reserveStdout(stdout io.Writer) (io.Writer, error) {
	// A stray printf in C must not get between the messages.
	if stdout != io.Writer(os.Stdout) {
		return stdout, nil
	}
	fd, err := C.dup(1)
	if err != nil {
		return nil, fmt.Errorf("duplicate stdout: %w", err)
	}
	if _, err := C.dup2(2, 1); err != nil {
		return nil, fmt.Errorf("point stdout to stderr: %w", err)
	}
	return os.NewFile(uintptr(fd), "frames"), nil
}
