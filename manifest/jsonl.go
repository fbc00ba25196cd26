package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

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
}

func newJSONRows(r io.Reader, file string, want []string, grow bool) *jsonRows {
	j := &jsonRows{in: newLineReader(r, file), grow: grow, index: make(map[string]int)}
	for _, key := range want {
		j.column(key)
	}
	return j
}

func (j *jsonRows) Columns() []string { return j.keys }

func (j *jsonRows) at(i int) (line, column int) {
	if i >= 0 && i < len(j.cols) {
		column = j.cols[i]
	}
	return max(j.in.line, 1), column
}

// column gives the key's place, a new one at the end if need be.
func (j *jsonRows) column(key string) int {
	if i, ok := j.index[key]; ok {
		return i
	}
	j.index[key] = len(j.keys)
	j.keys = append(j.keys, key)
	j.met = append(j.met, false)
	j.cells = append(j.cells, Cell{Null: true})
	j.cols = append(j.cols, 0)
	return len(j.keys) - 1
}

// Next gives the cells of the next line; a missing key is Null.
func (j *jsonRows) Next() ([]Cell, error) {
	text, err := j.nextObject()
	if err != nil {
		return nil, err
	}
	clear(j.cols)
	for i := range j.cells { // a key that the line lacks is as good as null
		j.cells[i] = Cell{Null: true}
	}
	for m := range members(string(text)) {
		i, known := j.index[m.key]
		if known && j.cols[i] > 0 {
			return nil, j.in.problem(m.from+1, fmt.Sprintf("the key %s stands twice", quote(m.key)), "keep one of them")
		}
		if !known {
			if !j.grow {
				continue // a column that is not used
			}
			if len(j.keys) == maxColumns {
				return nil, j.in.problem(m.at+1, "the lines have more than 1000 different keys",
					"keys are columns: give every line the same ones")
			}
			i = j.column(strings.Clone(m.key))
		}
		j.cells[i], j.cols[i], j.met[i] = jsonCell(m.value), m.at+1, true
	}
	return j.cells, nil
}

// nextObject gives the next line, which is one valid JSON object.
func (j *jsonRows) nextObject() ([]byte, error) {
	text, err := j.in.nextFilled()
	if err != nil {
		return nil, err
	}
	const hint = `write one whole object a line: {"id": "abc123", ...}`
	if bytes.TrimSpace(text)[0] != '{' {
		return nil, j.in.problem(1, "the line is not a JSON object", hint)
	}
	if json.Valid(text) {
		return text, nil
	}
	var syntax *json.SyntaxError
	errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) // invalid text has no other error
	return nil, j.in.problem(int(syntax.Offset), "the line is not valid JSON: "+syntax.Error(), hint)
}

// A member is a key of an object and its value. Offsets are those of key and value in the text.
type member struct {
	key, value string
	from, at   int
}

// members gives the members of a JSON object, which must be valid.
func members(text string) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := jsonNext(text, strings.IndexByte(text, '{')+1)
		for text[i] != '}' {
			from, end := i, jsonEnd(text, i)
			at := jsonNext(text, end)
			key := jsonString(text[from:end])
			end = jsonEnd(text, at)
			if !yield(member{key, text[at:end], from, at}) {
				return
			}
			i = jsonNext(text, end)
		}
	}
}

// jsonItems gives the items of a JSON list, which must be valid, and where they start.
func jsonItems(list string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := jsonNext(list, 1); list[i] != ']'; {
			end := jsonEnd(list, i)
			if !yield(i, list[i:end]) {
				return
			}
			i = jsonNext(list, end)
		}
	}
}

// jsonNext skips white space, commas and colons from i on.
func jsonNext(text string, i int) int {
	for strings.IndexByte(" \t\r\n,:", text[i]) >= 0 {
		i++
	}
	return i
}

// jsonEnd gives the end of the value that starts at i, in the object or list that holds it.
func jsonEnd(text string, i int) int {
	if open := text[i]; open != '"' && open != '[' && open != '{' {
		return i + strings.IndexAny(text[i:], ",]} \t\r\n")
	}
	// The value is valid, so it is enough to count brackets outside strings.
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// jsonString gives the text of a string with its quotes. Few have escapes.
func jsonString(quoted string) string {
	text := quoted[1 : len(quoted)-1]
	if strings.IndexByte(text, '\\') >= 0 {
		_ = json.Unmarshal([]byte(quoted), &text) // it is valid
	}
	return text
}

// jsonCell reads a value. Objects, and lists that hold more than plain values, are marked and not
// reported here: they matter only in a column that is used.
func jsonCell(value string) Cell {
	switch value[0] {
	case '"':
		return Cell{Text: jsonString(value)}
	case 'n':
		return Cell{Null: true}
	case 't', 'f': // as flagText reads them
		return Cell{Text: value}
	case '{':
		return Cell{nested: true}
	case '[':
		cell := Cell{IsList: true}
		for _, text := range jsonItems(value) {
			if strings.IndexByte("[{n", text[0]) >= 0 {
				cell.nested = true
				continue
			}
			item := jsonCell(text)
			cell.Float = cell.Float || item.Float
			cell.List = append(cell.List, item.Text)
		}
		return cell
	}
	return Cell{Text: value, Float: strings.ContainsAny(value, ".eE")}
}
