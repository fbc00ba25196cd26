package publish

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/study"
)

// compared is an agreement of two annotators and of who decided, of one category with numbers and one without.
func compared(change func(*study.Agreement)) *study.Agreement {
	alpha, observed := 0.625, 0.999
	a := &study.Agreement{Agreement: labels.Agreement{Annotators: []string{"A1", "A2"}, Deciders: []string{"A3"},
		Categories: []labels.CategoryAgreement{
			{Name: "tone", Entries: 7, Alpha: labels.Alpha{Value: &alpha, Distance: "nominal"}, Observed: &observed},
			{Name: "mood"}}}}
	if change != nil {
		change(a)
	}
	return a
}

// TestDatasheetSays: what the program knows of a release stands in its datasheet as a reader needs it, and what it does
// not know is not said.
func TestDatasheetSays(t *testing.T) {
	kind := func(kind string) string { return strings.Replace(bare, `"single"`, `"`+kind+`"`, 1) }
	agreed := func(change func(*study.Agreement)) func(*Config) {
		return func(c *Config) { c.Agreement = compared(change) }
	}
	const rows = "id,split,tone\nabc1,dev,a\nabc2,test,b\nabc3,test,\n"
	const told = "version = \"2.0\"\ndate = \"2026-02-03\"\nlicense = \"CC BY 4.0\"\n" +
		"homepage = \"https://example.org/set\"\ncitation = \"One,\\nTwo.\"\n" + bare
	for _, test := range []struct {
		name, settings, rows string
		change               func(*Config)
		want, not            string // of the datasheet
	}{
		{"the sections", bare, rows, nil, "\n## Composition\n\n### What do the instances represent?\n", ""},
		{"who was compared", bare, rows, agreed(nil),
			"2 annotators were compared (`agreement.json`); A3, who decided where others differed, was left out.\n",
			"not in the release"},
		{"numbers to two digits, - for none", bare, rows, agreed(nil), "| tone | 7 | 0.62 | - | nominal | - | 1.00 |",
			"| mood |"},
		{"how kappa of two is made", bare, rows, agreed(nil), "kappa is Cohen's.\n", "the mean over the pairs"},
		{"how kappa of three is made", bare, rows,
			agreed(func(a *study.Agreement) { a.Annotators = append(a.Annotators, "A4") }), "the mean over the pairs",
			"Cohen's.\n"},
		{"an entry that is not there", bare, rows, agreed(func(a *study.Agreement) { a.Unknown = 1 }),
			" 1 entry that they annotated is not in the release", "entries that they"},
		{"entries that are not there", bare, rows, agreed(func(a *study.Agreement) { a.Unknown = 2 }),
			" 2 entries that they annotated are not in the release", "entry that they"},
		{"nothing was compared", bare, rows, nil, "*Open.* (`preprocessing.done`)", "were compared"},
		{"one label", bare, rows, nil, "**tone** (`tone`, one label):", ""},
		{"a scale", kind("ordinal"), rows, nil, "(`tone`, one label of a scale):", ""},
		{"several labels", kind("multi"), rows, nil, "(`tone`, several labels):", ""},
		{"a name that would end a cell", strings.Replace(bare, "B side", "B | side", 1), rows, nil,
			`| b | B \| side | 1 |`, ""},
		{"splits by their entries", bare, rows, nil, "test (2 entries), dev (1 entries).", ""},
		{"columns", bare, rows, nil, "The columns `id`, `split`, `tone`.", "have digests"},
		{"digests", bare, "id,tone,phash\nabc1,a,00112233445566ff\nabc2,a,\n", nil, "1 entries have digests", ""},
		{"nobody is gone", bare, rows, nil, "can be rebuilt by nobody", "known to be gone"},
		{"how long an answer is good", bare, rows, nil, "last seen live more than 48 hours ago", ""},
		{"how long by the policy", bare, rows, func(c *Config) { c.Policy.Reddit.RecheckWithin = 90 * time.Minute },
			"last seen live more than 1.5 hours ago", ""},
		{"its name and version", told, rows, nil, "# Datasheet of Set 2.0\n", ""},
		{"how it is cited, in a line", told, rows, nil, "Please cite: One, Two.\n", ""},
		{"when it was made", told, rows, nil, "\nVersion of 2026-02-03.\n", ""},
		{"its licence", told, rows, nil, "\nCC BY 4.0\n", ""},
		{"its home page", told, rows, nil, "\nhttps://example.org/set\n", ""},
		{"no citation and no date", bare, rows, nil, "(`distribution.when`)", "Please cite"},
		{"no licence", bare, rows, nil, "(`distribution.license`)", ""},
		{"no home page", bare, rows, nil, "(`maintenance.host`)", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			made, _, err := published(t, map[string]string{"release.toml": test.settings, "a.csv": test.rows}, test.change)
			testkit.OK(t, err)
			if !strings.Contains(made[DatasheetName], test.want) {
				t.Errorf("the datasheet lacks %q:\n%s", test.want, made[DatasheetName])
			}
			if test.not != "" && strings.Contains(made[DatasheetName], test.not) {
				t.Errorf("the datasheet says %q:\n%s", test.not, made[DatasheetName])
			}
		})
	}
}

// TestAgreementFile: agreement.json has the numbers, and no name of a question that is not the release's.
func TestAgreementFile(t *testing.T) {
	made, report, err := published(t, two, func(c *Config) {
		c.Agreement = compared(func(a *study.Agreement) {
			a.Ignored, a.Unknown = []string{"who are you"}, 4
			a.Missing = []study.MissingWords{{Annotator: "A1", Category: "mood", Cells: 2, As: "NA"}}
		})
	})
	testkit.OK(t, err)
	var got study.Agreement
	testkit.OK(t, json.Unmarshal([]byte(made[AgreementName]), &got))
	missing := []study.MissingWords{{Annotator: "A1", Category: "mood", Cells: 2, As: "NA"}}
	want := *compared(func(a *study.Agreement) { a.Unknown, a.Missing = 4, missing })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agreement.json (-want +got):\n%s", diff)
	}
	testkit.Same(t, "words for missing values", missing, report.Missing)
	if !strings.HasSuffix(made[AgreementName], "}\n") || report.Unknown != 4 {
		t.Errorf("%d unknown, %q", report.Unknown, made[AgreementName])
	}
	if made, _, _ := published(t, two, nil); made[AgreementName] != "" {
		t.Errorf("an agreement of nobody: %s", made[AgreementName])
	}
}

// TestReport: what the command says was published is what the folder holds.
func TestReport(t *testing.T) {
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	files := map[string]string{"release.toml": "version = \"3\"\n" + bare,
		"a.csv": "id,image,tone,phash\nabc1,0,a,\nabc1,1,a,00112233445566ff\nabc2,0,b,\n"}
	made, report, err := published(t, files, func(c *Config) {
		c.Policy.Access.GrantRequired = true
		c.Tombstones = []manifest.Tombstone{{ID: "abc2", State: manifest.StateDeleted, Time: at}}
	})
	testkit.OK(t, err)
	testkit.Same(t, "name, version and counts", "Set 3 3 2 1 1 0 true",
		fmt.Sprint(report.Name, " ", report.Version, " ", report.Entries, " ", report.Posts, " ", report.WithDigests, " ",
			report.Tombstones, " ", report.Checked, " ", report.Grants))
	r, err := manifest.Open(report.Path, manifest.Options{})
	testkit.OK(t, err)
	testkit.Same(t, "the digest that a grant names", r.Digest, report.Digest)
	sums := ""
	for _, f := range report.Files {
		if f.Name != manifest.SumsName {
			sums += f.SHA256 + "  " + f.Name + "\n"
		}
	}
	testkit.Same(t, "SHA256SUMS", sums, made[manifest.SumsName])
}

// TestWhereTo: a folder that holds something is refused and keeps it, and what a killed publish left is no part of the
// next one.
func TestWhereTo(t *testing.T) {
	for _, test := range []struct {
		name string
		put  string // a file, from beside the folder to make
		want string // a part of the error; "" for none
	}{
		{"a file in the folder", "out/notes.txt", "is not empty: it has notes.txt; name a new folder"},
		{"a file in its place", "out", "--out: "},
		{"what a kill left", durable.TempPrefix + "out/release.toml", ""},
		{"in a folder that is not there", "other", "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var files []string
			dir := t.TempDir()
			for name, text := range two {
				testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			parent := filepath.Join(dir, "parent")
			at := filepath.Join(parent, test.put)
			testkit.OK(t, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte("mine"), 0o600))
			r, err := manifest.Open(dir, manifest.Options{})
			testkit.OK(t, err)
			to := filepath.Join(parent, "out")
			if test.put == "other" {
				to = filepath.Join(parent, "none", "out")
			}
			_, err = Publish(t.Context(), Config{Release: r, To: to})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			testkit.OK(t, filepath.WalkDir(parent, func(name string, d os.DirEntry, err error) error {
				if !d.IsDir() && filepath.Dir(name) != to {
					files = append(files, name)
				}
				return err
			}))
			if body, err := os.ReadFile(at); test.want != "" && (string(body) != "mine" || err != nil) {
				t.Errorf("somebody's file is %q, %v", body, err)
			} else if test.want == "" && len(files) > 0 {
				t.Errorf("%v is left", files)
			}
		})
	}
}

// TestRefusesHalf: where a part of what is to be published is missing, nothing is.
func TestRefusesHalf(t *testing.T) {
	revoked := map[string]string{"release.toml": "revocations = \"gone.json\"\n" + bare, "a.csv": two["a.csv"]}
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for name, text := range revoked {
			files[name] = text
		}
		return files
	}
	for _, test := range []struct {
		name   string
		files  map[string]string
		change func(*Config)
		want   string // a part of the error; "" for none
	}{
		{"a post without a split", two, func(c *Config) { c.Splits = map[manifest.PostID]string{"abc1": "train"} },
			"--split: the file does not name the split of abc2"},
		{"revocations without a signature", with("gone.json", "{}"), nil, "makes every grant invalid: the release pins no"},
		{"revocations without a signature that are wanted", with("gone.json", "{}"),
			func(c *Config) { c.Keep = []string{manifest.RevocationsName} }, ""},
		{"a tombstone of the future", two, func(c *Config) {
			c.Tombstones = []manifest.Tombstone{{ID: "abc1", State: manifest.StateRemoved, Time: c.Now.AddDate(1, 0, 0)}}
		}, "the tombstone of abc1 is of 2027-11-27T12:00:00Z, which is in the future"},
		{"no revocations, though the release names them", with("gone.json", "{}"),
			func(c *Config) { c.Release.RevocationsPath += "x" }, "gone.jsonx"},
		{"no policy, though the release had one", two, func(c *Config) { c.Release.PolicyPath = "none.toml" }, "none.toml"},
		{"no policy, and an agreement", two, func(c *Config) {
			c.Release.PolicyPath, c.Agreement = "none.toml",
				compared(nil)
		},
			"none.toml"},
		{"a fault in the annotations", map[string]string{"release.toml": bare, "a.csv": "id,tone\nabc1,q\n"}, nil, `"q"`},
	} {
		made, _, err := published(t, test.files, test.change)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
		if _, signed := made[manifest.RevocationsName+manifest.SignatureSuffix]; signed {
			t.Errorf("%s: a signature that nobody gave", test.name)
		}
	}
}

// TestSearched: of words that stand in an image those of this program and of few words are nobody's, and of many faults
// the first twenty are named.
func TestSearched(t *testing.T) {
	files := map[string]string{"release.toml": bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n",
		"a.csv": "id,tone,note\nabc1,a,they made the whole office laugh\n"}
	answer := func(c *Config) { c.Answers = Answers{"uses": {"other": "A cat\nsat on the\n\"mat\" of a king."}} }
	for _, test := range []struct {
		name, image string
		change      func(*Config)
		want        string // a part of the error; "" for none
		checked     int
	}{
		{"nothing in the image", "", nil, "", 0},
		{"a question of the datasheet", "Who funded the creation of the dataset?", nil, "", 1},
		{"a line of the policy", "hosts an image may come from", nil, "", 1},
		{"four words in a row", "they made the whole cake", nil, "", 1},
		{"five words over lines, in an answer", "on the mat of a", answer, "datasheet.md line", 1},
		{"five words with others before", "so they made the whole office", nil,
			"annotations.csv: 5 words in a row that stand in an image", 1},
	} {
		_, report, err := published(t, files, func(c *Config) {
			c.Workspace, c.Keep = known(t, c.Release, test.image), []string{"note"}
			if test.change != nil {
				test.change(c)
			}
		})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
		testkit.Same(t, test.name+": images", test.checked, report.Checked)
	}
	rows := "id,tone,note\n"
	for i := range 30 {
		rows += fmt.Sprintf("abc%d,a,by u/some_body\n", i)
	}
	files["a.csv"] = rows
	_, _, err := published(t, files, func(c *Config) { c.Keep = []string{"note"} })
	if n := strings.Count(fmt.Sprint(err), "the name of a Reddit user"); n != 20 {
		t.Errorf("%d faults are named: %v", n, err)
	}
}

// TestExamineShows: each part of a release is shown with how many values it has, and what names somebody is looked at.
func TestExamineShows(t *testing.T) {
	signed := "[[signer]]\nname = \"office\"\nkey = \"ssh-ed25519 AAAA\"\n"
	rows := "id,tone,subreddit\n"
	for i := range 25 {
		rows += fmt.Sprintf("abc%d,a,sub%d\n", i, i)
	}
	many := "id,tone,note\n"
	for i := range 30 {
		many += fmt.Sprintf("abc%d,a,Anna Schmidt%s\n", i, strings.Repeat("a", i))
	}
	note := bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n"
	for _, test := range []struct {
		name, settings, rows string
		change               func(*Config)
		what                 string // of the item
		want                 string // how many different and shown values, how many looks
	}{
		{"the version", "version = \"two\"\n" + bare, two["a.csv"], nil, "version", "1 1 0"},
		{"the licence", "license = \"CC0\"\n" + bare, two["a.csv"], nil, "license", "1 1 0"},
		{"the home page", "homepage = \"https://example.org/\"\n" + bare, two["a.csv"], nil, "homepage", "1 1 0"},
		{"a citation that names somebody", "citation = \"By Anna Schmidt.\"\n" + bare, two["a.csv"], nil, "citation",
			"1 1 1"},
		{"signers", bare + signed, two["a.csv"], nil, "names of signers", "1 1 0"},
		{"no signers", bare, two["a.csv"], nil, "names of signers", ""},
		{"no agreement", bare, two["a.csv"], nil, "names of batches", ""},
		{"no subreddits", bare, two["a.csv"], nil, "subreddit", ""},
		{"more subreddits than are shown", bare, rows, nil, "subreddit", "25 20 0"},
		{"no answers", bare, two["a.csv"], nil, "answers of the datasheet", ""},
		{"answers, but for empty ones", bare, two["a.csv"],
			func(c *Config) { c.Answers = Answers{"uses": {"other": "x", "tasks": "  "}} }, "answers of the datasheet",
			"1 1 0"},
		{"more names than are looked at", note, many, func(c *Config) { c.Keep = []string{"note"} }, "column note",
			"30 30 20"},
	} {
		review, err := examined(t, map[string]string{"release.toml": test.settings, "a.csv": test.rows}, test.change)
		testkit.OK(t, err)
		got := ""
		for _, item := range review.Items {
			if item.What == test.what {
				got = fmt.Sprint(item.Different, " ", len(item.Values), " ", len(item.Looks))
			}
		}
		testkit.Same(t, test.name, test.want, got)
	}
}
