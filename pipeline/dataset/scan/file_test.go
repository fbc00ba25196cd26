package scan

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rehydrate/pipeline/attest"
)

type scanned struct {
	ID    string `parquet:"ID"`
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image"`
	Hash   int64    `parquet:"hash"`
	Labels []string `parquet:"labels,list"`
	Score  float64  `parquet:"score"`
	Note   *string  `parquet:"note,optional"`
}

func scannedFile(t testing.TB, rows int, options ...parquet.WriterOption) []byte {
	t.Helper()
	var all []scanned
	for i := range rows {
		row := scanned{ID: fmt.Sprintf("id%d", i), Hash: int64(i), Labels: []string{"a", "b"}[:i%3%2+1]}
		row.Image.Bytes = bytes.Repeat([]byte{byte(i)}, 300)
		if i == 4 {
			row.Note = new("a note")
		}
		all = append(all, row)
	}
	return parquetOf(t, all, append(options, parquet.MaxRowsPerRowGroup(3))...)
}

func opened(t testing.TB, file []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	attest.OK(t, err)
	return f
}

// values are what a column holds, as text with the row before it.
func values(t testing.TB, file []byte, column string) (got []string, err error) {
	t.Helper()
	s, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	for v, err := range s.Values(t.Context(), column) {
		if err != nil {
			return got, err
		}
		text := fmt.Sprintf("%d:%.8q", v.Row, v.Data)
		if n, ok := v.Data.(int64); ok {
			text = fmt.Sprintf("%d:%d", v.Row, n)
		}
		got = append(got, text)
	}
	return got, nil
}

// TestScan reads columns of every kind over several row groups.
func TestScan(t *testing.T) {
	file := scannedFile(t, 5)
	columns := []string{"ID", "image.bytes", "image.path", "hash", "labels.list.element", "note"}
	attest.Same(t, "columns", columns, opened(t, file).Columns())
	for column, want := range map[string][]string{
		"ID":                  {`0:"id0"`, `1:"id1"`, `2:"id2"`, `3:"id3"`, `4:"id4"`},
		"hash":                {"0:0", "1:1", "2:2", "3:3", "4:4"},
		"note":                {`4:"a note"`},
		"labels.list.element": {`0:"a"`, `1:"a"`, `1:"b"`, `2:"a"`, `3:"a"`, `4:"a"`, `4:"b"`},
	} {
		got, err := values(t, file, column)
		attest.Same(t, column, want, got, err)
	}
}

// TestRowsWithoutColumns: a file without columns has no rows, and not rows without end.
func TestRowsWithoutColumns(t *testing.T) {
	var file bytes.Buffer
	attest.OK(t, parquet.NewWriter(&file, parquet.NewSchema("none", parquet.Group{})).Close())
	for row, err := range opened(t, file.Bytes()).Rows() {
		t.Fatalf("row %v, %v", row, err)
	}
}

// TestScanRefuses has every column that is not there, and every file that is cut short, end in an error.
func TestScanRefuses(t *testing.T) {
	file := scannedFile(t, 5)
	for _, column := range []string{"nosuch", "score", ""} {
		if got, err := values(t, file, column); err == nil {
			t.Errorf("column %q = %v, want an error", column, got)
		}
	}
	for n := range len(file) {
		if got, err := values(t, file[:n], "ID"); err == nil {
			t.Errorf("the first %d of %d bytes hold %v, want an error", n, len(file), got)
		}
	}
}

// TestLongFooter: a footer with long notes, as writers of maps and tables add them, does not keep a file from being read.
func TestLongFooter(t *testing.T) {
	f := opened(t, scannedFile(t, 5, parquet.KeyValueMetadata("note", string(make([]byte, 17<<20)))))
	if note, ok := f.Footer("note"); !ok || len(note) != 17<<20 {
		t.Errorf("a note of %d bytes, %v", len(note), ok)
	}
}
