package manifest

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestHostileManifests holds the places of everything that can be wrong with a text.
func TestHostileManifests(t *testing.T) {
	const row = "abc,train,F1,SS1,SR1,M1,C1\n"
	long := strings.Repeat("x", maxLine+1)
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"empty file", "a.csv", "", []string{"a.csv:1:0 the file is empty"}},
		{"blank file", "a.csv", "\n\r\n\n", []string{"a.csv:1:0 the file is empty"}},
		{"header only", "a.csv", figsimHeader, []string{"a.csv:1:0 the manifest has no entries"}},
		{"UTF-8 BOM", "a.csv", "\xef\xbb\xbf" + figsimHeader + row, []string{"a.csv:1:1 the file starts with a byte order mark (UTF-8 BOM)"}},
		{"UTF-16 BOM", "a.csv", "\xff\xfei\x00d\x00", []string{"a.csv:1:1 the file is UTF-16"}},
		{"NUL", "a.csv", figsimHeader + "ab\x00c,train,F1,SS1,SR1,M1,C1\n", []string{"a.csv:2:3 the line has a NUL byte"}},
		{"not UTF-8", "a.csv", figsimHeader + row + "abd,é\xe9,F1,SS1,SR1,M1,C1\n", []string{"a.csv:3:7 byte 0xe9 is not UTF-8"}},
		{"long line", "a.csv", figsimHeader + long + "\n" + row, []string{"a.csv:2:0 the line is longer than 64 KiB"}},
		{"long last line", "a.csv", figsimHeader + row + long + long, []string{"a.csv:3:0 the line is longer than 64 KiB"}},
		{"long header", "a.csv", long, []string{"a.csv:1:0 the line is longer than 64 KiB"}},
		{"blank line inside", "a.csv", figsimHeader + "\n \r\n" + row + "t1_x,train,F1,SS1,SR1,M1,C1\n", []string{`a.csv:5:1 "t1_x" is`}},
		{"two columns of a name", "a.csv", "id,split,id\n", []string{`a.csv:1:10 two columns are named "id"`}},
		{"id or ID", "a.csv", "ID," + figsimHeader, []string{`a.csv:1:0 columns "ID" and "id" could both be id`}},
		{"no id", "a.csv", "name,split\n", []string{"a.csv:1:0 no column of post ids was found", "a.csv:1:0 no column was found for category figurative", "a.csv:1:0 no column was found for category severity", "a.csv:1:0 no column was found for category related_content", "a.csv:1:0 no column was found for category modality", "a.csv:1:0 no column was found for category context"}},
		{"no category", "a.csv", "id,split,figurative,severity,related_content,modality\n", []string{"a.csv:1:0 no column was found for category context (Context)"}},
		{"other codes", "a.csv", figsimHeader + "abc,train,happy,SS1,SR1,M1,C1\n", []string{`a.csv:2:11 "happy" is not a label of category figurative`}},
		{"too few fields", "a.csv", figsimHeader + "abc,train\n" + row, []string{"a.csv:2:10 the row has 2 fields, the header has 7"}},
		{"too few fields after a line break", "a.csv", figsimHeader + "abc,train,\"x\ny\"\r\n" + row, []string{"a.csv:3:3 the row has 3 fields, the header has 7"}},
		{"too many fields", "a.csv", figsimHeader + row + "abd,train,F1,SS1,SR1,M1,C1,,x\n", []string{"a.csv:3:28 the row has 9 fields, the header has 7"}},
		{"bare quote", "a.csv", figsimHeader + "ab\"c,train,F1,SS1,SR1,M1,C1\n" + row, []string{`a.csv:2:3 a quote (") stands inside`}},
		{"quote not closed", "a.csv", figsimHeader + row + "\"abd,train\n" + "abe,train\n", []string{"a.csv:3:0 a quoted field that starts on this line is not closed by the end of the file"}},
		{"quote open for long", "a.csv", figsimHeader + "\"" + strings.Repeat(long[:1000]+"\n", 66), []string{"a.csv:2:0 a quoted field that starts on this line is not closed by 64 KiB"}},
		{"text after a quote", "a.csv", figsimHeader + "\"abd\"x,train,F1,SS1,SR1,M1,C1\n" + row, []string{"a.csv:2:5 a quoted field does not end where"}},
		{"JSON list", "a.jsonl", "[1]\n", []string{"a.jsonl:1:1 the line is not a JSON object", "a.jsonl:1:0 no line holds a JSON object"}},
		{"UTF-16 JSON", "a.jsonl", "\xff\xfe{\x00\n\x00", []string{"a.jsonl:1:1 the file is UTF-16", "a.jsonl:2:1 the line has a NUL", "a.jsonl:1:0 no line holds"}},
	}
	for _, test := range tests {
		t.Log(test.name)
		_, err := checked(t, test.file, test.text)
		matchPlaces(t, places(t, err), test.want)
	}
}

// TestWrongEntries checks that each kind of wrong entry is told with its place, and
// that the entries around it are counted.
func TestWrongEntries(t *testing.T) {
	const head = "id,split,image,sha256,phash,figurative,severity,related_content,modality,context\n"
	const labels = ",F1,SS1,SR1,M1,C1\n"
	hash := strings.Repeat("0a", 32)
	tests := []struct {
		row  string
		want []string
	}{
		{"abd,train,1," + hash + ",00ff00ff00ff00ff" + labels, nil},
		{"ABD,train,,,\u0020" + labels, nil},
		{"abc,train,,," + labels, []string{"a.csv:3:1 post abc, image 0, is already on line 2"}},
		{"abc,train,0,," + labels, []string{"a.csv:3:1 post abc, image 0, is already on line 2"}},
		{",train,,," + labels, []string{"a.csv:3:1 the post id is empty"}},
		{"abd/1,train,,," + labels, []string{`a.csv:3:1 "abd/1" does not name a post`}},
		{"/r/,train,,," + labels, []string{`a.csv:3:1 "/r/" does not name a post`}},
		{"t5_abd,train,,," + labels, []string{`a.csv:3:1 "t5_abd" is the id of a subreddit`}},
		{"null,train,,," + labels, []string{`a.csv:3:1 "null" looks like a missing value`}},
		{"NaN,train,,," + labels, []string{`a.csv:3:1 "NaN" looks like a missing value`}},
		{"n/a,train,,," + labels, []string{`a.csv:3:1 "n/a" stands for a missing value`}},
		{"t3_nan,train,,," + labels, nil},
		{"none,train,,," + labels, nil},
		{"1e5,train,,," + labels, nil},
		{"abd,,,," + labels, []string{"a.csv:3:5 the split is empty"}},
		{"abd,a b,,," + labels, []string{`a.csv:3:5 "a b" cannot name a split`}},
		{"abd," + strings.Repeat("x", 33) + ",,," + labels, []string{`a.csv:3:5 "xxx`}},
		{"abd,Train,,," + labels, []string{"a.csv:3:5 split \"Train\" differs from split \"train\" only in case"}},
		{"abd,train,-1,," + labels, []string{`a.csv:3:11 "-1" is not the number of an image`}},
		{"abd,train,a.jpg,," + labels, []string{`a.csv:3:11 "a.jpg" is not the number of an image`}},
		{"abd,train,1000,," + labels, []string{`a.csv:3:11 "1000" is not the number of an image`}},
		{"abd,train,,abc," + labels, []string{`a.csv:3:12 "abc" is not a sha256`}},
		{"abd,train,,,xyz" + labels, []string{`a.csv:3:13 "xyz" is not a phash`}},
		{"abd,train,,,,F1|F4,SS1,SR1,M1,C1\n", []string{`a.csv:3:14 label "F4" (None) of category figurative stands beside another`}},
		{"abd,train,,,,F1|F1,SS1,SR1,M1,C1\n", []string{`a.csv:3:14 label "F1" of category figurative stands twice`}},
		{"abd,train,,,,F1||F2,SS1,SR1,M1,C1\n", []string{"a.csv:3:14 category figurative has an empty label"}},
		{"abd,train,,,,F1,SS1|SS2,SR1,M1,C1\n", []string{"a.csv:3:17 category severity has 2 labels, and takes one"}},
		{"abd,train,,,,F1,SS7,SR1,M9,C1\n", []string{`a.csv:3:17 "SS7" is not a label of category severity`, `a.csv:3:25 "M9" is not a label of category modality`}},
		{"\"abd\",train,,,,\" f1 | irony/sarcasm\",ss1,,Complementary,\n", nil},
	}
	for _, test := range tests {
		s, err := checked(t, "a.csv", head+"abc,train,,,"+labels+test.row+"zzz,train,,,"+labels)
		t.Log(test.row)
		matchPlaces(t, places(t, err), test.want)
		want := 3
		if test.want != nil {
			want = 2
		}
		if s.Entries != want {
			t.Errorf("row %q: %d good entries, want %d", test.row, s.Entries, want)
		}
	}
}

func TestCSVLineNumbersAcrossRecords(t *testing.T) {
	text := "id,note,split\r\n" + // note runs over lines 2 to 4
		"a1,\"one\r\n\r\ntwo\",x y\r\n" +
		"a2,\"\"\"q\"\"\",x y\n" +
		"a3,\"open\"wrong,z\n" +
		"a4,,x y\n\n\n"
	rows, err := newCSVRows(strings.NewReader(text), "a.csv", ',')
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		Line, Column int
		Note         string
	}
	var got []place
	for {
		cells, err := rows.Next()
		if err == io.EOF {
			break
		}
		var p *Problem
		if errors.As(err, &p) {
			got = append(got, place{p.Line, p.Column, "problem"})
			continue
		}
		line, column := rows.at(2)
		got = append(got, place{line, column, cells[1].Text})
	}
	want := []place{{4, 6, "one\n\ntwo"}, {5, 12, `"q"`}, {6, 9, "problem"}, {7, 5, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestJSONL(t *testing.T) {
	const rest = `,"split":"train","severity":"SS1","related_content":[],"modality":"M1","context":null`
	text := strings.Join([]string{
		`{"id":"a1","figurative":["F1","F3"],"extra":{"deep":[[1]]}` + rest + `}`,
		`{"id":"a2","x":"\\\"]}","figurative":"\u00461|F\u0033"` + rest + `}`,
		`{"id":"a3","figurative":null` + rest + ` }`,
		`{"id":"a4"` + rest + `}`,
		`{"id":"a5","figurative":""` + rest + `}`,
		`{"id":12345,"figurative":[]` + rest + `}`,
	}, "\r\n")
	var got [][]int
	entries := entries(t, "a.jsonl", text)
	for _, e := range entries {
		got = append(got, e.Labels[0])
	}
	if diff := cmp.Diff([][]int{{0, 2}, {0, 2}, nil, nil, {}, {}}, got); diff != "" {
		t.Errorf("figurative labels (-want +got):\n%s", diff)
	}
	want := Entry{Key: Key{ID: "a1"}, Line: 1, Split: "train", Labels: [][]int{{0, 2}, {1}, {}, {0}, nil}}
	if diff := cmp.Diff(want, entries[0]); diff != "" {
		t.Errorf("first entry (-want +got):\n%s", diff)
	}
	if id := entries[5].ID; id != "12345" {
		t.Errorf("number as id: %q, want 12345", id)
	}
}

// TestOneHotCells reads yes and no in every spelling; a JSON true means that the label is there.
func TestOneHotCells(t *testing.T) {
	const settings = "name = \"X\"\nmanifest = \"a.jsonl\"\n[columns]\nmood = {H = \"h\", S = \"s\", N = \"n\"}\n" +
		"[[category]]\nname = \"mood\"\nkind = \"multi\"\nlabels = [{code = \"H\"}, {code = \"S\"}, {code = \"N\", exclusive = true}, {code = \"X\"}]\n"
	read := func(lines ...string) (labels [][]int, err error) {
		r, err := Open(folder(t, map[string]string{SettingsName: settings, "a.jsonl": strings.Join(lines, "\n")}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range r.Entries(t.Context()) {
			if err != nil {
				return labels, err
			}
			labels = append(labels, e.Labels[0])
		}
		return labels, nil
	}
	got, err := read(`{"id":"a1","h":true,"s":false,"n":null}`, `{"id":"a2","h":1,"s":"x","n":0}`, `{"id":"a3","h":"Yes","s":1.0,"n":"no"}`, `{"id":"a4","h":[true],"s":"TRUE","n":""}`,
		`{"id":"a5","h":"false","s":0.0}`, `{"id":"a6","h":null}`)
	if diff := cmp.Diff([][]int{{0}, {0, 1}, {0, 1}, {0, 1}, {}, nil}, got); err != nil || diff != "" {
		t.Errorf("labels, %v (-want +got):\n%s", err, diff)
	}
	_, err = read(`{"id":"a1","h":"maybe","s":2,"n":[1,0]}`, `{"id":"a2","h":true,"s":false,"n":true}`)
	matchPlaces(t, places(t, err), []string{`a.jsonl:1:16 "maybe" is neither yes nor no for label "H"`, `a.jsonl:1:28 "2" is neither yes nor no for label "S"`, "a.jsonl:1:34 a single value is wanted",
		`a.jsonl:2:35 label "N" (N) of category mood stands beside another`})
}

// TestLimits reads what is just within each limit, and refuses what is just beyond it.
func TestLimits(t *testing.T) {
	header, row := strings.TrimSpace(figsimHeader), strings.TrimSpace(testRow)
	columns := func(n int) string { return strings.Repeat(",", n-7) }
	spread := func(n int) string { // a record of n bytes on two lines
		return row + ",\"" + strings.Repeat("x\n", 40_000)[:n-len(row)-4] + "\"\n"
	}
	for name, c := range map[string]struct{ good, bad, want string }{
		"columns": {header + columns(1000) + "\n" + row + columns(1000) + "\n", header + columns(1001) + "\n", "a.csv:1:0 the header has 1001 columns"},
		"line":    {header + ",x\n" + row + "," + strings.Repeat("x", maxLine-len(row)-1) + "\n", header + ",x\n" + row + "," + strings.Repeat("x", maxLine-len(row)) + "\n", "a.csv:2:0 the line is longer"},
		"record":  {header + ",x\n" + spread(maxLine), header + ",x\n" + spread(maxLine+2), "a.csv:2:0 a quoted field that starts on this line is not closed by 64 KiB"},
		"image":   {header + ",image\n" + row + ",999\n", header + ",image\n" + row + ",1000\n", `a.csv:2:28 "1000" is not the number`},
		"split":   {header + "\n" + strings.Replace(row, "train", strings.Repeat("s", 32), 1), header + "\n" + strings.Replace(row, "train", strings.Repeat("s", 33), 1), `a.csv:2:5 "sss`},
	} {
		for _, text := range []string{c.good, c.bad} {
			_, err := checked(t, "a.csv", text)
			if text == c.good && err != nil {
				t.Errorf("%s: %.300v", name, err)
			} else if got := places(t, err); text == c.bad && (len(got) == 0 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
}

// TestMissingKeys names the keys of release.toml that no line has, unless no line can be read.
func TestMissingKeys(t *testing.T) {
	const settings = "name = \"X\"\nmanifest = \"a.jsonl\"\n[columns]\nmood = \"tone\"\n[[category]]\nname = \"mood\"\nkind = \"single\"\nlabels = [{code = \"H\"}]\n"
	for text, want := range map[string][]string{
		`{"id":"a1","mood":"H"}`: {`a.jsonl:1:0 no line has the key "tone"`},
		`{"id":"a1","tone":"H"}`: nil,
		`{"id":"a1"}` + "\n{":    {"a.jsonl:2:1 the line is not valid JSON: unexpected end of JSON input", `a.jsonl:1:0 no line has the key "tone"`},
	} {
		r, err := Open(folder(t, map[string]string{SettingsName: settings, "a.jsonl": text}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Check(t.Context())
		matchPlaces(t, places(t, err), want)
	}
}

func TestJSONLProblems(t *testing.T) {
	const good = `{"id":"a1","figurative":["F1"],"severity":"SS1","related_content":[],"modality":"M1","context":"C1"}` + "\n"
	deep := strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)
	for line, want := range map[string]string{
		`{"id":"a2","id":"a3"}`:              `a.jsonl:2:12 the key "id" stands twice`,
		`{"id":"a2"} {}`:                     "a.jsonl:2:13 the line is not valid JSON: invalid character '{' after top-level value",
		`{"id":"a2"`:                         "a.jsonl:2:10 the line is not valid JSON: unexpected end",
		`{"id":}`:                            "a.jsonl:2:7 the line is not valid JSON",
		`"a2"`:                               "a.jsonl:2:1 the line is not a JSON object",
		`{"x":` + deep + `}`:                 "a.jsonl:2:6 lists and objects are nested more than 32 deep",
		`{"id":{"a":1}}`:                     "a.jsonl:2:7 a single value is wanted",
		`{"id":["a2","a3"]}`:                 "a.jsonl:2:7 a single value is wanted",
		`{"id":"a2","figurative":[["F1"]]}`:  "a.jsonl:2:25 category figurative wants a label",
		`{"id":"a2","figurative":["F1|F3"]}`: `a.jsonl:2:25 "F1|F3" is not a label`,
		`{"id":"a2","severity":["SS1",""]}`:  `a.jsonl:2:23 category severity has an empty label`,
		`{"modality":"M1"}`:                  "a.jsonl:2:0 the post id is empty",
		`{"id":1e5}`:                         `a.jsonl:2:7 "1e5" is not a post id but a floating-point number`,
		`{"id":100000.0}`:                    `a.jsonl:2:7 "100000.0" is not a post id but a floating-point number`,
		`{"id":[1E5]}`:                       `a.jsonl:2:7 "1E5" is not a post id but a floating-point number`,
		`{"id":"NaN"}`:                       `a.jsonl:2:7 "NaN" looks like a missing value`,
		"{\"id\":\"a\xff\"}":                 "a.jsonl:2:9 byte 0xff is not UTF-8",
	} {
		s, err := checked(t, "a.jsonl", good+line+"\n"+strings.Replace(good, "a1", "b1", 1))
		if got := places(t, err); len(got) == 0 || !strings.HasPrefix(got[0], want) || s.Entries != 2 {
			t.Errorf("line %.60s: %q and %d good entries, want %q and 2", line, got, s.Entries, want)
		}
	}
}

// FuzzManifest reads anything as every text format, as a manifest and as a file of labels: no
// panic, every problem placed, every entry of the schema, and Entries and Check agree.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(figsimHeader+"abc,train,F1|F3,SS1,SR1,M1,C1\n"), byte(0))
	f.Add([]byte(strings.ReplaceAll(figsimHeader+"abc,train,F1,SS1,,M1,C1\n", ",", "\t")), byte(1))
	f.Add([]byte(`{"id":"abc","figurative":["F1"],"severity":"SS1","related_content":[],"modality":"M1","context":"C1"}`), byte(2))
	f.Add([]byte("\xef\xbb\xbfid\n\"\n\x00"), byte(0))
	f.Add([]byte("id,figurative,severity\nabc123,F1|F3,SS1\nabc124/2,,SS5\n"), byte(3))
	f.Add([]byte(`{"id": "abc123", "figurative": ["F1"], "severity": null}`), byte(5))
	f.Fuzz(func(t *testing.T, b []byte, kind byte) {
		name := []string{"a.csv", "a.tsv", "a.jsonl"}[kind%3]
		path := filepath.Join(folder(t, map[string]string{name: string(b)}), name)
		r, err := Open(path, Options{})
		if kind%6 > 2 {
			r, err = OpenTable(path, BuiltIn(), Options{})
		}
		if err != nil {
			places(t, err)
			return
		}
		s, err := r.Check(t.Context())
		places(t, err)
		n := 0
		var first error
		for e, err := range r.Entries(t.Context()) {
			if err != nil {
				first = err
				break
			}
			n++
			if id, err := ParsePostID(string(e.ID)); err != nil || id != e.ID || e.Image < 0 || e.Image > maxImage {
				t.Fatalf("entry %v", e.Key)
			}
			for c, labels := range e.Labels {
				if len(labels) > 0 && (slices.Min(labels) < 0 || slices.Max(labels) >= len(r.Schema.Categories[c].Labels)) {
					t.Fatalf("labels %v of category %d", labels, c)
				}
			}
		}
		if (err == nil) != (first == nil) || err == nil && n != s.Entries {
			t.Fatalf("Check: %d entries, %v; Entries: %d, %v", s.Entries, err, n, first)
		}
		if err != nil && places(t, err)[0] != places(t, first)[0] {
			t.Fatalf("first problem of Check %q, of Entries %q", places(t, err)[0], places(t, first)[0])
		}
	})
}

func TestLineReaderHoldsLittle(t *testing.T) {
	l := newLineReader(strings.NewReader(strings.Repeat("x", 10<<20)), "a.csv")
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "longer than 64 KiB") {
		t.Errorf("error %v, want one of the length", err)
	}
	if _, err := l.next(); err != io.EOF {
		t.Errorf("error %v, want EOF", err)
	}
	exact := bytes.Repeat([]byte("y"), maxLine)
	l = newLineReader(bytes.NewReader(append(exact, "\r\nz"...)), "a.csv")
	if got, err := l.next(); err != nil || len(got) != maxLine {
		t.Errorf("a line of the greatest length: %d bytes, %v", len(got), err)
	}
	if got, err := l.next(); err != nil || string(got) != "z" {
		t.Errorf("the line after it: %q, %v", got, err)
	}
}

func TestReadErrorStops(t *testing.T) {
	broken := errors.New("disk gone")
	rows, err := newCSVRows(io.MultiReader(strings.NewReader("id\nabc\nab"), iotest.ErrReader(broken)), "a.csv", ',')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestSubreddit reads where posts stand from the column and from permalinks, and from nothing
// that could name a person.
func TestSubreddit(t *testing.T) {
	labels := ",train,F1,SS1,SR1,M1,C1"
	for _, tt := range []struct{ name, header, row, want string }{
		{"column", ",subreddit", "abc" + labels + ",Memes_2", "memes_2"},
		{"column with r/", ",subreddit", "abc" + labels + ",/r/memes/", "memes"},
		{"profile in the column", ",subreddit", "abc" + labels + ",u_somebody", ""},
		{"no name in the column", ",subreddit", "abc" + labels + ",not a name", ""},
		{"empty column", ",subreddit", "abc" + labels + ",", ""},
		{"no column", "", "abc" + labels, ""},
		{"permalink", "", "https://www.reddit.com/r/Memes/comments/abc/a_title/" + labels, "memes"},
		{"path of a permalink", "", "/r/memes/comments/abc" + labels, "memes"},
		{"profile's permalink", "", "https://www.reddit.com/user/somebody/comments/abc/a_title/" + labels, ""},
		{"profile as a subreddit", "", "/r/u_somebody/comments/abc" + labels, ""},
		{"column beats permalink", ",subreddit", "/r/memes/comments/abc" + labels + ",other", "other"},
		{"short link", "", "https://redd.it/abc" + labels, ""},
	} {
		if got := entries(t, "a.csv", strings.TrimSuffix(figsimHeader, "\n")+tt.header+"\n"+tt.row+"\n")[0]; got.Subreddit != tt.want || got.ID != "abc" {
			t.Errorf("%s: entry %q in subreddit %q, want abc in %q", tt.name, got.ID, got.Subreddit, tt.want)
		}
	}
}

// TestSubredditAsLabel lets a release make the subreddit a category.
func TestSubredditAsLabel(t *testing.T) {
	for _, columns := range []string{"", "[columns]\nsubreddit = \"subreddit\"\n", "[columns]\nsubreddit = { memes = \"is_memes\" }\n"} {
		kind, header, row := "single", "subreddit", "memes"
		if strings.Contains(columns, "{") {
			kind, header, row = "multi", "is_memes", "1"
		}
		dir := folder(t, map[string]string{
			"release.toml": "name = \"X\"\nmanifest = \"a.csv\"\n" + columns +
				"[[category]]\nname = \"subreddit\"\nkind = \"" + kind + "\"\nlabels = [{ code = \"memes\" }]\n",
			"a.csv": "id," + header + "\nabc," + row + "\n"})
		r, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("%q: %v", columns, err)
		}
		if got := all(t, r)[0]; len(got.Labels[0]) != 1 {
			t.Errorf("%q: labels %v, want one", columns, got.Labels)
		}
	}
}
