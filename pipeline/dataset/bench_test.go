package dataset

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit/measure"
)

func TestMain(m *testing.M) {
	measure.Main(m, map[string]measure.Job{
		"ours": job(func(w io.Writer, rows []Row) error {
			_, err := WriteParquet(w, testSchema(), testProvenance(), false, all(rows))
			return err
		}),
		// bare writes without the digests of images and file, which arrow-go makes neither.
		"bare": job(func(w io.Writer, rows []Row) error {
			_, err := writeParquet(w, testSchema(), testProvenance(),
				layout{columnsOf(Parquet, false), (*Row).checkFields}, all(rows))
			return err
		}),
	})
}

// job prepares n rows of 150 kB, ten different ones over and over, for write. tools/arrow writes the same.
func job(write func(io.Writer, []Row) error) measure.Job {
	return func(n int) func(io.Writer) error {
		rows := make([]Row, n)
		for i := range rows {
			if i >= 10 {
				rows[i] = rows[i%10]
				continue
			}
			rows[i] = newRow(fmt.Sprint("r", i), picture(uint64(i), 150_000))
			rows[i].Text = strings.Repeat("some words of a meme ", 5)
		}
		return func(w io.Writer) error { return write(w, rows) }
	}
}

// Memory stays flat: 300 MB of images take one row group and a little more than one row takes. What the
// program takes itself, with all that its tests link, is in both.
func TestWriterMemory(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector takes several times the memory")
	}
	one, many := measure.Child(t, "ours 1"), measure.Child(t, "ours 2000")
	if grown := many.Peak - one.Peak; grown > 32 || many.Rows != 2000 || many.Bytes < 300_000_000 ||
		many.Bytes > 315_000_000 {
		t.Errorf("2,000 rows of 150 kB: %+v, %.1f MB more than for one row; want at most 32 MB more", many, grown)
	}
}

// BenchmarkWriters writes 2,000 rows of 150 kB bare, as BenchmarkArrow of tools/arrow does it, and 1, 2,000 and 20,000
// in full, with the digests of each image and of the file.
func BenchmarkWriters(b *testing.B) {
	for b.Loop() {
		measure.Report(b, "bare 2000", 3, 0.15)
		measure.Report(b, "ours 2000", 3, 0.15)
		measure.Report(b, "ours 20000", 1, 0.15)
		measure.Report(b, "ours 1", 1, 0.15)
	}
}
