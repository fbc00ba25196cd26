package scan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rehydrate/manifest"
)

func TestLabelNames(t *testing.T) {
	got := labelNames(parseFeatures([]byte(`{"info": {"features": {"a": [{"names": ["x"], "_type": "ClassLabel"}], "b": {"feature": {"names": ["y"], "_type": "ClassLabel"}, "_type": "List"},
		"c": {"dtype": "string", "_type": "Value"}, "d": "odd", "e": {"names": [], "_type": "ClassLabel"}}}}`)))
	if diff := cmp.Diff(map[string][]string{"a": {"x"}, "b": {"y"}}, got); diff != "" {
		t.Errorf("other forms (-want +got)\n%s", diff)
	}
	for _, text := range []string{"", "{", "[]", `{"info": {"features": []}}`} {
		if got := labelNames(parseFeatures([]byte(text))); len(got) > 0 {
			t.Errorf("labelNames(%q) = %v", text, got)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, c := range []struct{ in, want manifest.Cell }{
		{manifest.Cell{Text: "1"}, manifest.Cell{Text: "y"}},
		{manifest.Cell{Text: "-1"}, manifest.Cell{Null: true}},
		{manifest.Cell{Text: "2"}, manifest.Cell{Fault: `is the label number "2", and the file's footer names 2 labels`}},
		{manifest.Cell{Text: "x"}, manifest.Cell{Fault: `is the label number "x", and the file's footer names 2 labels`}},
		{manifest.Cell{Null: true}, manifest.Cell{Null: true}},
		{manifest.Cell{IsList: true, List: []string{"1", "0"}}, manifest.Cell{IsList: true, List: []string{"y", "x"}}},
		{manifest.Cell{IsList: true, List: []string{"1", "-1"}}, manifest.Cell{Fault: `is the label number "-1", and the file's footer names 2 labels`}},
	} {
		got := c.in
		named(&got, []string{"x", "y"})
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(manifest.Cell{})); diff != "" {
			t.Errorf("named(%+v) (-want +got)\n%s", c.in, diff)
		}
	}
}
