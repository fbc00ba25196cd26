// Package csvcell makes cells of CSV files safe to open in a spreadsheet and to print in a terminal. For texts
// elsewhere see internal/printable.
package csvcell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cell keeps a spreadsheet from running a cell as a formula: one that starts with = + - @ (full-width ones too), a tab
// or a line end gets a ' in front. One that has that already gets another, so that nothing is lost.
func Cell(text string) string {
	// Quotes in front count as well, or FromCell could not tell whose they are.
	if isFormula(strings.TrimLeft(text, "'")) {
		return "'" + text
	}
	return text
}

// FromCell returns what Cell was given.
func FromCell(cell string) string {
	if strings.HasPrefix(cell, "'") && isFormula(strings.TrimLeft(cell, "'")) {
		return cell[1:]
	}
	return cell
}

func isFormula(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n", first)
}

// Shown makes a name that a stranger chose fit for a table, a page and a terminal: it returns the name as it is when
// all of it can be printed, else in quotes with escapes, as Go writes it. No two names come out the same.
func Shown(name string) string {
	// A name that begins with a quote is written so too, or it could be another name's escape.
	odd := func(r rune) bool { return r == utf8.RuneError || !strconv.IsGraphic(r) }
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, odd) {
		return strconv.QuoteToGraphic(name)
	}
	return name
}

// Name is a cell with a name that a stranger chose: what Shown makes of it, and no formula.
func Name(name string) string { return Cell(Shown(name)) }
