package userfile

import (
	"bufio"
	"bytes"
	"io"
)

// mark is the byte order mark in UTF-8. Excel and Windows begin files of text with it, and it is no part of the text.
const mark = "\ufeff"

// Unmarked returns a text without the byte order mark at its beginning.
func Unmarked(text []byte) []byte { return bytes.TrimPrefix(text, []byte(mark)) }

// SkipMark passes over a byte order mark that stands next in a text.
func SkipMark(in *bufio.Reader) {
	// An error comes again with the next read.
	if next, _ := in.Peek(len(mark)); string(next) == mark {
		_, _ = in.Discard(len(mark))
	}
}

// Text returns a reader of the text in r without the byte order mark at its beginning. It reads from r at once.
func Text(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	SkipMark(in)
	return in
}
