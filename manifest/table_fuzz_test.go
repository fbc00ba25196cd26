package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpenTable: a file of predictions or of an annotator gives entries with labels that the
// schema has, or problems with a place.
func FuzzOpenTable(f *testing.F) {
	for _, text := range []string{
		"id,figurative,severity\nabc123,F1|F3,SS1\nabc124/2,,SS5\n",
		"severity,id\n\"Suicide death\",t3_abc123\n",
		`{"id": "abc123", "figurative": ["F1"], "severity": null}` + "\n",
		"id,severity\nabc123,SS1\nabc123,SS1\n",
		"id\n", "",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	like := BuiltIn()
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string, lines bool) {
		file := filepath.Join(dir, "p.csv")
		if lines {
			file = filepath.Join(dir, "p.jsonl")
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := OpenTable(file, like, Options{})
		if err == nil {
			_, err = table.Check(t.Context())
		}
		if err != nil {
			var problems *Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 || problems.List[0].Line < 1 {
				t.Fatalf("%v is no problem with a place", err)
			}
			return
		}
		for e, err := range table.Entries(t.Context()) {
			if err != nil {
				t.Fatalf("Check passed, then: %v", err)
			}
			if id, err := ParsePostID(string(e.ID)); err != nil || id != e.ID || e.Image < 0 || e.Image > maxImage {
				t.Fatalf("entry %v", e.Key)
			}
			for c, labels := range e.Labels {
				for _, l := range labels {
					if l < 0 || l >= len(table.Schema.Categories[c].Labels) {
						t.Fatalf("label %d of category %d", l, c)
					}
				}
			}
		}
	})
}
