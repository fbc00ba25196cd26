package guess

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// TestInitAsks holds what init does not guess: it says why, and which flag decides.
func TestInitAsks(t *testing.T) {
	for _, test := range []struct {
		name, in string
		o        Options
		want     []string
	}{
		{"t1", "id,mood\nt1_abc,sad\nt1_abd,glad\n", Options{},
			[]string{`a.csv:2:1 column "id" has ids of comments, not of posts, here and in 2 of 2 rows`}},
		{"permalinks of comments", "permalink,mood\n/r/x/comments/abc/t/def/,sad\n/r/x/comments/abd/t/deg,glad\n",
			Options{}, []string{`a.csv:2:1 column "permalink" has ids of comments`}},
		{"one comment", "id,mood\nabc,sad\nt1_abd,glad\nabe,sad\n", Options{},
			[]string{`a.csv:3:1 "t1_abd" is the id of a comment`}},
		{"rows about comments", "id,linked_submission_id,mood\nabc,,sad\ndef01,abc,glad\ndef02,abc,sad\n", Options{},
			[]string{
				`a.csv:3:7 column "linked_submission_id" says that this row is about a comment, so its id is not that of a post`, "a.csv:4:7 column"}},
		{"ids above those of posts", "id,mood\neebbqej,sad\neebbqek,glad\n", Options{},
			[]string{`a.csv:2:1 column "id" has ids of comments, not of posts, here and in 2 of 2 rows`}},
		{"one id above", "id,mood\n1sk9mhg,sad\neebbqek,glad\n1sk9mhh,sad\n", Options{},
			[]string{`a.csv:3:1 "eebbqek" is not the id of a post`}},
		{"named ids above", "x,mood\neebbqej,sad\n", Options{ID: "x"},
			[]string{`a.csv:2:1 "eebbqej" is not the id of a post`}},
		{"an export of comments",
			"id,type,permalink,mood\nabc1,comment,/r/x/comments/zzz/t/abc1/,sad\nabc2,comment,/r/x/comments/zzy/t/abc2/,glad\n", Options{}, []string{
				`a.csv:2:6 column "type" says that this row is about a comment, so its id is not that of a post`,
				"a.csv:3:6 column"}},
		{"addresses of comments beside ids",
			"id,permalink,mood\nabc1,/r/x/comments/zzz/t/abc1/,sad\nabc,/r/x/comments/abc/t/,glad\n", Options{},
			[]string{`a.csv:2:6 column "permalink" says`}},
		{"t1 as a kind", "id,kind,mood\nabc,t3,sad\nabd,t1,glad\n", Options{}, []string{`a.csv:3:5 column "kind" says`}},
		{"is_submission", "id,is_submission,mood\nabc,True,sad\nabd,False,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_submission" says`}},
		{"is_comment in numbers", "id,is_comment,mood\nabc,0,sad\nabd,1,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says`}},
		{"is_comment as pandas writes it", "id,is_comment,mood\nabc,0.0,sad\nabd,1.0,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says`}},
		{"is_comment in words", "id,is_comment,mood\nabc,no,sad\nabd,Yes,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says`}},
		{"is_comment in letters", "id,isComment,mood\nabc,f,sad\nabd,t,glad\n", Options{},
			[]string{`a.csv:3:5 column "isComment" says`}},
		{"is_submission in letters", "id,is_submission,mood\nabc,Y,sad\nabd,N,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_submission" says`}},
		{"is_post in numbers", "id,is_post,mood\nabc,1,sad\nabd,0,glad\nabe,,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_post" says`}},
		{"is_comment with odd values", "id,is_comment,mood\nabc,0,sad\nabd,1,glad\nabe,?,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says`,
				`a.csv:4:5 column "is_comment" says neither yes nor no, so this row may be about a comment`}},
		{"kinds under another name", "id,what,mood\nabc,post,sad\nabd,comment,glad\n", Options{},
			[]string{`a.csv:3:5 column "what" says`}},
		{"kinds with their parts", "id,unit,mood\nabc,submission title,sad\nabd,comment body,glad\n", Options{},
			[]string{`a.csv:3:5 column "unit" says`}},
		{"comments alone", "id,unit,mood\nabc,comment,sad\nabd,reply,glad\n", Options{},
			[]string{`a.csv:2:5 column "unit" says`, `a.csv:3:5 column "unit" says`}},
		{"comments as the source", "id,source,mood\nabc,comment,sad\nabd,comment,glad\n", Options{},
			[]string{`a.csv:2:5 column "source" says`, `a.csv:3:5 column "source" says`}},
		{"depths", "id,depth,mood\nabc,0,sad\nabd,1,glad\nabe,2,glad\n", Options{},
			[]string{`a.csv:3:5 column "depth" says`, "a.csv:4:5 column"}},
		{"is_top_level", "id,is_top_level,mood\nabc,TRUE,sad\nabd,FALSE,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_top_level" says`}},
		{"rows that are all wrong", "id,mood\nabc\nabd\n", Options{},
			[]string{"a.csv:2:4 the row has 1 fields", "a.csv:3:4 the row has 1 fields"}},
		{"a zero before an id", "id,mood\n1j8nbp,sad\n01j8nbp,glad\n", Options{},
			[]string{`a.csv:3:1 "01j8nbp" begins with 0, as no post's id does`}},
		{"fullnames of comments", "id,fullname,mood\nabc,t3_abc,sad\nabd,t1_abd,glad\n", Options{ID: "id"},
			[]string{`a.csv:3:5 column "fullname" says`}},
		{"digits", "post_id,mood\n1234,sad\n9876,glad\n4567,sad\n", Options{},
			[]string{`a.csv:1:0 column "post_id" holds nothing but digits`}},
		{"row numbers", "id,mood\n1,sad\n2,glad\n3,sad\n", Options{}, []string{"a.csv:1:0 no column looks like post ids"}},
		{"two columns", "id,post_id,mood\nabc,abd,sad\nabe,abf,glad\n", Options{},
			[]string{`a.csv:2:5 columns "id" and "post_id" name different posts here`}},
		{"two sure columns", "id,post_id\nt3_abc,t3_abd\n", Options{},
			[]string{`a.csv:2:8 columns "id" and "post_id" name different posts here`}},
		{"another name", "x\nabc\n", Options{ID: "y"}, []string{`a.csv:1:0 --id names column "y"`}},
		{"nothing to keep", "id\nabc\n", Options{Keep: []string{"y"}}, []string{`a.csv:1:0 --keep names column "y"`}},
		{"comments beside posts", "id,link_id,mood\n1abc,t3_1abd,sad\n1abe,t3_1abf,glad\n", Options{}, []string{
			`a.csv:2:6 column "link_id" says that this row is about a comment`, "a.csv:3:6 column"}},
		{"fullnames of comments beside posts", "id,link_id,mood\nt1_1abc,t3_1abd,sad\n", Options{},
			[]string{`a.csv:2:1 column "id" has ids of comments`}},
		{"an address of another post",
			"id,permalink,mood\nabc,/r/x/comments/abc/t/,sad\nabe,/r/x/comments/abf/t/,glad\n", Options{}, []string{
				`a.csv:3:5 columns "permalink" and "id" name different posts here`}},
		{"fullnames of other posts", "id,fullname,mood\nabc,t3_abd,sad\n", Options{},
			[]string{`a.csv:2:5 columns "fullname" and "id" name different posts here`}},
		{"links to other posts", "id,link,mood\nabc,https://redd.it/abd,sad\n", Options{},
			[]string{`a.csv:2:5 columns "id" and "link" name different posts here`}},
		{"another post under any name", "id,anchor,mood\nabc,t3_abc,sad\nabe,t3_abd,glad\n", Options{}, []string{
			`a.csv:3:5 column "anchor" names another post than the id "abe", which may be that of a comment under it`}},
		{"parents", "id,parent,mood\nabc,,sad\nabe,t3_abd,glad\n", Options{},
			[]string{`a.csv:3:5 column "parent" says that this row is about a comment`}},
		{"threads", "id,thread_id,mood\nabe,t3_abd,glad\n", Options{ID: "id"},
			[]string{`a.csv:2:5 column "thread_id" says`}},
		{"submissions", "id,submission,mood\nabe,t3_abd,glad\n", Options{},
			[]string{`a.csv:2:5 column "submission" says`}},
		{"plain ids of threads", "id,thread,mood\n1sk9mhg,1sk9mhf,sad\n", Options{},
			[]string{`a.csv:2:9 column "thread" says`}},
		{"linkid", "id,linkid,mood\nabe,abd,glad\n", Options{}, []string{`a.csv:2:5 column "linkid" says`}},
		{"the address of the row's comment",
			"id,url,mood\nabe,https://www.reddit.com/r/x/comments/abd/t/abe/?context=3,sad\n", Options{}, []string{
				`a.csv:2:5 column "url" says that this row is about a comment`}},
		{"kinds in German", "id,type,mood\nabc,Beitrag,sad\nabd,Kommentar,glad\n", Options{},
			[]string{`a.csv:3:5 column "type" says`}},
		{"kinds beside others", "id,type,mood\nabc,Post,sad\nabd,Kommentar,glad\nabe,Umfrage,sad\n", Options{},
			[]string{`a.csv:3:5 column "type" says`}},
		{"kinds in French", "id,type,mood\nabc,publication,sad\nabd,réponse,glad\n", Options{},
			[]string{`a.csv:3:5 column "type" says`}},
		{"kinds in Chinese", "id,what,mood\nabc,帖子,sad\nabd,评论,glad\n", Options{},
			[]string{`a.csv:3:5 column "what" says`}},
		{"is_comment in German", "id,is_comment,mood\nabc,FALSCH,sad\nabd,WAHR,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says that`}},
		{"a cross for a comment", "id,is_comment,mood\nabc,,sad\nabd,x,glad\n", Options{},
			[]string{`a.csv:3:5 column "is_comment" says neither`}},
		{"comment as a flag", "id,Kommentar,mood\nabc,0,sad\nabd,1,glad\n", Options{},
			[]string{`a.csv:3:5 column "Kommentar" says`}},
		{"an own permalink of a comment",
			"id,permalink,mood\n1ab00,/r/x/comments/1ab00/t/,sad\n1ab01,/r/x/comments/1ab01/t/kabc123/,glad\n", Options{},
			[]string{`a.csv:3:7 column "permalink" says that this row is about a comment and not about its post`}},
		{"own permalinks of comments alone",
			"id,permalink,mood\n1ab00,/r/x/comments/1ab00/t/kabc12/,sad\n1ab01,/r/x/comments/1ab01/t/kabc123/,glad\n",
			Options{},
			[]string{`a.csv:2:7 column "permalink" says`, `a.csv:3:7 column "permalink" says`}},
		{"an own link of a comment",
			"id,link,mood\n1ab00,https://redd.it/1ab00,sad\n1ab01,https://www.reddit.com/r/x/comments/1ab01/_/kabc123,glad\n", Options{},
			[]string{`a.csv:3:7 column "link" says`}},
		{"an own source of a comment",
			"id,source_url,mood\n1ab00,https://old.reddit.com/r/x/comments/1ab00,sad\n1ab01,https://old.reddit.com/r/x/comments/1ab01/a/kabc123?context=3,glad\n", Options{},
			[]string{`a.csv:3:7 column "source_url" says`}},
		{"the address of a comment", "id,comment_url,mood\n1ab00,,sad\n1ab01,/r/x/comments/1ab01/t/kabc123/,glad\n",
			Options{}, []string{`a.csv:3:7 column "comment_url" says`}},
		{"a comment behind a question mark",
			"id,where,mood\n1ab00,,sad\n1ab01,/r/x/comments/1ab01/t/?comment=kabc123,glad\n", Options{},
			[]string{`a.csv:3:7 column "where" says`}},
		{"fullnames of comments under another name", "id,thing,mood\n1ab00,t3_1ab00,sad\n1ab01,t1_kabc123,glad\n",
			Options{}, []string{`a.csv:3:7 column "thing" says`}},
		{"fullnames of comments in each row", "id,comment_fullname,mood\n1ab00,t1_kabc122,sad\n1ab01,t1_kabc123,glad\n",
			Options{},
			[]string{`a.csv:2:7 column "comment_fullname" says`, "a.csv:3:7 column"}},
		{"ids of comments in each row", "id,commentId,mood\n1ab00,kabc122,sad\n1ab01,kabc123,glad\n", Options{},
			[]string{`a.csv:2:7 column "commentId" says`, "a.csv:3:7 column"}},
		{"ids of comments beside confirmed posts",
			"id,permalink,comment_id,mood\n1ab00,/r/x/comments/1ab00/t/,kabc122,sad\n1ab01,/r/x/comments/1ab01/t/,,glad\n",
			Options{},
			[]string{`a.csv:2:30 column "comment_id" says`}},
		{"parents that are comments", "id,parent_id,mood\n1ab00,,sad\n1ab01,kabc123,glad\n", Options{},
			[]string{`a.csv:3:7 column "parent_id" says`}},
		{"what was replied to", "id,in_reply_to,mood\n1ab00,,sad\n1ab01,kabc123,glad\n", Options{},
			[]string{`a.csv:3:7 column "in_reply_to" says`}},
		{"conversations", "id,conversation_id,mood\n1ab00,1ab00,sad\n1ab01,1zzz1,glad\n", Options{},
			[]string{`a.csv:3:7 column "conversation_id" says`}},
		{"comments in several words",
			"id,type,mood\nabc,submission,sad\nabd,top-level comment,glad\nabe,Comment reply,sad\nabf,t1_comment,sad\n",
			Options{},
			[]string{`a.csv:3:5 column "type" says`, "a.csv:4:5 column", "a.csv:5:5 column"}},
		{"short for comments", "id,type,mood\nabc,link,sad\nabd,cmt,glad\n", Options{},
			[]string{`a.csv:3:5 column "type" says`}},
		{"comments in Russian", "id,type,mood\nabc,post,sad\nabd,коммент,glad\n", Options{},
			[]string{`a.csv:3:5 column "type" says`}},
		{"replies to submissions", "id,unit,mood\nabc,submission,sad\nabd,reply,glad\n", Options{},
			[]string{`a.csv:3:5 column "unit" says`}},
		{"comments of an opening post", "id,item,mood\nabc,OP,sad\nabd,COMMENT,glad\n", Options{},
			[]string{`a.csv:3:5 column "item" says`}},
		{"levels", "id,level,mood\nabc,submission-level,sad\nabd,comment-level,glad\n", Options{},
			[]string{`a.csv:3:5 column "level" says`}},
		{"dumps", "id,dump,mood\nabc,RS_2020-01.zst,sad\nabd,RC_2020-01.zst,glad\n", Options{},
			[]string{`a.csv:3:5 column "dump" says`}},
		{"toplevel", "id,toplevel,mood\nabc,1,sad\nabd,0,glad\n", Options{}, []string{`a.csv:3:5 column "toplevel" says`}},
		{"nesting", "id,nesting,mood\nabc,0,sad\nabd,1,glad\n", Options{}, []string{`a.csv:3:5 column "nesting" says`}},
		{"ids of rows beside those of posts",
			"entry_id,link_id,parent_id,mood\n1ab00,t3_1ab00,,sad\nfgb3bdv,t3_1ab00,t3_1ab00,glad\nfgctirr,t3_1ab00,t1_fgb3bdv,sad\nfgc6tlu,t3_1ab00,t3_1ab00,sad\n1ab01,t3_1ab01,,glad\n", Options{Many: true}, []string{
				`a.csv:3:1 column "entry_id" says that this row is about a comment and not about its post`,
				"a.csv:4:1 column", "a.csv:5:1 column"}},
		{"ids of responses alone", "sp_id,rp_id,level\n65m92s,dgbdk7z,0\n9ezsfi,e5t3oxh,1\n", Options{}, []string{
			`a.csv:2:8 column "rp_id" has ids of comments, not of posts, here and in 2 of 2 rows`}},
		{"ids of responses beside those of posts", "post_id,rp_id,level\n65m92s,dgbdk7z,0\n9ezsfi,e5t3oxh,1\n",
			Options{}, []string{
				`a.csv:2:8 column "rp_id" says that this row is about a comment and not about its post`,
				"a.csv:3:8 column"}},
		{"kinds before the ids of rows, beside those of posts",
			"type,key_id,post_id,level\ncomment,dgbdk7z,65m92s,0\ncomment,e5t3oxh,9ezsfi,1\n", Options{}, []string{
				`a.csv:2:9 column "key_id" says that this row is about a comment and not about its post`,
				"a.csv:3:9 column"}},
		{"several ids in a cell", "id,mood\n\"1. e8q18lf\n2. e8q9w5s\n\",sad\ne6flmby,glad\n", Options{}, []string{
			`a.csv:2:1 column "id" has several ids of comments in a cell`}},
		{"several posts in a cell", "post_id,mood\n1ab00 1ab01,sad\n1ab02,glad\n1ab03;1ab04,sad\n", Options{}, []string{
			`a.csv:2:1 column "post_id" has several ids in a cell`}},
		{"other ids", "id,mood\n2021.09.20_77,sad\n2021.09.02_17,glad\n", Options{}, []string{
			`a.csv:1:0 no column looks like post ids: "id" has values such as "2021.09.20_77", and no ids`}},
		{"fullnames of posts that comments stand under",
			"link_id,type,mood\nt3_1ab00,comment,sad\nt3_1ab01,post,glad\n", Options{}, []string{
				`a.csv:2:10 column "type" says that this row is about a comment`}},
		{"letters for kinds", "id,kind,mood\nabc,p,sad\nabd,c,glad\n", Options{},
			[]string{`a.csv:3:5 column "kind" says`}},
		{"large letters for kinds", "id,row_type,mood\nabc,S,sad\nabd,C,glad\n", Options{},
			[]string{`a.csv:3:5 column "row_type" says`}},
		{"comments alone in letters", "id,type,mood\nabc,c,sad\nabd,c,glad\n", Options{},
			[]string{`a.csv:2:5 column "type" says`, "a.csv:3:5 column"}},
		{"post or comment", "id,post_or_comment,mood\nabc,p,sad\nabd,c,glad\n", Options{},
			[]string{`a.csv:3:5 column "post_or_comment" says`}},
		{"p/c", "id,p/c,mood\nabc,p,sad\nabd,c,glad\n", Options{}, []string{`a.csv:3:5 column "p/c" says`}},
		{"utterances by their numbers", "post_id,utt_id,mood\nabc,0,sad\nabd,0,glad\nabe,1,glad\n", Options{},
			[]string{`a.csv:4:5 column "utt_id" says that this row is a later utterance of a conversation`}},
		{"turns from 1", "id,turn,mood\nabc,1,sad\nabd,2,glad\nabe,1,glad\n", Options{},
			[]string{`a.csv:3:5 column "turn" says`}},
		{"turns of many rows", "id,turnIndex,mood\nabc,0,sad\nabc,1,glad\nabd,0,glad\n", Options{Many: true},
			[]string{`a.csv:3:5 column "turnIndex" says`}},
		{"utterances behind their conversations",
			"id,utterance_id,mood\nabc,c1_u0,sad\nabd,c2_u0,glad\nabe,c2_u1,glad\n", Options{},
			[]string{`a.csv:4:5 column "utterance_id" says`}},
		{"ids of utterances", "post_id,utt_id,mood\n1ab00,1ab00,sad\n1ab01,kabc123,glad\n", Options{},
			[]string{`a.csv:3:7 column "utt_id" says`}},
		{"comments of posts, which nobody chose",
			"post_id,kind,permalink,mood\nabc,comment,/r/x/comments/abc/t/def/,sad\nabd,comment,/r/x/comments/abd/t/deg/,glad\n", Options{},
			[]string{`a.csv:2:5 column "kind" says`, "a.csv:3:5 column"}},
		{"two numbers of one image", "id,image,mood\nabc/1,0,sad\nabd/1,2,glad\nabe/2,2,sad\nabf,0,glad\n", Options{},
			[]string{`a.csv:2:7 the id names image 1 of post abc, and "image" image 0`,
				`a.csv:3:7 the id names image 1 of post abd, and "image" image 2`}},
		{"many rows", "id,mood\nabc,sad\nabc,glad\n", Options{},
			[]string{"a.csv:3:0 post abc, image 0, is already on line 2"}},
		{"many rows, which are numbered", "image,id,mood\n0,abc,sad\n1,abc,glad\n2,abd,glad\n", Options{},
			[]string{`a.csv:3:0 post abc, image 0, is already on line 2; column "image" numbers the rows, and was not taken for`}},
		{"many rows, whose numbers are kept", "image,id,mood\n0,abc,sad\n1,abc,glad\n2,abd,glad\n",
			Options{Keep: []string{"image"}},
			[]string{`a.csv:3:0 post abc, image 0, is already on line 2; column "image" numbers`}},
	} {
		_, err := initFiles(t, test.o, file(t, "a.csv", test.in))
		wantPlaces(t, test.name, err, test.want...)
	}
	_, err := initText(t, "a.json", `{"train": [{"id": "abc"}], "info": {"x": [1]}, "test": [{"id": "abd"}]}`)
	wantPlaces(t, "two lists", err, `a.json:1:`)
	if err == nil || !strings.Contains(err.Error(), `two keys hold lists of records, "train" and "test"`) ||
		!strings.Contains(err.Error(), "--records train") {
		t.Errorf("two lists: %v", err)
	}
}

// TestInitIDs: init takes a column for the ids by each of the names of a release's ids, although one value is not an
// id, whose row is left out.
func TestInitIDs(t *testing.T) {
	for _, name := range manifest.FieldID.Names() {
		d, err := Files(t.Context(), []string{file(t, "a.csv", "x,"+name+"\n1,abc\n9,abd\n4,a-e\n")},
			Options{SkipDamaged: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := fmt.Sprintf(`id is column "%s": 2 of 2 values are post ids`, name); d.Notes[0] != want {
			t.Errorf("%s: %s, want %s", name, d.Notes[0], want)
		}
	}
	for _, name := range manifest.IDColumns(manifest.NameInDumps) {
		_, err := initFiles(t, Options{}, file(t, "a.csv", "x,"+name+"\n1,abc\n9,abd\n4,a-e\n"))
		wantPlaces(t, name, err, "a.csv:1:0 no column looks like post ids")
	}
}

// TestInitTakes holds what init takes a column for, and the words that say so.
func TestInitTakes(t *testing.T) {
	var padded strings.Builder
	padded.WriteString("id,code,mood\n")
	for i := range 60 {
		fmt.Fprintf(&padded, "a%d,%04d,sad\n", i, 7*i)
	}
	var running strings.Builder
	running.WriteString("image,id,mood\n")
	for i := range 40 {
		fmt.Fprintf(&running, "%d,a%d,%s\n", i, i/2, []string{"sad", "glad"}[i/2%2])
	}
	hash, hash2 := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	for _, test := range []struct {
		name, in string
		o        Options
		want     string   // the header and first row of the example
		notes    []string // among the guesses and warnings
	}{
		{"Dreaddit",
			"post_id,text,id,label,confidence\n8abcd1,I said it. Twice.,33000,1,0.8\n8abcd2,Not again!,33001,0,1\n8abcd3,Well,33002,1,0.6\n8abcd4,I,33003,0,1\n", Options{},
			"id,label,confidence 8abcd1,1,0.8",
			[]string{`not used: "id": it numbers the rows (33000, 33001 and on), so it is not the id of a post`}},
		{"letters beat digits", "id,post_id,x\n17,abc,a\n99,abd,b\n4,abe,a\n", Options{}, "id,x abc,a",
			[]string{`not used: "id": it holds nothing but digits`}},
		{"comments beside posts", "text,id,link_id,parent_id\nx,def1,t3_abc,t1_def0\ny,def2,t3_abd,t1_def1\n",
			Options{ID: "link_id"},
			"id abc", []string{"id is column \"link_id\": --id names it", "no column looks like labels"}},
		{"posts alone", "id,linked_submission_id,mood\nabc,,sad\ndef01,abc,glad\nabd,,glad\n", Options{PostsOnly: true},
			"id,mood abc,sad", []string{"--posts-only leaves out the rows about comments: 1 of 3"}},
		{"posts alone, by numbers", "id,is_comment,mood\nabc,0,sad\nabd,1,glad\nabe,0,glad\n", Options{PostsOnly: true},
			"id,mood abc,sad",
			[]string{"--posts-only leaves out the rows about comments: 1 of 3", `not used: "is_comment": it says whether`}},
		{"a flag that says what it is not", "id,is_comment,mood\nabc,0,sad\nabd,?,glad\nabe,,glad\n",
			Options{PostsOnly: true}, "id,mood abc,sad",
			[]string{"--posts-only leaves out the rows about comments: 1 of 3"}},
		{"kinds that are labels", "id,act,mood\nabc,reply,sad\nabd,thread,glad\nabe,reply,glad\n", Options{},
			"id,act,mood abc,reply,sad", nil},
		{"posts alone, by all that says so",
			"id,type,permalink,mood\n1sk9mhg,post,/r/x/comments/1sk9mhg/t/,sad\nabc1,comment,/r/x/comments/zzz/t/abc1/,glad\neebbqej,post,,glad\nt1_abe,,,glad\n" +
				"abf,post,/r/x/comments/zzz/t/abg/,glad\n", Options{PostsOnly: true, ID: "id"}, "id,mood 1sk9mhg,sad",
			[]string{"--posts-only leaves out the rows about comments: 4 of 5",
				`not used: "type": it says whether a row is about a post or a comment`}},
		{"other posts, which --id decides", "id,anchor,mood\nabc,t3_abd,sad\nabe,t3_abf,glad\n", Options{ID: "id"},
			"id,mood abc,sad", nil},
		{"another post as the row's, by --id",
			"id,permalink,mood\nabc,/r/x/comments/abd/t/,sad\nabe,/r/x/comments/abf/t/,glad\n", Options{ID: "permalink"},
			"id,mood abd,sad", nil},
		{"posts alone, by another post", "id,anchor,mood\nabc,t3_abd,sad\nabe,,glad\n", Options{PostsOnly: true},
			"id,mood abe,glad", []string{"leaves out the rows about comments: 1 of 2"}},
		{"posts alone, by their threads", "id,link_id,mood\nabc,t3_abd,sad\nabe,,glad\n", Options{PostsOnly: true},
			"id,mood abe,glad", []string{"leaves out the rows about comments: 1 of 2"}},
		{"a flag that is kept", "id,comment,mood\nabc,true,sad\nabe,false,glad\n", Options{Keep: []string{"comment"}},
			"id,mood,comment abc,sad,true", nil},
		{"crossposts",
			"id,crosspost_parent,prev_id,duplicate_of,mood\nabc,t3_abd,t3_abe,t3_abf,sad\nabe,t3_abf,t3_abg,,glad\n",
			Options{}, "id,mood abc,sad", nil},
		{"links of confirmed posts",
			"id,name,url,anchor,mood\nabc,t3_abc,https://redd.it/abd,t3_abd,sad\nabe,t3_abe,https://redd.it/abf,t3_abf,glad\n", Options{}, "id,mood abc,sad", nil},
		{"parents that are labels",
			"id,root,thread,comment,mood\nabc,mother,first,yes and no,sad\nabe,father,second,a,glad\n", Options{},
			"id,root,thread,mood abc,mother,first,sad", nil},
		{"posts of comments",
			"post_id,kind,permalink,mood\nabc,comment,/r/x/comments/abc/t/def/,sad\nabd,comment,/r/x/comments/abd/t/deg/,glad\n", Options{ID: "post_id"},
			"id,mood abc,sad", []string{`not used: "kind": it says whether`}},
		{"posts of comments, whose own ids stand beside them",
			"type,id,post,mood\ncomment,fgb3bdv,1exa00,sad\ncomment,fgc6tlu,1exa01,glad\n", Options{ID: "post"},
			"id,mood 1exa00,sad", []string{`not used: "type": it says whether`}},
		{"posts of comments, whose ids are named so",
			"is_comment,comment_id,post,mood\n1,fgb3bdv,1exa00,sad\n1,fgb3bdv,1exa00,glad\n1,fgc6tlu,1exa01,sad\n",
			Options{ID: "post", Many: true}, "id,mood 1exa00,sad", []string{`not used: "is_comment": it says whether`,
				`not used: "comment_id": it holds ids or addresses of posts or comments`}},
		{"posts alone, by the ids of rows",
			"entry_id,link_id,mood\n1ab00,t3_1ab00,sad\nfgb3bdv,t3_1ab00,glad\n1ab01,t3_1ab01,glad\n",
			Options{PostsOnly: true}, "id,mood 1ab00,sad", []string{"about comments: 1 of 3"}},
		{"posts of responses, by --id", "sp_id,rp_id,level\n65m92s,dgbdk7z,0\n9ezsfi,e5t3oxh,1\n",
			Options{ID: "sp_id"}, "id,level 65m92s,0", nil},
		{"ids that count other things", "id,meme_id,mood\nabc,meme001,sad\nabd,meme002,glad\nabe,meme001,sad\n",
			Options{}, "id,meme_id,mood abc,meme001,sad", nil},
		{"ids of other things",
			"id,template_id,hash_id,meme_id\nabc,181913649,e8a18cf,nothing\nabd,181913650,f8b18cf,winning\n",
			Options{}, "id,template_id,hash_id,meme_id abc,181913649,e8a18cf,nothing", nil},
		{"letters that are labels", "id,type,mood\nabc,c,sad\nabd,a,glad\n", Options{}, "id,type,mood abc,c,sad", nil},
		{"letters under another name", "id,tone,mood\nabc,c,sad\nabd,p,glad\n", Options{}, "id,tone,mood abc,c,sad",
			nil},
		{"letters of kinds that are kept", "id,type,mood\nabc,c,sad\nabd,s,glad\n", Options{Keep: []string{"type"}},
			"id,mood,type abc,sad,c", nil},
		{"letters of posts alone", "id,kind,mood\nabc,p,sad\nabd,p,glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "kind": it says whether`}},
		{"posts alone, by letters", "id,kind,mood\nabc,c,sad\nabd,p,glad\n", Options{PostsOnly: true},
			"id,mood abd,glad", []string{"about comments: 1 of 2"}},
		{"first utterances", "post_id,utt_id,mood\nabc,0,sad\nabd,0,glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "utt_id": it says whether`}},
		{"conversations, by --id", "post_id,turn,mood\nabc,0,sad\nabc,1,glad\nabd,0,glad\n",
			Options{ID: "post_id", Many: true}, "id,mood,turn abc,sad,0", nil},
		{"turns that are labels", "id,turn,turns,turn_type\nabc,left,3,a\nabd,right,3,b\n", Options{},
			"id,turn,turns,turn_type abc,left,3,a", nil},
		{"labels that speak of comments", "id,about,mood\nabc,comment,sad\nabd,picture,glad\n", Options{},
			"id,about,mood abc,comment,sad", nil},
		{"comments that --id leaves aside", "id,top_comment,mood\nabc,t1_def,sad\nabd,t1_deg,glad\n", Options{ID: "id"},
			"id,mood abc,sad", nil},
		{"a kind of posts", "id,post_type,mood\nabc,image,sad\nabd,gallery,glad\n", Options{},
			"id,post_type,mood abc,image,sad", nil},
		{"all posts", "id,type,mood\nabc,post,sad\nabd,post,glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "type": it says whether`}},
		{"a type that is a label", "id,type,mood\nabc,comment,sad\nabd,rant,glad\n", Options{},
			"id,type,mood abc,comment,sad", nil},
		{"links to comments", "id,url,mood\nabc,/r/x/comments/zzz/t/abd/,sad\nabe,/r/x/comments/zzz/t/abf/,glad\n",
			Options{}, "id,mood abc,sad", nil},
		{"long words", "id,tone\nabc,positive\nabd,negative\n", Options{}, "id,tone abc,positive", nil},
		{"two names for one", "image_id,permalink,mood\nabc,/r/x/comments/abc/t/,sad\nabd,/r/x/comments/abd/t/,glad\n",
			Options{}, "id,mood abc,sad", []string{`not used: "permalink": it holds what people wrote, or addresses`}},
		{"digests by their form", "id,hash,look\nabc," + hash + ",0123456789abcdef\nabd," + hash2 + ",1123456789abcdef\n",
			Options{},
			"id,sha256,phash abc," + hash + ",0123456789abcdef",
			[]string{`sha256 is column "hash": by its form`, "would be outcome changed"}},
		{"two digests", "id,a,b\nabc," + hash + "," + hash2 + "\n", Options{}, "id abc",
			[]string{`not used: "a": several columns look like sha256`}},
		{"scores and times",
			"id,score,created_utc,hasImage,ratio\nabc,7,1567435668.0,True,0.5\nabd,7,1567435669.0,False,\n", Options{},
			"id,score,created_utc,hasimage,ratio abc,7,2019-09-02T14:47:48Z,true,0.5",
			[]string{"column score (integer)", "column created_utc (timestamp)", "column hasimage (boolean)"}},
		{"hours and seconds",
			"id,hours_elapsed,duration_seconds,mood\nabc,0,3,sad\nabd,1,3,glad\nabe,0,3,sad\nabf,1,3,sad\n",
			Options{}, "id,mood,hours_elapsed,duration_seconds abc,sad,0,3",
			[]string{"column hours_elapsed (integer)", "column duration_seconds (integer)"}},
		{"numbers that begin with zeros", "id,code,mood\nabc,00211,sad\nabd,00310,glad\nabe,12345,sad\nabf,00212,sad\n",
			Options{Keep: []string{"code"}}, "id,mood,code abc,sad,00211", []string{"column code (text)"}},
		{"numbers that begin with zeros, which nobody kept", padded.String(), Options{}, "id,mood a0,sad",
			[]string{`column "code" has numbers that would not stay as they are, such as at `}},
		{"a column without a name", "id,mood,\nabc,sad,\nabd,glad,a\nabe,glad,b\n", Options{}, "id,mood abc,sad",
			[]string{"a column without a name in the header has values, such as at ", "a.csv:3:10: it was left out"}},
		{"the index of pandas", ",id,mood\n0,abc,sad\n1,abd,glad\n2,abe,glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "": it has no name, and numbers the rows`}},
		{"thousands", "id,ups,mood\nabc,3,sad\nabd,\"1,500\",glad\n", Options{}, "id,mood abc,sad",
			[]string{`column "ups" has numbers whose commas may part thousands, such as "1,500" at `}},
		{"German thousands", "id;mood;likes\nabc;sad;950\nabd;glad;1.014\nabe;sad;12.500\nabf;sad;2.000\n", Options{}, "id,mood abc,sad",
			[]string{`column "likes" has numbers whose points may part thousands, such as "1.014" at `, "a.csv:3:10, for each has three digits"}},
		{"German thousands that are kept", "id,mood,likes\nabc,sad,3\nabd,glad,1.014\n", Options{Keep: []string{"likes"}},
			"id,mood,likes abc,sad,3", []string{"column likes (text)"}},
		{"means of three", "id,mood,ratio\nabc,sad,2\nabd,glad,1.333\nabe,sad,1.667\n", Options{}, "id,mood,ratio abc,sad,2",
			[]string{"column ratio (number)"}},
		{"decimals below 1", "id,mood,ratio\nabc,sad,0.123\nabd,glad,1.014\nabe,sad,2.500\n", Options{}, "id,mood,ratio abc,sad,0.123",
			[]string{"column ratio (number)"}},
		{"decimals or thousands", "id,mood,views\nabc,sad,1.014\nabd,glad,12.500\n", Options{}, "id,mood,views abc,sad,1.014",
			[]string{"column views (number)", `column "views" has three digits behind each point, such as "1.014" at `}},
		{"decimals beside whole numbers", "id,mood,ratio\nabc,sad,2\nabd,glad,1.014\nabe,sad,1.5\n", Options{}, "id,mood,ratio abc,sad,2",
			[]string{"column ratio (number)"}},
		{"thousands with decimals", "id,ups,mood\nabc,3.00,sad\nabd,\"1,500.00\",glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "ups": it has numbers whose commas may part thousands, such as "1,500.00" at `}},
		{"a running number called image", "image,id,mood\n0,abc,sad\n1,abd,glad\n2,abe,glad\n", Options{}, "id,mood abc,sad",
			[]string{`not used: "image": it numbers the rows`, `column "image" numbers the rows, and was not taken for`}},
		{"a running number that is kept", "image,id,mood\n0,abc,sad\n1,abd,glad\n2,abe,glad\n", Options{Keep: []string{"image"}},
			"id,mood,image_given abc,sad,0", []string{"column image_given (integer)"}},
		{"a running number from 1 on", "image,id,mood\n1,abc,sad\n2,abd,glad\n3,abe,glad\n", Options{}, "id,mood abc,sad",
			[]string{`column "image" numbers the rows, and was not taken for`}},
		{"a running number out of order", "image,id,mood\n3,abc,sad\n0,abd,glad\n2,abe,glad\n1,abf,sad\n", Options{},
			"id,mood abc,sad", []string{`column "image" numbers the rows, and was not taken for`}},
		{"a running number with gaps", "image,id,mood\n10,abc,sad\n11,abd,glad\n13,abe,glad\n14,abf,sad\n", Options{},
			"id,mood abc,sad", []string{`column "image" numbers the rows, and was not taken for`}},
		{"a running number out of order that is kept", "image,id,mood\n3,abc,sad\n0,abd,glad\n2,abe,glad\n",
			Options{Keep: []string{"image"}}, "id,mood,image_given abc,sad,3", []string{"column image_given (integer)"}},
		{"one image of each post", "image,id,mood\n0,abc,sad\n2,abd,glad\n0,abe,glad\n", Options{},
			"id,image,mood abc,0,sad",
			[]string{`image is column "image": by its name`}},
		{"one image of each post, by another name", "gallery_index,id,mood\n5,abc,sad\n0,abd,glad\n2,abe,glad\n", Options{},
			"id,image,mood abc,5,sad", []string{`image is column "gallery_index": by its name`}},
		{"one image of two posts", "image,id,mood\n0,abc,sad\n1,abd,glad\n", Options{}, "id,image,mood abc,0,sad",
			[]string{`image is column "image": by its name`}},
		{"a running number beside ids that repeat", running.String(), Options{Many: true}, "id,mood a0,sad",
			[]string{`column "image" numbers the rows, and was not taken for`}},
		{"a running number beside the images", "image,image_index,id,mood\n0,0,abc,sad\n1,0,abd,glad\n2,1,abd,glad\n", Options{},
			"id,image,mood abc,0,sad", []string{`image is column "image_index": by its name`}},
		{"the images of a gallery", "image,id,mood\n0,abc,sad\n1,abc,glad\n2,abc,glad\n", Options{}, "id,image,mood abc,0,sad",
			[]string{`image is column "image": by its name`}},
		{"images of two galleries", "image,id,mood\n1,abc,sad\n2,abc,glad\n1,abd,glad\n", Options{}, "id,image,mood abc,1,sad",
			[]string{`the image column "image" never is 0`}},
		{"images from 1 on", "id,mood\nabc/1,sad\nabc/2,glad\n", Options{}, "id,image,mood abc,1,sad",
			[]string{`the images in the ids of column "id" never are 0: images are counted from 0 here`}},
		{"images from 0 on", "id,mood\nabc,sad\nabc/1,glad\n", Options{}, "id,image,mood abc,0,sad", nil},
		{"labels of pandas", "id,label,seen\nabc,True,False\nabd,False,True\n", Options{}, "id,label,seen abc,True,false",
			[]string{"category label (single)", "column seen (boolean)"}},
		{"times, one of which is none", "id,created_utc,mood\nabc,1600000000,sad\nabd,0,glad\n", Options{},
			"id,mood,created_utc abc,sad,1600000000", []string{`are no seconds since 1970, such as "0" at `}},
		{"a no-break space", "id,label\nabc,sad\u00a0face\nabd,glad\nabe,sad face\nabf,sad\u00a0face\n", Options{},
			"id,label abc,sad face", []string{"2 different values in 4 cells"}},
		{"votes of raters", "id,hate_a1,hate_a2,hate_a3,hate_a4,hate_a5\nabc,1,0,0,1,1\nabd,0,1,1,0,0\n", Options{},
			"id,hate_a1,hate_a2,hate_a3,hate_a4,hate_a5 abc,1,0,0,1,1", nil},
		{"codes that end in zeros", "id,code,mood\nabc,1.1,sad\nabd,1.10,glad\nabe,2.1,sad\nabf,1.1,sad\n", Options{},
			"id,mood abc,sad", []string{`column "code" has numbers that would not stay as they are, such as at `,
				"a.csv:3:5"}},
		{"codes that are kept", "id,code,mood\nabc,1.1,sad\nabd,1.10,glad\n", Options{Keep: []string{"code"}},
			"id,mood,code abc,sad,1.1", []string{"column code (text)"}},
		{"codes in lists", "id,code,mood\nabc,1.1|1.10,sad\nabd,1.10,glad\n", Options{}, "id,code,mood abc,1.1|1.10,sad",
			nil},
		{"prices", "id,price,mood\nabc,1.10,sad\nabd,2.50,glad\n", Options{}, "id,mood,price abc,sad,1.1",
			[]string{"column price (number)"}},
		{"numbers with too many digits", "id,number,mood\nabc,12345678901234567890,sad\nabd,12345678901234567891,glad\n",
			Options{Keep: []string{"number"}},
			"id,mood,number abc,sad,12345678901234567890", []string{"column number (text)"}},
		{"large numbers", "id,number,mood\nabc,1234567890123456789,sad\nabd,0.30000000000000004,glad\n",
			Options{Keep: []string{"number"}}, "id,mood,number abc,sad,1234567890123456789",
			[]string{"column number (text)"}},
		{"words",
			"id,clean_title,image_url,author,mood\nabc,a title,https://i.redd.it/a.jpg,ann,sad\nabd,b,https://i.redd.it/b.jpg,bob,glad\n", Options{Keep: []string{"clean_title"}},
			"id,mood,clean_title abc,sad,a title", []string{`column "clean_title" holds what people wrote`,
				`not used: "image_url"`, `not used: "author": it is about people`}},
		{"named", "id,post,mood\n1,abc,sad\n2,abd,glad\n3,abe,glad\n", Options{ID: "post"}, "id,mood abc,sad",
			[]string{"--id names it"}},
		{"people",
			"id,redditor,annotator,ip,name,phone,uid,worker_id,mood\nabc,user0,Ann,::1,Ann,12,7,w1,sad\nabd,user0,Ann,::1,Ann,12,7,w1,glad\n", Options{},
			"id,mood abc,sad", []string{`column "redditor" may hold`, `column "annotator" may hold`, `column "ip" may hold`,
				`column "name" may hold`,
				`column "phone" may hold`, `column "uid" may hold`, `column "worker_id" may hold`}},
		{"a sentence", "id,content,mood\nabc,I am sad,sad\nabd,so am I,glad\nabe,why,glad\n", Options{},
			"id,mood abc,sad", []string{`not used: "content": it holds no short labels`}},
		{"sentences in more than a tenth", remarks(3), Options{}, "id,mood a0,sad",
			[]string{`not used: "remark": it holds what people wrote`}},
		{"sentences in a tenth", remarks(2), Options{}, "id,mood,remark a0,sad,a b c d e f", nil},
		{"months and subreddits", "id,month,subreddit,by\nabc,2021-03,u_ann,u_ann\nabd,2021-03,memes,u/bob\n", Options{},
			"id,subreddit abc,", []string{`subreddit is column "subreddit": by its name`,
				`column "subreddit": cells that name the profile of a user (u_NAME), and count as empty: 1`,
				`not used: "month"`, `not used: "by"`}},
		{"many, one without a label",
			"id,tone,cat\n1ab00,x,anger\n1ab00,y,blame\n1ab01,x,blame\n1ab01,y,anger\n1ab02,x,anger\n1ab02,y,\n",
			Options{Many: true},
			"id,tone,cat 1ab00,x,anger", []string{`column "cat" has no label in some rows, such as at `, "a.csv:7:9",
				"it passes through as text, null where a row says nothing"}},
		{"many, one without a name",
			"id,tone,cat\n1ab00,x,Anna Schmidt\n1ab00,y,Hans Meier\n1ab01,x,Anna Schmidt\n1ab01,y,Hans Meier\n1ab02,x,\n",
			Options{Many: true},
			"id,tone 1ab00,x", []string{`column "cat" may hold names of people`}},
		{"many, missing words", "id,tone,cat\n1ab00,x,anger\n1ab00,y,nan\n1ab01,x,blame\n1ab01,y,anger\n",
			Options{Many: true},
			"id,tone 1ab00,x",
			[]string{`column "cat" would hold labels, but "nan" stands for none in some rows, such as at `, "a.csv:3:9",
				"leave these cells empty"}},
		{"two signs between labels",
			"id,tags\n1ab00,funny;dark\n1ab01,\"funny, dark\"\n1ab02,dark\n1ab03,funny\n1ab04,\"funny, dark\"\n", Options{},
			"id,tags 1ab00,funny;dark", []string{`cells of column "tags" are parted by "," and by other signs, such as at `,
				`a.csv:2:7: "funny;dark" was taken for one label`}},
		{"a few with commas",
			"id,tags\n1ab00,funny;dark\n1ab01,dark;sad\n1ab02,\"sad, funny\"\n1ab03,sad;funny\n1ab04,sad;funny\n1ab05,dark\n1ab06,sad\n1ab07,sad\n", Options{},
			"id,tags 1ab00,funny|dark", []string{`cells of column "tags" are parted by ";" and by other signs, such as at `,
				`a.csv:4:7: "sad, funny" was taken for one label`}},
		{"many", "id,sentence,mood\nabc,17,sad\nabc,5,glad\nabd,9,sad\n", Options{Many: true},
			"id,mood,sentence abc,sad,17", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := initFiles(t, test.o, file(t, "a.csv", test.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(d.Example[0], ",") + " " + strings.Join(d.Example[1], ","); got != test.want {
				t.Errorf("the first row is %s\nwant %s", got, test.want)
			}
			said := strings.Join(append(d.Notes, d.Warnings...), "\n")
			for _, note := range test.notes {
				if !strings.Contains(said, note) {
					t.Errorf("it does not say %q:\n%s", note, said)
				}
			}
			written(t, d, manifest.Options{})
		})
	}
}

// remarks are 20 rows, so many of them with a sentence.
func remarks(sentences int) string {
	text := "id,mood,remark\n"
	for i := range 20 {
		remark := "short"
		if i < sentences {
			remark = "a b c d e f"
		}
		text += fmt.Sprintf("a%d,sad,%s\n", i, remark)
	}
	return text
}

// TestInitDataset makes a release of a dataset: its ids and labels, and of its digests that of the stored file.
func TestInitDataset(t *testing.T) {
	sum := strings.Repeat("0c", 32)
	number := func(s string) manifest.Cell { return manifest.Cell{Text: s, Float: true} }
	o := parquet("id,ocr_text,ocr_confidence,width,height,sha256,phash,mood,caption", nil,
		[]manifest.Cell{text("abc"), text("read words"), number("90.5"), text("10"), text("20"), text(sum),
			text("00ff00ff00ff00ff"), text("sad"), text("a")},
		[]manifest.Cell{text("abc/1"), text(""), number("0"), text("10"), text("20"), text(strings.Repeat("0d", 32)),
			text("00ff00ff00ff00fe"), text("glad"), text("b")})
	d, err := initFiles(t, Options{Options: o}, file(t, "train-00000-of-00001.parquet", "any"))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"id", "image", "sha256_stripped", "phash", "mood"},
		{"abc", "0", sum, "00ff00ff00ff00ff", "sad"}, {"abc", "1", strings.Repeat("0d", 32), "00ff00ff00ff00fe", "glad"}}
	if diff := cmp.Diff(want, d.Example); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
	written(t, d, o)
}

// TestInitUnread names the columns of a Parquet whose values are not read, and keeps none of them.
func TestInitUnread(t *testing.T) {
	rows := [][]manifest.Cell{{text("abc"), text("sad")}, {text("abd"), text("glad")}}
	o := Options{Options: parquet("id,mood,image:struct,split:map,author:map", nil, rows...)}
	d, err := initFiles(t, o, file(t, "a.parquet", "any"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`id is column "id": 2 of 2 values are post ids`,
		`image has no column: column "image" has the name, but other values`,
		`category mood (single) is "mood": 2 different values in 2 cells`,
		`not used: "image": its Parquet type, struct, is not read`, `not used: "split": its Parquet type, map, is not read`,
		`not used: "author": it is about people`}
	if diff := cmp.Diff(want, d.Notes); diff != "" {
		t.Errorf("the notes (-want +got):\n%s", diff)
	}
	o.Keep = []string{"split"}
	_, err = initFiles(t, o, file(t, "a.parquet", "any"))
	wantPlaces(t, "", err, `a.parquet:1:0 --keep names column "split", which cannot be kept: its Parquet type, map, is `+
		"not read")

	// One file has values, and another one none that are read.
	readers := map[string]manifest.OpenParquet{"a.parquet": parquet("id,mood", nil, rows...).OpenParquet,
		"b.parquet": parquet("id,mood:map", nil, []manifest.Cell{text("abe")}).OpenParquet}
	o = Options{Options: manifest.Options{OpenParquet: func(path string, want []string) (manifest.RowReader, error) {
		return readers[filepath.Base(path)](path, want)
	}}}
	d, err = initFiles(t, o, folder(t, map[string]string{"a.parquet": "any", "b.parquet": "any"}))
	if err != nil || !slices.Contains(d.Notes, `not used: "mood": its Parquet type, map, is not read`) ||
		!slices.ContainsFunc(d.Warnings, func(w string) bool {
			return strings.Contains(w, `column "mood" has values that are not read, in one of the files: `)
		}) {
		t.Errorf("%v, notes %q, warnings %q", err, d.Notes, d.Warnings)
	}
}

// TestInitFiles makes one manifest of several files, whose names say the splits.
func TestInitFiles(t *testing.T) {
	dir := folder(t, map[string]string{"multimodal_train.tsv": "id\tmood\nabc\tsad\n",
		"validate.csv": "mood,id\nglad,abd\n", "README.md": "x", "test.json": `[{"id": "abe", "mood": "sad"}]`})
	d, err := initFiles(t, Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"id", "split", "mood"}, {"abc", "train", "sad"}, {"abe", "test", "sad"},
		{"abd", "validate", "glad"}}
	if diff := cmp.Diff(want, d.Example); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
	r := written(t, d, manifest.Options{})
	if b, err := os.ReadFile(filepath.Join(r.Dir, manifest.SettingsName)); err != nil ||
		!strings.Contains(string(b), "init` of 3 files.") {
		t.Errorf("release.toml does not count the files: %v\n%s", err, b)
	}
	if err := os.WriteFile(filepath.Join(dir, "more_test.csv"), []byte("id,mood\nabc,sad\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = initFiles(t, Options{}, filepath.Join(dir, "*t*.?sv"), filepath.Join(dir, "test.json"))
	wantPlaces(t, "two files with one id", err,
		`multimodal_train.tsv:2:0 post abc, image 0, is already in "more_test.csv", line 2`)
	if _, err := initFiles(t, Options{}, filepath.Join(dir, "none*")); !os.IsNotExist(err) &&
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("a pattern without files: %v", err)
	}
	if _, err := initFiles(t, Options{}, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "no files of annotations") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestInitFileSplits: the names of several files say the splits, or a line says that they do not.
func TestInitFileSplits(t *testing.T) {
	const look = "every entry is in split train; a column called split can say another"
	for _, test := range []struct {
		files  string
		column string // a split column
		want   string // the splits
		look   string
	}{
		{"train.csv test.csv", "", "test train", ""},
		{"part1_train1.csv part1_train2.csv part2_test.csv", "", "test train train", ""},
		{"dev-train.csv test.csv", "", "train train",
			`the name of "test.csv" says a split, but that of "dev-train.csv" says none, or several: ` + look},
		{"fold1.csv fold2.csv", "", "train train",
			`the names of "fold1.csv" and the other files may say splits, but not usual ones: ` + look},
		{"a_cv.csv b_cv.csv", "", "train train", `the names of "a_cv.csv" and the other files`},
		{"part1.csv part2.csv", "", "train train", ""},
		{"data_train.csv extra.csv", "", "train train",
			`the name of "data_train.csv" says a split, but that of "extra.csv" says none, or several: ` + look},
		{"data_train.csv extra.csv", ",split", "dev dev", ""},
		{"dev_train.csv dev_test.csv", "", "train train",
			`the name of "dev_test.csv" says several splits, of which none was taken: ` + look},
		{"test_train.csv train_test.csv", "", "train train",
			`the name of "test_train.csv" says several splits, of which none was taken: ` + look},
		{"train.csv test.csv test_old.csv", "", "test test train",
			`the names of "test.csv" and "test_old.csv" both say split test: look whether both belong in it`},
		{"a/test-0-of-2.csv a/test-1-of-2.csv train.csv", "", "test test train", ""},
		{"latest.csv contest.csv", "", "train train", ""},
		{"test.csv", "", "train", `the name of "test.csv" says a split, but of one file alone it is not taken: ` +
			look},
		{"train.csv", "", "train", ""},
	} {
		texts, paths := map[string]string{}, []string(nil)
		for i, name := range strings.Fields(test.files) {
			texts[name] = fmt.Sprintf("id,mood%s\na%d,sad%s\n", test.column, i,
				strings.Replace(test.column, "split", "dev", 1))
		}
		dir := folder(t, texts)
		for name := range texts {
			paths = append(paths, filepath.Join(dir, name))
		}
		slices.Sort(paths)
		d, err := initFiles(t, Options{}, paths...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		list, err := entries(t, written(t, d, manifest.Options{}), nil)
		for _, e := range list {
			got = append(got, e.Split)
		}
		slices.Sort(got)
		said := strings.Join(d.Warnings, "\n")
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); err != nil || diff != "" ||
			!strings.HasPrefix(said, test.look) || (said == "") != (test.look == "") {
			t.Errorf("%s: %v; it says %q; splits (-want +got):\n%s", test.files, err, said, diff)
		}
	}
}

// TestInitCommentFields: columns that only comments have, filled in every row, are said.
func TestInitCommentFields(t *testing.T) {
	for text, want := range map[string]bool{
		"id,mood,comment_text\nabc,sad,so true\nabd,glad,me too\n":                  true,
		"id,mood,comment_text\nabc,sad,so true\nabd,glad,\n":                        false,
		"id,mood,comment_created_utc\nabc,sad,1700000000\nabd,glad,1700000001\n":    true,
		"id,mood,controversiality,is_submitter\nabc,sad,0,False\nabd,glad,1,True\n": true,
		"id,mood,controversiality\nabc,sad,0\nabd,glad,1\n":                         false,
		"id,mood,num_comments\nabc,sad,12\nabd,glad,3\n":                            false,
	} {
		d, err := initFiles(t, Options{}, file(t, "a.csv", text))
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(strings.Join(d.Warnings, "\n"),
			"which comments have and posts have not"); said != want {
			t.Errorf("%s: said %v, want %v: %q", text, said, want, d.Warnings)
		}
	}
}

// TestInitNumbers: spellings of a number are one label, and a line says so; a code that begins with a zero is a text.
func TestInitNumbers(t *testing.T) {
	for _, test := range []struct{ values, want, look string }{
		{"0 0.0 1 1.0", "0 0 1 1",
			`labels of column "label" that are the same number count as one: "0" and "0.0", "1" and "1.0"`},
		{"0.0 1.0 0 +1", "0 1.0 0 1.0",
			`labels of column "label" that are the same number count as one: "0.0" and "0", "1.0" and "+1"`},
		{"1e5 100000 1E5 2", "100000 100000 100000 2",
			`labels of column "label" that are the same number count as one: "1e5" and "100000", "100000" and "1E5"`},
		{"0.0 1.0 2.0 0.0", "0.0 1.0 2.0 0.0", `column "label" has the labels 0.0, 1.0, 2.0: if they are a scale`},
		{"01 1 1.0 01", "01 1 1 01", `labels of column "label" that are the same number count as one: "1" and "1.0"`},
		{"1|2.0 2 1.0 1", "1|2 2 1 1",
			`labels of column "label" that are the same number count as one: "2.0" and "2", "1" and "1.0"`},
		{"none 0 0.0 1", "none 0 0 1", `labels of column "label" that are the same number`},
		{"1|2 2 2|2.0 1", "1|2 2 2|2.0 1",
			`cells of column "label" seem to hold several labels, but the value at a.csv:4:8 has one label twice`},
	} {
		var b strings.Builder
		b.WriteString("mood,id,label\n")
		for i, value := range strings.Fields(test.values) {
			fmt.Fprintf(&b, "sad,a%d,%s\n", i, value)
		}
		path := file(t, "a.csv", b.String())
		d, err := initFiles(t, Options{}, path)
		if err != nil {
			t.Fatal(err)
		}
		written(t, d, manifest.Options{})
		var got []string
		for _, row := range d.Example[1:] {
			got = append(got, row[2])
		}
		said := strings.ReplaceAll(strings.Join(d.Warnings, "\n"), path, "a.csv")
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" || !strings.HasPrefix(said, test.look) ||
			(said == "") != (test.look == "") {
			t.Errorf("%s: it says %q; labels (-want +got):\n%s", test.values, said, diff)
		}
	}
}

// TestInitTimes: numbers that are no seconds since 1970 are no times, and a line says so.
func TestInitTimes(t *testing.T) {
	for _, test := range []struct {
		column, values, want string
		said                 bool
	}{
		{"created", "45000 45001.5", "45000", true}, {"date", "20240101 20240102", "20240101", true}, {"created_utc",
			"1591000000000 1591000000001", "1591000000000", true},
		{"created_utc", "1591000000 1591000001", "2020-06-01T08:26:40Z", false}, {"created", "2024-01-01 10:00:00",
			"2024-01-01T09:00:00Z", false},
	} {
		values, in := strings.Split(test.values, " "), "id,mood,"+test.column+"\n"
		if !test.said && strings.Contains(test.values, ":") {
			values = []string{test.values}
		}
		for i := range 12 {
			in += fmt.Sprintf("1n6oi%d,%s,%s\n", i, []string{"joy", "anger"}[i%2], values[i%len(values)])
		}
		d, err := initFiles(t, Options{Timezone: "Europe/Berlin"}, file(t, "a.csv", in))
		if err != nil {
			t.Fatal(err)
		}
		written(t, d, manifest.Options{})
		if row := d.Example[1]; row[len(row)-1] != test.want ||
			strings.Contains(strings.Join(d.Warnings, ""), "no seconds since 1970") != test.said {
			t.Errorf("%s: %v; it says %q", test.values, row, d.Warnings)
		}
	}
}

// TestInitNaiveTimes: a time that names no time zone is not published as UTC, unless somebody says so.
func TestInitNaiveTimes(t *testing.T) {
	for _, test := range []struct {
		zone, value, kind, want string
		look                    []string // the beginnings of what it says of the column
	}{
		{"", "2022-01-21 11:07:47", "text", "2022-01-21 11:07:47",
			[]string{`column "at" has times without a time zone, such as "2022-01-21 11:07:47" at `}},
		{"", "2022-01-21", "text", "2022-01-21", nil},
		{"America/Los_Angeles", "2022-01-21 11:07:47", "timestamp", "2022-01-21T19:07:47Z",
			[]string{`column "at" has 1 times without a time zone, which are read as those of America/Los_Angeles`}},
		{"+01:00", "2022-01-21", "text", "2022-01-21",
			[]string{`column "at" has days without a time of day, such as "2022-01-21" at `}},
		{"Europe/Berlin", "2019-10-27 02:30:00", "timestamp", "2019-10-27T00:30:00Z",
			[]string{`column "at" has 1 times without`,
				`column "at" has 1 times that the clocks of Europe/Berlin show twice or never`}},
		{"Europe/Berlin", "2022-01-21T11:07:47Z", "timestamp", "2022-01-21T11:07:47Z", nil},
		{"", "2022-01-21 11:07:47+02:00", "timestamp", "2022-01-21T09:07:47Z", nil},
	} {
		in := "id,mood,at\n1n6oi0,a," + test.value + "\n1n6oi1,b,2022-01-21T11:07:47Z\n"
		d, err := initFiles(t, Options{Timezone: test.zone}, file(t, "a.csv", in))
		if err != nil {
			t.Errorf("%s: %v", test.value, err)
			continue
		}
		r := written(t, d, manifest.Options{})
		fits := slices.EqualFunc(d.Warnings, test.look, strings.HasPrefix)
		if c := r.Schema.Columns[0]; string(c.Type) != test.kind || c.Timezone != "" ||
			d.Example[1][2] != test.want || !fits {
			t.Errorf("%s in %s is %q of %+v; it says %q", test.value, test.zone, d.Example[1][2], c, d.Warnings)
		}
	}
	_, err := initFiles(t, Options{Timezone: "Mars"}, file(t, "a.csv", "id\n1abcde\n"))
	if err == nil || !strings.Contains(err.Error(), `--timezone "Mars" is no time zone`) {
		t.Errorf("Mars: %v", err)
	}
}

// TestInitDates: dates in the form of a spreadsheet stay text, and where a time zone was given a line says why.
func TestInitDates(t *testing.T) {
	for _, tt := range []struct {
		zone, value string
		look        string // the beginning of the line about the dates; "" for none
	}{
		{"Europe/Berlin", "12.11.2024", `column "at" has dates such as "12.11.2024" at `},
		{"Europe/Berlin", "12.11.2024 14:05", `column "at" has dates such as "12.11.2024 14:05" at `},
		{"Europe/Berlin", "11/12/2024", `column "at" has dates such as "11/12/2024" at `},
		{"Europe/Berlin", "soon", ""},
		{"", "12.11.2024", ""},
	} {
		in := "id,mood,at\n1n6oi0,a," + tt.value + "\n1n6oi1,b," + tt.value + "\n"
		d, err := initFiles(t, Options{Timezone: tt.zone, Keep: []string{"at"}}, file(t, "a.csv", in))
		if err != nil {
			t.Errorf("%s: %v", tt.value, err)
			continue
		}
		r := written(t, d, manifest.Options{})
		said := slices.ContainsFunc(d.Warnings, func(w string) bool {
			return strings.HasPrefix(w, `column "at" has dates`) && strings.HasPrefix(w, tt.look)
		})
		if r.Schema.Columns[0].Type != manifest.TypeText || said != (tt.look != "") {
			t.Errorf("%s in %q is %s; it says %q", tt.value, tt.zone, r.Schema.Columns[0].Type, d.Warnings)
		}
	}
}

// TestInitStoredSigns: labels that are stored in other signs are one label, and a line says so. Labels beside objects
// are not lost unsaid.
func TestInitStoredSigns(t *testing.T) {
	for _, test := range []struct{ first, second, want string }{
		{"cafe\u0301", "caf\u00e9", "caf\u00e9"}, {"caf\u00e9", "cafe\u0301", "caf\u00e9"}, {"\uff21", "A",
			"A"}, {"b", "\uff22", "b"},
	} {
		d, err := initFiles(t, Options{},
			file(t, "a.csv", "id,mood\nabc,"+test.first+"\nabd,"+test.second+"\nabe,neg\n"))
		if err != nil {
			t.Fatal(err)
		}
		r := written(t, d, manifest.Options{})
		if got := len(r.Schema.Categories[0].Labels); got != 2 || d.Example[1][1] != test.want ||
			d.Example[2][1] != test.want ||
			!strings.Contains(strings.Join(d.Warnings, ""), "are stored in other signs count as one") {
			t.Errorf("%q, %q: %d labels, %q; it says %q", test.first, test.second, got, d.Example, d.Warnings)
		}
	}
	d, err := initFiles(t, Options{}, file(t, "a.jsonl",
		`{"id":"abc","label":"A"}`+"\n"+`{"id":"abd","label":{"choices":["A","B"]}}`+"\n"))
	if err != nil || !strings.Contains(strings.Join(d.Warnings, ""),
		`column "label" has labels in some cells, but the value at`) {
		t.Errorf("%v; it says %q", err, d.Warnings)
	}
}

// TestInitMissing: a word for a missing value is an empty cell, not a label, and a line counts them. None is asked
// about.
func TestInitMissing(t *testing.T) {
	for _, word := range []string{"nan", "NA", "#N/A", "null", "NaT", "<NA>", "None"} {
		in := "id,mood,n,at\n"
		for i := range 12 {
			in += fmt.Sprintf("1n6oi%d,%s,%d.5,2024-01-0%d\n", i, []string{"joy", "anger"}[i%2], i*i, 1+i%9)
		}
		other := word
		if word == "None" {
			other = ""
		}
		in += "1n6oix," + word + "," + other + "," + other + "\n"
		d, err := initFiles(t, Options{}, file(t, "a.csv", in))
		if err != nil {
			t.Fatal(err)
		}
		r := written(t, d, manifest.Options{})
		list, err := entries(t, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		last, labels, want := list[len(list)-1], len(r.Schema.Categories[0].Labels), 2
		says := `column "mood": 1 cells hold a word for a missing value, such as "` + word + `", and count as empty`
		if word == "None" {
			want, says = 3, `column "mood": "None" was taken for a label; where it stands for a missing value, empty`
		}
		if got := strings.Join(d.Example[0], ","); labels != want || len(last.Labels[0]) != want-2 ||
			got != "id,mood,n,at" ||
			!strings.Contains(strings.Join(d.Warnings, "\n"), says) {
			t.Errorf("%s: %s, %d labels, last row %v %v; it says %q", word, got, labels, last.Labels, last.Values,
				d.Warnings)
		}
	}
}

// TestInitSpelledTwice: a column that is spelled in two ways is refused, with the place where the second has a value.
func TestInitSpelledTwice(t *testing.T) {
	_, err := initFiles(t, Options{}, file(t, "a.jsonl",
		`{"id":"abc","label":"a"}`+"\n"+`{"id":"abd","Label":"b"}`+"\n"))
	wantPlaces(t, "keys", err, `a.jsonl:2:21 columns "label" and "Label" are one column, spelled in two ways`)
	dir := folder(t, map[string]string{"p1.csv": "id,label\nabc,a\n", "p2.csv": "id,Label\nabd,b\n"})
	_, err = initFiles(t, Options{}, dir)
	wantPlaces(t, "files", err, `p2.csv:2:5 columns "label" and "Label" are one column`)
}

// TestInitOtherColumns: a first file without the columns of the others is named as any other is.
func TestInitOtherColumns(t *testing.T) {
	for _, texts := range []map[string]string{
		{"a.csv": "x,y\n1,2\n", "b.csv": "id,mood\nabc,a\nabd,b\n"},
		{"a.csv": "post_id,mood\nabe,a\n", "b.csv": "id,mood\nabc,a\nabd,b\n"},
	} {
		d, err := initFiles(t, Options{}, folder(t, texts))
		if err == nil {
			_, err = d.Write(t.Context(), filepath.Join(t.TempDir(), "out"), nil)
		}
		wantPlaces(t, "files", err, "a.csv:1:0 the file has no column")
	}
}

// TestInitSkips: what a folder has beside its annotations is said where it may be some.
func TestInitSkips(t *testing.T) {
	dir := folder(t, map[string]string{"a.csv": "id,mood\nabc,a\nabd,b\n", "README.md": "x", "b.xlsx": "x",
		"a.csv.bak": "x", ".hidden": "x", "sub/test.csv": "id\n"})
	d, err := initFiles(t, Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = `not read, in the folder of the annotations: "a.csv.bak", "b.xlsx", "sub/"; name what`
	if said := strings.Join(d.Warnings, "\n"); !strings.Contains(strings.ReplaceAll(said, " and ", ", "), want) {
		t.Errorf("it says %q", said)
	}
}
