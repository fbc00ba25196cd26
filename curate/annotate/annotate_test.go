package annotate

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestSettingsRefuse: what Argilla would refuse is refused before anything is written.
func TestSettingsRefuse(t *testing.T) {
	two := []manifest.Label{{Code: "A", Name: "A"}, {Code: "B", Name: "B"}}
	long := []manifest.Label{{Code: "A", Name: "A", Description: strings.Repeat("a", mostGuidelines)}, {Code: "B", Name: "B"}}
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
	if text := s.Guidelines; !strings.Contains(text, "- **None** (F4): No figurative expression applies. Not beside another label.") ||
		!strings.Contains(text, "- **Suicide attempts** (SS4)\n") {
		t.Errorf("guidelines:\n%s", text)
	}
	testkit.Same(t, "a name", "annotate-My-set-2", datasetName("My set, 2!"))
}
