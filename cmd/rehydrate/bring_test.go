package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
)

// A brought file is one that somebody brings, and how many posts a release of it has.
type brought struct {
	name, text string
	posts      int
}

// broughtFiles are the files of docs/files-people-bring.md, by the first cells of their rows.
var broughtFiles = map[string]brought{
	"CSV of Excel, with a byte order mark and CRLF": {"a.csv",
		"\ufeffid,mood,score\r\n1exa00,sad,3\r\n1exa01,glad,14\r\n1exa02,sad,15\r\n1exa03,sad,92\r\n", 4},
	"CSV with `;`": {"a.csv",
		"post_id;mood;ratio\n1exa00;sad;0.5\n1exa01;glad;0.25\n1exa02;sad;0.75\n1exa03;sad;1\n", 4},
	"CSV in Latin-1": {"a.csv", "id,mood\n1exa00,f\xe2ch\xe9\n1exa01,content\n", 0},
	"TSV, with labels in one cell": {"a.tsv",
		"id\tmood\n1exa00\tsad|dark\n1exa01\tglad\n1exa02\tdark\n1exa03\tglad|dark\n", 4},
	"CSV packed by zstd":   {"a.csv.zst", "submission_id,mood\n1exa00,sad\n1exa01,glad\n1exa02,sad\n", 3},
	"CSV without a header": {"a.csv", "1exa00,sad\n1exa01,glad\n1exa02,sad\n1exa03,glad\n", 4},
	"list of ids":          {"ids.txt", "1exa00\n1exa01\n1exa02\n", 3},
	"list of fullnames":    {"ids.txt", "t3_1exa00\nt3_1exa01\nt3_1exa02\n", 3},
	"list of links of several kinds, with comments": {"ids.txt",
		"# of March\nhttps://redd.it/1exa00\nhttps://www.reddit.com/r/x/comments/1exa01/a_title/\n\n1exa02 # late\n/r/x/comments/1exa03\nhttps://www.reddit.com/gallery/1exa04\n", 5},
	"CSV of one column, permalinks": {"a.csv",
		"permalink\n/r/x/comments/1exa00/a/\n/r/x/comments/1exa01/b/\n/r/x/comments/1exa02/c/\n", 3},
	"list that begins with a word": {"ids.txt", "memes\n1exa00\n1exa01\n", 0},
	"list of share links (`/s/`)": {"a.csv",
		"link,mood\nhttps://www.reddit.com/r/x/s/AbCdEf1234,sad\nhttps://www.reddit.com/r/x/s/GhIjKl5678,glad\n", 0},
	"list of addresses of images": {"a.csv",
		"url,mood\nhttps://i.redd.it/a1.jpg,sad\nhttps://i.imgur.com/b2.png,glad\n", 0},
	"Reddit's listing, JSON": {"a.json", `{"kind":"Listing","data":{"after":null,"children":[` +
		`{"kind":"t3","data":{"id":"1exa00","score":3,"over_18":false}},{"kind":"t3","data":{"id":"1exa01","score":14,"over_18":true}},` +
		`{"kind":"t3","data":{"id":"1exa02","score":15,"over_18":false}}]}}`, 3},
	"pages of Reddit's, JSON": {"a.json",
		`[{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"1exa00"}}]}},` +
			`{"kind":"Listing","data":{"children":[]}}]`, 0},
	"lines of PRAW, JSON Lines": {"a.jsonl",
		`{"id":"1exa00","name":"t3_1exa00","author":"example_one","title":"a box","score":3,"created_utc":1567435668.0}` + "\n" +
			`{"id":"1exa01","name":"t3_1exa01","author":"example_two","title":"a tin","score":14,"created_utc":1567435669.0}` + "\n" +
			`{"id":"1exa02","name":"t3_1exa02","author":"example_one","title":"a cup","score":15,"created_utc":1567435670.0}` + "\n", 3},
	"JSON, an object of records by id": {"a.json",
		`{"1exa00":{"mood":"sad"},"1exa01":{"mood":"glad"},"1exa02":{"mood":"sad"}}`, 3},
	"JSON, an object of records by number": {"a.json",
		`{"0":{"Reddit ID":"1exa00","mood":"sad"},"1":{"Reddit ID":"1exa01","mood":"glad"},"2":{"Reddit ID":"1exa02","mood":"sad"}}`, 3},
	"CSV of nested records, as `json_normalize` of pandas writes it": {"a.csv",
		"post.post_id,post.subreddit,labels.mood,labels.sure\n1exa00,memes,sad,True\n1exa01,memes,glad,False\n1exa02,aww,sad,True\n", 3},
	"JSON of pandas, by columns": {"a.json",
		`{"id":{"0":"1exa00","1":"1exa01"},"mood":{"0":"sad","1":"glad"}}`, 0},
	"JSON with objects in a field": {"a.json",
		`[{"id":"1exa00","mood":"sad","notes":{"a":1}},{"id":"1exa01","mood":"glad","notes":{"a":2}},` +
			`{"id":"1exa02","mood":"sad","notes":{}},{"id":"1exa03","mood":"sad","notes":{"b":[1]}}]`, 4},
	"CSV with times that name no time zone": {"a.csv",
		"id,mood,seen\n1exa00,sad,2022-01-21 11:07:47\n1exa01,glad,2022-07-21 11:07:48\n1exa02,sad,2022-01-22 01:02:03\n",
		3},
	"CSV with ids that a spreadsheet damaged": {"a.csv",
		"id,mood\n1exa00,sad\n6.60E+05,glad\n1exa01,sad\n1-Jan,sad\n1exa02,glad\n1exa03,sad\n", 4},
	"CSV with damaged ids beside whole addresses": {"a.csv",
		"id,address,mood\n1exa00,/r/x/comments/1exa00/a/,sad\n1.97E+279,/r/x/comments/197e277/b/,glad\n1exa02,/r/x/comments/1exa02/c/,sad\n", 3},
	"CSV with a column of 0 and 1 for each label": {"a.csv",
		"id,emotion_joy,emotion_fear,emotion_anger,emotion_trust,emotion_shame\n1exa00,1,0,0,1,0\n1exa01,0,1,0,0,0\n1exa02,0,0,1,0,0\n1exa03,0,0,0,0,1\n", 4},
	"CSV with a column for each annotator": {"a.csv",
		"id,Annotator 1,Annotator 2,final\n1exa00,irony,irony,irony\n1exa01,pun,irony,pun\n1exa02,pun,pun,pun\n1exa03,irony,pun,irony\n", 4},
	"CSV with a row for each hour": {"a.csv",
		"id,score\n1exa00,3\n1exa01,4\n1exa00,5\n1exa01,9\n1exa02,2\n1exa02,6\n", 3},
	"CSV with comments among posts, by type": {"a.csv",
		"id,type,mood\n1exa00,post,sad\n1exa01,comment,glad\n1exa02,post,glad\n1exa03,post,sad\n", 3},
	"CSV with comments among posts, by letter": {"a.csv",
		"id,kind,mood\n1exa00,p,sad\n1exa01,c,glad\n1exa02,p,glad\n1exa03,p,sad\n", 3},
	"CSV with comments among posts, by their own ids": {"a.csv",
		"entry_id,link_id,mood\n1exa00,t3_1exa00,sad\nfgb3bdv,t3_1exa00,glad\n1exa01,t3_1exa01,glad\nfgc6tlu,t3_1exa01,sad\n1exa02,t3_1exa02,sad\n", 3},
	"CSV of utterances of conversations": {"a.csv",
		"post_id,turn,mood\n1exa00,0,sad\n1exa00,1,glad\n1exa01,0,glad\n1exa01,1,sad\n1exa02,0,sad\n", 3},
	"CSV of comments beside the ids of their posts": {"a.csv",
		"comment_id,link_id,mood\nt1_fgb3bdv,t3_1exa00,sad\nt1_fgc6tlu,t3_1exa00,glad\nt1_fge6msg,t3_1exa01,sad\nt1_fgb3bdx,t3_1exa02,sad\n", 3},
	"CSV of comments by type, beside the ids of their posts": {"a.csv",
		"type,key_id,post_id,mood\ncomment,fgb3bdv,1exa00,sad\ncomment,fgc6tlu,1exa00,glad\ncomment,fge6msg,1exa01,sad\ncomment,fgb3bdx,1exa02,sad\n", 3},
	"CSV with several ids in a cell":           {"a.csv", "id,mood\n\"1exa00, 1exa01\",sad\n1exa02,glad\n", 0},
	"CSV with other ids alone":                 {"a.csv", "id,mood\n2021.09.20_77,sad\n2021.09.02_17,glad\n", 0},
	"web page that shows a file, saved as CSV": {"a.csv", "\n<!DOCTYPE html>\n<html lang=\"en\">\n</html>\n", 0},
	"pointer of Git LFS, in place of Parquet": {"a.parquet",
		"version https://git-lfs.github.com/spec/v1\noid sha256:c41f\nsize 133063930\n", 0},
	"CSV with a status that nobody knows": {"a.csv",
		"id,mood,status\n1exa00,sad,submitted\n1exa01,glad,archived\n1exa02,sad,submitted\n1exa03,sad,withdrawn\n1exa04,glad,submitted\n", 5},
}

// A broughtRow is a row of docs/files-people-bring.md.
type broughtRow struct {
	file    string
	says    []string // by `init` of the file alone
	flags   []string
	columns string // of the dataset as DuckDB has them, "" for none
	release bool
}

// typesInDocs are the types of DuckDB by the words of the page.
var typesInDocs = map[string]string{"label": "BIGINT", "labels": "BIGINT[]", "integer": "BIGINT", "number": "DOUBLE",
	"boolean": "BOOLEAN", "timestamp": "TIMESTAMP WITH TIME ZONE", "text": "VARCHAR", "JSON": "VARCHAR",
	"list of integer": "BIGINT[]", "list of label": "BIGINT[]"}

func readBroughtRows(t *testing.T) (rows []broughtRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/files-people-bring.md")
	check(t, err)
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || cells[0] == "file" {
			continue
		}
		row := broughtRow{file: cells[0], release: cells[3] != "no release"}
		for _, found := range quoted.FindAllStringSubmatch(cells[1], -1) {
			row.says = append(row.says, found[1])
		}
		if found := quoted.FindStringSubmatch(cells[2]); found != nil && strings.HasPrefix(found[1], "--") {
			row.flags = strings.Fields(found[1])
		}
		var columns []string
		for part := range strings.SplitSeq(cells[3], ", ") {
			name, kind, isColumn := strings.Cut(strings.TrimPrefix(part, "`"), "` ")
			if isColumn {
				columns = append(columns, name+" "+typesInDocs[kind])
			}
		}
		row.columns = strings.Join(columns, ", ")
		rows = append(rows, row)
	}
	return rows
}

// TestFilesPeopleBring makes each file of docs/files-people-bring.md, and holds what stands there: what init says of
// it, what a maintainer types, and what the dataset of a rehearsal has, as DuckDB reads it.
func TestFilesPeopleBring(t *testing.T) {
	rows := readBroughtRows(t)
	if len(rows) != len(broughtFiles) {
		t.Errorf("the page has %d files, the test %d", len(rows), len(broughtFiles))
	}
	made := t.TempDir() // the datasets, by the number of their row
	t.Run("made", func(t *testing.T) { bringAll(t, rows, made) })
	got := columnsOf(t, made)
	for i, row := range rows {
		if diff := cmp.Diff(row.columns, got[strconv.Itoa(i)]); row.release && diff != "" {
			t.Errorf("%s: the columns of the dataset (-want +got):\n%s", row.file, diff)
		}
	}
}

func bringAll(t *testing.T, rows []broughtRow, made string) {
	t.Helper()
	for i, row := range rows {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			file, known := broughtFiles[row.file]
			if !known {
				t.Fatal("the test makes no such file")
			}
			s := newSite(t, "", quick(""))
			name := filepath.Join(t.TempDir(), file.name)
			s.write(name, packedAs(t, file))
			release := filepath.Join(t.TempDir(), "made")
			got := s.do(s.env(), "init", release, "--manifest", name)
			for _, text := range row.says {
				if !strings.Contains(got.stdout+got.stderr, text) {
					t.Errorf("init does not say %q:\n%s%s", text, got.stderr, got.stdout)
				}
			}
			if !row.release {
				if got.code != exitUsage || file.posts > 0 {
					t.Errorf("init ends with %d, want a refusal", got.code)
				}
				return
			}
			if len(row.flags) > 0 {
				release = filepath.Join(t.TempDir(), "made")
				got = s.do(s.env(), slices.Concat([]string{"init", release, "--manifest", name}, row.flags)...)
			}
			got.want(t, exitDone)
			s.do(s.env(), "demo", "--release", release, "-w", s.workspace, "--ocr", s.reader).want(t, exitDone)
			outcomes := s.outcomes()
			kept := slices.ContainsFunc(outcomes, func(r manifest.Result) bool { return r.Outcome == manifest.Kept })
			if len(outcomes) != file.posts || !kept {
				t.Fatalf("%d rows have an outcome, want %d, one of them kept: %v", len(outcomes), file.posts, outcomes)
			}
			check(t, os.CopyFS(filepath.Join(made, strconv.Itoa(i)), os.DirFS(filepath.Join(s.workspace, "dataset", "data"))))
		})
	}
}

// packedAs gives the bytes of a file as its name says.
func packedAs(t *testing.T, file brought) string {
	t.Helper()
	if filepath.Ext(file.name) != ".zst" {
		return file.text
	}
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	check(t, err)
	_, err = w.Write([]byte(file.text))
	check(t, err)
	check(t, w.Close())
	return out.String()
}

// columnsOf is what columns the datasets in a folder have beside those that every one has, as DuckDB, asked once, says.
func columnsOf(t *testing.T, made string) map[string]string {
	t.Helper()
	folders, err := os.ReadDir(made)
	check(t, err)
	var asked []string
	for _, f := range folders {
		asked = append(asked,
			fmt.Sprintf("SELECT %s AS Made, string_agg(column_name || ' ' || column_type, ', ') AS Columns "+
				"FROM (DESCRIBE SELECT * FROM %s) WHERE column_name NOT IN "+
				"('id', 'image', 'ocr_text', 'ocr_confidence', 'width', 'height', 'sha256', 'phash')",
				duckdb.Quote(f.Name()), duckdb.Quote(filepath.Join(made, f.Name(), "*.parquet"))))
	}
	var found []struct{ Made, Columns string }
	duckdb.Query(t, &found, strings.Join(asked, " UNION ALL "))
	columns := map[string]string{}
	for _, f := range found {
		columns[f.Made] = f.Columns
	}
	if len(columns) != len(folders) {
		t.Errorf("DuckDB read %d of %d datasets", len(columns), len(folders))
	}
	return columns
}
