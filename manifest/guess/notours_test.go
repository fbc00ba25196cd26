package guess

import (
	"testing"

	"rehydrate/manifest"
)

// TestNotOurs says what a file is that holds no ids of posts, and what would serve.
func TestNotOurs(t *testing.T) {
	const share = "open each and copy the address that the browser then shows; rehydrate asks Reddit about ids alone"
	const images = "an image's address does not name the post that it stood in, so nobody could ask Reddit whether " +
		"the post was deleted: " +
		"use img2dataset, or add a column with the ids or permalinks of the posts"
	for _, test := range []struct {
		name, in   string
		o          Options
		want, hint string
	}{
		{"a.csv", "url,caption\nhttps://i.redd.it/a1.jpg,a cat\nhttps://example.org/b.png?w=3,a dog\n", Options{},
			`a.csv:2:1 column "url" has addresses of images, here and in 2 of 2 rows, and no column has ids of posts: such a list is what img2dataset downloads`, images},
		{"a.txt", "https://i.redd.it/a1.jpg\nhttps://i.imgur.com/b\n", Options{},
			`a.txt:1:1 column "id" has addresses of images, here and in 2 of 2 rows`, images},
		{"a.csv", "https://i.redd.it/a1.jpg,a cat\nhttps://i.redd.it/a2.jpg,a " +
			"dog\nhttps://i.redd.it/a3.jpg,a dog\n", Options{},
			`a.csv:2:1 column "https://i.redd.it/a1.jpg" has addresses of images`, images},
		{"a.csv", "link,mood\nhttps://www.reddit.com/r/memes/s/AbC,a\nhttps://reddit.com/u/x/s/AbD,b\n", Options{},
			`a.csv:2:1 column "link" has share links of Reddit's (/s/), here and in 2 of 2 rows: such a link does not hold the id of its post`, share},
		{"a.txt", "https://www.reddit.com/r/memes/s/AbC\nhttps://www.reddit.com/r/memes/s/AbD", Options{},
			`a.txt:1:1 column "id" has share links`, share},
		{"a.csv", "id,link_id,mood\nt1_abc,t3_1abcde,a\nt1_abd,t3_1abcde,b\n", Options{},
			`a.csv:2:1 column "id" has ids of comments, not of posts, here and in 2 of 2 rows`,
			`a release is made of posts: --id "link_id" takes those that the comments stand under, and --many several rows about one`},
		{"a.csv", "id,mood\nt1_abc,a\nt1_abd,b\n", Options{}, `a.csv:2:1 column "id" has ids of comments`,
			"a release is made of posts: name the column with the ids of the posts that the comments stand under, " +
				"rehydrate init --id COLUMN"},
		{"a.txt", "t1_abc\nt1_abd\n", Options{}, `a.txt:1:1 column "id" has ids of comments`,
			"a release is made of posts: write the ids of those that the comments stand under (link_id in " +
				"Reddit's data)"},
		{"a.tsv", "what a nice day it is today, friends\t3\teebbqej\nhow bad\t4\teebbqek\n",
			Options{NoHeader: true}, `a.tsv:1:40 column "column_3" has ids of comments`, ""},
		{"a.csv", "id,mood\n1abcde,a\nt1_abc,a\nt1_abd,b\n", Options{},
			`a.csv:3:1 column "id" has ids of comments, not of posts, here and in 2 of 3 rows`,
			"a release is made of posts: name the column with the ids of the posts that the comments stand under, " +
				"rehydrate init --id COLUMN; --posts-only leaves the rows about comments out"},
		{"a.csv", "type,id,subreddit.id,permalink,mood\n" +
			"comment,i2exa0n,2exti,https://old.reddit.com/r/x/comments/1exa00/t/i2exa0n/,sad\n" +
			"comment,i2exa1n,2exti,https://old.reddit.com/r/x/comments/1exa01/t/i2exa1n/,glad\n", Options{},
			`a.csv:2:9 column "id" has ids of comments, not of posts, here and in 2 of 2 rows`,
			`a release is made of posts, whose ids stand in column "permalink" behind /comments/: write them into a ` +
				"column of their own, name it with --id, and give --many where a post has several rows"},
		{"a.csv", "Title,Score\na cat,3\na dog,14\n", Options{}, "a.csv:1:0 no column looks like post ids",
			"a release is made of posts: add a column with their ids or permalinks, or name the one that has them, " +
				"rehydrate init --id COLUMN"},
		{"a.jsonl", `{"comment_id": "gexa97s", "task": "civility", "parent_id": null}` + "\n" +
			`{"comment_id": "gexh95s", "task": "civility", "parent_id": null}` + "\n", Options{},
			`a.jsonl:1:16 column "comment_id" has ids of comments, not of posts, here and in 2 of 2 rows`,
			"a release is made of posts: name the column with the ids of the posts that the comments stand under, " +
				"rehydrate init --id COLUMN"},
		{"a.csv", "link,mood\n,a\nhttps://x.org/a,b\nhttps://reddit.com/u/x/s/AbD,b\nhttps://reddit.com/u/x/s/AbE,b\n",
			Options{},
			`a.csv:4:1 column "link" has share links of Reddit's (/s/), here and in 2 of 3 rows`, share},
	} {
		_, err := initFiles(t, test.o, file(t, test.name, test.in))
		wantPlaces(t, test.in, err, test.want)
		if problems, ok := err.(*manifest.Problems); test.hint != "" && (!ok || problems.List[0].Hint != test.hint) {
			t.Errorf("%s: %v\nwant the hint %q", test.in, err, test.hint)
		}
	}
	// Beside ids the same columns are no reason to refuse.
	d, err := initText(t, "a.csv",
		"url,id,mood\nhttps://i.redd.it/a1.jpg,1abcde,a\nhttps://i.redd.it/a2.jpg,1abcdf,b\n")
	if err != nil || len(d.Example) != 3 {
		t.Errorf("images beside ids: %v", err)
	}
}
