package manifest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readBoth reads a table as one of labels and as one of numbers: the keys of its rows, and how many are no answers.
func readBoth(t *testing.T, name, text string) (keys []string, left int, problem string) {
	t.Helper()
	path := file(t, name, text)
	o := Options{Unanswered: func() { left++ }}
	r, err := OpenTable(path, BuiltIn(), o)
	list, err := entries(t, r, err)
	for _, e := range list {
		keys = append(keys, e.Key.String())
	}
	labels, counted := left, []string(nil)
	left = 0
	k, opened := OpenKeyed(path, "", o)
	if opened == nil {
		defer k.Close()
		opened = k.Each(context.Background(), func(key Key, _ []Cell) bool { counted = append(counted, key.String()); return true })
	}
	if (err == nil) != (opened == nil) || err == nil && (cmp.Diff(keys, counted) != "" || labels != left) {
		t.Errorf("%s: as labels %v, %d left out (%v); as numbers %v, %d left out (%v)", text, keys, labels, err, counted, left, opened)
	}
	if err != nil {
		problem = err.Error()
	}
	return keys, left, problem
}

// TestImageBeside: a column of numbers of images names the entry, as in a manifest; one of something else does not.
func TestImageBeside(t *testing.T) {
	for text, want := range map[string]string{
		"id,image,severity\nabc123,0,SS1\nabc123,1,SS2\nabc124,,SS3\n":                           "abc123 abc123/1 abc124",
		"id,Image Index,severity\nabc123,1,SS1\n":                                                "abc123/1",
		"id,gallery_index,severity\nabc123,2.0,SS1\nabc124,nan,SS1\n":                            "abc123/2 abc124",
		"id,image,severity\nabc123/2,2,SS1\nabc124/1,,SS1\n":                                     "abc123/2 abc124/1",
		"id,image,image_number,severity\nabc123,1.jpg,1,SS1\nabc124,2.jpg,0,SS1\n":               "abc123/1 abc124",
		"id,image,severity\nabc123,1.jpg,SS1\nabc124/1,2.jpg,SS1\n":                              "abc123 abc124/1",
		"id,image,severity\nabc123,1,SS1\nabc124,2.jpg,SS1\n":                                    `:3: column "image" holds numbers of images and something else`,
		"id,image,severity\nabc123,x,SS1\nabc124,2,SS1\n":                                        `:2: column "image" holds numbers of images and something else`,
		"id,image,severity\nabc123/2,0,SS1\n":                                                    `:2: the id names image 2 of post abc123, and "image" image 0`,
		"id,image,image_index,severity\nabc123,1,0,SS1\n":                                        `"image" names image 1 of post abc123, and "image_index" image 0`,
		"id,image,severity\nabc123,1,SS1\nabc123/1,,SS1\n":                                       "is already",
		`{"id":"abc123","severity":"SS1"}` + "\n" + `{"id":"abc123","image":1,"severity":"SS1"}`: "abc123 abc123/1",
		`{"id":"abc123","image":{"path":"x"},"severity":"SS1"}`:                                  "abc123",
	} {
		name := "a.csv"
		if strings.HasPrefix(text, "{") {
			name = "a.jsonl"
		}
		keys, _, problem := readBoth(t, name, text)
		if got := strings.Join(keys, " "); got != want && (problem == "" || !strings.Contains(problem, want)) {
			t.Errorf("%s\n%s %s, want %s", text, got, problem, want)
		}
	}
}

// TestAbout: a row whose other fields name a comment, or another post than its id, is refused with its line in tables
// of labels and of numbers, in bare files and in releases.
func TestAbout(t *testing.T) {
	const address = "https://www.reddit.com/r/x/comments/abc124/t/"
	for text, want := range map[string]string{
		"id,severity,permalink\nabc123,SS1,/r/x/comments/abc123/t/\nabc124,SS1," + address + "kz0abcd/\n":     `:3:12: column "permalink" says that this row is about a comment`,
		"id,severity,fullname\nabc123,SS1,t3_abc123\nabc124,SS1,t1_kz0abcd\n":                                 `:3:12: column "fullname" says`,
		"id,severity,type\nabc123,SS1,comment\nabc124,SS1,comment\n":                                          `:2:12: column "type" says`,
		"id,severity,Post Type\nabc123,SS1,post\nabc124,SS1,reply\n":                                          `:3:12: column "Post Type" says`,
		"id,severity,type\nabc123,SS1,comment\nabc124,SS1,irony\n":                                            "",
		"id,severity,type\nabc123,SS1,image\nabc124,SS1,gallery\n":                                            "",
		"id,severity,kind\nabc123,SS1,p\nabc124,SS1,C\n":                                                      `:3:12: column "kind" says`,
		"id,severity,type\nabc123,SS1,a\nabc124,SS1,c\n":                                                      "",
		"id,severity,utt_id\nabc123,SS1,abc123\nabc124,SS1,kz0abcd\n":                                         `:3:12: column "utt_id" says`,
		"id,severity,comment_id\nabc123,SS1,\nabc124,SS1,kz0abcd\n":                                           `:3:12: column "comment_id" says`,
		"id,severity,comment_id\nabc123,SS1,1\nabc124,SS1,2\n":                                                "",
		"id,severity,is_comment\nabc123,SS1,no\nabc124,SS1,yes\n":                                             `:3:12: column "is_comment" says`,
		"id,severity,is_submission\nabc123,SS1,True\nabc124,SS1,False\n":                                      `:3:12: column "is_submission" says`,
		"id,severity,comment\nabc123,SS1,yes\nabc124,SS1,good\n":                                              "",
		"id,severity,post_id\nabc123,SS1,abc123\nabc124,SS1,abc125\n":                                         `:3:12: column "post_id" names another post than the id of the row, "abc124"`,
		"id,severity,submission_id\nabc123,SS1,t3_abc125\n":                                                   `:2:12: column "submission_id" names`,
		"post_id,severity,id\nabc123,SS1,1\n":                                                                 "names another post",
		"id,severity,post_id\nabc123,SS1,1\nabc124,SS1,2\n":                                                   "",
		"id,severity,permalink\nabc123,SS1," + address + "\n":                                                 `:2:12: column "permalink" names`,
		"id,severity,url\nabc123,SS1," + address + "\n":                                                       `:2:12: column "url" names`,
		"id,severity,url,permalink\nabc123,SS1," + address + ",/r/x/comments/abc123/t/\n":                     "",
		"id,severity,url\nabc123,SS1,https://i.redd.it/abc.png\n":                                             "",
		`{"id":"abc123","severity":"SS1"}` + "\n" + `{"id":"abc124","severity":"SS1","comment_id":"kz0abcd"}`: `:2:`,
	} {
		name := "a.csv"
		if strings.HasPrefix(text, "{") {
			name = "a.jsonl"
		}
		if strings.HasPrefix(text, "post_id") { // the column id comes first, also where it numbers rows
			want = `column "post_id" names another post`
		}
		if _, _, problem := readBoth(t, name, text); (problem == "") != (want == "") ||
			!strings.Contains(problem, want) {
			t.Errorf("%s\n%q, want %q", text, problem, want)
		}
	}
	dir := folder(t,
		map[string]string{SettingsName: "name = \"x\"\nmanifest = \"a.csv\"\n[[category]]\nname = \"mood\"\nkind = \"single\"\n" +
			"labels = [{code = \"sad\", name = \"sad\"}]\n",
			"a.csv": "id,mood,type\nabc123,sad,post\nabc124,sad,comment\n"})
	r, err := Open(dir, Options{})
	if _, err = entries(t, r, err); err == nil || !strings.Contains(err.Error(), `a.csv:3:12: column "type" says`) {
		t.Errorf("a release: %v", err)
	}
	k, err := OpenKeyed(file(t, "c.csv", "meme,id,width\nabc123,abc121,1\n"), "meme", Options{})
	if err == nil {
		defer k.Close()
		err = k.Each(context.Background(), func(Key, []Cell) bool { return true })
	}
	if err != nil {
		t.Errorf("a column of ids that is named, beside one called id: %v", err)
	}
	r, err = Open(file(t, "b.csv", "id,figurative,severity,related_content,modality,context,permalink\n"+
		"abc124,F1,SS1,SR1,M1,C1,"+address+"kz0abcd/\n"), Options{})
	if _, err = entries(t, r, err); err == nil ||
		!strings.Contains(err.Error(), `b.csv:2:25: column "permalink" says`) {
		t.Errorf("a bare file: %v", err)
	}
}

// TestUnanswered: rows that say that they are no answer are left out and counted.
func TestUnanswered(t *testing.T) {
	var manyRecords strings.Builder // more than those that are read for their keys
	for i := range sampleRows {
		fmt.Fprintf(&manyRecords, `{"id":"b%d","severity":"SS1"}`+"\n", i)
	}
	for text, want := range map[string]int{
		"id,severity,status\nabc123,SS1,draft\nabc123,SS2,submitted\nabc124,x,Discarded\nabc125,SS1,\n":                     2,
		"id,severity,Status\nabc123,SS2,APPROVED\nabc124,x,AWAITING REVIEW\nabc126,SS1,Timed-Out\n":                         2,
		"id,severity,response_status\nabc123,SS2,submitted\nabc124,SS1,pending\n":                                           1,
		"id,severity,was_cancelled\nabc123,SS2,false\nabc124,SS1,True\n":                                                    1,
		"id,severity,error\nabc123,SS2,\nabc124,SS1,timeout\nabc125,SS1,none\nabc126,SS1,500\n":                             2,
		"id,severity,error\nabc123,SS2,0.25\nabc124,SS1,0\n":                                                                0,
		"id,severity,errors\nabc123,SS2,2\nabc124,SS1,timeout\n":                                                            1,
		"id,severity,note\nabc123,SS2,draft\n":                                                                              0,
		"id,severity,Finished\nabc123,SS2,False\nabc124,SS1,True\nabc125,SS1,0\nabc126,SS1,\n":                              2,
		"id,severity,submitted\nabc123,SS2,no\nabc124,SS1,2026-01-02\n":                                                     1,
		"id,severity,is_valid\nabc123,SS2,false\nabc124,SS1,yes\n":                                                          1,
		"id,severity,isValid\nabc123,SS2,F\nabc124,SS1,T\n":                                                                 1,
		"id,severity,Success\nabc123,SS2,False\n":                                                                           1,
		"id,severity,was_completed\nabc123,SS2,nein\nabc124,SS1,NA\n":                                                       1,
		"id,severity,is_error\nabc123,SS2,1\nabc124,SS1,0\nabc125,SS1,\n":                                                   1,
		"id,severity,has_error\nabc123,SS2,true\n":                                                                          1,
		"id,severity,was_skipped\nabc123,SS2,true\nabc124,SS1,false\n":                                                      1,
		"id,severity,parse_error\nabc123,SS2,bad json\nabc124,SS1,\n":                                                       1,
		"id,severity,refused\nabc123,SS2,True\nabc124,SS1,False\n":                                                          1,
		"id,severity,truncated\nabc123,SS2,True\n":                                                                          1,
		"id,severity,finish_reason\nabc123,SS2,length\nabc124,SS1,STOP\nabc125,SS1,\nabc126,SS1,x\n":                        2,
		"id,severity,stop_reason\nabc123,SS2,max_tokens\nabc124,SS1,end_turn\n":                                             1,
		"id,severity,done_reason\nabc123,SS2,length\nabc124,SS1,nan\n":                                                      1,
		"id,severity,status\nabc123,SS2,empty\nabc124,SS1,not_json\nabc125,SS1,unknown_label\n":                             3,
		"id,severity,status\nabc123,SS2,too_large\nabc124,SS1,not_asked\nabc125,SS1,ok\n":                                   2,
		"id,severity,outcome\nabc123,SS2,truncated\nabc124,SS1,refused\nabc125,SS1,failed\n":                                3,
		"id,severity,ASSIGNMENT:status\nabc123,SS2,REJECTED\nabc124,SS1,APPROVED\n":                                         1,
		"id,severity,HITStatus\nabc123,SS2,Rejected\nabc124,SS1,Reviewed\n":                                                 1,
		"id,severity,Submission status\nabc123,SS2,RETURNED\nabc124,SS1,APPROVED\n":                                         1,
		"id,severity,run_status\nabc123,SS2,failed\nabc124,SS1,x\n":                                                         1,
		"id,severity,answer\nabc123,SS2,accept\nabc124,SS1,ignore\nabc125,SS1,reject\n":                                     2,
		"id,severity,status\nabc123,SS2,invalid\nabc124,SS1,Ignored\nabc125,SS1,parse_error\nabc126,SS1,no error\n":         3,
		"id,severity,status\nabc123,SS2,blocked\nabc124,SS1,content filtered\nabc125,SS1,no_answer\nabc126,SS1,ok\n":        3,
		"id,severity,status\nabc123,SS2,429\nabc124,SS1,200\nabc125,SS1,not rejected\n":                                     1,
		"id,severity,state\nabc123,SS2,429\nabc124,SS1,200\nabc125,SS1,CA\n":                                                0,
		"id,severity,api_state\nabc123,SS2,429\nabc124,SS1,200\n":                                                           1,
		"id,severity,outcome\nabc123,SS2,500\nabc124,SS1,1\nabc125,SS1,750\n":                                               0,
		"id,severity,llm_status\nabc123,SS2,503\nabc124,SS1,200\nabc125,SS1,0\n":                                            1,
		"id,severity,model_status\nabc123,SS2,429\nabc124,SS1,200\n":                                                        1,
		"id,severity,ASSIGNMENT:status\nabc123,SS2,429\nabc124,SS1,3\n":                                                     1,
		"id,severity,status\nabc123,SS2,rate limit exceeded\nabc124,SS1,RATE_LIMITED\nabc125,SS1,limited\n":                 2,
		"id,severity,status\nabc123,SS2,HTTP 500\nabc124,SS1,HTTP/1.1 429 Too Many Requests\nabc125,SS1,HTTP 200\n":         2,
		"id,severity,run_state\nabc123,SS2,500 Internal Server Error\nabc124,SS1,http_503\nabc125,SS1,503 people\n":         2,
		"id,severity,excluded\nabc123,SS2,yes\nabc124,SS1,no\n":                                                             1,
		"id,severity,approved\nabc123,SS2,yes\nabc124,SS1,no\n":                                                             1,
		"id,severity,Approve,Reject\nabc123,SS2,x,\nabc124,SS1,,x\n":                                                        1,
		"id,severity,failed_attention_check\nabc123,SS2,True\nabc124,SS1,False\n":                                           1,
		"id,severity,is_attention_check_failed,parse_failed\nabc123,SS2,1,0\nabc124,SS1,0,1\nabc125,SS1,0,0\n":              2,
		"id,severity,is_refusal,refusal\nabc123,SS2,True,False\nabc124,SS1,False,True\n":                                    2,
		"id,severity,valid_json,ok,fallback\nabc123,SS2,False,1,no\nabc124,SS1,True,0,no\nabc125,SS1,True,1,True\n":         3,
		"id,severity,failed_attempts,num_skipped\nabc123,SS2,1,0\nabc124,SS1,0,1\nabc125,SS1,2,1\n":                         0,
		"id,severity,skipped_questions,excluded_words\nabc123,SS2,1,1\nabc124,SS1,yes,0\n":                                  1,
		"id,severity,marital_status,http_status\nabc123,SS2,450,200\nabc124,SS1,1,503\n":                                    1,
		"id,severity,status\nabc123,SS2,error_free\nabc124,SS1,accept\n":                                                    0,
		"id,severity,hate.rejected,goal.failed\nabc123,SS2,1,1\n":                                                           0,
		"id,severity,relationship_status\nabc123,SS2,single\nabc124,SS1,married\n":                                          0,
		"id,severity,taskstatus\nabc123,SS2,expired\n":                                                                      1,
		"id,severity,final.state\nabc123,SS2,draft\nabc124,SS1,CA\n":                                                        1,
		"id,severity,choices.0.finish_reason\nabc123,SS2,length\nabc124,SS1,stop\n":                                         1,
		"id,severity,native_finish_reason\nabc123,SS2,MAX_TOKENS\nabc124,SS1,STOP\n":                                        1,
		"id,severity,response.error\nabc123,SS2,timeout\nabc124,SS1,\n":                                                     1,
		"id,severity,error_type\nabc123,SS2,RateLimitError\nabc124,SS1,None\n":                                              1,
		"id,severity,lastError\nabc123,SS2,timeout\nabc124,SS1,no\n":                                                        1,
		"id,severity,llm_error\nabc123,SS2,bad json\nabc124,SS1,False\n":                                                    1,
		"id,severity,response.cancelled\nabc123,SS2,true\nabc124,SS1,false\n":                                               1,
		"id,severity,validity.invalid,validity.valid\nabc123,SS2,1,0\n":                                                     0,
		"id,severity,squared_error,pixel_error\nabc123,SS2,4,7\n":                                                           0,
		"id,severity,spelling_error,terror\nabc123,SS2,yes,yes\n":                                                           0,
		`{"id":"abc123","severity":"SS1"}` + "\n" + `{"id":"abc124","severity":"SS1","is_error":true,"was_submitted":true}`: 1,
		manyRecords.String() + `{"id":"abc124","severity":"SS1","llm_status":"failed"}`:                                     1,
		`{"id":"abc123","severity":"SS1","status":"ok"}` + "\n" + `{"id":"abc124","severity":"SS1","error":{"code":5}}` + "\n" +
			`{"id":"abc125","severity":"SS1","error":null}` + "\n" + `{"id":"abc126","severity":"SS1","status":"failed"}`: 2,
	} {
		name := "a.csv"
		if strings.HasPrefix(text, "{") {
			name = "a.jsonl"
		}
		if _, left, problem := readBoth(t, name, text); left != want || problem != "" {
			t.Errorf("%s\n%d left out %s, want %d", text, left, problem, want)
		}
	}
	schema := BuiltIn()
	schema.Schema.Categories[1].Name = "status"
	r, err := OpenTable(file(t, "b.csv", "id,status\nabc123,SS1\n"), schema, Options{Unanswered: func() { t.Error("a label is no state") }})
	if list, err := entries(t, r, err); err != nil || len(list) != 1 {
		t.Errorf("a category called status: %v, %v", list, err)
	}
	plain, err := OpenTable(file(t, "c.csv", "id,severity,status\nabc123,SS1,draft\n"), BuiltIn(), Options{})
	if list, err := entries(t, plain, err); err != nil || len(list) != 1 {
		t.Errorf("a table that is not one of answers: %v, %v", list, err)
	}
}
