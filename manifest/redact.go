package manifest

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
)

// redact copies a CSV, TSV or JSONL file without the columns named. The file was read
// whole before and found good; of the columns that stay, the values stay the same.
func redact(w io.Writer, r io.Reader, file string, f Format, without []string) error {
	if f == JSONL {
		return redactJSON(w, r, file, without)
	}
	comma := byte(',')
	if f == TSV {
		comma = '\t'
	}
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
		text, err := rows.nextObject()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var stay []string // members with their bytes
		for m := range members(string(text)) {
			if !slices.Contains(without, m.key) {
				stay = append(stay, string(text[m.from:m.at+len(m.value)]))
			}
		}
		if _, err := fmt.Fprintf(out, "{%s}\n", strings.Join(stay, ",")); err != nil {
			return err
		}
	}
}
