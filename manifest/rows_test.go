package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest/table"
)

// TestHostileManifests holds the places of everything that can be wrong with a text.
func TestHostileManifests(t *testing.T) {
	long := strings.Repeat("x", table.MaxLine+1)
	lacks := "1:0 a file without release.toml needs FigSIM's columns, and this one lacks "
	for text, want := range map[string][]string{
		"":                         {"1:0 the file is empty"},
		"\n\r\n\n":                 {"1:0 the file is empty"},
		figsimHeader:               {"1:0 the manifest has no entries"},
		"\xff\xfei\x00d\x00":       {"1:1 the file is in UTF-16"},
		"\xfe\xff\x00i\x00d":       {"1:1 the file is in UTF-16"},
		long:                       {"1:0 the line is longer than 64 KiB"},
		"id,split,id\n":            {`1:10 two columns are named "id"`},
		"ID," + figsimHeader:       {`1:0 columns "ID" and "id" could both be id`},
		"id;split\n":               {lacks + "figurative, severity, related_content, modality, context; the columns"},
		"id\tsplit\n":              {"1:0 no column of post ids was found", lacks + "figurative, severity, "},
		"id,figurative,severity\n": {lacks + "related_content, modality, context; "},

		"\ufeff" + figsimHeader + "x y,train,F1,SS1,SR1,M1,C1\n": {`2:1 "x y" is not a post id`},
		"\ufeffid,split,id\n":                                             {`1:10 two columns are named "id"`},
		figsimHeader + "\ufeffabc,train,F1,SS1,SR1,M1,C1\n":               {`2:1 "\ufeffabc" is not a post id`},
		figsimHeader + "ab\x00c,train,F1,SS1,SR1,M1,C1\n":                 {"2:3 the line has a NUL byte"},
		figsimHeader + testRow + "abd,é\uFFFD\xe9,F1,SS1,SR1,M1,C1\n":     {"3:10 byte 0xe9 is not UTF-8"},
		figsimHeader + "\x00\n":                                           {"2:1 the line has a NUL byte"},
		figsimHeader + long + "\n" + testRow:                              {"2:0 the line is longer than 64 KiB"},
		figsimHeader + testRow + long + long:                              {"3:0 the line is longer than 64 KiB"},
		figsimHeader + "\n \r\n" + testRow + "t1_x,train,F1,,,,\n":        {`5:1 "t1_x" is`},
		figsimHeader + "abc,train,happy,SS1,SR1,M1,C1\n":                  {`2:11 "happy" is not a label of category figurative`},
		figsimHeader + "abc,train\n" + testRow:                            {"2:10 the row has 2 fields, the header has 7"},
		figsimHeader + "\"\r\n\nabc\",train,happy,,,,\nt1_x,train,,,,,\n": {`4:12 "happy" is not a label`, `5:1 "t1_x" is`},
		figsimHeader + "abc,train,\"x\ny\"\r\n" + testRow:                 {"3:3 the row has 3 fields, the header has 7"},
		figsimHeader + testRow + "abd,train,F1,SS1,SR1,M1,C1,,x\n":        {"3:28 the row has 9 fields, the header has 7"},
		figsimHeader + "ab\"c,train,F1,SS1,SR1,M1,C1\n" + testRow:         {`2:3 a quote (") stands inside`},
		figsimHeader + "\"abd\"x,train,F1,SS1,SR1,M1,C1\n" + testRow:      {"2:5 a quoted field does not end where"},
		figsimHeader + testRow + "\"abd,train\nabe,train\n": {
			"3:0 a quoted field that starts on this line is not closed by the end of the file"},
		figsimHeader + "\"" + strings.Repeat(long[:1000]+"\n", 66): {
			"2:0 a quoted field that starts on this line is not closed by 64 KiB"},
		figsimHeader + testRow + manySplits(): {`66:5 split "s64" is the 65th`},
	} {
		for i := range want {
			want[i] = "a.csv:" + want[i]
		}
		_, err := checked(t, "a.csv", text)
		wantPlaces(t, text, err, want...)
	}
	_, err := checked(t, "a.jsonl", "[1]\n")
	wantPlaces(t, "[1]", err, "a.jsonl:1:1 the line is not a JSON object")
}

// manySplits are 64 rows of further splits.
func manySplits() string {
	var b strings.Builder
	for i := range MaxSplits {
		fmt.Fprintf(&b, "a%d,s%d,F1,SS1,SR1,M1,C1\n", i, i+1)
	}
	return b.String()
}

// TestWrongEntries checks that each kind of wrong entry is reported with its place, and
// that the entries around it are counted.
func TestWrongEntries(t *testing.T) {
	const head = "id,split,image,sha256,phash,figurative,severity,related_content,modality,context\n"
	const labels = ",F1,SS1,SR1,M1,C1\n"
	hash := strings.Repeat("0a", 32)
	for row, want := range map[string][]string{
		"abd,train,1," + hash + ",00ff00ff00ff00ff": nil,
		"ABD,train,,,\u0020":                        nil,
		"t3_nan,train,,,":                           nil,
		"t3_none,train,,,":                          nil,
		"t3_None,train,,,":                          {`1 "t3_None" looks like a missing value`},
		"1e5,train,,,":                              nil,
		"abd,train,999,,":                           nil,
		"abc,train,,,":                              {"0 post abc, image 0, is already on line 2"},
		"abc,train,0,,":                             {"0 post abc, image 0, is already on line 2"},
		",train,,,":                                 {"1 the post id is empty"},
		"abd/1,train,,,":                            {`1 "abd/1" does not name a post`},
		"/r/,train,,,":                              {`1 "/r/" does not name a post`},
		"t5_abd,train,,,":                           {`1 "t5_abd" is the id of a subreddit`},
		"null,train,,,":                             {`1 "null" looks like a missing value`},
		"NaN,train,,,":                              {`1 "NaN" looks like a missing value`},
		"n/a,train,,,":                              {`1 "n/a" looks like a missing value`},
		"NA,train,,,":                               {`1 "NA" looks like a missing value`},
		"NaT,train,,,":                              {`1 "NaT" looks like a missing value`},
		"None,train,,,":                             {`1 "None" looks like a missing value`},
		"https://redd.it/None,train,,,":             {`1 "https://redd.it/None" has a missing value in the place of the id`},
		"/r/x/comments/null,train,,,":               {`1 "/r/x/comments/null" has a missing value`},
		"/comments/NA/,train,,,":                    {`1 "/comments/NA/" has a missing value`},
		"/comments/abd/nan/,train,,,":               nil,
		"abd,,,,":                                   {"5 the split is empty"},
		"abd,NA,,,":                                 {`5 the split "NA" looks like a missing value`},
		"abd,nan,,,":                                {`5 the split "nan" looks like a missing value`},
		"abd,None,,,":                               {`5 the split "None" looks like a missing value`},
		"abd,a b,,,":                                {`5 "a b" cannot name a split`},
		"abd," + strings.Repeat("x", 32) + ",,,":    nil,
		"abd," + strings.Repeat("x", 33) + ",,,":    {`5 "xxx`},
		"abd,Train,,,":                              {"5 split \"Train\" differs from split \"train\" only in case"},
		"abd,train,-1,,":                            {`11 "-1" is not the number of an image`},
		"abd,train,a.jpg,,":                         {`11 "a.jpg" is not the number of an image`},
		"abd,train,1000,,":                          {`11 "1000" is not the number of an image`},
		"abd,train,,abc,":                           {`12 "abc" is not a sha256`},
		"abd,train,,,xyz":                           {`13 "xyz" is not a phash`},
		"abd,train,,,0123456789abcdeg":              {`13 "0123456789abcdeg" is not a phash`},

		"abd,train,,,,F1|F4,SS1,SR1,M1,C1\n":    {`14 label "F4" (None) of category figurative stands beside another`},
		"abd,train,,,,F1;F1,SS1,SR1,M1,C1\n":    {`14 label "F1" of category figurative stands twice`},
		"abd,train,,,,F1||F2,SS1,SR1,M1,C1\n":   {"14 category figurative has an empty label"},
		"abd,train,,,,F1|F2;F3,SS1,SR1,M1,C1\n": {`14 "F2;F3" is not a label`},
		// a cell has one separator
		"abd,train,,,,F1,SS1|SS2,SR1,M1,C1\n": {"17 category severity has 2 labels, and takes one"},
		"abd,train,,,,F1,SS1|x,SR1,M1,C1\n":   {`17 "SS1|x" is not a label`},
		"abd,train,,,,F1,SS7,SR1,M9,C1\n": {`17 "SS7" is not a label of category severity`,
			`25 "M9" is not a label of category modality`},
		"\"abd\",train,,,,\" f1 | irony/sarcasm\",ss1,,Complementary,\n": nil,
	} {
		text := row
		if !strings.HasSuffix(row, "\n") {
			text += labels
		}
		s, err := checked(t, "a.csv", head+"abc,train,,,"+labels+text+"zzz,train,,,"+labels)
		good := 3
		for i := range want {
			want[i], good = "a.csv:3:"+want[i], 2
		}
		wantPlaces(t, row, err, want...)
		if s.Entries != good {
			t.Errorf("row %q: %d good entries, want %d", row, s.Entries, good)
		}
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
	entries := bare(t, "a.jsonl", text)
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
		r, err := release(t, settings, strings.Join(lines, "\n"))
		list, err := entries(t, r, err)
		for _, e := range list {
			labels = append(labels, e.Labels[0])
		}
		return labels, err
	}
	got, err := read(`{"id":"a1","h":true,"s":false,"n":null}`, `{"id":"a2","h":1,"s":"x","n":0}`,
		`{"id":"a3","h":"Yes","s":1.0,"n":"no"}`,
		`{"id":"a4","h":[true],"s":"TRUE","n":""}`, `{"id":"a5","h":"false","s":0.0}`, `{"id":"a6","h":null}`)
	if diff := cmp.Diff([][]int{{0}, {0, 1}, {0, 1}, {0, 1}, {}, nil}, got); err != nil || diff != "" {
		t.Errorf("labels, %v (-want +got):\n%s", err, diff)
	}
	_, err = read(`{"id":"a1","h":"maybe","s":2,"n":[1,0]}`, `{"id":"a2","h":true,"s":false,"n":true}`)
	wantPlaces(t, "", err, `a.jsonl:1:16 "maybe" is neither yes nor no for label "H"`,
		`a.jsonl:1:28 "2" is neither yes nor no for label "S"`,
		"a.jsonl:1:34 a single value is wanted", `a.jsonl:2:35 label "N" (N) of category mood stands beside another`)
}

// TestLimits reads what is just within each limit, and refuses what is just beyond it.
func TestLimits(t *testing.T) {
	header, row := strings.TrimSpace(figsimHeader), strings.TrimSpace(testRow)
	for want, text := range map[string]func(extra int) string{
		"a.csv:1:0 the header has 1001 columns": func(extra int) string {
			commas := strings.Repeat(",", 1000-7+extra)
			return header + commas + "\n" + row + commas + "\n"
		},
		"a.csv:2:0 the line is longer": func(extra int) string {
			return header + ",x\n" + row + "," + strings.Repeat("x", table.MaxLine-len(row)-1+extra) + "\n"
		},
		"a.csv:2:0 a quoted field that starts on this line is not closed by 64 KiB": func(extra int) string {
			return header + ",x\n" + row + ",\"" + strings.Repeat("x\n",
				table.MaxLine/2)[:table.MaxLine-len(row)-4+2*extra] + "\"\n"
		},
	} {
		if _, err := checked(t, "a.csv", text(0)); err != nil {
			t.Errorf("%s: %.300v", want, err)
		}
		_, err := checked(t, "a.csv", text(1))
		wantPlaces(t, want, err, want)
	}
	var keys strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&keys, `"k%d":1,`, i)
	}
	rows := table.NewJSONL(strings.NewReader("{"+keys.String()+`"k0":1}`+"\n{"+keys.String()+"\"id\":1}\n{"+keys.String()[:6]+"}"), "", nil)
	for _, want := range []string{`line 1, column 8892: the key "k0" stands twice`,
		"line 2, column 8897: the records have more than 1000 different keys",
		"line 2, column 8897: the records have more than 1000 different keys"} {
		if _, err := rows.Next(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestKeysOfAll: more keys than a table has columns are an error of every reader, whichever records have them: what is
// told by a key behind the others would not be seen.
func TestKeysOfAll(t *testing.T) {
	var lines []string
	for i := range 600 {
		lines = append(lines, fmt.Sprintf(`{"id":"g%05x","c%d":1,"d%d":1}`, i, i, i))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a.jsonl": strings.Join(lines, "\n"),
		"a.json": "[" + strings.Join(lines, ",") + "]"} {
		path := filepath.Join(dir, name)
		testkit.OK(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		want := "a.jsonl:500:32 the records have more than 1000 different keys"
		if name == "a.json" {
			want = "a.json:1:16779 the records have more than 1000 different keys"
		}
		source, err := OpenSource([]SourceFile{{Path: path, Format: Format(name[2:])}}, "", Options{})
		testkit.OK(t, err)
		rows, err := source.Rows()
		testkit.OK(t, err)
		for err == nil {
			_, err = rows.Next()
		}
		rows.Close()
		wantPlaces(t, "rows", err, want)
		if _, isOfRow := table.AsProblem(err); isOfRow {
			t.Errorf("%s: %v can be passed over", name, err)
		}
		_, err = OpenTable(path, WithLabels(Schema{Categories: []Category{{Name: "c1", Kind: Multi}}}),
			Options{Unanswered: func() {}})
		wantPlaces(t, "a table of answers", err, want)
		keyed, err := OpenKeyed(path, "", Options{})
		if err == nil {
			err = keyed.Each(t.Context(), func(Key, []Cell) bool { return true })
			keyed.Close()
		}
		wantPlaces(t, "a table of numbers", err, want)
	}
}

// TestMissingKeys names the keys of release.toml that no line has, unless no line can be read.
func TestMissingKeys(t *testing.T) {
	const settings = "name = \"X\"\nmanifest = \"a.jsonl\"\n[columns]\nmood = \"tone\"\n" +
		"[[category]]\nname = \"mood\"\nkind = \"single\"\nlabels = [{code = \"H\"}]\n"
	for text, want := range map[string][]string{
		`{"id":"a1","mood":"H"}`: {`a.jsonl:1:0 no record has the key "tone"`},
		`{"id":"a1","tone":"H"}`: nil,
		`{"id":"a1"}` + "\n{": {"a.jsonl:2:1 the record is not valid JSON: unexpected end",
			`a.jsonl:1:0 no record has the key "tone"`},
	} {
		r, err := release(t, settings, text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Check(t.Context())
		wantPlaces(t, text, err, want...)
	}
}

func TestJSONLProblems(t *testing.T) {
	const good = `{"id":"a1","figurative":["F1"],"severity":"SS1","related_content":[],"modality":"M1","context":"C1"}` + "\n"
	for line, want := range map[string]string{
		`{"id":"a2","id":"a3"}`:              `12 the key "id" stands twice`,
		`{"id":"a2"} {}`:                     "13 the record is not valid JSON: invalid character '{' after top-level value",
		`{"id":"a2"`:                         "10 the record is not valid JSON: unexpected end",
		`{"id":}`:                            "7 the record is not valid JSON",
		`"a2"`:                               "1 the line is not a JSON object",
		`{"id":{"a":1}}`:                     "7 a single value is wanted",
		`{"id":["a2","a3"]}`:                 "7 a single value is wanted",
		`{"id":"a2","figurative":[["F1"]]}`:  "25 the list of category figurative holds something other than labels",
		`{"id":"a2","figurative":["F1",{}]}`: "25 the list of category figurative holds something other than labels",
		`{"id":"a2","figurative":[null]}`:    "25 the list of category figurative holds something other than labels",
		`{"id":"a2","figurative":{"F1":1}}`:  "25 category figurative wants a label or a list",
		`{"id":"a2","figurative":["F1|F3"]}`: `25 "F1|F3" is not a label`,
		`{"id":"a2","severity":["SS1",""]}`:  `23 category severity has an empty label`,
		`{"modality":"M1"}`:                  "0 the post id is empty",
		`{"id":1e5}`:                         `7 "1e5" is not a post id but a floating-point number`,
		`{"id":100000.0}`:                    `7 "100000.0" is not a post id but a floating-point number`,
		`{"id":[1E5]}`:                       `7 "1E5" is not a post id but a floating-point number`,
		`{"id":"NaN"}`:                       `7 "NaN" looks like a missing value`,
		"{\"id\":\"a\xff\"}":                 "9 byte 0xff is not UTF-8",
	} {
		s, err := checked(t, "a.jsonl", good+line+"\n"+strings.Replace(good, "a1", "b1", 1))
		if got := places(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "a.jsonl:2:"+want) || s.Entries != 2 {
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
		path := file(t, []string{"a.csv", "a.tsv", "a.jsonl"}[kind%3], string(b))
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

func TestReadErrorStops(t *testing.T) {
	broken := errors.New("disk gone")
	rows, err := table.NewCSV(io.MultiReader(strings.NewReader("id\nabc\n"), iotest.ErrReader(broken)), "a.csv", ',')
	if err == nil {
		_, err = rows.Next()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 3") {
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
		{"missing value", ",subreddit", "abc" + labels + ",NA", ""},
		{"missing value in a permalink", "", "/r/None/comments/abc" + labels, ""},
		{"column without a name", ",", "abc" + labels + ",x", ""},
		{"no column", "", "abc" + labels, ""},
		{"permalink", "", "https://www.reddit.com/r/Memes/comments/abc/a_title/" + labels, "memes"},
		{"path of a permalink", "", "/r/memes/comments/abc" + labels, "memes"},
		{"profile's permalink", "", "https://www.reddit.com/user/somebody/comments/abc/a_title/" + labels, ""},
		{"profile as a subreddit", "", "/r/u_somebody/comments/abc" + labels, ""},
		{"column beats permalink", ",subreddit", "/r/memes/comments/abc" + labels + ",other", "other"},
		{"short link", "", "https://redd.it/abc" + labels, ""},
	} {
		if got := bare(t, "a.csv", strings.TrimSuffix(figsimHeader,
			"\n")+tt.header+"\n"+tt.row+"\n")[0]; got.Subreddit != tt.want || got.ID != "abc" {
			t.Errorf("%s: entry %q in subreddit %q, want abc in %q", tt.name, got.ID, got.Subreddit, tt.want)
		}
	}
}

// TestSubredditAsLabel lets a release make the subreddit a category.
func TestSubredditAsLabel(t *testing.T) {
	for _, columns := range []string{"", "[columns]\nsubreddit = \"subreddit\"\n",
		"[columns]\nsubreddit = { memes = \"set\" }\n"} {
		kind, header, row := "single", "subreddit", "memes"
		if strings.Contains(columns, "{") {
			kind, header, row = "multi", "set", "1"
		}
		r, err := release(t, "name = \"X\"\nmanifest = \"a.csv\"\n"+columns+
			"[[category]]\nname = \"subreddit\"\nkind = \""+kind+"\"\nlabels = [{ code = \"memes\" }]\n",
			"id,"+header+"\nabc,"+row+"\n")
		list, err := entries(t, r, err)
		if err != nil {
			t.Fatalf("%q: %v", columns, err)
		}
		if got := list[0]; len(got.Labels[0]) != 1 || got.Split != DefaultSplit {
			t.Errorf("%q: split %s, labels %v, want one", columns, got.Split, got.Labels)
		}
		if table, err := OpenTable(r.ManifestPath, r, Options{}); err != nil || len(table.Schema.Categories) != 1 {
			t.Errorf("%q: opened as a table: %v", columns, err)
		}
	}
}

// TestManyRowsOnce says once that several rows are about one image, with the first and how many more.
func TestManyRowsOnce(t *testing.T) {
	row := func(id string) string { return strings.Replace(testRow, "abc,", id+",", 1) }
	for _, test := range []struct{ ids, want string }{
		{"abc abd abc", "a.csv:4:0 post abc, image 0, is already on line 2"},
		{"zzz aaa aaa zzz", "a.csv:4:0 post aaa, image 0, is already on line 3, and 1 more row is about an image " +
			"that stood before"},
		{"zzz aaa zzz aaa zzz", "a.csv:4:0 post zzz, image 0, is already on line 2, and 2 more rows are about an " +
			"image that stood before"},
	} {
		text := figsimHeader
		for _, id := range strings.Fields(test.ids) {
			text += row(id)
		}
		r, err := Open(file(t, "a.csv", text), Options{})
		if err == nil {
			_, err = r.Check(t.Context())
		}
		got := places(t, err)
		if len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %q, want %q", test.ids, got, test.want)
		}
	}
}
