package table_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest/table"
	"rehydrate/manifest/table/tabletest"
)

// TestHalves: a text with half of a character cannot be used; the halves are \ud800 to \udfff, and a pair is a
// character.
func TestHalves(t *testing.T) {
	for escaped, want := range map[string]string{
		`\ud7ff`: "\ud7ff", `\ud800`: "!", `\udbff`: "!", `\udc00`: "!", `\udfff`: "!", `\uDFFF`: "!", `\ue000`: "\ue000",
		`\ud800\udc00`: "\U00010000", `\udbff\udfff`: "\U0010ffff", `\ude00\ud83d`: "!", `\ud83d\ud83d`: "!",
		`\ud83d\ude00x`: "😀x", `\ud83d\ude00\ud83d`: "!", `\ud83d\ude00\ud83d\ude00`: "😀😀", `\ud83d\u0041`: "!",
		`\ud83d\\de00`: "!", `x\ud83d x\ude00`: "!", `\\ud83d`: `\ud83d`, `\\\ud83d`: "!", `\\\\ud83d`: `\\ud83d`,
		`\u0041\ud83d`: "!",
	} {
		if got := shown(table.JSONCell(`"` + escaped + `"`)); got != want {
			t.Errorf("%s: %s, want %s", escaped, got, want)
		}
		wanted := map[bool]string{true: "!", false: "[" + want + "]"}[want == "!"]
		if got := shown(table.JSONCell(`["` + escaped + `"]`)); got != wanted {
			t.Errorf("a list of %s: %s, want %s", escaped, got, wanted)
		}
		nested := table.JSONCell(`[{"a":"` + escaped + `"},"x"]`)
		if got := nested.Fault != ""; got != (want == "!") {
			t.Errorf("%s in an object: the fault is %q", escaped, nested.Fault)
		}
	}
}

// TestProblemText: a problem names the places that it has, and its hint on a line of its own; of several the rest is
// counted.
func TestProblemText(t *testing.T) {
	for want, p := range map[string]table.Problem{
		"a.csv:3:1: bad\n  hint: mend it": {File: "a.csv", Line: 3, Column: 1, Message: "bad", Hint: "mend it"},
		"a.csv:3: bad":                    {File: "a.csv", Line: 3, Message: "bad"},
		"a.csv: bad":                      {File: "a.csv", Message: "bad"},
		"line 3, column 1: bad":           {Line: 3, Column: 1, Message: "bad"},
		"line 1: bad":                     {Line: 1, Message: "bad"},
		"bad":                             {Message: "bad"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	bad := table.Problem{Message: "bad"}
	var one, two table.Problems
	for range table.MaxProblems - 1 {
		one.Add(bad)
	}
	if got := one.Error(); strings.Contains(got, "more") || strings.Count(got, "bad") != table.MaxProblems-1 {
		t.Errorf("a problem less than are listed: %s", got)
	}
	two.Add(bad, table.Problem{Message: "worse"})
	two.More = 2
	two.Join(one)
	if two.Count() != table.MaxProblems+3 || two.More != 3 {
		t.Errorf("joined: %d, %d of them not listed", two.Count(), two.More)
	}
	one.Join(table.Problems{List: []table.Problem{bad, bad}})
	if got := one.Error(); !strings.HasSuffix(got, "\nbad\nand 1 more problem") || one.Count() != table.MaxProblems+1 {
		t.Errorf("one more than are listed: %s", got)
	}
	if p, ok := table.AsProblem(fmt.Errorf("read: %w", two.Err())); !ok || p.Message != "bad" {
		t.Errorf("the first of several is %v", p)
	}
	if p, ok := table.AsProblem(table.One(&bad)); !ok || p.Message != "bad" {
		t.Errorf("one alone is %v", p)
	}
	if p, ok := table.AsProblem(io.EOF); ok {
		t.Errorf("another error is %v", p)
	}
	for text, want := range map[string]string{strings.Repeat("é", 60): `"` + strings.Repeat("é", 60) + `"`,
		strings.Repeat("é", 61): `"` + strings.Repeat("é", 60) + `"...`, `"`: `"\""`} {
		if got := table.Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestMapKeys: an object of records is told by its keys: ids of 4 to 13 lower-case letters and digits, or numbers from
// 0 or 1 on. Below a path they can be anything.
func TestMapKeys(t *testing.T) {
	for _, test := range []struct {
		text, path string
		want       string // the first column and row, or the problem
	}{
		{`{"1ab": {"x": 1}}`, "", "no key of the object holds a list of records"},
		{`{"1abc": {"x": 1}}`, "", "id|x 1|1abc|1"},
		{`{"1abc56789abcd": {"x": 1}}`, "", "id|x 1|1abc56789abcd|1"},
		{`{"1abc56789abcde": {"x": 1}}`, "", "no key of the object holds a list of records"},
		{`{"1ABC": {"x": 1}}`, "", "no key of the object holds a list of records"},
		{`{"t3_abcd": {"x": 1}}`, "", "id|x 1|t3_abcd|1"},
		{`{"abcd1": {"x": 1}}`, "", "no key of the object holds a list of records"},
		{`{"1abc": {"x": 1}, "no id": {"x": 2}}`, "", "no key of the object holds a list of records"},
		{`{"0": {"x": 1}, "2": {"x": 2}}`, "", "no key of the object holds a list of records"},
		{`{"1": {"x": 1}, "2": {"x": 2}}`, "", "x 1|1 1|2"},
		{`{"2": {"x": 1}, "3": {"x": 2}}`, "", "no key of the object holds a list of records"},
		{`{"all": {"any thing": {"x": 1}}}`, "all", "id|x 1|any thing|1"},
		{`{"a": [1], "b": {"c": {"any": {"x": 1}}}}`, "b.c", "id|x 1|any|1"},
		{`{"1abc": [{"x": 1}]}`, "", "x 1|1"},
	} {
		in, err := open(strings.NewReader(test.text), "a.json", nil, test.path)
		if got := strings.Join(lines(t, in, err), " "); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s, %q: %s, want %s", test.text, test.path, got, test.want)
		}
	}
	for _, text := range []string{`{"a": {"x": {"y": 1}}}`, `[1]`, `{"a": 1`, `7`, `{"a": tru`, `{`} {
		in, err := open(strings.NewReader(text), "a.json", nil, "b")
		if got := lines(t, in, err); len(got) != 1 || !strings.Contains(got[0], ":") {
			t.Errorf("%s under a key that is not there: %q", text, got)
		}
	}
}

// TestLiterals: what programs write in place of a list, at the edges of what is one.
func TestLiterals(t *testing.T) {
	const none, list, bare, object = table.NoLiteral, table.ListLiteral, table.BareList, table.ObjectLiteral
	for _, test := range []struct {
		text string
		kind table.Literal
		want string // the items with | between them
	}{
		{`["\ud800\udc00"]`, list, "\U00010000"}, {`["\udbff\udfff"]`, list, "\U0010ffff"}, {`["\ud800\ue000"]`, none, ""},
		{`["\udc00\udc00"]`, none, ""}, {`["\ud7ff\udc00"]`, none, ""}, {`["\ud800\udbff"]`, none, ""},
		{`["\ufffd"]`, list, "\ufffd"}, {`["\x41\101"]`, list, "AA"}, {`["\x4"]`, none, ""}, {`["\U0001f600"]`, list, "😀"},
		{"np.array(['a'])", list, "a"}, {"Index(['a', 'b'], dtype='object')", list, "a|b"}, {"tuple(['a'])", list, "a"},
		{"other(['a'])", none, ""}, {"[a b, c]", bare, "a b|c"}, {"[ a ,b ]", bare, "a|b"}, {"[a:b]", bare, "a:b"},
		{`[{"a": "b]"}, 1]`, object, ""}, {`[['a], 1]`, none, ""}, {`[(1, 2), 'x']`, object, ""}, {"[nan, 1]", object, ""},
		{"[NaN]", object, ""}, {"[true false]", list, "true|false"}, {"[1, x]", bare, "1|x"}, {"{1, 2}", bare, "1|2"},
		{"['a',\n'b']", list, "a|b"}, {"['a']['b']", none, ""}, {`["a" ,"b"]`, list, "a|b"}, {"[b'a']", list, "a"},
		{`{"a":{"b":1}}`, object, ""}, {`{'a' : None}`, object, ""}, {"[[1]", none, ""}, {"(a)", none, ""},
		{"{[}", none, ""},
	} {
		items, kind := table.ParseLiteral(test.text)
		if kind == object {
			items = nil
		}
		if got := strings.Join(items, "|"); kind != test.kind || got != test.want {
			t.Errorf("%s: %d %q, want %d %q", test.text, kind, got, test.kind, test.want)
		}
	}
	for name, test := range map[string]struct {
		cell table.Cell
		want string
	}{
		"a list's text":           {tabletest.Text("['a', 'b']"), "[a,b]"},
		"words in brackets":       {tabletest.Text("[a, b]"), "[a,b]"},
		"an object's text":        {tabletest.Text("{'a': 1}"), "{'a': 1}"},
		"another text":            {tabletest.Text("a"), "a"},
		"a list already":          {tabletest.Items("['a']"), "[['a']]"},
		"null with a text":        {table.Cell{Text: "['a']", Null: true}, "null"},
		"nested with a text":      {table.Cell{Text: "['a']", Nested: true}, "{}"},
		"one that cannot be used": {table.Cell{Text: "['a']", Fault: "is damaged"}, "!"},
	} {
		if got := shown(test.cell.ReadList()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestLimits: what is just as long as may be is read, and one more is a problem that costs no other row.
func TestLimits(t *testing.T) {
	keys := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"k%d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	columns := func(n int) string { return strings.TrimSuffix(strings.Repeat("%,", n), ",") }
	value := func(n int) string { return `{"id":"` + strings.Repeat("x", n-len(`{"id":""}`)) + `"}` }
	for _, test := range []struct {
		name, file, text string
		want             string // in the problem, "" for none
		rows             int
	}{
		{"a line of CSV", "a.csv", "id\n" + strings.Repeat("x", table.MaxLine) + "\r\nabc\n", "", 2},
		{"a longer one", "a.csv", "id\n" + strings.Repeat("x", table.MaxLine+1) + "\r\nabc\n", "longer than 64 KiB", 1},
		{"a line of JSON", "a.jsonl", value(table.MaxRecord) + "\n{}", "", 2},
		{"a longer one of JSON", "a.jsonl", value(table.MaxRecord+1) + "\n{}", "longer than 1024 KiB", 1},
		{"columns without names", "a.csv", strings.ReplaceAll(columns(1000), "%", "") + "\n", "", 0},
		{"one more", "a.csv", strings.ReplaceAll(columns(1001), "%", "") + "\n", "the header has 1001 columns", 0},
		{"keys", "a.jsonl", keys(1000) + "\n{}", "", 2},
		{"a key more", "a.jsonl", keys(1001) + "\n{}", "more than 1000 different keys", 0},
		{"a quote that is never closed", "a.csv", "id\n\"" + strings.Repeat("x\n", table.MaxLine) + "y\n",
			"is not closed by 64 KiB after it", -1},
	} {
		in, err := open(strings.NewReader(test.text), test.file, nil, "")
		rows, problems := 0, ""
		for range 100 {
			if err == nil {
				_, err = in.Next()
				if err == nil {
					rows++
				}
			}
			if p, ok := errors.AsType[*table.Problem](err); ok {
				problems += p.Message + "; "
				if in == nil || p.Last || strings.Contains(p.Message, "header") {
					break
				}
				err = nil
			}
			if err == io.EOF {
				break
			}
		}
		if !strings.Contains(problems, test.want) || (problems == "") != (test.want == "") ||
			test.rows >= 0 && rows != test.rows {
			t.Errorf("%s: %d rows, %q, want %d, %q", test.name, rows, problems, test.rows, test.want)
		}
	}
}

// TestHints: what is wrong with JSON says what to do about it.
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":NaN}`:       "JSON has no NaN and no Infinity: write null",
		`{"id":Infinity}`:  "JSON has no NaN and no Infinity: write null",
		`{"id":-Infinity}`: "JSON has no NaN and no Infinity: write null",
		`{"id":x}`:         table.WholeObject, `{"id":1`: table.WholeObject, `7`: table.WholeObject,
		`{"id":1,"id":2}`: "keep one of them",
	} {
		in, err := open(strings.NewReader(text), "a.jsonl", nil, "")
		if err == nil {
			_, err = in.Next()
		}
		if p, ok := table.AsProblem(err); !ok || p.Hint != want {
			t.Errorf("%s: %v, want the hint %q", text, err, want)
		}
	}
}

// TestPackedEnd: where a packed file is damaged, the problem has the line that was read last, and the file ends there.
func TestPackedEnd(t *testing.T) {
	for name, test := range map[string]struct{ start, want string }{
		"a.csv":   {"id\nabc\n", "id 2|abc 3:0 damaged"},
		"a.jsonl": {"{\"id\":1}\n", "id 1|1 2:0 damaged"},
		"a.json":  {"[{\"id\":1},\n", "id 1|1 2:0 damaged"},
	} {
		damaged := &table.Problem{File: name, Message: "damaged", Hint: "fetch it again"}
		in, err := open(io.MultiReader(strings.NewReader(test.start), iotest.ErrReader(damaged)), name, nil, "")
		var got []string
		for range 4 {
			var cells []table.Cell
			if err == nil {
				cells, err = in.Next()
			}
			p, isProblem := table.AsProblem(err)
			switch {
			case isProblem:
				got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message))
			case err == nil:
				line, _ := in.At(-1)
				got = append(got, fmt.Sprintf("%d|%s", line, shown(cells[0])))
			}
			if err != nil {
				break
			}
		}
		got = append([]string{strings.Join(in.Columns(), "|")}, got...)
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	broken := errors.New("disk gone")
	if _, err := table.NewList(iotest.ErrReader(broken), "a.txt", "id", nil); !errors.Is(err, broken) {
		t.Errorf("a list: %v", err)
	}
	if _, err := table.NewBareCSV(iotest.ErrReader(broken), "a.csv", ','); !errors.Is(err, broken) {
		t.Errorf("CSV without a header: %v", err)
	}
}

// TestSwallowedKeys: lines in quotes are rows where each has the id of a post in one column: 5 to 13 lower-case letters
// and digits with a digit among them, with or without t3_.
func TestSwallowedKeys(t *testing.T) {
	for _, test := range []struct {
		first, second string
		want          bool
	}{
		{"abc12", "abd13", true}, {"t3_abc12", "abd13", true}, {"ab12", "ab13", false}, {"t3_ab12", "t3_ab13", false},
		{"1234567890abc", "1234567890abd", true}, {"1234567890abcd", "1234567890abce", false}, {"abcde", "abcdf", false},
		{"ABC12", "ABD13", false}, {"abc12", "well,", false}, {"abc12", "no id", false},
	} {
		text := "id,n,t\n" + test.first + ",1,\"x\n" + test.second + ",2,y\"\n"
		in, err := open(strings.NewReader(text), "a.csv", nil, "")
		got := lines(t, in, err)
		if len(got) != 2 || strings.Contains(got[1], "holds whole rows, up to line 3") != test.want {
			t.Errorf("%q: %q, want a problem: %t", text, got, test.want)
		}
	}
}

// TestNames: a file's name without its folder, its ending and that of its packing.
func TestNames(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.csv": {"a.csv", "a"}, "x/a.csv.gz": {"x/a.csv", "a"}, "a.csv.ZST": {"a.csv", "a"}, "a.json.bz2": {"a.json", "a"},
		"a.b.tsv": {"a.b.tsv", "a.b"}, "a.zip": {"a.zip", "a"}, "a": {"a", "a"},
	} {
		if got := [2]string{table.UnpackedName(name), table.Stem(name)}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestListValue: the value on a line of a list is what stands before a comment, without quotes around it.
func TestListValue(t *testing.T) {
	for line, want := range map[string]string{
		`"`: `"`, `""`: "", `" a "`: "a", "a # b": "a", "a\t# b": "a", "a#b": "a#b", ` "a" # b`: "a", "#N/A": "#N/A",
		`"a`: `"a`, `a"`: `a"`, "# a": "none", "": "none", " \t": "none", " #": "none",
	} {
		got, found := table.ListValue([]byte(line))
		if !found {
			got = "none"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
