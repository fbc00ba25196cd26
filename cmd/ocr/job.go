package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rehydrate/cmd/internal/console"
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
	// All inputs and paths are checked before the workers start and the first file is made.
	found, err := findInputs(ctx, args, j.outputFolder())
	if err != nil {
		return err
	}
	planned, err := j.plan(args, found)
	if err != nil {
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
	outputs, err := j.open(context.WithoutCancel(ctx), found, planned, pool.Engine(), words)
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
		return errSomeFailed
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
	return console.Progress{Words: "images" + failed, Line: fmt.Sprintf("%d of %d images%s", done, total, failed), Done: done, Total: total}
}

// conclude says on stderr what the output does not.
func (j *job) conclude(found inputs, n counts, err error) {
	left := len(found.list) - n.read - n.failed
	files := j.parquet != "" || j.draw != ""
	if !files && (!found.several() || !found.folders && n.failed == 0 && left == 0) {
		return
	}
	parts := []string{counted(n.read, "image", "images") + " read"}
	if n.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be read", n.failed))
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("%d not reached", left))
	}
	if found.skipped > 0 {
		parts = append(parts, counted(found.skipped, "other file", "other files")+" skipped")
	}
	for _, path := range []string{j.parquet, j.draw} {
		if path != "" && err == nil {
			parts = append(parts, "wrote "+shown(path))
		}
	}
	fmt.Fprintf(j.console, "ocr: %s\n", strings.Join(parts, ", "))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// outputFolder is the folder that gets a file for each image, "" for none. It is not read.
func (o options) outputFolder() string {
	if o.draw != "" || o.hocr == stdinName {
		return o.draw
	}
	return o.hocr
}

// A plan says where the files of each input go: paths[i] are those of input i.
type plan struct{ draw, hocr []string }

// plan decides every path that will be written. Before anything is read it refuses a path that is an image to
// read, that two inputs would share, or, without --force, that exists; and a folder that is read.
func (j *job) plan(args []string, found inputs) (plan, error) {
	for _, folder := range []string{j.draw, j.hocr} {
		for _, arg := range args {
			if folder != "" && isFolder(arg) && sameFile(arg, folder) {
				return plan{}, usage("name another folder", "the folder %s is read: what is written there would be read the next time", folder)
			}
		}
	}
	var p plan
	if j.draw != "" {
		p.draw = destinations(j.draw, found, ".png")
		if len(found.list) == 1 && !found.folders && strings.EqualFold(filepath.Ext(j.draw), ".png") && !isFolder(j.draw) {
			p.draw = []string{j.draw}
		}
	}
	if j.hocr != "" && j.hocr != stdinName {
		p.hocr = destinations(j.hocr, found, ".hocr")
	}
	// Links are followed: two names of one file would otherwise pass as different files.
	read, writer := map[string]bool{}, map[string]string{} // by real path; the input that a path is for
	for _, in := range found.list {
		read[realPath(in.name)] = in.name != stdinName
	}
	for _, paths := range [][]string{p.draw, p.hocr, {j.parquet}} {
		for i, path := range paths {
			if path == "" {
				continue
			}
			real := realPath(path)
			if other, twice := writer[real]; twice {
				return plan{}, usage("name the folder above them instead of the files", "%s and %s would both be written to %s", other, found.list[i].name, path)
			}
			if read[real] {
				return plan{}, usage("name another place", "%s is an image to read: it is never written over", path)
			}
			if _, err := os.Lstat(path); err == nil && !j.force {
				return plan{}, usage("name another place, or write over it with --force", "%s: there is a file of that name already", path)
			}
			if i < len(found.list) {
				writer[real] = found.list[i].name
			}
		}
	}
	return p, nil
}

// destinations names a file below folder for each input, at its path below the folder that it was found in.
func destinations(folder string, found inputs, ext string) []string {
	paths := make([]string, len(found.list))
	for i, in := range found.list {
		paths[i] = filepath.Join(folder, in.rel+ext)
	}
	return paths
}

// realPath is path with all links followed; where it does not exist yet, those of its folder.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// open makes the outputs that the options ask for. Text goes to stdout where nothing else was
// asked for.
func (j *job) open(ctx context.Context, found inputs, p plan, engine ocr.Engine, words *language.Filter) (outputs, error) {
	var all outputs
	var judge func(ocr.Reading) decision
	if j.filter {
		judge = func(r ocr.Reading) decision { return decide(words, r) }
	}
	switch {
	case j.json:
		all = append(all, &jsonOutput{out: j.stdout, judge: judge})
	case j.hocr == stdinName:
		all = append(all, &hocrOutput{out: j.stdout, engine: engine})
	case j.filter:
		all = append(all, &filterOutput{out: j.stdout, judge: judge})
	case j.parquet == "" && j.draw == "" && j.hocr == "":
		all = append(all, &textOutput{out: j.stdout, headers: found.several()})
	}
	if p.hocr != nil {
		all = append(all, &fileOutput{ctx: ctx, paths: p.hocr, force: j.force, fill: func(w io.Writer, r result) error {
			page := &hocrOutput{out: w, engine: engine}
			return errors.Join(page.write(r), page.close(true))
		}})
	}
	if p.draw != nil {
		all = append(all, &fileOutput{ctx: ctx, paths: p.draw, force: j.force, fill: func(w io.Writer, r result) error {
			_, err := w.Write(r.overlay)
			return err
		}})
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
