// Package jsonscan reads JSON where encoding/json does not do: the records of a list one after the other, however long
// the list is, with their places (List); the members of an object in their order, with their places (Members); and
// values that have one meaning, for no object in them has a key twice (Decode). Marshal writes JSON that is not for
// HTML.
package jsonscan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An Error is one thing wrong at one place of the file, with what to try.
type Error struct {
	Line, Column  int // from 1; 0 where there is none
	Message, Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

const damaged = "it is damaged or cut off: copy it again"

// List gives the records of a list in a JSON file. It reads what surrounds them, up to the end of the file, only as far
// as to find where values end; the records are for jsonRows to check.
type List struct {
	in   *bufio.Reader
	most int      // bytes of a record
	path []string // the keys that lead to the list; nil to look for it

	byKey bool   // the records are the values of an object
	name  string // the key of the last record there
	found string // the key of the list, where it was looked for
	inner bool   // the list stands in an object
	state int    // what next has to read
	line  int    // of the next byte, from 1
	col   int
	text  []byte // the last record
	start [2]int // line and column where it starts
}

// The states of a List.
const (
	firstRecord = iota
	nextRecord
	afterList
	atEnd
)

const maxNesting = 1000 // brackets inside each other, around and in a record

// New goes to the first record. Without a path of keys the list is the file, or the only one in its object. The List is
// never nil.
func New(in *bufio.Reader, path []string, maxRecord int) (*List, error) {
	l := &List{in: in, most: maxRecord, path: path, line: 1, col: 1}
	for _, key := range l.path {
		if err := l.enter(key); err != nil {
			return l, err
		}
	}
	c, err := l.skipSpace()
	switch {
	case err == io.EOF:
		return l, l.here("the file is empty", "it has to hold a list of records: [{...}, {...}]")
	case err != nil:
		return l, err
	case c == '[':
		l.take()
		return l, nil
	case c == '{' && l.path == nil:
		l.take()
		l.state = afterList
		return l, l.search()
	}
	return l, l.here("no list of records stands here",
		"it looks like [{...}, {...}]; records = \"KEY\" names the key that it has in an object")
}

// NewMap goes to the first record of an object whose values are the records, below a path of keys.
func NewMap(in *bufio.Reader, path []string, maxRecord int) (*List, error) {
	l := &List{in: in, most: maxRecord, path: path, line: 1, col: 1, byKey: true}
	for _, key := range l.path {
		if err := l.enter(key); err != nil {
			return l, err
		}
	}
	return l, l.want('{')
}

// Key is the key of the last record of a NewMap, "" elsewhere.
func (l *List) Key() string { return l.name }

// nextByKey is Next in an object of records.
func (l *List) nextByKey() ([]byte, error) {
	name, more, err := l.key()
	if err != nil {
		l.state = atEnd
		return nil, err
	}
	if !more {
		return nil, l.finish()
	}
	l.name = name
	c, err := l.skipSpace()
	l.start = [2]int{l.line, l.col}
	switch {
	case err != nil:
		return nil, l.want('}')
	case c != '{':
		if _, err := l.value(false, 0); err != nil {
			return nil, err
		}
		return nil, l.problem("the value of a key is not a record",
			`every key stands before an object: "abc123": {...}`)
	}
	return l.value(true, 0)
}

// here is a problem of what surrounds the records, after which none can be found.
func (l *List) here(message, hint string) *Error {
	l.state = atEnd
	return &Error{l.line, l.col, message, hint}
}

// take reads the next byte.
func (l *List) take() (byte, error) {
	c, err := l.in.ReadByte()
	if c == '\n' {
		l.line, l.col = l.line+1, 0
	}
	l.col++
	return c, err
}

// skipSpace gives the next byte that is not white space, and leaves it there.
func (l *List) skipSpace() (byte, error) {
	for {
		b, err := l.in.Peek(1)
		if err != nil && err != io.EOF {
			l.state = atEnd
		}
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n", b[0]) < 0 {
			return b[0], nil
		}
		l.take()
	}
}

// want takes a sign, which has to be the next.
func (l *List) want(sign byte) error {
	c, err := l.skipSpace()
	if err == nil && c == sign {
		l.take()
		return nil
	}
	if err != nil && err != io.EOF {
		return err
	}
	return l.here(fmt.Sprintf("the file is not valid JSON: %q is missing here", sign), damaged)
}

// key reads the key of a member and the colon; false at the end of the object.
func (l *List) key() (key string, more bool, err error) {
	c, err := l.skipSpace()
	if c == ',' && err == nil {
		l.take()
		c, err = l.skipSpace()
	}
	if err != nil || c != '"' {
		return "", false, l.want('}')
	}
	text, err := l.value(true, 0)
	if err != nil {
		return "", false, err
	}
	if json.Unmarshal(text, &key) != nil {
		return "", false, l.here("the file is not valid JSON: a key cannot be read", damaged)
	}
	if err := l.want(':'); err != nil {
		return "", false, err
	}
	_, err = l.skipSpace() // to the value
	if err == io.EOF {
		err = nil // which reading the value will say
	}
	return key, true, err
}

// enter goes to the value of a key of the object that stands next.
func (l *List) enter(wanted string) error {
	if err := l.want('{'); err != nil {
		return err
	}
	for {
		key, more, err := l.key()
		if err != nil || more && key == wanted {
			return err
		}
		if !more {
			return l.here("the file has no key "+strconv.Quote(wanted)+" here",
				"records names the keys that lead to the list, with dots between them")
		}
		if _, err := l.value(false, 0); err != nil {
			return err
		}
	}
}

// finish reads what stands behind the records: the rest of the objects that the path led into, and white space. It
// gives io.EOF, or an *Error where records there would be lost: under a key of the path that stands twice, or behind
// the file's one value.
func (l *List) finish() error {
	l.state = atEnd
	for _, key := range slices.Backward(l.path) {
		if err := l.leave(key); err != nil {
			return err
		}
	}
	if _, err := l.skipSpace(); err != nil {
		return err
	}
	return l.here("something follows the records",
		"the file seems to be several that were put into one: keep them apart, or write all records into one list")
}

// leave reads the object around the value of a key to its end.
func (l *List) leave(entered string) error {
	for {
		key, more, err := l.key()
		switch {
		case err != nil || !more:
			return err
		case key == entered:
			return l.here(fmt.Sprintf("the key %s stands twice", strconv.Quote(key)), "keep one of them")
		}
		if _, err := l.value(false, 0); err != nil {
			return err
		}
	}
}

// search reads the object around the records to the next list of records, or to its end.
func (l *List) search() error {
	for {
		key, more, err := l.key()
		if err != nil {
			return err
		}
		switch {
		case !more && !l.inner:
			return l.here("no key of the object holds a list of records",
				`the file looks like [{...}, {...}] or {"annotations": [{...}, {...}]}`)
		case !more:
			return l.finish()
		}
		c, err := l.skipSpace()
		if err != nil {
			return l.want('}')
		}
		if c == '[' {
			line, col := l.line, l.col
			l.take()
			c, err = l.skipSpace()
			switch {
			case err == nil && c == '{' && l.inner:
				l.line, l.col = line, col
				return l.here(fmt.Sprintf("two keys hold lists of records, %s and %s", strconv.Quote(l.found),
					strconv.Quote(key)),
					fmt.Sprintf("say which is meant: records = %q in release.toml, --records %s for rehydrate init", l.found,
						l.found))
			case err == nil && c == '{':
				l.found, l.inner, l.state = key, true, firstRecord
				return nil
			}
			if _, err := l.value(false, 1); err != nil {
				return err
			}
			continue
		}
		if _, err := l.value(false, 0); err != nil {
			return err
		}
	}
}

// Next gives the next record, which starts with { and is valid until the call after; io.EOF at the end. After an *Error
// about a record the next can be asked for, after any other error there is none.
func (l *List) Next() ([]byte, error) {
	for l.state == afterList {
		if err := l.search(); err != nil {
			return nil, err
		}
	}
	if l.state == atEnd {
		return nil, io.EOF
	}
	if l.byKey {
		return l.nextByKey()
	}
	c, err := l.skipSpace()
	separated := l.state == firstRecord
	if err == nil && c == ',' && !separated {
		l.take()
		separated = true
		c, err = l.skipSpace()
	}
	if err != nil || !separated && c != ']' {
		return nil, l.want(']')
	}
	if c == ']' {
		l.take()
		if l.inner {
			l.state = afterList
			return l.Next()
		}
		return nil, l.finish()
	}
	l.state = nextRecord
	l.start = [2]int{l.line, l.col}
	if c != '{' {
		if _, err := l.value(false, 0); err != nil {
			return nil, err
		}
		return nil, l.problem("the list holds something that is not a record",
			`every item of the list is an object: {"id": "abc123", ...}`)
	}
	return l.value(true, 0)
}

// value reads the value that stands next, or what is left of one from so many brackets deep. It is given if it is kept.
func (l *List) value(keep bool, depth int) ([]byte, error) {
	l.text = l.text[:0]
	var size int
	inString, escaped, done := false, false, false
	for !done {
		_, err := l.in.Peek(1)
		chunk, _ := l.in.Peek(l.in.Buffered())
		if err == io.EOF {
			return nil, l.here("the file ends inside a value", damaged)
		}
		if err != nil {
			l.state = atEnd
			return nil, err
		}
		n := 0
		for n < len(chunk) && !done {
			c := chunk[n]
			switch {
			case escaped:
				escaped = false
			case inString:
				escaped = c == '\\'
				inString = c != '"'
				done = c == '"' && depth == 0
			case c == '"':
				inString = true
			case c == '{' || c == '[':
				depth++
			case depth == 0 && strings.IndexByte(",:]} \t\r\n", c) >= 0: // behind a number or word
				if size+n == 0 {
					return nil, l.here("the file is not valid JSON: a value is missing here", damaged)
				}
				done = true
				continue
			case c == '}' || c == ']':
				depth--
				done = depth == 0
			}
			if depth > maxNesting {
				return nil, l.here("the JSON has more than 1000 brackets inside each other",
					"records hold ids, labels and lists of values")
			}
			n++
			if c == '\n' {
				l.line, l.col = l.line+1, 0
			}
			l.col++
		}
		size += n
		if keep && size <= l.most {
			l.text = append(l.text, chunk[:n]...)
		}
		_, _ = l.in.Discard(n) // it is buffered
	}
	if keep && size > l.most {
		l.text = l.text[:0]
		return nil, l.problem(fmt.Sprintf("the record is longer than %d KiB", l.most>>10),
			"take long texts out of the file; ids and labels are all it needs")
	}
	return l.text, nil
}

// Place gives line and column of a byte of the last record; for -1 the line on which it starts, and 0.
func (l *List) Place(offset int) (line, column int) {
	if offset < 0 || l.start[0] == 0 {
		return max(l.start[0], 1), 0
	}
	before := l.text[:min(offset, len(l.text))]
	last := bytes.LastIndexByte(before, '\n')
	if last < 0 {
		return l.start[0], l.start[1] + offset
	}
	return l.start[0] + bytes.Count(before, []byte("\n")), offset - last
}

func (l *List) problem(message, hint string) *Error {
	return &Error{max(l.start[0], 1), 0, message, hint}
}

// Here gives line and column of the byte that is read next.
func (l *List) Here() (line, column int) { return l.line, l.col }
