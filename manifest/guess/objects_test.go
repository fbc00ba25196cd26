package guess

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// memecap gives rows as MemeCap has them: with lists of objects, and more.
func memecap() string {
	rows := []string{
		`"metaphors":[{"metaphor":"a \"cat\"","meaning":"me"}],"media":{"e":[1,2.50,null]},"tags":["a",null]`,
		`"metaphors":[],"media":null,"tags":["b"]`,
		`"metaphors":[{"metaphor":"x","meaning":"{y}"},{"metaphor":"z","meaning":"\u00e9\u007f"}],"media":"{\"s\": [1, 2]}","tags":"12"`,
		`"metaphors":null,"media":false,"tags":12`,
	}
	text := ""
	for i, row := range rows {
		text += fmt.Sprintf(`{"id":"1abcd%d","mood":"%s",%s}`+"\n", i, []string{"a", "b"}[i%2], row)
	}
	return text
}

// TestObjects keeps columns of objects as JSON where --keep names them, and says what is not kept.
func TestObjects(t *testing.T) {
	d, err := initFiles(t, Options{}, file(t, "a.jsonl", memecap()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"metaphors": it holds objects, in 2 cells; --keep "metaphors" passes them through as JSON`} {
		if !strings.Contains(strings.Join(d.Notes, "\n"), want) {
			t.Errorf("no note %q in %q", want, d.Notes)
		}
	}
	d, err = initFiles(t, Options{Keep: []string{"metaphors", "media", "tags"}}, file(t, "a.jsonl", memecap()))
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	list, err := entries(t, r, nil)
	var got []string
	for _, e := range list {
		for _, v := range e.Values {
			got = append(got, strings.Join(v, "|"))
		}
	}
	want := []string{
		`[{"metaphor":"a \"cat\"","meaning":"me"}]`, `{"e":[1,2.50,null]}`, `["a",null]`,
		`[]`, ``, `["b"]`,
		`[{"metaphor":"x","meaning":"{y}"},{"metaphor":"z","meaning":"\u00e9\u007f"}]`, `{"s":[1,2]}`, `"12"`,
		``, `false`, `12`,
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
	}
	for _, c := range r.Schema.Columns {
		if c.Type != manifest.TypeJSON || c.List || c.String() != "JSON as text" {
			t.Errorf("column %+v", c)
		}
	}
	if len(d.Warnings) != 3 || !strings.HasPrefix(d.Warnings[0],
		`column "metaphors" holds objects: all that is in them is published`) {
		t.Errorf("look at %q", d.Warnings)
	}
	unfit, err := Unfit(t.Context(), r, func(string) string { return "" }, nil, nil)
	if err != nil || len(unfit) != 3 || !strings.Contains(unfit[0], "holds objects, in which people can be named "+
		"and quoted") {
		t.Errorf("unfit %q %v", unfit, err)
	}
}

// TestObjectsManyRows gives lists of JSON where several rows are about one image.
func TestObjectsManyRows(t *testing.T) {
	text := `{"id":"1abcde","m":"a","o":{"x":1}}` + "\n" + `{"id":"1abcde","m":"b","o":null}` + "\n" +
		`{"id":"1abcde","m":"a","o":[{}]}`
	d, err := initFiles(t, Options{Many: true, Keep: []string{"o"}}, file(t, "a.jsonl", text))
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	if c := r.Schema.Joined().Columns[0]; !c.List || c.String() != "list of JSON as text" {
		t.Errorf("joined %+v", c)
	}
}

// TestObjectsName says what in objects that are kept may tell who somebody is.
func TestObjectsName(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":{"author":"x"}}`:         `the key "author"`,
		`[{"b":["anna@example.org"]}]`: "a mail address",
		`{"author_karma":1}`:           `the key "author_karma"`,
		`{"metaphor":"author"}`:        "",
	} {
		d, err := initFiles(t, Options{Keep: []string{"o"}}, file(t, "a.jsonl", `{"id":"1abcde","o":`+value+`}`))
		said := err == nil && strings.Contains(d.Warnings[len(d.Warnings)-1], "may hold personal data ("+want+")")
		if err != nil || said != (want != "") {
			t.Errorf("%s: %v %q", value, err, d.Warnings)
		}
	}
}

// TestKeepRefuses never accepts a flag and drops the column.
func TestKeepRefuses(t *testing.T) {
	for _, test := range []struct {
		in, keep string
		o        Options
		want     string
	}{
		{`{"id":"1abcde","o":{"x":"\ud800"}}`, "o", Options{},
			`--keep names column "o", which cannot be kept: the value at `},
		{`{"id":"1abcde","o":null}`, "o", Options{}, `--keep names column "o", and all its cells are empty`},
		{`{"id":"1abcde"}`, "o", Options{}, `--keep names column "o", which is not there`},
		{`{"id":"1abcde","o":["a"]}`, "o", Options{Many: true},
			`--keep names column "o", which cannot be kept: it holds lists`},
		{`{"id":"1abcde","o":"a","ocr_text":"x","ocr_confidence":1,"width":3}`, "width", Options{},
			`--keep names column "width", which cannot be kept: a run makes it`},
	} {
		test.o.Keep = []string{test.keep}
		_, err := initFiles(t, test.o, file(t, "a.jsonl", test.in))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.in, err)
		}
	}
}

// TestKeepFigSIM passes a column through beside FigSIM's labels.
func TestKeepFigSIM(t *testing.T) {
	path := file(t, "a.csv", strings.ReplaceAll(figsimHeader, "\n", ",note\n")+strings.ReplaceAll(testRow, "\n",
		",a word\n"))
	d, err := initFiles(t, Options{Keep: []string{"note"}}, path)
	if err != nil {
		t.Fatal(err)
	}
	r := written(t, d, manifest.Options{})
	b, _ := os.ReadFile(filepath.Join(r.Dir, "annotations.csv"))
	if len(r.Schema.Columns) != 1 || !strings.Contains(string(b), "a word") {
		t.Errorf("%+v\n%s", r.Schema.Columns, b)
	}
}
