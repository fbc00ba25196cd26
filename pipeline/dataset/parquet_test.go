package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
)

// testSchema has one category of each kind, with names that are awkward in JSON, YAML and SQL.
func testSchema() manifest.Schema {
	return manifest.Schema{Name: "test", Categories: []manifest.Category{
		{Name: "kind", Title: "Kind", Kind: manifest.Single, Labels: []manifest.Label{
			{Code: "K1", Name: "No"}, {Code: "K2", Name: "It's \"quoted\": #1"}, {Code: "K3", Name: "Irony/Sarcasm"}}},
		{Name: "severity", Title: "Severity", Kind: manifest.Ordinal, Labels: []manifest.Label{
			{Code: "S1", Name: "None"}, {Code: "S2", Name: "Low"}, {Code: "S3", Name: "<High & up>"}}},
		{Name: "figures, of speech", Title: "Figures", Kind: manifest.Multi, Labels: []manifest.Label{
			{Code: "F1", Name: "Métaphore"}, {Code: "F2", Name: "0"}, {Code: "F3", Name: "Hyperbole"}}},
	}}
}

func testProvenance() Provenance {
	return Provenance{Release: "Test", Version: "1.0.0", ReleaseDigest: strings.Repeat("a", 64),
		ManifestDigest: strings.Repeat("b", 64),
		PolicyDigest:   strings.Repeat("c", 64), ToolVersion: "v0.1.0", OCREngine: "tesseract 5.3.0",
		OCRModel:      "eng " + strings.Repeat("d", 64),
		OCRParameters: "psm=3", Dedupe: "radius=10 words=3", HashKind: "phash goimagehash v1.1.0", GoVersion: "go1.26"}
}

// picture returns n bytes that look like a JPEG and do not compress.
func picture(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	copy(b, "\xff\xd8\xff\xe0\x00\x10JFIF")
	return b
}

func newRow(id string, image []byte) Row {
	sum := sha256.Sum256(image)
	return Row{ID: id, Image: image, Path: id + ".jpg", Text: "a text", Confidence: 91.5, Width: 640, Height: 480,
		SHA256: hex.EncodeToString(sum[:]), PHash: "0123456789abcdef", Labels: [][]int{{0}, {2}, {1, 0}}}
}

// testRows are rows in every shape that the columns have to tell apart.
func testRows() []Row {
	var rows []Row
	for i := range 8 {
		rows = append(rows, newRow(fmt.Sprintf("id%d", i), picture(uint64(i), 3000+i)))
	}
	rows[1].Labels = [][]int{{0}, {0}, {0}}    // label id 0 in all
	rows[2].Labels = [][]int{nil, nil, nil}    // no label given
	rows[3].Labels = [][]int{{}, {1}, {}}      // an empty list
	rows[4].Text, rows[4].Confidence = "", 0   // no text in the image
	rows[5].Text, rows[5].Confidence = " ", 12 // not the same as none
	rows[6].PHash, rows[6].Path = "", ""
	rows[6].Filter = "unreadable"
	rows[7].Text, rows[7].Labels = "línea\nзвук 😀", [][]int{{2}, {2}, {2, 1, 0}}
	rows[7].ID = "id7/1"
	return rows
}

func all(rows []Row) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func write(t testing.TB, flagged bool, rows iter.Seq2[Row, error]) ([]byte, Stats) {
	t.Helper()
	var b bytes.Buffer
	stats, err := WriteParquet(&b, testSchema(), testProvenance(), flagged, rows)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), stats
}

func writeFile(t testing.TB, flagged bool, rows iter.Seq2[Row, error]) (string, Stats) {
	t.Helper()
	data, stats := write(t, flagged, rows)
	path := filepath.Join(t.TempDir(), "it's a test.parquet")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, stats
}

func open(t testing.TB, data []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var rows []Row
	for i := range 250 {
		r := newRow(fmt.Sprint("r", i), picture(uint64(i), 2000+i*20))
		r.Text = strings.Repeat(fmt.Sprint("word", i%7, " "), i)
		r.Filter = []string{"", "not_english", "unreadable"}[i%3]
		rows = append(rows, r)
	}
	sums := map[string][]int{}
	for _, procs := range []int{1, 4, 4, 1} {
		runtime.GOMAXPROCS(procs)
		data, stats := write(t, true, all(rows))
		sum := sha256.Sum256(data)
		if stats.SHA256 != hex.EncodeToString(sum[:]) || stats.Bytes != int64(len(data)) {
			t.Errorf("stats = %+v, want sha256 %x of %d bytes", stats, sum, len(data))
		}
		sums[stats.SHA256] = append(sums[stats.SHA256], procs)
	}
	if len(sums) != 1 {
		t.Errorf("one input gave %d files: %v", len(sums), sums)
	}
}

func TestLayout(t *testing.T) {
	var rows []Row
	for i := range 205 {
		rows = append(rows, newRow(fmt.Sprint("r", i), picture(uint64(i), 20_000)))
		rows[i].Text = hex.EncodeToString(picture(uint64(1000+i), 200))
	}
	data, stats := write(t, true, all(rows))
	f := open(t, data)
	if stats.Rows != 205 || stats.RowGroups != 3 || f.NumRows() != 205 || stats.ImageBytes != 205*20_000 {
		t.Errorf("stats = %+v, file has %d rows; want 205 rows in 3 groups", stats, f.NumRows())
	}
	if limit := stats.ImageBytes * 105 / 100; stats.Bytes > limit {
		t.Errorf("file has %d bytes, want at most %d: images in the statistics?", stats.Bytes, limit)
	}
	for _, c := range f.Metadata().RowGroups[0].Columns {
		path, codec := strings.Join(c.MetaData.PathInSchema, "."), format.Zstd
		if path == "image.bytes" {
			codec = format.Uncompressed
		}
		if c.MetaData.Codec != codec {
			t.Errorf("%s: codec %v, want %v", path, c.MetaData.Codec, codec)
		}
		if dict := c.MetaData.DictionaryPageOffset != 0; dict != (path == "filter") {
			t.Errorf("%s: dictionary %v", path, dict)
		}
		if c.OffsetIndexOffset == 0 || c.ColumnIndexOffset == 0 {
			t.Errorf("%s: no page index", path)
		}
		if s := c.MetaData.Statistics; (path == "image.bytes" || path == "ocr_text") &&
			len(s.MinValue)+len(s.MaxValue)+len(s.Min)+len(s.Max) > 0 {
			t.Errorf("%s: its statistics hold a value", path)
		}
		if n := len(c.MetaData.Statistics.MinValue) + len(c.MetaData.Statistics.MaxValue); n > 200 {
			t.Errorf("%s: %d bytes of bounds in the footer", path, n)
		}
	}
	// Images are not packed and texts are: where a page header held one, it would be seen here.
	for i := range rows {
		if n := bytes.Count(data, rows[i].Image); n != 1 || bytes.Contains(data, []byte(rows[i].Text)) {
			t.Fatalf("row %d: its image is in the file %d times, its text as it is: %t", i, n,
				bytes.Contains(data, []byte(rows[i].Text)))
		}
	}
}

// Row groups end by the bytes of their images too, long before 100 rows.
func TestRowGroupBytes(t *testing.T) {
	image := picture(7, 9<<20)
	rows := func(yield func(Row, error) bool) {
		for i := range 9 {
			if !yield(newRow(fmt.Sprint(i), image), nil) {
				return
			}
		}
	}
	stats, err := WriteParquet(io.Discard, testSchema(), testProvenance(), false, rows)
	if err != nil || stats.RowGroups != 3 { // 36 + 36 + 9 MiB
		t.Errorf("9 images of 9 MiB: %d row groups, error %v; want 3", stats.RowGroups, err)
	}
}

// TestFooter: the label names are in the footer as they are, in the order of the columns.
func TestFooter(t *testing.T) {
	data, _ := write(t, true, all(testRows()))
	f := open(t, data)
	text, _ := f.Lookup("huggingface")
	at := 0
	for _, want := range []string{`"id":{"dtype":"string","_type":"Value"}`, `"image":{"_type":"Image"}`,
		`"ocr_confidence":{"dtype":"float32"`,
		`"height":{"dtype":"int32"`, `"filter":`,
		`"kind":{"names":["No","It's \"quoted\": #1","Irony/Sarcasm"],"_type":"ClassLabel"}`,
		`"severity":{"names":["None","Low","<High & up>"]`,
		`"figures, of speech":{"feature":{"names":["Métaphore","0","Hyperbole"],"_type":"ClassLabel"},"_type":"Sequence"}`} {
		n := strings.Index(text[at:], want)
		if n < 0 {
			t.Fatalf("%s is not there, or not in its place: %s", want, text)
		}
		at += n
	}
	if version, _ := f.Lookup("rehydrate.format"); version != FormatVersion {
		t.Errorf("the footer says format %q", version)
	}
}

func TestRowsRefused(t *testing.T) {
	good := func() Row { return newRow("abc", []byte("\xff\xd8\xff image")) }
	boom := errors.New("boom")
	for name, change := range map[string]func(*Row){
		"no image":       func(r *Row) { r.Image = nil },
		"damaged image":  func(r *Row) { r.Image = []byte("\xff\xd8\xff imagf") },
		"no id":          func(r *Row) { r.ID = "" },
		"no size":        func(r *Row) { r.Width = 0 },
		"huge size":      func(r *Row) { r.Height = 1 << 31 },
		"bad text":       func(r *Row) { r.Text = "\xff" },
		"bad phash":      func(r *Row) { r.PHash = "0123" },
		"bad confidence": func(r *Row) { r.Confidence = 101 },
		"labels missing": func(r *Row) { r.Labels = r.Labels[:2] },
		"label too high": func(r *Row) { r.Labels = [][]int{{3}, {}, {}} },
		"label below 0":  func(r *Row) { r.Labels = [][]int{{}, {}, {-1}} },
		"two for single": func(r *Row) { r.Labels = [][]int{{0, 1}, {}, {}} },
	} {
		row := good()
		change(&row)
		_, err := WriteParquet(io.Discard, testSchema(), testProvenance(), false, all([]Row{good(), row}))
		if err == nil || !strings.Contains(err.Error(), "row 2") {
			t.Errorf("%s: error %v, want one that names row 2", name, err)
		}
	}
	_, err := WriteParquet(io.Discard, testSchema(), testProvenance(), false,
		func(yield func(Row, error) bool) { yield(Row{}, boom) })
	if !errors.Is(err, boom) {
		t.Errorf("error of the rows came back as %v", err)
	}
	if _, err := WriteParquet(failingWriter{}, testSchema(), testProvenance(), false,
		all([]Row{good()})); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("failed write came back as %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestColumnTypes holds that every type of a column that passes through has its name in Parquet, card and Croissant.
func TestColumnTypes(t *testing.T) {
	s := testSchema()
	s.Columns = nil
	rows := testRows()[:1]
	rows[0].Values = nil
	texts := map[manifest.ColumnType]string{manifest.TypeText: "a", manifest.TypeInteger: "1",
		manifest.TypeNumber: "1.5", manifest.TypeBoolean: "true",
		manifest.TypeTimestamp: "2025-12-31T00:00:00Z", manifest.TypeJSON: `[{"a":"b"},null]`}
	for _, kind := range manifest.ColumnTypes() {
		s.Columns = append(s.Columns, manifest.Column{Name: "of_" + string(kind), Type: kind})
		rows[0].Values = append(rows[0].Values, []string{texts[kind]})
		if dtypes[kind] == "" || dataTypes[kind] == "" {
			t.Errorf("type %s is %q in Parquet, %q in Croissant", kind, dtypes[kind], dataTypes[kind])
		}
	}
	var b bytes.Buffer
	_, err := WriteParquet(&b, s, testCard().Provenance, false, all(rows))
	testkit.OK(t, err)
	f, err := scan.Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	testkit.OK(t, err)
	if got := f.Features()["of_json"]; got.DType != "string" || got.Type != "Value" {
		t.Errorf("the feature of a column of JSON is %+v", got)
	}
}
