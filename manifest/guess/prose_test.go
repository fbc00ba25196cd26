package guess

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// TestPersonalProse: what in a description names somebody.
func TestPersonalProse(t *testing.T) {
	for text, want := range map[string]string{
		"Ask anna.k@uni.de about it.": "a mail address", "As Anna decided in May.": "the name of a person",
		"Dr. Kowalski: sad":  "the name of a person",
		"Herr Meier says so": "the name of a person", "see u/jdoe": "the name of an account",
		"ping @jdoe, please":   "the name of an account",
		"Call +49 151 2345678": "a telephone number", "Then Élif agreed": "the name of a person",
		"How it \"sounds\".": "", "The image mocks a person, or a group (e.g. women).": "",
		"Mark the rose; joy will do.": "", "Dr. No": "the name of a person",
		"either/or, and/or": "", "Paris Jordan Georgia": "", "anna": "", "": "",
	} {
		if got := personalProse(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestUnfitTexts: all texts of a schema are judged, but those of categories to keep. FigSIM's name nobody.
func TestUnfitTexts(t *testing.T) {
	s := manifest.Schema{Categories: []manifest.Category{
		{Name: "tone", Title: "As Anna said", Description: "Ask a@b.de",
			Labels: []manifest.Label{{Code: "a", Name: "a", Description: "by Anna"}, {Code: "b", Name: "Anna"}}},
		{Name: "kept", Description: "Ask a@b.de"}}}
	want := []string{`the title of category "tone" holds the name of a person`,
		`the description of category "tone" holds a mail address`,
		`the description of label 1 of category "tone" holds the name of a person`,
		`the name of label 2 of category "tone" holds the name of a person`}
	if diff := cmp.Diff(want, UnfitTexts(s, func(name string) bool { return name == "kept" })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := UnfitTexts(manifest.FigSIM(), func(string) bool { return false }); len(got) > 0 {
		t.Errorf("FigSIM: %q", got)
	}
}
