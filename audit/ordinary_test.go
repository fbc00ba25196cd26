package audit

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// The ids of plainWorld that are words and numbers of other people's files as well.
const goneHex, goneWord = "1e2345", "tables"

// plainWorld is a release with removed posts whose ids tell nothing by themselves, audited without a workspace.
func plainWorld(t *testing.T) Config {
	t.Helper()
	c := newWorld(t, false, false).config
	for _, id := range []manifest.PostID{goneDigits, goneHex, goneWord} {
		c.Tombstones = append(c.Tombstones, manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: c.Now()})
	}
	return c
}

// TestLogBesideDatabase leaves an audit open where a database was named without the log beside it, by its own name or
// by a link, and not where the log was named as well, or has nothing in it.
func TestLogBesideDatabase(t *testing.T) {
	config, dir := plainWorld(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, body := range map[string][]byte{
		"a.db": sqliteOf(t, "CREATE TABLE x (y)"), "a.db-wal": walOf(t, "CREATE TABLE x (y)"),
		"b.db": sqliteOf(t, "CREATE TABLE x (y)"), "b.db-journal": []byte("of a killed program"),
		"c.db": sqliteOf(t, "CREATE TABLE x (y)"), "c.db-wal": nil,
		"d.csv": []byte("n\n1\n"), "d.csv-wal": []byte("no log"),
	} {
		testkit.OK(t, os.WriteFile(at(name), body, 0o600))
	}
	link := filepath.Join(t.TempDir(), "link.db")
	testkit.OK(t, os.Symlink(at("a.db"), link))
	for _, c := range []struct {
		want  bool
		files []string
	}{
		{true, []string{at("a.db")}}, {true, []string{link}}, {true, []string{at("b.db")}},
		{false, []string{at("c.db")}}, {false, []string{at("d.csv")}}, {false, []string{at("a.db"), at("a.db-wal")}},
		{false, []string{at("a.db"), dir}}, {false, []string{dir}},
	} {
		config.Files = c.files
		r, err := Audit(t.Context(), config)
		testkit.OK(t, err)
		open := slices.ContainsFunc(r.Open, func(o Open) bool { return strings.Contains(o.What, "lies beside it") })
		testkit.Same(t, fmt.Sprint(c.files), c.want, open)
	}
}

// TestOrdinaryIDs accuses nobody of a number or a word that is also the id of a removed post. It is open, once in a
// file, unless it stands among other numbers. The same beside a word of Reddit's, or among ids of the release, is a
// finding.
func TestOrdinaryIDs(t *testing.T) {
	config := plainWorld(t)
	counter := "id,name\n" + string(lines("%d,x\n", 200_000))
	for _, c := range []struct{ name, file, body, want string }{
		{"a counter", "big.csv", counter, "none"},
		{"a short counter", "users.csv", "id,name\n136747,a\n136748,b\n136749,c\n", "none"},
		{"a list of bugs", "bugs.json", `[{"id":136747,"title":"a"},{"id":136748,"title":"b"}]`, "none"},
		{"one bug", "bug.json", `[{"id":136748,"title":"a bug"}]`, "open"},
		{"a user", "user.json", `{"rows":[{"user":{"id":136748}}]}`, "open"},
		{"a user's number", "a.txt", "user_id: 136748\n", "open"},
		{"a mail's thread", "a.txt", "thread-id: 136748 once\n", "open"},
		{"a query", "a.txt", "see ?id=136748&x=1 there\n", "open"},
		{"another site", "a.txt", "see https://example.com/comments/136748/foo there\n", "open"},
		{"another site alone", "a.txt", "https://www.zhihu.com/a\nhttps://www.zhihu.com/comments/136748\n", "open"},
		{"a host that begins like Reddit's", "a.txt", "see https://redd.it.example.com/136748 there", "open"},
		{"a host that ends like Reddit's", "a.txt", "see https://notreddit.com/r/x/comments/136748 there", "open"},
		{"a camera's picture", "a.txt", "see IMG_136748.jpg there\n", "open"},
		{"a path", "a.txt", "in /var/lib/136748.png there\n", "open"},
		{"a picture's name", "img_136748.png", "hello", "none"},
		{"a picture's name alone", "136748.png", "hello", "open"},
		{"a link in HTML", "a.html", `<p>see <a id="136748">`, "open"},
		{"an item of XML", "a.xml", `<list><item id="136748"/></list>`, "open"},
		{"a blog", "wp.csv", "post_id,comment\n136748,a post of WordPress\n", "open"},
		{"commits", "commits.csv", "commit,id\nabc,1e2345\ndef,9f8e7d\n", "open"},
		{"a part of a page", "p.html", `<div id="tables">x</div> and <p id="tables">`, "open"},
		{"words under id", "names.csv", "id,n\nchairs,1\ntables,2\nlamps,3\n", "open"},

		{"a fullname", "a.txt", "see t3_136748 there\n", "row"},
		{"a short link", "a.txt", "see https://redd.it/136748 there\n", "row"},
		{"a permalink", "a.txt", "see https://www.reddit.com/r/x/comments/136748/a/ there\n", "row"},
		{"a permalink, escaped", "a.json", `{"u":"https:\/\/www.reddit.com\/r\/x\/comments\/136748\/a\/"}`, "row"},
		{"a permalink in an address", "a.txt", "?u=https%3A%2F%2Fold.reddit.com%2Fcomments%2F136748 x\n", "row"},
		{"a path of Reddit's", "a.csv", "permalink,n\n/r/x/comments/136748/a/,1\n", "row"},
		{"a path of any site", "a.csv", "n,path\n1,/comments/136748\n", "open"},
		{"a gallery", "a.txt", "see https://www.reddit.com/gallery/136748 there\n", "row"},
		{"a key that says so", "a.txt", "reddit_id: 136748\n", "row"},
		{"a column that says so", "a.csv", "reddit id,n\n136748,1\n", "row"},
		{"a word in a short link", "a.txt", "see redd.it/tables there\n", "row"},
		{"among ids of the release", "a.csv", "id,n\n" + live1 + ",1\n136748,2\n", "row"},
		{"a word among ids of the release", "a.jsonl", `{"id":"` + live1 + `"}` + "\n" + `{"id":"tables"}` + "\n", "row"},
		{"pictures named by ids of the release", "a.csv",
			"file_name\n" + live1 + ".jpg\n" + live2 + ".jpg\n136748.jpg\n", "row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.OK(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.body), 0o600))
			config.Files = []string{dir}
			r, err := Audit(t.Context(), config)
			testkit.OK(t, err)
			want := map[string]Verdict{"none": Pass, "open": Undecided, "row": Fail}[c.want]
			if r.Verdict != want || c.want == "open" && (len(r.Open) != 1 || r.Open[0].What != mayBeIDs) {
				t.Errorf("%s: %+v, open %+v, want %s", r.Verdict, r.Findings, r.Open, want)
			}
		})
	}
}

// TestOrdinaryNames: a picture that is only named by digits is none of the post's, so its copies are not accused
// either. It is open, also where more stands in the name; a name that is a word, or of a file of another kind, is not.
func TestOrdinaryNames(t *testing.T) {
	config, dir := plainWorld(t), t.TempDir()
	body := encodePNG(warp(48, 48, func(x, y int) color.Color { return color.Gray{uint8(x*y + x)} }))
	for _, name := range []string{"136748.png", "136748 (1).png", "holiday.png", "the tables.png"} {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), body, 0o600))
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "136748 (2).txt"), []byte("nothing"), 0o600))
	config.Files = []string{dir}
	r, err := Audit(t.Context(), config)
	testkit.OK(t, err)
	var open []string
	for _, o := range r.Open {
		if o.What == mayBeIDs {
			open = append(open, filepath.Base(o.Where))
		}
	}
	slices.Sort(open)
	if diff := cmp.Diff([]string{"136748 (1).png", "136748.png"}, open); r.Verdict != Undecided || diff != "" {
		t.Errorf("%s: %+v, open (-want +got):\n%s", r.Verdict, r.Findings, diff)
	}
}

// TestOrdinaryIDsOnce says once of a file that it has words or numbers that may be ids, in how many members they are.
func TestOrdinaryIDsOnce(t *testing.T) {
	config, dir := plainWorld(t), t.TempDir()
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "line %d says 136748 and tables\n", i)
	}
	inner := zipOf("a.txt", []byte(text.String()))
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "a.tar"), tarOf("b.zip", inner), 0o600))
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "c.txt"), []byte(text.String()), 0o600))
	config.Files = []string{dir}
	r, err := Audit(t.Context(), config)
	testkit.OK(t, err)
	testkit.Same(t, "open", 2, len(r.Open))
}
