package dataset

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func writeReread(t *testing.T, d RereadData) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteReread(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReread: the page tells every change, and whatever a text holds, it has the tags that it has
// for a harmless one.
func TestReread(t *testing.T) {
	with := func(text string) RereadData {
		return RereadData{Release: text, Tool: text, Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Read: 7, Gained: 3, Lost: 1,
			Texts:    []RereadText{{ID: "few001", Gained: []string{text, "HOMEWORK", "now"}, Lost: []string{text}}, {ID: text}},
			Outcomes: []RereadOutcome{{"few001", text, "kept"}, {"few002", text, "kept"}, {text, "kept", text}}}
	}
	plain := writeReread(t, with("plain"))
	for _, want := range []string{"Read again: 7 images. Changed texts: 2; words gained 3, lost 1. Entries with another outcome: 3.",
		`<th scope="row">few001</th><td>plain</td><td>plain HOMEWORK now</td>`, `<td>kept</td><td class="number">2</td>`,
		`<th scope="row">few002</th><td>plain</td><td>kept</td>`, "Made 2026-01-02 03:04 UTC", "delete it when it has been read"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	skeleton := func(page string) string { return strings.Join(tagPattern.FindAllString(page, -1), "\n") }
	evil := writeReread(t, with(hostile))
	if got := skeleton(evil); got != skeleton(plain) {
		t.Errorf("with a hostile text the page has other tags:\n%s", got)
	}
	if !strings.Contains(evil, shown) || strings.ContainsAny(evil, "\x1b\x07\u202e") {
		t.Error("the hostile text is not shown, or with its control characters")
	}
	if page := writeReread(t, RereadData{}); strings.Contains(page, "<table") || strings.Count(page, "<p>None.</p>") != 2 {
		t.Errorf("nothing changed, and the page is\n%s", page)
	}
}

// TestRereadFull: a disk that is full is an error.
func TestRereadFull(t *testing.T) {
	if err := WriteReread(failingWriter{}, RereadData{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("WriteReread = %v, want %v", err, io.ErrShortWrite)
	}
}
