package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkRead reads 100,000 entries: what a run, and every command on labels, does first.
func BenchmarkRead(b *testing.B) {
	var lines, csv strings.Builder
	csv.WriteString(figsimHeader)
	for i := range 100_000 {
		fmt.Fprintf(&lines, `{"id":"1a%05d","split":"train","figurative":["F1","F3"],"severity":"SS%d","related_content":["SR1"],"modality":"M1","context":"C2"}`+"\n", i, 1+i%5)
		fmt.Fprintf(&csv, "1a%05d,train,F1|F3,SS%d,SR1,M1,C2\n", i, 1+i%5)
	}
	for name, text := range map[string]string{"a.jsonl": lines.String(), "a.csv": csv.String()} {
		path := filepath.Join(b.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := Open(path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if s, err := r.Check(b.Context()); err != nil || s.Entries != 100_000 {
					b.Fatal(s.Entries, err)
				}
			}
		})
	}
}
