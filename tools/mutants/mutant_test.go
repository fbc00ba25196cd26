package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMutantsOf(t *testing.T) {
	for _, test := range []struct {
		body string // of a function that returns an error
		want []string
	}{
		{"if a == b { return nil }", []string{"if forced false: a == b -> false && (a == b)",
			"negated condition: == -> !="}},
		{"for a() { b++ }", []string{"negated condition: a() -> !(a())", "arithmetic: ++ -> --",
			"removed statement: b++ -> "}},
		{"return a <= b", []string{"swallowed error: a <= b -> nil", "boundary: <= -> <"}},
		{"return errors.New(x)", []string{"swallowed error: errors.New(x) -> nil"}},
		{"c := func() int { return 2 - d }", []string{"arithmetic: - -> +"}},
		{"c(a || b, !true)", []string{"removed statement: c(a || b, !true) -> ", "one side of && or ||: a || b -> a",
			"one side of && or ||: a || b -> b", "inverted bool: !true -> true", "inverted bool: true -> !true"}},
		{"switch {\n\tcase a < b:\n\t}\n\treturn nil", []string{"boundary: < -> <="}},
		{"a += b", []string{"arithmetic: += -> -=", "removed statement: a += b -> "}},
	} {
		source := "package p\n\nfunc f() error {\n\t" + test.body + "\n}\n"
		name := filepath.Join(t.TempDir(), "p.go")
		if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := mutantsOf(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range all {
			got = append(got, m.String())
			if m.line != 4 {
				t.Errorf("%s: a mutant in line %d, want 4", test.body, m.line)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.body, diff)
		}
	}
	m := mutant{source: []byte("a < b"), from: 2, to: 3, with: "<="}
	if got := string(m.apply()); got != "a <= b" {
		t.Errorf("the changed file is %q, want %q", got, "a <= b")
	}
}
