package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rehydrate/internal/testkit/duckdb"
)

func readingsBytes(t *testing.T, rows ...ReadingRow) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewReadingsWriter(&b, "1.2.3", map[string]string{"engine": "tesseract 5", "model": "eng"})
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadings(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	rows := []ReadingRow{
		{File: "a/meme.jpg", Text: new("HELLO\nWORLD"), Confidence: new(float32(91.5)), Width: new(int32(640)),
			Height: new(int32(480)),
			SHA256: &digest, Words: []ReadingWord{{"HELLO", 93, 10, 20, 100, 30, 0, true},
				{"wrld", 0, 0, 0, 1, 1, 1, false}}},
		// "", 0 and no words are not null.
		{File: "blank.png", Text: new(""), Confidence: new(float32(0)), Width: new(int32(1)), Height: new(int32(1)),
			SHA256: &digest},
		{File: "b\u00e9.png", Error: new("invalid/bad_header: png"), Reason: new("bad_header")},
	}
	file := readingsBytes(t, rows...)
	for range 5 {
		if !bytes.Equal(file, readingsBytes(t, rows...)) {
			t.Fatal("the same rows gave other bytes")
		}
	}
	path := filepath.Join(t.TempDir(), "readings.parquet")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []ReadingRow
	duckdb.Query(t, &got,
		`SELECT * REPLACE (list_transform(words, lambda w: {'Text': w.text, 'Confidence': w.confidence, 'X': w.x,
		'Y': w.y, 'Width': w.w, 'Height': w.h, 'Line': w.line, 'Accepted': w.accepted}) AS words) FROM read_parquet(`+duckdb.Quote(path)+")")
	if diff := cmp.Diff(rows, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("as DuckDB reads it (-want +got):\n%s", diff)
	}
	var footer []struct{ Key, Value string }
	duckdb.Query(t, &footer,
		"SELECT decode(key) AS Key, decode(value) AS Value FROM parquet_kv_metadata("+duckdb.Quote(path)+") ORDER BY 1")
	want := []struct{ Key, Value string }{{"ocr.engine", "tesseract 5"}, {"ocr.format", ReadingsVersion},
		{"ocr.model", "eng"}}
	if diff := cmp.Diff(want, footer); diff != "" {
		t.Errorf("footer (-want +got):\n%s", diff)
	}
}
