package printable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		text string
		is   bool
		want [4]string // Text, Line, Escaped, EscapedLine
	}{
		{"", true, [4]string{"", "", "", ""}},
		{`say "a\b"`, true, [4]string{`say "a\b"`, `say "a\b"`, `say "a\b"`, `say "a\b"`}},
		{"Zürich 家 😀", true, [4]string{"Zürich 家 😀", "Zürich 家 😀", "Zürich 家 😀", "Zürich 家 😀"}},
		{"a\nb\x1b\u202ec\xff\u2028", false, [4]string{"a\nbc\ufffd", "a bc\ufffd", "a\nb" + `\x1b\u202ec\xff\u2028`,
			`a\nb\x1b\u202ec\xff\u2028`}},
		{"a\nb\tc", false, [4]string{"a\nbc", "a bc", "a\nb\tc", `a\nb\tc`}},
		{"a\x1b[31mb", false, [4]string{"a[31mb", "a[31mb", `a\x1b[31mb`, `a\x1b[31mb`}},
		{"a\u202eb\u2028", false, [4]string{"ab", "ab", `a\u202eb\u2028`, `a\u202eb\u2028`}},
		{"a\u00a0b", false, [4]string{"a\u00a0b", "a\u00a0b", "a\u00a0b", "a\u00a0b"}},
		{"a\xff\r", false, [4]string{"a\ufffd", "a\ufffd", `a\xff\r`, `a\xff\r`}},
		{"c1\u009b31m", false, [4]string{"c131m", "c131m", `c1\u009b31m`, `c1\u009b31m`}},
		{"tag\U000e0041", false, [4]string{"tag", "tag", `tag\U000e0041`, `tag\U000e0041`}},
		{"\ufffd", true, [4]string{"\ufffd", "\ufffd", "\ufffd", "\ufffd"}},
	} {
		got := [4]string{Text(c.text), Line(c.text), Escaped(c.text), EscapedLine(c.text)}
		if got != c.want || Is(c.text) != c.is {
			t.Errorf("%q: %v, %q, want %v, %q", c.text, Is(c.text), got, c.is, c.want)
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff\n\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range []string{Line(text), EscapedLine(text)} {
			if strings.ContainsAny(line, "\n\r\t\x1b\u202e\u2028") || !utf8.ValidString(line) {
				t.Errorf("%q became %q", text, line)
			}
		}
		if Is(text) && (Line(text) != text || EscapedLine(text) != text) {
			t.Errorf("%q became %q and %q", text, Line(text), EscapedLine(text))
		}
	})
}
