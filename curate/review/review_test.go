package review

import (
	"fmt"
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
		`{"id":"abc","status":"answered"}` + "\n": "line 1: it has no answer to figurative, severity, related_content, " +
			"modality, context, which nobody asked for\n  hint: name another folder with --answers DIR",
		strings.Replace(answerOf(`["F1"]`, `"SS2"`), `"context"`, `"note":"mine","mood"`, 1): `line 1: it has "mood", ` +
			`"note", and no category is called so: the next answer would lose it` +
			"\n  hint: name another folder with --answers DIR",
		`{"id":"abc","status":"skipped","mood":null}` + "\n": `line 1: it has "mood", and no category`,
		`{"id":"abc","status":"skipped","severity":"SS2"}` + "\n": "line 1: the image was skipped, and category severity " +
			"has an answer",
		strings.Replace(answerOf(`["F1"]`, `"SS2"`), "answered", "", 1): "line 1: it is not an answer of this page",
		answerOf(`["F1"]`, `2`): "line 1: category severity has 2, which is no label",
		whole + whole[:20]: "line 2: it is not an answer of this page: it is not JSON; " +
			"the last line is cut off: delete it, and answer its image again",
		`{"id":"a b","status":"skipped"}` + "\n":          `line 1: "a b" is not a post id`,
		`{"id":"abc","status":"skipped","care":1}` + "\n": "line 1: it is not an answer",
		answerOf(`["F1"]`,
			`"SS2","severity":"SS3"`): `line 1: it is not an answer of this page: the key "severity" stands twice`,
		answerOf(`["F1","F1"]`, `"SS2"`):    `line 1: "F1" is not a label of category figurative, or given twice`,
		answerOf(`["F1","F9"]`, `"SS2"`):    `line 1: "F9" is not a label of category figurative`,
		answerOf(`["F1","F4"]`, `"SS2"`):    "line 1: a label of category figurative stands alone",
		answerOf(`[]`, `"SS2"`):             "line 1: category figurative takes a label, None if no other applies",
		answerOf(`["F1"]`, `["SS2","SS3"]`): "line 1: category severity takes one label",
		answerOf(`["F1"]`, `null`):          "line 1: category severity takes one label",
	} {
		name := filepath.Join(t.TempDir(), "A1.jsonl")
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := openJournal(name, manifest.FigSIM()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	// A category of several labels, none of which says that no other applies: only [] says that.
	tags := manifest.Schema{Categories: []manifest.Category{{Name: "tags", Kind: manifest.Multi,
		Labels: make([]manifest.Label, 1)}}}
	for value, want := range map[string]string{
		"":              "it has no answer to tags",
		`,"tags":null`:  "category tags has no answer",
		`,"tags":7`:     "category tags has 7",
		`,"tags":["Q"]`: `"Q" is not a label`,
		`,"tags":[]`:    "",
	} {
		name := filepath.Join(t.TempDir(), "A1.jsonl")
		testkit.OK(t, os.WriteFile(name, []byte(`{"id":"abc","status":"answered"`+value+"}\n"), 0o600))
		_, err := openJournal(name, tags)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("tags %s: %v, want %q", value, err, want)
		}
	}
	taken := manifest.Schema{Categories: []manifest.Category{{Name: "care"}}}
	if _, err := openJournal(filepath.Join(t.TempDir(), "A1.jsonl"), taken); err == nil {
		t.Error("a category called care")
	}
}

// answerOf is a line of FigSIM's labels.
func answerOf(figurative, severity string) string {
	return `{"id":"abc","status":"answered","figurative":` + figurative + `,"severity":` + severity +
		`,"related_content":["SR1","SR4"],"modality":"M1","context":"C1"}` + "\n"
}

// TestJournalReads: answers that are gone on with are those that were given, all labels of each category among them,
// and they are written again as they were.
func TestJournalReads(t *testing.T) {
	name := filepath.Join(t.TempDir(), "A1.jsonl")
	text := answerOf(`["F3","F1"]`, `"SS2"`) + `{"batch":"2","care":true,"id":"abd/2","status":"skipped"}` + "\n" +
		strings.Replace(answerOf(`["F4"]`, `["SS6"]`), "abc", "abe", 1)
	testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
	j, err := openJournal(name, manifest.FigSIM())
	testkit.OK(t, err)
	want := []answer{
		{Key: manifest.Key{ID: "abc"}, Status: answered, Labels: [][]int{{0, 2}, {2}, {0, 3}, {0}, {0}}},
		{Key: manifest.Key{ID: "abd", Image: 2}, Batch: "2", Status: skipped, Care: true},
		{Key: manifest.Key{ID: "abe"}, Status: answered, Labels: [][]int{{3}, {0}, {0, 3}, {0}, {0}}},
	}
	testkit.Same(t, "answers", want, j.list)
	testkit.Same(t, "one of them", &want[1], j.find(want[1].Key))
	testkit.OK(t, j.save(t.Context(), j.list))
	again, err := openJournal(name, manifest.FigSIM())
	testkit.OK(t, err)
	testkit.Same(t, "answers that were written again", want, again.list)
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	testkit.Same(t, "the first line",
		`{"care":false,"context":"C1","figurative":["F1","F3"],"id":"abc","modality":"M1","related_content":["SR1","SR4"],`+
			`"severity":"SS2","status":"answered"}`, strings.SplitN(string(body), "\n", 2)[0])
	// Somebody else wrote meanwhile: nothing of theirs is lost.
	testkit.OK(t, os.WriteFile(name, append(body, '\n'), 0o600))
	if err := again.save(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "somebody else changed") {
		t.Errorf("written over what somebody else wrote: %v", err)
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
