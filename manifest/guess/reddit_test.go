package guess

import (
	"fmt"
	"strings"
	"testing"
)

// TestReddit reads Reddit's own JSON, and what is written by id, and leaves people out of it.
func TestReddit(t *testing.T) {
	thing := func(kind string, i int) string {
		return fmt.Sprintf(`{"kind":"%s","data":{"id":"1abcd%d","author":"anna_%d","score":%d,"retrieved_on":%d,"subreddit":"memes"}}`, kind, i, i, i*i, 1600000000+7*i)
	}
	listing := func(kinds string) string {
		var things []string
		for i, kind := range strings.Fields(kinds) {
			things = append(things, thing(kind, i))
		}
		return `{"kind":"Listing","data":{"after":"t3_1abcd1","children":[` + strings.Join(things, ",") + `]}}`
	}
	const columns = "id subreddit score retrieved_on"
	for _, test := range []struct {
		in        string
		postsOnly bool
		columns   string
		want      string // ids, or the beginning of the problem
	}{
		{listing("t3 t3 t3"), false, columns, "1abcd0 1abcd1 1abcd2"},
		{listing("t3 t1 t3"), true, columns, "1abcd0 1abcd2"},
		{listing("t3 t1 t3"), false, "", `a.json:1:170 column "kind" says that this row is about a comment`},
		{`{"1abcd0": {"mood": "a", "author": "x"}, "1abcd1": {"mood": "b", "author": "y"}}`, false, "id mood",
			"1abcd0 1abcd1"},
		{`{"1abcd0": {"mood": "a", "id": 2}, "1abcd1": {"mood": "b", "id": 3}}`, false, "id mood", "1abcd0 1abcd1"},
	} {
		d, err := initFiles(t, Options{PostsOnly: test.postsOnly}, file(t, "a.json", test.in))
		if err != nil {
			wantPlaces(t, test.in, err, test.want)
			continue
		}
		var ids []string
		for _, row := range d.Example[1:] {
			ids = append(ids, row[0])
		}
		if got := strings.Join(ids, " "); got != test.want || strings.Join(d.Example[0], " ") != test.columns {
			t.Errorf("%s has the ids %q and columns %q", test.in, got, d.Example[0])
		}
		if strings.Contains(string(d.Settings), "anna_") {
			t.Errorf("a name is in release.toml of %s", test.in)
		}
	}
}
