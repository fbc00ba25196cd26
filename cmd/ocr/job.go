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

// run reads every input and hands what came of each to the outputs, in order. A file that
// cannot be read is reported and the rest go on; errSomeFailed tells of it at the end.
// However it ends, what was written by then is whole.
func (j *job) run(ctx context.Context, args []string) error {
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
	outputs, err := j.open(found, planned, pool.Engine(), words)
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
		if bad != nil {
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
	if !found.several() && j.parquet == "" && j.draw == "" {
		return
	}
	left := len(found.list) - n.read - n.failed
	if !found.folders && n.failed == 0 && left == 0 && j.parquet == "" && j.draw == "" {
		return
	}
	parts := []string{fmt.Sprintf("%d images read", n.read)}
	if n.read == 1 {
		parts[0] = "1 image read"
	}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(n.failed, "could not be read")
	add(left, "not reached")
	if found.skipped == 1 {
		add(1, "other file skipped")
	} else {
		add(found.skipped, "other files skipped")
	}
	if err == nil {
		for _, path := range []string{j.parquet, j.draw} {
			if path != "" {
				parts = append(parts, "wrote "+shown(path))
			}
		}
	}
	fmt.Fprintf(j.console, "ocr: %s\n", strings.Join(parts, ", "))
}

// outputFolder is the folder that gets a file for each image, "" for none. It is not read.
func (o options) outputFolder() string {
	if o.draw != "" {
		return o.draw
	}
	if o.hocr != stdinName {
		return o.hocr
	}
	return ""
}

// A plan says where the files of each input go: paths[i] are those of input i.
type plan struct{ draw, hocr []string }

// plan decides every path that will be written, and refuses, before anything is read, those
// that cannot be.
func (j *job) plan(args []string, found inputs) (plan, error) {
	var p plan
	if j.draw != "" {
		one := len(found.list) == 1 && !found.folders && strings.EqualFold(filepath.Ext(j.draw), ".png") && !isFolder(j.draw)
		p.draw = destinations(j.draw, found, ".png", one)
	}
	if j.hocr != "" && j.hocr != stdinName {
		p.hocr = destinations(j.hocr, found, ".hocr", false)
	}
	for _, folder := range []string{j.draw, j.hocr} {
		for _, arg := range args {
			if folder != "" && isFolder(arg) && sameFile(arg, folder) {
				return plan{}, usage("name another folder", "the folder %s is read: what is written there would be read the next time", folder)
			}
		}
	}
	read, taken := resolvedInputs(found), map[string]int{}
	for _, paths := range [][]string{p.draw, p.hocr, {j.parquet}} {
		for i, path := range paths {
			if err := j.claim(path, i, found, read, taken); err != nil {
				return plan{}, err
			}
		}
	}
	return p, nil
}

// claim refuses a path that exists, that two inputs would share, or that belongs to an image
// that is read. i is the input that it is for.
func (j *job) claim(path string, i int, found inputs, read map[string]bool, taken map[string]int) error {
	if path == "" {
		return nil
	}
	key := resolved(path)
	if other, twice := taken[key]; twice {
		return usage("name the folder above them instead of the files", "%s and %s would both be written to %s",
			found.list[other].name, found.list[i].name, path)
	}
	taken[key] = i
	if read[key] {
		return usage("name another place", "%s is an image to read: it is never written over", path)
	}
	if err := vacant(path); err != nil && !(j.force && errors.Is(err, errExists)) {
		return usage("name another place, or write over it with --force", "%s: %w", path, err)
	}
	return nil
}

// destinations names a file for each input: below folder, at the input's path below the
// folder it was found in; or folder itself, for the one input.
func destinations(folder string, found inputs, ext string, one bool) []string {
	if one {
		return []string{folder}
	}
	paths := make([]string, len(found.list))
	for i, in := range found.list {
		paths[i] = filepath.Join(folder, in.rel+ext)
	}
	return paths
}

// resolvedInputs holds each input's path both as it is found and as its links lead.
func resolvedInputs(found inputs) map[string]bool {
	paths := map[string]bool{}
	for _, in := range found.list {
		if in.name == stdinName {
			continue
		}
		paths[resolved(in.name)] = true
		if target, err := filepath.EvalSymlinks(in.name); err == nil {
			paths[resolved(target)] = true
		}
	}
	return paths
}

// resolved is path with the links of its folder followed: the name that a rename would replace.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// open makes the outputs that the options ask for. Text goes to stdout where nothing else was
// asked for.
func (j *job) open(found inputs, p plan, engine ocr.Engine, words *language.Filter) (outputs, error) {
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
		all = append(all, &fileOutput{paths: p.hocr, force: j.force, fill: func(w io.Writer, r result) error {
			page := &hocrOutput{out: w, engine: engine}
			return errors.Join(page.write(r), page.close(true))
		}})
	}
	if p.draw != nil {
		all = append(all, &fileOutput{paths: p.draw, force: j.force, fill: func(w io.Writer, r result) error {
			_, err := w.Write(r.overlay)
			return err
		}})
	}
	if j.parquet != "" {
		out, err := newParquetOutput(j.parquet, j.force, engine)
		if err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, nil
}
