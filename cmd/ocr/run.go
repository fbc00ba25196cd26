package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/ocr"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errSomeFailed is returned after every failed file has been reported by itself.
var errSomeFailed = errors.New("some files could not be read")

// usageError marks a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run is the whole program. env holds NAME=value pairs.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(env, stdin, stdout, stderr)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return report(ctx, root.ExecuteContext(ctx), stderr)
}

// report prints err as an error line and a hint line, and maps it to the exit status.
func report(ctx context.Context, err error, stderr io.Writer) int {
	var usage usageError
	var start *ocr.StartError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "ocr: error: interrupted")
		return exitInterrupted
	case errors.Is(err, errSomeFailed):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "ocr: error: %v\nocr: hint: see ocr --help\n", err)
		return exitUsage
	case errors.As(err, &start):
		fmt.Fprintf(stderr, "ocr: error: %v\nocr: hint: %s\n", err, start.Hint)
	default:
		fmt.Fprintf(stderr, "ocr: error: %v\n", err)
	}
	return exitFailed
}

// options are the flags of `ocr FILE...`.
type options struct {
	json        bool
	verbose     bool
	workers     int
	timeout     time.Duration
	tessdataDir string
}

func rootCommand(env []string, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "ocr FILE...",
		Short: "Read the text of images with Tesseract",
		Long: `Read the text of images (JPEG, PNG, GIF, WebP) with Tesseract and print it.

Each file is read as rehydrate reads it: the same limits, passes and merge of words.
With several files, a line "==> FILE <==" stands before the text of each. With --json
there is one object a line for each file, in the order given:

  {"file", "text", "confidence", "words": [{"text", "confidence", "box"}]}
  {"file", "error"}

where confidence is 0 to 100 and box is left, top, right, bottom in pixels. text has the
words of confidence 60 and more; words has those from 50.

Contacts nothing, writes nothing.

Exit status: 0 every file was read; 1 some could not be; 2 wrong usage; 130 interrupted.`,
		Example:       "  ocr meme.jpg\n  ocr --json images/*.png",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no file was named")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			return readFiles(cmd.Context(), o, files, stdout, stderr)
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.Flags().BoolVar(&o.json, "json", false, "print one JSON object a line")
	root.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log the starts and ends of workers to stderr")
	root.Flags().IntVar(&o.workers, "workers", runtime.NumCPU(), "worker processes at most")
	root.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "time for one image")
	root.Flags().StringVar(&o.tessdataDir, "tessdata-dir", "", "folder of eng.traineddata (default: TESSDATA_PREFIX, then the usual places)")
	root.AddCommand(workerCommand(env, stdin, stdout))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// workerCommand is what a supervisor starts; people have no use for it.
func workerCommand(env []string, stdin io.Reader, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Answer a supervisor on stdin and stdout",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{errors.New("worker takes no arguments")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), env, stdin, stdout)
		},
	}
}

// poolConfig starts workers of this very program.
func poolConfig(o options, stderr io.Writer) (ocr.Config, error) {
	if o.workers < 1 {
		return ocr.Config{}, usageError{fmt.Errorf("--workers %d: at least one is needed", o.workers)}
	}
	if o.timeout <= 0 {
		return ocr.Config{}, usageError{fmt.Errorf("--timeout %v: must be over zero", o.timeout)}
	}
	self, err := os.Executable()
	if err != nil {
		return ocr.Config{}, fmt.Errorf("find this program, to start its workers: %w", err)
	}
	c := ocr.Config{Command: []string{self, "worker"}, Workers: o.workers, Timeout: o.timeout, TessdataDir: o.tessdataDir}
	if o.verbose {
		c.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c, nil
}
