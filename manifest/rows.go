package manifest

import (
	"fmt"
	"io"
	"path/filepath"
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
