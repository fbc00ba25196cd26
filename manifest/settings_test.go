package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/value"
)

// TestStrictSettings gives the line at which each wrong release.toml is refused.
func TestStrictSettings(t *testing.T) {
	const head = "name = \"x\"\nmanifest = \"a.csv\"\n"
	const own = head + "[[category]]\nname = \"mood\"\nkind = \"multi\"\n"
	const labelA = "labels = [{code = \"A\"}]\n"
	const signer = figsimTOML + "[[signer]]\nname = \"One\"\nkey = \"ssh-ed25519 AAAA\"\n[[signer]]\n"
	named := func(manifest string) string {
		return "name = \"x\"\nschema = \"figsim\"\nmanifest = \"" + manifest + "\"\n"
	}
	for _, c := range []struct {
		text string
		want []string // after release.toml:
	}{
		{"", []string{"1:0 the release has no name", "1:0 the release does not name a manifest"}},
		{"\ufeff" + figsimTOML + "\nlicence = \"x\"\n", []string{`5:1 unknown key "licence"`}},
		{"\ufeff \n" + figsimTOML + "x = [1,\n", []string{"5:8 not valid TOML"}},
		{"\xff\xfen\x00", []string{"1:1 the file is in UTF-16"}},
		{figsimTOML + "x = [1,\n", []string{"4:8 not valid TOML"}},
		{figsimTOML + "\nlicence = \"x\"\n", []string{`5:1 unknown key "licence"`}},
		{figsimTOML + "\nLicense.a = \"x\"\n", []string{`5:1 unknown key "License"`}},
		{figsimTOML + "date = \"May\"\n", []string{"4:1 date is not a date"}},
		{figsimTOML + "license = \"a\\nb\"\n", []string{"4:1 license is not one line"}},
		{figsimTOML + "format = \"xls\"\n", []string{`4:1 format "xls" is not known`}},
		{named("../a.csv"), []string{`3:1 manifest "../a.csv" cannot be opened: path escapes`}},
		{named("/etc/a.csv"), []string{`3:1 manifest "/etc/a.csv" cannot be opened: path escapes`}},
		{named("b.csv"), []string{`3:1 manifest "b.csv" cannot be opened: there is no such file`}},
		{named("sub.csv"), []string{`3:1 manifest "sub.csv" cannot be opened: it is a folder without`}},
		{named("link.csv"), []string{`3:1 manifest "link.csv" cannot be opened: path escapes from parent`}},
		{named("a.xlsx"), []string{`3:1 manifest "a.xlsx" cannot be opened: there is no such file`}},
		{figsimTOML + "policy = \"p/../../x\"\n", []string{"4:1 policy \"p/../../x\" cannot be opened"}},
		{figsimTOML + "tombstones = \"t.csv\"\n", []string{`4:1 tombstones "t.csv" cannot be opened`}},
		{figsimTOML + "revocations = \"r.json\"\n", []string{`4:1 revocations "r.json" cannot be opened`}},
		{head + "schema = \"other\"\n", []string{`3:1 schema "other" is not built in`}},
		{figsimTOML + "[[category]]\nname = \"mood\"\n", []string{"3:1 the release has both schema and"}},
		{own, []string{"4:1 category mood has no labels"}},
		{own + "labels = [{code = \"A\", colour = 1}]\n", []string{`6:24 unknown key "colour" in [category.labels]`}},
		{own + "labels = [{code = \"A\"}, {code = \"b\", name = \"a\"}]\n", []string{`4:1 "a" means two labels`}},
		{own + "labels = [{code = \"A\"}, {code = \"A\"}]\n", []string{`4:1 "A" means two labels`}},
		{own + "labels = [{code = \"A|B\"}]\n", []string{`1:0 code "A|B" of category mood holds the separator`}},
		{strings.Replace(own, "mood", "width", 1) + labelA, []string{`4:1 category name "width" is taken`}},
		{strings.Replace(own, "mood", "33", 1) + labelA, []string{`4:1 category name "33" cannot be a column`}},
		{strings.Replace(own, "multi", "many", 1) + labelA, []string{`4:1 category mood has kind "many"`}},
		{strings.Replace(own, "multi", "single", 1) + "labels = [{code = \"A\", exclusive = true}]\n",
			[]string{`4:1 label "A" of category mood is exclusive`}},
		{own + labelA + "[[category]]\nname = \"Mood\"\nkind = \"single\"\n" + labelA,
			[]string{`8:1 two categories or columns are named "Mood"`}},
		{figsimTOML + "[columns]\nsplits = \"x\"\n", []string{`5:1 unknown key "splits" in [columns]`}},
		{figsimTOML + "[columns]\nid = \"\"\n", []string{"5:1 id does not name a column"}},
		{figsimTOML + "[columns]\nid = {a = \"b\"}\nfigurative = \"\"\n",
			[]string{"5:1 id is not a text", "6:1 figurative does not name a column"}},
		{figsimTOML + strings.Repeat("#", maxTOML), []string{"1:0 the file is larger than 512 KiB"}},
		{figsimTOML + "[columns]\nid = \"split\"\nsplit = \"split\"\n", []string{`6:1 column "split" is given to both`}},
		{figsimTOML + "[columns]\nid = \"id\"\nfigurative = {F1 = \"id\", F2 = \"a\", F3 = \"a\"}\n",
			[]string{`5:1 column "id" is given to both columns.figurative.F1 and columns.id`,
				`6:36 column "a" is given to both`}},
		{figsimTOML + "[columns]\nmodality = \"\"\nfigurative = {F1 = \"\", Metaphor = 1}\n",
			[]string{"5:1 modality does not name a column", `6:15 F1 does not name a column`, "6:24 Metaphor is not a text"}},
		{figsimTOML + "[columns]\nfigurative = {F1 = \"a\", Metaphor = \"b\"}\n",
			[]string{`5:25 label "Metaphor" has two columns`}},
		{figsimTOML + "[columns]\nseverity = {SS1 = \"id\"}\n", []string{"5:13 category severity takes one label"}},
		{figsimTOML + "[columns.figurative]\nF9 = \"id\"\n", []string{`5:1 "F9" is not a label of category figurative`}},
		{figsimTOML + "[columns]\n\nfigurative = {Metaphor = \"nowhere\"} # {\nid = \"identity\"\n",
			[]string{`6:15 the manifest has no column "nowhere"`, `7:1 the manifest has no column "identity"`}},
		{figsimTOML + "columns = {figurative = {F1 = \"nowhere\"}}\n",
			[]string{`4:26 the manifest has no column "nowhere"`}},
		{figsimTOML + "citation = \"\"\"\n[columns]\nid = \\\"\"\"\"\ncolumns.id = \"identity\"\n",
			[]string{`7:9 the manifest has no column "identity"`}},
		{figsimTOML + "[labels]\nmodality = 1\nseparator = 2\nseverity = {x = 3}\n",
			[]string{"5:1 modality is not a text", "6:1 separator is not a text", "7:13 x is not a text"}},
		{figsimTOML + "[labels]\nfigurative = \"x\"\n", []string{"5:1 figurative is not a table"}},
		{figsimTOML + "[labels]\nseparator = \"a\"\n", []string{`5:1 separator "a" cannot part labels`}},
		{figsimTOML + "[labels.severity]\nhigh = \"SS9\"\n", []string{`5:1 "SS9" is not a label of category severity`}},
		{figsimTOML + "[labels.severity]\nss1 = \"SS2\"\n", []string{`5:1 spelling "ss1" already means label "SS1"`}},
		{figsimTOML + "[labels.mood]\nx = \"y\"\n", []string{`4:9 unknown key "mood" in [labels]`}},
		{"zeta = 1\nmanifest = 1\n[columns]\nid = 2\n[[category]]\nalpha = 1\nname = 3\n",
			[]string{`1:1 unknown key "zeta"`, "2:1 manifest is not a text", `6:1 unknown key "alpha" in [category]`,
				"7:1 name is not a text"}},
		{signer, []string{"7:3 the signer's name is not one line"}},
		{signer + "name = \"First \\u202eOffice\"\n", []string{"8:1 the signer's name is not one line"}},
		{signer + "name = \"Two\"\n", []string{"7:3 the signer's key is not"}},
		{signer + "name = \"Two\"\nkey = \"AAAA\"\n", []string{"9:1 the signer's key is not"}},
		{signer + "name = \"One\"\nkey = \"ssh-ed25519 BBBB\"\n", []string{`8:1 two signers are named "One"`}},
		{signer + "name = \"Two\"\nkey = \"ssh-ed25519 AAAA other\"\n",
			[]string{`9:1 the key of "Two" is another signer's too`}},
	} {
		dir := folder(t, map[string]string{SettingsName: c.text, "a.csv": figsimHeader + testRow, "sub.csv/x": ""})
		if err := os.Symlink(file(t, "a.csv", figsimHeader+testRow), filepath.Join(dir, "link.csv")); err != nil {
			t.Fatal(err)
		}
		for i := range c.want {
			c.want[i] = "release.toml:" + c.want[i]
		}
		_, err := Open(dir, Options{})
		wantPlaces(t, c.text, err, c.want...)
	}
}

// TestSchemaLimits reads what is just within each limit, and refuses what is just beyond it.
func TestSchemaLimits(t *testing.T) {
	const head = "name = \"x\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"a\"\nkind = \"multi\"\n"
	for at, c := range map[string]struct {
		text string // %s stands for so many x
		most int
		want string
	}{
		"name": {strings.Replace(head, "name = \"a\"", "name = \"%s\"", 1) + "labels = [{code = \"A\"}]\n", MaxName,
			"4:1 category name"},
		"title":      {head + "title = \"%s\"\nlabels = [{code = \"A\"}]\n", MaxLabelText, "4:1 category a has a title"},
		"code":       {head + "labels = [{code = \"%s\"}]\n", MaxLabelText, "4:1 category a has a label"},
		"label name": {head + "labels = [{code = \"A\", name = \"%s\"}]\n", MaxLabelText, "4:1 category a has a label"},
		"key":        {figsimTOML + "[[signer]]\nname = \"S\"\nkey = \"k %s\"\n", maxSignerKey - 2, "6:1 the signer's key"},
		"single": {strings.Replace(head, "multi", "single", 1) + "labels = [{code = \"A|%s\"}]\n", MaxLabelText - 2,
			"4:1 category a has a label"},
		"one-hot": {head + "labels = [{code = \"A|%s\", name = \"n\"}]\n[columns.a]\nn = \"x\"\n", MaxLabelText - 2,
			"4:1 category a has a label"},
		"about": {figsimTOML + "version = \"%s\"\n", 500, "4:1 version"},
	} {
		read := func(n int) error {
			_, err := parseSettings(fmt.Appendf(nil, c.text, strings.Repeat("x", n)), SettingsName, Options{})
			return err
		}
		if err := read(c.most); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		wantPlaces(t, at, read(c.most+1), "release.toml:"+c.want)
	}
}

func TestSeparators(t *testing.T) {
	for text, want := range map[string]bool{"|": true, " / ": false, "; ": false, "//": true, "§§§": true,
		"§§§§": false, "": false,
		"x": false, "é": false, "1": false, "_": false, "\x01": false, "\uFFFD": false, "\xff": false} {
		if got := validSeparator(text); got != want {
			t.Errorf("validSeparator(%q) = %v", text, got)
		}
	}
	if value.IsLine("a\xff", 9) {
		t.Error("a text that is not UTF-8 is valid")
	}
}

func TestColumnHints(t *testing.T) {
	header := strings.TrimSpace(figsimHeader)
	for _, c := range []struct{ header, column, want string }{
		{header, "Figuratve", `did you mean "figurative"?`},
		{header + ",8,9,10,11,12", "xxxxxxxx",
			`its columns are "id", "split", "figurative", "severity", "related_content", "modality", ` +
				"\"context\", \"8\", \"9\", \"10\", \"11\", \"12\"\n"},
		{header + ",8,9,10,11,12,13,14", "xxxxxxxx", `"12" and 2 more`},
	} {
		column, want := c.column, c.want
		_, err := release(t, figsimTOML+"columns.figurative = \""+column+"\"\n", c.header+"\n")
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("column %s: %v, want the hint %s", column, err, want)
		}
	}
	for header, want := range map[string]string{"id\tsplit": "another separator", "x": "rehydrate init",
		"a;b,c": "rehydrate init"} {
		if _, err := checked(t, "a.csv", header+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("header %s: %v, want the hint %s", header, err, want)
		}
	}
	if _, err := release(t, figsimTOML, "x\n"); err == nil ||
		!strings.Contains(err.Error(), `under [columns]: id = "..."`) {
		t.Errorf("a release without an id column: %v", err)
	}
}

func TestReleaseDate(t *testing.T) {
	for in, want := range map[string]string{`""`: "", "2025-02-28": "2025-02-28", `"2025-02-28"`: "2025-02-28",
		`"2025-02-30"`: "!",
		"7":            "!", "12:00:00": "!", "2025-02-28T12:00:00Z": "!"} {
		s, err := parseSettings([]byte(figsimTOML+"date = "+in+"\n"), SettingsName, Options{})
		if want == "!" {
			wantPlaces(t, in, err, "release.toml:4:1 date is not a date")
		} else if err != nil || s.Date != want {
			t.Errorf("date = %s: %q, %v, want %q", in, s.Date, err, want)
		}
	}
}

// TestNamedFiles finds the files of a release under their usual names and under others.
func TestNamedFiles(t *testing.T) {
	const signers = "[[signer]]\nname = \"First Office\"\nkey = \"ssh-ed25519 AAAAfirst first@example.invalid\"\n"
	files := map[string]string{SettingsName: figsimTOML + signers, "a.csv": figsimHeader + testRow,
		"lists/other.json": "{}"}
	paths := func() []string {
		dir := folder(t, files)
		r, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]Signer{{"First Office", "ssh-ed25519 AAAAfirst first@example.invalid"}},
			r.Signers); diff != "" {
			t.Errorf("signers (-want +got):\n%s", diff)
		}
		return strings.Split(strings.ReplaceAll(strings.Join([]string{r.PolicyPath, r.TombstonesPath, r.RevocationsPath},
			"|"), dir, ""), "|")
	}
	if diff := cmp.Diff([]string{"", "", ""}, paths()); diff != "" {
		t.Errorf("none (-want +got):\n%s", diff)
	}
	files["policy.toml"], files[TombstonesName], files[RevocationsName] = "", "", ""
	if diff := cmp.Diff([]string{"/policy.toml", "/tombstones.csv", "/revocations.json"}, paths()); diff != "" {
		t.Errorf("usual names (-want +got):\n%s", diff)
	}
	files[SettingsName] = figsimTOML + "revocations = \"lists/other.json\"\n" + signers
	if diff := cmp.Diff([]string{"/policy.toml", "/tombstones.csv", "/lists/other.json"}, paths()); diff != "" {
		t.Errorf("another name (-want +got):\n%s", diff)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add(figsimTOML + "[columns]\nid = \"x\"\nfigurative = {F1 = \"a\"}\n[labels]\nseparator = \";\"\n[labels.severity]\nlow = \"SS1\"\n")
	f.Add("[[category]]\nname = \"m\"\nkind = \"multi\"\nlabels = [{code = \"A\", name = \"b\", exclusive = true}]\n")
	f.Add("a.\"b.c\" = [{d = 1}, {e = [1, 2]}] # x\n[[f]]\n'g' = 1979-05-27 07:32:00\n[[f.h]]\n[f.h.i]\n[[f]]")
	f.Add("name = \"x\"\nmanifest = \"a.csv\"") // without categories
	f.Add("citation = \"\"\"\n\"\"\"\"\"\nname.x = 1979-05-27T07:32:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		settings, err := parseSettings([]byte(s), SettingsName, Options{})
		if err != nil {
			places(t, err)
			return
		}
		if settings.Name == "" {
			t.Fatalf("accepted %q", s)
		}
		for i := range settings.Schema.Categories {
			if message, _ := settings.Schema.Categories[i].fault(); message != "" {
				t.Fatalf("accepted %q: %s", s, message)
			}
		}
	})
}
