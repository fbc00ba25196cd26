package manifest

import (
	"bytes"
	gocmp "cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// initText makes a draft of text, as a file of that name.
func initText(t testing.TB, name, text string) (*Draft, error) {
	t.Helper()
	return Init(t.Context(), filepath.Join(folder(t, map[string]string{name: text}), name), Options{})
}

// written writes the draft and opens and checks what it wrote.
func written(t testing.TB, d *Draft) (*Release, Summary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "release")
	if _, err := d.Write(t.Context(), dir, map[string][]byte{TombstonesName: []byte("id,state,time\n")}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("what Init wrote cannot be opened: %v\n%s", err, d.Settings)
	}
	s, err := r.Check(t.Context())
	if err != nil {
		t.Fatalf("what Init wrote is not accepted: %v\n%s", err, d.Settings)
	}
	return r, s
}

func TestInitFindsFigSIM(t *testing.T) {
	d, err := Init(t.Context(), "testdata/annotations.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, s := written(t, d)
	bare, err := Open("testdata/annotations.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := bare.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s); diff != "" || r.Schema.Name != "figsim" || r.ManifestDigest != bare.ManifestDigest || len(d.Notes) != 7 {
		t.Errorf("schema %s, notes %q, counts (-bare +init):\n%s", r.Schema.Name, d.Notes, diff)
	}
	if r.TombstonesPath == "" || r.PolicyPath != "" {
		t.Errorf("tombstones %q, policy %q, want only the former", r.TombstonesPath, r.PolicyPath)
	}
}

func TestInitGuesses(t *testing.T) {
	var b strings.Builder
	b.WriteString("row,Reddit ID,Partition,Mood!,2nd mood,image,author,caption,tags,empty\n")
	captions := "abcdefghijklmnopqrstuvwxyz"
	for i, c := range captions {
		mood := []string{"happy", "Sad", "10"}[i%3]
		tags := []string{"None", "cat; dog", "dog", ""}[i%4]
		part := []string{"train", "dev"}[i%2]
		b.WriteString(strings.Join([]string{string(c), "t3_1a" + string(c), part, mood, string(rune('0' + i%10)), string(c) + ".jpg", "someone", `"said ""` + string(c) + `"" loudly"`, tags, ""}, ",") + "\n")
	}
	d, err := initText(t, "memes.csv", b.String())
	if err != nil {
		t.Fatal(err)
	}
	r, s := written(t, d)
	var got []string
	for _, c := range r.Schema.Categories {
		var codes []string
		for _, l := range c.Labels {
			if l.Exclusive {
				l.Code += "!"
			}
			codes = append(codes, l.Code)
		}
		got = append(got, c.Name+" "+string(c.Kind)+" "+strings.Join(codes, ","))
	}
	want := []string{"mood single 10,happy,Sad", "c_2nd_mood single 0,1,2,3,4,5,6,7,8,9", "tags multi cat,dog,None!"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"train", "dev"}, s.Splits); diff != "" {
		t.Errorf("splits (-want +got):\n%s", diff)
	}
	for _, note := range []string{`author`, `image = "" # column "image" has the name`, `# Not used: "caption": its values are not short labels`, `# Not used: "empty": empty`,
		"mood = \"Mood!\" #", "c_2nd_mood = \"2nd mood\" #", "tags = \"tags\" # 3 different labels; a cell can hold several"} {
		if !bytes.Contains(d.Settings, []byte(note)) {
			t.Errorf("release.toml does not say %q:\n%s", note, d.Settings)
		}
	}
	if b, err := os.ReadFile(r.ManifestPath); err != nil || !bytes.HasPrefix(b, []byte("row,Reddit ID,Partition,Mood!,2nd mood,image,caption,tags,empty\na,t3_1aa,train,happy,0,a.jpg,\"said \"\"a\"\" loudly\",None,\n")) {
		t.Errorf("the copy, without the author: %.200q, %v", b, err)
	}
	notes := []string{
		`id is column "Reddit ID": by its name; 26 of 26 values are post ids`, `split is column "Partition": by its name; the splits are dev, train`,
		`image has no column: column "image" has the name, but other values`, `category mood (single) is "Mood!": 3 different values in 26 cells`,
		`category c_2nd_mood (single) is "2nd mood": 10 different values in 26 cells`, `category tags (multi) is "tags": 3 different labels; a cell can hold several, separated by ";"`,
		`not used: "row": its values are not short labels that repeat`, `not used: "image": its values are not short labels that repeat`, `not used: "author": it is about people or holds their words, and was not copied`,
		`not used: "caption": its values are not short labels that repeat`, `not used: "empty": empty`,
	}
	if diff := cmp.Diff(notes, d.Notes); diff != "" || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "personal") {
		t.Errorf("warnings %q, notes (-want +got):\n%s", d.Warnings, diff)
	}
}

func TestInitLeavesPersonalColumnsOut(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"a.tsv", "permalink\tmood\tUser\n/r/x/comments/abc/t\tsad\tann\n/r/x/comments/abd/t\t\"gl,ad\"\t\"b\no\tb\"\n", // the permalink is the id
			"permalink\tmood\n/r/x/comments/abc/t\tsad\n/r/x/comments/abd/t\tgl,ad\n"},
		{"a.csv", "id,permalink,mood,Author Flair,selftext\nabc,/r/x/comments/abc/t,sad,x,\"so\n\"\"sad\"\"\"\nabd,/r/x/comments/abd/t,\"a \"\"b\"\"\",y,\n", "id,mood\nabc,sad\nabd,\"a \"\"b\"\"\"\n"},
		{"a.jsonl", `{"id":"abc" , "title":"a,}", "mood":  ["sad",1.50],"author":{"name":["x"]}}` + "\r\n" + `{"body":null,"id":"abd","mood":[]}`,
			`{"id":"abc","mood":  ["sad",1.50]}` + "\n" + `{"id":"abd","mood":[]}` + "\n"},
	} {
		d, err := initText(t, test.name, test.in)
		if err != nil {
			t.Fatal(err)
		}
		r, s := written(t, d)
		b, err := os.ReadFile(r.ManifestPath)
		if err != nil || string(b) != test.want || s.Entries != 2 {
			t.Errorf("%s was copied as %q, %v, want %q", test.name, b, err, test.want)
		}
	}
}

func TestInitLists(t *testing.T) {
	d, err := initText(t, "a.jsonl", `{"id":"abc","tag":["x|y","z"],"hue":["red","blue"]}`+"\n"+`{"id":"abd","hue":[],"late":"yes"}`)
	if err != nil {
		t.Fatal(err)
	}
	r, s := written(t, d)
	if len(r.Schema.Categories) != 2 || s.Counts["train"]["hue"]["red"] != 1 || s.Counts["train"]["late"]["yes"] != 1 {
		t.Errorf("categories %+v, counts %v", r.Schema.Categories, s.Counts)
	}
}

// TestInitFields guesses fields by name, where the values are the usual ones.
func TestInitFields(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	const head = "id,post_id,set,image,sha256,phash,tone,sha256_stripped,sha256_pixels\n"
	for name, c := range map[string]struct{ rows, want string }{
		"all": {"abc,1,a,0," + hash + ",00ff00ff00ff00ff,x," + hash + "," + hash + "\nabc,2,b,1,,,y,,\n",
			"id id, split set, image image, sha256 sha256, sha256_stripped sha256_stripped, sha256_pixels sha256_pixels, phash phash"},
		"none":        {"a b,a1,a,x,1,1,x,1,1\na c,a2,,2,2,2,y,2,2\n", "id post_id, split -, image -, sha256 -, sha256_stripped -, sha256_pixels -, phash -"},
		"split case":  {"abc,1,a,,,,x,,\nabd,2,A,,,,y,,\n", "id id, split -, image -, sha256 -, sha256_stripped -, sha256_pixels -, phash -"},
		"images of 1": {"abc,1,a,1,,,x,,\nabd,2,a,2,,,y,,\n", "id id, split set, image image!, sha256 -, sha256_stripped -, sha256_pixels -, phash -"},
	} {
		d, err := initText(t, "a.csv", head+c.rows)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := make([]string, 0, fieldSubreddit)
		for field, column := range d.release.plan.fields[:fieldSubreddit] {
			column = gocmp.Or(column, "-")
			if field == fieldImage && len(d.Warnings) > 0 {
				column += "!"
			}
			got = append(got, fieldNames[field]+" "+column)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestInitSeparator takes the sign of the columns that can be labels, and no list with a label twice.
func TestInitSeparator(t *testing.T) {
	for text, want := range map[string]string{
		"id,title,author,tags\nabc,a|b,c|d,x;y\nabd,a|b,c|d,x\n":  "; tags multi",
		"id,tags\nabc,none;x\nabd,none\n":                         "; tags multi",
		"id,tags\nabc,y;x\nabd,None\n":                            "; tags multi!",
		"id,set,tags\nabc,s,x;y\nabd,s,x;x\n":                     "| tags single",
		"id,tags,more\nabc,x;y,\"1,2\"\nabd,x,\"1,3\"\nabe,x,1\n": "; tags multi more single",
		"id,tags,more,most\nabc,x;y,\"1,2\",\"a,b\"\n":            ", tags single more multi most multi",
	} {
		d, err := initText(t, "a.csv", text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := d.release.plan.separator
		for _, c := range d.release.Schema.Categories {
			got += " " + c.Name + " " + string(c.Kind)
			if slices.ContainsFunc(c.Labels, func(l Label) bool { return l.Exclusive }) {
				got += "!"
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestInitCategories makes labels of few enough values, under names that differ.
func TestInitCategories(t *testing.T) {
	rows := func(n, different int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d,x%d\n", i, i%different)
		}
		return b.String()
	}
	wide := "id"
	for i := range maxCategories + 1 {
		wide += fmt.Sprintf(",x%d", i)
	}
	for name, c := range map[string]struct {
		text string
		want int
		last string
	}{
		"short":      {"id,x\n" + rows(19, 19), 1, "x"},
		"half":       {"id,x\n" + rows(20, 10), 1, "x"},
		"most":       {"id,x\n" + rows(100, 50), 1, "x"},
		"over half":  {"id,x\n" + rows(20, 11), 0, ""},
		"over most":  {"id,x\n" + rows(200, 51), 0, ""},
		"same names": {"id,mood!,mood?,Mood\nab1,a,b,c\n", 3, "mood_3"},
		"bad names":  {"id,," + strings.Repeat("x", maxLabelText+1) + ",user,x\nab1,a,b,c,d\n", 1, "x"},
		"many":       {wide + "\nab1" + strings.Repeat(",y", maxCategories+1) + "\n", maxCategories, "x199"},
	} {
		d, err := initText(t, "a.csv", c.text)
		if c.want == 0 {
			matchPlaces(t, places(t, err), []string{"a.csv:1:0 no column looks like labels"})
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if all := d.release.Schema.names(); len(all) != c.want || all[len(all)-1] != c.last {
			t.Errorf("%s: categories %.200q, want %d", name, all, c.want)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "a.csv:1:0 the file is empty",
		"id,mood\n":                    "a.csv:1:0 no column looks like post ids",
		"name,mood\nbob,sad\nann,sad":  "a.csv:1:0 no column looks like post ids",
		"id,note\n" + notes(30):        "a.csv:1:0 no column looks like labels",
		"id,mood\nabc,sad\nabc,glad\n": "a.csv:3:1 post abc, image 0, is already on line 2",
		"id,mood\nab1,sad\nab2,glad\n1E+05,sad\n": `a.csv:4:1 "1E+05" is not a post id but a number`,
		"id,mood\nab1,sad\nab2\n":                 "a.csv:3:4 the row has 1 fields",
	} {
		_, err := initText(t, "a.csv", text)
		if err == nil {
			t.Errorf("%q made a release", text)
			continue
		}
		matchPlaces(t, places(t, err), []string{want})
	}
}

// notes are n rows with texts that are no labels.
func notes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("a" + strings.Repeat("b", i%10) + strings.Repeat("c", i/10) + ",text " + strings.Repeat("x", i) + "\n")
	}
	return b.String()
}

func TestDraftWriteRefuses(t *testing.T) {
	d, err := initText(t, "a.csv", "id,mood\nabc,sad\nabd,glad\n")
	if err != nil {
		t.Fatal(err)
	}
	full := folder(t, map[string]string{"mine.txt": "keep"})
	if _, err := d.Write(t.Context(), full, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder in use: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(full, "mine.txt")); err != nil || string(b) != "keep" {
		t.Errorf("the file in it: %q, %v", b, err)
	}
}

func TestDraftWriteLeavesNothingBehind(t *testing.T) {
	for _, was := range []string{"id,mood\nabc,sad\nabd,glad\n", "id,mood,author\nabc,sad,x\nabd,glad,y\n"} {
		d, err := initText(t, "a.csv", was)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.release.ManifestPath, []byte("id,mood\nabe,sad\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		empty := t.TempDir()
		for _, dir := range []string{empty, filepath.Join(t.TempDir(), "new")} {
			if _, err := d.Write(t.Context(), dir, map[string][]byte{"policy.toml": nil}); err == nil || !strings.Contains(err.Error(), "was changed") {
				t.Errorf("annotations changed since: %v", err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
		}
		if _, err := os.Stat(empty); err != nil {
			t.Errorf("the empty folder that was there: %v", err)
		}
	}
}

// A full disk is noticed by a copy without some columns.
func TestRedactFails(t *testing.T) {
	for format, text := range map[Format]string{CSV: "id,author\nabc,x\n", TSV: "id\tauthor\nabc\tx\n", JSONL: `{"id":"abc","author":"x"}`} {
		if err := redact(failingWriter{}, strings.NewReader(text), "a", format, []string{"author"}); err == nil {
			t.Errorf("%s: a full disk went unnoticed", format)
		}
	}
}

func TestInitParquet(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"a.parquet": "any bytes"}), "a.parquet")
	o := Options{OpenParquet: func(string, []string) (RowReader, error) {
		return &fakeParquet{columns: []string{"post_id", "tags"}, rows: [][]Cell{
			{text("abc"), items("x", "y")}, {text("abd"), items("y")}, {text("abe"), {Null: true}},
		}}, nil
	}}
	d, err := Init(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "r")
	paths, err := d.Write(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "annotations.parquet"), filepath.Join(dir, "release.toml")}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	r, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int
	for _, e := range all(t, r) {
		got = append(got, e.Labels[0])
	}
	if diff := cmp.Diff([][]int{{0, 1}, {1}, nil}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
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
		d, err := initText(t, []string{"a.csv", "a.tsv", "a.jsonl"}[kind%3], string(b))
		if err != nil {
			if strings.Contains(err.Error(), "that was guessed") {
				t.Fatalf("%q: %v", b, err)
			}
			places(t, err)
			return
		}
		_, s := written(t, d)
		if diff := cmp.Diff(d.Summary, s); diff != "" {
			t.Fatalf("%q: counts (-draft +written):\n%s", b, diff)
		}
	})
}
