package manifest

import "strings"

// Limits of a TOML file's shape. The parser keeps the whole path of every key, so that
// a small file of long or deep keys would take gigabytes (measured: a key of 120,000
// parts does); no release.toml comes near them.
const (
	maxKeyText  = 600 // bytes of a key, or of a [table] line
	maxKeyParts = 8   // dots in one key
	maxNesting  = 4   // brackets open at once
)

// tomlShape finds the first line of s that is beyond the limits; ok means none is. It
// only skips strings and comments and counts the rest: what it misreads, the parser
// refuses at the same place.
func tomlShape(s string) (line int, ok bool) {
	line = 1
	depth, dots, start := 0, 0, 0 // start: where the present key may have begun
	header := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			end := i + stringLength(s[i:])
			line += strings.Count(s[i:end], "\n")
			i = end - 1
		case '#':
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n - 1
			} else {
				i = len(s)
			}
		case '[', '{':
			header = header || depth == 0 && strings.TrimSpace(s[start:i]) == ""
			if depth++; !header {
				start, dots = i+1, 0
			}
		case ']', '}':
			depth--
		case ',':
			start, dots = i+1, 0
		case '.':
			dots++
		case '=':
			if i-start > maxKeyText {
				return line, false
			}
			start, dots = i+1, 0
		case '\n':
			if header && i-start > maxKeyText {
				return line, false
			}
			line++
			start, dots, header = i+1, 0, false
		}
		if depth > maxNesting || dots > maxKeyParts {
			return line, false
		}
	}
	return line, !header || len(s)-start <= maxKeyText
}

// stringLength is the length of the TOML string at the start of s, quotes included. A
// string of one line ends with the line at the latest, there the parser gives up.
func stringLength(s string) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		for i := 3; i < len(s); i++ {
			if s[i] == '\\' && quote == `"` {
				i++
			} else if strings.HasPrefix(s[i:], triple) {
				end := i + 3
				for end < len(s) && end < i+5 && s[end] == quote[0] { // quotes of the text before the end
					end++
				}
				return end
			}
		}
		return len(s)
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == `"` && i+1 < len(s) && s[i+1] != '\n':
			i++
		case s[i] == quote[0]:
			return i + 1
		case s[i] == '\n':
			return i
		}
	}
	return len(s)
}
