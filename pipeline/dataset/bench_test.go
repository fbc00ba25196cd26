package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// writerVar makes the test binary write a Parquet and tell what that took: "ours 2000", "arrow 2000". A
// process of its own, because the peak of the memory is one of the process.
const writerVar = "REHYDRATE_TEST_WRITER"

func TestMain(m *testing.M) {
	if job := os.Getenv(writerVar); job != "" {
		if err := measuredWrite(os.Stdout, job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A measurement is what writing one file took.
type measurement struct {
	Rows    int
	Bytes   int64 // of the file
	Seconds float64
	CPU     float64 // seconds
	Peak    float64 // resident memory of the process at most, MB
}

func measuredWrite(out io.Writer, job string) error {
	writer, number, _ := strings.Cut(job, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	var rows []Row // used over and over, so that making them is not measured
	for i := range 10 {
		r := newRow(fmt.Sprint("r", i), picture(uint64(i), 150_000))
		r.Text = strings.Repeat("some words of a meme ", 5)
		rows = append(rows, r)
	}
	write := map[string]func(io.Writer, func(func(Row, error) bool)) error{"ours": writeOurs, "bare": writeBare, "arrow": writeArrow}[writer]
	before := usage()
	began, to := time.Now(), &counter{w: io.Discard}
	if err := write(to, func(yield func(Row, error) bool) {
		for i := range n {
			if !yield(rows[i%len(rows)], nil) {
				return
			}
		}
	}); err != nil {
		return err
	}
	took, after := time.Since(began).Seconds(), usage()
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(measurement{Rows: n, Bytes: to.n, Seconds: took,
		CPU: cpuSeconds(after) - cpuSeconds(before), Peak: peak})
}

// peakMemory is what the process had resident at most, in MB. Getrusage would not do: what it tells starts
// with the memory of the process that this one was forked from.
func peakMemory() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kB float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kB); n == 1 {
			return kB * 1024 / 1e6, nil
		}
	}
	return 0, errors.New("the system does not tell the peak of the memory")
}

func usage() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u
}

func cpuSeconds(u syscall.Rusage) float64 {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func writeOurs(w io.Writer, rows func(func(Row, error) bool)) error {
	_, err := WriteParquet(w, testSchema(), testProvenance(), false, rows)
	return err
}

// writeBare writes without the digests of images and file, which arrow-go makes neither.
func writeBare(w io.Writer, rows func(func(Row, error) bool)) error {
	_, err := writeParquet(w, testSchema(), testProvenance(), baseColumns(false), (*Row).checkFields, rows)
	return err
}

// writeArrow writes the same columns with arrow-go, as well as it can be told to: 100 rows a group, images
// plain, uncompressed and without statistics.
func writeArrow(w io.Writer, rows func(func(Row, error) bool)) error {
	field := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	schema := arrow.NewSchema([]arrow.Field{
		field("id", arrow.BinaryTypes.String),
		field("image", arrow.StructOf(field("bytes", arrow.BinaryTypes.Binary), field("path", arrow.BinaryTypes.String))),
		field("ocr_text", arrow.BinaryTypes.String), field("ocr_confidence", arrow.PrimitiveTypes.Float32),
		field("width", arrow.PrimitiveTypes.Int32), field("height", arrow.PrimitiveTypes.Int32),
		field("sha256", arrow.BinaryTypes.String), field("phash", arrow.BinaryTypes.String),
		field("kind", arrow.PrimitiveTypes.Int64), field("severity", arrow.PrimitiveTypes.Int64), field("figures", arrow.ListOf(arrow.PrimitiveTypes.Int64)),
	}, nil)
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(false),
		parquet.WithMaxRowGroupLength(maxGroupRows), parquet.WithCompressionFor("image.bytes", compress.Codecs.Uncompressed),
		parquet.WithStatsFor("image.bytes", false), parquet.WithStatsFor("ocr_text", false))
	pw, err := pqarrow.NewFileWriter(schema, w, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	held := 0
	flush := func() error {
		held = 0
		batch := b.NewRecordBatch()
		defer batch.Release()
		return pw.Write(batch)
	}
	for row := range rows {
		appendArrow(b, &row)
		held++
		if held == maxGroupRows {
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

func appendArrow(b *array.RecordBuilder, r *Row) {
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

// inChild measures a job in a process of its own.
func inChild(t testing.TB, job string) measurement {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerVar+"="+job, "GOMEMLIMIT=", "GOGC=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", job, err, errs.Bytes())
	}
	var m measurement
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Memory stays flat: 300 MB of images take one row group and a little more than one row takes. What the
// program takes itself, with all that its tests link (38 MB), is in both.
func TestWriterMemory(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector takes several times the memory")
	}
	one, many := inChild(t, "ours 1"), inChild(t, "ours 2000")
	if grown := many.Peak - one.Peak; grown > 32 || many.Rows != 2000 || many.Bytes < 300_000_000 || many.Bytes > 315_000_000 {
		t.Errorf("2,000 rows of 150 kB: %+v, %.1f MB more than for one row; want at most 32 MB more", many, grown)
	}
}

// BenchmarkWriters writes the same 2,000 rows of 150 kB with this package and with arrow-go, in turns, and
// 20,000 with this package: bare, as arrow-go does it, and in full, with the digests of each image and of the
// file. The best of three counts, as the machine may be busy.
func BenchmarkWriters(b *testing.B) {
	for b.Loop() {
		best := map[string]measurement{}
		for range 3 {
			for _, job := range []string{"bare 2000", "arrow 2000", "ours 2000"} {
				if m := inChild(b, job); best[job].Rows == 0 || m.CPU < best[job].CPU {
					best[job] = m
				}
			}
		}
		best["ours 20000"], best["ours 1"] = inChild(b, "ours 20000"), inChild(b, "ours 1")
		for job, m := range best {
			name := strings.ReplaceAll(job, " ", "-")
			b.ReportMetric(float64(m.Rows)*0.15/m.Seconds, name+":MB/s")
			b.ReportMetric(float64(m.Rows)*0.15/m.CPU, name+":MB/cpu-s")
			b.ReportMetric(m.Peak, name+":peak-MB")
			b.ReportMetric(float64(m.Bytes)/1e6, name+":file-MB")
		}
	}
}
