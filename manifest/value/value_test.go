package value

import (
	"strings"
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
		"1.567435668E+09":           at,
		"1567435668.1234":           at.Add(123 * time.Millisecond),
		"2019-09-02T14:47:48Z":      at,
		"2019-09-02T16:47:48+02:00": at,
		"2019-09-02 15:47:48+01:00": at,
	} {
		got, ok := Time(text, nil)
		if Naive(text) {
			t.Errorf("%q names no time zone", text)
		}
		if !ok || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"1.59E+09", "1.5e9", "1.59123456e+09", "", "2019", "yesterday", "02.09.2019",
		"2019-13-01", "1e11", "45000", "20240101",
		"-1567435668", "0"} {
		got, ok := Time(text, time.UTC)
		if ok || Naive(text) {
			t.Errorf("%q is the time %v, %v", text, got, ok)
		}
	}
}

// TestNaiveTime: a time without a zone is none, unless somebody says the zone.
func TestNaiveTime(t *testing.T) {
	berlin, ok := Zone("Europe/Berlin")
	if !ok {
		t.Fatal("no Europe/Berlin")
	}
	for _, test := range []struct {
		text, want string
		once       bool
	}{
		{"2019-09-02 14:47:48", "2019-09-02T12:47:48Z", true},
		{"2019-12-02T14:47:48.5", "2019-12-02T13:47:48.5Z", true},
		{"2019-09-02", "2019-09-01T22:00:00Z", true},
		{"2019-10-27 02:30:00", "2019-10-27T00:30:00Z", false}, // clocks show it twice
		{"2019-10-27 01:59:59", "2019-10-26T23:59:59Z", true},
		{"2019-10-27 03:00:00", "2019-10-27T02:00:00Z", true},
		{"2019-03-31 02:30:00", "2019-03-31T01:30:00Z", false}, // and never
		{"2019-03-31 01:59:59", "2019-03-31T00:59:59Z", true},
		{"2019-03-31 03:00:00", "2019-03-31T01:00:00Z", true},
	} {
		if got, ok := Time(test.text, nil); ok || !Naive(test.text) {
			t.Errorf("%q is %v without a zone", test.text, got)
		}
		got, ok := Time(test.text, berlin)
		if !ok || got.Format(time.RFC3339Nano) != test.want || Once(test.text, berlin) != test.once {
			t.Errorf("%q is %v, once %v", test.text, got, Once(test.text, berlin))
		}
	}
	for _, name := range []string{"", "Local", "local time", "../etc", "CEST+1", "25:00"} {
		if zone, ok := Zone(name); ok {
			t.Errorf("%q is the zone %v", name, zone)
		}
	}
	zone, ok := Zone("-05:30")
	if got, _ := Time("2019-09-02 00:00:00", zone); !ok || got.Format(time.RFC3339) != "2019-09-02T05:30:00Z" {
		t.Errorf("-05:30: %v", got)
	}
}

// TestTOML: a text is written as both TOML and JSON read it.
func TestTOML(t *testing.T) {
	testkit.Same(t, "a text", `"a \"b\" <c> \\ \n\u007F"`, TOML("a \"b\" <c> \\ \n\x7f"))
	testkit.Same(t, "a list", `["a","b"]`, TOML([]string{"a", "b"}))
}

// TestIsLine: a line can be shown, and has no space at its ends.
func TestIsLine(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a b": true, " a": false, "a\n": false, "a\nb": false,
		"a\u2028b": false, "a\xff": false, "éé": true, "ééé": false} {
		testkit.Same(t, text, want, IsLine(text, 4))
	}
}

// TestStyle: points part thousands only where each has three digits behind it, and commas decimals only where one has
// not.
func TestStyle(t *testing.T) {
	for text, want := range map[string][2]bool{ // commas, thousands
		"1,5 12 1.131,25": {true, false}, "1,131 2,500": {false, false}, "1,5 x": {false, false},
		"1,131 2,5":        {true, false},
		"902 1.131 -3.193": {false, true}, "1.131 2.5": {false, false}, "0.131": {false, false},
		"1.131 1e5":   {false, true},
		"1.5e3 1.131": {false, false}, "7": {false, false},
	} {
		var s Style
		for _, word := range strings.Fields(text) {
			s.Add(word)
		}
		testkit.Same(t, text, want, [2]bool{s.DecimalComma(), s.MayPartThousands()})
	}
}

// TestPartsThousands: points part thousands where each has three digits behind it, beside whole numbers.
func TestPartsThousands(t *testing.T) {
	for text, want := range map[string]bool{"950 1.014 12.500 2.000": true, "7 1.014": true, "-3 -1.014": true,
		"1.014 12.500": false, "0.123 1.014 2": false, "7 1.014 2.5": false, "7 1.0145": false, "7 950": false,
		"x 7 1.014": false, "2 1.333 1.667": false, "2 1.333 1.667 2.014": true,
		"3 1.143 2.857": false, "3 1.125 2.333": true, "7 12.500": true, "1,5 7 1.014": false, "0 1 0.500": false} {
		var s Style
		for _, word := range strings.Fields(text) {
			s.Add(word)
		}
		testkit.Same(t, text, want, s.PartsThousands())
	}
}

// TestAbsent: where no word can be a value, None and what JavaScript and Go write are none either.
func TestAbsent(t *testing.T) {
	for _, text := range []string{"NA", "NaT", "nan", "None", "none", "undefined", "nil", "#N/A", " null "} {
		testkit.Same(t, text, true, Absent(text))
	}
	for _, text := range []string{"", "no", "0", "abc123", "nano"} {
		testkit.Same(t, text, false, Absent(text))
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

// TestSheetError: an error of a spreadsheet is told from a comment.
func TestSheetError(t *testing.T) {
	for _, text := range []string{"#N/A", "#REF!", "#DIV/0!", "#NAME?", "#NV", "#BEZUG!", "#¡REF!", "#¿NOMBRE?",
		"#ÜBERLAUF!"} {
		testkit.Same(t, text, true, SheetError(text))
	}
	for _, text := range []string{"", "#", "# REF!", "#ids", "#March!", "#####", "N/A", "#1abcde", "#N/A in March"} {
		testkit.Same(t, text, false, SheetError(text))
	}
}

// TestMayBeCodes: a zero at the end of a number is a part of a code where others have fewer decimals.
func TestMayBeCodes(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1 1.2 1.9 1.10 2.1 2.10": true, "1.1 1.10": true, "2 1.1 1.10": true, "1.10 2.50 10.00": false,
		"1.0 2.25": false,
		"1.0 2.0":  false, "1.5 2.25 3": false, "0.50 0.5": true, "3 0.90 0.85": false, "1.50e-05 2.00e-03": false,
		"1e5 1.5e5": false, "7": false,
	} {
		var s Style
		for _, word := range strings.Fields(text) {
			s.Add(word)
		}
		testkit.Same(t, text, want, s.MayBeCodes())
	}
}

// TestGrouped: commas part thousands where each has three digits behind it.
func TestGrouped(t *testing.T) {
	for text, want := range map[string]bool{"3 1,500": true, "3.00 999.00 1,500.00": true, "1,500,000 -2,500": true,
		"1,5 1,500": false, "3 x 1,500": false, "1500": false, "1,50": false, "0,500": false, "1,500 a,500": false} {
		var s Style
		for _, word := range strings.Fields(text) {
			s.Add(word)
		}
		testkit.Same(t, text, want, s.Grouped())
	}
}
