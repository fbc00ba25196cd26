package state

import (
	"fmt"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/internal/word"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestMaskNamesInReading masks words that were accepted, were not, or stand in each other's way:
// no name is left in words or text, and a reading without names stays as it was.
func TestMaskNamesInReading(t *testing.T) {
	// A word in brackets was not accepted; a slash alone ends a line.
	reading := func(words string) workspace.Reading {
		r := workspace.Reading{Text: "as read", Confidence: 12}
		line := 0
		for w := range strings.FieldsSeq(words) {
			if w == "/" {
				line++
				continue
			}
			bare := strings.Trim(w, "()")
			r.Words = append(r.Words, word.Word{Text: bare, Confidence: 90, Line: line, Accepted: bare == w})
		}
		return r
	}
	tests := []struct{ name, words, text, left string }{
		{"no name", "WHEN YOU / ARE (LATE)", "as read", "WHEN YOU ARE LATE"},
		{"in the text", "ASK u/somebody / OR me@example.com", "ASK [user]\nOR [email]", "ASK [user] OR [email]"},
		{"of several words", "call 555 010 4567 now", "call [phone] now", "call [phone] now"},
		{"only in words that are not in the text", "ASK (u/somebody) NOW", "ASK NOW", "ASK [user] NOW"},
		{"with a stranger among its words", "ASK u/ (~) somebody", "ASK [user]", "ASK [user] ~"},
		{"begun by a word that is not in the text", "see (u/) somebody here", "see here", "see [user] here"},
		{"not over the end of a line", "see u/ / somebody", "as read", "see u/ somebody"},
	}
	for _, tt := range tests {
		r := reading(tt.words)
		MaskReading(&r)
		var left []string
		for _, w := range r.Words {
			left = append(left, w.Text)
		}
		testkit.Same(t, fmt.Sprintf("%s: text and words", tt.name), []string{tt.text, tt.left},
			[]string{r.Text, strings.Join(left, " ")})
		if masked := strings.Count(tt.left, "["); r.Masked != masked {
			t.Errorf("%s: %d names masked, want %d", tt.name, r.Masked, masked)
		}
		if want := 90.0; r.Masked > 0 && r.Confidence != want {
			t.Errorf("%s: confidence %v, want %v", tt.name, r.Confidence, want)
		}
	}
	if got, want := MaskText("ASK u/somebody NOW\n\nOR call 555 010 4567"),
		"ASK [user] NOW\n\nOR call [phone]"; got != want {
		t.Errorf("MaskText = %q, want %q", got, want)
	}
}

// TestShownReading leaves alone what is masked by the present rules.
func TestShownReading(t *testing.T) {
	p := policy.Default()
	r := workspace.Reading{Fingerprint: ReadingFingerprint("engine", p), Text: "ask u/somebody"}
	if got := ShownReading(r, p).Text; got != r.Text {
		t.Errorf("a reading of the present rules is shown as %q", got)
	}
	r.Fingerprint = "engine"
	for _, masked := range []int{0, 1} { // 1: by older rules, and its words are not at hand
		r.Masked, r.Confidence = masked, 80
		if got := ShownReading(r, p); got.Text != "ask [user]" || got.Confidence != 80 {
			t.Errorf("a reading of other rules is shown as %q, %v", got.Text, got.Confidence)
		}
	}
}
