package labels

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestImages: the unit is an image. What its rows agree on counts once, what they differ in counts for no label, and
// rows are counted as annotations alone, whichever way the entries come: as rows of a release or as lists of a dataset.
func TestImages(t *testing.T) {
	schema := manifest.Schema{Name: "many", Many: true, Categories: []manifest.Category{
		{Name: "mood", Kind: manifest.Single, Labels: []manifest.Label{{Code: "glad"}, {Code: "sad"}}},
		{Name: "scale", Kind: manifest.Ordinal, Labels: []manifest.Label{{Code: "0"}, {Code: "1"}, {Code: "2"}}},
	}}
	row := func(id manifest.PostID, mood, scale int) manifest.Entry {
		values := [][]string{{string(id)}, nil} // of two columns, the second without a value
		return manifest.Entry{Key: manifest.Key{ID: id}, Split: "train", Labels: [][]int{{mood}, {scale}}, Values: values}
	}
	rows := []manifest.Entry{row("a", 0, 1), row("b", 1, 2), row("a", 0, 2), row("b", 1, 2), row("a", 0, 1),
		row("c", 1, 0)}
	before := counted(t, schema, rows)
	type counts struct{ Entries, Annotations, Glad, Sad, MoodDiffers, ScaleDiffers, Unlabelled int }
	of := func(s Stats) counts {
		mood, scale := s.Categories[0], s.Categories[1]
		return counts{s.Entries, s.Annotations, mood.Labels[0].Count, mood.Labels[1].Count, mood.Differ, scale.Differ,
			mood.Unlabelled + scale.Unlabelled}
	}
	want := counts{Entries: 3, Annotations: 6, Glad: 1, Sad: 2, ScaleDiffers: 1}
	testkit.Same(t, "the counts", want, of(before))

	var images []manifest.Entry
	for e, err := range Images(schema, func(yield func(manifest.Entry, error) bool) {
		for _, e := range rows {
			if !yield(e, nil) {
				return
			}
		}
	}) {
		testkit.OK(t, err)
		images = append(images, e)
	}
	if diff := cmp.Diff([][]int{{0, 0, 0}, {1, 2, 1}}, images[0].Labels); diff != "" {
		t.Errorf("the lists of an image: %s", diff)
	}
	none := manifest.NoValue
	if diff := cmp.Diff([][]string{{"b", "b"}, {none, none}}, images[1].Values); diff != "" {
		t.Errorf("the columns of an image: %s", diff)
	}
	dataset := schema.Joined()
	testkit.Same(t, "the counts", want, of(counted(t, dataset, images)))
	settled, differ := Settle(dataset, images[0].Labels)
	if diff := cmp.Diff([][]int{{0}, nil}, settled); diff != "" || !slices.Equal(differ, []bool{false, true}) {
		t.Errorf("settled %v: %s", differ, diff)
	}
	// A chi-squared test of more labels than entries was below 0.
	for _, d := range Compare(counted(t, dataset, images[:1]), counted(t, dataset, images[1:])) {
		if d.Chi2 < 0 || !(d.CramersV >= 0) {
			t.Errorf("%s: chi-squared %v, V %v", d.Category, d.Chi2, d.CramersV)
		}
	}
	if kinds := OfImages(dataset); kinds.Categories[0].Kind != manifest.Single {
		t.Errorf("an image has several labels of mood: %s", kinds.Categories[0].Kind)
	}
}
