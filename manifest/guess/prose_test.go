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

// TestUnfitLabels: a label that is a sentence is unfit where one row alone has it.
func TestUnfitLabels(t *testing.T) {
	const settings = "name = \"x\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"tone\"\nkind = \"multi\"\nlabels = " +
		"[{code = \"sad\"}, {code = \"I am not sure about this\"}]\n"
	for rows, want := range map[string]int{"abc,sad\nabd,I am not sure about this\n": 1, "abc,sad\nabd,sad\n": 0,
		"abc,I am not sure about this\nabd,sad|I am not sure about this\n": 0} {
		r, err := manifest.Open(folder(t, map[string]string{"release.toml": settings, "a.csv": "id,tone\n" + rows}),
			manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		unfit, err := Unfit(t.Context(), r, func(string) string { return "" }, nil, nil)
		if err != nil || len(unfit) != want {
			t.Errorf("%q: %q, %v", rows, unfit, err)
		}
		unfit, err = Unfit(t.Context(), r, func(string) string { return "" }, []string{"tone"}, nil)
		if err != nil || len(unfit) != 0 {
			t.Errorf("%q, kept: %q, %v", rows, unfit, err)
		}
	}
}
