package dataset

import (
	"bytes"
	"testing"

	"rehydrate/internal/testkit"
)

// TestNumbersOfStrangers: a file's name acts on neither a terminal nor a spreadsheet where it is the id of a row.
func TestNumbersOfStrangers(t *testing.T) {
	var b bytes.Buffer
	err := WriteNumbers(&b, "features.csv", []string{"n"}, "", func(yield func(string, []float64) bool) {
		for _, name := range []string{"1n6oiw", "\x1b]0;owned\a", "two\nlines", "a\u202egpj.exe", "\u009b2J", "=1+1",
			"\uff1d1+1", "'\uff0b1"} {
			if !yield(name, []float64{1}) {
				return
			}
		}
	})
	testkit.Same(t, "features.csv", "id,n\n1n6oiw,1\n"+`"""\x1b]0;owned\a""",1`+"\n"+`"""two\nlines""",1`+"\n"+
		`"""a\u202egpj.exe""",1`+"\n"+`"""\u009b2J""",1`+"\n'=1+1,1\n'\uff1d1+1,1\n''\uff0b1,1\n", b.String(), err)
}
