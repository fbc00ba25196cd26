// Package table reads the files in which people keep rows: CSV, TSV, JSON Lines and JSON. It gives each row's cells as
// text, and says exactly where a file is wrong. A bad row costs no other, and none is held that is longer than
// MaxLine, or MaxRecord in JSON. A byte order mark at the beginning of a file is skipped.
package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"rehydrate/internal/userfile"
	"rehydrate/manifest/value"
)

// A RowReader gives the rows of a table, one after the other.
type RowReader interface {
	// Columns gives the column names in file order.
	Columns() []string
	// Next gives the next row, one cell per column, valid until the call after; io.EOF at the end. After a *Problem
	// the next row can be asked for; any other error is final. A value that cannot be used has a Fault in its cell.
	Next() ([]Cell, error)
	// Unread gives the columns of the file that are not among Columns, for nothing here reads their type.
	Unread() []Unread
	Close() error
}

// An Unread is a column of a Parquet whose values cannot be read.
type Unread struct{ Name, Type string }

// Why says why there are no values, to go on from the column's name.
func (u Unread) Why() string { return "its Parquet type, " + u.Type + ", is not read" }

// ReadTypes is what to do about an Unread.
const ReadTypes = "write it as text, numbers, booleans, times or lists of them"

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

	JSON   string // the value as a file of JSON has it, "" of other files
	Nested bool   // a JSON object, or a list with something other than values in it
	Absent bool   // Null because the record of JSON does not have the key
}

// Plain gives the text of a cell without spaces around it, "" for what is missing, nested or a list of several.
func (c Cell) Plain() string {
	switch {
	case c.Null, c.Nested, c.Fault != "", c.IsList && len(c.List) != 1:
		return ""
	case c.IsList:
		return strings.TrimSpace(c.List[0])
	}
	return strings.TrimSpace(c.Text)
}

// A Source is a RowReader that knows where its cells stand.
type Source interface {
	Columns() []string
	Next() ([]Cell, error)
	// At gives line and column of cell i of the last row; of the row itself for -1.
	At(i int) (line, column int)
}

// A Format is how a manifest is written.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	TSV     Format = "tsv"
	JSONL   Format = "jsonl"
	JSON    Format = "json" // a list of records, or an object that holds one
	Parquet Format = "parquet"
	// List is one value a line. No name and no release.toml says it: whoever opens the file does.
	List Format = "list"
)

var formats = map[string]Format{".csv": CSV, ".tsv": TSV, ".tab": TSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSON,
	".parquet": Parquet, ".pq": Parquet}

// FormatOf tells a file's format by its extension, before that of a packed file.
func FormatOf(path string) (Format, *Problem) {
	ext := strings.ToLower(filepath.Ext(UnpackedName(path)))
	if format, known := formats[ext]; known {
		return format, nil
	}
	hint := "name it .csv, .tsv, .jsonl, .json or .parquet (a list of ids .txt), or set format in release.toml"
	switch ext {
	case ".xls", ".xlsx", ".ods":
		hint = "save the sheet as CSV (UTF-8), with the id column as text"
	case ".zip", ".tar", ".tgz", ".xz":
		hint = "unpack it; .gz, .zst and .bz2 are read as they are"
	}
	return "", &Problem{File: path, Message: fmt.Sprintf("the name does not tell the format (%s)", Quote(ext)),
		Hint: hint}
}

// UnpackedName is the name of a packed file without .gz, .zst or .bz2.
func UnpackedName(path string) string {
	if ext := filepath.Ext(path); slices.Contains([]string{".gz", ".zst", ".bz2"}, strings.ToLower(ext)) {
		return strings.TrimSuffix(path, ext)
	}
	return path
}

// Stem is the name of a file without its folder, and without its ending and that of its packing.
func Stem(path string) string {
	name := filepath.Base(UnpackedName(path))
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// parquetRows numbers the rows of a Parquet file.
type parquetRows struct {
	RowReader
	row int
}

// NewParquet gives the rows of a Parquet file with their places.
func NewParquet(r RowReader) Source { return &parquetRows{RowReader: r} }

func (p *parquetRows) Next() ([]Cell, error) {
	p.row++
	cells, err := p.RowReader.Next()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("row %d: %w", p.row, err)
	}
	return cells, err
}

func (p *parquetRows) At(i int) (line, column int) { return p.row, i + 1 }

// Limits of the files read here. A row with digests holds about 150 bytes.
const (
	MaxLine    = 64 << 10 // bytes of a line of CSV, and of a record with line breaks in it
	MaxRecord  = 1 << 20  // bytes of a JSON record, and of a line of JSON: a post with its text has up to half of it
	maxColumns = 1000     // columns of a manifest
)

// A lineReader gives the lines of a text file without their ends, within the limits.
type lineReader struct {
	in   *bufio.Reader
	most int // bytes of a line
	file string
	line int // number of the line that next gave last
	end  bool
}

func newLineReader(r io.Reader, file string, most int) *lineReader {
	l := &lineReader{in: bufio.NewReaderSize(r, most+2), most: most, file: file} // 2: CR LF
	userfile.SkipMark(l.in)
	return l
}

// next gives the next line; it is valid until the call after. The error is io.EOF at
// the end, a *Problem for a line that is to be skipped, or the reader's own.
func (l *lineReader) next() ([]byte, error) {
	if l.end {
		return nil, io.EOF
	}
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
	if p, ok := AsProblem(err); ok { // of a packed file, which ends there
		p.Line, l.end = l.line, true
		return nil, p
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read line %d: %w", l.line, err)
	}
	if len(text) > l.most {
		return nil, l.problem(0, fmt.Sprintf("the line is longer than %d KiB", l.most>>10),
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

// binaries are files that people name as tables of text, by how they begin.
var binaries = []struct{ begins, message, hint string }{
	{"SQLite format 3\x00", "it is a SQLite database",
		"export its table as CSV: sqlite3 -csv -header FILE 'SELECT * FROM t' >NEW"},
	{"PK\x03\x04", "it is a zip, as an Excel sheet is", "unpack it, or save the sheet as CSV (UTF-8)"},
}

// fault finds bytes that no text file of ours has.
func (l *lineReader) fault(text []byte) *Problem {
	if l.line == 1 && IsUTF16(text) {
		return l.problem(1, UTF16, SaveAsUTF8)
	}
	for _, b := range binaries {
		if l.line == 1 && bytes.HasPrefix(text, []byte(b.begins)) {
			return l.problem(0, b.message, b.hint)
		}
	}
	if _, behind, found := bytes.Cut(text, []byte("\r")); l.line == 1 && found && len(bytes.Trim(behind, "\r")) > 0 {
		return l.problem(0, "the lines end in CR alone, as old programs for the Mac write them",
			"save the file with lines that end in LF or CRLF: tr '\\r' '\\n' <FILE >NEW")
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

// The problem of a text that IsUTF16 finds.
const (
	UTF16      = "the file is in UTF-16"
	SaveAsUTF8 = `save it as UTF-8: in Excel "CSV UTF-8", not "Unicode Text"`
)

// IsUTF16 reports whether a file begins as those in UTF-16 do: with a byte order mark, in either order.
func IsUTF16(start []byte) bool {
	return bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff"))
}

// CSVRows reads CSV and TSV, strictly. The library parses; CSVRows is the io.Reader that it
// reads from, which hands out one line at a time. So the library is never ahead of a record:
// a bad one costs no other, and none is held that is longer than MaxLine.
type CSVRows struct {
	in      *lineReader
	parser  *csv.Reader
	columns []string
	cells   []Cell
	comma   string
	first   []string // of a file without a header: the first row, until it was given

	start  int    // line on which the record starts
	size   int    // bytes of the record that the parser has
	line   []byte // with its end
	unread []byte // what the parser does not have of it
}

// NewCSV reads the header. Its errors are *Problem or the reader's. Where the header has semicolons and no
// comma, they separate the fields.
func NewCSV(r io.Reader, file string, comma byte) (*CSVRows, error) {
	c := newCSV(r, file, comma)
	names, err := c.fields()
	if err == io.EOF {
		return nil, &Problem{File: file, Line: 1, Message: emptyFile,
			Hint: "the first line names the columns, the entries follow"}
	}
	if err != nil {
		return nil, err
	}
	return c, c.setColumns(names)
}

const emptyFile = "the file is empty"

// NewBareCSV reads a file without a header, whose first line is a row: the columns are column_1, column_2 and so on.
func NewBareCSV(r io.Reader, file string, comma byte) (*CSVRows, error) {
	c := newCSV(r, file, comma)
	fields, err := c.fields()
	if err == io.EOF {
		return nil, &Problem{File: file, Line: 1, Message: emptyFile, Hint: "each line is a row"}
	}
	if err != nil {
		return nil, err
	}
	c.first = slices.Clone(fields)
	var names []string
	for i := range fields {
		names = append(names, fmt.Sprintf("column_%d", i+1))
	}
	return c, c.setColumns(names)
}

func newCSV(r io.Reader, file string, comma byte) *CSVRows {
	c := &CSVRows{in: newLineReader(r, file, MaxLine)}
	start, _ := c.in.in.Peek(MaxLine)
	header, _, _ := bytes.Cut(start, []byte("\n"))
	if comma == ',' && bytes.IndexByte(header, ',') < 0 && bytes.IndexByte(header, ';') >= 0 {
		comma = ';'
	}
	c.parser = csv.NewReader(c)
	c.parser.Comma, c.comma = rune(comma), string(comma)
	c.parser.FieldsPerRecord = -1 // counted by Next, which can name the header
	c.parser.ReuseRecord = true   // cells are valid until the next row anyway
	return c
}

func (c *CSVRows) setColumns(names []string) error {
	if len(names) > maxColumns {
		return c.Problem(-1, fmt.Sprintf("the header has %d columns", len(names)), "at most 1000 are read")
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if name != "" && slices.Contains(c.columns, name) { // columns without a name cannot be used, so they may be several
			return c.Problem(i, fmt.Sprintf("two columns are named %s", Quote(name)),
				"rename one; columns are told apart by name only")
		}
		c.columns = append(c.columns, strings.Clone(name))
	}
	c.cells = make([]Cell, len(names))
	return nil
}

func (c *CSVRows) Columns() []string { return c.columns }

// Read gives the parser the rest of the present line, or the next one.
func (c *CSVRows) Read(p []byte) (int, error) {
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

func (c *CSVRows) nextLine() ([]byte, error) {
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
	} else if err != nil || c.size+len(text) <= MaxLine {
		return text, err
	}
	return nil, c.Problem(-1, "a quoted field that starts on this line is not closed by "+where,
		`close its quote ("); the lines up to there were skipped`)
}

func (c *CSVRows) At(i int) (line, column int) {
	if i < 0 {
		return c.start, 0
	}
	// The parser counts only the lines that it was given.
	first, _ := c.parser.FieldPos(0)
	line, column = c.parser.FieldPos(i)
	return c.start + line - first, column
}

// Problem is one about a cell of the last row; about the row for -1.
func (c *CSVRows) Problem(cell int, message, hint string) *Problem {
	line, column := c.At(cell)
	return &Problem{File: c.in.file, Line: line, Column: column, Message: message, Hint: hint}
}

// Start is the line on which the last row starts.
func (c *CSVRows) Start() int { return c.start }

// Next gives the fields of the next record.
func (c *CSVRows) Next() ([]Cell, error) {
	fields, err := c.first, error(nil)
	if c.first == nil {
		fields, err = c.fields()
	}
	c.first = nil
	// Spreadsheets end a table with rows of nothing but separators.
	for err == nil && len(c.columns) > 1 && isBlank(fields) {
		fields, err = c.fields()
	}
	if err != nil {
		return nil, err
	}
	if n := len(fields); n != len(c.columns) {
		message := fmt.Sprintf("the row has %d fields, the header has %d", n, len(c.columns))
		const hint = "put quotes around a field that holds the separator, and leave an empty field for a missing value"
		if n > len(c.columns) {
			return nil, c.Problem(len(c.columns), message, hint)
		}
		return nil, c.in.problem(len(c.line), message, hint) // where the row ends
	}
	for i, field := range fields {
		if strings.IndexByte(field, '\n') >= 0 && c.swallowed(fields, i) {
			return nil, c.Problem(i, fmt.Sprintf("a quoted field that starts here holds whole rows, up to line %d",
				c.in.line),
				`where its quote (") is a part of the text, put the field in quotes and double it: """Hello"; where it opens a field, close it`)
		}
		c.cells[i].Text = field
	}
	return c.cells, nil
}

// isBlank reports whether a row has no value.
func isBlank(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool { return strings.TrimSpace(field) != "" })
}

// swallowed reports whether the lines of a quoted field are rows, which a quote that nobody closed runs over: cut where
// the field begins and ends, they have as many fields as the header. Several tabs seldom stand in a text, so one such
// line inside is enough. Commas do, and one tab: there the lines also have to have a key in the same column.
func (c *CSVRows) swallowed(fields []string, i int) bool {
	lines := strings.Split(fields[i], "\n")
	last := len(lines) - 1
	lines[0] = strings.Join(append(slices.Clone(fields[:i]), lines[0]), c.comma)
	lines[last] = strings.Join(append([]string{lines[last]}, fields[i+1:]...), c.comma)
	rows, inside := 0, false
	keys := make([]int, len(c.columns)) // in how many rows each column has one
	for n, line := range lines {
		row := strings.Split(line, c.comma)
		if len(row) != len(c.columns) || len(row) == 1 {
			if strings.TrimSpace(line) == "" {
				last--
			}
			continue
		}
		rows++
		inside = inside || n > 0 && n < len(lines)-1
		for k, text := range row {
			if isKey(text) {
				keys[k]++
			}
		}
	}
	isRow := rows == last+1 || inside && c.comma == "\t"
	return isRow && (c.comma == "\t" && len(c.columns) > 2 || rows > 1 && slices.Contains(keys, rows))
}

// isKey reports whether a text looks like the id of a post: letters and a digit, in one short word or behind t3_.
func isKey(text string) bool {
	text = strings.TrimPrefix(text, "t3_")
	return len(text) > 4 && len(text) < 14 && strings.Trim(text, value.Digits+value.Lower) == "" &&
		strings.ContainsAny(text, value.Digits)
}

func (c *CSVRows) fields() ([]string, error) {
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
