package table_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/table"
)

// TestRedditJSON reads what Reddit's API and tools built on it give as rows of posts.
func TestRedditJSON(t *testing.T) {
	const post, other = `{"kind":"t3","data":{"id":"1abcde","score":3}}`,
		`{"data": {"id": "1abcdf", "score": 4}, "kind": "t3"}`
	posts := []string{"id|score|kind", "1|1abcde|3|t3", "1|1abcdf|4|t3"}
	for _, test := range []struct {
		name, text, path string
		want             []string
	}{
		{"a.json", `{"kind":"Listing","data":{"after":null,"dist":2,"children":[` + post + "," + other +
			`],"before":null}}`, "", posts},
		{"a.json", `{"data":{"children":[` + post + "," + other + `]}}`, "", posts},
		{"a.json", `{"kind":"Listing","data":{"children":[` + post + `]}}`, "data.children", posts[:2]},
		{"a.json", "[" + post + "," + other + "]", "", posts},
		{"a.jsonl", post + "\n" + other, "", []string{"id|score|kind", "1|1abcde|3|t3", "2|1abcdf|4|t3"}},
		{"a.jsonl", other, "", []string{"id|score|kind", "1|1abcdf|4|t3"}},
		{"a.json", `[{"kind":"t1","data":{"id":"abc","kind":"x"}}]`, "", []string{"id|kind", "1|abc|x"}},
		{"a.json", `[{"kind":"news","data":{"id":"abc"}}]`, "", []string{"kind|data", "1|news|{}"}},
		{"a.json", `[{"kind":"t3","data":{"id":"abc"},"x":1}]`, "", []string{"kind|data|x", "1|t3|{}|1"}},
		{"a.json", `[{"kind":"t3","data":[1]}]`, "", []string{"kind|data", "1|t3|[1]"}},
		{"a.json", `[{"kind":"t3","data":{"id":"abc","id":"abd"}}]`, "", []string{"id",
			`1:34 the key "id" stands twice`}},
		{"a.json", `[{"kind":"Listing","data":{"children":[` + post +
			`]}},{"kind":"Listing","data":{"children":[]}}]`, "",
			[]string{"1:1 the file is a list of Reddit's listings: of posts, or of a post and its comments"}},
		{"a.jsonl", `{"kind":"Listing","data":{"children":[` + post + `]}}`, "", []string{"",
			"1:1 the record is a listing of Reddit's, which holds many posts"}},
		{"a.json", `{"1abcde": {"score": 3}, "t3_1abcdf": {"score": 4, "x": {}}}`, "", []string{"id|score|x",
			"1|1abcde|3", "1|t3_1abcdf|4|{}"}},
		{"a.json", "{\n\"abcdef\": {\"id\": 7},\n \"1abcdf\": {\"id\": 8}}", "", []string{"post_id|id",
			"2|abcdef|7", "3|1abcdf|8"}},
		{"a.json", `{"info": {}, "all": {"1abcde": {"score": 3}}}`, "all", []string{"id|score", "1|1abcde|3"}},
		{"a.json", `{"1abcde": {"score": 3}, "1abcdf": 7, "1abcdg": {"score": 5}}`, "",
			[]string{"id|score", "1|1abcde|3", "1:0 the value of a key is not a record", "1|1abcdg|5"}},
		{"a.json", `{"1abcde": {"score": 3}, "1abcdf": {`, "", []string{"id|score", "1|1abcde|3",
			"1:37 the file ends inside a value"}},
		{"a.json", `{"0": {"Reddit ID": "abc", "x": {}}, "1": {"Reddit ID": "abd"}}`, "",
			[]string{"Reddit ID|x", "1|abc|{}", "1|abd|~"}},
		{"a.json", `{"1": {"id": "abc"}}`, "", []string{"id", "1|abc"}},
		{"a.json", `{"all": {"0": {"id": "abc"}, "1": {"id": "abd"}}}`, "all", []string{"id", "1|abc", "1|abd"}},
		{"a.json", `{"2": {"id": "abc"}, "4": {"id": "abd"}}`, "",
			[]string{"1:41 no key of the object holds a list of records"}},
		{"a.json", `{"id":{"0":"abc","1":"abd"},"x":{"0":1,"1":2}}`, "",
			[]string{"1:1 the file holds columns, as pandas writes a table, and not records"}},
		{"a.json", `{"x":{"0":"a"},"rows":[{"id":"abc"}]}`, "", []string{"id", "1|abc"}},
		{"a.json", `{"columns":["id"],"index":[0,1],"data":[["abc"],["abd"]]}`, "",
			[]string{"1:1 the file holds columns, as pandas writes a table, and not records"}},
		{"a.json", `{"info": {"x": 1}, "annotations": [{"id": "abc"}]}`, "", []string{"id", "1|abc"}},
		{"a.json", `{"fold1": {"x": 1}, "fold2": {"x": 1}}`, "", []string{"1:39 no key of the object holds a list " +
			"of records"}},
		{"a.json", `{"info": {"x": 1}}`, "", []string{"1:19 no key of the object holds a list of records"}},
	} {
		in, err := open(strings.NewReader(test.text), test.name, nil, test.path)
		if diff := cmp.Diff(test.want, lines(t, in, err)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", test.name, test.text, diff)
		}
	}
	in, err := open(strings.NewReader(`{"data":{"children":[`+post+`]}}`), "a.json", []string{"score", "id"}, "")
	if diff := cmp.Diff([]string{"score|id", "1|3|1abcde"}, lines(t, in, err)); diff != "" {
		t.Errorf("wanted columns (-want +got):\n%s", diff)
	}
	in, err = open(strings.NewReader(`{"1abcde": {"score": 3}}`), "a.json", []string{"score", "id"}, "")
	if diff := cmp.Diff([]string{"score|id", "1|3|1abcde"}, lines(t, in, err)); diff != "" {
		t.Errorf("wanted columns of a map (-want +got):\n%s", diff)
	}
}

func FuzzRedditJSON(f *testing.F) {
	f.Add(`{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"1abcde"}}]}}`, "")
	f.Add(`{"1abcde": {"score": 3}, "t3_1abcdf": {"x": {}}}`, "")
	f.Add(`{"all": {"1abcde": {"score": 3}}}`, "all")
	f.Fuzz(func(t *testing.T, text, path string) {
		in, err := open(strings.NewReader(text), "a.json", nil, path)
		for range len(text) + 2 { // one for the error of a list that does not end
			if err != nil {
				return
			}
			_, err = in.Next()
			if p, isProblem := table.AsProblem(err); isProblem && p.Line > 0 {
				err = nil
			}
		}
		t.Fatalf("the rows of %q do not end", text)
	})
}
