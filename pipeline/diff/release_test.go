package diff

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
)

// TestCompareReleases compares two versions of a release by entries, splits, labels and columns.
func TestCompareReleases(t *testing.T) {
	release := func(version, labels, rows string) string {
		dir := t.TempDir()
		settings := "name = \"r\"\nversion = \"" + version + "\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"tone\"\n" +
			"kind = \"multi\"\nlabels = [" + labels + "]\n[[column]]\nname = \"votes\"\ntype = \"integer\"\n"
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "release.toml"), []byte(settings), 0o600),
			os.WriteFile(filepath.Join(dir, "a.csv"), []byte("id,image,split,tone,votes\n"+rows), 0o600))
		return dir
	}
	const two = `{code = "a"}, {code = "b"}`
	older := release("1.0.0", two, "abc1,0,train,a|b,3\nabc2,0,train,a,\nabc2,1,test,b,4\n")
	newer := release("2.0.0", two+`, {code = "c"}`, "abc1,0,train,a|c,3\nabc2,0,test,a,7\nabc3,0,test,,1\n")
	report, err := Compare(t.Context(), older, newer)
	testkit.OK(t, err)
	var got []string
	for _, c := range report.Changes {
		line := c.Kind + " " + c.ID
		for _, name := range []string{"tone", "votes"} {
			if l, differs := c.Labels[name]; differs {
				line += " " + name + " " + strings.Join(l.Old, "|") + ">" + strings.Join(l.New, "|")
			}
		}
		got = append(got, line)
	}
	for _, k := range append(report.Summary.Schema, report.Summary.Provenance[1:]...) {
		got = append(got, k.Key+" "+k.Old+">"+k.New)
	}
	want := []string{"changed abc1 tone a|b>a|c", "changed abc2 votes >7", "lost abc2/1", "gained abc3",
		"labels of tone a, b>a, b, c", "version 1.0.0>2.0.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	d := report.Summary
	if d.Step != "major" || len(d.NotCompared) != 0 || d.Splits != 1 || d.Old.Rows != 3 || d.New.Rows != 3 {
		t.Errorf("%+v", d)
	}
	if _, err := Compare(t.Context(), older, release("1.0.0", two, "abc1,0,train,x,3\n")); err == nil ||
		!strings.Contains(err.Error(), `"x" is not a label of category tone`) {
		t.Errorf("a release that cannot be read: %v", err)
	}
}
