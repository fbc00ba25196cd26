package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf16"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/policy"
)

// An output takes what came of each input, in order.
type output interface {
	// write leaves what was written before whole, whatever comes next.
	write(result) error
	// close ends the output. complete is false after an interrupt or an error: what gets its
	// name at the end is thrown away then.
	close(complete bool) error
}

type outputs []output

func (all outputs) write(r result) error {
	for _, o := range all {
		if err := o.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (all outputs) close(complete bool) error {
	var err error
	for _, o := range all {
		err = errors.Join(err, o.close(complete))
	}
	return err
}

// textOutput prints the text of the images that could be read.
type textOutput struct {
	out     io.Writer
	headers bool // a line with the file's name before each text
	printed int
}

func (o *textOutput) write(r result) error {
	if r.err != nil {
		return nil // told on stderr
	}
	var b strings.Builder
	if o.headers {
		if o.printed > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "==> %s <==\n", shown(r.name))
	}
	o.printed++
	if r.Text != "" {
		b.WriteString(r.Text + "\n")
	}
	return toStdout(o.out, b.String())
}

func (o *textOutput) close(bool) error { return nil }

func toStdout(out io.Writer, s string) error {
	if _, err := io.WriteString(out, s); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// The lines of --json.
type (
	jsonReading struct {
		File       string     `json:"file"`
		Text       string     `json:"text"`
		Confidence float64    `json:"confidence"`
		Words      []jsonWord `json:"words"`
	}
	jsonWord struct {
		Text       string  `json:"text"`
		Confidence float64 `json:"confidence"`
		Box        [4]int  `json:"box"` // x, y, width, height
		Line       int     `json:"line"`
		Accepted   bool    `json:"accepted"`
	}
	jsonTrouble struct {
		File   string          `json:"file"`
		Error  string          `json:"error"`
		Reason manifest.Reason `json:"reason"`
	}
	jsonDecision struct {
		File string `json:"file"`
		decision
	}
)

// jsonOutput prints a line for every input.
type jsonOutput struct {
	out   io.Writer
	judge func(ocr.Reading) decision // nil for the readings themselves
}

func (o *jsonOutput) write(r result) error {
	var bad *badFile
	switch {
	case errors.As(r.err, &bad):
		return o.line(jsonTrouble{r.name, bad.Error(), bad.reason})
	case o.judge != nil:
		return o.line(jsonDecision{r.name, o.judge(r.Reading)})
	}
	line := jsonReading{File: r.name, Text: r.Text, Confidence: r.Confidence, Words: []jsonWord{}}
	for _, w := range r.Words {
		line.Words = append(line.Words, jsonWord{w.Text, w.Confidence,
			[4]int{w.Box.Min.X, w.Box.Min.Y, w.Box.Dx(), w.Box.Dy()}, w.Line, w.Accepted})
	}
	return o.line(line)
}

func (o *jsonOutput) close(bool) error { return nil }

// line writes a whole line at once.
func (o *jsonOutput) line(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return toStdout(o.out, escapeControls(b.String()))
}

// escapeControls escapes what JSON may hold plainly and a terminal should not get: C1
// controls and format characters, which a file's name can have. The line end stays.
func escapeControls(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n' || !unicode.In(r, unicode.C):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// A decision says whether an image's text is English, by the rule and the threshold that
// rehydrate uses.
type decision struct {
	Decision string          `json:"decision"` // english, not_english, unreadable, no_text
	Reason   manifest.Reason `json:"reason"`   // "" for plain English
	Hit      float64         `json:"hit"`      // share of the tokens in the dictionary
	Tokens   int             `json:"tokens"`
}

func decide(filter *language.Filter, r ocr.Reading) decision {
	words := make([]language.Word, len(r.Words))
	for i, w := range r.Words {
		words[i] = language.Word{Text: w.Text, Confidence: w.Confidence}
	}
	v := filter.Judge(words, policy.Default().Filter.EnglishThreshold)
	d := decision{Decision: string(v.Outcome), Reason: v.Reason, Hit: v.Hit, Tokens: v.Tokens}
	switch {
	case v.Reason == language.ReasonNoText:
		d.Decision = "no_text"
	case v.Outcome == "":
		d.Decision = "english"
	}
	return d
}

// filterOutput prints a line for every image that was read: the decision, a tab, the file.
type filterOutput struct {
	out   io.Writer
	judge func(ocr.Reading) decision
}

func (o *filterOutput) write(r result) error {
	if r.err != nil {
		return nil // told on stderr
	}
	return toStdout(o.out, o.judge(r.Reading).Decision+"\t"+shown(r.name)+"\n")
}

func (o *filterOutput) close(bool) error { return nil }

// create begins the file that will be called path, and makes its folder. Without force, a file that has the name
// by the time of Publish stays.
func create(ctx context.Context, path string, force bool) (*durable.File, error) {
	if err := durable.MkdirAll(ctx, filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", shown(path), err)
	}
	f, err := durable.Create(ctx, path, durable.Options{Keep: !force})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", shown(path), err)
	}
	return f, nil
}

// fileOutput writes a file for each image that was read.
type fileOutput struct {
	ctx   context.Context // of the job
	paths []string        // of the inputs
	force bool
	fill  func(io.Writer, result) error
}

func (o *fileOutput) write(r result) error {
	if r.err != nil {
		return nil
	}
	path := o.paths[r.index]
	f, err := create(o.ctx, path, o.force)
	if err != nil {
		return err
	}
	defer f.Discard()
	err = o.fill(f, r)
	if err == nil {
		err = f.Publish()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", shown(path), err)
	}
	return nil
}

func (o *fileOutput) close(bool) error { return nil }

// parquetOutput writes one row an input into a file that gets its name at the end.
type parquetOutput struct {
	file *durable.File
	rows *dataset.ReadingsWriter
}

func newParquetOutput(ctx context.Context, path string, force bool, e ocr.Engine) (*parquetOutput, error) {
	file, err := create(ctx, path, force)
	if err != nil {
		return nil, err
	}
	return &parquetOutput{file, dataset.NewReadingsWriter(file, version(), map[string]string{
		"engine": system(e), "model": e.Model + " " + e.ModelSHA256, "parameters": e.Parameters, "fingerprint": e.Fingerprint(),
	})}, nil
}

// system names the engine in one line.
func system(e ocr.Engine) string { return "tesseract " + e.Tesseract + ", leptonica " + e.Leptonica }

func (o *parquetOutput) write(r result) error {
	// A name need not be UTF-8, a Parquet string must be.
	row := dataset.ReadingRow{File: strings.ToValidUTF8(r.name, "\ufffd"), Text: r.Text, Confidence: r.Confidence,
		Width: r.width, Height: r.height, SHA256: r.sha256}
	var bad *badFile
	if errors.As(r.err, &bad) {
		row.Error, row.Reason = strings.ToValidUTF8(bad.Error(), "\ufffd"), string(bad.reason)
	}
	for _, w := range r.Words {
		row.Words = append(row.Words, dataset.ReadingWord{Text: w.Text, Confidence: float32(w.Confidence),
			X: int32(w.Box.Min.X), Y: int32(w.Box.Min.Y), Width: int32(w.Box.Dx()), Height: int32(w.Box.Dy()),
			Line: int32(w.Line), Accepted: w.Accepted})
	}
	return o.rows.Write(row)
}

func (o *parquetOutput) close(complete bool) error {
	defer o.file.Discard()
	if !complete { // half a table under its final name would pass as the whole
		return nil
	}
	err := o.rows.Close()
	if err == nil {
		err = o.file.Publish()
	}
	if err != nil {
		return fmt.Errorf("write the Parquet file: %w", err)
	}
	return nil
}
