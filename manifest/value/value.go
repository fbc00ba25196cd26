// Package value reads the text of a cell, a name or a setting as what it can be: a number, a time, a yes or no, digits
// of a digest, a word, a line. Whoever reads a table, and whoever guesses what its columns mean, reads them alike.
//
// All functions are pure, take any text, and are linear in it.
package value

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/jsonscan"
	"rehydrate/internal/printable"
)

// Signs of ids and names.
const (
	Digits = "0123456789"
	Lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Fold is how names, labels and column names are compared: in lower case, without spaces at the ends.
func Fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// FoldASCII returns s with the letters A to Z in lower case, and every other character as it is.
func FoldASCII(s string) string {
	// Unicode folding would turn look-alikes (the Kelvin sign) into letters.
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsDigits reports whether s is one ASCII digit or more, and nothing else.
func IsDigits(s string) bool { return s != "" && strings.Trim(s, Digits) == "" }

// IsHex reports whether s is n lower-case hex digits.
func IsHex(s string, n int) bool { return len(s) == n && strings.Trim(s, Digits+"abcdef") == "" }

// IsWord reports whether s is ^[A-Za-z0-9_]{1,most}$, the grammar of split names.
func IsWord(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, Digits+Lower+upper+"_") == ""
}

// IsLine reports whether s is one line of text, of 1 to most bytes, that can be shown and can be in a list of labels:
// it has printable characters only, and no space at its ends.
func IsLine(s string, most int) bool {
	return s != "" && len(s) <= most && strings.TrimSpace(s) == s && printable.Is(s)
}

// Number reads a number in decimal digits, with or without an exponent. NaN, Inf and hexadecimal numbers are none.
func Number(text string) (float64, bool) {
	if text == "" || !IsDigit(text[0]) && strings.IndexByte("+-.", text[0]) < 0 {
		return 0, false // NaN and Inf are words here
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !strings.ContainsAny(text, "xXpP_iI")
}

// Rounded reports whether a number has an exponent, and fewer digits than its value has before the point: 1.59E+09, as
// a spreadsheet shows 1591234567 in a narrow column.
func Rounded(number string) bool {
	mantissa, power, has := strings.Cut(FoldASCII(number), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	exponent, err := strconv.Atoi(power)
	return has && err == nil && exponent > len(decimals)
}

// Numbers that are taken for seconds since 1970: from 1973 to 2100. Days as spreadsheets count them (45000) and dates
// in digits (20240101) are below.
const firstSecond, lastSecond = 1e8, 4102444800

// Time reads a time as text, or as seconds since 1970, in UTC and to the millisecond. Seconds are those of 1973 to
// 2100, and not rounded. A text that names no time zone, also a date alone, is read in zone, and is no time where that
// is nil; where clocks there are set back and it stands twice, it is the earlier one.
func Time(text string, zone *time.Location) (time.Time, bool) {
	if seconds, ok := Number(text); ok && !Rounded(text) && seconds >= firstSecond && seconds < lastSecond {
		return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), true
	}
	if len(text) < len(time.DateOnly) || text[4] != '-' {
		return time.Time{}, false
	}
	for _, form := range [...]string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC().Truncate(time.Millisecond), true
		}
	}
	wall, naive := wallTime(text)
	if !naive || zone == nil {
		return time.Time{}, false
	}
	t, _ := inZone(wall, zone)
	return t.Truncate(time.Millisecond), true
}

// Naive reports whether a text is a time that names no time zone, or a date.
func Naive(text string) bool {
	_, naive := wallTime(text)
	return naive
}

// Day reports whether a text is a date without a time of day: it is no time, and lies in no time zone.
func Day(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// Once reports whether the clocks of a time zone show a time without one exactly once: not twice, as when they are set
// back, nor never, as when they are set forward.
func Once(text string, zone *time.Location) bool {
	wall, naive := wallTime(text)
	_, times := inZone(wall, zone)
	return !naive || times == 1
}

// wallTime reads a time that names no time zone, as if it were in UTC.
func wallTime(text string) (time.Time, bool) {
	if len(text) < len(time.DateOnly) || text[4] != '-' {
		return time.Time{}, false
	}
	for _, form := range [...]string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// inZone gives the first time at which the clocks of a zone show a time, and how many such times there are. Where
// there is none, it is as if they had not been set forward.
func inZone(wall time.Time, zone *time.Location) (first time.Time, times int) {
	const around = 24 * time.Hour
	_, before := wall.Add(-around).In(zone).Zone()
	_, after := wall.Add(around).In(zone).Zone()
	for _, offset := range [...]int{max(before, after), min(before, after)} { // a larger one gives an earlier time
		t := wall.Add(-time.Duration(offset) * time.Second)
		_, there := t.In(zone).Zone()
		if there != offset || times == 1 && before == after {
			continue
		}
		if times == 0 {
			first = t
		}
		times++
	}
	if times == 0 {
		first = wall.Add(-time.Duration(before) * time.Second)
	}
	return first.UTC(), times
}

// Zone reads the name of a time zone, such as Europe/Berlin or UTC, or how far it is from UTC, such as +02:00.
func Zone(name string) (*time.Location, bool) {
	if t, err := time.Parse("-07:00", name); err == nil {
		return t.Location(), true
	}
	if name == "" || name == "Local" { // which would differ from machine to machine
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// Missing reports whether a text is what spreadsheets, R and pandas write where a value is missing: nan, NA, NaT, null,
// #N/A. None can be a label, and is not among them.
func Missing(text string) bool {
	switch Fold(text) {
	case "nan", "na", "n/a", "nat", "null", "<na>", "#n/a", "#na", "#null!", "#value!", "#ref!", "#name?", "#num!",
		"#div/0!":
		return true
	}
	return false
}

// sheetError is the form of what a spreadsheet shows in place of a value, in any language: #N/A, #REF!, #¿NOMBRE?, #NV.
var sheetError = regexp.MustCompile(`^#(?:N/[AD]|NV|[¡¿]?\p{Lu}[\p{Lu}\d/_]*[!?])$`)

// SheetError reports whether a text is what a spreadsheet writes in place of a value that it cannot work out.
func SheetError(text string) bool {
	return strings.HasPrefix(text, "#") && sheetError.MatchString(text)
}

// Absent reports whether a text stands for no value where no word can be one, as in a cell of ids, splits or errors: it
// is what Missing knows, or None, nil or undefined.
func Absent(text string) bool {
	return Missing(text) || slices.Contains([]string{"none", "nil", "undefined"}, Fold(text))
}

// Flag reads a yes or no as JSON, spreadsheets and pandas write one; an empty text is a no. ok is false for any other
// text.
func Flag(text string) (yes, ok bool) {
	switch Fold(text) {
	case "1", "1.0", "true", "yes", "x":
		return true, true
	case "0", "0.0", "false", "no", "":
		return false, true
	}
	return false, false
}

// YesNo reads a yes or no as people write one, also t and y, in a number, and in other languages. ok is false for any
// other text, and for none.
func YesNo(text string) (yes, ok bool) {
	switch Fold(WithoutMarks(text)) {
	case "true", "t", "yes", "y", "ja", "j", "wahr", "oui", "vrai", "si", "verdadero", "sim", "verdadeiro", "vero",
		"sant", "tak",
		"prawda", "evet", "dogru", "da":
		return true, true
	case "false", "f", "no", "n", "nein", "falsch", "non", "faux", "falso", "nao", "nee", "onwaar", "nej", "falskt",
		"nie", "falsz",
		"hayir", "yanlis", "net":
		return false, true
	}
	n, ok := Number(strings.TrimSpace(text))
	return n == 1, ok && (n == 0 || n == 1)
}

// IsWholeEnd reports whether the reason for which a model's answer ended, as APIs and servers spell it, is one of a
// whole answer; none at all is one. An answer that ends for another may not be whole.
func IsWholeEnd(reason string) bool {
	switch Fold(reason) {
	case "", "stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete", "completed", "done", "finished",
		"eosfound", "stopstringfound", "word", "endoftext", "end_of_text":
		return true
	}
	return false
}

// TOML writes a text, number, flag or list of texts as a value of TOML on one line, which is one of JSON as well.
func TOML(v any) string {
	text, _ := jsonscan.Marshal(v) // of such a value it does not fail
	// the one character that TOML wants escaped, and JSON does not
	return strings.ReplaceAll(string(text), "\x7f", `\u007F`)
}
