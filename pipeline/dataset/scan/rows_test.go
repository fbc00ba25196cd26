package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
)

var exported = cmpopts.IgnoreUnexported(manifest.Cell{})

// A content is what a manifest holds: columns, then rows.
type content struct {
	Columns []string
	Rows    [][]manifest.Cell
}

func list(items ...string) manifest.Cell {
	return manifest.Cell{IsList: true, List: append([]string{}, items...)}
}

func readTable(path string, want ...string) (out content, err error) {
	r, err := OpenManifest(path, want)
	if err != nil {
		return out, err
	}
	defer r.Close()
	out.Columns = r.Columns()
	for {
		cells, err := r.Next()
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
		out.Rows = append(out.Rows, slices.Clone(cells))
	}
}

type manifestRow struct {
	ID      *string  `parquet:"id,optional"`
	Split   string   `parquet:"split,dict"`
	Image   int32    `parquet:"image"`
	Big     int64    `parquet:"big,delta"`
	Unsig   uint64   `parquet:"unsig"`
	Score   *float64 `parquet:"score,optional"`
	OneHot  bool     `parquet:"F1"`
	Tags    []string `parquet:"tags,list,optional" parquet-element:",optional,dict"`
	Bare    []string `parquet:"bare"`
	Numbers []*int64 `parquet:"numbers,list,optional" parquet-element:",optional"`
	Picture *struct {
		Bytes []byte `parquet:"bytes"`
	} `parquet:"picture,optional"`
}

func manifestRows() []manifestRow {
	score := 3.0
	return []manifestRow{
		{ID: new("1abc"), Split: "train", Image: 2, Big: -5, Unsig: 1 << 63, Score: &score, OneHot: true,
			Tags: []string{"a", "b"}, Bare: []string{"x", "y"}, Numbers: []*int64{new(int64(0))}},
		{ID: nil, Split: "", Tags: []string{}, Bare: nil},
		{ID: new("1abd"), Split: "test", Big: 1 << 40, Tags: nil, Bare: []string{"z"},
			Numbers: []*int64{new(int64(7)), nil}},
		{ID: new("\xff"), Split: "test"},
		{ID: new("1abe"), Split: "test", OneHot: true},
	}
}

func manifestFile(t testing.TB, options ...parquet.WriterOption) []byte {
	t.Helper()
	return parquetOf(t, manifestRows(), options...)
}

// parquetOf is a Parquet file of the rows.
func parquetOf[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.OK(t, parquet.Write(&b, rows, options...))
	return b.Bytes()
}

func save(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.parquet")
	testkit.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestOpenManifest(t *testing.T) {
	text := func(s string) manifest.Cell { return manifest.Cell{Text: s} }
	bad := func(fault string) manifest.Cell { return manifest.Cell{Fault: fault} }
	null, nullList := manifest.Cell{Null: true}, manifest.Cell{IsList: true, Null: true}
	want := content{
		Columns: []string{"id", "split", "image", "big", "unsig", "score", "F1", "tags", "bare", "numbers"},
		Rows: [][]manifest.Cell{
			{text("1abc"), text("train"), text("2"), text("-5"), text("9223372036854775808"), {Text: "3", Float: true},
				text("true"), list("a", "b"), list("x", "y"), list("0")},
			{null, text(""), text("0"), text("0"), text("0"), null, text("false"), list(), list(), nullList},
			{text("1abd"), text("test"), text("0"), text("1099511627776"), text("0"), null, text("false"), nullList,
				list("z"), bad("is a list with a null in it")},
			{bad("has a text that is not UTF-8"), text("test"), text("0"), text("0"), text("0"), null, text("false"),
				nullList, list(), nullList},
			{text("1abe"), text("test"), text("0"), text("0"), text("0"), null, text("true"), nullList, list(), nullList},
		},
	}
	for name, options := range map[string][]parquet.WriterOption{
		"plain, v2":       nil,
		"zstd, v1":        {parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1)},
		"snappy, v1":      {parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1)},
		"gzip, v2":        {parquet.Compression(&parquet.Gzip)},
		"a row per group": {parquet.MaxRowsPerRowGroup(1)},
	} {
		got, err := readTable(save(t, manifestFile(t, options...)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, exported); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Files of another writer, with its encodings and a NULL in every place.
func TestOpenManifestDuckDB(t *testing.T) {
	for codec, version := range map[string]string{"snappy": "v1", "zstd": "v2", "gzip": "v2", "uncompressed": "v1"} {
		path := filepath.Join(t.TempDir(), "d.parquet")
		var none []struct{}
		duckdb.Query(t, &none,
			fmt.Sprintf(`COPY (SELECT 'id' || i AS id, CASE i %% 3 WHEN 0 THEN 'train' WHEN 1 THEN 'test' END AS split,
			i::SMALLINT AS image, i %% 2 = 0 AS F1, CASE WHEN i %% 5 > 0 THEN list_transform(range(i %% 4), lambda x: 'L' || x) END AS labels,
			i / 2 AS half, {'a': 1} AS nested, DATE '2024-01-01' AS day FROM range(5000) t(i)) TO %s (FORMAT parquet, CODEC '%s', PARQUET_VERSION '%s', ROW_GROUP_SIZE 2048)`,
				duckdb.Quote(path), codec, version))
		got, err := readTable(path)
		if err != nil {
			t.Errorf("%s %s: %v", codec, version, err)
			continue
		}
		if diff := cmp.Diff([]string{"id", "split", "image", "F1", "labels", "half", "day"}, got.Columns); diff != "" ||
			len(got.Rows) != 5000 {
			t.Fatalf("%s %s: %d rows, columns (-want +got):\n%s", codec, version, len(got.Rows), diff)
		}
		for i, cells := range got.Rows {
			want := []manifest.Cell{{Text: fmt.Sprint("id", i)}, {Text: []string{"train", "test", ""}[i%3], Null: i%3 == 2},
				{Text: fmt.Sprint(i)},
				{Text: fmt.Sprint(i%2 == 0)}, {IsList: true, Null: i%5 == 0},
				{Text: strings.TrimSuffix(fmt.Sprintf("%.1f", float64(i)/2), ".0"), Float: true}, {Text: "2024-01-01"}}
			if i%5 > 0 {
				want[4].List = []string{"L0", "L1", "L2"}[:i%4]
			}
			if diff := cmp.Diff(want, cells, exported); diff != "" {
				t.Fatalf("%s %s, row %d (-want +got):\n%s", codec, version, i, diff)
			}
		}
	}
}

func TestOpenManifestRefuses(t *testing.T) {
	good := manifestFile(t)
	longFooter := bytes.Clone(good)
	binary.LittleEndian.PutUint32(longFooter[len(longFooter)-8:], 1<<31)
	for _, test := range []struct {
		name, message, hint string
		data                []byte
	}{
		{"empty", "too short", "cut off", nil},
		{"text", "does not end as a Parquet file does", "the extension of its format", []byte("id,split\n1abc,train\n")},
		{"cut off", "does not end as a Parquet file does", "copy it again", good[:len(good)-100]},
		{"long footer", "footer of 2147483648 bytes", "damaged", longFooter},
	} {
		_, err := OpenManifest(save(t, test.data), nil)
		var p *manifest.Problem
		if !errors.As(err, &p) || !strings.Contains(p.Message, test.message) || !strings.Contains(p.Hint, test.hint) ||
			p.File == "" {
			t.Errorf("%s: %v, want a problem %q with a hint %q", test.name, err, test.message, test.hint)
		}
	}
	for _, codec := range []compress.Codec{&parquet.Brotli, &parquet.Lz4Raw} {
		_, err := readTable(save(t, manifestFile(t, parquet.Compression(codec))))
		if err == nil || !strings.Contains(err.Error(), `column "id"`) ||
			!strings.Contains(err.Error(), "write the file with zstd") {
			t.Errorf("%s: %v", codec, err)
		}
	}
	if _, err := OpenManifest(t.TempDir(), nil); err == nil {
		t.Error("a folder was opened")
	}
	if _, err := OpenManifest(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// Reading all columns of this small file would take much memory: 9 pages of 8 MiB are too much at once. Of the columns
// that are not wanted nothing is read.
func TestOpenManifestMemory(t *testing.T) {
	plain := parquet.Encoded(parquet.String(), &parquet.Plain)
	columns := parquet.Group{"id": plain}
	for i := range 9 {
		columns[fmt.Sprint("text", i)] = plain
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[any](&b, parquet.NewSchema("manifest", columns), parquet.Compression(&parquet.Zstd),
		parquet.PageBufferSize(9<<20), parquet.DataPageStatistics(false))
	row := parquet.Row{parquet.ByteArrayValue([]byte("1abc")).Level(0, 0, 0)}
	for i := range 9 {
		row = append(row, parquet.ByteArrayValue(make([]byte, 64<<10)).Level(0, 0, i+1))
	}
	for range 8 << 20 / (64 << 10) {
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.OK(t, w.Close())
	path := save(t, b.Bytes())
	if _, err := readTable(path); err == nil || !strings.Contains(err.Error(),
		"takes more than 67108864 bytes of memory") {
		t.Errorf("a file of %d bytes with pages of 72 MiB: %v", b.Len(), err)
	}
	got, err := readTable(path, "id", "text3", "none")
	if err != nil || len(got.Rows) != 128 {
		t.Fatalf("two of its columns: %d rows, %v, want 128", len(got.Rows), err)
	}
	for i, name := range got.Columns {
		if wanted := name == "id" || name == "text3"; got.Rows[0][i].Null == wanted || len(got.Columns) != 10 {
			t.Errorf("column %s of %d: %.40v", name, len(got.Columns), got.Rows[0][i])
		}
	}
}

// TestCells: of the rows about an image a dataset has lists of any length, in which one without a value is null. A text
// can be as long as a manifest has it.
func TestCells(t *testing.T) {
	long := strings.Repeat("x", maxCellBytes)
	path := filepath.Join(t.TempDir(), "d.parquet")
	var none []struct{}
	duckdb.Query(t, &none, `COPY (SELECT ['a', NULL, ''] AS tags, [NULL]::INT[] AS one, []::INT[] AS empty, NULL::INT[] AS
		nothing, range(`+strconv.Itoa(maxListItems+1)+`) AS many, repeat('x', `+strconv.Itoa(maxCellBytes)+`) AS words) TO `+
		duckdb.Quote(path)+` (FORMAT parquet)`)
	f, err := OpenFile(path)
	testkit.OK(t, err)
	r, err := f.Cells()
	testkit.OK(t, err)
	defer r.Close()
	cells, err := r.Next()
	testkit.OK(t, err)
	if n := len(cells[4].List); n != maxListItems+1 {
		t.Errorf("the long list is read with %d items", n)
	}
	want := []manifest.Cell{list("a", manifest.NoValue, ""), list(manifest.NoValue), list(), {IsList: true, Null: true}}
	if diff := cmp.Diff(want, cells[:4], exported); diff != "" || cells[5].Text != long {
		t.Errorf("a text of %d bytes (-want +got):\n%s", len(cells[5].Text), diff)
	}
}

func TestOpenManifestLongLists(t *testing.T) {
	type row struct {
		Tags []int64 `parquet:"tags,list"`
	}
	got, err := readTable(save(t, parquetOf(t, []row{{make([]int64, maxListItems)}, {make([]int64, maxListItems+1)},
		{[]int64{7}}})))
	testkit.OK(t, err)
	if n := len(got.Rows[0][0].List); n != maxListItems {
		t.Errorf("the longest list is read with %d items, want %d", n, maxListItems)
	}
	want := [][]manifest.Cell{{{Fault: "is a list of more than 10000 items"}}, {{IsList: true, List: []string{"7"}}}}
	if diff := cmp.Diff(want, got.Rows[1:], exported); diff != "" {
		t.Errorf("a list too long, and the row after it (-want +got):\n%s", diff)
	}
	// The values of a row are in memory together.
	f := opened(t, parquetOf(t, []row{{make([]int64, maxRowValues)}, {make([]int64, maxRowValues+1)}}))
	n := 0
	for values, err := range f.Rows(f.Columns...) {
		if n++; (err != nil) != (n == 2) || n == 1 && len(values) != maxRowValues {
			t.Errorf("row %d: %d values, %v", n, len(values), err)
		}
	}
}

// Counts that claim gigabytes in a few bytes, where the library would allocate them; and those at the very bound.
func TestForgedCounts(t *testing.T) {
	uvarints := func(numbers ...uint64) (out []byte) {
		for _, n := range numbers {
			out = binary.AppendUvarint(out, n)
		}
		return out
	}
	const run, groups = 0, 1 // the lowest bit of a run's head
	walk := func(data []byte, over func(*walker)) error {
		w := walker{data: data}
		over(&w)
		return w.err
	}
	runs := func(data []byte, width int, n int64) error {
		return walk(nil, func(w *walker) { w.runs(data, width, n) })
	}
	page := func(e format.Encoding, n int64, data ...byte) error {
		return walk(data, func(w *walker) { w.values(e, parquet.Int32Type, n) })
	}
	deltas := func(n int64, numbers ...uint64) error {
		return page(format.DeltaBinaryPacked, n, uvarints(numbers...)...)
	}
	object := func(structs int, data ...byte) error {
		_, err := object(data, structs)
		return err
	}
	levels := func(data ...byte) error {
		return walk(data, func(w *walker) { w.runs(w.prefixed(), 1, 10) })
	}
	prefixed := func(length byte, data ...byte) error { return levels(append([]byte{length, 0, 0, 0}, data...)...) }
	for name, c := range map[string]struct {
		err error
		ok  bool
	}{
		"a run of 2^30 values in a page of 10":    {runs(uvarints(1<<31|run, 1), 1, 10), false},
		"a run of all 10 values":                  {runs(uvarints(10<<1|run, 1), 1, 10), true},
		"a run padded by 504":                     {runs(uvarints(514<<1|run, 1), 1, 10), true},
		"a run padded by 505":                     {runs(uvarints(515<<1|run, 1), 1, 10), false},
		"two runs, together too long":             {runs(uvarints(510<<1|run, 1, 510<<1|run, 1), 1, 10), false},
		"a run without its value":                 {runs(uvarints(10<<1|run), 1, 10), false},
		"a run of 9 bits without its second byte": {runs(uvarints(10<<1|run, 1), 9, 10), false},
		"a padded bit-packed run":                 {runs(uvarints(2<<1|groups, 1, 1), 1, 10), true},
		"a bit-packed run without its last byte":  {runs(uvarints(2<<1|groups, 1), 1, 10), false},
		"2^30 bit-packed groups":                  {runs(uvarints(1<<31|groups, 1), 1, 10), false},
		"half a number":                           {runs([]byte{0x80}, 1, 10), false},
		"levels shorter than their length":        {levels(0, 0, 0), false},
		"levels of no bytes":                      {prefixed(0), true},
		"levels to the end":                       {prefixed(2, 10<<1, 1), true},
		"levels beyond the end":                   {prefixed(3, 10<<1, 1), false},
		"2^30 deltas in a page of 10":             {deltas(10, 128, 4, 1<<30, 0), false},
		"10 deltas":                               {deltas(10, 128, 4, 10, 0), true},
		"11 deltas in a page of 10":               {deltas(10, 128, 4, 11, 0), false},
		"no deltas in an empty page":              {deltas(0), true},
		"no deltas for a value":                   {deltas(1), false},
		"a block of two numbers":                  {deltas(1, 128, 4), false},
		"plain values":                            {page(format.Plain, 1), true},
		"booleans":                                {page(format.RLE, 10, 2, 0, 0, 0, 10<<1, 1), true},
		"too many booleans":                       {page(format.RLE, 10, 3, 0, 0, 0, 0xfe, 0x7f, 1), false},
		"indexes of 32 bits":                      {page(format.RLEDictionary, 10, 32), true},
		"indexes of 33 bits":                      {page(format.RLEDictionary, 10, 33), false},
		"too many indexes":                        {page(format.Encoding(2), 10, 1, 0xfe, 0x7f, 1), false},
		"no indexes":                              {page(format.RLEDictionary, 0), true},
		"too many deltas":                         {page(format.DeltaBinaryPacked, 1, 1, 1, 2), false},
		"deltas of byte arrays":                   {page(format.DeltaByteArray, 1, 1, 1, 1, 0), false},
		"an object of every type": {object(2, 0x11, 0x13, 7, 0x15, 2, 0x17, 1, 2, 3, 4, 5, 6, 7, 8,
			0x18, 1, 'x', 0x1c, 0, 0x19, 0x25, 1, 2, 0, 0), true},
		"a field with its id": {object(1, 0x05, 0x80, 0x01, 2, 0), true},
		"a list of 2^30 objects in 7 bytes": {object(10, append([]byte{0x19, 0xfc}, uvarints(1<<30)...)...),
			false},
		"a list of 2 of 1 byte":         {object(1, 0x19, 0x23, 1), false},
		"a text longer than the object": {object(1, 0x18, 2, 'x'), false},
		"a map":                         {object(1, 0x1b, 0, 0), false},
		"an object without its end":     {object(1, 0x15, 2), false},
		"more objects than are allowed": {object(1, 0x1c, 0, 0), false},
		"objects nested 1000 deep":      {object(1<<20, bytes.Repeat([]byte{0x1c}, 1000)...), false},
		"objects nested 17 deep": {object(1<<20,
			append(bytes.Repeat([]byte{0x1c}, 17), make([]byte, 18)...)...), false},
		"objects nested 16 deep": {object(1<<20,
			append(bytes.Repeat([]byte{0x1c}, 16), make([]byte, 17)...)...), true},
		"lists nested 1000 deep, which Go's stack ends": {object(10,
			append(bytes.Repeat([]byte{0x19}, 1000), 0x13, 0, 0)...), false},
		"lists nested 5 deep": {object(10,
			append(bytes.Repeat([]byte{0x19}, 5), 0x13, 0, 0)...), true},
	} {
		if (c.err == nil) != c.ok {
			t.Errorf("%s: %v, want it let through: %v", name, c.err, c.ok)
		}
	}
	for codec, c := range map[string]compress.Codec{"zstd": &parquet.Zstd, "gzip": &parquet.Gzip,
		"snappy": &parquet.Snappy} {
		bomb, err := c.Encode(nil, make([]byte, 8<<20))
		testkit.OK(t, err)
		for size, ok := range map[int32]bool{1000: false, 8<<20 - 1: false, 8 << 20: true} {
			page := rawPage{}
			page.header.UncompressedPageSize = size + 5
			if _, err := page.decompress(c.CompressionCodec(), bomb, 5); (err == nil) != ok {
				t.Errorf("%s: 8 MiB in a page of %d bytes: %v", codec, size, err)
			}
		}
		if codec != "zstd" {
			continue
		}
		hidden := append([]byte("\x50\x2a\x4d\x18\x00\x00\x00\x00"), bomb...) // a frame to skip
		if out, err := c.Decode(nil, hidden); err != nil || len(out) != 8<<20 {
			t.Errorf("the library unpacks %d bytes behind a frame to skip: %v", len(out), err)
		}
		page := rawPage{}
		page.header.UncompressedPageSize = 32 << 10
		if _, err := page.decompress(c.CompressionCodec(), hidden, 0); err == nil {
			t.Error("8 MiB behind a frame to skip, in a page of 32 KiB, are let through")
		}
	}
}

// Every single byte of a file changed: an error or rows, never a panic, never much memory.
func TestDamagedManifest(t *testing.T) {
	good := manifestFile(t, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1))
	path := save(t, good)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	testkit.OK(t, err)
	defer f.Close()
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // a user's, whatever the tests run with
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	damaged := 0
	for i := range good {
		if _, err := f.WriteAt([]byte{good[i] ^ []byte{0xff, 1, 0x80}[i%3]}, int64(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(path); err != nil {
			damaged++
		}
		if _, err := f.WriteAt(good[i:i+1], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.Sys - before.Sys; grown > 300<<20 {
		t.Errorf("damaged files made the program take %d more bytes", grown)
	}
	if damaged < len(good)/4 {
		t.Errorf("%d of %d damages were found", damaged, len(good))
	}
	if _, err := readTable(path); err != nil {
		t.Errorf("the mended file: %v", err)
	}
}

// FuzzRead: whatever a file holds, every reader of it ends in an error or in rows, with bounded memory and without a
// panic, and yields nothing after an error.
func FuzzRead(f *testing.F) {
	v1, rows := parquet.DataPageVersion(1), parquet.MaxRowsPerRowGroup(2)
	f.Add(manifestFile(f))
	f.Add(manifestFile(f, parquet.Compression(&parquet.Zstd), v1))
	f.Add(manifestFile(f, parquet.Compression(&parquet.Snappy), rows))
	f.Add(scannedFile(f, 5))
	f.Add(scannedFile(f, 1, parquet.Compression(&parquet.Gzip)))
	f.Add(scannedFile(f, 2, v1)[:500])
	f.Add([]byte("PAR1PAR1"))
	path := filepath.Join(f.TempDir(), "m.parquet")
	f.Fuzz(func(t *testing.T, data []byte) {
		testkit.OK(t, os.WriteFile(path, data, 0o600))
		got, err := readTable(path)
		for _, cells := range got.Rows {
			if err == nil && len(cells) != len(got.Columns) {
				t.Fatalf("a row of %d cells in %d columns", len(cells), len(got.Columns))
			}
		}
		s, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for i := -1; i < len(s.Columns); i++ { // all at once, then one by one
			columns, n := s.Columns, 0
			if i >= 0 {
				columns = s.Columns[i : i+1]
			}
			for row, err := range s.Rows(columns...) {
				if err == nil && len(row) == 0 {
					t.Fatal("a row without values")
				}
				n++
				if n == 1<<16 {
					break
				}
			}
		}
	})
}

// TestClassLabels: numbers of ClassLabels are read as their names, in all forms in which a footer says so.
func TestClassLabels(t *testing.T) {
	type row struct {
		One   int64   `parquet:"one"`
		Short []int64 `parquet:"short,list"`
		Long  []int64 `parquet:"long,list"`
		Text  string  `parquet:"text"`
		Value int64   `parquet:"value"`
		Odd   int64   `parquet:"odd"`
		Empty int64   `parquet:"empty"`
	}
	const features = `{"info": {"features": {"one": {"names": ["x", "y"], "_type": "ClassLabel"}, "short": [{"names": ["x", "y"], "_type": "ClassLabel"}],
		"long": {"feature": {"names": ["x", "y"], "_type": "ClassLabel"}, "_type": "List"}, "text": {"names": ["x", "y"], "_type": "ClassLabel"},
		"value": {"dtype": "string", "_type": "Value"}, "odd": "odd", "empty": {"names": [], "_type": "ClassLabel"}}}}`
	rows := []row{{1, []int64{1, 0}, []int64{1}, "1", 1, 1, 1}, {-1, []int64{1, -1}, nil, "x", 1, 1, 1},
		{2, nil, []int64{2}, "-1", 1, 1, 1}}
	fault := func(text string) manifest.Cell {
		return manifest.Cell{Fault: fmt.Sprintf("is the label number %q, and the file's footer names 2 labels", text)}
	}
	one, null := manifest.Cell{Text: "1"}, manifest.Cell{Null: true}
	numbers := [][]manifest.Cell{{one, list("1", "0"), list("1"), one, one, one, one}}
	for text, want := range map[string][][]manifest.Cell{
		features: {{{Text: "y"}, list("y", "x"), list("y"), {Text: "y"}, one, one, one},
			{null, fault("-1"), list(), fault("x"), one, one, one},
			{fault("2"), list(), fault("2"), null, one, one, one}},
		"": numbers, "{": numbers, `{"info": {"features": []}}`: numbers,
	} {
		r, err := OpenManifest(save(t, parquetOf(t, rows, parquet.KeyValueMetadata("huggingface", text))), nil)
		testkit.OK(t, err)
		defer r.Close()
		for i := range want {
			got, err := r.Next()
			if diff := cmp.Diff(want[i], got, exported); diff != "" || err != nil {
				t.Errorf("%.20q, row %d: %v (-want +got)\n%s", text, i, err, diff)
			}
		}
	}
}

// Values of the types that databases have, in files of another writer, and the columns that are not read.
func TestOpenManifestTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.parquet")
	var none []struct{}
	duckdb.Query(t, &none, `COPY (SELECT 1.50::DECIMAL(4, 2) AS small, -0.05::DECIMAL(18, 2) AS middle,
		-12345678901234567890.123::DECIMAL(38, 3) AS large, 100::DECIMAL(9, 0) AS whole, [1.5, NULL]::DECIMAL(4, 1)[] AS holes,
		[1.5, -2]::DECIMAL(4, 1)[] AS decimals, DATE '1969-12-31' AS day, TIME '23:59:00.5' AS time,
		'123e4567-e89b-12d3-a456-426614174000'::UUID AS uuid, {'a': 1, 'b': 2} AS object, MAP {'a': 1} AS map,
		[{'a': 1}] AS objects, INTERVAL 1 DAY AS span) TO `+duckdb.Quote(path)+` (FORMAT parquet)`)
	got, err := readTable(path)
	testkit.OK(t, err)
	fraction := func(s string) manifest.Cell { return manifest.Cell{Text: s, Float: true} }
	decimals := list("1.5", "-2")
	decimals.Float = true
	want := content{Columns: []string{"small", "middle", "large", "whole", "holes", "decimals", "day", "time", "uuid"},
		Rows: [][]manifest.Cell{{fraction("1.5"), fraction("-0.05"), fraction("-12345678901234567890.123"), {Text: "100"},
			{Fault: "is a list with a null in it"}, decimals, {Text: "1969-12-31"}, {Text: "23:59:00.5"},
			{Text: "123e4567-e89b-12d3-a456-426614174000"}}}}
	if diff := cmp.Diff(want, got, exported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := OpenFile(path)
	testkit.OK(t, err)
	defer f.Close()
	unread := []manifest.Unread{{Name: "object", Type: "struct"}, {Name: "map", Type: "map"},
		{Name: "objects", Type: "list of lists or structs"}, {Name: "span", Type: "interval"}}
	if diff := cmp.Diff(unread, f.Unread()); diff != "" {
		t.Errorf("not read (-want +got):\n%s", diff)
	}
}

// Types that older programs write, and values that no program should.
func TestOpenManifestOldTypes(t *testing.T) {
	bytesOf := func(b ...byte) parquet.Value { return parquet.ByteArrayValue(b) }
	julian := func(day uint32, ns uint64) parquet.Value {
		return parquet.Int96Value(deprecated.Int96{uint32(ns), uint32(ns >> 32), day})
	}
	decimals := func(scale int) parquet.Node { return parquet.Decimal(scale, 9, parquet.ByteArrayType) }
	text := func(s string) manifest.Cell { return manifest.Cell{Text: s} }
	number := func(s string) manifest.Cell { return manifest.Cell{Text: s, Float: true} }
	bad := func(why string) manifest.Cell { return manifest.Cell{Fault: why} }
	ms := parquet.Time(parquet.Millisecond)
	for name, c := range map[string]struct {
		of    parquet.Node
		value parquet.Value
		want  manifest.Cell
	}{
		"a decimal of bytes":      {decimals(2), bytesOf(0xff, 0x7f), number("-1.29")},
		"one of no bytes":         {decimals(2), bytesOf(), number("0")},
		"the longest":             {decimals(0), bytesOf(append(make([]byte, 31), 7)...), text("7")},
		"one that is longer":      {decimals(0), bytesOf(make([]byte, 33)...), bad("is a decimal of more than 32 bytes")},
		"a scale":                 {decimals(76), bytesOf(1), number("0." + strings.Repeat("0", 75) + "1")},
		"a time of Spark's":       {parquet.Leaf(parquet.Int96Type), julian(2440589, 1e9), text("1970-01-02T00:00:01")},
		"milliseconds of a day":   {ms, parquet.Int32Value(1500), text("00:00:01.5")},
		"nanoseconds of a day":    {parquet.Time(parquet.Nanosecond), parquet.Int64Value(1), text("00:00:00.000000001")},
		"the time after the last": {ms, parquet.Int32Value(86400000), bad("is no time of a day")},
		"a time before the first": {parquet.Time(parquet.Microsecond), parquet.Int64Value(-1), bad("is no time of a day")},
	} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[any](&b, parquet.NewSchema("manifest", parquet.Group{"value": c.of}))
		_, err := w.WriteRows([]parquet.Row{{c.value.Level(0, 0, 0)}})
		testkit.OK(t, errors.Join(err, w.Close()))
		got, err := readTable(save(t, b.Bytes()))
		if diff := cmp.Diff([][]manifest.Cell{{c.want}}, got.Rows, exported); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestTimestamps: a time that is adjusted to UTC says so, and any other names no time zone, in each unit.
func TestTimestamps(t *testing.T) {
	group := parquet.Group{"id": parquet.String()}
	for name, unit := range map[string]parquet.TimeUnit{"ms": parquet.Millisecond, "us": parquet.Microsecond,
		"ns": parquet.Nanosecond} {
		group[name], group[name+"_wall"] = parquet.TimestampAdjusted(unit, true), parquet.TimestampAdjusted(unit, false)
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[map[string]any](&b, parquet.NewSchema("schema", group))
	const ms = 1567435668250
	_, err := w.Write([]map[string]any{{"id": "abc", "ms": int64(ms), "ms_wall": int64(ms), "us": int64(ms * 1000),
		"us_wall": int64(ms * 1000),
		"ns":      int64(ms * 1000000), "ns_wall": int64(ms * 1000000)}})
	testkit.OK(t, err)
	testkit.OK(t, w.Close())
	got, err := readTable(save(t, b.Bytes()))
	testkit.OK(t, err)
	for i, name := range got.Columns {
		want := "2019-09-02T14:47:48.25Z"
		if name == "id" {
			want = "abc"
		} else if strings.HasSuffix(name, "_wall") {
			want = "2019-09-02T14:47:48.25"
		}
		if got.Rows[0][i].Text != want {
			t.Errorf("%s is %q, want %q", name, got.Rows[0][i].Text, want)
		}
	}
	if len(got.Columns) != 7 {
		t.Errorf("columns %q", got.Columns)
	}
}
