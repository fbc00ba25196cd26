package ocr

import (
	"errors"

	"rehydrate/manifest"
)

// The reasons of a Failure.
const (
	ReasonTimeout  manifest.Reason = "ocr_timeout"  // not read within Config.Timeout, twice
	ReasonCrashed  manifest.Reason = "ocr_crashed"  // the worker died of it, twice
	ReasonMemory   manifest.Reason = "ocr_memory"   // the worker outgrew Config.MemoryLimit, twice
	ReasonProtocol manifest.Reason = "ocr_protocol" // the worker sent something else than an answer, twice
	ReasonEngine   manifest.Reason = "ocr_engine"   // the engine itself reported an error
	ReasonInternal manifest.Reason = "ocr_internal" // a mistake in this package: it panicked over the image
)

// A Failure is one image's trouble: data about that image, not a reason to stop a run.
type Failure struct {
	Reason manifest.Reason
	Detail string // for people, one line
}

func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Detail }

// again reports whether a fresh worker may do better: all but an error of the engine, and a
// mistake of ours, can come from what the old worker, or the machine, had been through.
func (f *Failure) again() bool { return f.Reason != ReasonEngine && f.Reason != ReasonInternal }

// A StartError says that no worker could be started, so that no image can be read: it
// stops a run.
type StartError struct {
	Err  error
	Hint string // what to try
}

func (e *StartError) Error() string { return "start an OCR worker: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ErrClosed is returned by Read on a closed pool.
var ErrClosed = errors.New("ocr pool is closed")
