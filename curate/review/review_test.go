package review

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestJournalRefuses: a file that is not of this page is not gone on with, and not written over.
func TestJournalRefuses(t *testing.T) {
	const whole = `{"id":"abc","status":"skipped","figurative":null}` + "\n"
	for text, want := range map[string]string{
		whole + whole:   "line 2: abc has an answer already",
		"id,severity\n": "line 1: it is not an answer of this page",
		`{"id":"abc","status":"answered"}` + "\n":         "line 1: category figurative takes a label",
		`{"id":"a b","status":"skipped"}` + "\n":          `line 1: "a b" is not a post id`,
		`{"id":"abc","status":"skipped","care":1}` + "\n": "line 1: it is not an answer",
	} {
		name := filepath.Join(t.TempDir(), "A1.jsonl")
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := openJournal(name, manifest.FigSIM()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	taken := manifest.Schema{Categories: []manifest.Category{{Name: "care"}}}
	if _, err := openJournal(filepath.Join(t.TempDir(), "A1.jsonl"), taken); err == nil {
		t.Error("a category called care")
	}
}

// FuzzParse: a line that is read is written as it was understood, and read the same again.
func FuzzParse(f *testing.F) {
	f.Add(`{"id":"abc/2","batch":"1","care":true,"status":"answered","figurative":["F3","F1"],"severity":"SS2","related_content":["SR6"],"modality":"M1","context":"C1"}`)
	f.Add(`{"id":"abc","status":"skipped"}`)
	j := &journal{scheme: manifest.FigSIM()}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := j.parse([]byte(text))
		if err != nil {
			return
		}
		line, err := j.format(a)
		testkit.OK(t, err)
		again, err := j.parse(line)
		testkit.OK(t, err)
		testkit.Same(t, text, a, again)
	})
}
