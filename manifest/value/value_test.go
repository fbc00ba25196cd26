package value

import (
	"testing"
	"time"

	"rehydrate/internal/testkit"
)

// TestNumber: a number has no other value than itself.
func TestNumber(t *testing.T) {
	for text, want := range map[string]float64{"7": 7, "-2e3": -2000, "+1": 1, ".5": 0.5, "1e-3": 0.001} {
		got, ok := Number(text)
		if !ok || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "NaN", "Inf", "-inf", "0x1p4", "1_0", "1 0", "e5", "seven"} {
		if got, ok := Number(text); ok {
			t.Errorf("%q is the number %v", text, got)
		}
	}
}

// TestTime: a time is in UTC and to the millisecond, however it is written.
func TestTime(t *testing.T) {
	at := time.Date(2019, 9, 2, 14, 47, 48, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"1567435668.0":              at,
		"1567435668.1234":           at.Add(123 * time.Millisecond),
		"2019-09-02T14:47:48Z":      at,
		"2019-09-02T16:47:48+02:00": at,
		"2019-09-02 14:47:48":       at,
		"2019-09-02 15:47:48+01:00": at,
		"2019-09-02T14:47:48":       at,
		"2019-09-02":                at.Truncate(24 * time.Hour),
	} {
		got, ok := Time(text)
		if !ok || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "2019", "yesterday", "02.09.2019", "2019-13-01", "1e11", "45000", "20240101",
		"-1567435668", "0"} {
		got, ok := Time(text)
		if ok {
			t.Errorf("%q is the time %v, %v", text, got, ok)
		}
	}
}

// TestTOML: a text is written as both TOML and JSON read it.
func TestTOML(t *testing.T) {
	testkit.Same(t, "a text", `"a \"b\" <c> \\ \n\u007F"`, TOML("a \"b\" <c> \\ \n\x7f"))
	testkit.Same(t, "a list", `["a","b"]`, TOML([]string{"a", "b"}))
}

// TestIsLine: a line can be shown, and has no space at its ends.
func TestIsLine(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a b": true, " a": false, "a\n": false, "a\nb": false, "a\u2028b": false, "a\xff": false, "éé": true, "ééé": false} {
		testkit.Same(t, text, want, IsLine(text, 4))
	}
}

// TestMissing: None is a label, other words for a missing value are not.
func TestMissing(t *testing.T) {
	for _, text := range []string{"nan", "NaN", "NA", " n/a ", "#N/A", "NaT", "null", "<NA>", "#DIV/0!"} {
		testkit.Same(t, text, true, Missing(text))
	}
	for _, text := range []string{"", "None", "none", "nat king", "0", "no", "-"} {
		testkit.Same(t, text, false, Missing(text))
	}
}
