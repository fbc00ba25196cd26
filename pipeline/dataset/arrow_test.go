package dataset

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
)

// expected spells the Arrow type that Hugging Face datasets expects of a column with a feature, by the rules of
// features.py (get_nested_type, and the pa_type of Image and ClassLabel); ? is nullable.
func expected(t *testing.T, feature map[string]any) string {
	t.Helper()
	switch feature["_type"] {
	case "Value":
		return strings.ReplaceAll(feature["dtype"].(string), "string", "utf8") + "?"
	case "Image":
		return "struct<bytes: binary?, path: utf8?>?"
	case "ClassLabel":
		return "int64?"
	case "Sequence": // of a struct it would be a struct of lists
		return "list<" + expected(t, feature["feature"].(map[string]any)) + ">?"
	}
	t.Fatalf("no rule for the feature %v", feature)
	return ""
}

// spelled spells what datasets compares on, before it keeps a declared feature: type and nullability, in depth. The
// name of a list's child does not count (apache/arrow#14847).
func spelled(f arrow.Field) string {
	text := f.Type.Name()
	if text == "float" { // Arrow's word for it is float32 elsewhere
		text = "float32"
	}
	switch typ := f.Type.(type) {
	case *arrow.ListType:
		text = "list<" + spelled(typ.ElemField()) + ">"
	case *arrow.StructType:
		var children []string
		for _, child := range typ.Fields() {
			children = append(children, child.Name+": "+spelled(child))
		}
		text = "struct<" + strings.Join(children, ", ") + ">"
	}
	if f.Nullable {
		text += "?"
	}
	return text
}

func arrowReader(t testing.TB, data []byte) *pqarrow.FileReader {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 3}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The Arrow schema that datasets derives from the footer's metadata is, field by field, the one that the
// file has: else it drops Image and ClassLabel without a word.
func TestArrowSchema(t *testing.T) {
	for name, s := range map[string]manifest.Schema{"test": testSchema(), "figsim": manifest.FigSIM(), "no labels": {}} {
		for _, flagged := range []bool{false, true} {
			var b bytes.Buffer
			if _, err := WriteParquet(&b, s, testProvenance(), flagged, all(nil)); err != nil {
				t.Fatal(err)
			}
			r := arrowReader(t, b.Bytes())
			schema, err := r.Schema()
			if err != nil {
				t.Fatal(err)
			}
			var meta struct {
				Info struct{ Features map[string]map[string]any }
			}
			text := r.ParquetReader().MetaData().KeyValueMetadata().FindValue("huggingface")
			if err := json.Unmarshal([]byte(*text), &meta); err != nil {
				t.Fatal(err)
			}
			want, got := map[string]string{}, map[string]string{}
			for column, feature := range meta.Info.Features {
				want[column] = expected(t, feature)
			}
			for _, field := range schema.Fields() {
				got[field.Name] = spelled(field)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != len(baseColumns(flagged))+len(s.Categories) {
				t.Errorf("%s, %d fields (-datasets expects +file has):\n%s", name, len(got), diff)
			}
		}
	}
}

// checkRows compares what an independent reader makes of testRows, as JSON with images in base64.
func checkRows(t *testing.T, got []map[string]any) {
	t.Helper()
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	single := func(ids []int) any {
		if len(ids) == 0 {
			return nil
		}
		return float64(ids[0])
	}
	var want []map[string]any
	for _, r := range testRows() {
		var figures any
		if r.Labels[2] != nil {
			list := []any{}
			for _, id := range r.Labels[2] {
				list = append(list, float64(id))
			}
			figures = list
		}
		want = append(want, map[string]any{
			"id": r.ID, "image": map[string]any{"bytes": base64.StdEncoding.EncodeToString(r.Image), "path": orNull(r.Path)},
			"ocr_text": r.Text, "ocr_confidence": r.Confidence, "width": float64(r.Width), "height": float64(r.Height),
			"sha256": r.SHA256, "phash": orNull(r.PHash), "filter": orNull(r.Filter), "kind": single(r.Labels[0]),
			"severity": single(r.Labels[1]), "figures, of speech": figures})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-written +read):\n%.3000s", diff)
	}
}

// arrow-go reads every column back equal.
func TestArrowRows(t *testing.T) {
	data, _ := write(t, true, all(testRows()))
	table, err := arrowReader(t, data).ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	reader := array.NewTableReader(table, -1)
	defer reader.Release()
	var got []map[string]any
	for reader.Next() {
		text, err := reader.RecordBatch().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var batch []map[string]any
		if err := json.Unmarshal(text, &batch); err != nil {
			t.Fatal(err)
		}
		got = append(got, batch...)
	}
	checkRows(t, got)
}

// So does DuckDB, which shares no code with the writer.
func TestDuckDB(t *testing.T) {
	path, _ := writeFile(t, true, all(testRows()))
	var got []map[string]any
	duckdb.Query(t, &got, `SELECT * REPLACE ({'bytes': to_base64(image.bytes), 'path': image.path} AS image) FROM read_parquet(`+duckdb.Quote(path)+")")
	checkRows(t, got)
}

// Several row groups, and filters: bounds are left out for the image and for ocr_text, and
// no reader may prune by the empty ones that stand in their place. A file without rows is one, too.
func TestDuckDBGroups(t *testing.T) {
	var rows []Row
	for i := range 320 {
		r := newRow(fmt.Sprint("r", i), picture(uint64(i), 20_000+i*100))
		r.Text = fmt.Sprint("text number ", i)
		rows = append(rows, r)
	}
	path, stats := writeFile(t, false, all(rows))
	empty, _ := writeFile(t, false, all(nil))
	var got []struct{ Rows, Good, Groups, ByText, ByImage, Empty int }
	duckdb.Query(t, &got, fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]s) AS Rows,
		(SELECT count(*) FROM %[1]s WHERE sha256(image.bytes) = sha256) AS Good,
		(SELECT num_row_groups FROM parquet_file_metadata(%[1]s)) AS Groups,
		(SELECT count(*) FROM %[1]s WHERE ocr_text = 'text number 317') AS ByText,
		(SELECT count(*) FROM %[1]s WHERE image.bytes = (SELECT image.bytes FROM %[1]s WHERE id = 'r5')) AS ByImage,
		(SELECT count(*) FROM %[2]s) AS Empty`, duckdb.Quote(path), duckdb.Quote(empty)))
	if g := got[0]; g.Rows != 320 || g.Good != 320 || g.Groups != 4 || g.ByText != 1 || g.ByImage != 1 || g.Empty != 0 {
		t.Errorf("read %+v, want 320 rows, all good, in 4 groups, each filter finding one", g)
	}
	if stats.Bytes > stats.ImageBytes*105/100 {
		t.Errorf("file %d bytes for %d of images", stats.Bytes, stats.ImageBytes)
	}
}
