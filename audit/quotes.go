package audit

import (
	"bufio"
	"bytes"
	"io"
)

// A quotesReader gives encoding/csv a table of text as Python's csv module, pandas and spreadsheets read it: what
// stands behind the closing quote of a cell, up to the separator or the end of the line, belongs to the cell, with all
// quotes in it: they read "Me" at work as Me at work. encoding/csv takes the quote for a part of the text, and reads
// the rows behind it into the same cell, up to the next quote that ends one. So such a cell is handed on with its
// closing quote at its end: "Me at work". All else stays, byte for byte, and so does each file that encoding/csv
// accepts without LazyQuotes.
//
// A quote behind a backslash closes nothing, as the programs mean it that write \" for a quote in a cell.
type quotesReader struct {
	in    *bufio.Reader
	comma byte
	last  byte // the byte before what in has buffered
	state quotesState
	out   []byte // what was read, and is not yet given
	held  []byte // the memory of it
	err   error  // behind out
}

type quotesState int

const (
	outsideQuotes quotesState = iota
	insideQuotes
	behindQuotes // in what stands behind a closing quote
)

// quotesBlock is how many bytes are looked at at a time, and aheadOfQuote how many behind one say whether it ends a
// cell.
const (
	quotesBlock  = 32 << 10
	aheadOfQuote = 2
)

func newQuotesReader(r io.Reader, comma byte) *quotesReader {
	return &quotesReader{in: bufio.NewReaderSize(r, quotesBlock), comma: comma, last: '\n'}
}

func (q *quotesReader) Read(b []byte) (int, error) {
	for len(q.out) == 0 && q.err == nil {
		q.fill()
	}
	if len(q.out) == 0 {
		return 0, q.err
	}
	n := copy(b, q.out)
	q.out = q.out[n:]
	return n, nil
}

// fill looks at what is buffered, but for so much that each quote has what follows it behind it.
func (q *quotesReader) fill() {
	_, q.err = q.in.Peek(1 + aheadOfQuote)
	text, _ := q.in.Peek(q.in.Buffered())
	n := len(text)
	if q.err == nil {
		n -= aheadOfQuote
	}
	q.out = q.held[:0]
	i := 0
	for i < n {
		switch q.state {
		case outsideQuotes:
			i = q.outside(text, i, n)
		case insideQuotes:
			i = q.inside(text, i, n)
		case behindQuotes:
			i = q.behind(text, i, n)
		}
	}
	if q.err != nil && q.state == behindQuotes {
		q.out, q.state = append(q.out, '"'), outsideQuotes
	}
	if i > 0 {
		q.last = text[i-1]
	}
	_, _ = q.in.Discard(i)
	q.held = q.out
}

// outside hands on what stands from i on, up to n or behind a quote that begins a cell, and returns where that is.
func (q *quotesReader) outside(text []byte, i, n int) int {
	at := bytes.IndexByte(text[i:n], '"')
	if at < 0 {
		q.out = append(q.out, text[i:n]...)
		return n
	}
	at += i
	if before := q.before(text, at); before == q.comma || before == '\n' {
		q.state = insideQuotes
	}
	q.out = append(q.out, text[i:at+1]...)
	return at + 1
}

// inside is outside for what is quoted.
func (q *quotesReader) inside(text []byte, i, n int) int {
	at := bytes.IndexByte(text[i:n], '"')
	if at < 0 {
		q.out = append(q.out, text[i:n]...)
		return n
	}
	at += i
	next := text[at+1:]
	switch {
	case q.endsCell(next):
		q.state = outsideQuotes
	case next[0] == '"':
		q.out = append(q.out, text[i:at+2]...)
		return at + 2
	case q.before(text, at) != '\\':
		q.out, q.state = append(q.out, text[i:at]...), behindQuotes
		return at + 1
	}
	q.out = append(q.out, text[i:at+1]...)
	return at + 1
}

// behind is outside for what stands behind the closing quote of a cell, in which it doubles quotes.
func (q *quotesReader) behind(text []byte, i, n int) int {
	for ; i < n; i++ {
		switch {
		case q.endsCell(text[i:]):
			q.out, q.state = append(q.out, '"'), outsideQuotes
			return i
		case text[i] == '"':
			q.out = append(q.out, '"')
		}
		q.out = append(q.out, text[i])
	}
	return i
}

// endsCell reports whether a cell ends before this text. To encoding/csv a line ends with \n, and with the file.
func (q *quotesReader) endsCell(text []byte) bool {
	return len(text) == 0 || text[0] == q.comma || text[0] == '\n' ||
		text[0] == '\r' && (len(text) == 1 || text[1] == '\n')
}

func (q *quotesReader) before(text []byte, at int) byte {
	if at == 0 {
		return q.last
	}
	return text[at-1]
}
