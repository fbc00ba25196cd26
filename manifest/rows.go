package manifest

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// A RowReader gives the rows of a table, one after the other.
type RowReader interface {
	// Columns gives the column names in file order.
	Columns() []string
	// Next gives the next row, one cell per column, valid until the call after; io.EOF at the end. After a *Problem
	// the next row can be asked for; any other error is final. A value that cannot be used has a Fault in its cell.
	Next() ([]Cell, error)
	Close() error
}

// A Cell is one value of a row.
type Cell struct {
	Text   string   // the value as text, when it is not a list
	List   []string // the items of a Parquet or JSON list
	IsList bool
	Null   bool // no value: JSON null or a missing key, Parquet null
	// Float says that the text is a floating-point number's, such as JSON's 1e5 or a Parquet DOUBLE. Such a number
	// may have been a text once, before some program took it for one: it is not an id.
	Float bool
	// Fault says why the value cannot be used, to go on from "the value"; the fields
	// above then mean nothing. It counts only where the column is used.
	Fault string

	nested bool // a JSON object, or a list with something other than values in it
}

// OpenParquet opens a Parquet manifest. want names the columns whose cells are needed, nil all of them; the cells of
// the others may be Null. A *Problem as the error says what is wrong with the file.
type OpenParquet func(path string, want []string) (RowReader, error)

// A source is a RowReader that knows where its cells stand.
type source interface {
	Columns() []string
	Next() ([]Cell, error)
	// at gives line and column of cell i of the last row; of the row itself for -1.
	at(i int) (line, column int)
}

// A Format is how a manifest is written.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	TSV     Format = "tsv"
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

var formats = map[string]Format{".csv": CSV, ".tsv": TSV, ".tab": TSV, ".jsonl": JSONL, ".ndjson": JSONL,
	".parquet": Parquet, ".pq": Parquet}

// formatOf tells a file's format by its extension.
func formatOf(path string) (Format, *Problem) {
	ext := fold(filepath.Ext(path))
	if format, known := formats[ext]; known {
		return format, nil
	}
	hint := "name it .csv, .tsv, .jsonl or .parquet, or set format in release.toml"
	switch ext {
	case ".xls", ".xlsx", ".ods":
		hint = "save the sheet as CSV (UTF-8 without BOM), with the id column as text"
	case ".json":
		hint = "write one object a line and name the file .jsonl"
	}
	return "", &Problem{File: path, Message: fmt.Sprintf("the name does not tell the format (%s)", quote(ext)), Hint: hint}
}

// parquetRows numbers the rows of a Parquet file.
type parquetRows struct {
	RowReader
	row int
}

func (p *parquetRows) Next() ([]Cell, error) {
	p.row++
	cells, err := p.RowReader.Next()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("row %d: %w", p.row, err)
	}
	return cells, err
}

func (p *parquetRows) at(i int) (line, column int) { return p.row, i + 1 }

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
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	// The rest of a long line is skipped, so that the next one can be read.
	for err == bufio.ErrBufferFull {
		_, err = l.in.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read line %d: %w", l.line, err)
	}
	if len(text) > maxLine {
		return nil, l.problem(0, "the line is longer than 64 KiB",
			"take long texts out of the file; ids and labels are all it needs")
	}
	if p := l.fault(text); p != nil {
		return nil, p
	}
	return text, nil
}

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
	i := 0
	for r, size := utf8.DecodeRune(text); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(text[i:]) {
		i += size // the rune U+FFFD itself has three bytes
	}
	return l.problem(i+1, fmt.Sprintf("byte 0x%02x is not UTF-8", text[i]),
		"save the file with the encoding UTF-8; it seems to have another, such as Windows-1252")
}

// byteOrderMark words the problem of a text that starts with one, "" for none.
func byteOrderMark(text []byte) (message, hint string) {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} { // of UTF-8, and of UTF-16 in either order
		if bytes.HasPrefix(text, []byte(mark)) {
			return "the file starts with a byte order mark", `save it as "UTF-8" without BOM; Excel's "CSV UTF-8" adds one`
		}
	}
	return "", ""
}

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
	unread []byte // what the parser does not have of it
}

// newCSVRows reads the header. Its errors are *Problem or the reader's.
func newCSVRows(r io.Reader, file string, comma byte) (*csvRows, error) {
	c := &csvRows{in: newLineReader(r, file)}
	c.parser = csv.NewReader(c)
	c.parser.Comma = rune(comma)
	c.parser.FieldsPerRecord = -1 // counted by Next, which can name the header
	c.parser.ReuseRecord = true   // cells are valid until the next row anyway
	names, err := c.fields()
	if err == io.EOF {
		return nil, &Problem{File: file, Line: 1, Message: "the file is empty",
			Hint: "the first line names the columns, the entries follow"}
	}
	if err != nil {
		return nil, err
	}
	if len(names) > maxColumns {
		return nil, c.problem(-1, fmt.Sprintf("the header has %d columns", len(names)), "at most 1000 are read")
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if name != "" && slices.Contains(c.columns, name) { // columns without a name cannot be used, so they may be several
			return nil, c.problem(i, fmt.Sprintf("two columns are named %s", quote(name)),
				"rename one; columns are told apart by name only")
		}
		c.columns = append(c.columns, name)
	}
	c.cells = make([]Cell, len(names))
	return c, nil
}

func (c *csvRows) Columns() []string { return c.columns }

// Read gives the parser the rest of the present line, or the next one.
func (c *csvRows) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		text, err := c.nextLine()
		if err != nil {
			return 0, err
		}
		c.line = append(append(c.line[:0], text...), '\n')
		c.unread = c.line
		c.size += len(c.line)
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
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
	where := "64 KiB after it"
	if err == io.EOF {
		where = "the end of the file"
	} else if err != nil || c.size+len(text) <= maxLine {
		return text, err
	}
	return nil, c.problem(-1, "a quoted field that starts on this line is not closed by "+where,
		`close its quote ("); the lines up to there were skipped`)
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

func (c *csvRows) Next() ([]Cell, error) {
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	if n := len(fields); n != len(c.columns) {
		message := fmt.Sprintf("the row has %d fields, the header has %d", n, len(c.columns))
		const hint = "put quotes around a field that holds the separator, and leave an empty field for a missing value"
		if n > len(c.columns) {
			return nil, c.problem(len(c.columns), message, hint)
		}
		return nil, c.in.problem(len(c.line), message, hint) // where the row ends
	}
	for i, field := range fields {
		c.cells[i].Text = field
	}
	return c.cells, nil
}

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

// jsonRows reads JSONL: one object a line. Its columns are the keys that are wanted, or all as they are met.
type jsonRows struct {
	in    *lineReader
	grow  bool // every further key becomes a column
	keys  []string
	index map[string]int // key -> column
	met   []bool         // whether any line had the column

	cells []Cell
	cols  []int // where the cells stand in the line, 0 when missing
}

func newJSONRows(r io.Reader, file string, want []string) *jsonRows {
	j := &jsonRows{in: newLineReader(r, file), grow: want == nil, index: make(map[string]int)}
	for _, key := range want {
		j.column(key)
	}
	return j
}

func (j *jsonRows) Columns() []string { return j.keys }

func (j *jsonRows) at(i int) (line, column int) {
	if i >= 0 {
		column = j.cols[i]
	}
	return max(j.in.line, 1), column
}

func (j *jsonRows) column(key string) int {
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

// jsonString gives the text of a string with its quotes.
func jsonString(quoted string) string {
	text := quoted[1 : len(quoted)-1]
	// Few have escapes, and the library takes its time.
	if strings.IndexByte(text, '\\') >= 0 {
		_ = json.Unmarshal([]byte(quoted), &text) // it is valid
	}
	return text
}

func jsonCell(value string) Cell {
	// Objects, and lists of more than plain values, are marked only: they matter where the column is used.
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
			cell.Float = item.Float // an id is the only item
			cell.List = append(cell.List, item.Text)
		}
		return cell
	}
	return Cell{Text: value, Float: strings.ContainsAny(value, ".eE")}
}
