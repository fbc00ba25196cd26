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

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/durable"
	"rehydrate/internal/printable"
	"rehydrate/internal/word"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/policy"
)

// An output takes what came of each input, in order.
type output struct {
	// write leaves what was written before whole, whatever comes next.
	write func(result) error
	// close ends the output; nil where there is nothing to end. complete is false after an interrupt or an
	// error: what gets its name at the end is thrown away then.
	close func(complete bool) error
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
		if o.close != nil {
			err = errors.Join(err, o.close(complete))
		}
	}
	return err
}

func toStdout(out io.Writer, s string) error {
	if _, err := io.WriteString(out, s); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// textOutput prints something of each image that could be read; the others are told on stderr.
func textOutput(out io.Writer, text func(result) string) output {
	return output{write: func(r result) error {
		if r.err != nil {
			return nil
		}
		return toStdout(out, text(r))
	}}
}

// textOf gives the text of each image, after a line with the file's name where headers are wanted.
func textOf(headers bool) func(result) string {
	before := ""
	return func(r result) string {
		text := ""
		if headers {
			text = before + "==> " + printable.EscapedLine(r.name) + " <==\n"
			before = "\n"
		}
		if r.Text != "" {
			text += r.Text + "\n"
		}
		return text
	}
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
		// A word that no single reading gave as it is.
		Repair   word.Repair `json:"repair,omitempty"`
		Readings []string    `json:"readings,omitempty"`
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

func newJSONReading(r result) any {
	line := jsonReading{File: r.name, Text: r.Text, Confidence: r.Confidence, Words: []jsonWord{}}
	for _, w := range r.Words {
		line.Words = append(line.Words, jsonWord{w.Text, w.Confidence, [4]int{w.X, w.Y, w.W, w.H}, w.Line, w.Accepted,
			w.Repair, w.Readings})
	}
	return line
}

// jsonOutput prints a line for every input: what line makes of an image that could be read.
func jsonOutput(out io.Writer, line func(result) any) output {
	return output{write: func(r result) error {
		var v any
		if bad, ok := errors.AsType[*badFile](r.err); ok {
			v = jsonTrouble{r.name, bad.Error(), bad.reason}
		} else {
			v = line(r)
		}
		// Into memory first, so that a line goes out in one write and whole.
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		return toStdout(out, escapeControls(b.String()))
	}}
}

// escapeControls escapes what JSON may hold plainly and a terminal should not get: C1
// controls and format characters, which a file's name can have.
func escapeControls(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r == '\n' || !unicode.In(r, unicode.C) { // the only line end is that of the line
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // JSON counts in UTF-16
			fmt.Fprintf(&b, `\u%04x`, unit)
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

func decide(filter *language.Filter, r layout.Reading) decision {
	// All words, not the accepted ones alone: rehydrate judges by them, too.
	v := filter.Judge(r.Words, policy.Default().Filter.EnglishThreshold)
	d := decision{Decision: string(v.Outcome), Reason: v.Reason, Hit: v.Hit, Tokens: v.Tokens}
	switch {
	case v.Reason == language.ReasonNoText:
		d.Decision = "no_text"
	case v.Outcome == "":
		d.Decision = "english"
	}
	return d
}

// create begins the file that will be called path, and makes its folder.
func create(ctx context.Context, path string, force bool) (*durable.File, error) {
	if err := durable.MkdirAll(ctx, filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", printable.EscapedLine(path), err)
	}
	// Keep, because somebody may have made a file of that name since job.plan looked.
	f, err := durable.Create(ctx, path, durable.Options{Keep: !force})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", printable.EscapedLine(path), err)
	}
	return f, nil
}

// fileOutput writes the file that path names for each image that was read.
func fileOutput(ctx context.Context, force bool, path func(result) string, fill func(io.Writer, result) error) output {
	return output{write: func(r result) error {
		if r.err != nil {
			return nil
		}
		f, err := create(ctx, path(r), force)
		if err != nil {
			return err
		}
		defer f.Discard() // nothing is left of half a file
		err = fill(f, r)
		if err == nil {
			err = f.Publish()
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", printable.EscapedLine(path(r)), err)
		}
		return nil
	}}
}

// newParquetOutput writes one row an input into a file that gets its name at the end.
func newParquetOutput(ctx context.Context, path string, force bool, e ocr.Engine) (output, error) {
	file, err := create(ctx, path, force)
	if err != nil {
		return output{}, err
	}
	rows := dataset.NewReadingsWriter(file, build.Version(), map[string]string{
		"engine": system(e), "model": e.Model + " " + e.ModelSHA256, "parameters": e.Parameters,
		"fingerprint": e.Fingerprint(),
	})
	end := func(complete bool) error {
		defer file.Discard()
		if !complete { // half a table under its final name would pass as the whole
			return nil
		}
		err := rows.Close()
		if err == nil {
			err = file.Publish()
		}
		if err != nil {
			return fmt.Errorf("write the Parquet file: %w", err)
		}
		return nil
	}
	row := func(r result) error {
		if _, err := rows.Write([]dataset.ReadingRow{newRow(r)}); err != nil {
			return fmt.Errorf("write the row of %q: %w", r.name, err)
		}
		return nil
	}
	return output{row, end}, nil
}

func newRow(r result) dataset.ReadingRow {
	// A name need not be UTF-8, a Parquet string must be.
	row := dataset.ReadingRow{File: strings.ToValidUTF8(r.name, "\ufffd")}
	if bad, ok := errors.AsType[*badFile](r.err); ok {
		row.Error, row.Reason = new(strings.ToValidUTF8(bad.Error(), "\ufffd")), new(string(bad.reason))
		return row
	}
	row.Text, row.Confidence, row.SHA256 = &r.Text, new(float32(r.Confidence)), &r.sha256
	row.Width, row.Height = new(int32(r.width)), new(int32(r.height))
	for _, w := range r.Words {
		row.Words = append(row.Words, dataset.ReadingWord{Text: w.Text, Confidence: float32(w.Confidence),
			X: int32(w.X), Y: int32(w.Y), Width: int32(w.W), Height: int32(w.H),
			Line: int32(w.Line), Accepted: w.Accepted})
	}
	return row
}

// system names the engine in one line.
func system(e ocr.Engine) string { return "tesseract " + e.Tesseract + ", leptonica " + e.Leptonica }
