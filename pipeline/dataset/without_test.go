package dataset

import (
	"bytes"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
)

// TestWriteWithout takes rows out of a file: what comes out is, byte for byte, what would have been
// written without them.
func TestWriteWithout(t *testing.T) {
	for _, flagged := range []bool{false, true} {
		for _, gone := range [][]manifest.PostID{{}, {"id0"}, {"id7"}, {"id1", "id2", "id3", "id4", "id5", "id6"},
			{"id0", "id1", "id2", "id3", "id4", "id5", "id6", "id7"}} {
			isGone := func(row string) bool { return slices.Contains(gone, PostOf(row)) }
			rows := testRows()
			before, _ := write(t, flagged, all(rows))
			want, _ := write(t, flagged, all(slices.DeleteFunc(rows, func(r Row) bool { return isGone(r.ID) })))
			var got bytes.Buffer
			if err := WriteWithout(&got, "data/train-00000-of-00001.parquet", bytes.NewReader(before), int64(len(before)),
				isGone); err != nil {
				t.Fatalf("without %v: %v", gone, err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("without %v, flagged %t: %d bytes, want %d", gone, flagged, got.Len(), len(want))
			}
		}
	}
}

// TestColumnsWithout takes a row out of a file with columns that pass through, of every type, as values and as lists.
func TestColumnsWithout(t *testing.T) {
	s := manifest.Schema{Name: "test"}
	values := map[manifest.ColumnType][]string{manifest.TypeText: {"a | b", ""},
		manifest.TypeInteger: {"-7", "9007199254740993"},
		manifest.TypeNumber:  {"0.1", "1e+300"}, manifest.TypeBoolean: {"true", "false"},
		manifest.TypeTimestamp: {"2019-09-02T12:47:48.25Z", "1969-12-31T00:00:00Z"},
		manifest.TypeJSON:      {`{"a":[1,null]}`, `"b"`}}
	var full, sparse, empty Row
	for _, list := range []bool{false, true} {
		for _, kind := range manifest.ColumnTypes() {
			s.Columns = append(s.Columns, manifest.Column{Name: string(kind) + map[bool]string{true: "s"}[list], Type: kind,
				List: list})
			one := values[kind][:1]
			if list {
				one = append(slices.Clone(values[kind]), manifest.NoValue, values[kind][0])
			}
			full.Values, sparse.Values, empty.Values = append(full.Values, one), append(sparse.Values, nil),
				append(empty.Values, map[bool][]string{true: {}}[list])
		}
	}
	var rows []Row
	for i, r := range []Row{full, sparse, empty, full} {
		row := newRow([]string{"id0", "id1", "id2", "id3"}[i], picture(uint64(i), 500))
		row.Labels, row.Values = [][]int{}, r.Values
		rows = append(rows, row)
	}
	written := func(rows []Row) []byte {
		var b bytes.Buffer
		if _, err := WriteParquet(&b, s, testProvenance(), false, all(rows)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	before, want := written(rows), written(slices.Concat(rows[:1], rows[2:]))
	var got bytes.Buffer
	err := WriteWithout(&got, "data/train-00000-of-00001.parquet", bytes.NewReader(before), int64(len(before)),
		func(id string) bool { return id == "id1" })
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v, %d bytes, want %d", err, got.Len(), len(want))
	}
	rows[0].Values = slices.Clone(rows[0].Values)
	rows[0].Values[1] = []string{"x"}
	if _, err := WriteParquet(io.Discard, s, testProvenance(), false, all(rows)); err == nil {
		t.Error("a word was written as an integer")
	}
}

func TestReadProvenance(t *testing.T) {
	data, _ := write(t, false, all(testRows()))
	got, err := ReadProvenance(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testProvenance(), got); diff != "" {
		t.Errorf("provenance (-written +read):\n%s", diff)
	}
}

// TestWriteWithoutRefuses: a file of another origin, or a damaged one, is not rewritten as if
// it were whole.
func TestWriteWithoutRefuses(t *testing.T) {
	data, _ := write(t, false, all(testRows()))
	inImage := bytes.Index(data, testRows()[3].Image) + 100
	var other bytes.Buffer
	w := NewReadingsWriter(&other, "v0", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		b := bytes.Clone(data)
		b[at] ^= 1
		return b
	}
	for name, b := range map[string][]byte{
		"empty":              {},
		"cut off":            data[:len(data)-9],
		"another's":          other.Bytes(),
		"an image is spoilt": changed(inImage),
	} {
		if err := WriteWithout(new(bytes.Buffer), "x.parquet", bytes.NewReader(b), int64(len(b)),
			func(string) bool { return false }); err == nil {
			t.Errorf("%s: written, want an error", name)
		}
	}
}

func writeTestRecords(sink Sink, _ manifest.Schema, _ string, rows iter.Seq2[Row, error]) (Split, error) {
	return Split{}, sink(RecordsName, func(w io.Writer) error {
		return WriteRecords(w, func(yield func(Record, error) bool) {
			for r, err := range rows {
				fields := map[string]any{"image": map[string]string{"data": string(r.Image)}, "text": "]\n[,"}
				if !yield(Record{ID: r.ID, Fields: fields, Metadata: map[string]string{"batch": "1"}}, err) {
					return
				}
			}
		})
	})
}

// TestRecordsWithout: all records can go, and a file that is not ours, or is cut off, is not rewritten as if it were
// whole.
func TestRecordsWithout(t *testing.T) {
	without := func(text string) (string, error) {
		var out bytes.Buffer
		err := WriteWithout(&out, RecordsName, bytes.NewReader([]byte(text)), int64(len(text)),
			func(string) bool { return true })
		return out.String(), err
	}
	for _, text := range []string{"[\n\n]\n", "[\n{\"id\":\"a\"},\n{\"id\":\"b/1\"}\n]\n"} {
		if got, err := without(text); err != nil || got != "[\n\n]\n" {
			t.Errorf("without %q = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "[\n", "[{\"id\":\"a\"}]\n", "[\n{\"id\":\"a\"},\n", "[\n{\"name\":\"a\"}\n]\n",
		"{\n\"id\": \"a\"}\n]\n"} {
		if got, err := without(text); err == nil {
			t.Errorf("without %q = %q, want an error", text, got)
		}
	}
}

// TestOtherFormatsWithout: what is taken out of a tar or a folder's table gives the bytes that would have been
// written without it, and the ids that are left are those of the rows that stay.
func TestOtherFormatsWithout(t *testing.T) {
	for format, write := range map[string]func(Sink, manifest.Schema, string, iter.Seq2[Row, error]) (Split, error){
		"argilla": writeTestRecords,
		"webdataset": func(sink Sink, s manifest.Schema, split string, rows iter.Seq2[Row, error]) (Split, error) {
			return WriteWebDataset(sink, s, true, split, rows)
		},
		"folder": func(sink Sink, s manifest.Schema, split string, rows iter.Seq2[Row, error]) (Split, error) {
			return WriteFolder(sink, s, testProvenance(), true, split, rows)
		}} {
		rows := formatRows()
		isGone := func(row string) bool { return PostOf(row) == "id2" || PostOf(row) == "id7" }
		before, want, got := files{}, files{}, files{}
		if _, err := write(before.sink, testSchema(), "train", all(rows)); err != nil {
			t.Fatal(err)
		}
		stay := slices.DeleteFunc(rows, func(r Row) bool { return isGone(r.ID) })
		if _, err := write(want.sink, testSchema(), "train", all(stay)); err != nil {
			t.Fatal(err)
		}
		for name, b := range before {
			if !Holds(name) {
				if !isGone(ImageID(name)) {
					got[name] = b
				}
				continue
			}
			var out bytes.Buffer
			if err := WriteWithout(&out, name, bytes.NewReader(b), int64(len(b)), isGone); err != nil {
				t.Fatal(err)
			}
			got[name] = out.Bytes()
			left := map[string]bool{}
			for id, err := range RowIDs(t.Context(), name, bytes.NewReader(out.Bytes()), int64(out.Len())) {
				if err != nil {
					t.Fatal(err)
				}
				left[id] = true
			}
			if len(left) != 6 || left["id2"] || left["id7/1"] || !left["id0"] {
				t.Errorf("%s: ids left in %s: %v", format, name, left)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// TestRowIDs reads the ids of a file that could not be rewritten, too.
func TestRowIDs(t *testing.T) {
	data, _ := write(t, true, all(testRows()))
	data[bytes.Index(data, testRows()[3].Image)+100] ^= 1
	var got []string
	for id, err := range RowIDs(t.Context(), "x.parquet", bytes.NewReader(data), int64(len(data))) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	for range RowIDs(t.Context(), "x.parquet", bytes.NewReader(data), int64(len(data))) {
		break // without more to come
	}
	if diff := cmp.Diff([]string{"id0", "id1", "id2", "id3", "id4", "id5", "id6", "id7/1"}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	for name, rows := range map[string]func(io.Writer) error{
		"another column": func(w io.Writer) error { return parquet.Write(w, []struct{ Post string }{{"id0"}}) },
		"numbers": func(w io.Writer) error {
			return parquet.Write(w, []struct {
				ID int64 `parquet:"id"`
			}{{7}})
		},
	} {
		var b bytes.Buffer
		if err := rows(&b); err != nil {
			t.Fatal(err)
		}
		for id, err := range RowIDs(t.Context(), "x.parquet", bytes.NewReader(b.Bytes()), int64(b.Len())) {
			if err == nil || !strings.Contains(err.Error(), "no column id") {
				t.Errorf("%s: id %q, %v", name, id, err)
			}
		}
	}
	type row struct {
		ID *string `parquet:"id,optional"`
	}
	var b bytes.Buffer
	testkit.OK(t, parquet.Write(&b, []row{{new("id0")}, {nil}, {new("id2")}}))
	got = nil
	for id, err := range RowIDs(t.Context(), "x.parquet", bytes.NewReader(b.Bytes()), int64(b.Len())) {
		testkit.OK(t, err)
		got = append(got, id)
	}
	testkit.Same(t, "ids of rows, of which one has none", []string{"id0", "id2"}, got)
	if PostOf("id7/1") != "id7" || PostOf("id7") != "id7" {
		t.Errorf("posts %q and %q", PostOf("id7/1"), PostOf("id7"))
	}
}

// TestNumbers: DuckDB reads a table of numbers, and one without some rows has the bytes that it would have had alone.
func TestNumbers(t *testing.T) {
	columns := []string{"zeta", "alpha.one"}
	numbers := map[string][]float64{"id0": {1.5, 0}, "id1": {math.NaN(), -2}, "id2/1": {1e300, math.NaN()}}
	write := func(name string, ids ...string) []byte {
		var b bytes.Buffer
		err := WriteNumbers(&b, name, columns, "made by hand", func(yield func(string, []float64) bool) {
			for _, id := range ids {
				if !yield(id, numbers[id]) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, name := range []string{"features.csv", "features.parquet"} {
		all, want := write(name, "id0", "id1", "id2/1"), write(name, "id1")
		var got bytes.Buffer
		err := WriteWithout(&got, name, bytes.NewReader(all), int64(len(all)), func(id string) bool { return id != "id1" })
		if err != nil || !bytes.Equal(got.Bytes(), want) || !Holds(name) {
			t.Errorf("%s without two rows: %v\n%q, want\n%q", name, err, got.Bytes(), want)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, all, 0o600); err != nil {
			t.Fatal(err)
		}
		var rows []map[string]any
		duckdb.Query(t, &rows, `SELECT id, zeta, "alpha.one" FROM `+duckdb.Quote(file))
		if diff := cmp.Diff([]map[string]any{{"id": "id0", "zeta": 1.5, "alpha.one": 0.0},
			{"id": "id1", "zeta": nil, "alpha.one": -2.0},
			{"id": "id2/1", "zeta": 1e300, "alpha.one": nil}}, rows); diff != "" {
			t.Errorf("%s as DuckDB reads it (-want +got):\n%s", name, diff)
		}
	}
	torn := []byte("name,zeta\nid0,1\n")
	if err := WriteWithout(io.Discard, "features.csv", bytes.NewReader(torn), int64(len(torn)),
		func(string) bool { return false }); err == nil {
		t.Error("a table without ids is rewritten")
	}
}
