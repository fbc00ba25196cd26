package copies

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

// TestAdoptEveryKind: a copy of any kind that a command registers is taken up again as it was made, and purged.
func TestAdoptEveryKind(t *testing.T) {
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	lines, numbers := "", map[string][]float64{}
	for _, id := range ids {
		lines += fmt.Sprintf("{\"id\":%q,\"tone\":\"a\"}\n", id)
		numbers[string(id)] = []float64{1}
	}
	records := func(w io.Writer) error {
		return dataset.WriteRecords(w, func(yield func(dataset.Record, error) bool) {
			for _, id := range ids {
				if !yield(dataset.Record{ID: string(id), Fields: map[string]any{}}, nil) {
					return
				}
			}
		})
	}
	table := func(name string) func(io.Writer) error {
		return func(w io.Writer) error {
			return dataset.WriteNumbers(w, name, []string{"n"}, "{}", maps.All(numbers))
		}
	}
	for name, test := range map[string]struct {
		format dataset.Format
		files  map[string]func(io.Writer) error
	}{
		"round": {dataset.Argilla, map[string]func(io.Writer) error{dataset.RecordsName: records,
			".argilla/settings.json": text("{}"), ".argilla/dataset.json": text("{}")}},
		"numbers": {dataset.Numbers, map[string]func(io.Writer) error{"features.csv": table("features.csv"),
			"features.json": text("{}")}},
		"numbers as Parquet": {dataset.Numbers, map[string]func(io.Writer) error{
			"features.parquet": table("features.parquet"), "features.json": text("{}")}},
		"predictions": {dataset.Answers, map[string]func(io.Writer) error{"predictions-1.jsonl": text(lines),
			"examples.jsonl": text(lines), "run.json": text("{}")}},
		"scores": {dataset.Answers, map[string]func(io.Writer) error{"scores.jsonl": text(lines),
			"run.json": text("{}")}},
	} {
		s := newSite(t)
		c := s.config("x", string(test.format))
		c.Fill = func(_ context.Context, sink dataset.Sink) (rows []string, err error) {
			for _, file := range slices.Sorted(maps.Keys(test.files)) {
				testkit.OK(t, sink(file, test.files[file]))
			}
			return []string{"few001", "few002", "few003"}, nil
		}
		_, err := Export(t.Context(), c)
		testkit.OK(t, err)
		s.ws = s.open() // an older backup
		s.fill()
		gone := s.gone("few001")
		report, err := s.adopt("x")
		testkit.OK(t, err)
		testkit.Same(t, name+": adopted", []any{string(test.format), 3, len(test.files), []string{"few001"}},
			[]any{report.Format, report.Rows, len(report.Files), report.Owed})
		testkit.Same(t, name+": after the purge", state.CopyGood, s.purge("x", gone).State)
		testkit.Same(t, name+": rows that stay", ids[1:], s.holds("x"))
	}
}
