package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
)

// An output is one kind of what a run makes. Each is in the file of its name: text, json, filter, parquet, draw, hocr.
type output struct {
	place string // the file or folder that it goes to, "" for stdout
	// fileOf is the file below place that is made of an image; nil for an output that makes none.
	fileOf func(input) string
	begin  func(context.Context, ocr.Engine) (sink, error) // makes nothing before
}

// A sink takes what came of each input, in order.
type sink struct {
	// write leaves what was written before whole, whatever comes next.
	write func(result) error
	// close ends the output; nil where there is nothing to end. complete is false after an interrupt or an
	// error: what gets its name at the end is thrown away then.
	close func(complete bool) error
}

// outputs are those that the options ask for. Text goes to stdout where nothing else was asked for.
func (j *job) outputs(found inputs, words *language.Filter) (all []output) {
	switch {
	case j.filter:
		all = append(all, filterOutput(j.stdout, words, j.json))
	case j.json:
		all = append(all, jsonOutput(j.stdout, newJSONReading))
	case j.hocr == stdinName:
		all = append(all, hocrOutput(j.stdout))
	case j.parquet == "" && j.draw == "" && j.hocr == "":
		all = append(all, textOutput(j.stdout, textOf(found.several())))
	}
	if j.parquet != "" {
		all = append(all, parquetOutput(j.parquet, j.force))
	}
	if j.draw != "" {
		all = append(all, drawOutput(j.draw, found.several(), j.force))
	}
	if j.hocr != "" && j.hocr != stdinName {
		all = append(all, hocrFiles(j.hocr, j.force))
	}
	return all
}

// checkPlaces refuses, before anything is read, a file to write that is an image to read, that two inputs would share,
// or, without force, that exists; and a folder that is read.
func checkPlaces(all []output, found inputs, force bool) error {
	for _, folder := range found.folders {
		for _, out := range all {
			if out.fileOf != nil && realPath(folder) == realPath(out.place) {
				return usage("name another folder",
					"the folder %s is read: what is written there would be read the next time", out.place)
			}
		}
	}
	// Inputs come first, so that a later one protects its file from an earlier one's output. By real path: two names of
	// one file would otherwise pass as different files.
	read, written := map[string]bool{}, map[string]string{} // of what is written, the input that it is for
	for _, in := range found.list {
		if in.name != stdinName {
			read[realPath(in.name)] = true
		}
	}
	check := func(path, of string) error {
		real := realPath(path)
		other, twice := written[real]
		written[real] = of
		_, err := os.Lstat(path)
		switch {
		case twice:
			return usage("name the folder above them instead of the files", "%s and %s would both be written to %s",
				other, of, path)
		case read[real]:
			return usage("name another place", "%s is an image to read: it is never written over", path)
		case err == nil && !force:
			return usage("name another place, or write over it with --force", "%s: there is a file of that name already",
				path)
		}
		return nil
	}
	for _, out := range all {
		if out.place != "" && out.fileOf == nil {
			if err := check(out.place, ""); err != nil {
				return err
			}
		}
	}
	for _, in := range found.list {
		for _, out := range all {
			if out.fileOf == nil {
				continue
			}
			if err := check(out.fileOf(in), in.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// sinks are outputs that have begun.
type sinks []sink

func begin(ctx context.Context, all []output, e ocr.Engine) (sinks, error) {
	var begun sinks
	for _, out := range all {
		s, err := out.begin(ctx, e)
		if err != nil {
			return nil, errors.Join(err, begun.close(false))
		}
		begun = append(begun, s)
	}
	return begun, nil
}

func (all sinks) write(r result) error {
	for _, s := range all {
		if err := s.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (all sinks) close(complete bool) error {
	var err error
	for _, s := range all {
		if s.close != nil {
			err = errors.Join(err, s.close(complete))
		}
	}
	return err
}

// onStdout is an output that begins by itself.
func onStdout(write func(result) error) output {
	return output{begin: func(context.Context, ocr.Engine) (sink, error) { return sink{write: write}, nil }}
}

func toStdout(out io.Writer, s string) error {
	if _, err := io.WriteString(out, s); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// create begins the file that will be called path, and makes its folder.
func create(ctx context.Context, path string, force bool) (*durable.File, error) {
	if err := durable.MkdirAll(ctx, filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", printable.EscapedLine(path), err)
	}
	// Keep, because somebody may have made a file of that name since checkPlaces looked.
	f, err := durable.Create(ctx, path, durable.Options{Keep: !force})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", printable.EscapedLine(path), err)
	}
	return f, nil
}

// fileOfEach writes the file that path names for each image that was read.
func fileOfEach(ctx context.Context, force bool, path func(input) string, fill func(io.Writer, result) error) sink {
	return sink{write: func(r result) error {
		if r.err != nil {
			return nil
		}
		f, err := create(ctx, path(r.input), force)
		if err != nil {
			return err
		}
		defer f.Discard() // nothing is left of half a file
		err = fill(f, r)
		if err == nil {
			err = f.Publish()
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", printable.EscapedLine(path(r.input)), err)
		}
		return nil
	}}
}

// system names the engine in one line.
func system(e ocr.Engine) string { return "tesseract " + e.Tesseract + ", leptonica " + e.Leptonica }
