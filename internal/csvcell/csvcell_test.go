package csvcell

import (
	"strconv"
	"strings"
	"testing"
)

func TestCell(t *testing.T) {
	tests := map[string]string{"": "", "plain": "plain", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x",
		"\tx": "'\tx", "\rx": "'\rx",
		"\nx": "'\nx", "'=1": "''=1", "''-": "'''-", "'plain": "'plain", "'": "'", "a=1": "a=1", "ä=1": "ä=1",
		"\xff=1": "\xff=1",
		// Some spreadsheets take the full-width signs for those of ASCII.
		"\uff1d1+1": "'\uff1d1+1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff20x": "'\uff20x",
		"'\uff1d1": "''\uff1d1", "\uff01": "\uff01"}
	for text, want := range tests {
		if got := Cell(text); got != want || FromCell(got) != text {
			t.Errorf("Cell(%q) = %q, want %q; FromCell of that = %q", text, got, want, FromCell(got))
		}
	}
}

// TestName: what is written of a name holds nothing that a terminal or a spreadsheet acts on, and no two names come out
// the same.
func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"a b/ü.jpg": "a b/ü.jpg", "=1+1.jpg": "'=1+1.jpg", "'=1.jpg": "''=1.jpg", "-x": "'-x", "'x": "'x",
		"\uff1d1":      "'\uff1d1",
		"\x1b[31m.jpg": `"\x1b[31m.jpg"`, "\tx": `"\tx"`, "a\nb": `"a\nb"`, "a\xffb": `"a\xffb"`,
		"a\u202eb": `"a\u202eb"`, `"a"`: `"\"a\""`, "": "",
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("'=a", "=a")
	f.Add("\x1b", `"\x1b"`)
	f.Add("\uff1d", "'\uff1d")
	f.Fuzz(func(t *testing.T, a, b string) {
		if (Name(a) == Name(b)) != (a == b) {
			t.Errorf("Name(%q) = %s, Name(%q) = %s", a, Name(a), b, Name(b))
		}
		s := Name(a)
		if s != "" && strings.ContainsRune("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", []rune(s)[0]) {
			t.Errorf("Name(%q) = %q, a formula", a, s)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsGraphic(r) }) {
			t.Errorf("Name(%q) = %q, not printable", a, s)
		}
	})
}
