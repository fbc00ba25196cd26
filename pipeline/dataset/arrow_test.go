package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// hfFeature is a feature as the footer's metadata has it, of any kind.
type hfFeature map[string]any

// arrowType is the Arrow type that Hugging Face datasets expects of a column with that feature, by the rules
// of features.py (get_nested_type, and the pa_type of Image and ClassLabel).
func (f hfFeature) arrowType(t *testing.T) arrow.DataType {
	t.Helper()
	field := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	switch f["_type"] {
	case "Value":
		types := map[any]arrow.DataType{"string": arrow.BinaryTypes.String, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
			"float32": arrow.PrimitiveTypes.Float32}
		if typ := types[f["dtype"]]; typ != nil {
			return typ
		}
	case "Image":
		return arrow.StructOf(field("bytes", arrow.BinaryTypes.Binary), field("path", arrow.BinaryTypes.String))
	case "ClassLabel":
		return arrow.PrimitiveTypes.Int64
	case "Sequence": // of a struct it would be a struct of lists
		if inner := hfFeature(f["feature"].(map[string]any)); inner["_type"] != nil {
			return arrow.ListOfField(field("item", inner.arrowType(t)))
		}
	}
	t.Fatalf("no rule for the feature %v", f)
	return nil
}

// sameField is the comparison on which datasets keeps a declared feature: name, type and nullability, in
// depth. The name of a list's child does not count (apache/arrow#14847).
func sameField(want, got arrow.Field) error {
	if want.Name != got.Name || want.Nullable != got.Nullable || want.Type.ID() != got.Type.ID() {
		return fmt.Errorf("%s is %v, nullable %v; datasets expects %v, nullable %v", got.Name, got.Type, got.Nullable, want.Type, want.Nullable)
	}
	switch w := want.Type.(type) {
	case *arrow.ListType:
		a, b := w.ElemField(), got.Type.(*arrow.ListType).ElemField()
		a.Name = b.Name
		return sameField(a, b)
	case *arrow.StructType:
		g := got.Type.(*arrow.StructType)
		if w.NumFields() != g.NumFields() {
			return fmt.Errorf("%s has %d children; datasets expects %d", got.Name, g.NumFields(), w.NumFields())
		}
		for i := range w.NumFields() {
			if err := sameField(w.Field(i), g.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", got.Name, err)
			}
		}
		return nil
	}
	if !arrow.TypeEqual(want.Type, got.Type) {
		return fmt.Errorf("%s is %v; datasets expects %v", got.Name, got.Type, want.Type)
	}
	return nil
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
	figsim := manifest.FigSIM()
	schemas := map[string]manifest.Schema{"test": testSchema(), "figsim": figsim, "no labels": {}}
	for name, s := range schemas {
		for _, flagged := range []bool{false, true} {
			var b bytes.Buffer
			if _, err := WriteParquet(&b, s, testProvenance(), flagged, all(nil)); err != nil {
				t.Fatal(err)
			}
			r := arrowReader(t, b.Bytes())
			got, err := r.Schema()
			if err != nil {
				t.Fatal(err)
			}
			text := r.ParquetReader().MetaData().KeyValueMetadata().FindValue("huggingface")
			if text == nil {
				t.Fatalf("%s: no metadata", name)
			}
			var meta struct {
				Info struct{ Features map[string]hfFeature }
			}
			if err := json.Unmarshal([]byte(*text), &meta); err != nil {
				t.Fatal(err)
			}
			if len(meta.Info.Features) != got.NumFields() || got.NumFields() != len(baseColumns(flagged))+len(s.Categories) {
				t.Errorf("%s: %d features, %d fields", name, len(meta.Info.Features), got.NumFields())
			}
			for _, field := range got.Fields() {
				f, ok := meta.Info.Features[field.Name]
				if !ok {
					t.Errorf("%s: no feature for %s", name, field.Name)
					continue
				}
				want := arrow.Field{Name: field.Name, Type: f.arrowType(t), Nullable: true}
				if err := sameField(want, field); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// The comparison can fail: what datasets would take for another type is told apart.
func TestSameFieldTellsApart(t *testing.T) {
	null := func(typ arrow.DataType) arrow.Field { return arrow.Field{Name: "a", Type: typ, Nullable: true} }
	image := func(children ...arrow.Field) arrow.Field { return null(arrow.StructOf(children...)) }
	child := func(name string, typ arrow.DataType, nullable bool) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: nullable}
	}
	want := image(child("bytes", arrow.BinaryTypes.Binary, true), child("path", arrow.BinaryTypes.String, true))
	for name, pair := range map[string][2]arrow.Field{
		"required":           {null(arrow.PrimitiveTypes.Int64), {Name: "a", Type: arrow.PrimitiveTypes.Int64}},
		"int32":              {null(arrow.PrimitiveTypes.Int64), null(arrow.PrimitiveTypes.Int32)},
		"binary for string":  {null(arrow.BinaryTypes.String), null(arrow.BinaryTypes.Binary)},
		"children swapped":   {want, image(want.Type.(*arrow.StructType).Field(1), want.Type.(*arrow.StructType).Field(0))},
		"child required":     {want, image(child("bytes", arrow.BinaryTypes.Binary, false), child("path", arrow.BinaryTypes.String, true))},
		"child missing":      {want, image(child("bytes", arrow.BinaryTypes.Binary, true))},
		"list item required": {null(arrow.ListOf(arrow.PrimitiveTypes.Int64)), null(arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64))},
	} {
		if sameField(pair[0], pair[0]) != nil || sameField(pair[0], pair[1]) == nil {
			t.Errorf("%s is not told apart", name)
		}
	}
	if err := sameField(null(arrow.ListOf(arrow.PrimitiveTypes.Int64)), null(arrow.ListOfField(child("element", arrow.PrimitiveTypes.Int64, true)))); err != nil {
		t.Errorf("the name of a list's child counts: %v", err)
	}
}

// arrow-go reads every column back equal.
func TestArrowRows(t *testing.T) {
	rows := testRows()
	data, _ := write(t, true, all(rows))
	table, err := arrowReader(t, data).ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	got := make([]map[string]any, 0, len(rows))
	reader := array.NewTableReader(table, 1)
	defer reader.Release()
	for reader.Next() {
		row := map[string]any{}
		for i, f := range reader.RecordBatch().Schema().Fields() {
			row[f.Name] = arrowValue(t, reader.RecordBatch().Column(i), 0)
		}
		got = append(got, row)
	}
	var want []map[string]any
	for _, r := range rows {
		want = append(want, arrowRow(r))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-written +read):\n%.3000s", diff)
	}
}

// arrowValue is a value as plain Go has it; nil is null.
func arrowValue(t *testing.T, a arrow.Array, i int) any {
	t.Helper()
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return fmt.Sprintf("%x", a.Value(i))
	case *array.Float32:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Struct:
		return []any{arrowValue(t, a.Field(0), i), arrowValue(t, a.Field(1), i)}
	case *array.List:
		list := []any{}
		start, end := a.ValueOffsets(i)
		for k := start; k < end; k++ {
			list = append(list, arrowValue(t, a.ListValues(), int(k)))
		}
		return list
	}
	t.Fatalf("no rule for %T", a)
	return nil
}

func arrowRow(r Row) map[string]any {
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
		return int64(ids[0])
	}
	var figures any
	if r.Labels[2] != nil {
		list := []any{}
		for _, id := range r.Labels[2] {
			list = append(list, int64(id))
		}
		figures = list
	}
	return map[string]any{"id": r.ID, "image": []any{fmt.Sprintf("%x", r.Image), orNull(r.Path)}, "ocr_text": r.Text, "ocr_confidence": float32(r.Confidence),
		"width": int32(r.Width), "height": int32(r.Height), "sha256": r.SHA256, "phash": orNull(r.PHash), "filter": orNull(r.Filter),
		"kind": single(r.Labels[0]), "severity": single(r.Labels[1]), "figures, of speech": figures}
}
