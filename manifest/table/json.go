package table

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/userfile"
)

// jsonRows gives the records of JSON as rows. Its columns are the keys that are wanted, or all as they are met.
type jsonRows struct {
	in    recordReader
	grow  bool // every further key becomes a column
	keys  []string
	index map[string]int // key -> column

	cells   []Cell
	offsets []int  // 1 + where the cells stand in the record, 0 when missing
	keyed   string // the column of the records' keys, where they have some
	full    error  // of too many keys
}

// A recordReader gives the texts of records, which start with {, one after the other. After a *Problem the next can be
// asked for. A text is valid until the call after.
type recordReader interface {
	next() ([]byte, error)
	// key is the last record's key in an object of records, "" elsewhere.
	key() string
	// place gives line and column of a byte of the last record; for -1 the line on which it starts, and 0.
	place(offset int) (line, column int)
	problem(offset int, message, hint string) *Problem
}

func NewJSONL(r io.Reader, file string, want []string) *jsonRows {
	return newRecordRows(jsonLines{newLineReader(r, file, MaxRecord)}, want)
}

// NewJSON reads a list of records, at the top or under a path of keys. Without a path, an object has to hold a
// single list of records. A file that has an object a line is read as JSONL.
func NewJSON(r io.Reader, file string, want []string, path string) (*jsonRows, error) {
	in := bufio.NewReaderSize(r, MaxRecord)
	userfile.SkipMark(in)
	start, _ := in.Peek(MaxRecord)
	if IsUTF16(start) {
		return nil, &Problem{File: file, Line: 1, Column: 1, Message: UTF16, Hint: SaveAsUTF8}
	}
	line, rest, _ := bytes.Cut(start, []byte("\n"))
	if path == "" && bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) && len(bytes.TrimSpace(rest)) > 0 &&
		json.Valid(line) {
		return NewJSONL(in, file, want), nil
	}
	list, err := newJSONList(in, file, path, start)
	if err != nil {
		return nil, err
	}
	return newRecordRows(list, want), nil
}

func newRecordRows(in recordReader, want []string) *jsonRows {
	j := &jsonRows{in: in, grow: want == nil, index: make(map[string]int)}
	for _, key := range want {
		j.column(key)
	}
	return j
}

func (j *jsonRows) Columns() []string { return j.keys }

func (j *jsonRows) At(i int) (line, column int) {
	if i < 0 || j.offsets[i] == 0 { // a key that is missing has no place
		return j.in.place(-1)
	}
	return j.in.place(j.offsets[i] - 1)
}

func (j *jsonRows) column(key string) int {
	j.index[key] = len(j.keys)
	j.keys = append(j.keys, key)
	j.cells = append(j.cells, Cell{Null: true, Absent: true})
	j.offsets = append(j.offsets, 0)
	return len(j.keys) - 1
}

// Next gives the cells of the next record; a missing key is Null. After too many keys it gives no more: what a further
// key says would go unseen.
func (j *jsonRows) Next() ([]Cell, error) {
	if j.full != nil {
		return nil, j.full
	}
	text, err := j.in.next()
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		var syntax *json.SyntaxError
		errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) // invalid text has no other error
		at, hint := int(syntax.Offset)-1, WholeObject
		if strings.IndexByte("NI", text[max(at, 0)]) >= 0 { // as Python's json.dumps writes them
			hint = "JSON has no NaN and no Infinity: write null"
		}
		return nil, j.in.problem(at, "the record is not valid JSON: "+syntax.Error(), hint)
	}
	clear(j.offsets)
	for i := range j.cells { // a key that the record lacks is as good as null
		j.cells[i] = Cell{Null: true, Absent: true}
	}
	record, kind, from := string(text), "", 0
	if thing, is := thingIn(record); is {
		record, kind, from = thing.data, thing.kind, thing.at
	}
	if kind == listing {
		return nil, j.in.problem(0, "the record is a listing of Reddit's, which holds many posts",
			"write the posts alone, one a line: jq -c '.data.children[].data'")
	}
	if err := j.addKey(record); err != nil {
		return nil, err
	}
	for m := range jsonscan.Members(record) {
		m.From, m.At = m.From+from, m.At+from
		if err := j.add(m); err != nil {
			return nil, err
		}
	}
	if i, known := j.index["kind"]; kind != "" && (!known || j.offsets[i] == 0) {
		return j.cells, j.add(jsonscan.Member{Key: "kind", Value: strconv.Quote(kind)})
	}
	return j.cells, nil
}

// addKey adds the cell of the key of a record in an object of records.
func (j *jsonRows) addKey(record string) error {
	key := j.in.key()
	if key == "" {
		return nil
	}
	if j.keyed == "" { // by the first record, for all
		j.keyed = "id"
		for m := range jsonscan.Members(record) {
			if m.Key == "id" {
				j.keyed = "post_id"
			}
		}
	}
	return j.add(jsonscan.Member{Key: j.keyed, Value: quoteJSON(key)})
}

func quoteJSON(text string) string {
	b, _ := json.Marshal(text) // of a text it does not fail
	return string(b)
}

// add sets the cell of a member.
func (j *jsonRows) add(m jsonscan.Member) error {
	i, known := j.index[m.Key]
	if known && j.offsets[i] > 0 {
		return j.in.problem(m.From, fmt.Sprintf("the key %s stands twice", Quote(m.Key)), "keep one of them")
	}
	if !known {
		if !j.grow {
			return nil // a column that is not used
		}
		if len(j.keys) == maxColumns {
			p := j.in.problem(m.At, "the records have more than 1000 different keys",
				"keys are columns: give every record the same ones")
			p.Last = true
			j.full = One(p)
			return j.full
		}
		i = j.column(strings.Clone(m.Key))
	}
	j.cells[i], j.offsets[i] = JSONCell(m.Value), m.At+1
	j.cells[i].JSON = m.Value
	return nil
}

// WholeObject is a hint.
const WholeObject = `write one whole object a line: {"id": "abc123", ...}`

// jsonLines gives the objects of a file that has one a line.
type jsonLines struct{ *lineReader }

func (l jsonLines) next() ([]byte, error) {
	text, err := l.nextFilled()
	if err == nil && bytes.TrimSpace(text)[0] != '{' {
		return nil, l.problem(0, "the line is not a JSON object", WholeObject)
	}
	return text, err
}

func (l jsonLines) key() string { return "" }

func (l jsonLines) place(offset int) (line, column int) { return max(l.line, 1), offset + 1 }

func (l jsonLines) problem(offset int, message, hint string) *Problem {
	return l.lineReader.problem(offset+1, message, hint)
}

// jsonList gives the records of a list in a JSON file.
type jsonList struct {
	*jsonscan.List
	file     string
	numbered bool // the keys of records count them
}

// newJSONList goes to the first record of a file that begins with start.
func newJSONList(in *bufio.Reader, file, path string, start []byte) (*jsonList, error) {
	var keys []string
	if path != "" {
		keys = strings.Split(path, ".")
	}
	open, kind := jsonscan.New, mapIn(start, keys)
	switch {
	case pagesForm.Match(start):
		return nil, &Problem{File: file, Line: 1, Column: 1, Message: "the file is a list of Reddit's " +
			"listings: of posts, or of a post and its comments",
			Hint: `write the posts alone, one a line: jq -c '.[].data.children[] | select(.kind == "t3") | .data'`}
	case path == "" && listingForm.Match(start):
		keys = []string{"data", "children"}
	case kind != noMap:
		open = jsonscan.NewMap
	}
	list, err := open(in, keys, MaxRecord)
	if err != nil && path == "" && columnsForm.Match(start) {
		return nil, &Problem{File: file, Line: 1, Column: 1, Hint: `write records: df.to_json(PATH, orient="records")`,
			Message: "the file holds columns, as pandas writes a table, and not records"}
	}
	l := &jsonList{list, file, kind == byNumber}
	return l, l.problemOf(err)
}

func (l *jsonList) key() string {
	if l.numbered {
		return ""
	}
	return l.Key()
}

func (l *jsonList) problemOf(err error) error {
	if p, ok := AsProblem(err); ok && p.Line <= 1 { // of a packed file
		p.Line, _ = l.Here()
		return p
	}
	if e := (*jsonscan.Error)(nil); errors.As(err, &e) {
		return &Problem{File: l.file, Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint}
	}
	return err
}

func (l *jsonList) next() ([]byte, error) {
	text, err := l.Next()
	return text, l.problemOf(err)
}

func (l *jsonList) place(offset int) (line, column int) { return l.Place(offset) }

func (l *jsonList) problem(offset int, message, hint string) *Problem {
	line, column := l.Place(offset)
	return &Problem{File: l.file, Line: line, Column: column, Message: message, Hint: hint}
}

// JSONCell gives a JSON value, without spaces around it, as the cell of a table.
func JSONCell(value string) Cell {
	// Objects, and lists of more than plain values, are marked only: they matter where the column is used.
	switch value[0] {
	case '"':
		if fault := halfIn(value); fault != "" {
			return Cell{Fault: fault}
		}
		return Cell{Text: jsonscan.String(value)}
	case 'n':
		return Cell{Null: true}
	case 't', 'f': // as flagText reads them
		return Cell{Text: value}
	case '{':
		return Cell{Nested: true, Fault: halfIn(value)}
	case '[':
		cell := Cell{IsList: true}
		for _, text := range jsonscan.Items(value) {
			if strings.IndexByte("[{n", text[0]) >= 0 {
				cell.Nested, cell.Fault = true, cmp.Or(cell.Fault, halfIn(text))
				continue
			}
			item := JSONCell(text)
			cell.Fault = cmp.Or(cell.Fault, item.Fault)
			cell.Float = item.Float // an id is the only item
			cell.List = append(cell.List, item.Text)
		}
		return cell
	}
	return Cell{Text: value, Float: strings.ContainsAny(value, ".eE")}
}

// halfIn says that a value of JSON has half of a character in a string, "" if it has none.
func halfIn(value string) string {
	if hasHalf(value) {
		return `has half of a character (\ud800 to \udfff alone)`
	}
	return ""
}

// hasHalf reports whether a JSON string has an escape that is one half of a character, which would be read as any other
// half.
func hasHalf(quoted string) bool {
	for i := strings.Index(quoted, `\u`); i >= 0 && i+6 <= len(quoted); {
		if escaped := quoted[:i]; (len(escaped)-len(strings.TrimRight(escaped, `\`)))%2 == 0 {
			code, err := strconv.ParseUint(quoted[i+2:i+6], 16, 32)
			if pair := i+12 <= len(quoted) && surrogates(quoted[i+2:i+6], quoted[i+8:i+12]) != "" &&
				quoted[i+6:i+8] == `\u`; pair {
				i += 6
			} else if err == nil && code >= 0xd800 && code <= 0xdfff {
				return true
			}
		}
		next := strings.Index(quoted[i+2:], `\u`)
		if next < 0 {
			return false
		}
		i += 2 + next
	}
	return false
}
