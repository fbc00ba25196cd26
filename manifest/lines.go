package manifest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Limits of the files read here. A release of a million posts with digests holds about
// 150 bytes a row, so none of these is near a real file.
const (
	maxLine    = 64 << 10  // bytes of a line, and of a CSV record with line breaks in it
	maxRows    = 1_000_000 // rows of a manifest, outcomes or tombstones file
	maxFile    = 256 << 20 // bytes of a manifest
	maxColumns = 1000      // columns of a manifest
)

// A lineReader gives the lines of a text file without their ends, within the limits.
type lineReader struct {
	in   *bufio.Reader
	file string
	line int // number of the line that next gave last
}

func newLineReader(r io.Reader, file string) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, maxLine+2), file: file} // 2: CR LF
}

// next gives the next line; it is valid until the call after. The error is io.EOF at
// the end, a *Problem for a line that is to be skipped, or the reader's own.
func (l *lineReader) next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if err == io.EOF && len(text) == 0 {
		return nil, io.EOF
	}
	l.line++
	long := false
	for ; err == bufio.ErrBufferFull; _, err = l.in.ReadSlice('\n') {
		long = true
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read line %d: %w", l.line, err)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if long || len(text) > maxLine {
		return nil, l.problem(0, "the line is longer than 64 KiB",
			"take long texts out of the file; ids and labels are all it needs")
	}
	if p := l.fault(text); p != nil {
		return nil, p
	}
	return text, nil
}

// nextFilled gives the next line with more than white space.
func (l *lineReader) nextFilled() ([]byte, error) {
	for {
		text, err := l.next()
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return text, err
		}
	}
}

func (l *lineReader) problem(column int, message, hint string) *Problem {
	return &Problem{File: l.file, Line: l.line, Column: column, Message: message, Hint: hint}
}

// fault finds bytes that no text file of ours has.
func (l *lineReader) fault(text []byte) *Problem {
	if l.line == 1 {
		if message, hint := byteOrderMark(text); message != "" {
			return l.problem(1, message, hint)
		}
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return l.problem(i+1, "the line has a NUL byte",
			"the file is damaged or in another encoding: save it as plain UTF-8 text")
	}
	if utf8.Valid(text) {
		return nil
	}
	i := bytes.IndexRune(text, utf8.RuneError) // finds broken bytes, and the rune itself
	for r, size := utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(text[i:]) {
		i += size
	}
	return l.problem(i+1, fmt.Sprintf("byte 0x%02x is not UTF-8", text[i]),
		"save the file with the encoding UTF-8; it seems to have another, such as Windows-1252")
}

// byteOrderMark words the problem of a text that starts with one, "" for none.
func byteOrderMark(text []byte) (message, hint string) {
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return "the file starts with a byte order mark (UTF-8 BOM)",
			`save it as "UTF-8", not "UTF-8 with BOM"; Excel's "CSV UTF-8" adds one`
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "the file is UTF-16 (it starts with a byte order mark)", `save it with the encoding "UTF-8", without BOM`
	}
	return "", ""
}
