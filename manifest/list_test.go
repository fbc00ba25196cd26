package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest/table"
)

func TestIsList(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       table.Format
	}{
		{"a.txt", "1abcde\n", table.List},
		{"a.txt", "what is this?\nand this?\n", table.List},
		{"a.txt", "1abcde\tfunny\n", table.TSV},
		{"a.txt", "\ufeff# two\n\n1abcde,funny\n", table.CSV},
		{"a.txt", `{"id": "1abcde"}`, table.JSON},
		{"a.csv", "id\n1abcde\n", table.List},
		{"a.csv", "Links\nhttps://www.reddit.com/r/memes/s/AbCdEf\n", table.List},
		{"a.tsv", "1abcde\n1abcdf", table.List},
		{"a.csv", "caption\na cat, and a dog\n", table.CSV},
		{"a.csv", "my notes\n1abcde\n", table.CSV},
		{"a.csv", "1abcde,funny\n", table.CSV},
		{"a.csv", "", table.CSV},
		{"a.tsv", "id,label\n1abcde\n", table.TSV},
	} {
		path := file(t, test.name, test.text)
		found, err := FindSources(path)
		if err != nil || found[0].Format != test.want {
			t.Errorf("%s %q is %v (%v), want %s", test.name, test.text, found, err, test.want)
		}
		if got := IsList(path); got != (test.want == table.List) {
			t.Errorf("IsList(%s %q) = %v", test.name, test.text, got)
		}
	}
	if IsList(file(t, "a.jsonl", "1abcde\n")) {
		t.Error("a list of JSON Lines")
	}
}

func TestOpenList(t *testing.T) {
	known := func(word string) bool { return word == "memes" }
	for _, test := range []struct {
		name, text string
		want       string // ids with their places, or the beginnings of problems
	}{
		{"a.txt", "t3_1ABCDE # first\n1abcdf/2\n\nhttps://www.reddit.com/gallery/1abcdg?utm_source=share",
			"1abcde/0:1 1abcdf/2:2 1abcdg/0:4"},
		{"a.csv", "Post ID\n\"1abcde\"\n", "1abcde/0:2"},
		{"a.csv", "memez\n1abcde\n", "memez/0:1 1abcde/0:2"},
		{"a.csv", "t3_memes\n1abcde\n", "memes/0:1 1abcde/0:2"},
		{"a.csv", "Memes\n1abcde\n", `a.csv:1:1 the first line, "Memes", may be a header or the id of a post`},
		{"a.txt", "1abcde\nt1_abc\n6.60E+05\nhttps://www.reddit.com/r/a/s/Ab\n",
			`a.txt:2:1 "t1_abc" is the id of a comment` +
				`|a.txt:3:1 "6.60E+05" is not a post id but a number|a.txt:4:1 "https://www.reddit.com/r/a/s/Ab" is a share link`},
		{"a.txt", "https://i.redd.it/a.jpg\nt1_abc\nhttps://i.redd.it/b.jpg\nt1_abd\n",
			`a.txt:1:1 "https://i.redd.it/a.jpg" is the ` +
				`address of an image|a.txt:2:1 "t1_abc" is the id of a comment`},
		{"a.csv", "id\n1abcde\n#N/A\n\"\"\n#REF!\n",
			`a.csv:3:1 "#N/A" looks like a missing value|a.csv:4:1 the post id is empty`},
		{"a.txt", "1abcde\n1abcde\n", "a.txt:2:0 post 1abcde, image 0, is already on line 1"},
		{"a.txt", "id\n", "a.txt:1:0 the manifest has no entries"},
		{"a.txt", "", "a.txt:1:0 the file is empty"},
	} {
		r, err := OpenList(t.Context(), file(t, test.name, test.text), "mine", Options{Known: known})
		list, err := entries(t, r, err)
		if err != nil {
			wantPlaces(t, test.text, err, strings.Split(test.want, "|")...)
			if problems, ok := err.(*Problems); ok && strings.Contains(test.text, "b.jpg") && problems.Count() != 4 {
				t.Errorf("%q: %d problems", test.text, problems.Count())
			}
			continue
		}
		var got []string
		for _, e := range list {
			got = append(got, string(e.ID)+"/"+string(rune('0'+e.Image))+":"+string(rune('0'+e.Line)))
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" || r.Name != "mine (list of ids)" ||
			!IsListName(r.Name) || !r.IsList() {
			t.Errorf("%q is %q (-want +got):\n%s", test.text, r.Name, diff)
		}
	}
}

// TestListInFolder keeps a list that lies in a release from being read past the release's policy.
func TestListInFolder(t *testing.T) {
	dir := folder(t, map[string]string{"ids.txt": "1abcde\n", SettingsName: "name = 'a'\nmanifest = 'ids.csv'\n",
		"ids.csv": "id\n1abcde\n"})
	for _, name := range []string{"ids.txt", "ids.csv"} {
		_, err := OpenList(t.Context(), filepath.Join(dir, name), "mine", Options{})
		if _, is := err.(*InFolder); !is {
			t.Errorf("%s in a release folder: %v", name, err)
		}
	}
}

// TestWriteList keeps of a list the ids alone, and its digest is that of these.
func TestWriteList(t *testing.T) {
	const want = "1abcde\n1abcdf/2\n"
	var digests []string
	for _, text := range []string{want, "# ours\nid\nt3_1ABCDE\n\n1abcdf/2",
		"https://www.reddit.com/user/anna/comments/1abcde/my_title/ # hers\n1abcdf/2\n"} {
		r, err := OpenList(t.Context(), file(t, "a.txt", text), "mine", Options{})
		var kept bytes.Buffer
		if err == nil {
			err = r.WriteList(t.Context(), &kept)
		}
		if err != nil || kept.String() != want {
			t.Errorf("%q is kept as %q: %v", text, kept.String(), err)
			continue
		}
		digests = append(digests, r.ManifestDigest+" "+r.Digest)
	}
	sum := sha256.Sum256([]byte(want))
	if len(slices.Compact(digests)) != 1 || !strings.HasPrefix(digests[0], hex.EncodeToString(sum[:])+" ") {
		t.Errorf("digests %q", digests)
	}
}

// TestHasFile knows each file of a manifest by its bytes, and a list in either form.
func TestHasFile(t *testing.T) {
	const one, two, list = "id\n1abcde\n", "id\n1abcdf\n", "# ours\nt3_1abcde\n"
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	several, err := Open(folder(t, map[string]string{SettingsName: "name = 'a'\nmanifest = '*.csv'\n",
		"a.csv": one, "b.csv": two}), Options{})
	testkit.OK(t, err)
	alone, err := OpenList(t.Context(), file(t, "a.txt", list), "mine", Options{})
	testkit.OK(t, err)
	for _, c := range []struct {
		r    *Release
		text string
		want bool
	}{{several, one, true}, {several, two, true}, {several, one + two, false}, {several, "", false},
		{alone, list, true}, {alone, "1abcde\n", true}, {alone, "1abcdf\n", false}} {
		testkit.Same(t, c.text, c.want, c.r.HasFile(sum(c.text)))
	}
}

// TestFindSourcesOfDataset: of a dataset the data are read, and not what describes it.
func TestFindSourcesOfDataset(t *testing.T) {
	for of, want := range map[string]string{"README.md croissant.json data/train.csv": "data/train.csv",
		"data/train.csv a.csv": "a.csv", "croissant.json a.csv": "a.csv croissant.json"} {
		files := make(map[string]string)
		for name := range strings.FieldsSeq(of) {
			files[name] = "id\n1abcde\n"
		}
		dir := folder(t, files)
		found, err := FindSources(dir)
		var names []string
		for _, file := range found {
			name, _ := filepath.Rel(dir, file.Path)
			names = append(names, name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", of, got, err, want)
		}
	}
}
