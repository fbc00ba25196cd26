package manifest

import (
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// TestFieldNames: names are folded, no two fields share one, and a field's own key is the first.
func TestFieldNames(t *testing.T) {
	of := map[string]Field{}
	for _, field := range Fields() {
		names := field.Names()
		testkit.Same(t, "the first name", field.String(), names[0])
		for _, name := range names {
			if other, taken := of[name]; taken || FoldColumn(name) != name {
				t.Errorf("%s is a name of %s, and of %s", name, field, other)
			}
			of[name] = field
		}
	}
}

// TestIDColumns: a name has one kind, and lists keep the order of the likeliest.
func TestIDColumns(t *testing.T) {
	all := IDColumns(NameOfID, NameWithID, NameOfAddress, NameInDumps)
	at := 0
	for kind := NameOfID; kind <= NameInDumps; kind++ {
		names := IDColumns(kind)
		at += len(names)
		if len(names) == 0 || !slices.IsSortedFunc(names,
			func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) }) {
			t.Errorf("kind %d has the names %q, all are %q", kind, names, all)
		}
	}
	testkit.Same(t, "names of all kinds", len(all), at)
	testkit.Same(t, "names that differ", len(all), len(slices.Compact(slices.Sorted(slices.Values(all)))))
	testkit.Same(t, "a name as people write it", "post_id", FoldColumn(" Post-ID "))
}

// TestIDNamesOpen: a table's column of ids is found under the names of a field, and under no other.
func TestIDNamesOpen(t *testing.T) {
	for _, name := range FieldID.Names() {
		list := bare(t, "a.csv", strings.Replace(figsimHeader, "id", name, 1)+testRow)
		if len(list) != 1 || list[0].ID != "abc" {
			t.Errorf("column %s: %v", name, list)
		}
	}
	for _, name := range IDColumns(NameInDumps) {
		_, err := checked(t, "a.csv", strings.Replace(figsimHeader, "id", name, 1)+testRow)
		wantPlaces(t, name, err, "a.csv:1:0 no column of post ids was found")
	}
}
