package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testRow = "abc,train,F1,SS1,SR1,M1,C1\n"

// TestTable8 counts the synthetic annotations and compares with the paper's table.
func TestTable8(t *testing.T) {
	b, err := os.ReadFile("testdata/table8.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]json.RawMessage
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	r, err := Open("testdata/annotations.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Entries != 1049 || s.Posts != 1049 {
		t.Errorf("%d entries, %d posts, want 1049 of both", s.Entries, s.Posts)
	}
	if diff := cmp.Diff([]string{"train", "validation", "test"}, s.Splits); diff != "" {
		t.Errorf("splits (-want +got):\n%s", diff)
	}
	var totals map[string]int
	if err := json.Unmarshal(table["totals"], &totals); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(totals, s.Sizes); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	for _, c := range FigSIM().Categories {
		var want map[string]map[string]int // split -> code -> count
		if err := json.Unmarshal(table[c.Name], &want); err != nil {
			t.Fatalf("category %s: %v", c.Name, err)
		}
		for _, split := range s.Splits {
			if diff := cmp.Diff(want[split], s.Counts[split][c.Name]); diff != "" {
				t.Errorf("%s, %s (-table 8 +got):\n%s", c.Name, split, diff)
			}
		}
	}
}

func TestFigSIMSchema(t *testing.T) {
	s := FigSIM()
	for i := range s.Categories {
		if message, _ := s.Categories[i].fault(); message != "" {
			t.Errorf("category %s: %s", s.Categories[i].Name, message)
		}
	}
	var severity []string
	for _, l := range s.Categories[1].Labels {
		severity = append(severity, l.Code)
	}
	if diff := cmp.Diff([]string{"SS6", "SS1", "SS2", "SS3", "SS4", "SS5"}, severity); diff != "" || s.Categories[1].Kind != Ordinal {
		t.Errorf("severity is %s, from lowest to highest (-want +got):\n%s", s.Categories[1].Kind, diff)
	}
	s.Categories[0].Labels[0].Name = "changed"
	if FigSIM().Categories[0].Labels[0].Name == "changed" {
		t.Error("FigSIM shares its labels between calls")
	}
}

func TestOpenFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"release.toml": `
name = "Two moods"   # a comment
version = "1.2"
date = 2025-02-28
homepage = "https://example.org"
license = "CC-BY-4.0"
citation = """
Somebody.
[columns]
"""
manifest = "data/rows.tsv"

[[category]]
name = "mood"
title = "Mood of it"
kind = "multi"
labels = [{code = "H", name = "Happy"}, {code = "S", name = "Sad"}, {code = "N", name = "None", exclusive = true}]

[[category]]
name = "size"
kind = "ordinal"
labels = [{code = "small"}, {code = "large"}]

[columns]
id = "Post"
split = ""
mood = {H = "is happy", S = "is sad"}
size = "How large"

[labels.size]
big = "large"
`,
		"data/rows.tsv":  "Post\tsplit\tis happy\tis sad\tHow large\nt3_B1\t?\t1\ttrue\tBIG\nb2\t?\t0\t\tsmall\n",
		"policy.toml":    "",
		"tombstones.csv": "id,state,time\n",
	})
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{r.Name, r.Version, r.Date, r.Homepage, r.License, r.Citation, r.Dir, r.ManifestPath, r.PolicyPath, r.TombstonesPath, r.Schema.Name}
	want := []string{"Two moods", "1.2", "2025-02-28", "https://example.org", "CC-BY-4.0", "Somebody.\n[columns]\n", dir,
		filepath.Join(dir, "data/rows.tsv"), filepath.Join(dir, "policy.toml"), filepath.Join(dir, "tombstones.csv"), "Two moods"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	wantEntries := []Entry{
		{Key: Key{ID: "b1"}, Line: 2, Split: "train", Labels: [][]int{{0, 1}, {1}}},
		{Key: Key{ID: "b2"}, Line: 3, Ordinal: 1, Split: "train", Labels: [][]int{{}, {0}}},
	}
	if diff := cmp.Diff(wantEntries, all(t, r)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if _, err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if byFile, err := Open(filepath.Join(dir, "release.toml"), Options{}); err != nil || byFile.Digest != r.Digest {
		t.Errorf("opened by its release.toml: %v", err)
	}
}

func TestDigests(t *testing.T) {
	open := func(settings, rows string) *Release {
		r, err := Open(folder(t, map[string]string{"release.toml": settings, "a.csv": rows}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const settings = "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n"
	first, again := open(settings, figsimHeader+testRow), open(settings, figsimHeader+testRow)
	comment, row := open(settings+"# hi\n", figsimHeader+testRow), open(settings, figsimHeader+strings.Replace(testRow, "F1", "F2", 1))
	if first.Digest != again.Digest || len(first.Digest) != 64 {
		t.Errorf("digests of equal releases: %q and %q", first.Digest, again.Digest)
	}
	if comment.Digest == first.Digest || comment.ManifestDigest != first.ManifestDigest {
		t.Error("another release.toml: want another Digest and the same ManifestDigest")
	}
	if row.Digest == first.Digest || row.ManifestDigest == first.ManifestDigest {
		t.Error("another manifest: want another Digest and ManifestDigest")
	}
}

// TestStrictSettings gives the line at which each wrong release.toml is refused.
func TestStrictSettings(t *testing.T) {
	const head = "name = \"x\"\nmanifest = \"a.csv\"\n" // lines 1 and 2
	const figsim = head + "schema = \"figsim\"\n"       // line 3
	const own = head + "[[category]]\nname = \"mood\"\nkind = \"multi\"\n"
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{"release.toml:1:0 the release has no name", "release.toml:1:0 the release does not name a manifest", "release.toml:1:0 the release has no label schema"}},
		{"\xef\xbb\xbf" + figsim, []string{"release.toml:1:1 the file starts with a byte order mark"}},
		{figsim + "x = [1,\n", []string{"release.toml:4:8 not valid TOML"}},
		{figsim + "name = \"y\"\n", []string{"release.toml:4:1 not valid TOML"}},
		{figsim + "\nlicence = \"x\"\n", []string{`release.toml:5:1 unknown key "licence"`}},
		{figsim + "Version = \"x\"\n", []string{`release.toml:4:1 unknown key "Version"`}},
		{figsim + "version = 1\n", []string{"release.toml:4:1 version is not a text"}},
		{figsim + "date = \"May\"\n", []string{"release.toml:4:1 date is not a date"}},
		{figsim + "license = \"a\\nb\"\n", []string{"release.toml:4:1 license is not one line"}},
		{figsim + "format = \"xls\"\n", []string{`release.toml:4:1 format "xls" is not known`}},
		{"name = \"x\"\nschema = \"figsim\"\nmanifest = \"../a.csv\"\n", []string{`release.toml:3:1 manifest "../a.csv" is not inside`}},
		{"name = \"x\"\nschema = \"figsim\"\nmanifest = \"/etc/a.csv\"\n", []string{`release.toml:3:1 manifest "/etc/a.csv" is not inside`}},
		{"name = \"x\"\nschema = \"figsim\"\nmanifest = \"b.csv\"\n", []string{`release.toml:3:1 manifest "b.csv" cannot be opened: no such file`}},
		{"name = \"x\"\nschema = \"figsim\"\nmanifest = \"a.xlsx\"\n", []string{"release.toml:3:1 the name does not tell the format"}},
		{figsim + "policy = \"p/../../x\"\n", []string{"release.toml:4:1 policy \"p/../../x\" is not inside"}},
		{figsim + "tombstones = \"t.csv\"\n", []string{`release.toml:4:1 tombstones "t.csv" cannot be opened`}},
		{head + "schema = \"other\"\n", []string{`release.toml:3:1 schema "other" is not built in`}},
		{figsim + "category = 1\n", []string{"release.toml:4:1 category is not a list of tables"}},
		{own, []string{"release.toml:4:1 category mood has 0 labels"}},
		{own + "labels = [{code = \"A\", colour = 1}]\n", []string{`release.toml:6:24 unknown key "colour" in [category.labels]`}},
		{own + "labels = [{code = \"A\"}, {code = \"b\", name = \"a\"}]\n", []string{`release.toml:4:1 "a" means two labels`}},
		{own + "labels = [{code = \"A\"}, {code = \"A\"}]\n", []string{`release.toml:4:1 "A" means two labels`}},
		{own + "labels = [{code = \"A|B\"}]\n", []string{`release.toml:1:0 code "A|B" of category mood holds the separator`}},
		{strings.Replace(own, "mood", "width", 1) + "labels = [{code = \"A\"}]\n", []string{`release.toml:4:1 category name "width" is taken`}},
		{strings.Replace(own, "multi", "many", 1) + "labels = [{code = \"A\"}]\n", []string{`release.toml:4:1 category mood has kind "many"`}},
		{strings.Replace(own, "multi", "single", 1) + "labels = [{code = \"A\", exclusive = true}]\n", []string{`release.toml:4:1 label "A" of category mood is exclusive`}},
		{own + "labels = [{code = \"A\"}]\n[[category]]\nname = \"Mood\"\nkind = \"single\"\nlabels = [{code = \"A\"}]\n", []string{"release.toml:8:1 two categories are named \"Mood\""}},
		{figsim + "[columns]\nsplits = \"x\"\n", []string{`release.toml:5:1 unknown key "splits" in [columns]`}},
		{figsim + "[columns]\nid = \"identity\"\n", []string{`release.toml:5:1 the manifest has no column "identity"`}},
		{figsim + "[columns]\nid = \"\"\n", []string{"release.toml:5:1 id does not name a column"}},
		{figsim + "[columns]\nid = \"split\"\nsplit = \"split\"\n", []string{`release.toml:6:1 column "split" is given to both`}},
		{figsim + "[columns]\nid = \"id\"\nfigurative = {F1 = \"id\", F2 = \"a\", F3 = \"a\"}\n", []string{`release.toml:5:1 column "id" is given to both columns.figurative.F1 and columns.id`, `release.toml:6:36 column "a" is given to both`}},
		{figsim + "[columns]\nmodality = \"\"\nfigurative = {F1 = \"\", Metaphor = 1}\n", []string{"release.toml:5:1 category modality has no column", `release.toml:6:15 label "F1" does not name a column`, "release.toml:6:24 Metaphor is not a text"}},
		{figsim + "[columns]\nfigurative = {F1 = \"a\", Metaphor = \"b\"}\n", []string{`release.toml:5:25 label "Metaphor" has two columns`}},
		{figsim + "[labels]\nmodality = 1\nseparator = 2\nseverity = {x = 3}\n", []string{"release.toml:5:1 modality is not a table", "release.toml:6:1 separator is not a text", "release.toml:7:13 x is not a text"}},
		{figsim + "[columns]\nseverity = {SS1 = \"id\"}\n", []string{"release.toml:5:1 category severity takes one label, so it has one column"}},
		{figsim + "[columns.figurative]\nF9 = \"id\"\n", []string{`release.toml:5:1 "F9" is not a label of category figurative`}},
		{figsim + "[columns.figurative]\nF1 = \"nowhere\"\n", []string{`release.toml:5:1 the manifest has no column "nowhere"`}},
		{figsim + "[columns]\n\nfigurative = {F1 = \"nowhere\"} # {\nid = \"identity\"\n", []string{`release.toml:6:15 the manifest has no column "nowhere"`, `release.toml:7:1 the manifest has no column "identity"`}},
		{figsim + "[columns]\n\nfigurative = {Metaphor = \"nowhere\"}\n", []string{`release.toml:6:15 the manifest has no column "nowhere"`}},
		{figsim + "[columns]\n\"figurative\" = {pun = \"id\"}\n", []string{`release.toml:5:17 "pun" is not a label of category figurative`}},
		{figsim + "columns = {figurative = {F1 = \"nowhere\"}}\n", []string{`release.toml:4:26 the manifest has no column "nowhere"`}},
		{figsim + "columns.figurative.F1 = \"nowhere\"\n", []string{`release.toml:4:20 the manifest has no column "nowhere"`}},
		{figsim + "citation = \"\"\"\n[columns]\nid = \\\"\"\"\"\ncolumns.id = \"identity\"\n", []string{`release.toml:7:9 the manifest has no column "identity"`}},
		{own + "labels = [\n  {code = \"A\"}, # ]\n  {code = \"B\", colour = 1},\n]\n", []string{`release.toml:8:16 unknown key "colour" in [category.labels]`}},
		{"zeta = 1\nmanifest = 1\n[columns]\nid = 2\n[[category]]\nalpha = 1\nname = 3\n", []string{`release.toml:1:1 unknown key "zeta"`, "release.toml:2:1 manifest is not a text", `release.toml:6:1 unknown key "alpha" in [category]`, "release.toml:7:1 name is not a text"}},
		{"zeta = 1\n[columns]\nid = 2\n[[category]]\nalpha = 1\nname = \"3\"\n", []string{"release.toml:1:0 the release has no name", "release.toml:1:0 the release does not name a manifest", `release.toml:1:1 unknown key "zeta"`, "release.toml:3:1 id is not a text",
			`release.toml:5:1 unknown key "alpha"`, `release.toml:6:1 category name "3" cannot be a column`}},
		{figsim + "[labels]\nseparator = \"a\"\n", []string{`release.toml:5:1 separator "a" cannot part labels`}},
		{figsim + "[labels.severity]\nhigh = \"SS9\"\n", []string{`release.toml:5:1 "SS9" is not a label of category severity`}},
		{figsim + "[labels.severity]\nss1 = \"SS2\"\n", []string{`release.toml:5:1 spelling "ss1" already means label "SS1"`}},
		{figsim + "[labels.mood]\nx = \"y\"\n", []string{`release.toml:4:9 unknown key "mood" in [labels]`}},
		{figsim + "a." + strings.Repeat("a.", 50) + "b = 1\n", []string{"release.toml:4:23 the file has too many keys, or a key is too long"}},
		{figsim + "x = " + strings.Repeat("[", 50000), []string{"release.toml:4:10005 not valid TOML: arrays and inline tables are nested"}},
		{figsim + "[" + strings.Repeat("x", 5000) + "]\n", []string{"release.toml:4:2 the file has too many keys, or a key is too long"}},
		{figsim + strings.Repeat("#\n", maxTOML/2), []string{"release.toml:1:0 the file is larger"}},
	}
	for _, test := range tests {
		dir := folder(t, map[string]string{"release.toml": test.text, "a.csv": figsimHeader + testRow})
		_, err := Open(dir, Options{})
		got := places(t, err)
		t.Logf("%.120q", test.text)
		matchPlaces(t, got, test.want)
	}
}

// TestSchemaLimits reads what is just within each limit, and refuses what is just beyond it.
func TestSchemaLimits(t *testing.T) {
	const head = "name = \"x\"\nmanifest = \"a.csv\"\n"
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	category := func(name, title, labels string) string {
		return "[[category]]\nname = \"" + name + "\"\ntitle = \"" + title + "\"\nkind = \"multi\"\nlabels = [" + labels + "]\n"
	}
	const label = "{code = \"A%d\"},"
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		text func(n int) string
		most int
		want string
	}{
		"name":       {func(n int) string { return category(x(n), "t", "{code = \"A\"}") }, maxName, "release.toml:4:1 category name"},
		"title":      {func(n int) string { return category("a", x(n), "{code = \"A\"}") }, maxLabelText, "release.toml:4:1 category a has a title"},
		"code":       {func(n int) string { return category("a", "t", "{code = \""+x(n)+"\"}") }, maxLabelText, "release.toml:4:1 category a has a label"},
		"label name": {func(n int) string { return category("a", "t", "{code = \"A\", name = \""+x(n)+"\"}") }, maxLabelText, "release.toml:4:1 category a has a label"},
		"labels":     {func(n int) string { return category("a", "t", many(n, label)) }, maxLabels, "release.toml:4:1 category a has 1001 labels"},
		"categories": {func(n int) string { return many(n, category("a%d", "t", "{code = \"A\"}")) }, maxCategories, "release.toml:3:3 the release has 201 categories"},
		"signers": {func(n int) string {
			return "schema = \"figsim\"\n" + many(n, "[[signer]]\nname = \"S%[1]d\"\nkey = \"k A%[1]d\"\n")
		}, maxSigners, "release.toml:4:3 the release has 101 signers"},
		"key": {func(n int) string {
			return "schema = \"figsim\"\n[[signer]]\nname = \"S\"\nkey = \"k " + x(n-2) + "\"\n"
		}, maxSignerKey, "release.toml:6:1 the signer's key"},
		"separator": {func(n int) string {
			return "schema = \"figsim\"\nlabels.separator = \"" + strings.Repeat("§", n) + "\"\n"
		}, 3, "release.toml:4:8 separator"},
	} {
		if _, err := parseSettings([]byte(head+c.text(c.most)), SettingsName); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := parseSettings([]byte(head+c.text(c.most+1)), SettingsName)
		if got := places(t, err); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSeparators(t *testing.T) {
	for text, want := range map[string]bool{"|": true, " / ": false, "; ": false, "//": true, "": false, "x": false, "é": false, "1": false, "_": false, "\x01": false, "\uFFFD": false, "\xff": false} {
		if got := validSeparator(text); got != want {
			t.Errorf("validSeparator(%q) = %v", text, got)
		}
	}
}

func TestColumnHints(t *testing.T) {
	for column, want := range map[string]string{"Figuratve": `did you mean "figurative"?`, "xxxxxxxx": `its columns are "id", "split", "figurative"`} {
		_, err := Open(folder(t, map[string]string{"a.csv": figsimHeader + testRow, SettingsName: "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\ncolumns.figurative = \"" + column + "\"\n"}), Options{})
		if err == nil || !strings.Contains(err.Error(), "hint: "+want) {
			t.Errorf("column %s: %v, want the hint %s", column, err, want)
		}
	}
}

func TestReleaseDate(t *testing.T) {
	for in, want := range map[string]string{"": "", "\"\"": "", "2025-02-28": "2025-02-28", "\"2025-02-28\"": "2025-02-28", "2025-02-28T12:00:00": "2025-02-28", "2025-02-28T12:00:00Z": "2025-02-28", "\"2025-02-30\"": "!", "7": "!", "12:00:00": "!"} {
		text := "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n"
		if in != "" {
			text += "date = " + in + "\n"
		}
		s, err := parseSettings([]byte(text), SettingsName)
		if want == "!" {
			matchPlaces(t, places(t, err), []string{"release.toml:4:1 date is not a date"})
		} else if err != nil || s.date != want {
			t.Errorf("date = %s: %q, %v, want %q", in, s.date, err, want)
		}
	}
}

func TestOpenRefusesWhatIsNoRelease(t *testing.T) {
	dir := folder(t, map[string]string{"a.csv": figsimHeader})
	if _, err := Open(filepath.Join(dir, "none.csv"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v, want ErrNotExist", err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "rehydrate init DIR --manifest FILE") {
		t.Errorf("a folder without release.toml: %v, want a hint of init", err)
	}
	for _, name := range []string{"a.json", "a.xlsx", "a", "a.txt"} {
		if _, err := bare(t, name, "x"); err == nil || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("%s: %v, want a hint", name, err)
		}
	}
	if _, err := bare(t, "a.parquet", "PAR1"); err == nil || !strings.Contains(err.Error(), "save the manifest as CSV") {
		t.Errorf("Parquet without a reader: %v", err)
	}
}

func TestSymlinkCannotLeaveTheFolder(t *testing.T) {
	outside := filepath.Join(folder(t, map[string]string{"a.csv": figsimHeader + testRow}), "a.csv")
	dir := folder(t, map[string]string{"release.toml": "name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n"})
	if err := os.Symlink(outside, filepath.Join(dir, "a.csv")); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	matchPlaces(t, places(t, err), []string{`release.toml:2:1 manifest "a.csv" cannot be opened: path escapes from parent`})
}

func TestBareGuessesSeparator(t *testing.T) {
	for _, sign := range separators {
		text := figsimHeader + "abc,train,\"F1" + sign + "F3\",SS1,\"SR1" + sign + "SR2\",M1,C1\nabd,train,F1,SS1,SR1,M1,C1\n"
		if got := entries(t, "a.csv", text)[0].Labels[0]; !reflect.DeepEqual(got, []int{0, 2}) {
			t.Errorf("separator %q: labels %v, want [0 2]", sign, got)
		}
	}
}

func TestBareFindsColumnsByAlias(t *testing.T) {
	text := "Set,Permalink,Figurative Phenomenon,suicide-severity scale,Suicide-related Content,MODALITY,Context\n" +
		"dev,https://redd.it/abc,Metaphor,Suicide death,Protective factors,Image,Context required\n"
	want := []Entry{{Key: Key{ID: "abc"}, Line: 2, Split: "dev", Labels: [][]int{{0}, {5}, {2}, {2}, {1}}}}
	if diff := cmp.Diff(want, entries(t, "a.csv", text)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestCheckCountsBeyondTheLimit(t *testing.T) {
	var b strings.Builder
	b.WriteString(figsimHeader + testRow)
	for range MaxProblems + 5 {
		b.WriteString("t1_x,train,F1,SS1,SR1,M1,C1\n")
	}
	_, err := checked(t, "a.csv", b.String())
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) != MaxProblems || problems.More != 5 {
		t.Errorf("got %v, want %d problems and 5 more", err, MaxProblems)
	}
}

func TestEntriesStops(t *testing.T) {
	text := figsimHeader + testRow + "abd,train,F1,SS1,SR1,M1,C1\nt1_x,train,F1,SS1,SR1,M1,C1\nabe,train,F1,SS1,SR1,M1,C1\n"
	r, err := bare(t, "a.csv", text)
	if err != nil {
		t.Fatal(err)
	}
	n, failed := 0, error(nil)
	for _, err := range r.Entries(t.Context()) {
		if failed = err; err == nil {
			n++
		}
	}
	if got := places(t, failed); n != 3 || len(got) != 1 || !strings.HasPrefix(got[0], "a.csv:4:1") {
		t.Errorf("%d entries, then %q, want 3 and the problem of line 4", n, got)
	}
	for range r.Entries(t.Context()) { // leaving early must not panic
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, failed = 0, nil
	for _, err := range r.Entries(ctx) {
		if failed = err; err == nil {
			n++
		}
		cancel()
	}
	if n != 1 || !errors.Is(failed, context.Canceled) {
		t.Errorf("cancelled: %d entries, %v, want 1 and context.Canceled", n, failed)
	}
	if _, err := r.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled check: %v", err)
	}
}

func TestChangedManifestIsNoticed(t *testing.T) {
	r, err := bare(t, "a.csv", figsimHeader+testRow)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.ManifestPath, []byte(figsimHeader+"abd,train,F1,SS1,SR1,M1,C1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("error %v, want one of the change", err)
	}
}

func TestParquetManifest(t *testing.T) {
	columns := strings.Split(strings.TrimSpace(figsimHeader), ",")
	rows := [][]Cell{
		{text("abc"), text("train"), items("F1", "F3"), text("SS1"), items(), text("M1"), {Null: true}},
		{text("t1_x"), text("train"), items("F1"), text("SS1"), items(), text("M1"), text("C1")},
	}
	broken := errors.New("page is corrupt")
	for _, test := range []struct {
		rows [][]Cell
		err  error
		want string
	}{
		{rows[:1], nil, ""},
		{rows, nil, "a.parquet:2:1 \"t1_x\" is the id of a comment"},
		{rows[:1], broken, "a.parquet: row 2: page is corrupt"},
	} {
		o := Options{OpenParquet: func(string, []string) (RowReader, error) {
			return &fakeParquet{columns: columns, rows: test.rows, err: test.err}, nil
		}}
		path := filepath.Join(folder(t, map[string]string{"a.parquet": "any"}), "a.parquet")
		r, err := Open(path, o)
		var s Summary
		if err == nil {
			s, err = r.Check(t.Context())
		}
		switch {
		case test.want == "":
			if err != nil || s.Entries != 1 || s.Counts["train"]["figurative"]["F3"] != 1 {
				t.Errorf("summary %+v, %v", s, err)
			}
		case test.err == nil && strings.HasPrefix(test.want, "a.parquet"):
			matchPlaces(t, places(t, err), []string{test.want})
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("error %v, want %q", err, test.want)
		}
		if test.err != nil && !errors.Is(err, test.err) {
			t.Errorf("error %v does not wrap the reader's", err)
		}
	}
}

// A value that cannot be used is told beside the row's other problems, and only where its
// column is used; of the others no cell is asked for.
func TestParquetFaults(t *testing.T) {
	columns := strings.Split("subreddit,"+strings.TrimSpace(figsimHeader)+",unused", ",")
	fault := Cell{Text: "memes", Fault: "is a list with a null in it"}
	rows := [][]Cell{
		{text("memes"), text("abc"), text("train"), items("F1"), text("SS1"), items(), text("M1"), text("C1"), fault},
		{text("memes"), text("t1_x"), fault, fault, text("SS9"), items(), text("M1"), text("C1"), fault},
		{fault, text("abd"), text("train"), items("F1"), text("SS1"), items(), text("M1"), text("C1"), fault},
		{text("memes"), {Text: "100000", Float: true}, text("train"), items("F1"), text("SS1"), items(), text("M1"), text("C1"), fault},
	}
	var wanted [][]string
	o := Options{OpenParquet: func(_ string, want []string) (RowReader, error) {
		wanted = append(wanted, want)
		return &fakeParquet{columns: columns, rows: rows}, nil
	}}
	r, err := Open(filepath.Join(folder(t, map[string]string{"a.parquet": "any"}), "a.parquet"), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, failed := range r.Entries(t.Context()) {
		if err = failed; err == nil {
			got = append(got, string(e.ID)+" "+e.Subreddit)
		}
	}
	matchPlaces(t, places(t, err), []string{
		`a.parquet:2:2 "t1_x" is the id of a comment`, "a.parquet:2:3 the value is a list with a null in it", "a.parquet:2:4 the value is a list with a null in it",
		`a.parquet:2:5 "SS9" is not a label`, `a.parquet:4:2 "100000" is not a post id but a floating-point number`,
	})
	if diff := cmp.Diff([]string{"abc memes", "abd "}, got); diff != "" {
		t.Errorf("good entries (-want +got):\n%s", diff)
	}
	used := []string{"id", "split", "subreddit", "figurative", "severity", "related_content", "modality", "context"}
	if diff := cmp.Diff([][]string{{}, used}, wanted); diff != "" { // the names, then the check
		t.Errorf("columns asked for (-want +got):\n%s", diff)
	}
}

func TestParquetOpenProblem(t *testing.T) {
	o := Options{OpenParquet: func(path string, _ []string) (RowReader, error) {
		return nil, &Problem{File: path, Line: 1, Message: "cut off", Hint: "copy it once more"}
	}}
	_, err := Open(filepath.Join(folder(t, map[string]string{"a.parquet": "any"}), "a.parquet"), o)
	matchPlaces(t, places(t, err), []string{"a.parquet:1:0 cut off"})
}

// endless gives rows of which none can be used, one more than are read.
type endless struct{ n int }

func (*endless) Columns() []string {
	return []string{"id", "figurative", "severity", "related_content", "modality", "context"}
}
func (*endless) Close() error { return nil }
func (e *endless) Next() ([]Cell, error) {
	if e.n++; e.n > maxRows+1 {
		return nil, io.EOF
	}
	return nil, &Problem{Message: "bad"}
}

func TestTooManyRows(t *testing.T) {
	o := Options{OpenParquet: func(string, []string) (RowReader, error) { return &endless{}, nil }}
	r, err := Open(filepath.Join(folder(t, map[string]string{"a.parquet": "any"}), "a.parquet"), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Check(t.Context())
	var problems *Problems
	if !errors.As(err, &problems) || problems.More != maxRows+1-MaxProblems {
		t.Errorf("%v, want a problem of every row and one of their number", err)
	}
	r.openParquet = func(string, []string) (RowReader, error) { return &endless{n: 1}, nil }
	if _, err = r.Check(t.Context()); !errors.As(err, &problems) || problems.More != maxRows-MaxProblems {
		t.Errorf("%v, want a problem of each of 1,000,000 rows", err)
	}
}

func TestManySplitsAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString(figsimHeader)
	for i := range maxSplits + 1 {
		fmt.Fprintf(&b, "a%d,s%d,F1,SS1,SR1,M1,C1\n", i, i)
	}
	_, err := checked(t, "a.csv", b.String())
	matchPlaces(t, places(t, err), []string{`a.csv:66:5 split "s64" is the 65th`})
}

func FuzzSettings(f *testing.F) {
	f.Add("name = \"x\"\nmanifest = \"a.csv\"\nschema = \"figsim\"\n[columns]\nid = \"x\"\nfigurative = {F1 = \"a\"}\n[labels]\nseparator = \";\"\n[labels.severity]\nlow = \"SS1\"\n")
	f.Add("[[category]]\nname = \"m\"\nkind = \"multi\"\nlabels = [{code = \"A\", name = \"b\", exclusive = true}]\n")
	f.Add("a.\"b.c\" = [{d = 1}, {e = [1, 2]}] # x\n[[f]]\n'g' = 1979-05-27 07:32:00\n[[f.h]]\n[f.h.i]\n[[f]]")
	f.Add("citation = \"\"\"\n\"\"\"\"\"\nname.x = 1979-05-27T07:32:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		settings, err := parseSettings([]byte(s), "release.toml")
		if err != nil {
			places(t, err)
			return
		}
		if settings.file.Name == "" || len(settings.schema.Categories) == 0 || !filepath.IsLocal(settings.file.Manifest) {
			t.Fatalf("accepted %q", s)
		}
		for i := range settings.schema.Categories {
			if message, _ := settings.schema.Categories[i].fault(); message != "" {
				t.Fatalf("accepted %q: %s", s, message)
			}
		}
	})
}
