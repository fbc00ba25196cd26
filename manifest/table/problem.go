package table

import (
	"errors"
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
	// Last says that nothing behind it can be read, as a reader of rows told it: no row can be skipped to go on.
	Last bool
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

func (p *Problems) Add(all ...Problem) {
	n := min(len(all), MaxProblems-len(p.List))
	p.List = append(p.List, all[:n]...)
	p.More += len(all) - n
}

// Join adds those of another reading.
func (p *Problems) Join(other Problems) {
	p.Add(other.List...)
	p.More += other.More
}

func (p *Problems) Count() int { return len(p.List) + p.More }

func (p *Problems) Err() error {
	// A nil *Problems in an error would be an error.
	if len(p.List) == 0 {
		return nil
	}
	return p
}

func One(p *Problem) *Problems { return &Problems{List: []Problem{*p}} }

// Quote makes a value from a file safe to print: quoted, control and bidi characters escaped, and cut where it is long.
func Quote(s string) string {
	short := fmt.Sprintf("%.60s", s)
	if short != s {
		return strconv.Quote(short) + "..."
	}
	return strconv.Quote(s)
}

// AsProblem finds the *Problem in an error. One that is the last is none: whoever goes on after problems would read no
// more, and not say it.
func AsProblem(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok && !p.Last
}
