package manifest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBare finds FigSIM's columns by their aliases, and the separator that a cell has.
func TestBare(t *testing.T) {
	text := "Set,Permalink,Figurative Phenomenon,suicide-severity scale,Suicide-related Content,MODALITY,Context\n" +
		"dev,https://redd.it/abc,Metaphor,Suicide death,SR1|SR3,Image,Context required\n" +
		"dev,https://redd.it/abd,\"F1,F2\",SS1,SR1;SR3,M1,C1\n"
	want := []Entry{
		{Key: Key{ID: "abc"}, Line: 2, Split: "dev", Labels: [][]int{{0}, {5}, {0, 2}, {2}, {1}}},
		{Key: Key{ID: "abd"}, Line: 3, Ordinal: 1, Split: "dev", Labels: [][]int{{0, 1}, {1}, {0, 2}, {0}, {0}}},
	}
	if diff := cmp.Diff(want, bare(t, "a.csv", text)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestOpenTable(t *testing.T) {
	const toml = `
name = "spelled"
manifest = "a.csv"
schema = "figsim"
[columns]
severity = "How Severe"
figurative = {F1 = "f_metaphor", F2 = "f_pun", F3 = "f_irony"}
related_content = "content"
image = "nth"
[labels]
separator = ";"
[labels.severity]
attempt = "SS4"
[labels.related_content]
"a;b" = "SR1"
sr1 = "SR1"
`
	const header = "id,nth,split,How Severe,f_metaphor,f_pun,f_irony,content,modality,context\n"
	spelled, err := release(t, toml, header+"abc123,0,train,attempt,1,0,0,SR1;SR3,M1,C1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		like       *Release
		want       string // the entries: key, split, and labels of each category that was found
	}{
		{"same.csv", "f_irony,id,f_pun,f_metaphor,How Severe\n1,abc123,1,1,attempt\n", spelled,
			"abc123 train figurative[0 1 2] severity[4]"},
		{"whole.csv", "id,content\nabc123,a;b\nabc124,SR3;SR1\n", spelled,
			"abc123 train related_content[0], abc124 train related_content[2 0]"},
		{"some.csv", "id,f_pun,f_metaphor,figurative\nabc123,1,1,F3;F1\n", spelled, "abc123 train figurative[2 0]"},
		{"nth.csv", "id,nth,severity,split\nabc123,2,SS1,test\n", spelled, "abc123/2 train severity[1]"},
		{"nth.csv", "id,nth,severity\nabc123/2,2,SS1\nabc124/1,,SS1\n", spelled,
			"abc123/2 train severity[1], abc124/1 train severity[1]"},
		{"nth.csv", "id,nth,severity\nabc123/2,0,SS1\n", spelled,
			`nth.csv:2:10 the id names image 2 of post abc123, and "nth" image 0`},
		{"usual.jsonl",
			`{"post_id": "t3_abc123", "severity": "Suicide death", "figurative": ["F3"]}` + "\n" + `{"post_id": "abc124"}`,
			spelled,
			"abc123 train figurative[2] severity[5], abc124 train figurative[] severity[]"},
		{"keys.csv", "id,severity,image\nabc123,SS1,x\nABC123/2,SS2,y\nt3_1y2p0ij32e8e7/999,,\n", BuiltIn(),
			"abc123 train severity[1], abc123/2 train severity[2], 1y2p0ij32e8e7/999 train severity[]"},
		{"usual.jsonl", `{"post_id": "t3_abc123", "severity": "Suicide death", "figurative": ["F3"]}`, BuiltIn(),
			"abc123 train figurative[2] severity[5]"},
		{"none.csv", "id,text\nabc123,F1\n", BuiltIn(),
			`none.csv:1:0 no column of labels was found; the columns are "id", "text"`},
		{"neither.csv", "text\nF1\n", BuiltIn(), "neither.csv:1:0 no column of post ids"},
		{"no-id.csv", "severity\nSS1\n", BuiltIn(),
			`no-id.csv:1:0 no column of post ids was found; the columns are "severity"`},
		{"bad.csv", "id,severity\nabc123,SS9\n", BuiltIn(), `bad.csv:2:8 "SS9" is not a label of category severity`},
		{"bad.csv", "id,severity\nabc123/0,SS1\n", BuiltIn(), `bad.csv:2:1 "abc123/0" does not name a post`},
		{"bad.csv", "id,severity\nabc123/1000,SS1\n", BuiltIn(), `bad.csv:2:1 "abc123/1000" does not name a post`},
		{"empty.csv", "id,severity\n", BuiltIn(), "empty.csv:1:0 the manifest has no entries"},
	} {
		r, err := OpenTable(file(t, c.name, c.text), c.like, Options{})
		list, err := entries(t, r, err)
		if strings.HasPrefix(c.want, c.name) {
			wantPlaces(t, c.text, err, c.want)
			continue
		}
		var got []string
		for _, e := range list {
			shown := e.Key.String() + " " + e.Split
			for i, labels := range e.Labels {
				shown += " " + r.Schema.Categories[i].Name + fmt.Sprint(labels)
			}
			got = append(got, shown)
		}
		if got := strings.Join(got, ", "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	empty, err := OpenTable(file(t, "empty.csv", "id,severity\n"), BuiltIn(), Options{MayBeEmpty: true})
	if list, err := entries(t, empty, err); err != nil || len(list) != 0 {
		t.Errorf("a table that may be empty: %v, %v", list, err)
	}
	if _, err := OpenTable(file(t, "a.csv", "id\n"), BuiltIn(), Options{}); !strings.Contains(fmt.Sprint(err),
		"hint: name the columns id and fig") {
		t.Errorf("no labels: %v", err)
	}
	if _, err := OpenTable(filepath.Join(t.TempDir(), "sheet.xlsx"), BuiltIn(), Options{}); err == nil {
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
	for name, want := range map[string]int{"figurative": 0, "Suicide Severity Scale": 1, "Related-Content": 2,
		"text": -1, "": -1} {
		if got := r.CategoryOf(name); got != want {
			t.Errorf("CategoryOf(%q) = %d, want %d", name, got, want)
		}
	}
	r.columns["figurative"] = "Context"
	if got := r.CategoryOf("Context"); got != 0 {
		t.Errorf("the column of category 0 is of category %d", got)
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
		{1, []string{"SS7"}, nil, "\"SS7\" is not a label of category severity\n  hint: did you mean \"SS6\"? the"},
		{1, []string{"picture"}, nil, "\"picture\" is not a label of category severity\n  hint: the labels are"},
	} {
		got, p := r.Labels(c.category, c.texts)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Labels(%d, %q) (-want +got)\n%s", c.category, c.texts, diff)
		}
		if (p != nil) != (c.message != "") || p != nil && !strings.HasPrefix(p.Error(), c.message) {
			t.Errorf("Labels(%d, %q): problem %v, want %q", c.category, c.texts, p, c.message)
		}
	}
}
