// Package arrow_test compares package pipeline/dataset with arrow-go, which shares no code with it. arrow-go brings
// thrift, gRPC and flatbuffers along: therefore it is in the module of tools.
package arrow_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
)

// schema has a category of every kind.
func schema() manifest.Schema {
	return manifest.Schema{Name: "test", Categories: []manifest.Category{
		{Name: "kind", Kind: manifest.Single, Labels: []manifest.Label{
			{Code: "K1", Name: "No"}, {Code: "K2", Name: "It's \"quoted\": #1"}, {Code: "K3", Name: "Irony/Sarcasm"}}},
		{Name: "severity", Kind: manifest.Ordinal, Labels: []manifest.Label{
			{Code: "S1", Name: "None"}, {Code: "S2", Name: "Low"}, {Code: "S3", Name: "<High & up>"}}},
		{Name: "figures, of speech", Kind: manifest.Multi, Labels: []manifest.Label{
			{Code: "F1", Name: "Métaphore"}, {Code: "F2", Name: "0"}, {Code: "F3", Name: "Hyperbole"}}},
	}}
}

// newRow returns a row whose image has so many bytes, looks like a JPEG and does not compress.
func newRow(id string, size int) dataset.Row {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(size))
	image := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(image) // never fails
	copy(image, "\xff\xd8\xff\xe0\x00\x10JFIF")
	sum := sha256.Sum256(image)
	return dataset.Row{ID: id, Image: image, Path: id + ".jpg", Text: "a text", Confidence: 91.5, Width: 640, Height: 480,
		SHA256: hex.EncodeToString(sum[:]), PHash: "0123456789abcdef", Labels: [][]int{{0}, {2}, {1, 0}}}
}

// rows are rows in every shape that the columns have to tell apart.
func rows() []dataset.Row {
	all := []dataset.Row{newRow("id0", 3000), newRow("id1", 3001), newRow("id2", 3002), newRow("id3", 3003),
		newRow("id4", 3004), newRow("id5", 3005), newRow("id6", 3006), newRow("id7/1", 3007)}
	all[1].Labels = [][]int{{0}, {0}, {0}}   // label id 0 in all
	all[2].Labels = [][]int{nil, nil, nil}   // no label given
	all[3].Labels = [][]int{{}, {1}, {}}     // an empty list
	all[4].Text, all[4].Confidence = "", 0   // no text in the image
	all[5].Text, all[5].Confidence = " ", 12 // not the same as none
	all[6].PHash, all[6].Path = "", ""
	all[6].Filter = "unreadable"
	all[7].Text, all[7].Labels = "línea\nзвук 😀", [][]int{{2}, {2}, {2, 1, 0}}
	return all
}

func all(rows []dataset.Row) iter.Seq2[dataset.Row, error] {
	return func(yield func(dataset.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

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
func TestSchema(t *testing.T) {
	for name, s := range map[string]manifest.Schema{"every kind": schema(), "figsim": manifest.FigSIM(),
		"no labels": {}} {
		for flagged, base := range map[bool]int{false: 8, true: 9} { // columns of every file
			var b bytes.Buffer
			if _, err := dataset.WriteParquet(&b, s, dataset.Provenance{}, flagged, all(nil)); err != nil {
				t.Fatal(err)
			}
			r := arrowReader(t, b.Bytes())
			read, err := r.Schema()
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
			for _, field := range read.Fields() {
				got[field.Name] = spelled(field)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != base+len(s.Categories) {
				t.Errorf("%s, %d fields (-datasets expects +file has):\n%s", name, len(got), diff)
			}
		}
	}
}

// asJSON returns what arrow-go makes of rows() as JSON: empty names are null, images are in base64.
func asJSON() (all []map[string]any) {
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
	list := func(ids []int) any {
		if ids == nil {
			return nil
		}
		values := []any{}
		for _, id := range ids {
			values = append(values, float64(id))
		}
		return values
	}
	for _, r := range rows() {
		image := map[string]any{"bytes": base64.StdEncoding.EncodeToString(r.Image), "path": orNull(r.Path)}
		all = append(all, map[string]any{"id": r.ID, "image": image,
			"ocr_text": r.Text, "ocr_confidence": r.Confidence, "width": float64(r.Width), "height": float64(r.Height),
			"sha256": r.SHA256, "phash": orNull(r.PHash), "filter": orNull(r.Filter), "kind": single(r.Labels[0]),
			"severity": single(r.Labels[1]), "figures, of speech": list(r.Labels[2])})
	}
	return all
}

// arrow-go reads every column back equal.
func TestRows(t *testing.T) {
	var b bytes.Buffer
	if _, err := dataset.WriteParquet(&b, schema(), dataset.Provenance{}, true, all(rows())); err != nil {
		t.Fatal(err)
	}
	table, err := arrowReader(t, b.Bytes()).ReadTable(t.Context())
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
	if diff := cmp.Diff(asJSON(), got); diff != "" {
		t.Errorf("rows (-written +read):\n%.3000s", diff)
	}
}
