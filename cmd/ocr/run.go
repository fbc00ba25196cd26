package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/internal/printable"
	"rehydrate/internal/userfile"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitSomeFailed  = 3
	exitInterrupted = 130
)

// exitHelp is the same for every command but doctor.
const exitHelp = `Exit status:
  0    every image was read
  1    failed: no worker could be started, or the output could not be written
  2    wrong usage: nothing was read
  3    some images could not be read; the others were
  130  interrupted: what was printed is complete`

// An exitCode ends the program with a status after everything has been said.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

// usage is the error of a wrong command line; hint is empty for the help.
func usage(hint, format string, args ...any) error {
	return &userfile.Fault{Err: fmt.Errorf(format, args...), Hint: hint, Flag: true}
}

// run is the whole program. env holds NAME=value pairs.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(env, stdin, stdout, stderr)
	root.SetHelpFunc(console.Help(stdout))
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return report(ctx, root.ExecuteContext(ctx), stderr)
}

// report prints err as one line and below it what to type, and maps it to the exit status.
func report(ctx context.Context, err error, stderr io.Writer) int {
	var wrong *userfile.Fault
	var start *ocr.StartError
	var said exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		complain(stderr, err, cmp.Or(wrong.Hint, "usage: ocr FILE|DIR...; ocr --help lists the flags"))
		return exitUsage
	case errors.As(err, &said):
		return int(said)
	case ctx.Err() != nil: // whatever it was that noticed the interrupt first
		complain(stderr, errors.New("interrupted"), "")
		return exitInterrupted
	case errors.As(err, &start):
		complain(stderr, err, start.Hint+"; ocr doctor says what is missing")
	default:
		complain(stderr, err, "")
	}
	return exitFailed
}

func complain(stderr io.Writer, err error, hint string) {
	fmt.Fprintf(stderr, "ocr: %s\n", printable.EscapedLine(err.Error()))
	if hint != "" {
		fmt.Fprintf(stderr, "  %s\n", printable.EscapedLine(hint))
	}
}

// options are the flags of `ocr FILE|DIR...`.
type options struct {
	json        bool
	filter      bool
	hocr        string // "" off, "-" stdout, else a folder
	parquet     string
	draw        string
	force       bool
	verbose     bool
	workers     int
	timeout     time.Duration
	tessdataDir string
	self        string // this program, to start its workers
}

const rootHelp = `Read the text of images (JPEG, PNG, GIF, WebP) with Tesseract and print it.

Each image is read as rehydrate reads it: with the same limits, lines and dictionary. Name
images or folders of images; - is one image on stdin. Images are recognised by their content,
not by their names, and a JPEG is turned upright as its EXIF says.

With several images, a line "==> FILE <==" comes before the text of each. --json prints for
each image file, text, confidence and words; a word has text, confidence (0 to 100), box [x, y,
width, height] in pixels, line, and accepted (certain enough for the text). An image that
cannot be read has error and reason instead.

Files are written whole or not at all, and never over an image. ocr sends no request and shows
no image.

` + exitHelp

func rootCommand(env []string, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var o options
	// set by the script that scripts/bundle puts before a program that a loader of its own starts
	for _, pair := range env {
		if program, ok := strings.CutPrefix(pair, "OCR_PROGRAM="); ok {
			o.self = program
		}
	}
	root := &cobra.Command{
		Use:           "ocr FILE|DIR...",
		Short:         "Read the text of images with Tesseract",
		Long:          rootHelp,
		Example:       "  ocr meme.jpg\n  ocr --json images/ > text.jsonl\n  ocr --draw looked-at/ --parquet text.parquet images/\n  curl ... | ocr",
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && piped(stdin) { // curl ... | ocr
				args = []string{stdinName}
			}
			if err := o.check(args); err != nil {
				return err
			}
			j := job{options: o, stdin: stdin, stdout: stdout, console: console.New("ocr", stderr, stderr, "", time.Now)}
			defer j.console.Done()
			return j.run(cmd.Context(), args)
		},
	}
	// Cobra's own errors have no type that report could know.
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("", "%w", err) })
	flags := root.Flags()
	flags.BoolVar(&o.json, "json", false, "print one JSON object per image")
	flags.StringVar(&o.hocr, "hocr", "", "print hOCR; --hocr=DIR writes one file per image into this `folder`")
	flags.Lookup("hocr").NoOptDefVal = stdinName // --hocr alone is the document on stdout
	flags.StringVar(&o.parquet, "parquet", "", "write a Parquet `file` with one row per image")
	flags.StringVar(&o.draw, "draw", "",
		"write PNG images into this `folder` (or .png file) that show what was read where: green to orange is accepted, red is not")
	flags.BoolVar(&o.filter, "filter", false,
		"only say whether the text is english, not_english, unreadable or no_text")
	flags.BoolVar(&o.force, "force", false, "write over the files of an earlier run")
	root.PersistentFlags().BoolVarP(&o.verbose, "verbose", "v", false, "log when workers start and end")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "number of worker processes")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "longest time for one image")
	root.PersistentFlags().StringVar(&o.tessdataDir, "tessdata-dir", "",
		"`folder` with eng.traineddata (default: TESSDATA_PREFIX, then the usual places)")
	root.AddCommand(doctorCommand(&o, env, stdout, stderr), conformCommand(&o, stdout, stderr),
		workerCommand(env, stdin, stdout), sandboxCommand(env, stdout), becameCommand(stdout))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// check refuses what cannot be meant, before anything is read.
func (o options) check(args []string) error {
	onStdin := 0
	for _, arg := range args {
		if arg == stdinName {
			onStdin++
		}
	}
	files := o.hocr != "" || o.parquet != "" || o.draw != ""
	switch {
	case len(args) == 0:
		return usage("", "no image was named, and none comes on stdin")
	case onStdin > 1:
		return usage("", "stdin has one image; name - once")
	case o.workers < 1:
		return usage("for example: --workers 2", "--workers takes 1 or more, not %d", o.workers)
	case o.timeout <= 0:
		return usage("for example: --timeout 30s", "--timeout takes a time over zero, not %v", o.timeout)
	case o.json && o.hocr == stdinName:
		return usage("write the hOCR into a folder: --hocr=DIR", "--json and --hocr both print to stdout")
	case o.filter && files:
		return usage("run ocr twice, with and without --filter",
			"--filter reads only what the decision needs, so there is no text for --hocr, --parquet or --draw")
	}
	return nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("", "%s takes no arguments", cmd.Name())
	}
	return nil
}

// newPool starts workers of this very program, with the dictionary of words.
func newPool(ctx context.Context, o options, words *language.Filter, stderr io.Writer) (*ocr.Pool, error) {
	c, err := o.ownConfig(words, stderr)
	if err != nil {
		return nil, err
	}
	return ocr.Start(ctx, c)
}

// ownConfig has workers of this very program read.
func (o options) ownConfig(words *language.Filter, stderr io.Writer) (ocr.Config, error) {
	if o.self == "" {
		var err error
		o.self, err = os.Executable()
		if err != nil {
			return ocr.Config{}, fmt.Errorf("find this program, to start its workers: %w", err)
		}
	}
	return o.config(o.self, words, stderr), nil
}

// config has workers of a program read with the dictionary of words.
func (o options) config(program string, words *language.Filter, stderr io.Writer) ocr.Config {
	c := ocr.Config{Command: []string{program, "worker"}, Workers: o.workers, Timeout: o.timeout,
		TessdataDir: o.tessdataDir,
		Dictionary:  words.Knows, DictionaryID: language.DictionaryDigest, DecisionOnly: o.filter}
	if o.verbose {
		c.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c
}
