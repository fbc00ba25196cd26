package manifest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvRows reads CSV and TSV, strictly. The library parses; csvRows is the io.Reader that it
// reads from, which hands out one line at a time. So the library is never ahead of a record:
// a bad one costs no other, and none is held that is longer than maxLine.
type csvRows struct {
	in      *lineReader
	parser  *csv.Reader
	columns []string
	cells   []Cell

	start  int    // line on which the record starts
	size   int    // bytes of the record that the parser has
	line   []byte // with its end
	unread int    // bytes of line that the parser does not have
}

// newCSVRows reads the header. Its errors are *Problem or the reader's.
func newCSVRows(r io.Reader, file string, comma byte) (*csvRows, error) {
	c := &csvRows{in: newLineReader(r, file)}
	c.parser = csv.NewReader(c)
	c.parser.Comma = rune(comma)
	c.parser.FieldsPerRecord = -1 // counted by Next, which can name the header
	c.parser.ReuseRecord = true
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *csvRows) Columns() []string { return c.columns }

// Read gives the parser the rest of the present line, or the next one.
func (c *csvRows) Read(p []byte) (int, error) {
	if c.unread == 0 {
		text, err := c.nextLine()
		if err != nil {
			return 0, err
		}
		c.line = append(append(c.line[:0], text...), '\n')
		c.unread = len(c.line)
		c.size += c.unread
	}
	n := copy(p, c.line[len(c.line)-c.unread:])
	c.unread -= n
	return n, nil
}

func (c *csvRows) nextLine() ([]byte, error) {
	if c.size == 0 {
		text, err := c.in.nextFilled()
		c.start = c.in.line
		return text, err
	}
	// In the middle of a record the parser asks for more only while a quote is open.
	text, err := c.in.next()
	switch {
	case err == io.EOF:
		return nil, c.unclosed("the end of the file")
	case err == nil && c.size+len(text) > maxLine:
		return nil, c.unclosed("64 KiB after it")
	}
	return text, err
}

func (c *csvRows) unclosed(where string) *Problem {
	return &Problem{
		File: c.in.file, Line: c.start,
		Message: "a quoted field that starts on this line is not closed by " + where,
		Hint:    `close its quote ("); the lines up to there were skipped`,
	}
}

func (c *csvRows) at(i int) (line, column int) {
	if i < 0 {
		return c.start, 0
	}
	// The parser counts only the lines that it was given.
	first, _ := c.parser.FieldPos(0)
	line, column = c.parser.FieldPos(i)
	return c.start + line - first, column
}

func (c *csvRows) problem(cell int, message, hint string) *Problem {
	line, column := c.at(cell)
	return &Problem{File: c.in.file, Line: line, Column: column, Message: message, Hint: hint}
}

func (c *csvRows) readHeader() error {
	names, err := c.fields()
	if err == io.EOF {
		return &Problem{File: c.in.file, Line: 1, Message: "the file is empty", Hint: "the first line names the columns, the entries follow"}
	}
	if err != nil {
		return err
	}
	if len(names) > maxColumns {
		return c.problem(-1, fmt.Sprintf("the header has %d columns", len(names)), "at most 1000 are read")
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if name != "" && seen[name] { // columns without a name cannot be used, so they may be several
			return c.problem(i, fmt.Sprintf("two columns are named %s", quote(name)),
				"rename one; columns are told apart by name only")
		}
		seen[name] = true
		c.columns = append(c.columns, name)
	}
	c.cells = make([]Cell, len(names))
	return nil
}

func (c *csvRows) Next() ([]Cell, error) {
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	if n := len(fields); n != len(c.columns) {
		message := fmt.Sprintf("the row has %d fields, the header has %d", n, len(c.columns))
		if n > len(c.columns) {
			return nil, c.problem(len(c.columns), message,
				"put quotes around a field that holds the separator, or take out the separators too many")
		}
		return nil, c.in.problem(len(c.line), message,
			fmt.Sprintf("the row ends before column %s: leave an empty field for a missing value", quote(c.columns[n])))
	}
	for i, field := range fields {
		c.cells[i].Text = field
	}
	return c.cells, nil
}

// fields parses one record.
func (c *csvRows) fields() ([]string, error) {
	c.size = 0
	fields, err := c.parser.Read()
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return fields, err
	}
	p := &Problem{File: c.in.file, Line: c.start + parse.Line - parse.StartLine, Column: parse.Column,
		Message: `a quoted field does not end where its quote (") closes`,
		Hint:    `double a quote inside a quoted field: "5"" disk"`}
	if errors.Is(err, csv.ErrBareQuote) {
		p.Message = `a quote (") stands inside a field that does not start with one`
		p.Hint = `put the field in quotes and double the quote: "5"" disk"`
	}
	return nil, p
}
