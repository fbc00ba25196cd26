package guess

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// initText makes a draft of text, as a file of that name.
func initText(t testing.TB, name, text string) (*Draft, error) {
	t.Helper()
	return initFiles(t, Options{}, file(t, name, text))
}

// initFiles makes a draft of the files and writes its annotations nowhere, so that the problems of rows show as well.
func initFiles(t testing.TB, o Options, paths ...string) (*Draft, error) {
	t.Helper()
	d, err := Files(t.Context(), paths, o)
	if err != nil {
		return nil, err
	}
	return d, d.copyManifest(t.Context(), io.Discard)
}

// written writes the draft, and opens and checks what it wrote.
func written(t testing.TB, d *Draft, o manifest.Options) *manifest.Release {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "release")
	paths, err := d.Write(t.Context(), dir, map[string][]byte{manifest.TombstonesName: []byte("id,state,time\n")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := manifest.Open(dir, o)
	if err != nil {
		t.Fatalf("what was written cannot be opened: %v\n%s", err, d.Settings)
	}
	want := []string{r.ManifestPath, r.TombstonesPath, filepath.Join(dir, manifest.SettingsName)}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if _, err := r.Check(t.Context()); err != nil {
		t.Fatalf("what was written is not accepted: %v\n%s", err, d.Settings)
	}
	return r
}

// shown gives the categories of a draft or release: name, kind and codes, with ! behind an exclusive one.
func shown(s manifest.Schema) (all []string) {
	for _, c := range s.Categories {
		var codes []string
		for _, l := range c.Labels {
			code := l.Code
			if l.Exclusive {
				code += "!"
			}
			codes = append(codes, code)
		}
		all = append(all, c.Name+" "+string(c.Kind)+" "+strings.Join(codes, ","))
	}
	return all
}

func TestInitFindsFigSIM(t *testing.T) {
	d, err := initFiles(t, Options{}, annotations)
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	got, err := entries(t, r, nil)
	bare, failed := manifest.Open(annotations, manifest.Options{})
	want, failed := entries(t, bare, failed)
	if diff := cmp.Diff(want, got); err != nil || failed != nil || diff != "" || r.Schema.Name != "figsim" ||
		r.ManifestDigest != bare.ManifestDigest || len(d.Notes) != 7 ||
		!strings.Contains(string(d.Settings), "\nseverity = \"severity\"\n") {
		t.Errorf("%v, %v, schema %s, notes %q, entries (-bare +init):\n%s", err, failed, r.Schema.Name, d.Notes, diff)
	}
	s, err := r.Check(t.Context())
	if diff := cmp.Diff(manifest.Summary{Entries: 1049, Posts: 1049, Splits: []string{"train", "validation", "test"}},
		s); err != nil || diff != "" {
		t.Errorf("%v, summary (-want +got):\n%s", err, diff)
	}
}

func TestInitGuesses(t *testing.T) {
	var b strings.Builder
	b.WriteString("row,Reddit ID,Partition,Mood<,2nd mood,image,author,caption,tags,empty,\n")
	for i, c := range "abcdefghijklmnopqrstuvwxyz" {
		mood := []string{"happy", "Sad", "10"}[i%3]
		tags := []string{"None", "cat; dog", "dog", ""}[i%4]
		part := []string{"train", "dev"}[i%2]
		fmt.Fprintf(&b, "%[1]c,t3_1a%[1]c,%s,%s,%d,%[1]c.jpg,someone,\"said \"\"%[1]c\"\" loudly\",%[5]s,,\n", c, part,
			mood, 2+i%10, tags)
	}
	d, err := initText(t, "memes.csv", b.String())
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	want := []string{"mood single 10,happy,Sad", "2nd_mood single 2,3,4,5,6,7,8,9,10,11", "tags multi cat,dog,None!"}
	if diff := cmp.Diff(want, shown(r.Schema)); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	for _, note := range []string{`name = "memes"`, "guessed from 26 rows",
		"# Look at this: column \"author\" may hold personal data",
		`# image has no column: column "image" has the name`, `# Not used: "empty": all its`,
		`# Not used: "author": it is about`, "# Column \"Mood<\": 3 diff", `separator = "|"`} {
		if !strings.Contains(string(d.Settings), note) {
			t.Errorf("release.toml does not say %q:\n%s", note, d.Settings)
		}
	}
	const copied = "id,split,mood,2nd_mood,tags\n1aa,train,happy,2,None\n1ab,dev,Sad,3,cat|dog\n"
	if b, err := os.ReadFile(r.ManifestPath); err != nil || !strings.HasPrefix(string(b), copied) {
		t.Errorf("the annotations: %.200q, %v", b, err)
	}
	notes := []string{
		`id is column "Reddit ID": 26 of 26 values are post ids`,
		`split is column "Partition": by its name; the splits are dev, train`,
		`image has no column: column "image" has the name, but other values`,
		`category mood (single) is "Mood<": 3 different values in 26 cells`,
		`category 2nd_mood (single) is "2nd mood": 10 different values in 26 cells`,
		`category tags (multi) is "tags": 3 different labels; a cell can hold several, separated by ";"`,
		`not used: "row": it holds no short labels that repeat; --keep "row" passes it through`,
		`not used: "image": it holds names of files; --keep "image" publishes it`,
		`not used: "author": it is about people`,
		`not used: "caption": it holds what people wrote, or addresses; --keep "caption" publishes it`,
		`not used: "empty": all its cells are empty`,
	}
	warnings := []string{
		`column "2nd mood" has the labels 2, 3, 4, 5, 6, 7, 8, 9, 10, 11: if they are a scale, set kind = "ordinal" in release.toml`,
		`column "author" may hold personal data: it was left out of the release's annotations`,
	}
	if diff := cmp.Diff([][]string{notes, warnings}, [][]string{d.Notes, d.Warnings}); diff != "" {
		t.Errorf("notes, warnings (-want +got):\n%s", diff)
	}
}

// TestSettingsNameNobody: release.toml repeats neither names of files nor names of columns that may be a person's.
func TestSettingsNameNobody(t *testing.T) {
	const words = "what somebody wrote in six or more words"
	path := file(t, "anna_labels.csv", "id,mood,label anna.schmidt@uni.edu,tag,schmidt_text\nabc,sad,1,a,"+words+
		"\nabd,glad,0,b,"+words+"\nabe,sad,0,"+strings.Repeat("z", 65)+","+words+"\nabf,glad,1,c,\nabg,sad,1,a,\n")
	other := file(t, "more_schmidt.csv", "id,mood,tag\nabh,sad,a\n")
	d, err := initFiles(t, Options{Name: "memes"}, path, other)
	if err != nil {
		t.Fatal(err)
	}
	settings := string(d.Settings)
	for _, part := range []string{"anna", "schmidt", filepath.Dir(path), filepath.Dir(other)} {
		if strings.Contains(settings, part) {
			t.Errorf("release.toml holds %q:\n%s", part, settings)
		}
	}
	for _, part := range []string{"init` of 2 files",
		"# Not used: number 3 (its name may name somebody): its name holds a mail address",
		`column number 3 (its name may name somebody) may hold`, "at file 1:", "; --keep with its name publishes it"} {
		if !strings.Contains(settings, part) {
			t.Errorf("release.toml does not say %q:\n%s", part, settings)
		}
	}
	if said := strings.Join(d.Warnings, "\n"); !strings.Contains(said, path) || !strings.Contains(said, "schmidt") {
		t.Errorf("the person who made it is told less: %s", said)
	}
}

// TestSettingsNameOwnColumns: the names of the program's own columns are nobody's, and stand in release.toml.
func TestSettingsNameOwnColumns(t *testing.T) {
	in := "id,sha256,mood\n"
	for i, id := range []string{"abc", "abd", "abe", "abf"} {
		in += fmt.Sprintf("%s,%064x,%s\n", id, i+1, []string{"sad", "glad"}[i%2])
	}
	d, err := initFiles(t, Options{Name: "memes"}, file(t, "a.csv", in))
	if err != nil {
		t.Fatal(err)
	}
	if settings := string(d.Settings); strings.Contains(settings, "may name somebody") {
		t.Errorf("release.toml does not name the column sha256:\n%s", settings)
	}
}

// TestInitWrites holds what the release gets of the file: its mapped columns, in one form.
func TestInitWrites(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"a .tsv", "permalink\tmood\tUser\n/r/x/comments/abc/t\tsad\tann\n/r/x/comments/ABD/t\t\"gl,ad\"\t\"b\no\tb\"\n",
			"id,mood\nabc,sad\nabd,gl|ad\n"},
		{"a.csv",
			"id;permalink;mood;Author Flair; selftext \nt3_abc;/r/x/comments/abc/t;sad;x;\"so\n\"\"sad\"\"\"\nabd;;\"a\"\"b\"\"\";y;\n",
			"id,mood\nabc,sad\nabd,\"a\"\"b\"\"\"\n"},
		{"a.jsonl",
			`{"id":"abc" , "title":"a,}", "mood":  ["sad",1.50],"author":{"name":["x"]},"score":1.50}` + "\r\n" + `{"body":null,"id":"abd","mood":[]}`,
			`{"id":"abc","mood":["sad","1.50"],"score":1.5}` + "\n" + `{"id":"abd","mood":[],"score":null}` + "\n"},
	} {
		d, err := initText(t, test.name, test.in)
		if err != nil {
			t.Fatal(err)
		}
		r := written(t, d, manifest.Options{})
		b, err := os.ReadFile(r.ManifestPath)
		if err != nil || string(b) != test.want {
			t.Errorf("%s was written as %q, %v, want %q", test.name, b, err, test.want)
		}
	}
	o := parquet("post_id,tags,author", nil, []manifest.Cell{text("abc"), items("x", "y"), text("a")},
		[]manifest.Cell{text("abd"), items("y"), text("a")},
		[]manifest.Cell{text("abe"), {Null: true}, text("b")})
	d, err := initFiles(t, Options{Options: o}, file(t, "a.parquet", "any bytes"))
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, o)
	var got [][]int
	list, err := entries(t, r, nil)
	for _, e := range list {
		got = append(got, e.Labels[0])
	}
	if diff := cmp.Diff([][]int{{0, 1}, {1}, nil}, got); err != nil || diff != "" ||
		!strings.Contains(strings.Join(d.Warnings, ""), "was left out") ||
		!strings.Contains(strings.Join(d.Notes, ""), "lists of 2 different labels") {
		t.Errorf("%v, warnings %q, labels (-want +got):\n%s", err, d.Warnings, diff)
	}
}

// TestInitFields guesses fields by name, where the values are the usual ones.
func TestInitFields(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	const head = "id,post_id,set,image,sha256,phash,tone,sha256_stripped,sha256_pixels\n"
	for name, c := range map[string]struct{ rows, want string }{
		"all": {"abc,1,a,0," + hash + ",00ff00ff00ff00ff,x," + hash + "," + hash + "\nabc,2,b,1,,,y,,\n",
			"id id, split set, image image, sha256 sha256, sha256_stripped sha256_stripped, sha256_pixels sha256_pixels, phash phash"},
		"none":        {"a b,a1,a,x,1,1,x,1,1\na c,a2,,2,2,2,y,2,2\n", "id post_id"},
		"half":        {"abc,1a,a,,,,x,,\na b,2,b,,,,y,,\n", "id post_id, split set"},
		"split case":  {"abc,1,A,,,,x,,\nabd,2,a,,,,y,,\n", "id id, split set"},
		"images of 1": {"abc,1,a,1,,,x,,\nabd,2,a,2,,,y,,\n", "id id, split set, image image!"},
		"some splits": {"abc,1,a,,,,x,,\nabd,2,,,,,y,,\n", "id id"},
		"some images": {"abc,1,a,1,,,x,,\nabd,2,a,,,,y,,\n", "id id, split set, image image"},
	} {
		d, err := initText(t, "a.csv", head+c.rows)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, field := range manifest.Fields()[:manifest.FieldSubreddit] {
			key := field.String()
			column := d.meaning.Columns[key]
			if field == manifest.FieldImage && strings.Contains(strings.Join(d.Warnings, ""), "image column") {
				column += "!"
			}
			if column != "" {
				got = append(got, key+" "+column)
			}
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		notes := strings.Join(d.Notes, "")
		if name == "all" && (!strings.Contains(notes, "are small numbers") ||
			strings.Count(notes, "have the right digits") != 4) {
			t.Errorf("reasons: %s", notes)
		}
	}
}

// TestInitLists: a list that a program wrote into a cell is that list, in the labels and in what passes through.
func TestInitLists(t *testing.T) {
	for _, test := range []struct {
		name, in string
		keep     []string
		want     string // what is written
		look     string
	}{
		{"Python", "id,topics\nabc,\"['a', 'b']\"\nabd,['a']\nabe,[]\nabf,\nabg,\"['b,c']\"\n", nil,
			`{"id":"abc","topics":["a","b"]}
{"id":"abd","topics":["a"]}
{"id":"abe","topics":[]}
{"id":"abf","topics":[]}
{"id":"abg","topics":["b,c"]}
`, ""},
		{"JSON", "id\ttopics\nabc\t\"[\"\"a\"\",\"\"b\"\"]\"\nabd\t\"[\"\"b\"\"]\"\n", nil, `{"id":"abc","topics":["a","b"]}
{"id":"abd","topics":["b"]}
`, ""},
		{"NumPy", "id,topics\nabc,['a' 'b']\nabd,\"array(['b'], dtype=object)\"\n", nil, `{"id":"abc","topics":["a","b"]}
{"id":"abd","topics":["b"]}
`, ""},
		{"words in brackets", "id,topics\nabc,\"[a, b]\"\nabd,[b]\n", nil, `{"id":"abc","topics":["a","b"]}
{"id":"abd","topics":["b"]}
`, ""},
		{"numbers", "id,topics\nabc,\"[1, 2]\"\nabd,[2]\n", nil, `{"id":"abc","topics":["1","2"]}
{"id":"abd","topics":["2"]}
`, ""},
		{"in JSON", `{"id":"abc","topics":"['a', 'b']"}` + "\n" + `{"id":"abd","topics":["b"]}`, nil,
			`{"id":"abc","topics":["a","b"]}
{"id":"abd","topics":["b"]}
`, ""},
		{"kept", "id,mood,captions\nabc,sad,\"['a | b', 'it\\'s']\"\nabd,sad,[]\n", []string{"captions"},
			`{"id":"abc","mood":"sad","captions":["a | b","it's"]}
{"id":"abd","mood":"sad","captions":[]}
`, `column "captions" holds what people wrote`},
		{"mixed", "id,mood,topics\nabc,sad,['a']\nabd,sad,b\nabe,sad,['c']\nabf,sad,d\n", nil,
			"id,mood\nabc,sad\nabd,sad\nabe,sad\nabf,sad\n",
			`column "topics" has lists in some cells and single values in others, such as at a.csv:3:9`},
		{"mixed and kept", "id,mood,topics\nabc,sad,['a']\nabd,sad,b\n", []string{"topics"},
			"id,mood,topics\nabc,sad,['a']\nabd,sad,b\n", ""},
		{"single words in brackets", "id,mood\nabc,[deleted]\nabd,[removed]\n", nil,
			"id,mood\nabc,[deleted]\nabd,[removed]\n", ""},
		{"objects", "id,mood,votes\nabc,sad,{'clara': 'x'}\nabd,sad,{'clara': 'x'}\n", nil, "id,mood\nabc,sad\nabd,sad\n",
			""},
		{"addresses of mails", "id,mood,cced\nabc,sad,['clara@x.org']\nabd,sad,['clara@x.org']\n", nil,
			"id,mood\nabc,sad\nabd,sad\n", `column "cced" may hold personal data (a mail address)`},
	} {
		name := map[bool]string{true: "a.csv", false: "a.jsonl"}[test.in[0] == 'i']
		if strings.HasPrefix(test.in, "id\t") {
			name = "a.tsv"
		}
		path := file(t, name, test.in)
		d, err := initFiles(t, Options{Keep: test.keep}, path)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		b, err := os.ReadFile(written(t, d, manifest.Options{}).ManifestPath)
		said := strings.ReplaceAll(strings.Join(d.Warnings, "\n"), path, name)
		if diff := cmp.Diff(test.want, string(b)); err != nil || diff != "" || !strings.HasPrefix(said, test.look) {
			t.Errorf("%s: %v; it says %q; written (-want +got):\n%s", test.name, err, said, diff)
		}
	}
}

// TestInitSplits: no split of the files is lost without a word.
func TestInitSplits(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []string // the splits of the rows, or places of problems
		look     string
	}{
		{"two spellings", "id,split,x\nabc,Test,a\nabd,test,a\nabe,TRAIN,a\n", []string{"test", "test", "TRAIN"},
			`splits "Test" and "test" of column "split" differ in case alone and count as one, "test"`},
		{"an empty cell", "id,split,x\nabc,train,a\nabd,,a\n", []string{"a.csv:3:5 the split is empty"}, ""},
		{"a hyphen", "id,Split,x\nabc,train,a\nabd,dev-test,a\n", []string{`a.csv:3:5 "dev-test" cannot name a split`}, ""},
		{"a space", "id,split,x\nabc,fold 1,a\nabd,fold 2,a\n",
			[]string{`a.csv:2:5 "fold 1" cannot name a split`, `a.csv:3:5 "fold 2" cannot name a split`}, ""},
		{"no cell is filled", "id,split,x\nabc,,a\nabd,,a\n", []string{"train", "train"}, ""},
		{"an empty cell under another name", "id,set,x\nabc,train,a\nabd,,a\n", []string{"train", "train"},
			`column "set" was not taken for the split, because the value at a.csv:3:5 is empty`},
		{"a hyphen under another name", "id,subset,x\nabc,dev-test,a\nabd,train,a\n", []string{"train", "train"},
			`column "subset" was not taken for the split, because the value at a.csv:2:5 cannot`},
		{"a name of one's own", "id,data_split,x\nabc,train,a\nabd,Dev,a\n", []string{"train", "Dev"}, ""},
		{"a list", `{"id":"abc","split":["a","b"]}` + "\n", []string{"a.csv:1:21 a single value is wanted"}, ""},
	} {
		name := "a.csv"
		if strings.HasPrefix(test.in, "{") {
			name = "a.jsonl"
		}
		path := file(t, name, test.in)
		d, err := initFiles(t, Options{}, path)
		if strings.Contains(test.want[0], ":") {
			wantPlaces(t, test.name, err, strings.Split(strings.ReplaceAll(strings.Join(test.want, "\n"), "a.csv", name),
				"\n")...)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		list, err := entries(t, written(t, d, manifest.Options{}), nil)
		for _, e := range list {
			got = append(got, e.Split)
		}
		said := strings.ReplaceAll(strings.Join(d.Warnings, "\n"), path, name)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" || !strings.HasPrefix(said, test.look) ||
			(said == "") != (test.look == "") {
			t.Errorf("%s: %v; it says %q; splits (-want +got):\n%s", test.name, err, said, diff)
		}
	}
}

// TestInitCategories makes labels of few enough values, under names that differ, and takes the separator of
// most columns.
func TestInitCategories(t *testing.T) {
	rows := func(n, different int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d,x%d\n", i, i%different)
		}
		return "id,x\n" + b.String()
	}
	long := strings.Repeat("x", manifest.MaxLabelText)
	for in, want := range map[string]string{ // separator, then the categories without the codes of x
		"id,title,author,tags\nabc,a|b,c|d,x;y\nabd,a|b,c|d,x\n":  "; tags multi x,y",
		"id,tags\nabc,none;x\nabd,none\n":                         "; tags multi none,x",
		"id,tags\nabc,y;x\nabd,None\n":                            "; tags multi None!,x,y",
		"id,set,tags\nabc,s,x;y\nabd,s,x;x\n":                     "| tags single x;x,x;y",
		"id,tags,more\nabc,x;y,\"1,2\"\nabd,x,\"1,3\"\nabe,x,1\n": "; tags multi x,y more multi 1,2,3",
		"id,tags,more,most\nabc,x;y,\"1,2\",\"a,b\"\n":            ", tags single x;y more multi 1,2 most multi a,b",
		"id,mood!,mood?,Mood,?\nab1,a,b,c,d\n":                    "| mood single a mood_2 single b mood_3 single c",
		"id,," + long + "y,user,x\nab1,a,b,c,d\n":                 "| x single d",
		"id," + long + "\nab1,a\n":                                "| " + long[:56] + " single a",
		"id,width,x\nab1,https://x,a\n":                           "| x single a",
		"id,width\nab1,a\n":                                       "| width_label single a",
		"id,x\nab1,None\nab2,a\n":                                 "| x single a,None",
		"id,x\nab1,a\nab2,A\n":                                    "| x single a",
		`{"id":"abc","tag":["x|y","z"],"hue":["red","blue"]}` + "\n" + `{"id":"abd","hue":[],"late":"yes","odd":{}}`: "| hue multi blue,red late single yes",
		`{"id":"abc","image":0,"tag":["a","b"]}` + "\n" + `{"id":"abd","image":{},"tag":"a"}`:                        "| tag multi a,b",
		"{}":                               "a.jsonl:1:0 no record holds a JSON object",
		`{"id":"abc","split":[],"x":"a"}`:  "a.jsonl:1:21 the split is empty",
		figsimHeader + "abc,s,x,y,z,v,w\n": "| figurative single x severity single y related_content single z modality single v context single w",
		rows(19, 19):                       "| x single 19",
		rows(20, 10):                       "| x single 10",
		rows(100, 50):                      "| x single 50",
		rows(20, 11):                       "| ", // no labels
		rows(200, 51):                      "| ",
		"":                                 "a.csv:1:0 the file is empty",
		"id,mood\n":                        "a.csv:1:0 the file has no rows",
		"name,mood\nbob,sad\nann,sad":      "a.csv:1:0 no column looks like post ids",
		"id,mood\nabc,sad\nabc,glad\n":     "a.csv:3:0 post abc, image 0, is already on line 2",
		"id,mood\nab1,sad\nab2,glad\n1E+05,sad\n": `a.csv:4:1 "1E+05" is not a post id but a number`,
		"id,mood\nab1,sad\nab2\n":                 "a.csv:3:4 the row has 1 fields",
	} {
		name := "a.csv"
		if strings.HasPrefix(in, "{") {
			name = "a.jsonl"
		}
		d, err := initText(t, name, in)
		if strings.HasPrefix(want, name) {
			wantPlaces(t, in, err, want)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		got := d.meaning.Separator + " " + strings.Join(shown(d.meaning.Schema), " ")
		if i := strings.Index(got, "x0,"); i >= 0 {
			got = got[:i] + fmt.Sprint(len(d.meaning.Schema.Categories[0].Labels))
		}
		if got != want {
			t.Errorf("%.100q: %s, want %s", in, got, want)
		}
	}
}

func TestDraftWriteFails(t *testing.T) {
	for _, was := range []string{"id,mood\nabc,sad\nabd,glad\n", "id,mood,author\nabc,sad,x\nabd,glad,y\n"} {
		d, err := initText(t, "a.csv", was)
		if err != nil {
			t.Fatal(err)
		}
		full := folder(t, map[string]string{"mine.txt": "keep"})
		if _, err := d.Write(t.Context(), full, nil); err == nil ||
			!strings.HasPrefix(err.Error(), full+": the folder exists") {
			t.Errorf("a folder in use: %v", err)
		}
		if files, _ := os.ReadDir(full); len(files) != 1 {
			t.Errorf("a folder in use now holds %v", files)
		}
		// A further file that is a folder fails after the manifest was written.
		spoil := map[string][]byte{"a/b": nil}
		for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "new")} {
			_, before := os.Stat(dir)
			if _, err := d.Write(t.Context(), dir, spoil); err == nil {
				t.Error("a file in a folder that is not there was written")
			}
			if files, _ := os.ReadDir(dir); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
			if _, after := os.Stat(dir); (before == nil) != (after == nil) {
				t.Errorf("the folder itself: before %v, after %v", before, after)
			}
		}
		if err := os.WriteFile(d.source.ManifestPath, []byte("id,mood\nabe,sad\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(t.Context(), filepath.Join(t.TempDir(), "new"), nil); err == nil ||
			!strings.Contains(err.Error(), "was changed") {
			t.Errorf("annotations changed since: %v", err)
		}
	}
}

// TestSignersNames: no name of a person or computer goes out as that of a signer.
func TestSignersNames(t *testing.T) {
	for name, want := range map[string]string{"Data office": "Data office", "anna@laptop": "signer 1",
		"a.b@uni.edu": "signer 1",
		"Anna Miller": "signer 1", "office_key": "office_key"} {
		d, err := Files(t.Context(), []string{file(t, "a.csv", "id,mood\nabc,sad\n")},
			Options{Signers: []manifest.Signer{{Name: name, Key: "ssh-ed25519 AAAAfirst"}}})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(strings.Join(append(d.Notes, d.Warnings...), "\n"), fmt.Sprintf("the signer is %q", want))
		if !said || !strings.Contains(string(d.Settings), fmt.Sprintf("name = %q", want)) {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
		if want != name && strings.Contains(string(d.Settings), name) {
			t.Errorf("%s is in %s", name, d.Settings)
		}
	}
}

// TestInitSigners holds that a draft with signers is one that Open reads.
func TestInitSigners(t *testing.T) {
	path := file(t, "a.csv", figsimHeader+testRow)
	want := []manifest.Signer{{Name: `A "quoted" Office`, Key: "ssh-ed25519 AAAAfirst"},
		{Name: "Second Office", Key: "ssh-ed25519 AAAAsecond"}}
	if _, err := initFiles(t, Options{Signers: append(want, want[0])}, path); err == nil ||
		!strings.Contains(err.Error(), "two signers") {
		t.Errorf("a signer twice: %v", err)
	}
	d, err := initFiles(t, Options{Signers: want}, path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, written(t, d, manifest.Options{}).Signers); diff != "" {
		t.Errorf("the signers differ (-want +got):\n%s", diff)
	}
}

// FuzzInit: whatever Init accepts, it writes so that Open and Check accept it.
func FuzzInit(f *testing.F) {
	f.Add([]byte("id,mood,x\nabc,sad,1\nabd,\"a|b\",2\n"), byte(0))
	f.Add([]byte("id\tM\"x\\\t#a\nabc\tsad\t=\nabd\tglad \u2028\tNONE|b\n"), byte(1))
	f.Add([]byte(`{"id":"abc","mood":"sad","author":"x"}`), byte(2))
	f.Add([]byte("id,mood,author\nabc,sad,\"x\n\"\nabd, glad,y\n"), byte(0))
	f.Add([]byte(`{"id":"abc","m[o]=":["a","b|c"],"\u0000k":true,"İ":"ı"}`), byte(2))
	f.Add([]byte("id,width,Width,separator,id \nabc,1,2,3,4\nabd,1,2,3,4\n"), byte(0))
	f.Add([]byte(figsimHeader+"abc,train,F1|F2,SS1,SR1,M1,C1\n"), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, kind byte) {
		d, err := initText(t, []string{"a.csv", "a.tsv", "a.jsonl", "a.json"}[kind%4], string(b))
		if err != nil {
			if strings.Contains(err.Error(), "that was guessed") {
				t.Fatalf("%q: %v", b, err)
			}
			places(t, err)
			return
		}
		written(t, d, manifest.Options{})
	})
}

// TestInitSplitsContradict: a column of splits and the names of files say the same, or the rows are refused.
func TestInitSplitsContradict(t *testing.T) {
	for splits, want := range map[string]string{
		"train test":       "",
		"Training testing": "",
		"fold_1 fold_2":    "",
		"test train":       `train.csv:2:6: the column says split "test", and the name of the file split "train"`,
		"train train":      `test.csv:2:6: the column says split "train"`,
	} {
		dir := t.TempDir()
		for i, split := range strings.Fields(splits) {
			text := fmt.Sprintf("id,split,mood\nabc%d,%s,sad\nabd%d,%s,glad\n", i, split, i, split)
			if err := os.WriteFile(filepath.Join(dir, []string{"train.csv", "test.csv"}[i]), []byte(text),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := initFiles(t, Options{}, dir)
		if err == nil {
			_, err = d.Write(t.Context(), filepath.Join(t.TempDir(), "r"), nil)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", splits, err, want)
		}
	}
}

// TestNoSets: what init says of lists that are no sets of labels.
func TestNoSets(t *testing.T) {
	for cell, want := range map[string]string{
		`["sad","glad","sad"]`: `column "votes" would hold labels, but the value at FILE:1:22 has one label twice`,
		`["sad",""]`:           `column "votes" has lists that cannot be labels: that at FILE:1:22 has an empty label`,
		`["a|b","c"]`:          `column "votes" has lists that cannot be labels: that at FILE:1:22 has a label with "|" in it`,
		`"sad|glad|sad"`:       `cells of column "votes" seem to hold several labels, but the value at FILE:1:22 has one label twice: each cell was taken for one label`,
	} {
		text := ""
		for i := range 20 {
			of := strings.NewReplacer("sad", []string{"sad", "mad"}[i%2], `"c"`, []string{`"c"`, `"d"`}[i%2]).Replace(cell)
			text += fmt.Sprintf(`{"id":"ex%02d","votes":%s,"tone":"%c"}`+"\n", i, of, 'a'+i%2)
		}
		path := file(t, "a.jsonl", text)
		d, err := initFiles(t, Options{}, path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.Join(d.Warnings, "\n"), path, "FILE"); !strings.Contains(got, want) {
			t.Errorf("%s: look at\n%s\nwant %s", cell, got, want)
		}
	}
}

// TestWritten: words are counted in each label of a cell.
func TestWritten(t *testing.T) {
	for text, want := range map[string]bool{
		"anger|joy|fear|disgust|sadness|surprise": false, "anger | joy | fear | disgust | sadness | surprise": false,
		"anger;joy;fear;disgust;self harm;surprise": false, "anger, joy, fear, disgust, sadness, surprise": false,
		"I came, and I saw, then I won it": true, "one two three four five six|seven|eight": true,
		"a b c; d e f g; h":            true,
		"the_cat_sits_there_with_hats": true, "one two three four five six": true, "a|b|c\nd e f g h i": true, "a|b": false,
		"Then, alas, he went home": false, "Well, it was late, and he went home": true,
	} {
		if got := isWritten(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSeparators: each column has the separator of its own cells, and the release has one for all.
func TestSeparators(t *testing.T) {
	for _, test := range []struct{ name, rows, want, first string }{
		{"two signs", "anger;joy,race|age anger,race joy,age", "a multi anger,joy; b multi age,race", "anger|joy,race|age"},
		{"three signs", `anger;joy,"race,age" anger,race joy,age`, "a multi anger,joy; b multi age,race",
			"anger|joy,race|age"},
		{"the usual first", "a|b,c;d a,c b,d", "a multi a,b; b multi c,d", "a|b,c|d"},
		{"many labels in a cell", "a|b|c|d|e|f|g,x a|b|c|d|e|f|g,y a|c,x", "a multi a,b,c,d,e,f,g; b single x,y",
			"a|b|c|d|e|f|g,x"},
		{"labels with a sign in them", `a|b,"yes, sure" a,"no, never" b,"yes, sure"`,
			"a multi a,b; b single no, never,yes, sure", `a|b,"yes, sure"`},
	} {
		text := "id,a,b\n"
		for i, row := range regexp.MustCompile(`([^" ]|"[^"]*")+`).FindAllString(test.rows, -1) {
			text += fmt.Sprintf("1exa%02d,%s\n1exb%02d,%s\n", i, row, i, row)
		}
		d, err := initText(t, "a.csv", text)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		r := written(t, d, manifest.Options{})
		b, _ := os.ReadFile(r.ManifestPath)
		lines := strings.Split(string(b), "\n")
		if got := strings.Join(shown(r.Schema), "; "); got != test.want || lines[1] != "1exa00,"+test.first {
			t.Errorf("%s: %s, want %s\n%s", test.name, got, test.want, b)
		}
	}
}
