package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/word"
	"rehydrate/manifest"
)

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
	return onStdout(func(r result) error {
		var v any
		if bad, ok := errors.AsType[*badFile](r.err); ok {
			v = jsonTrouble{r.name, bad.Error(), bad.reason}
		} else {
			v = line(r)
		}
		// Into memory first, so that a line goes out in one write and whole.
		text, err := jsonscan.Marshal(v)
		if err != nil {
			return err
		}
		return toStdout(out, escapeControls(string(text))+"\n")
	})
}

// escapeControls escapes what JSON may hold plainly and a terminal should not get: C1
// controls and format characters, which a file's name can have.
func escapeControls(line string) string {
	var b strings.Builder
	for _, r := range line {
		if !unicode.In(r, unicode.C) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // JSON counts in UTF-16
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
