package main

import (
	"io"

	"rehydrate/internal/printable"
)

// textOutput prints something of each image that could be read; the others are told on stderr.
func textOutput(out io.Writer, text func(result) string) output {
	return onStdout(func(r result) error {
		if r.err != nil {
			return nil
		}
		return toStdout(out, text(r))
	})
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
