package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxDepth = 32 // nested lists and objects in a JSON line

// jsonRows reads JSONL: one object a line. Its columns are keys: those wanted, and
// every other key as it is met when grow is set; further keys are ignored.
type jsonRows struct {
	in    *lineReader
	grow  bool
	keys  []string
	index map[string]int // key -> column
	met   []bool         // whether any line had the column

	cells []Cell
	cols  []int // where the cells stand in the line, 0 when missing
	seen  map[string]bool
}

func newJSONRows(r io.Reader, file string, want []string, grow bool) *jsonRows {
	j := &jsonRows{in: newLineReader(r, file), grow: grow, index: make(map[string]int), seen: make(map[string]bool)}
	for _, key := range want {
		j.column(key)
	}
	return j
}

func (j *jsonRows) Columns() []string { return j.keys }

func (j *jsonRows) Close() error { return nil }

func (j *jsonRows) at(i int) (line, column int) {
	if i < 0 || i >= len(j.cols) {
		return max(j.in.line, 1), 0
	}
	return max(j.in.line, 1), j.cols[i]
}

// column gives the key's place, a new one at the end if need be.
func (j *jsonRows) column(key string) int {
	if i, ok := j.index[key]; ok {
		return i
	}
	j.index[key] = len(j.keys)
	j.keys = append(j.keys, key)
	j.met = append(j.met, false)
	return len(j.keys) - 1
}

// Next gives the cells of the next line; a missing key is Null.
func (j *jsonRows) Next() ([]Cell, error) {
	text, err := j.nextLine()
	if err != nil {
		return nil, err
	}
	clear(j.seen)
	j.cells, j.cols = j.cells[:0], j.cols[:0]
	j.widen()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if p := j.object(d, text); p != nil {
		return nil, p
	}
	return j.cells, nil
}

func (j *jsonRows) nextLine() ([]byte, error) {
	blank := 0
	for {
		text, err := j.in.next()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if blank > 0 {
				j.in.unread(text)
				return nil, blankLine(j.in.file, blank)
			}
			return text, nil
		}
		if blank == 0 {
			blank = j.in.line
		}
	}
}

// widen makes room for every column known by now.
func (j *jsonRows) widen() {
	for len(j.cells) < len(j.keys) {
		j.cells = append(j.cells, Cell{Null: true})
		j.cols = append(j.cols, 0)
	}
}

// object reads the line's one object into the cells.
func (j *jsonRows) object(d *json.Decoder, text []byte) *Problem {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return j.in.problem(1, "the line is not a JSON object", `write one object a line: {"id": "abc123", ...}`)
	}
	for d.More() {
		before := column(d, text)
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return j.broken(d, err)
		}
		if j.seen[key] {
			return j.in.problem(before, fmt.Sprintf("the key %s stands twice", quote(key)), "keep one of them")
		}
		j.seen[key] = true
		start := column(d, text)
		cell, err := value(d, 0)
		if err != nil {
			return j.broken(d, err)
		}
		if p := j.put(key, cell, start); p != nil {
			return p
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return j.broken(d, err)
	}
	if end := column(d, text); end <= len(text) {
		return j.in.problem(end, "more text follows the object", "write one object a line")
	}
	return nil
}

func (j *jsonRows) put(key string, cell Cell, start int) *Problem {
	i, known := j.index[key]
	if !known {
		if !j.grow {
			return nil
		}
		if len(j.keys) == maxColumns {
			return j.in.problem(start, "the lines have more than 1000 different keys", "keys are columns: give every line the same ones")
		}
		i = j.column(key)
		j.widen()
	}
	j.cells[i], j.cols[i], j.met[i] = cell, start, true
	return nil
}

// column is where, from 1, the next token starts: beyond the space, comma or colon.
func column(d *json.Decoder, text []byte) int {
	i := int(d.InputOffset())
	for i < len(text) && bytes.IndexByte([]byte(" \t\r,:"), text[i]) >= 0 {
		i++
	}
	return i + 1
}

var errTooDeep = errors.New("lists and objects are nested more than 32 deep")

func (j *jsonRows) broken(d *json.Decoder, err error) *Problem {
	at := int(d.InputOffset()) + 1
	message := "the line is not valid JSON"
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, errTooDeep):
		message = errTooDeep.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		message = "the JSON object is not closed at the end of the line"
	case errors.As(err, &syntax):
		message += ": " + syntax.Error()
	}
	return j.in.problem(at, message, "write one whole JSON object a line")
}

// value reads one value. Objects, and lists that hold more than plain values, are read
// over and marked: only a column that is used need complain of them.
func value(d *json.Decoder, depth int) (Cell, error) {
	if depth > maxDepth {
		return Cell{}, errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return Cell{}, err
	}
	switch t := token.(type) {
	case string:
		return Cell{Text: t}, nil
	case json.Number:
		return Cell{Text: t.String(), Float: strings.ContainsAny(t.String(), ".eE")}, nil
	case bool:
		return Cell{Text: fmt.Sprint(t)}, nil
	case json.Delim:
		if t == '[' {
			return listValue(d, depth)
		}
		return objectValue(d, depth)
	}
	return Cell{Null: true}, nil
}

func listValue(d *json.Decoder, depth int) (Cell, error) {
	cell := Cell{IsList: true}
	for d.More() {
		item, err := value(d, depth+1)
		if err != nil {
			return Cell{}, err
		}
		cell.nested = cell.nested || item.nested || item.IsList || item.Null
		cell.Float = cell.Float || item.Float
		cell.List = append(cell.List, item.Text)
	}
	_, err := d.Token()
	return cell, err
}

func objectValue(d *json.Decoder, depth int) (Cell, error) {
	for d.More() {
		if _, err := d.Token(); err != nil {
			return Cell{}, err
		}
		if _, err := value(d, depth+1); err != nil {
			return Cell{}, err
		}
	}
	_, err := d.Token()
	return Cell{nested: true}, err
}
