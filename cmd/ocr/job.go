package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize/english"

	"rehydrate/cmd/internal/console"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
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
	if err := j.plan(found); err != nil {
		return err
	}
	words, err := language.New()
	if err != nil {
		return err
	}
	pool, err := newPool(ctx, j.options, words, j.console)
	if err != nil {
		return err
	}
	defer pool.Close()
	// WithoutCancel: results that are there when an interrupt comes are still written.
	outputs, err := j.open(context.WithoutCancel(ctx), found, pool.Engine(), words)
	if err != nil {
		return err
	}
	count, err := j.readAll(ctx, newReader(pool, j.options, j.stdin), found, outputs)
	if err == nil {
		err = ctx.Err()
	}
	if closing := outputs.close(err == nil); err == nil {
		err = closing
	}
	j.console.Done()
	j.conclude(found, count, err)
	if err == nil && count.failed > 0 {
		return exitCode(exitSomeFailed)
	}
	return err
}

type counts struct{ read, failed int }

func (j *job) readAll(ctx context.Context, r *reader, found inputs, outputs outputs) (counts, error) {
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
		if err := outputs.write(got); err != nil {
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
func (j *job) conclude(found inputs, n counts, err error) {
	left := len(found.list) - n.read - n.failed
	files := j.parquet != "" || j.draw != ""
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
	for _, path := range []string{j.parquet, j.draw} {
		if path != "" && err == nil {
			parts = append(parts, "wrote "+printable.EscapedLine(path))
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

// plan decides every path that will be written. Before anything is read it refuses a path that is an image to
// read, that two inputs would share, or, without --force, that exists; and a folder that is read.
func (j *job) plan(found inputs) error {
	for _, folder := range found.folders {
		for _, out := range []string{j.draw, j.hocr} {
			if out != "" && realPath(folder) == realPath(out) {
				return usage("name another folder",
					"the folder %s is read: what is written there would be read the next time", out)
			}
		}
	}
	type target struct{ path, of string }
	targets := []target{{j.parquet, ""}}
	read := map[string]bool{} // by real path: two names of one file would otherwise pass as different files
	for i := range found.list {
		in := &found.list[i]
		if j.draw != "" {
			in.draw = filepath.Join(j.draw, in.rel+".png")
			if !found.several() && strings.EqualFold(filepath.Ext(j.draw), ".png") {
				in.draw = j.draw
			}
		}
		if j.hocr != "" && j.hocr != stdinName {
			in.hocr = filepath.Join(j.hocr, in.rel+".hocr")
		}
		targets = append(targets, target{in.draw, in.name}, target{in.hocr, in.name})
		if in.name != stdinName {
			read[realPath(in.name)] = true
		}
	}
	// Inputs are known by now, so that a later one protects its file from an earlier one's output.
	written := map[string]string{} // real path -> the input that it is for
	for _, t := range targets {
		if t.path == "" {
			continue
		}
		real := realPath(t.path)
		if other, twice := written[real]; twice {
			return usage("name the folder above them instead of the files", "%s and %s would both be written to %s", other,
				t.of, t.path)
		}
		if read[real] {
			return usage("name another place", "%s is an image to read: it is never written over", t.path)
		}
		if _, err := os.Lstat(t.path); err == nil && !j.force {
			return usage("name another place, or write over it with --force", "%s: there is a file of that name already",
				t.path)
		}
		written[real] = t.of
	}
	return nil
}

// open makes the outputs that the options ask for. Text goes to stdout where nothing else was
// asked for.
func (j *job) open(ctx context.Context, found inputs, engine ocr.Engine, words *language.Filter) (outputs, error) {
	var all outputs
	switch {
	case j.json && j.filter:
		all = append(all, jsonOutput(j.stdout, func(r result) any {
			return jsonDecision{r.name,
				decide(words, r.Reading)}
		}))
	case j.json:
		all = append(all, jsonOutput(j.stdout, newJSONReading))
	case j.hocr == stdinName:
		all = append(all, newHOCR(j.stdout, engine))
	case j.filter:
		all = append(all, textOutput(j.stdout, func(r result) string {
			return decide(words, r.Reading).Decision + "\t" + printable.EscapedLine(r.name) + "\n"
		}))
	case j.parquet == "" && j.draw == "" && j.hocr == "":
		all = append(all, textOutput(j.stdout, textOf(found.several())))
	}
	if j.hocr != "" && j.hocr != stdinName {
		all = append(all, fileOutput(ctx, j.force, func(r result) string { return r.hocr },
			func(w io.Writer, r result) error {
				page := newHOCR(w, engine)
				return errors.Join(page.write(r), page.close(true))
			}))
	}
	if j.draw != "" {
		all = append(all, fileOutput(ctx, j.force, func(r result) string { return r.draw },
			func(w io.Writer, r result) error {
				_, err := w.Write(r.overlay)
				return err
			}))
	}
	if j.parquet != "" {
		out, err := newParquetOutput(ctx, j.parquet, j.force, engine)
		if err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, nil
}
