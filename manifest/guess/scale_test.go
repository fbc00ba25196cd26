package guess

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// TestIsScale: whole numbers and words that have an order may be a scale; codes, years and other words are none.
func TestIsScale(t *testing.T) {
	for labels, want := range map[string]bool{
		"0 1 2 3": true, "1 2 3": true, "-1 0 1": true, "1 2 3 5": true, "1 3 5": true, "1.0 2.0 3.0": true,
		"low medium high": true, "None Low High": true, "never sometimes often": true,
		"": false, "0 1": false, "low high": false, "0 10 20": false, "0.5 1 1.5": false, "01 02 03": false,
		"1 2 x": false, "1 2 high": false, "sad glad low": false, "101 205 310": false,
	} {
		if got := IsScale(strings.Fields(labels)); got != want {
			t.Errorf("%q: %v", labels, got)
		}
	}
	if !IsScale([]string{"very low", "low", "high", "Very high"}) {
		t.Error("very low is no step")
	}
}

// TestLookAtScale: init asks about the labels of one category that may be a scale, and says what to do.
func TestLookAtScale(t *testing.T) {
	const asks = `set kind = "ordinal"`
	for _, test := range []struct{ rows, want string }{
		{"id,severity\nabc,0\nabd,1\nabe,2\nabf,3\nabg,0\nabh,1\nabk,2\nabm,3\n",
			`column "severity" has the labels 0, 1, 2, 3: if they are a scale, set kind = "ordinal" in release.toml`},
		{"id,harm\nabc,low\nabd,high\nabe,medium\nabf,low\n",
			`column "harm" has the labels high, low, medium: if they are a scale, set kind = "ordinal" in release.toml, ` +
				"and write its labels from the lowest to the highest"},
		{"id,tone\nabc,sad\nabd,glad\nabe,odd\n", ""},
		{"id,steps\nabc,1|2\nabd,3\nabe,2\n", ""},
	} {
		d, err := Files(t.Context(), []string{file(t, "a.csv", test.rows)}, Options{})
		testkit.OK(t, err)
		var got []string
		for _, line := range d.Warnings {
			if strings.Contains(line, asks) {
				got = append(got, line)
			}
		}
		testkit.Same(t, test.rows, strings.Join(got, "; "), test.want)
	}
}
