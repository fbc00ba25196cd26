package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxProblems is how many problems Check lists before it only counts.
const MaxProblems = 20

// A Problem is one thing wrong at one place of a file, with what to try.
type Problem struct {
	File         string // as it was given; "" for a value, and for a reader without a name
	Line, Column int    // from 1; 0 where there is none
	Message      string
	Hint         string
}

// Error gives "file:line:column: message", or "line 3, column 1: message" where the file
// is for the caller to name; then the hint on a line of its own.
func (p *Problem) Error() string {
	line, column := ":%d", ":%d"
	if p.File == "" {
		line, column = "line %d", ", column %d"
	}
	text := p.File
	if p.Line > 0 {
		text += fmt.Sprintf(line, p.Line)
	}
	if p.Column > 0 {
		text += fmt.Sprintf(column, p.Column)
	}
	if text != "" {
		text += ": "
	}
	text += p.Message
	if p.Hint != "" {
		text += "\n  hint: " + p.Hint
	}
	return text
}

// Problems is the error of a file, or of a release, that has something wrong. It unwraps to its *Problem values.
type Problems struct {
	List []Problem // in file order, at most MaxProblems
	More int       // how many were found beyond List
}

// Error lists every problem, one after the other, and says how many more there were.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	for i := range p.List {
		lines = append(lines, p.List[i].Error())
	}
	switch {
	case p.More == 1:
		lines = append(lines, "and 1 more problem")
	case p.More > 0:
		lines = append(lines, fmt.Sprintf("and %d more problems", p.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the listed problems, so that errors.As finds a *Problem.
func (p *Problems) Unwrap() []error {
	errs := make([]error, len(p.List))
	for i := range p.List {
		errs[i] = &p.List[i]
	}
	return errs
}

func (p *Problems) add(all ...Problem) {
	n := min(len(all), MaxProblems-len(p.List))
	p.List = append(p.List, all[:n]...)
	p.More += len(all) - n
}

func (p *Problems) count() int { return len(p.List) + p.More }

func (p *Problems) err() error {
	// A nil *Problems in an error would be an error.
	if len(p.List) == 0 {
		return nil
	}
	return p
}

func one(p *Problem) *Problems { return &Problems{List: []Problem{*p}} }

// quote makes a value from a file safe to print: quoted, control and bidi characters escaped, and cut where it is long.
func quote(s string) string {
	short := fmt.Sprintf("%.60s", s)
	if short != s {
		return strconv.Quote(short) + "..."
	}
	return strconv.Quote(s)
}

// Nearest returns the candidate that s is most likely a misspelling of, for a hint, or "" when
// none is near. Case does not count.
func Nearest(s string, candidates []string) string {
	s = fold(s)
	most := 2
	if len(s) <= 3 { // any two short codes are within two edits
		most = min(1, len(s))
	}
	for edits := range most + 1 {
		for _, c := range candidates {
			if within(s, fold(c), edits) {
				return c
			}
		}
	}
	return ""
}

// within reports whether so many edits of a byte make a of b.
func within(a, b string, edits int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" || edits == 0 {
		return max(len(a), len(b)) <= edits
	}
	// A byte is another one, too many or missing.
	return within(a[1:], b[1:], edits-1) || within(a[1:], b, edits-1) || within(a, b[1:], edits-1)
}

// fold is how names, labels and column names are compared.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

func list(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

func quotedList(names []string) string { return list(each(names, quote)) }

func each[T any](values []T, text func(T) string) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return texts
}
