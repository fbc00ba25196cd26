package table

import (
	"bytes"
	"io"
	"strings"

	"rehydrate/manifest/value"
)

// A ListRows gives the lines of a list as rows of one column. Blank lines and lines that begin with # are skipped,
// and so is what stands behind a space and #. An error of a spreadsheet (#N/A) is a value: there was one in its place.
// Quotes around a value are taken off.
type ListRows struct {
	in      *lineReader
	columns []string
	cell    [1]Cell
	first   *string // the first value, where it is a row, until it was given
	column  int     // where the value of the last row starts, from 1
}

// NewList reads a list of which each line is a value of the column of that name. isHeader says whether the first line
// names the values: it is then no row. Its *Problem, which has no place, ends the list.
func NewList(r io.Reader, file, column string, isHeader func(first string) (bool, *Problem)) (*ListRows, error) {
	l := &ListRows{in: newLineReader(r, file, MaxLine), columns: []string{column}}
	first, err := l.value()
	if err == io.EOF {
		return nil, &Problem{File: file, Line: 1, Message: emptyFile, Hint: "each line is an id of a post, or a " +
			"link to it"}
	}
	if err != nil {
		return nil, err
	}
	header, p := isHeader(first)
	if p != nil {
		p.File, p.Line, p.Column = file, l.in.line, l.column
		return nil, p
	}
	if !header {
		l.first = &first
	}
	return l, nil
}

// Columns gives the one column.
func (l *ListRows) Columns() []string { return l.columns }

// At gives line and column of the value of the last row; of the row itself for -1.
func (l *ListRows) At(i int) (line, column int) {
	if i < 0 {
		return l.in.line, 0
	}
	return l.in.line, l.column
}

// Next gives the next value.
func (l *ListRows) Next() ([]Cell, error) {
	if first := l.first; first != nil {
		l.first, l.cell[0] = nil, Cell{Text: *first}
		return l.cell[:], nil
	}
	text, err := l.value()
	if err != nil {
		return nil, err
	}
	l.cell[0] = Cell{Text: text}
	return l.cell[:], nil
}

// value gives the value of the next line that has one.
func (l *ListRows) value() (string, error) {
	for {
		line, err := l.in.next()
		if err != nil {
			return "", err
		}
		if text, found := ListValue(line); found {
			l.column = 1 + bytes.Index(line, []byte(text))
			return text, nil
		}
	}
}

// ListValue gives the value on a line of a list, which can be "" in quotes; false for a line without one.
func ListValue(line []byte) (text string, found bool) {
	text = strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "#") && !value.SheetError(text) {
		return "", false
	}
	for _, comment := range []string{" #", "\t#"} {
		text, _, _ = strings.Cut(text, comment)
	}
	text = strings.TrimSpace(text)
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		return strings.TrimSpace(text[1 : len(text)-1]), true
	}
	return text, text != ""
}
