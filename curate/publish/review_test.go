package publish

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/manifest/guess"
	"rehydrate/policy"
	"rehydrate/study"
)

// examined is the review of a release of files, of which nothing may be left.
func examined(t *testing.T, files map[string]string, change func(*Config)) (Review, error) {
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
	review, err := Examine(t.Context(), c)
	left, failed := os.ReadDir(filepath.Dir(c.To))
	testkit.OK(t, failed)
	if len(left) > 0 {
		t.Errorf("%s was left", left[0].Name())
	}
	return review, err
}

// shown gives an item as a line: what it is, its values, and what to look at.
func shown(items []Item) (lines []string) {
	for _, item := range items {
		line := item.What + " | " + item.Holds + " | " + strings.Join(item.Values, ", ")
		for _, look := range item.Looks {
			line += " | " + strings.TrimSpace(look.Value+" "+look.Like)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestExamine: every name and value that would be published is shown, labels that no entry has as well, and what to
// look at stands first.
func TestExamine(t *testing.T) {
	settings := strings.Replace(bare, "{code = \"b\", name = \"B side\"}",
		"{code = \"b\", name = \"by jkim545\"}, {code = \"c\"}", 1) +
		"[[category]]\nname = \"mood\"\ntitle = \"The mood\"\ndescription = \"How it feels.\"\nkind = \"single\"\n" +
		"labels = [{code = \"1\", name = \"sad\", description = \"Tears.\"}]\n" +
		"[[column]]\nname = \"votes\"\ntype = \"integer\"\n[[column]]\nname = \"note\"\ntype = \"text\"\n"
	review, err := examined(t, map[string]string{"release.toml": "citation = \"Ours.\"\n" + settings,
		"a.csv": "id,image,split,tone,mood,votes,note,subreddit\nabc1,0,test,a,1,3,web,memes\nabc2,0,dev,b,,4,,\nabc2,1,dev,b,1,3,print,\n"},
		func(c *Config) {
			c.Agreement = &study.Agreement{Batches: []labels.BatchAgreement{{Batch: "week one"}}}
			c.Answers = Answers{"motivation": {"purpose": "To see.", "funding": " "}}
		})
	testkit.OK(t, err)
	want := []string{
		"category tone | labels | a, b (by jkim545), c | by jkim545 looks like the name of an account",
		"column note | text | web, print | is text that passes through as somebody wrote it",
		"names of batches | in agreement.json | week one | week one is no usual name of a split or batch",
		"name | text | Set", "citation | text | Ours.",
		`category mood | labels of "The mood" | 1 (sad)`, `descriptions of mood | texts | "How it feels.", "Tears."`,
		"split | names | test, dev", "subreddit | names | memes", "column votes | integer | 3, 4",
		"posts and images | ids and digests in columns | id, image",
		`answers of the datasheet | texts of the maintainers | motivation.purpose "To see."`,
	}
	if diff := cmp.Diff(want, shown(review.Items)); diff != "" {
		t.Errorf("the items (-want +got):\n%s", diff)
	}
	if review.Entries != 3 || review.Posts != 2 || review.Name != "Set" {
		t.Errorf("%+v", review)
	}
}

// TestExamineAnnotators: categories that may be those of annotators stand before words that are not known.
func TestExamineAnnotators(t *testing.T) {
	settings, header, row := "name = \"Set\"\nmanifest = \"a.csv\"\n", "id", "abc1"
	for _, name := range []string{"tone", "marlowe", "kvamsdal", "final", "text_mood", "image_mood", "seen", "told"} {
		labels := map[string]string{"tone": `"dark", "schadenfroh"`, "seen": `"yes", "no"`, "told": `"yes", "no"`,
			"text_mood": `"low", "high"`, "image_mood": `"low", "high"`}[name]
		if labels == "" {
			labels = `"humour", "irony", "none"`
		}
		first := strings.Trim(strings.Split(labels, ",")[0], `"`)
		settings += fmt.Sprintf("[[category]]\nname = %q\nkind = \"single\"\nlabels = [{code = %s}]\n", name,
			strings.ReplaceAll(labels, ", ", "}, {code = "))
		header, row = header+","+name, row+","+first
	}
	review, err := examined(t, map[string]string{"release.toml": settings, "a.csv": header + "\n" + row + "\n"}, nil)
	testkit.OK(t, err)
	const asks = ": are they the answers of annotators?"
	want := []string{
		"category marlowe | labels | humour, irony, none | has the labels of kvamsdal, final" + asks,
		"category kvamsdal | labels | humour, irony, none | " +
			"kvamsdal may be a person's name: this program does not know all its words | has the labels of marlowe, final" + asks,
		"category tone | labels | dark, schadenfroh | schadenfroh " + guess.NoWord,
		"name | text | Set", "category final | labels | humour, irony, none", "category text_mood | labels | low, high",
		"category image_mood | labels | low, high", "category seen | labels | yes, no", "category told | labels | yes, no",
	}
	if diff := cmp.Diff(want, shown(review.Items)[:len(want)]); diff != "" {
		t.Errorf("the items (-want +got):\n%s", diff)
	}
}

// TestExamineLogins: accounts of a letter and a family name stand first, beside other labels; where most labels are
// such, publish refuses them.
func TestExamineLogins(t *testing.T) {
	for labels, refused := range map[string]bool{"a_schmidt t_miller": true, "a_schmidt first second": false} {
		codes := strings.Fields(labels)
		settings := "name = \"Set\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"pass\"\nkind = \"single\"\nlabels = [{code = \"" +
			strings.Join(codes, "\"}, {code = \"") + "\"}]\n"
		rows := "id,pass\n"
		for i, code := range codes {
			rows += fmt.Sprintf("abc%d,%s\n", i, code)
		}
		review, err := examined(t, map[string]string{"release.toml": settings, "a.csv": rows}, nil)
		if errors.As(err, new(*Refused)) != refused || !refused && review.Items[0].Looks[0].Value != "a_schmidt" {
			t.Errorf("%s: %v, %+v", labels, err, review.Items)
		}
	}
}

// TestExamineRefuses: what publish refuses is refused before anybody has to read the rest.
func TestExamineRefuses(t *testing.T) {
	files := map[string]string{"release.toml": bare + "[[column]]\nname = \"title\"\ntype = \"text\"\n",
		"a.csv": "id,tone,title\nabc1,a,x\n"}
	_, err := examined(t, files, nil)
	if refused := (*Refused)(nil); !errors.As(err, &refused) {
		t.Errorf("a column of titles: %v", err)
	}
}

// TestExamineNumbers: of a column of numbers the ends are shown, and a number that can be a telephone number comes
// first, unless many are as long: these are times, ids or counts.
func TestExamineNumbers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		number func(i int) int
		last   []string
		looks  []string
	}{
		{"one among small ones", func(i int) int { return map[bool]int{true: 4915112345678, false: i}[i == 50] },
			[]string{"4915112345678"}, []string{"4915112345678"}},
		{"times", func(i int) int { return 1600000000 + i }, []string{"1600000059"}, nil},
		{"small ones, falling", func(i int) int { return 99 - i }, []string{"40"}, nil},
	} {
		rows := "id,tone,n\n"
		for i := range 60 {
			rows += fmt.Sprintf("abc%c%c,a,%d\n", 'a'+i%26, 'a'+i/26, tt.number(i))
		}
		review, err := examined(t, map[string]string{
			"release.toml": bare + "[[column]]\nname = \"n\"\ntype = \"integer\"\n", "a.csv": rows}, nil)
		testkit.OK(t, err)
		for _, item := range review.Items {
			if item.What != "column n" {
				continue
			}
			var looks []string
			for _, look := range item.Looks {
				looks = append(looks, look.Value)
			}
			testkit.Same(t, tt.name, []any{tt.last, tt.looks}, []any{item.Values[maxShown:], looks})
		}
	}
}

// TestExamineLong: of a long list of values the first ones and their number are shown.
func TestExamineLong(t *testing.T) {
	rows := "id,tone,n\n"
	for i := range 40 {
		rows += "abc" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ",a," + strings.Repeat("1", 1+i%30) + "\n"
	}
	review, err := examined(t, map[string]string{"release.toml": bare + "[[column]]\nname = \"n\"\ntype = \"number\"\n",
		"a.csv": rows}, nil)
	testkit.OK(t, err)
	for _, item := range review.Items {
		if item.What == "column n" && (item.Different != 30 || len(item.Values) != 21) {
			t.Errorf("%+v", item)
		}
	}
}

// TestExamineWords: of text every different value is shown, up to 2,000; above that the file to read is named.
func TestExamineWords(t *testing.T) {
	for _, n := range []int{24, 2000, 2003} {
		rows := "id,tone,note\n"
		for i := range n {
			rows += fmt.Sprintf("abc%d,a,x%s\n", i, strings.Repeat("y", i%50)+strings.Repeat("z", i/50))
		}
		review, err := examined(t, map[string]string{
			"release.toml": bare + "[[column]]\nname = \"note\"\ntype = \"text\"\n", "a.csv": rows},
			nil)
		testkit.OK(t, err)
		i := slices.IndexFunc(review.Items, func(item Item) bool { return item.What == "column note" })
		item, shown, others := review.Items[i], min(n, 2000), ""
		if n > shown {
			others = "annotations.csv"
		}
		if item.Different != n || len(item.Values) != shown || item.Others != others {
			t.Errorf("of %d values %d of %d are shown, the others in %q", n, len(item.Values), item.Different,
				item.Others)
		}
	}
}

// TestExamineCopied: what is copied as somebody wrote it is shown, with what names somebody first; the program's own
// lines are not.
func TestExamineCopied(t *testing.T) {
	own := string(policy.DefaultTOML())
	mine := "# decided by anna.schmidt@example.org\nfilter.mode = \"drop\" # as CORP\\jkim545 said\n" +
		strings.Replace(own, "max_side = 16384 ", "max_side = 16385 ", 1) +
		"[[images.placeholder]]\nname = \"gone\"\nmeaning = \"Anna Schmidt drew it\"\n" +
		"# decided by anna.schmidt@example.org\n" // once more
	revocations := `{"serial":2,"issued":"2026-11-20T00:00:00Z","revoked":[{"id":"jkim545-anna.schmidt","at":"2026-11-20T00:00:00Z",` +
		`"reason":"\u0041nna left","by":7}],"note":"x","zone":"x"}`
	armor := "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAA\n-----END SSH SIGNATURE-----\n"
	signer := "[[signer]]\nname = \"office\"\nkey = \"ssh-ed25519 AAAA anna.schmidt@annas-laptop\"\n"
	files := map[string]string{"release.toml": bare + signer, "a.csv": "id,tone\nabc1,a\n", "policy.toml": mine,
		"revocations.json": revocations, "revocations.json.sig": "by Anna Schmidt\n" + armor}
	review, err := examined(t, files, func(c *Config) {
		c.Answers = Answers{"motivation": {"purpose": "Asked by jkim545\nand others"}}
		c.Keep = []string{manifest.RevocationsName}
	})
	testkit.OK(t, err)
	const whole = "is copied as somebody wrote it"
	want := []string{
		`policy.toml | lines that are not the program's | # decided by anna.schmidt@example.org, filter.mode = "drop" # as CORP\jkim545 said, ` +
			`name = "gone", meaning = "Anna Schmidt drew it"` +
			` | # decided by anna.schmidt@example.org looks like a mail address | filter.mode = "drop" # as CORP\jkim545 said looks like ` +
			`the name of an account | meaning = "Anna Schmidt drew it" looks like the name of a person`,
		"revocations.json | texts | note, x, by, jkim545-anna.schmidt, Anna left, zone | " +
			"makes every grant invalid: no signer can be read | " + whole +
			" | jkim545-anna.schmidt looks like the name of a person | Anna left looks like the name of a person",
		"revocations.json.sig | lines that are not the program's | by Anna Schmidt | " + whole + " | by Anna Schmidt looks like the name of a person",
		`answers of the datasheet | texts of the maintainers | motivation.purpose "Asked by jkim545\nand others" | ` +
			`motivation.purpose looks like the name of an account`,
	}
	var got []string
	for _, line := range shown(review.Items) {
		if strings.Contains(line, ".json") || strings.HasPrefix(line, "policy") || strings.HasPrefix(line, "answers") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is copied (-want +got):\n%s", diff)
	}
	made, _, err := published(t, files, func(c *Config) { c.Keep = []string{manifest.RevocationsName} })
	testkit.OK(t, err)
	if text := made["release.toml"]; strings.Contains(text, "anna") ||
		!strings.Contains(text, `key = "ssh-ed25519 AAAA"`) {
		t.Errorf("release.toml is\n%s", text)
	}
}

// TestExamineOwn: of a release without policy, and of one with the built-in one, no line is anybody's.
func TestExamineOwn(t *testing.T) {
	for _, text := range []string{"", string(policy.DefaultTOML()), string(policy.CautiousTOML()),
		strings.ReplaceAll(string(policy.DefaultTOML()), "\n", "\r\n")} {
		files := map[string]string{"release.toml": bare, "a.csv": "id,tone\nabc1,a\n"}
		if text != "" {
			files["policy.toml"] = text
		}
		review, err := examined(t, files, nil)
		testkit.OK(t, err)
		for _, item := range review.Items {
			if item.What == PolicyName {
				t.Errorf("%+v", item)
			}
		}
	}
}
