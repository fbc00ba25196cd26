package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"rehydrate/cmd/internal/console"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/language"
)

// A job is one call of `ocr FILE|DIR...`.
type job struct {
	options
	stdin   io.Reader
	stdout  io.Writer
	console *console.Console
}

// run reads every input and hands each result to the outputs, in order. However it ends,
// every file written by then is whole.
func (j *job) run(ctx context.Context, args []string) error {
	// All inputs and paths are checked before the workers start and the first file is made: a long run must not end in
	// a mistake that could be seen at its start.
	found, err := findInputs(ctx, args, j.outputFolder())
	if err != nil {
		return err
	}
	words, err := language.New()
	if err != nil {
		return err
	}
	outputs := j.outputs(found, words)
	if err := checkPlaces(outputs, found, j.force); err != nil {
		return err
	}
	pool, err := newPool(ctx, j.options, words, j.console)
	if err != nil {
		return err
	}
	defer pool.Close()
	// WithoutCancel: results that are there when an interrupt comes are still written.
	begun, err := begin(context.WithoutCancel(ctx), outputs, pool.Engine())
	if err != nil {
		return err
	}
	count, err := j.readAll(ctx, newReader(pool, j.options, j.stdin), found, begun)
	if err == nil {
		err = ctx.Err()
	}
	if closing := begun.close(err == nil); err == nil {
		err = closing
	}
	j.console.Done()
	j.conclude(found, outputs, count, err)
	if err == nil && count.failed > 0 {
		return exitCode(exitSomeFailed)
	}
	return err
}

type counts struct{ read, failed int }

func (j *job) readAll(ctx context.Context, r *reader, found inputs, to sinks) (counts, error) {
	var n counts
	for got := range r.inOrder(ctx, found.list) {
		var bad *badFile
		if got.err != nil && !errors.As(got.err, &bad) {
			return n, got.err
		}
		if bad != nil { // one bad file does not stop the others; the exit status reports it
			n.failed++
			if !j.json {
				complain(j.console, fmt.Errorf("%s: %w", got.name, bad), "")
			}
		} else {
			n.read++
		}
		j.console.Clear()
		if err := to.write(got); err != nil {
			return n, err
		}
		if done, total := n.read+n.failed, len(found.list); done < total {
			j.console.Show(progress(n, done, total))
		}
	}
	return n, nil
}

func progress(n counts, done, total int) console.Progress {
	failed := ""
	if n.failed > 0 {
		failed = fmt.Sprintf(", %d could not be read", n.failed)
	}
	return console.Progress{Words: "images" + failed, Line: fmt.Sprintf("%d of %d images%s", done, total, failed),
		Done: done, Total: total}
}

// conclude says on stderr what the output does not.
func (j *job) conclude(found inputs, outputs []output, n counts, err error) {
	left := len(found.list) - n.read - n.failed
	files := slices.ContainsFunc(outputs, func(o output) bool { return o.place != "" })
	if !files && (!found.several() || found.folders == nil && n.failed == 0 && left == 0) {
		return
	}
	parts := []string{english.Plural(n.read, "image", "") + " read"}
	if n.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be read", n.failed))
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("%d not reached", left))
	}
	if found.skipped > 0 {
		parts = append(parts, english.Plural(found.skipped, "other file", "")+" skipped")
	}
	for _, out := range outputs {
		if out.place != "" && err == nil {
			parts = append(parts, "wrote "+printable.EscapedLine(out.place))
		}
	}
	fmt.Fprintf(j.console, "ocr: %s\n", strings.Join(parts, ", "))
}

// outputFolder is the folder that gets a file for each image, "" for none. It is not read.
func (o options) outputFolder() string {
	if o.draw != "" || o.hocr == stdinName {
		return o.draw
	}
	return o.hocr
}
