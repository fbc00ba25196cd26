package console

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// widthOf returns what measures a terminal, now and after it changed; nil where w is not one.
func widthOf(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
		return 80 // a terminal that does not know
	}
}

// Joint stands for a space at which no line is broken, as within a command that a reader copies. A Folder writes it as
// a space. It is a space of mathematics, which no name of a file has.
const Joint = "\u205f"

// A Folder breaks lines between words where they go to a terminal, which would break them within words. Elsewhere lines
// stay as they are, but for Joint.
type Folder struct {
	out   io.Writer
	width func() int // nil where nothing is folded
	line  []byte     // that has no end yet, or the beginning of a Joint
}

// Fold returns a Folder of out.
func Fold(out io.Writer) *Folder { return &Folder{out: out, width: widthOf(out)} }

// Stop lets lines through as they are from now on.
func (f *Folder) Stop() { f.width = nil }

// Write writes the lines that are whole by now.
func (f *Folder) Write(p []byte) (int, error) {
	f.line = append(f.line, p...)
	if f.width == nil {
		return len(p), f.through()
	}
	end := bytes.LastIndexByte(f.line, '\n') + 1
	var b strings.Builder
	for line := range strings.Lines(string(f.line[:end])) {
		b.WriteString(strings.ReplaceAll(wrap(strings.TrimSuffix(line, "\n"), f.width()), Joint, " ") + "\n")
	}
	f.line = append([]byte(nil), f.line[end:]...)
	if _, err := io.WriteString(f.out, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// through writes what there is as it is, but for the beginning of a Joint at its end.
func (f *Folder) through() error {
	end := len(f.line)
	for n := 1; n < len(Joint); n++ {
		if bytes.HasSuffix(f.line, []byte(Joint[:n])) {
			end = len(f.line) - n
		}
	}
	_, err := f.out.Write(bytes.ReplaceAll(f.line[:end], []byte(Joint), []byte(" ")))
	f.line = append([]byte(nil), f.line[end:]...)
	return err
}

// Flush writes a last line without an end.
func (f *Folder) Flush() error {
	_, err := f.out.Write(bytes.ReplaceAll(f.line, []byte(Joint), []byte(" ")))
	f.line = nil
	return err
}

// cells ends before the last cell of a table's row: after its last two spaces, or after a line's indentation.
var cells = regexp.MustCompile(`^.*  |^ *`)

// wrap breaks a line between words. What follows stands below the last cell of its row, or below its beginning.
func wrap(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := utf8.RuneCountInString(cells.FindString(line))
	if indent > width*2/3 { // too little room is left there
		indent = utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeft(line, " "))
	}
	var b strings.Builder
	column, spaces := 0, 0 // spaces that wait for the word behind them
	for word := range strings.SplitSeq(line, " ") {
		n := utf8.RuneCountInString(word)
		if n > 0 && column > 0 && column+spaces+n > width {
			b.WriteString("\n")
			column, spaces = 0, min(indent, max(width-n, 0)) // a long word may begin further left
		}
		if n > 0 {
			b.WriteString(strings.Repeat(" ", spaces) + word)
			column, spaces = column+spaces+n, 0
		}
		spaces++
	}
	return b.String()
}
