package manifest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvRows reads CSV and TSV. It cuts the file into records itself, so that one bad
// record costs no other and none is held that is longer than maxLine; each record is
// then parsed by encoding/csv, strictly.
type csvRows struct {
	in      *lineReader
	comma   byte
	columns []string
	cells   []Cell

	record []byte      // the record being read
	start  int         // line on which it starts
	rest   feed        // what parser reads from
	parser *csv.Reader // fed one record at a time
	fed    int         // lines that parser has seen
}

// A feed is a reader that is given its bytes bit by bit: io.EOF only means "for now".
type feed struct{ rest []byte }

func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// newCSVRows reads the header. Its errors are *Problem or the reader's.
func newCSVRows(r io.Reader, file string, comma byte) (*csvRows, error) {
	c := &csvRows{in: newLineReader(r, file), comma: comma}
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *csvRows) Columns() []string { return c.columns }

func (c *csvRows) Close() error { return nil }

func (c *csvRows) at(i int) (line, column int) {
	if i < 0 || c.parser == nil {
		return c.start, 0
	}
	line, column = c.parser.FieldPos(i)
	return line + c.start - 1 - (c.fed - c.linesInRecord()), column
}

func (c *csvRows) linesInRecord() int { return bytes.Count(c.record, []byte("\n")) }

func (c *csvRows) readHeader() error {
	names, err := c.fields()
	if err == io.EOF {
		c.in.line = 1
		return c.in.problem(0, "the file is empty", "the first line names the columns, the entries follow")
	}
	if err != nil {
		return err
	}
	if len(names) > maxColumns {
		return c.in.problem(0, fmt.Sprintf("the header has %d columns", len(names)), "at most 1000 are read")
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		line, column := c.at(i)
		if strings.ContainsRune(name, '\r') {
			return &Problem{File: c.in.file, Line: line, Column: column, Message: "the header holds a lone carriage return", Hint: "save the file with the line ends LF or CRLF"}
		}
		if name != "" && seen[name] {
			return &Problem{File: c.in.file, Line: line, Column: column, Message: fmt.Sprintf("two columns are named %s", quote(name)), Hint: "rename one; columns are told apart by name only"}
		}
		seen[name] = true
		c.columns = append(c.columns, name)
	}
	return nil
}

// Next gives the next record as cells.
func (c *csvRows) Next() ([]Cell, error) {
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	if len(fields) != len(c.columns) {
		return nil, c.wrongWidth(len(fields))
	}
	c.cells = c.cells[:0]
	for _, f := range fields {
		c.cells = append(c.cells, Cell{Text: f})
	}
	return c.cells, nil
}

// wrongWidth tells where a record of n fields ends too soon, or goes beyond the header.
func (c *csvRows) wrongWidth(n int) *Problem {
	p := &Problem{File: c.in.file, Message: fmt.Sprintf("the row has %d fields, the header has %d", n, len(c.columns))}
	if n > len(c.columns) {
		p.Line, p.Column = c.at(len(c.columns))
		p.Hint = "put quotes around a field that holds the separator, or take out the separators too many"
		return p
	}
	text := bytes.TrimSuffix(c.record, []byte("\n"))
	p.Line, p.Column = c.start+bytes.Count(text, []byte("\n")), len(text)-bytes.LastIndexByte(text, '\n')
	p.Hint = fmt.Sprintf("the row ends before column %s: leave an empty field for a missing value", quote(c.columns[n]))
	return p
}

// fields reads and parses one record.
func (c *csvRows) fields() ([]string, error) {
	if err := c.readRecord(); err != nil {
		return nil, err
	}
	if c.parser == nil {
		c.parser = csv.NewReader(&c.rest)
		c.parser.Comma = rune(c.comma)
		c.parser.FieldsPerRecord = -1 // counted by Next, which can name the header
		c.parser.ReuseRecord = true
		c.fed = 0
	}
	c.rest.rest = c.record
	end := c.parser.InputOffset() + int64(len(c.record))
	fields, err := c.parser.Read()
	if err == nil && c.parser.InputOffset() == end {
		c.fed += c.linesInRecord()
		return fields, nil
	}
	// What the parser has read of the record and not given would be taken for the next.
	fed := c.fed
	c.parser, c.rest.rest = nil, nil
	return nil, c.parseProblem(err, fed)
}

func (c *csvRows) parseProblem(err error, fed int) *Problem {
	p := &Problem{File: c.in.file, Line: c.start, Message: "the row cannot be read as one record", Hint: "check its quotes"}
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return p
	}
	p.Line, p.Column = c.start+parse.Line-fed-1, parse.Column
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		p.Message, p.Hint = `a quote (") stands inside a field that does not start with one`, `put the field in quotes and double the quote: "5"" disk"`
	case errors.Is(err, csv.ErrQuote):
		p.Message, p.Hint = `a quoted field does not end where its quote (") closes`, `double a quote inside a quoted field: "5"" disk"`
	default:
		p.Message = parse.Err.Error()
	}
	return p
}

// readRecord gathers the lines of the next record into c.record, each with "\n".
// Blank lines before it are a problem, at the end of the file they are fine.
func (c *csvRows) readRecord() error {
	c.record = c.record[:0]
	blank := 0
	for open := false; ; {
		text, err := c.in.next()
		if err == io.EOF && open {
			return c.unclosed("the end of the file")
		}
		if err != nil {
			return err
		}
		if !open && len(bytes.TrimRight(text, "\r")) == 0 { // encoding/csv, too, takes a lone CR for a blank line
			if blank == 0 {
				blank = c.in.line
			}
			continue
		}
		if blank > 0 {
			c.in.unread(text)
			return blankLine(c.in.file, blank)
		}
		if !open {
			c.start = c.in.line
		}
		if len(c.record)+len(text) > maxLine {
			return c.unclosed("64 KiB after it")
		}
		c.record = append(append(c.record, text...), '\n')
		if open = openQuote(text, c.comma, open); !open {
			return nil
		}
	}
}

func (c *csvRows) unclosed(where string) *Problem {
	return &Problem{
		File: c.in.file, Line: c.start,
		Message: "a quoted field that starts on this line is not closed by " + where,
		Hint:    `close its quote ("); the lines up to there were skipped`,
	}
}

func blankLine(file string, line int) *Problem {
	return &Problem{File: file, Line: line, Message: "the line is blank", Hint: "take it out; only the end of the file may have blank lines"}
}

// openQuote reports whether a record goes on after line, because line leaves a quoted
// field open. Where the quotes are wrong it says no, and the parser says why.
func openQuote(line []byte, comma byte, open bool) bool {
	fieldStart := !open
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case open && c != '"':
		case open && i+1 < len(line) && line[i+1] == '"':
			i++
		case open:
			if i+1 < len(line) && line[i+1] != comma {
				return false
			}
			open = false
		case c == comma:
			fieldStart = true
			continue
		case c == '"' && !fieldStart:
			return false
		case c == '"':
			open = true
		}
		fieldStart = false
	}
	return open
}
