package dataset

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/pipeline/dataset/duckdbtest"
)

func testReadings() []ReadingRow {
	digest := strings.Repeat("0123456789abcdef", 4)
	return []ReadingRow{
		{File: "a/meme.jpg", Text: "HELLO\nWORLD", Confidence: 91.5, Width: 640, Height: 480, SHA256: digest, Words: []ReadingWord{
			{Text: "HELLO", Confidence: 93, X: 10, Y: 20, Width: 100, Height: 30, Line: 0, Accepted: true},
			{Text: "wrld", Confidence: 0, X: 0, Y: 0, Width: 1, Height: 1, Line: 1, Accepted: false},
		}},
		{File: "blank.png", Width: 1, Height: 1, SHA256: digest}, // "", 0 and no words are no nulls
		{File: "b\u00e9.png", Error: "invalid/bad_header: png", Reason: "bad_header", Width: 7, Text: "not written"},
	}
}

func readingsBytes(t *testing.T, rows []ReadingRow) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewReadingsWriter(&b, "1.2.3", map[string]string{"engine": "tesseract 5", "model": "eng"})
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadingsInDuckDB(t *testing.T) {
	path := filepath.Join(t.TempDir(), "readings.parquet")
	if err := os.WriteFile(path, readingsBytes(t, testReadings()), 0o600); err != nil {
		t.Fatal(err)
	}
	type word struct {
		Text       string  `json:"text"`
		Confidence float64 `json:"confidence"`
		X          int     `json:"x"`
		Y          int     `json:"y"`
		W          int     `json:"w"`
		H          int     `json:"h"`
		Line       int     `json:"line"`
		Accepted   bool    `json:"accepted"`
	}
	type read struct {
		File       string   `json:"file"`
		Text       *string  `json:"text"`
		Confidence *float64 `json:"confidence"`
		Width      *int     `json:"width"`
		Height     *int     `json:"height"`
		SHA256     *string  `json:"sha256"`
		Words      []word   `json:"words"`
		Error      *string  `json:"error"`
		Reason     *string  `json:"reason"`
	}
	var got []read
	duckdbtest.Query(t, &got, "SELECT * FROM read_parquet("+duckdbtest.Quote(path)+")")
	digest := testReadings()[0].SHA256
	want := []read{
		{File: "a/meme.jpg", Text: new("HELLO\nWORLD"), Confidence: new(91.5), Width: new(640), Height: new(480), SHA256: &digest,
			Words: []word{{"HELLO", 93, 10, 20, 100, 30, 0, true}, {"wrld", 0, 0, 0, 1, 1, 1, false}}},
		{File: "blank.png", Text: new(""), Confidence: new(0.0), Width: new(1), Height: new(1), SHA256: &digest, Words: []word{}},
		{File: "b\u00e9.png", Words: []word{}, Error: new("invalid/bad_header: png"), Reason: new("bad_header")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as DuckDB reads it (-want +got):\n%s", diff)
	}

	var footer []struct{ Key, Value string }
	duckdbtest.Query(t, &footer, "SELECT decode(key) AS Key, decode(value) AS Value FROM parquet_kv_metadata("+duckdbtest.Quote(path)+") ORDER BY 1")
	wantFooter := []struct{ Key, Value string }{{"ocr.engine", "tesseract 5"}, {"ocr.format", ReadingsVersion}, {"ocr.model", "eng"}}
	if diff := cmp.Diff(wantFooter, footer); diff != "" {
		t.Errorf("footer (-want +got):\n%s", diff)
	}
}

func TestReadingsAreTheSameBytes(t *testing.T) {
	want := readingsBytes(t, testReadings())
	for range 5 {
		if !bytes.Equal(want, readingsBytes(t, testReadings())) {
			t.Fatal("the same rows gave other bytes")
		}
	}
}

func TestReadingsRefuse(t *testing.T) {
	good := testReadings()[0]
	tests := map[string]func(*ReadingRow){
		"no file name":          func(r *ReadingRow) { r.File = "" },
		"not UTF-8":             func(r *ReadingRow) { r.File = "a\xff" },
		`"w\xff" is not UTF-8`:  func(r *ReadingRow) { r.Words = []ReadingWord{{Text: "w\xff"}} },
		"0 x 480 pixels":        func(r *ReadingRow) { r.Width = 0 },
		"NaN is outside":        func(r *ReadingRow) { r.Confidence = math.NaN() },
		"not 64 lower-case hex": func(r *ReadingRow) { r.SHA256 = "ABC" },
	}
	for want, damage := range tests {
		row := good
		damage(&row)
		w := NewReadingsWriter(new(bytes.Buffer), "1", nil)
		if err := w.Write(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Write = %v, want an error with %q", err, want)
		}
	}
}
