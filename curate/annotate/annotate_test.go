package annotate

import (
	"encoding/json"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestSettingsRefuse: what Argilla would refuse is refused before anything is written.
func TestSettingsRefuse(t *testing.T) {
	two := []manifest.Label{{Code: "A", Name: "A"}, {Code: "B", Name: "B"}}
	long := []manifest.Label{{Code: "A", Name: "A", Description: strings.Repeat("a", mostGuidelines)},
		{Code: "B", Name: "B"}}
	for want, c := range map[string]manifest.Category{
		"has one label":           {Name: "mood", Labels: two[:1]},
		"may be called batch":     {Name: "batch", Labels: two},
		"may be called serialize": {Name: "serialize", Labels: two},
		"Argilla takes 10000":     {Name: "mood", Labels: long},
	} {
		_, err := settingsOf(manifest.Schema{Categories: []manifest.Category{c}}, "x", 2)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("settings of %s: %v, want %q", c.Name, err, want)
		}
	}
	s, err := settingsOf(manifest.FigSIM(), "FigSIM", 2)
	testkit.OK(t, err)
	if text := s.Guidelines; !strings.Contains(text,
		"- **None** (F4): No figurative expression applies. Not beside another label.") ||
		!strings.Contains(text, "- **Suicide attempts** (SS4)\n") {
		t.Errorf("guidelines:\n%s", text)
	}
}

// TestDatasetName: each folder has a dataset of its own in Argilla, also where Argilla does not take the folder's name.
func TestDatasetName(t *testing.T) {
	taken := map[string]string{}
	for _, c := range [][3]string{
		{"Demo", "round", "annotate-Demo-round"},
		{"Demo", "third", "annotate-Demo-third"},
		{"Demo", "Round-2", "annotate-Demo-Round-2"},
		{"My set, 2!", "round", "annotate-My-set-2-round"},
		{"Demo", "third round", "annotate-Demo-third-round-01fd33"},
		{"Demo", "third_round", "annotate-Demo-third-round-3806d7"},
		{"Demo", "回", "annotate-Demo-6da3e5"},
		{"Demo", "二", "annotate-Demo-084b42"},
	} {
		got := datasetName(c[0], c[1])
		if got != c[2] || taken[got] != "" {
			t.Errorf("%s in %s: %s, want %s", c[0], c[1], got, c[2])
		}
		taken[got] = c[1]
	}
	if long := datasetName(strings.Repeat("a", 300), strings.Repeat("b", 300)); len(long) > 200 {
		t.Errorf("a name of %d characters", len(long))
	}
}

// TestSettings: what the folder says to Argilla, whole.
func TestSettings(t *testing.T) {
	schema := manifest.Schema{Categories: []manifest.Category{
		{Name: "mood", Title: "Mood", Kind: manifest.Ordinal, Description: "How it feels.", Labels: []manifest.Label{
			{Code: "L", Name: "Low", Description: "Sad."}, {Code: "H", Name: "High"}}},
		{Name: "tags", Title: "Tags", Kind: manifest.Multi,
			Labels: []manifest.Label{{Code: "X", Name: "Ex"}, {Code: "N", Name: "None", Exclusive: true}}},
	}}
	s, err := settingsOf(schema, "Demo", 3)
	testkit.OK(t, err)
	testkit.Same(t, "the guidelines", Guidelines(schema, "Demo"), s.Guidelines)
	s.Guidelines = ""
	got, err := json.Marshal(s)
	testkit.OK(t, err)
	template, err := json.Marshal(blurred)
	testkit.OK(t, err)
	want := `{"guidelines":"","allow_extra_metadata":true,"distribution":{"min_submitted":3,"strategy":"overlap"},` +
		`"fields":[{"name":"image","title":"Image","required":true,"settings":{"advanced_mode":false,"template":` + string(template) + `,"type":"custom"}}],` +
		`"questions":[{"name":"mood","title":"Mood","description":"How it feels.","required":true,"settings":{"type":"label_selection",` +
		`"options":[{"value":"L","text":"Low","description":"Sad."},{"value":"H","text":"High","description":null}]}},` +
		`{"name":"tags","title":"Tags","description":null,"required":true,"settings":{"type":"multi_label_selection",` +
		`"options":[{"value":"X","text":"Ex","description":null},{"value":"N","text":"None","description":null}]}}],` +
		`"metadata":[{"name":"batch","title":"Batch","type":"terms","settings":{"type":"terms","visible_for_annotators":true}}],"vectors":[]}`
	testkit.Same(t, "the settings", want, string(got))
	want = "\n## Mood (one label)\n\nHow it feels.\n\n- **Low** (L): Sad.\n- **High** (H)\n" +
		"\n## Tags (one or more labels)\n\n- **Ex** (X)\n- **None** (N) Not beside another label.\n"
	if text := Guidelines(schema, "Demo"); !strings.HasPrefix(text, "# Demo\n\nLook at the image") ||
		!strings.HasSuffix(text, want) {
		t.Errorf("guidelines:\n%s", text)
	}
}
