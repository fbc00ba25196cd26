package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/table"
)

func TestProblemsError(t *testing.T) {
	var p Problems
	for i := range MaxProblems + 2 {
		p.Add(Problem{File: "a.csv", Line: i + 1, Column: 2, Message: "bad", Hint: "mend it"})
	}
	if len(p.List) != MaxProblems || p.More != 2 {
		t.Errorf("got %d problems and %d more, want %d and 2", len(p.List), p.More, MaxProblems)
	}
	p.List = []Problem{p.List[0], {Line: 3, Column: 1, Message: "bad", Hint: "mend it"}, {Line: 3, Message: "bad"},
		{Message: "bad"},
		{File: "a.csv", Message: "bad"}}
	want := "a.csv:1:2: bad\n  hint: mend it\nline 3, column 1: bad\n  hint: mend it\nline 3: bad\nbad\na.csv: bad\nand 2 more problems"
	if diff := cmp.Diff(want, p.Error()); diff != "" {
		t.Errorf("Error (-want +got):\n%s", diff)
	}
	p.More = 1
	if !strings.HasSuffix(p.Error(), "\nand 1 more problem") {
		t.Errorf("Error = %s", p.Error())
	}
	var one *Problem
	if err := fmt.Errorf("open: %w", &p); !errors.As(err, &one) || one.Line != 1 {
		t.Errorf("errors.As finds %v, want the first problem", one)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31m":             `"a\x1b[31m"`,
		"\u202egnp.exe":         `"\u202egnp.exe"`,
		strings.Repeat("é", 60): `"` + strings.Repeat("é", 60) + `"`,
		strings.Repeat("é", 61): `"` + strings.Repeat("é", 60) + `"...`,
	} {
		if got := table.Quote(in); got != want {
			t.Errorf("table.Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	labels := []string{"Metaphor", "Irony/Sarcasm", "None", "F1"}
	for in, want := range map[string]string{"metafor": "Metaphor", " NONE. ": "None", "f2": "F1", "picture": "", "": "",
		"xy": "", "f1x": "F1", "fxy": "", "f1xy": "F1"} {
		if got := Nearest(in, labels); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}
