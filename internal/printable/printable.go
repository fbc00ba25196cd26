// Package printable makes texts that anybody may have written, such as names of files and what a server answered, fit
// for a terminal and a line: such a text could move the cursor, or turn what is around it.
//
// Other places have rules of their own: html/template for pages, internal/csvcell for cells, internal/secret for logs,
// pipeline/dataset for YAML.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Is reports whether s is UTF-8 on one line, of characters that can be seen and spaces. Empty is.
func Is(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Text drops what cannot be seen. Line ends stay.
func Text(s string) string { return Drop(s, "\n") }

// Line is Text on one line.
func Line(s string) string { return strings.ReplaceAll(Text(s), "\n", " ") }

// Drop drops what cannot be seen, but for the characters in keep. What is not UTF-8 becomes U+FFFD.
func Drop(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) && !strings.ContainsRune(keep, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// Escaped writes what cannot be seen, and what is not UTF-8, as Go does: \x1b. Line ends and tabs stay.
func Escaped(s string) string { return escape(s, "\n\t") }

// EscapedLine is Escaped with line ends and tabs escaped as well.
func EscapedLine(s string) string { return escape(s, "") }

func escape(s, keep string) string {
	hidden := func(r rune) bool { return !strconv.IsGraphic(r) && !strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		char := s[:size]
		if hidden(r) || r == utf8.RuneError && size == 1 {
			char = strings.Trim(strconv.QuoteToGraphic(char), `"`)
		}
		b.WriteString(char)
		s = s[size:]
	}
	return b.String()
}
