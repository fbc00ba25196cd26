package arrow_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"rehydrate/internal/testkit/measure"
	"rehydrate/pipeline/dataset"
)

// groupRows is the number of rows of a row group, the one of package dataset.
const groupRows = 100

func TestMain(m *testing.M) {
	measure.Main(m, map[string]measure.Job{"arrow": func(n int) func(io.Writer) error {
		rows := make([]dataset.Row, n)
		for i := range rows {
			if i >= 10 {
				rows[i] = rows[i%10]
				continue
			}
			rows[i] = newRow(fmt.Sprint("r", i), 150_000)
			rows[i].Text = strings.Repeat("some words of a meme ", 5)
		}
		return func(w io.Writer) error { return writeArrow(w, rows) }
	}})
}

// BenchmarkArrow writes with arrow-go the rows that BenchmarkWriters of package dataset writes.
func BenchmarkArrow(b *testing.B) {
	for b.Loop() {
		measure.Report(b, "arrow 2000", 3, 0.15)
	}
}

// writeArrow writes the same columns with arrow-go, as well as it can be told to: 100 rows a group, images
// plain, uncompressed and without statistics.
func writeArrow(w io.Writer, rows []dataset.Row) error {
	field := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	columns := arrow.NewSchema([]arrow.Field{
		field("id", arrow.BinaryTypes.String),
		field("image", arrow.StructOf(field("bytes", arrow.BinaryTypes.Binary), field("path", arrow.BinaryTypes.String))),
		field("ocr_text", arrow.BinaryTypes.String), field("ocr_confidence", arrow.PrimitiveTypes.Float32),
		field("width", arrow.PrimitiveTypes.Int32), field("height", arrow.PrimitiveTypes.Int32),
		field("sha256", arrow.BinaryTypes.String), field("phash", arrow.BinaryTypes.String),
		field("kind", arrow.PrimitiveTypes.Int64), field("severity", arrow.PrimitiveTypes.Int64),
		field("figures", arrow.ListOf(arrow.PrimitiveTypes.Int64)),
	}, nil)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithDictionaryDefault(false),
		parquet.WithMaxRowGroupLength(groupRows), parquet.WithCompressionFor("image.bytes", compress.Codecs.Uncompressed),
		parquet.WithStatsFor("image.bytes", false), parquet.WithStatsFor("ocr_text", false))
	pw, err := pqarrow.NewFileWriter(columns, w, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	held := 0
	flush := func() error {
		held = 0
		batch := b.NewRecordBatch()
		defer batch.Release()
		return pw.Write(batch)
	}
	for i := range rows {
		appendArrow(b, &rows[i])
		held++
		if held == groupRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if held > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	return pw.Close()
}

func appendArrow(b *array.RecordBuilder, r *dataset.Row) {
	text := func(i int, s string) { b.Field(i).(*array.StringBuilder).Append(s) }
	text(0, r.ID)
	image := b.Field(1).(*array.StructBuilder)
	image.Append(true)
	image.FieldBuilder(0).(*array.BinaryBuilder).Append(r.Image)
	image.FieldBuilder(1).(*array.StringBuilder).Append(r.Path)
	text(2, r.Text)
	b.Field(3).(*array.Float32Builder).Append(float32(r.Confidence))
	b.Field(4).(*array.Int32Builder).Append(int32(r.Width))
	b.Field(5).(*array.Int32Builder).Append(int32(r.Height))
	text(6, r.SHA256)
	text(7, r.PHash)
	b.Field(8).(*array.Int64Builder).Append(int64(r.Labels[0][0]))
	b.Field(9).(*array.Int64Builder).Append(int64(r.Labels[1][0]))
	list := b.Field(10).(*array.ListBuilder)
	list.Append(true)
	for _, id := range r.Labels[2] {
		list.ValueBuilder().(*array.Int64Builder).Append(int64(id))
	}
}
