package diff

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/policy"
)

// TestCompareReleases compares two versions of a release by entries, splits, labels and columns. The same labels in
// another order are no change.
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
	older := release("1.0.0", two, "abc1,0,train,a|b,3\nabc2,0,train,a,\nabc2,1,test,b,4\nabc4,0,test,b|a,1\n")
	newer := release("2.0.0", two+`, {code = "c"}`,
		"abc1,0,train,a|c,3\nabc2,0,test,a,7\nabc3,0,test,,1\nabc4,0,test,a|b,1\n")
	report, err := Compare(t.Context(), older, newer, showsAll)
	testkit.OK(t, err)
	got := changesOf(report)
	for _, k := range append(report.Summary.Schema, report.Summary.Provenance[1:]...) {
		got = append(got, k.Key+" "+k.Old+">"+k.New)
	}
	want := []string{"changed abc1 tone a|b>a|c", "changed abc2 votes >7", "lost abc2/1", "gained abc3",
		"labels of tone a, b>a, b, c", "version 1.0.0>2.0.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	d := report.Summary
	if d.Step != "major" || len(d.NotCompared) != 0 || d.Splits != 1 || d.Old.Rows != 4 || d.New.Rows != 4 {
		t.Errorf("%+v", d)
	}
	if _, err := Compare(t.Context(), older, release("1.0.0", two, "abc1,0,train,x,3\n"), showsAll); err == nil ||
		!strings.Contains(err.Error(), `"x" is not a label of category tone`) {
		t.Errorf("a release that cannot be read: %v", err)
	}
}

// TestCompareRows: of a release with several rows about an image the image is compared, with what each of its rows
// says.
func TestCompareRows(t *testing.T) {
	release := func(rows, lines string) string {
		dir := t.TempDir()
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "release.toml"), []byte("name = \"r\"\nmanifest = \"a.csv\"\n"+
			"rows = \""+rows+"\"\n[[category]]\nname = \"tone\"\nkind = \"single\"\n"+
			"labels = [{code = \"a\"}, {code = \"b\"}]\n[[column]]\nname = \"votes\"\ntype = \"integer\"\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "a.csv"), []byte("id,tone,votes\n"+lines), 0o600))
		return dir
	}
	const abc1 = "abc1,a,1\nabc1,b,2\n"
	older := release("many", abc1+"abc2,a,\n")
	for _, test := range []struct{ name, newer, changes, step string }{
		{"the same in another order", release("many", "abc2,a,\n"+abc1), "", "patch"},
		{"a label of the second row", release("many", "abc1,a,1\nabc1,a,2\nabc2,a,\n"),
			"changed abc1 tone a|b>a|a", "major"},
		{"labels that changed places", release("many", "abc1,b,1\nabc1,a,2\nabc2,a,\n"),
			"changed abc1 tone a|b>b|a", "major"},
		{"a value of the second row", release("many", "abc1,a,1\nabc1,b,3\nabc2,a,\n"),
			"changed abc1 votes 1|2>1|3", "major"},
		{"a row less", release("many", "abc1,a,1\nabc2,a,\n"), "changed abc1 tone a|b>a votes 1|2>1", "major"},
		{"a row more", release("many", abc1+"abc2,a,\nabc2,a,\n"), "changed abc2 tone a>a|a votes >|", "major"},
		{"an image less", release("many", abc1), "lost abc2", "major"},
		{"an image more", release("many", abc1+"abc2,a,\nabc3,b,\n"), "gained abc3", "minor"},
		{"one row each", release("one", "abc1,a,1\nabc2,a,\n"),
			"changed abc1 tone a|b>a votes 1|2>1; changed abc2 votes >; column tone list of single>single; " +
				"column votes list of integer>integer", "major"},
	} {
		report, err := Compare(t.Context(), older, test.newer, showsAll)
		testkit.OK(t, err)
		got := changesOf(report)
		d := report.Summary
		for _, k := range d.Schema {
			got = append(got, k.Key+" "+k.Old+">"+k.New)
		}
		testkit.Same(t, test.name, test.changes+": "+test.step, strings.Join(got, "; ")+": "+d.Step)
		testkit.Same(t, test.name+": rows, and those not compared", [2]int{2, 0}, [2]int{d.Old.Rows, d.Old.Repeated})
	}
}

// TestCompareReleaseWithDataset: a release and the dataset that was written of it have the same labels and values,
// however either writes a label or a number, and what does differ is told in the dataset's words.
func TestCompareReleaseWithDataset(t *testing.T) {
	const one, many = "", "rows = \"many\"\n"
	release := func(rows, lines string) (string, manifest.Schema, []dataset.Row) {
		dir, list, kind := t.TempDir(), "list = true\n", "multi"
		if rows == many { // of each a row has one
			list, kind, lines = "", "single", strings.ReplaceAll(lines, "F2|F1", "F2")
		}
		settings := "name = \"t\"\nmanifest = \"a.csv\"\n" + rows +
			"[[category]]\nname = \"tone\"\nkind = \"ordinal\"\n" +
			"labels = [{code = \"1\", name = \"low\"}, {code = \"2\", name = \"high\"}]\n" +
			"[[category]]\nname = \"tags\"\nkind = \"" + kind + "\"\n" +
			"labels = [{code = \"F1\", name = \"Irony/Sarcasm\"}, {code = \"F2\", name = \"Pun\"}]\n"
		for _, name := range []string{"number", "integer", "boolean", "timestamp", "text", "json"} {
			settings += "[[column]]\nname = \"" + name + "\"\ntype = \"" + name + "\"\n"
		}
		settings += "[[column]]\nname = \"numbers\"\ntype = \"number\"\n" + list
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "release.toml"), []byte(settings), 0o600),
			os.WriteFile(filepath.Join(dir, "a.csv"),
				[]byte("id,tone,tags,number,integer,boolean,timestamp,text,json,numbers\n"+lines), 0o600))
		r, err := manifest.Open(dir, manifest.Options{})
		testkit.OK(t, err)
		var all []dataset.Row
		for e, err := range labels.Images(r.Schema, r.Entries(t.Context())) {
			testkit.OK(t, err)
			all = append(all, diffRow(e.Key.String(), "", func(row *dataset.Row) {
				row.Labels, row.Values = e.Labels, e.Values
			}))
		}
		return dir, r.Schema.Joined(), all
	}
	const full, none = `abc1,2,F2|F1,1e-7,7,yes,2024-07-01T12:00:00+02:00," a ","{""a"": 1.0}",`, "abc2,1,F1,,,,,,,\n"
	for _, test := range []struct{ name, rows, lines, other, want string }{
		{"as it is", one, full + "1e21|.5\n" + none, full + "1e21|.5\n" + none, ""},
		{"several rows", many, full + "1e21\n" + none + full + "\n", full + "1e21\n" + none + full + "\n", ""},
		{"others", one, full + "1|2\n", strings.NewReplacer("2,F2", "1,F2", "1e-7", "2e-7").Replace(full) + "1|3\n",
			"number 0.0000001>0.0000002; numbers 1|2>1|3; tone high>low"},
		{"another row", many, none + full + "\n" + full + "1\n", none + full + "\n" + full + "2\n",
			"numbers \x00|1>\x00|2"},
	} {
		dir, _, _ := release(test.rows, test.lines)
		_, schema, rows := release(test.rows, test.other)
		data := writeSide(t, schema, "", map[string][]dataset.Row{"train": rows}, nil)
		report, err := Compare(t.Context(), dir, data, showsAll)
		testkit.OK(t, err)
		var got []string
		for _, c := range report.Changes {
			for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
				l := c.Labels[name]
				got = append(got, name+" "+strings.Join(l.Old, "|")+">"+strings.Join(l.New, "|"))
			}
		}
		testkit.Same(t, test.name, strings.ReplaceAll(test.want, "\x00", ""), strings.Join(got, "; "))
		step := "minor" // the columns that a dataset has and a release has not
		if test.want != "" {
			step = "major"
		}
		testkit.Same(t, test.name+": step", step, report.Summary.Step)
		for _, k := range report.Summary.Schema {
			if k.Old != "" {
				t.Errorf("%s: %s %s -> %s", test.name, k.Key, k.Old, k.New)
			}
		}
		again, err := Compare(t.Context(), data, data, showsAll)
		if err != nil || again.Summary.Changed {
			t.Errorf("%s: a dataset and itself: %+v, %v", test.name, again.Summary, err)
		}
	}

	// A dataset of another program may have codes, and does not say which numbers they are.
	type row struct {
		ID   string   `parquet:"id"`
		Tone int64    `parquet:"tone"`
		Tags []string `parquet:"tags,list"`
	}
	dir, _, _ := release(one, "abc1,2,F1|F2,,,,,,,\nabc2,1,F1,,,,,,,\n")
	codes := filepath.Join(t.TempDir(), "codes.parquet")
	testkit.OK(t, parquet.WriteFile(codes, []row{{"abc1", 2, []string{"F1", "Pun"}}, {"abc2", 2, []string{"F1"}}}))
	_, changes := compared(t, codes, dir)
	testkit.Same(t, "codes", map[string]Change{"abc2": {ID: "abc2", Kind: "changed",
		Labels: map[string]LabelChange{"tone": {[]string{"2"}, []string{"low"}}}}}, changes)
}

// TestCompareBesides: what a takedown changes in a release is told, although its digest stays: tombstones, the policy,
// and why a row went. Digests that come are columns that come.
func TestCompareBesides(t *testing.T) {
	release := func(header, rows, tombstones, mask string) string {
		dir := t.TempDir()
		write := func(name, text string) {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		write("release.toml", "name = \"r\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"tone\"\nkind = \"single\"\n"+
			"labels = [{code = \"a\"}]\n")
		write("a.csv", header+"\n"+rows)
		write("tombstones.csv", "id,state,time\n"+tombstones)
		write("policy.toml", strings.Replace(string(policy.DefaultTOML()), "mask_names = true", "mask_names = "+mask, 1))
		return dir
	}
	const both, stone = "abc1,a\nabc2,a\n", "abc2,removed,2026-11-01T00:00:00Z\n"
	stones := func(lines string) string { return release("id,tone", both, lines, "true") }
	digest := "," + strings.Repeat("0", 64) + "\n"
	older := release("id,tone", both, "", "true")
	for _, test := range []struct {
		name, newer, besides, lost, step string
		changed                          bool
	}{
		{"the same", release("id,tone", both, "", "true"), "", "", "none", false},
		{"a tombstone", release("id,tone", both, stone, "true"), "tombstones 0>1; tombstones: abc2 >removed", "", "none",
			true},
		{"another policy", release("id,tone", both, "", "false"), "policy_digest", "", "none", true},
		{"a row less", release("id,tone", "abc1,a\n", stone, "true"), "tombstones 0>1; tombstones: abc2 >removed",
			"abc2 removed", "major", true},
		{"digests", release("id,tone,sha256", "abc1,a"+digest+"abc2,a"+digest, "", "true"), "", "", "minor", true},
	} {
		report, err := Compare(t.Context(), older, test.newer, showsAll)
		testkit.OK(t, err)
		var besides, lost []string
		for _, k := range report.Summary.Besides {
			text := k.Key
			if len(k.Old) < 64 {
				text += " " + k.Old + ">" + k.New
			}
			besides = append(besides, text)
		}
		for _, c := range report.Changes {
			lost = append(lost, c.ID+" "+string(c.New.Outcome))
		}
		testkit.Same(t, test.name, strings.Join(besides, "; "), test.besides)
		testkit.Same(t, test.name+": lost", strings.Join(lost, "; "), test.lost)
		if d := report.Summary; d.Step != test.step || d.Changed != test.changed {
			t.Errorf("%s: step %s, changed %v", test.name, d.Step, d.Changed)
		}
	}
	report, err := Compare(t.Context(), stones(stone), stones("abc3,deleted,2026-11-01T00:00:00Z\n"), showsAll)
	testkit.OK(t, err)
	want := []KeyChange{{"tombstones: abc2", "removed", ""}, {"tombstones: abc3", "", "deleted"}}
	if diff := cmp.Diff(want, report.Summary.Besides); diff != "" || !report.Summary.Changed {
		t.Errorf("one tombstone in the place of another: changed %v (-want +got)\n%s", report.Summary.Changed, diff)
	}
}

// changesOf are the rows that differ, with their tones and votes before and after.
func changesOf(r Report) (lines []string) {
	for _, c := range r.Changes {
		line := c.Kind + " " + c.ID
		for _, name := range []string{"tone", "votes"} {
			if l, differs := c.Labels[name]; differs {
				line += " " + name + " " + strings.Join(l.Old, "|") + ">" + strings.Join(l.New, "|")
			}
		}
		lines = append(lines, line)
	}
	return lines
}
