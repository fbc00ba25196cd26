package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// RecordsName is the file of the records of an annotation dataset of Argilla.
const RecordsName = "records.json"

// A Record is a post as Argilla reads it (Record.from_dict of argilla/records/_resource.py). It carries no answers:
// Argilla takes none of users that its server does not know.
type Record struct {
	ID       string            `json:"id"` // as of a Row
	Fields   map[string]any    `json:"fields"`
	Metadata map[string]string `json:"metadata"`
}

// WriteRecords writes a list of records, one a line.
func WriteRecords(w io.Writer, records iter.Seq2[Record, error]) error {
	return writeList(w, func(yield func([]byte, error) bool) {
		for r, err := range records {
			var line []byte
			if err == nil {
				line, err = json.Marshal(r)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	})
}

func writeList(w io.Writer, lines iter.Seq2[[]byte, error]) error {
	out, before := bufio.NewWriter(w), "[\n"
	for line, err := range lines {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s", before, line)
		before = ",\n"
	}
	if before == "[\n" {
		fmt.Fprint(out, before)
	}
	fmt.Fprint(out, "\n]\n")
	return out.Flush()
}

// maxRecord bounds a record, in bytes: a picture in base 64 and little else.
const maxRecord = 256 << 20

// recordsWithout writes a file of WriteRecords once more, without records.
func recordsWithout(w io.Writer, r io.ReaderAt, size int64, gone func(id string) (bool, error)) error {
	in := bufio.NewScanner(io.NewSectionReader(r, 0, size))
	in.Buffer(nil, maxRecord)
	errForeign := errors.New("it is not a list of records, one a line")
	return writeList(w, func(yield func([]byte, error) bool) {
		ends := false
		for n := 0; in.Scan(); n++ {
			line := bytes.TrimSuffix(in.Bytes(), []byte(","))
			ends = string(line) == "]"
			if n == 0 && string(line) == "[" || len(line) == 0 || ends {
				continue
			}
			var record struct{ ID string }
			if n == 0 || json.Unmarshal(line, &record) != nil || record.ID == "" {
				yield(nil, errForeign)
				return
			}
			drop, err := gone(record.ID)
			if (err != nil || !drop) && !yield(line, err) {
				return
			}
		}
		if err := in.Err(); err != nil || !ends {
			yield(nil, errors.Join(errForeign, err))
		}
	})
}
