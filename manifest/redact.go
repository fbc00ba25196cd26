package manifest

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// redact copies a CSV, TSV or JSONL file without the columns named. The file was read
// whole before and found good; of the columns that stay, the values stay the same.
func redact(w io.Writer, r io.Reader, file string, f Format, without []string) error {
	switch f {
	case CSV:
		return redactCSV(w, r, file, ',', without)
	case TSV:
		return redactCSV(w, r, file, '\t', without)
	case JSONL:
		return redactJSON(w, r, file, without)
	}
	return fmt.Errorf("copy %s: columns of format %q cannot be left out", file, f)
}

func redactCSV(w io.Writer, r io.Reader, file string, comma byte, without []string) error {
	rows, err := newCSVRows(r, file, comma)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.Comma = rune(comma)
	var stay []int
	var record []string
	for i, name := range rows.Columns() {
		if !slices.Contains(without, name) {
			stay = append(stay, i)
			record = append(record, name)
		}
	}
	for {
		if err := out.Write(record); err != nil {
			return err
		}
		cells, err := rows.Next()
		if err == io.EOF {
			out.Flush()
			return out.Error()
		}
		if err != nil {
			return err
		}
		record = record[:0]
		for _, i := range stay {
			record = append(record, cells[i].Text)
		}
	}
}

func redactJSON(w io.Writer, r io.Reader, file string, without []string) error {
	rows := newJSONRows(r, file, nil, false)
	out := bufio.NewWriter(w)
	for {
		text, err := rows.nextLine()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if text, err = withoutKeys(text, without); err != nil {
			return rows.in.problem(0, "the line is not valid JSON", "write one whole JSON object a line")
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
}

// withoutKeys gives the object in text without some keys; the rest keeps its bytes.
func withoutKeys(text []byte, without []string) ([]byte, error) {
	type member struct{ from, to int64 }
	var stay []member
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, err
	}
	for d.More() {
		from := int64(column(d, text) - 1)
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if name, _ := key.(string); !slices.Contains(without, name) {
			stay = append(stay, member{from, d.InputOffset()})
		}
	}
	out := []byte{'{'}
	for i, m := range stay {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, text[m.from:m.to]...)
	}
	return append(out, '}'), nil
}
