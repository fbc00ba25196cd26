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
	in, out := csv.NewReader(r), csv.NewWriter(w)
	if f == TSV {
		in.Comma, out.Comma = '\t', '\t'
	}
	var gone []bool
	for {
		record, err := in.Read()
		if err == io.EOF {
			out.Flush()
			return out.Error()
		}
		if err != nil {
			return err
		}
		if gone == nil { // the header
			for i, name := range record {
				record[i] = strings.TrimSpace(name)
				gone = append(gone, slices.Contains(without, record[i]))
			}
		}
		at := -1
		stay := slices.DeleteFunc(record, func(string) bool { at++; return gone[at] })
		if err := out.Write(stay); err != nil {
			return err
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
