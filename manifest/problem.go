package manifest

import (
	"fmt"
	"strings"

	"rehydrate/manifest/table"
	"rehydrate/manifest/value"
)

// MaxProblems is how many problems Check lists before it only counts.
const MaxProblems = table.MaxProblems

// A Problem is one thing wrong at one place of a file, with what to try; Problems are the error of a file or release.
type (
	Problem  = table.Problem
	Problems = table.Problems
)

// What a manifest's files are read as; OpenParquet reads those that are Parquet.
type (
	Cell      = table.Cell
	RowReader = table.RowReader
	Unread    = table.Unread
	Format    = table.Format
)

// The formats.
const (
	CSV     = table.CSV
	TSV     = table.TSV
	JSONL   = table.JSONL
	JSON    = table.JSON
	Parquet = table.Parquet
)

// OpenParquet opens a Parquet manifest. want names the columns whose cells are needed, nil all of them; the cells of
// the others may be Null. A *Problem as the error says what is wrong with the file.
type OpenParquet func(path string, want []string) (RowReader, error)

// Nearest returns the candidate that s is most likely a misspelling of, for a hint, or "" when
// none is near. Case does not count.
func Nearest(s string, candidates []string) string {
	s = value.Fold(s)
	most := 2
	if len(s) <= 3 { // any two short codes are within two edits
		most = min(1, len(s))
	}
	for edits := range most + 1 {
		for _, c := range candidates {
			if within(s, value.Fold(c), edits) {
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
	// two bytes changed places
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && within(a[2:], b[2:], edits-1) {
		return true
	}
	// A byte is another one, too many or missing.
	return within(a[1:], b[1:], edits-1) || within(a[1:], b, edits-1) || within(a, b[1:], edits-1)
}

// List names some things for a line of a message, and counts those beyond a dozen.
func List(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// QuotedList lists names that somebody chose, for a line of a message.
func QuotedList(names []string) string { return List(each(names, table.Quote)) }

func each[T any](values []T, text func(T) string) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return texts
}
