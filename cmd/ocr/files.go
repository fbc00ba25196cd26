package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"

	"rehydrate/pipeline/ocr"
	"rehydrate/policy"
)

// A fileResult is one file's line in --json.
type fileResult struct {
	File       string     `json:"file"`
	Text       string     `json:"text"`
	Confidence float64    `json:"confidence"`
	Words      []jsonWord `json:"words"`
}

type jsonWord struct {
	Text       string  `json:"text"`
	Confidence float64 `json:"confidence"`
	Box        [4]int  `json:"box"` // left, top, right, bottom
}

type fileError struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// readFiles reads and prints the files in the order given. A file that cannot be read
// is reported and the rest go on; errSomeFailed tells of it at the end.
func readFiles(ctx context.Context, o options, files []string, stdout, stderr io.Writer) error {
	config, err := poolConfig(o, stderr)
	if err != nil {
		return err
	}
	pool, err := ocr.Start(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := bufio.NewWriter(stdout)
	p := printer{options: o, out: out, stderr: stderr, headers: len(files) > 1}
	for result := range inOrder(ctx, pool, files, o.workers) {
		if isRunError(result.err) {
			return result.err
		}
		if err := p.print(result); err != nil {
			return fmt.Errorf("write the text of %s: %w", result.file, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.failed {
		return errSomeFailed
	}
	return nil
}

type reading struct {
	file string
	ocr.Reading
	err error
}

// inOrder reads files side by side and yields them in the order given, at most one more
// than workers at a time. The channel ends early when ctx does.
func inOrder(ctx context.Context, pool *ocr.Pool, files []string, workers int) <-chan reading {
	pending := make(chan chan reading, workers)
	ordered := make(chan reading)
	go func() {
		defer close(pending)
		for _, file := range files {
			slot := make(chan reading, 1)
			select {
			case <-ctx.Done():
				return
			case pending <- slot:
			}
			go func() {
				r, err := readFile(ctx, pool, file)
				slot <- reading{file, r, err}
			}()
		}
	}()
	go func() {
		defer close(ordered)
		for slot := range pending {
			var next reading
			select {
			case <-ctx.Done(): // a file can be a pipe that nobody writes to
				return
			case next = <-slot:
			}
			select {
			case <-ctx.Done():
				return
			case ordered <- next:
			}
		}
	}()
	return ordered
}

func readFile(ctx context.Context, pool *ocr.Pool, path string) (ocr.Reading, error) {
	img, err := decodeFile(path)
	if err != nil {
		return ocr.Reading{}, &badFile{err}
	}
	r, err := pool.Read(ctx, img)
	if failure, ok := errors.AsType[*ocr.Failure](err); ok {
		return r, &badFile{failure}
	}
	return r, err
}

// decodeFile reads an image file as rehydrate treats a downloaded one: size, type and
// pixels are checked before anything is decoded.
func decodeFile(path string) (image.Image, error) {
	p := policy.Default()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte over the limit is enough for the gate to refuse it.
	body, err := io.ReadAll(io.LimitReader(f, p.Images.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if _, fault := p.InspectImage(body); fault != nil {
		return nil, fault
	}
	return policy.DecodeImage(body)
}

// A badFile is the trouble of one file; all other errors end the run.
type badFile struct{ error }

func (b *badFile) Unwrap() error { return b.error }

func isRunError(err error) bool {
	_, bad := errors.AsType[*badFile](err)
	return err != nil && !bad
}

// A printer writes results as the options ask.
type printer struct {
	options
	out     *bufio.Writer
	stderr  io.Writer
	headers bool // a line with the file's name before each text
	failed  bool
	printed int
}

func (p *printer) print(r reading) error {
	if r.err != nil {
		p.failed = true
		if p.json {
			return p.line(fileError{r.file, r.err.Error()})
		}
		_, err := fmt.Fprintf(p.stderr, "ocr: error: %s: %v\n", r.file, r.err)
		return err
	}
	if p.json {
		return p.line(newFileResult(r))
	}
	if p.headers {
		if p.printed > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "==> %s <==\n", r.file)
	}
	p.printed++
	if r.Text != "" {
		fmt.Fprintln(p.out, r.Text)
	}
	// The writer keeps its first error for Flush.
	return p.out.Flush()
}

func (p *printer) line(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return p.out.Flush()
}

func newFileResult(r reading) fileResult {
	out := fileResult{File: r.file, Text: r.Text, Confidence: r.Confidence, Words: []jsonWord{}}
	for _, w := range r.Words {
		out.Words = append(out.Words, jsonWord{w.Text, w.Confidence,
			[4]int{w.Box.Min.X, w.Box.Min.Y, w.Box.Max.X, w.Box.Max.Y}})
	}
	return out
}
