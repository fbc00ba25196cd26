package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/policy"
	"rehydrate/study"
)

// published makes a release of files, publishes it and returns what the folder holds.
func published(t *testing.T, files map[string]string, change func(*Config)) (map[string]string, Report, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r, err := manifest.Open(dir, manifest.Options{})
	testkit.OK(t, err)
	c := Config{Release: r, Policy: policy.Default(), To: filepath.Join(t.TempDir(), "out"), Tool: "1.2.3",
		Now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	if change != nil {
		change(&c)
	}
	report, err := Publish(t.Context(), c)
	made := map[string]string{}
	for _, f := range report.Files {
		b, failed := os.ReadFile(filepath.Join(c.To, f.Name))
		if err == nil {
			testkit.OK(t, failed)
			made[f.Name] = string(b)
		}
	}
	left, failed := os.ReadDir(filepath.Dir(c.To))
	testkit.OK(t, failed)
	if want := map[bool]int{true: 1}[err == nil]; len(left) != want {
		t.Errorf("%d things beside the folder, want %d", len(left), want)
	}
	return made, report, err
}

const bare = "name = \"Set\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"tone\"\nkind = \"single\"\nlabels = [{code = \"a\"}, {code = \"b\", name = \"B side\"}]\n"

// TestPublish: whatever form a release has, what is published holds its entries, in settings without comments and
// spellings.
func TestPublish(t *testing.T) {
	many := strings.Replace(bare, "manifest = \"a.csv\"", "manifest = \"a.jsonl\"\nrows = \"many\"", 1)
	tests := []struct {
		name, settings, file, rows string
		want, says                 string // of the annotations and the settings
	}{
		{"spelled otherwise",
			bare + "[columns]\nid = \"post\"\ntone = \"how\"\n[labels.tone]\n\"Alpha!\" = \"a\"\n# a remark\n", "a.csv",
			"post,how,who\nt3_ABC1,Alpha!,someone\nabc2,B side,\nabc3,,x\n",
			"id,split,tone\nabc1,train,a\nabc2,train,b\nabc3,train,\n", `tone = "tone"`},
		{"of a gallery, with digests and a subreddit", bare, "a.csv",
			"id,image,split,tone,phash,subreddit\nabc1,0,test,a,00112233445566FF,memes\nabc1,2,test,b,,memes\n",
			"id,split,image,phash,subreddit,tone\nabc1,test,0,00112233445566ff,memes,a\nabc1,test,2,,memes,b\n",
			`phash = "phash"`},
		{"of many rows an image", many, "a.jsonl", `{"id":"abc1","tone":"a"}` + "\n" + `{"id":"abc1","tone":"b"}` + "\n",
			`{"id":"abc1","split":"train","tone":"a"}` + "\n" + `{"id":"abc1","split":"train","tone":"b"}` + "\n",
			`rows = "many"`},
		{"with lists and numbers",
			bare + "[[column]]\nname = \"votes\"\ntype = \"integer\"\nlist = true\n[labels]\nseparator = \"|\"\n", "a.csv",
			"id,tone,votes\nabc1,a,3|4\nabc2,b,\n",
			`{"id":"abc1","split":"train","tone":"a","votes":[3,4]}` + "\n" + `{"id":"abc2","split":"train","tone":"b","votes":null}` + "\n", "list = true"},
		{"with definitions", strings.Replace(bare, "kind =", "description = \"How it \\\"sounds\\\".\"\nkind =",
			1) + "[columns]\ntone = \"how\"\n", "a.csv",
			"id,how\nabc1,a\n", "id,split,tone\nabc1,train,a\n", `description = "How it \"sounds\"."`},
		{"with definitions of labels", strings.Replace(bare, `{code = "a"}`, `{code = "a", description = "It is a."}`, 1),
			"a.csv",
			"id,tone\nabc1,a\n", "id,split,tone\nabc1,train,a\n", `{code = "a", name = "a", description = "It is a."}`},
		{"with a column for each label", strings.Replace(bare, "single", "multi",
			1) + "[columns.tone]\na = \"is_a\"\nb = \"is_b\"\n", "a.csv",
			"id,is_a,is_b\nabc1,1,1\nabc2,0,0\n",
			`{"id":"abc1","split":"train","tone":["a","b"]}` + "\n" + `{"id":"abc2","split":"train","tone":[]}` + "\n",
			`kind = "multi"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			made, _, err := published(t, map[string]string{"release.toml": test.settings, test.file: test.rows}, nil)
			testkit.OK(t, err)
			if diff := cmp.Diff(test.want, made["annotations.csv"]+made["annotations.jsonl"]); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if s := made["release.toml"]; !strings.Contains(s, test.says) || strings.Contains(s, "remark") ||
				strings.Contains(s, "Alpha") {
				t.Errorf("release.toml is\n%s", s)
			}
		})
	}
}

// TestUnfit: words, names and addresses are refused wherever they stand, and the error does not repeat them.
func TestUnfit(t *testing.T) {
	column := func(name string) string { return bare + "[[column]]\nname = \"" + name + "\"\ntype = \"text\"\n" }
	renamed := func(from, to string) string { return column(to) + "[columns]\n" + to + " = \"" + from + "\"\n" }
	label := func(code string) string { return strings.Replace(bare, "[{", `[{code = "`+code+`"}, {`, 1) }
	listed := strings.Replace(column("words"), `"text"`, "\"text\"\nlist = true", 1) + "[labels]\nseparator = \"|\"\n"
	few := ""
	for i := range 30 {
		few += fmt.Sprintf("abc%d,a,x\n", i)
	}
	tests := []struct {
		name, settings, rows string
		keep                 []string
		want                 string // a part of the error; "" for none
	}{
		{"nothing", bare, "id,tone\nabc1,a\n", nil, ""},
		{"a release that names somebody", strings.Replace(bare, "Set", "Labels Anna Schmidt", 1), "id,tone\nabc1,a\n", nil,
			"the name of the release holds the name of a person: change it in release.toml, or publish it with --keep name"},
		{"a release with a name in small letters", strings.Replace(bare, "Set", "anna", 1), "id,tone\nabc1,a\n", nil,
			"the name of the release"},
		{"a release with an address", strings.Replace(bare, "Set", "labels a.b@uni.edu", 1), "id,tone\nabc1,a\n", nil,
			"the name of the release holds a mail address"},
		{"a release with the id of a participant", strings.Replace(bare, "Set", "5f3c1a2b9d8e7f6a5b4c3d2e", 1),
			"id,tone\nabc1,a\n", nil, "the name of the release"},
		{"a release whose name is kept", strings.Replace(bare, "Set", "anna", 1), "id,tone\nabc1,a\n", []string{"name"},
			""},
		{"a title", strings.Replace(bare, "kind", "title = \"anna\"\nkind", 1), "id,tone\nabc1,a\n", nil,
			`the title of category "tone" holds the name of a person`},
		{"a code of a person", label("Anna Schmidt"), "id,tone\nabc1,a\n", nil,
			`the code of label 1 of category "tone" holds the name of a person`},
		{"in small letters", label("maria garcia lopez"), "id,tone\nabc1,a\n", nil, `the code of label 1 of`},
		{"an initial before", label("A. Schmidt"), "id,tone\nabc1,a\n", nil, `the code of label 1 of`},
		{"an initial behind", label("Anna S."), "id,tone\nabc1,a\n", nil, `the code of label 1 of`},
		{"in brackets", label("3 (anna)"), "id,tone\nabc1,a\n", nil, `the code of label 1 of`},
		{"with a sign", label("sad_anna"), "id,tone\nabc1,a\n", nil, `the code of label 1 of`},
		{"a pair", label("anna:pos"), "id,tone\nabc1,a\n", nil,
			`the code of label 1 of category "tone" holds a pair of a person and a label`},
		{"a code that is kept", label("Anna Schmidt"), "id,tone\nabc1,a\n", []string{"tone"}, ""},
		{"a title", column("title"), "id,tone,title\nabc1,a,x\n", nil, `column "title" holds what people wrote`},
		{"a title that is kept", column("title"), "id,tone,title\nabc1,a,x\n", []string{"title"}, ""},
		{"sentences", column("note"), "id,tone,note\nabc1,a,this is what a person wrote there\n", nil,
			`column "note" holds`},
		{"a sentence among words", column("note"), "id,tone,note\n" + few + "abd,a,this is what some person wrote\n", nil,
			`column "note" holds`},
		{"an address among words", column("note"), "id,tone,note\n" + few + "abd,a,https://example.org/some\n", nil,
			`column "note" holds`},
		{"an author", column("author"), "id,tone,author\nabc1,a,x\n", nil, `column "author" is about people`},
		{"a judge", column("judge"), "id,tone,judge\nabc1,a,x\n", nil, `column "judge" is about people`},
		{"an author in German", column("bearbeiter"), "id,tone,bearbeiter\nabc1,a,x\n", nil,
			`column "bearbeiter" is about people`},
		{"a participant", column("code"), "id,tone,code\n" + few + "abd,a,5f2b9c1e8d3a4b0012ab34cd\n", nil,
			`column "code" holds an id as Prolific gives participants, by which a person can be found`},
		{"a worker", column("code"), "id,tone,code\n" + few + "abd,a,A1B2C3D4E5F6G7\n", nil,
			`column "code" holds an id as Mech`},
		{"a telephone number", column("code"), "id,tone,code\nabc1,a,+49 151 2345678\n", nil,
			`column "code" holds a telephone number`},
		{"a researcher", column("code"), "id,tone,code\nabc1,a,0000-0002-1825-0097\n", nil, `column "code" holds an ORCID`},
		{"votes", column("code"), "id,tone,code\nabc1,a,alice:x\nabc2,a,bob:x\n", nil,
			`the values of column "code" look like pairs of a person and a label`},
		{"a column that was an annotator", renamed("rater", "extra"), "id,tone,rater\nabc1,a,x\n", nil,
			`column "extra", which was "rater", is about people`},
		{"a column that was a therapist, and is kept", renamed("therapist", "extra"), "id,tone,therapist\nabc1,a,x\n",
			[]string{"extra"}, ""},
		{"a category that was a user", bare + "[columns]\ntone = \"username\"\n", "id,username\nabc1,a\n", nil,
			`column "tone", which was "username", is about people`},
		{"a column that had another name", renamed("mood", "extra"), "id,tone,mood\nabc1,a,x\n", nil, ""},
		{"one name", column("code"), "id,tone,code\n" + few + "abd,a,Anna Schmidt\n", nil,
			`the values of column "code" look like names of people`},
		{"one name with an initial", column("code"), "id,tone,code\n" + few + "abd,a,H. Meier\n", nil,
			`look like names of people`},
		{"one name in a list", listed, "id,tone,words\n" + few + "abd,a,y|Anna Schmidt\n", nil,
			`the values of column "words" look like names of people`},
		{"one pair in a list", listed, "id,tone,words\n" + few + "abd,a,y|anna:pos\n", nil,
			`the values of column "words" look like pairs of a person`},
		{"one title", column("code"), "id,tone,code\n" + few + "abd,a,Herr Meier\n", nil,
			`column "code" holds the name of a person`},
		{"a sentence in Chinese", column("code"), "id,tone,code\n" + few + "abd,a,今天我很难过我不知道该怎么办才好啊\n", nil,
			`column "code" holds what people wrote`},
		{"a sentence with hyphens", column("code"), "id,tone,code\n" + few + "abd,a,my-cat-is-very-sad-today\n", nil,
			`column "code" holds what people wrote`},
		{"a role with ordinary words", column("victim"),
			"id,tone,victim\nabc1,a,self\nabc2,a,other\nabc3,a,self\nabc4,a,other\n", nil, ""},
		{"a role with other words", column("victim"),
			"id,tone,victim\nabc1,a,xyzzo\nabc2,a,other\nabc3,a,xyzzo\nabc4,a,other\n", nil,
			`column "victim" is about people`},
		{"a column to keep that is not there", bare, "id,tone\nabc1,a\n", []string{"titel"}, `no column "titel"`},
		{"a user in a column that is kept", column("title"), "id,tone,title\nabc1,a,by u/some_body\n", []string{"title"},
			"annotations.csv line 2: the name of a Reddit user"},
		{"a mail address", column("code"), "id,tone,code\nabc1,a,some.body@example.org\n", nil,
			`column "code" holds a mail address`},
		{"a mail address that is kept", column("code"), "id,tone,code\nabc1,a,some.body@example.org\n", []string{"code"},
			"annotations.csv line 2: an e-mail address"},
		{"a link to an image", column("code"), "id,tone,code\nabc1,a,i.redd.it/x.png\n", nil, "the address of"},
		{"a permalink", column("code"), "id,tone,code\nabc1,a,r/memes/comments/abc123/my_title\n", nil, "the address of"},
		{"a permalink without its subreddit", "citation = \"/comments/abc123/my_title\"\n" + bare, "id,tone\nabc1,a\n",
			nil, "release.toml line 2: the address of"},
		{"an old host of images", column("code"), "id,tone,code\nabc1,a,i.reddituploads.com/x\n", nil, "the address of"},
		{"a user in the citation", "citation = \"thanks to /u/some_body\"\n" + bare, "id,tone\nabc1,a\n", nil,
			"release.toml line 2: the name of a Reddit user"},
		{"a folder that begins alike", "homepage = \"https://example.org/u/group/memes\"\n" + bare, "id,tone\nabc1,a\n",
			nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := published(t, map[string]string{"release.toml": test.settings, "a.csv": test.rows},
				func(c *Config) { c.Keep = test.keep })
			if (err == nil) != (test.want == "") || err != nil &&
				(!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "some")) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestKept: the datasheet does not deny what is published all the same.
func TestKept(t *testing.T) {
	files := map[string]string{"release.toml": bare + "[[column]]\nname = \"title\"\ntype = \"text\"\n",
		"a.csv": "id,tone,title\nabc1,a,x\n"}
	made, _, err := published(t, files, func(c *Config) { c.Keep = []string{"title"} })
	testkit.OK(t, err)
	if s := made[DatasheetName]; strings.Contains(s, "no word of a post") || strings.Contains(s, "has no names") ||
		!strings.Contains(s, "hold words, addresses or people: `title`") {
		t.Errorf("the datasheet of a release with titles:\n%s", s)
	}
}

// TestSplits: a post has one split, and a folder that is there and empty is filled.
func TestSplits(t *testing.T) {
	files := map[string]string{"release.toml": bare, "a.csv": "id,tone\nabc1,a\n"}
	made, _, err := published(t, files, func(c *Config) {
		c.Splits = map[manifest.PostID]string{"abc1": "one"}
		testkit.OK(t, os.Mkdir(c.To, 0o700))
	})
	testkit.OK(t, err)
	testkit.Same(t, "annotations", "id,split,tone\nabc1,one,a\n", made["annotations.csv"])
	if _, _,
		err := published(t, files, func(c *Config) { c.Splits = map[manifest.PostID]string{"abc2": "one"} }); err == nil {
		t.Error("a split without the entry was taken")
	}
}

// TestDatasheet: every text that the program knows belongs to a question, answers stand below it, and what has neither
// is open.
func TestDatasheet(t *testing.T) {
	for line := range strings.Lines(datasheetText) {
		key, _, found := strings.Cut(strings.TrimPrefix(line, `{{define "`), `"}}`)
		if strings.HasPrefix(line, "{{define") && found && key != "head" && !strings.Contains(questionsText, "\n"+key+" ") {
			t.Errorf("%s answers no question", key)
		}
	}
	answers, err := ParseAnswers("datasheet.toml",
		[]byte("[motivation]\nfunding = \"Nobody | paid.\"\n[composition]\ncount = \"All.\"\n"))
	testkit.OK(t, err)
	made, report, err := published(t, map[string]string{"release.toml": bare, "a.csv": "id,tone\nabc1,a\nabc2,\n"},
		func(c *Config) { c.Answers = answers })
	testkit.OK(t, err)
	for _, want := range []string{"# Datasheet of Set\n",
		"How many instances are there?\n\n2 entries of 2 posts.\n\nAll.\n", "creation of the dataset?\n\nNobody | paid.\n",
		"| b | B side | 0 |", "1 entries have no label of `tone`", "*Open.* (`uses.tasks`)", "rehydrate 1.2.3"} {
		if !strings.Contains(made[DatasheetName], want) {
			t.Errorf("the datasheet lacks %q:\n%s", want, made[DatasheetName])
		}
	}
	if n := strings.Count(made[DatasheetName], "*Open.*"); n != len(report.Open) || n == 0 {
		t.Errorf("%d questions are open, and the report has %d", n, len(report.Open))
	}
	for text, want := range map[string]string{"[uses]\ntask = \"x\"": "did you mean uses.tasks?",
		"[uses]\ntasks = 3": "tasks", "uses = 1": "uses", "[\"#\"]\nx = \"\"": "no question"} {
		if _, err := ParseAnswers("datasheet.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAnswers(%q): %v, want %q", text, err, want)
		}
	}
}

// TestWindow: five words in a row are found over lines, in any case, between any signs.
func TestWindow(t *testing.T) {
	runs := func(texts ...string) (all []uint64) {
		var w window
		for _, text := range texts {
			w.runs(text, func(run uint64) { all = append(all, run) })
		}
		return all
	}
	testkit.Same(t, "runs", runs("one two three four five six"), runs("ONE, two", "Three: four*five", "", "six"))
	if len(runs("one two three four")) > 0 || len(runs("a b c d e f")) != 2 {
		t.Error("not every five words in a row were taken")
	}
}

// TestSearchFile: words in a row are found in cells with line breaks, however the file writes those.
func TestSearchFile(t *testing.T) {
	const text = `"they made the` + "\n" + `whole office"`
	for name, lines := range map[string]string{
		"annotations.csv":   "id,title\nabc1," + text + "\n",
		"annotations.jsonl": `{"title":"they made the\nwhole\toffice"}` + "\n", "datasheet.md": text,
		"release.toml": strings.Repeat("a ", 100<<10) + "they made the whole office\n",
	} {
		p := &publishing{temp: t.TempDir(),
			Config: Config{Release: &manifest.Release{Schema: manifest.Schema{Columns: []manifest.Column{{Name: "title",
				Type: manifest.TypeText}}}}}}
		testkit.OK(t, os.WriteFile(filepath.Join(p.temp, name), []byte(lines), 0o600))
		words := map[uint64]string{}
		var found []string
		testkit.OK(t, p.searchFile(name, nil, words, &found))
		new(window).runs("They made the whole office.", func(run uint64) {
			if words[run] == "" {
				t.Errorf("%s: the words were not found", name)
			}
		})
	}
}

// TestAccompany: the release's own policy and revocations are handed out as they are, under the names that a release
// has, and tombstones by their time. How maintainers are reached may stand in a datasheet.
func TestAccompany(t *testing.T) {
	files := map[string]string{"release.toml": "revocations = \"gone.json\"\n" + bare, "a.csv": "id,tone\nabc1,a\n",
		"policy.toml": "# ours\n",
		"gone.json":   "{\"of\": \"us@example.org\"}", "gone.json.sig": "signed by u/some_body"}
	at := func(hour int) time.Time { return time.Date(2024, 1, 1, hour, 0, 0, 0, time.UTC) }
	made, _, err := published(t, files, func(c *Config) {
		c.Answers, c.Keep = Answers{"maintenance": {"contact": "us@example.org"}}, []string{manifest.RevocationsName}
		c.Tombstones = []manifest.Tombstone{{ID: "abc1", State: manifest.StateRemoved, Time: at(2)},
			{ID: "zzz9", State: manifest.StateDeleted, Time: at(1)}}
	})
	testkit.OK(t, err)
	for name, want := range map[string]string{PolicyName: files["policy.toml"],
		manifest.RevocationsName:                            files["gone.json"],
		manifest.RevocationsName + manifest.SignatureSuffix: files["gone.json.sig"],
		manifest.TombstonesName:                             "id,state,time\nzzz9,deleted,2024-01-01T01:00:00Z\nabc1,removed,2024-01-01T02:00:00Z\n"} {
		testkit.Same(t, name, want, made[name])
	}
}

// TestNamesOfSplits: no name of a split may name somebody, wherever the split comes from, and each post of --split is
// one of the release.
func TestNamesOfSplits(t *testing.T) {
	const rows = "id,split,tone\nabc1,train,a\nabc2,test,b\n"
	for _, test := range []struct {
		name, rows string
		splits     map[manifest.PostID]string
		keep       []string
		want       string // a part of the error; "" for none
	}{
		{"usual ones", rows, nil, nil, ""},
		{"of the release", strings.Replace(rows, "test", "Anna_Kowalski", 1), nil, nil,
			"the name of split 1 of 2 (13 letters) may name somebody"},
		{"of a file", rows, map[manifest.PostID]string{"abc1": "train", "abc2": "akowalski"}, nil,
			"the name of split 1 of 2 (9 letters) may name somebody"},
		{"kept", rows, map[manifest.PostID]string{"abc1": "train", "abc2": "akowalski"}, []string{"split"}, ""},
		{"of another post", rows, map[manifest.PostID]string{"abc1": "a", "abc2": "b", "abc3": "b"}, nil,
			"--split: the file names 1 posts that the release does not have, such as abc3"},
	} {
		_, _, err := published(t, map[string]string{"release.toml": bare, "a.csv": test.rows}, func(c *Config) {
			c.Splits, c.Keep = test.splits, test.keep
		})
		if said := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(said, test.want) ||
			strings.Contains(said, "owalski") {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestNamesInTexts: descriptions and names of batches are judged as columns are, and the error does not repeat them.
func TestNamesInTexts(t *testing.T) {
	const rows = "id,tone\nabc1,a\nabc2,b\n"
	described := strings.Replace(bare, "kind =", "description = \"Ask Anna Kowalski, ak@uni.de\"\nkind =", 1)
	batch := func(name string) *study.Agreement {
		return &study.Agreement{Batches: []labels.BatchAgreement{{Batch: name}}}
	}
	for _, test := range []struct {
		name, settings string
		agreement      *study.Agreement
		keep           []string
		want           string // a part of the error; "" for none
	}{
		{"a description", described, nil, nil, `the description of category "tone" holds a mail address`},
		{"a description that is kept", described, nil, []string{"tone"}, ""},
		{"a batch", bare, batch("anna kowalski"), nil, "the name of batch 1 of 1 (13 letters) may name somebody"},
		{"a batch of an account", bare, batch("u/jdoe"), nil, "the name of a"},
		{"a batch that is kept", bare, batch("anna kowalski"), []string{"batch"}, ""},
		{"usual batches", bare, batch("batch 3"), nil, ""},
	} {
		_, _, err := published(t, map[string]string{"release.toml": test.settings, "a.csv": rows}, func(c *Config) {
			c.Keep, c.Agreement = test.keep, test.agreement
		})
		if said := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(said, test.want) ||
			strings.Contains(said, "owalski") {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestQuestions: the questions of a new release have no answer yet, and each line takes one when its # is removed.
func TestQuestions(t *testing.T) {
	a, err := ParseAnswers(AnswersName, Questions())
	if err != nil {
		t.Fatal(err)
	}
	for section, answers := range a {
		if len(answers) > 0 {
			t.Errorf("%s has answers: %v", section, answers)
		}
	}
	text := strings.NewReplacer("# ", "", ` = ""`, ` = "an answer"`).Replace(string(Questions()))
	var rows []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[") || strings.HasSuffix(line, "\"an answer\"\n") {
			rows = append(rows, line)
		}
	}
	a, err = ParseAnswers(AnswersName, []byte(strings.Join(rows, "")))
	if err != nil || a["motivation"]["purpose"] != "an answer" || a["composition"]["instances"] != "" {
		t.Errorf("the answers are %v, %v", a, err)
	}
}
