package guess

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestNoHeader reads files without a header, and eats no id as one.
func TestNoHeader(t *testing.T) {
	said := Options{NoHeader: true}
	named := func(id string) Options { return Options{ID: id} }
	for _, test := range []struct {
		name, text string
		o          Options
		want       string // the ids that are read, or the beginning of the problem
	}{
		{"a.txt", "# ids\n1abcde\nt3_1abcdf\n", Options{}, "1abcde 1abcdf"},
		{"a.csv", "1abcde\nhttps://redd.it/1abcdf\n", Options{}, "1abcde 1abcdf"},
		{"a.csv", "id\n1abcde\n", Options{}, "1abcde"},
		{"a.csv", "id\n1abcde\n", said, "id 1abcde"},
		{"a.csv", "1abcde,a\n1abcdf,b\n", Options{}, "1abcde 1abcdf"},
		{"a.tsv", "t3_1abcde\ta\nt3_1abcdf\tb\n", Options{}, "1abcde 1abcdf"},
		{"a.csv", "t3_1abcde,a\nt3_1abcdf,b\nnone,b\nwhat is it,b\n", Options{},
			`a.csv:4:1 the file seems to have no header`},
		{"a.csv", "docid,label\n1abcde,b\n1abcdf,b\n", named("docid"), "1abcde 1abcdf"},
		{"a.csv", "thing,label\n1abcde,b\n1abcdf,b\n", named("thing"), "1abcde 1abcdf"},
		{"a.csv", "great,1,1abcde\nbad,2,1abcdf\n", Options{}, "a.csv:1:0 the file seems to have no header"},
		{"a.csv", "great,1,1abcde\nbad,2,1abcdf\n", named("1abcde"),
			`a.csv:1:0 the header of the ids is an id itself, "1abcde"`},
		{"a.csv", "great,1,1abcde\nbad,2,1abcdf\n", said, "1abcde 1abcdf"},
		{"a.csv", "great,1,hat\nbad,2,bat\n", Options{NoHeader: true, Options: manifest.Options{}, ID: "column_3"},
			"hat bat"},
		{"a.csv", "url,caption\nhttps://www.reddit.com/r/a/comments/1abcde/b/,a cat\n", Options{}, "1abcde"},
		{"a.txt", "1abcde,1abcdf,1abcdg\n", Options{},
			`a.txt:1:8 columns "column_1" and "column_2" name different posts here`},
		{"a.csv", "1abcde,1abcdf\n1abcdg,1abcdh\n", Options{}, `a.csv:1:8 columns "column_1" and "column_2" name`},
		{"a.csv", "1abcde,1abcdf\n1abcdg,1abcdh\n", named("column_2"), "1abcdf 1abcdh"},
		{"a.txt", "1abcde;1abcdf\n1abcdg;1abcdh\n", Options{}, `a.txt:1:8 columns "column_1" and "column_2" name`},
		{"a.txt", "1abcde\t333333\t1abcdf\n", Options{}, `a.txt:1:15 columns "column_1" and "column_3" name`},
		{"a.csv", "1abcde,1abcde\n1ABCDG,t3_1abcdg\n", Options{}, "1abcde 1abcdg"},
		{"a.csv", "1abcde,level1\n1abcdf,level2\n1abcdg,fold12\n", Options{}, "1abcde 1abcdf 1abcdg"},
		{"a.csv", "1abcde,b2b4you\n1abcdf,b2b4you\n1abcdg,p2p4all\n", Options{}, "1abcde 1abcdf 1abcdg"},
	} {
		d, err := initFiles(t, test.o, file(t, test.name, test.text))
		if err != nil {
			wantPlaces(t, test.text, err, test.want)
			continue
		}
		var ids []string
		for _, row := range d.Example[1:] {
			ids = append(ids, row[0])
		}
		if got := strings.Join(ids, " "); got != test.want {
			t.Errorf("%q has the ids %q, want %q", test.text, got, test.want)
		}
		bare := !strings.HasPrefix(test.text, "id") || test.o.NoHeader
		bare = bare && test.o.ID != "docid" && test.o.ID != "thing" && !strings.HasPrefix(test.text, "url")
		if said := strings.Contains(strings.Join(d.Notes, "\n"), `has no header`); said != bare {
			t.Errorf("%q: the notes %q", test.text, d.Notes)
		}
	}
}

// TestManyRowsWithHeader keeps columns of numbers and words whose name looks like an id.
func TestManyRowsWithHeader(t *testing.T) {
	for _, header := range []string{"rowno,id,mood", "group,id,mood", "annot1,id,mood", "x1y2z3,post_id,mood"} {
		text := header + "\n"
		for i := range 30 {
			text += fmt.Sprintf("%d,1abc%02d,%s\n", i*i, i, []string{"a", "b"}[i%2])
		}
		d, err := initText(t, "a.csv", text)
		if err != nil || len(d.Example) != 11 || d.Example[1][0] != "1abc00" {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestStdin(t *testing.T) {
	for text, want := range map[string]string{"1abcde\n": "1abcde", "id,x\n1abcdf,a\n": "1abcdf",
		`[{"id": "1abcdg"}]`:                           "1abcdg",
		`{"id": "1abcdh"}` + "\n" + `{"id": "1abcdi"}`: "1abcdh"} {
		kept := file(t, "kept", text)
		d, err := initFiles(t, Options{Stdin: kept, Name: "made"}, "-")
		if err != nil || d.Example[1][0] != want || !strings.Contains(string(d.Settings), `of 1 file`) ||
			!strings.Contains(string(d.Settings), "\nname = \"made\"\n") {
			t.Errorf("%q: %v %v", text, d, err)
		}
		if err := os.WriteFile(kept, []byte("t1_abc\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = initFiles(t, Options{Stdin: kept}, "-")
		if err == nil || strings.Contains(err.Error(), kept) {
			t.Errorf("of standard input: %v", err)
		}
	}
}

// TestNoHeaderOfJSON refuses a flag that would do nothing.
func TestNoHeaderOfJSON(t *testing.T) {
	_, err := initFiles(t, Options{NoHeader: true}, file(t, "a.jsonl", `{"id":"1abcde"}`))
	wantPlaces(t, "JSON", err, "a.jsonl:1:0 --no-header is for CSV, TSV and lists")
}

// TestLongNames takes a name of many words for a name, unless the values below it have as many.
func TestLongNames(t *testing.T) {
	const noIDs, noHeader = "a.csv:1:0 no column looks like post ids", "a.csv:1:0 the file seems to have no header"
	for _, test := range []struct{ text, want string }{
		{"key,annotation.fraud_labels.transaction_upi_fraud\nx.1,0\nx.2,1\n", noIDs},
		{"key,is_the_mood_of_the_post_sad\nx.1,yes\nx.2,no\n", noIDs},
		{"key,What is the mood of this picture?\nx.1,sad\nx.2,glad\n", noIDs},
		{"key,https://example.org/mood\nx.1,sad\nx.2,glad\n", noIDs},
		{"what a nice day it is today,3\nhow bad it is to be here,4\n", noHeader},
		{"https://example.org/a,3\nhttps://example.org/b,4\n", noHeader},
		{"2021-07-09 07:00:55,x.1\n2021-07-09 07:01:06,x.2\n", noHeader},
	} {
		_, err := initText(t, "a.csv", test.text)
		wantPlaces(t, test.text, err, test.want)
	}
}
