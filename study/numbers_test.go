package study

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/manifest/table/tabletest"
)

// numbersText shows columns of numbers in a line, a missing one as -.
func numbersText(n Numbers) string {
	var parts []string
	for _, c := range n.Columns {
		part := c.Name + ":"
		for i, v := range c.Values {
			shown := fmt.Sprint(v)
			if math.IsNaN(v) {
				shown = "-"
			}
			part += " " + n.Keys[i].String() + "=" + shown
		}
		parts = append(parts, part)
	}
	for _, c := range n.Others {
		parts = append(parts, fmt.Sprintf("not %s (%d)", c.Name, c.Line))
	}
	return strings.Join(parts, "; ")
}

func TestReadNumbers(t *testing.T) {
	for _, c := range []struct{ name, id, text, want string }{
		{"f.csv", "", "id,split,phash,a,b\nabc,train,12,1.5,-2e3\nABD/2,test,13, 7 ,0\n",
			"a: abc=1.5 abd/2=7; b: abc=-2000 abd/2=0"},
		{"missing.csv", "", "id,a\nabc,\nabd,NaN\nabe,n/a\nabf,NA\nabg,None\nabh,3\n",
			"a: abc=- abd=- abe=- abf=- abg=- abh=3"},
		{"forms.csv", "", "id,hex,under,mark,a\nabc,0x1p4,1_0,x,+1\nabd,1,1,,.5\n",
			"a: abc=1 abd=0.5; not hex (2); not under (2); not mark (2)"},
		{"yes.tsv", "", "post_id\ta\nabc\tTrue\nabd\tno\nabe\t\n", "a: abc=1 abd=0 abe=-"},
		{"others.csv", "", "id,text,a,late,empty,inf,big,\nabc,a caption that is long,1,1,,1,1,\nabd,,2,oops,,inf,1e301,\n",
			`a: abc=1 abd=2; not text (2); not late (3); not empty (0); not inf (3); not big (3)`},
		{"large.csv", "", "id,a,b,c,d,e\nabc,9007199254740992,1,00000000000000000001,1.5e20,1\n" +
			"abd,-9007199254740994,9007199254740993,+0123,100000000000000000000,1e309\n",
			"a: abc=9.007199254740992e+15 abd=-9.007199254740994e+15; c: abc=1 abd=123; d: abc=1.5e+20 abd=1e+20; " +
				"not b (3); not e (3)"},
		{"large.csv", "", "id,a,b\nabc,1,9\nabd,9007199254740993,-inf\n",
			`large.csv:1:0 no column of numbers was found; the columns are "id", "a", "b"; ` +
				`"a": on line 3 a number too large to compute with exactly (integers only up to 2^53); "b": a text on line 3`},
		{"large.jsonl", "", `{"id":"abc","a":9007199254740993,"b":9.007199254740993e15,"c":-1e301}`,
			`b: abc=9.007199254740992e+15; not a (1); not c (1)`},
		{"liwc.csv", "Filename", "Filename,id,WC\nabc,7,12\n", "id: abc=7; WC: abc=12"},
		{"thousands.csv", "", "id;a;b;c\nabc;902;1,5;0.131\nabd;1.131;2,25;3.193\n",
			"c: abc=0.131 abd=3.193; not a (3); not b (2)"},
		{"comma.csv", "", "id;a;b\nabc;902;1,5\nabd;1.131;2,25\n",
			"comma.csv:3:0 column \"a\" has a point that may part thousands"},
		{"means.csv", "", "id,a,b\nabc,2,\"a 1,5\"\nabd,1.333,x\n", "a: abc=2 abd=1.333; not b (2)"},
		{"keys.jsonl", "",
			`{"id":"abc","a":1}` + "\n" + `{"id":"abd","b":true,"a":null,"c":[1],"d":{}}` + "\n" + `{"id":"abe","b":"2"}`,
			`a: abc=1 abd=- abe=-; b: abc=- abd=1 abe=2; not c (2); not d (2)`},
		{"none.csv", "", "id,text\nabc,x\n", "none.csv:1:0 no column of numbers was found"},
		{"none.csv", "", "id,a,b\nabc,1,\nabd,inf,\n",
			`none.csv:1:0 no column of numbers was found; the columns are "id", "a", "b"; ` +
				`"a": a text on line 3; "b": it has no value at all`},
		{"no-id.csv", "", "a,b\n1,2\n", "no-id.csv:1:0 no column of post ids was found"},
		{"no-id.csv", "key", "id,b\nabc,2\n", `no-id.csv:1:0 it lacks the column "key"; the columns are "id", "b"`},
		{"twice.csv", "", "id,a\nabc,1\nt3_abc,2\n", "twice.csv:3:1 abc is already on line 2"},
		{"bad.csv", "", "id,a\n1.0,1\n", "bad.csv:2:1 "},
		{"short.csv", "", "id,a\nabc\n", "short.csv:2:4 the row has 1 fields"},
		{"keyless.jsonl", "", `{"id":"abc","a":1}` + "\n" + `{"a":2}`, "keyless.jsonl:2:0 the post id is empty"},
		{"two.csv", "", "id,post_id,ID,a\nabc,abc,abc,1\n", "two.csv:1:0 columns \"id\" and \"ID\" could both be id"},
	} {
		got, err := ReadNumbers(t.Context(), tabletest.File(t, c.name, c.text), c.id, manifest.Options{})
		if strings.HasPrefix(c.want, c.name) {
			tabletest.WantPlaces(t, c.text, err, c.want)
		} else if err != nil || numbersText(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, numbersText(got), c.want)
		}
	}
}

// TestReadNumbersUnread names the columns of a Parquet whose values are not read, but not what is no feature anyway.
func TestReadNumbersUnread(t *testing.T) {
	file := tabletest.File(t, "f.parquet", "any")
	o := manifest.Options{OpenParquet: tabletest.Parquet("id,a,image:struct,notes:map", nil,
		[]manifest.Cell{tabletest.Text("abc"), tabletest.Text("1.5")})}
	got, err := ReadNumbers(t.Context(), file, "", o)
	if err != nil || numbersText(got) != "a: abc=1.5; not notes (0)" ||
		OtherText(got.Others[0]) != "its Parquet type, map, is not read" {
		t.Errorf("%v, got %s, %+v", err, numbersText(got), got.Others)
	}
	_, err = ReadColumn(t.Context(), file, "notes", o)
	if p, ok := errors.AsType[*manifest.Problems](err); !ok || p.List[0].Hint !=
		`its columns are "id", "a"; not "image": its Parquet type, struct, is not read; `+
			`not "notes": its Parquet type, map, is not read` {
		t.Errorf("a column that is not read: %v", err)
	}
}

// TestYesNo: a column is yes or no where it is written in such words, and not where its numbers are 0 and 1.
func TestYesNo(t *testing.T) {
	text := "id,words,digits,both,mixed,spaced\nabc,true,1,yes,yes,No\nabd,no,0,1,,\nabe,,1,no,2, yes \n"
	got, err := ReadNumbers(t.Context(), tabletest.File(t, "f.csv", text), "", manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]bool{}
	for _, c := range got.Columns {
		is[c.Name] = c.YesNo
	}
	testkit.Same(t, "yes or no", map[string]bool{"words": true, "digits": false, "both": false, "mixed": false,
		"spaced": true}, is)
	testkit.Same(t, "where numbers and words begin", []Writing{{0, 2}, {2, 0}, {3, 2}, {4, 2}, {0, 2}}, got.Written)
}

// TestMixedColumns: numbers and words for yes or no in one column have no meaning, unless one is declared that fits.
func TestMixedColumns(t *testing.T) {
	for _, tt := range []struct {
		cells, kind string
		f           Grouping
		want        string // of the error
	}{
		{cells: "yes 5 7",
			want: "f.csv:3: column \"x\" holds numbers and words for yes or no: a number on line 3, a word on line 2"},
		{cells: "0 59 true", want: "f.csv:4: column \"x\" holds numbers and words"},
		{cells: "yes 1 0", want: "f.csv:3: column \"x\" holds numbers and words"},
		{cells: "no NA 5", want: "f.csv:4: column \"x\" holds numbers and words"},
		{cells: "yes 1 0", f: Grouping{YesNo: []string{"x"}}},
		{cells: "yes 1 0", kind: "yes_no"},
		{cells: "yes 5 0", kind: "yes_no", want: "line 3: column x holds 5 for 1rj7k7"},
		{cells: "yes 5 0", kind: "count", want: "line 2: column x holds a word for yes or no, and"},
		{cells: "yes no no", kind: "number", want: "line 2: column x holds a word for yes or no, and"},
		{cells: "yes 5 0", f: Grouping{Features: []string{"y"}}},
		{cells: "1 0 1", kind: `yes_no","x":"count`, want: "has a key twice: keep one"},
		{cells: "yes no no"},
		{cells: "1 0 1"},
	} {
		cells := strings.Fields(tt.cells)
		file := tabletest.File(t, "f.csv",
			fmt.Sprintf("id,x,y\n1wdfn2,%s,1\n1rj7k7,%s,2\n1fmx6e,%s,3\n", cells[0], cells[1], cells[2]))
		if tt.kind != "" {
			testkit.OK(t, os.WriteFile(strings.TrimSuffix(file, ".csv")+".json",
				[]byte(`{"kinds":{"x":"`+tt.kind+`"}}`), 0o600))
		}
		tt.f.Gold, tt.f.Split, tt.f.By = "../manifest/testdata/annotations.csv", All, "severity"
		_, err := TestGroups(t.Context(), file, tt.f)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, declared %q: %v, want %q", tt.cells, tt.kind, err, tt.want)
		}
	}
}

// TestReadNumbersNaN: what Python's json.dumps writes is not JSON, and the hint says what is.
func TestReadNumbersNaN(t *testing.T) {
	_, err := ReadNumbers(t.Context(), tabletest.File(t, "nan.jsonl", `{"id":"abc","a":NaN}`), "", manifest.Options{})
	var problems *manifest.Problems
	if !errors.As(err, &problems) || problems.List[0].Hint != "JSON has no NaN and no Infinity: write null" {
		t.Errorf("%v has another hint", err)
	}
}

// TestReadNumbersRows: as many rows as are allowed are read, and not one more.
func TestReadNumbersRows(t *testing.T) {
	if testing.Short() {
		t.Skip("reads two million rows")
	}
	text := []byte("id,a\n")
	for i := range manifest.MaxRows + 1 {
		if i == manifest.MaxRows {
			got, err := ReadNumbers(t.Context(), tabletest.File(t, "most.csv", string(text)), "", manifest.Options{})
			if err != nil || len(got.Keys) != manifest.MaxRows {
				t.Errorf("%d rows, want %d: %v", len(got.Keys), manifest.MaxRows, err)
			}
		}
		text = fmt.Appendf(text, "%s,1\n", strconv.FormatInt(int64(i)+36*36*36, 36))
	}
	_, err := ReadNumbers(t.Context(), tabletest.File(t, "more.csv", string(text)), "", manifest.Options{})
	tabletest.WantPlaces(t, string(text), err, "more.csv:1:0 the table has more than 1,000,000 rows")
}

// FuzzReadNumbers: a column has a number, finite or missing, for each key, and a file is wrong in words.
func FuzzReadNumbers(f *testing.F) {
	f.Add("f.csv", "id,a,b\nabc,1,x\nabd,NaN,\n")
	f.Add("f.jsonl", `{"id":"abc","a":1e5}`+"\n"+`{"id":"abd","b":[2]}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		if name != "f.csv" && name != "f.jsonl" {
			return
		}
		got, err := ReadNumbers(t.Context(), tabletest.File(t, name, text), "", manifest.Options{})
		if err != nil {
			tabletest.Places(t, err)
			return
		}
		for _, c := range got.Columns {
			if len(c.Values) != len(got.Keys) {
				t.Fatalf("column %q has %d values for %d keys", c.Name, len(c.Values), len(got.Keys))
			}
			for _, v := range c.Values {
				if math.IsInf(v, 0) || math.Abs(v) > maxNumber {
					t.Fatalf("column %q has %v", c.Name, v)
				}
			}
		}
	})
}
