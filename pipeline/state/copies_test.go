package state

import (
	"slices"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/workspace"
)

// TestReported: a copy has its own report, whatever was registered or forgotten between the readings of the two lists.
func TestReported(t *testing.T) {
	list := []CopyReport{{Path: "/b"}, {Path: "/d", State: CopyClosed}, {Path: "/e"}, {Path: "sha256:1"}}
	for _, tt := range []struct{ copies, all, unclosed []string }{
		{[]string{"/b", "/d", "/e"}, []string{"/b", "/d", "/e"}, []string{"/b", "/e"}},
		{[]string{"/a", "/b", "/c", "/d", "/e", "/f"}, []string{"/b", "/d", "/e"}, []string{"/b", "/e"}},
		{[]string{"/e"}, []string{"/e"}, []string{"/e"}},
		{nil, nil, nil},
	} {
		var copies []workspace.Copy
		for _, path := range tt.copies {
			copies = append(copies, workspace.Copy{Path: path})
		}
		var all, open []string
		for r, c := range Reported(list, copies) {
			if r.Path != c.Path || !slices.ContainsFunc(list, func(l CopyReport) bool { return r.Path == l.Path }) {
				t.Errorf("%s has the report of %s", c.Path, r.Path)
			}
			all = append(all, r.Path)
		}
		for r := range unclosed(list, copies) {
			open = append(open, r.Path)
		}
		testkit.Same(t, "with a report", tt.all, all)
		testkit.Same(t, "with the report of one that is not closed", tt.unclosed, open)
	}
}
