package labels

import (
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// figsim reads the made-up manifest whose label counts are those of FigSIM, Table 8.
func figsim(t testing.TB) (*manifest.Release, []manifest.Entry) {
	t.Helper()
	r, err := manifest.Open("../manifest/testdata/annotations.csv", manifest.Options{})
	testkit.OK(t, err)
	var entries []manifest.Entry
	for e, err := range r.Entries(t.Context()) {
		testkit.OK(t, err)
		entries = append(entries, e)
	}
	return r, entries
}

// counted counts entries that are there.
func counted(t testing.TB, schema manifest.Schema, entries []manifest.Entry) Stats {
	t.Helper()
	s, err := Count(schema, func(yield func(manifest.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	})
	testkit.OK(t, err)
	return s
}

// near reports whether two numbers are equal to 12 digits.
func near(a, b float64) bool {
	d := a - b
	return d < 1e-12 && d > -1e-12
}

// allNear compares two lists of numbers.
func allNear(a, b []float64) bool { return slices.EqualFunc(a, b, near) }
