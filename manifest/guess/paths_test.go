package guess

import (
	"strings"
	"testing"
)

// TestPaths finds fields whose columns are named after their place in a nested record, as pandas.json_normalize writes
// them, and takes no id of another thing for a post's.
func TestPaths(t *testing.T) {
	for _, test := range []struct{ columns, first, second, id, subreddit string }{
		{"post_metadata.post_id,post_metadata.subreddit,annotation.mood", "1abcde,memes,sad", "1abcdf,aww,glad",
			"post_metadata.post_id", "post_metadata.subreddit"},
		{"kind,data.id,data.subreddit,data.score", "t3,1abcde,memes,3", "t3,1abcdf,aww,14", "data.id",
			"data.subreddit"},
		{"type,id,subreddit.id,subreddit.name,score", "post,1exa00,2exti,memes,3", "post,1exa01,2exti,memes,14", "id",
			"subreddit.name"},
		{"mood,subreddit.id,submission.id", "sad,2exti,1abcde", "glad,2exti,1abcdf", "submission.id", ""},
	} {
		d, err := initText(t, "a.csv", test.columns+"\n"+test.first+"\n"+test.second+"\n")
		if err != nil {
			t.Errorf("%s: %v", test.columns, err)
			continue
		}
		said := strings.Join(d.Notes, "\n")
		for field, column := range map[string]string{"id": test.id, "subreddit": test.subreddit} {
			if want := field + ` is column "` + column + `":`; strings.Contains(said, want) != (column != "") {
				t.Errorf("%s: want %s of\n%s", test.columns, want, said)
			}
		}
	}
}
