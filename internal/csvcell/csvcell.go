// Package csvcell makes cells of CSV files safe to open in a spreadsheet. Texts elsewhere have homes of their
// own: html/template for pages, state.Printable for terminals, the scrubber of package reddit for logs.
package csvcell

import "strings"

// Cell keeps a spreadsheet from running a cell as a formula: one that starts with = + - @, a tab or a
// carriage return gets a ' in front. One that has that already gets another, so that nothing is lost.
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
	return text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0]))
}
