package manifest

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenTable(t *testing.T) {
	const toml = `
name = "spelled"
manifest = "a.csv"
schema = "figsim"
[columns]
severity = "How Severe"
figurative = {F1 = "f_metaphor", F2 = "f_pun", F3 = "f_irony"}
related_content = "content"
[labels]
separator = ";"
[labels.severity]
attempt = "SS4"
`
	const header = "id,split,How Severe,f_metaphor,f_pun,f_irony,content,modality,context\n"
	dir := folder(t, map[string]string{
		SettingsName: toml, "a.csv": header + "abc123,train,attempt,1,0,0,SR1;SR3,M1,C1\n",
		"same.csv":    "f_irony,id,f_pun,f_metaphor,How Severe\n0,abc123,1,1,attempt\n",
		"usual.jsonl": `{"post_id": "t3_abc123", "severity": "Suicide death", "figurative": ["F3"]}` + "\n" + `{"post_id": "abc124"}` + "\n",
		"keys.csv":    "id,severity\nabc123,SS1\nABC123/2,SS2\n",
		"none.csv":    "id,text\nabc123,F1\n",
		"no-id.csv":   "severity\nSS1\n",
		"bad.csv":     "id,severity\nabc123,SS1\nabc124,SS9\nabc123,SS1\n",
		"empty.csv":   "id,severity\n",
		"sheet.xlsx":  "",
	})
	release, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, like *Release) ([]Entry, Schema, error) {
		table, err := OpenTable(filepath.Join(dir, name), like, Options{})
		if err != nil {
			return nil, Schema{}, err
		}
		var entries []Entry
		if _, err := table.Check(t.Context()); err != nil {
			return nil, Schema{}, err
		}
		for e, err := range table.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		return entries, table.Schema, nil
	}
	for _, c := range []struct {
		file string
		like *Release
		have []string // categories
		want [][][]int
	}{
		{"same.csv", release, []string{"figurative", "severity"}, [][][]int{{{0, 1}, {4}}}},
		{"usual.jsonl", release, []string{"figurative", "severity"}, [][][]int{{{2}, {5}}, {nil, nil}}},
		{"keys.csv", BuiltIn(), []string{"severity"}, [][][]int{{{1}}, {{2}}}},
		{"usual.jsonl", BuiltIn(), []string{"figurative", "severity"}, [][][]int{{{2}, {5}}, {nil, nil}}},
	} {
		entries, schema, err := read(c.file, c.like)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if c.file == "keys.csv" && (len(entries) != 2 || entries[1].Key != Key{ID: "abc123", Image: 2}) {
			t.Errorf("%s: entries %+v", c.file, entries)
		}
		var got [][][]int
		for _, e := range entries {
			got = append(got, e.Labels)
		}
		if diff := cmp.Diff(c.have, schema.names()); diff != "" {
			t.Errorf("%s: categories (-want +got)\n%s", c.file, diff)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: labels (-want +got)\n%s", c.file, diff)
		}
	}
	for _, c := range []struct {
		file string
		want []string
	}{
		{"none.csv", []string{`none.csv:1:0 no column of labels was found; the columns are "id", "text"`}},
		{"no-id.csv", []string{`no-id.csv:1:0 no column of post ids was found; the columns are "severity"`}},
		{"bad.csv", []string{`bad.csv:3:8 "SS9" is not a label of category severity`, "bad.csv:4:1 post abc123, image 0, is already on line 2"}},
		{"empty.csv", []string{"empty.csv:1:0 the manifest has no entries"}},
	} {
		_, _, err := read(c.file, BuiltIn())
		matchPlaces(t, places(t, err), c.want)
	}
	if _, err := OpenTable(filepath.Join(dir, "sheet.xlsx"), BuiltIn(), Options{}); err == nil {
		t.Error("a spreadsheet was opened as a table")
	}
}

func TestTasks(t *testing.T) {
	if got := FigSIM().Tasks(); len(got) != 3 || got[1].Category != "severity" {
		t.Errorf("FigSIM's tasks = %+v", got)
	}
	other := FigSIM()
	other.Categories[1].Labels[5].Code = "X" // SS5 is gone, so FigSIM's merges mean nothing
	if got := other.Tasks(); len(got) != len(other.Categories) || got[1].Merge != nil {
		t.Errorf("tasks of another schema = %+v", got)
	}
}

func TestReleaseLabels(t *testing.T) {
	r := BuiltIn()
	for name, want := range map[string]int{"figurative": 0, "Suicide Severity Scale": 1, "Related-Content": 2, "text": -1, "": -1} {
		if got := r.CategoryOf(name); got != want {
			t.Errorf("CategoryOf(%q) = %d, want %d", name, got, want)
		}
	}
	for _, c := range []struct {
		category int
		texts    []string
		want     []int
		message  string
	}{
		{0, []string{"irony/sarcasm", "F1"}, []int{2, 0}, ""},
		{0, []string{}, []int{}, ""},
		{0, []string{"F1", "F4"}, nil, `label "F4" (None) of category figurative stands beside another`},
		{1, []string{"SS1", "SS2"}, nil, "category severity has 2 labels, and takes one"},
		{1, []string{"SS7"}, nil, `"SS7" is not a label of category severity`},
	} {
		got, p := r.Labels(c.category, c.texts)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Labels(%d, %q) (-want +got)\n%s", c.category, c.texts, diff)
		}
		if (p != nil) != (c.message != "") || p != nil && p.Message != c.message {
			t.Errorf("Labels(%d, %q): problem %v, want %q", c.category, c.texts, p, c.message)
		}
	}
}
