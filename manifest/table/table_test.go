package table_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"rehydrate/internal/unpack"
	"rehydrate/manifest/table"
	"rehydrate/manifest/table/tabletest"
)

// open opens a text by the ending of its name.
func open(r io.Reader, name string, want []string, path string) (table.Source, error) {
	format, p := table.FormatOf(name)
	if p != nil {
		return nil, p
	}
	switch format {
	case table.CSV:
		return table.NewCSV(r, name, ',')
	case table.TSV:
		return table.NewCSV(r, name, '\t')
	case table.JSONL:
		return table.NewJSONL(r, name, want), nil
	}
	return table.NewJSON(r, name, want, path)
}

// lines gives the header, then each row or problem with the place where it begins.
func lines(t *testing.T, in table.Source, err error) (all []string) {
	t.Helper()
	problem := func(err error) bool {
		p, ok := table.AsProblem(err)
		if ok && (p.Line < 1 || p.Hint == "" || p.File == "") {
			t.Errorf("problem %+v lacks a file, line or hint", p)
		}
		if ok {
			all = append(all, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message))
		}
		return ok
	}
	if err != nil {
		if !problem(err) {
			t.Fatal(err)
		}
		return all
	}
	for range 100 {
		cells, err := in.Next()
		if err == io.EOF {
			return append([]string{strings.Join(in.Columns(), "|")}, all...)
		}
		if err != nil && !problem(err) {
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		line, _ := in.At(-1)
		row := fmt.Sprint(line)
		for _, c := range cells {
			row += "|" + shown(c)
		}
		all = append(all, row)
	}
	t.Fatal("the rows do not end")
	return nil
}

// shown gives a cell as text: ~ for one that is absent, null, ! for what cannot be used, {} for what is nested, []
// around a list, a trailing f for a floating-point number.
func shown(c table.Cell) string {
	switch {
	case c.Fault != "":
		return "!"
	case c.Absent:
		return "~"
	case c.Null:
		return "null"
	case c.IsList && c.Nested:
		return "[{}]"
	case c.Nested:
		return "{}"
	case c.IsList:
		return "[" + strings.Join(c.List, ",") + "]"
	case c.Float:
		return c.Text + "f"
	}
	return c.Text
}

// TestRows holds what each format gives of a file, and where it says that one is wrong.
func TestRows(t *testing.T) {
	long := strings.Repeat("x", table.MaxLine+1)
	longer := strings.Repeat("x", table.MaxRecord+1)
	wide := strings.TrimSuffix(strings.Repeat("%d,", 1001), ",")
	var numbers []any
	for i := range 1001 {
		numbers = append(numbers, i)
	}
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"a.csv", "id,n\nabc,1\n", []string{"id|n", "2|abc|1"}},
		{"a.csv", "id,n\r\nabc,1\r\n\r\n \r\nabd,2", []string{"id|n", "2|abc|1", "5|abd|2"}},
		{"a.csv", "id;n\n;\nabc;1\n ; \n;;;\n", []string{"id|n", "3|abc|1"}}, // as spreadsheets end a table
		{"a.csv", "id;n\nabc;1,5\n", []string{"id|n", "2|abc|1,5"}},
		{"a.csv", "id,n;m\nabc,1;2\n", []string{"id|n;m", "2|abc|1;2"}}, // a comma in the header decides
		{"a.tsv", "id\tn\nabc\t1,2;3\n", []string{"id|n", "2|abc|1,2;3"}},
		{"a.csv", "\ufeff\"id\",\" n \"\nabc,1\n", []string{"id|n", "2|abc|1"}},
		{"a.csv", "id,n\n\"a\"\"b\",\"1\n2\"\nabd,3\n", []string{"id|n", "2|a\"b|1\n2", "4|abd|3"}},
		{"a.csv", "id,,\nabc,1,2\n", []string{"id||", "2|abc|1|2"}}, // columns without a name may be several
		{"a.csv", "", []string{"1:0 the file is empty"}},
		{"a.csv", "id,n,id\n", []string{`1:6 two columns are named "id"`}},
		{"a.csv", fmt.Sprintf(wide, numbers...), []string{"1:0 the header has 1001 columns"}},
		{"a.csv", "id,n\nabc\nabd,1,2\nabe,3\n", []string{"id|n", "2:4 the row has 1 fields, the header has 2",
			"3:7 the row has 3 fields, the header has 2", "4|abe|3"}},
		{"a.csv", "id,n\na\"b,1\n\"abd\"x,2\nabe,3\n",
			[]string{"id|n", `2:2 a quote (") stands inside a field`, `3:5 a quoted field does not end where`, "4|abe|3"}},
		{"a.csv", "id,n\nabc,1\n\"abd,2\n", []string{"id|n", "2|abc|1", "3:0 a quoted field that starts on this line is not closed by the end of the file"}},
		{"a.tsv", "id\tn\tt\nabc\t1\t\"x\nabd\t2\ty\nabe\t3\tz\"\nabf\t4\tw\n", []string{"id|n|t", "2:7 a quoted field that starts here holds whole rows, up to line 4", "5|abf|4|w"}},
		{"a.tsv", "id\tt\tn\nabc\t\"x\t1\nabd\ty\"\t2\n", []string{"id|t|n", "2:5 a quoted field that starts here holds whole rows, up to line 3"}},
		{"a.tsv", "t\tid\n\"x\tabc12\ny\"\tabd12\n", []string{"t|id", "2:1 a quoted field that starts here holds whole rows, up to line 3"}},
		{"a.tsv", "id\tn\tt\nabc\t1\t\"b\no\tb\"\n\"a\nb\"\t1\t2\n", []string{"id|n|t", "2|abc|1|b\no\tb", "4|a\nb|1|2"}}, // tabs and lines in quotes
		{"a.csv", "id,n,t\n1j8nbp,1,\"x\n1mnkg0,2,y\n153bf7,3,z\"\n1ch3i7,4,w\n", []string{"id|n|t", "2:10 a quoted field that starts here holds whole rows, up to line 4", "5|1ch3i7|4|w"}},
		{"a.tsv", "id\tt\nabc12\t\"so\na\tb\nc\td\"\n", []string{"id|t", "2|abc12|so\na\tb\nc\td"}},
		{"a.tsv", "id\tt\nabc12\t\"so\nabc13\tb\"\n", []string{"id|t", "2:7 a quoted field that starts here holds whole rows, up to line 3"}},
		{"a.tsv", "id\tn\tt\nabc\t1\t\"x\n\nabd\t2\ty\no\tz\"\n", []string{"id|n|t", "2:7 a quoted field that starts here holds whole rows, up to line 5"}},
		{"a.csv", "id,t,n\n1j8nbp,\"x,1\n1mnkg0,y\",2\n", []string{"id|t|n", "2:8 a quoted field that starts here holds whole rows, up to line 3"}},
		{"a.csv", "id,n,t\n1j8nbp,1,\"so\nwell, you, know\"\n", []string{"id|n|t", "2|1j8nbp|1|so\nwell, you, know"}}, // commas are signs of texts
		{"a.csv", "id,n\n" + long + "\nabc,1\n", []string{"id|n", "2:0 the line is longer than 64 KiB", "3|abc|1"}},
		{"a.csv", "id,n\nab\x00c,1\nab\xe9,2\nabe,\uFFFD\n", []string{"id|n", "2:3 the line has a NUL byte", "3:3 byte 0xe9 is not UTF-8", "4|abe|\uFFFD"}},
		{"a.csv", "SQLite format 3\x00\x10\x00\r\x01\x00", []string{"1:0 it is a SQLite database"}},
		{"a.csv", "PK\x03\x04\x14\x00\x06\x00\r\x01", []string{"1:0 it is a zip, as an Excel sheet is"}},
		{"a.csv", "id,mood\r1abcde,sad\r", []string{"1:0 the lines end in CR alone, as old programs for the Mac write them"}},
		{"a.jsonl", "{\"id\":1}\r{\"id\":2}", []string{"", "1:0 the lines end in CR alone, as old programs for the Mac write them"}},
		{"a.csv", "\xff\xfei\x00d\x00", []string{"1:1 the file is in UTF-16"}},

		{"a.jsonl", `{"id":"abc","n":1}` + "\n\n" + ` {"n":2.0,"id":"abd","x":null} `, []string{"id|n|x", "1|abc|1", "3|abd|2.0f|null"}},
		{"a.jsonl", "\ufeff" + `{"a":[1,"b",true],"b":[[1]],"c":{"d":1},"e":"\u00e9","f":1e5,"g":[null],"h":false}`, []string{"a|b|c|e|f|g|h", "1|[1,b,true]|[{}]|{}|é|1e5f|[{}]|false"}},
		{"a.jsonl", `{"a":"\ud83d","b":["x","\ud83e"],"c":"\ud83d\ude00","d":"\\ud83d","e":"\ufffd"}`, []string{"a|b|c|d|e", `1|!|!|😀|\ud83d|` + "\ufffd"}},
		{"a.jsonl", `{"id":"abc"}` + "\n" + `{"n":1}`, []string{"id|n", "1|abc", "2|~|1"}},
		{"a.jsonl", "[1]\n" + `{"id":"a","id":"b"}` + "\n" + `{"id":NaN}` + "\n" + `{"id":"abc"`, []string{"id", "1:1 the line is not a JSON object", `2:11 the key "id" stands twice`,
			"3:7 the record is not valid JSON", "4:11 the record is not valid JSON"}},
		{"a.ndjson", "\xfe\xff\x00{", []string{"", "1:1 the file is in UTF-16"}},

		{"a.json", "[{\"id\":\"abc\"},\n {\"id\":\"abd\",\n\"n\":1}]", []string{"id|n", "1|abc", "2|abd|1"}},
		{"a.json", "\ufeff{\"info\": {\"year\": 1}, \"rows\": [{\"id\":\"abc\"}]}", []string{"id", "1|abc"}},
		{"a.json", "\ufeff{\"id\":\"abc\"}\n{\"id\":\"abd\"}\n", []string{"id", "1|abc", "2|abd"}}, // JSON Lines under another name
		{"a.json", "{\"a\":[{\"id\":1}],\n\"b\":[{\"id\":2}]}", []string{"id", "1|1", `2:5 two keys hold lists of records, "a" and "b"`}},
		{"a.json", "[{\"id\":\"abc\"},5,{\"id\":\"abd\"}]", []string{"id", "1|abc", "1:0 the list holds something that is not a record", "1|abd"}},
		{"a.json", "[{\"id\":\"" + longer + "\"},{\"id\":\"abd\"}]", []string{"id",
			"1:0 the record is longer than 1024 KiB", "1|abd"}},
		{"a.json", "\xff\xfe[\x00", []string{"1:1 the file is in UTF-16"}},
		{"a.json", "[{\"id\":\"abc\"}", []string{"id", "1|abc", "1:14 the file is not valid JSON: ']' is missing"}},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "in single bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			in, err := open(r, c.name, nil, "")
			got := lines(t, in, err)
			if same := len(got) == len(c.want); !same || cmp.Diff(cut(c.want, c.want), cut(got, c.want)) != "" {
				t.Errorf("%s, %.60q, %s (-want +got):\n%s", c.name, c.in, name, cmp.Diff(c.want, got))
			}
		}
	}
}

// cut cuts each line that is a problem to the length of the one that is wanted.
func cut(lines, like []string) []string {
	var all []string
	for i, line := range lines {
		if strings.Contains(like[i], ":") {
			line = line[:min(len(line), len(like[i]))]
		}
		all = append(all, line)
	}
	return all
}

// TestWanted: of records only the keys that are wanted become columns, whether they are there or not.
func TestWanted(t *testing.T) {
	in, err := open(strings.NewReader(`{"data":{"rows":[{"x":{},"n":1,"id":"abc"},{"id":"abd"}]}}`), "a.json", []string{"id", "n"}, "data.rows")
	if diff := cmp.Diff([]string{"id|n", "1|abc|1", "1|abd|~"}, lines(t, in, err)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	_, err = open(strings.NewReader(`{"data":{}}`), "a.json", nil, "data.rows")
	if p, ok := table.AsProblem(err); !ok || !strings.HasPrefix(p.Message, `the file has no key "rows"`) {
		t.Errorf("a path that leads nowhere: %v", err)
	}
}

// TestAt gives the places of cells, for problems that are found in them.
func TestAt(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     string // of the row, and of each cell, in the last row
	}{
		{"a.csv", "id,n\n\"a\nb\",1\n", "2:0 2:1 3:4"},
		{"a.csv", "\ufeffid,n\n\nabc, 1\n", "3:0 3:1 3:5"},
		{"a.jsonl", "\n" + ` {"id": "abc", "n": 1}`, "2:0 2:9 2:21"},
		{"a.json", "[\n  {\"id\": \"abc\",\n \"n\": 1}]", "2:0 2:10 3:7"},
	} {
		in, err := open(strings.NewReader(c.in), c.name, nil, "")
		if err == nil {
			_, err = in.Next()
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := -1; i < len(in.Columns()); i++ {
			line, column := in.At(i)
			got = append(got, fmt.Sprintf("%d:%d", line, column))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

// TestPacked: a file that gzip or zstd packed is read as it was, and one that is cut off says where.
func TestPacked(t *testing.T) {
	const text = "\ufeffid,n\nabc,1\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"a.csv.gz": packed.Bytes(), "a.csv.zst": e.EncodeAll([]byte(text), nil), "a.csv": []byte(text)} {
		r, err := unpack.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		in, err := open(r, name, nil, "")
		if diff := cmp.Diff([]string{"id|n", "2|abc|1"}, lines(t, in, err)); diff != "" || table.Stem("x/"+name) != "a" {
			t.Errorf("%s, stem %s (-want +got):\n%s", name, table.Stem("x/"+name), diff)
		}
	}
}

// TestBrokenDisk: an error of the reader is not a problem of a row, and ends the reading.
func TestBrokenDisk(t *testing.T) {
	broken := errors.New("disk gone")
	for name, start := range map[string]string{"a.csv": "id\nabc\n", "a.jsonl": "{\"id\":1}\n", "a.json": `[{"id":1},`} {
		in, err := open(io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken)), name, nil, "")
		for range 3 {
			if err == nil {
				_, err = in.Next()
			}
		}
		if _, isProblem := table.AsProblem(err); !errors.Is(err, broken) || isProblem {
			t.Errorf("%s: %v, want %v", name, err, broken)
		}
	}
}

// TestFormatOf tells formats by names, and says what to do with the others.
func TestFormatOf(t *testing.T) {
	for name, want := range map[string]table.Format{"a.csv": table.CSV, "A.TSV.GZ": table.TSV, "a.tab": table.TSV, "a.ndjson.zst": table.JSONL, "a.json.bz2": table.JSON, "x.y/a.pq": table.Parquet} {
		if got, p := table.FormatOf(name); p != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, p, want)
		}
	}
	for name, hint := range map[string]string{"a": "name it", "a.gz": "name it", "a.xlsx": "save the sheet as CSV", "a.tar": "unpack it", "a.csv.zip": "unpack it"} {
		if _, p := table.FormatOf(name); p == nil || p.File != name || !strings.HasPrefix(p.Hint, hint) {
			t.Errorf("%s: %v, want a hint %q", name, p, hint)
		}
	}
}

// TestParquetRows: a Parquet file's places are its rows and columns, and its errors name the row.
func TestParquetRows(t *testing.T) {
	broken := errors.New("page damaged")
	file, err := tabletest.Parquet("id,n", broken, []table.Cell{tabletest.Text("abc"), tabletest.Items("1", "2")})("a.parquet", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := table.NewParquet(file)
	cells, err := in.Next()
	if line, column := in.At(1); err != nil || line != 1 || column != 2 || shown(cells[1]) != "[1,2]" {
		t.Errorf("row %v at %d:%d, %v", cells, line, column, err)
	}
	if _, err := in.Next(); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "row 2: ") {
		t.Errorf("a damaged row: %v", err)
	}
}

// TestPlain: what a cell says as one text.
func TestPlain(t *testing.T) {
	for _, c := range []struct {
		cell table.Cell
		want string
	}{
		{tabletest.Text(" a "), "a"}, {tabletest.Items(" a "), "a"}, {tabletest.Items("a", "b"), ""}, {tabletest.Items(), ""},
		{table.Cell{Text: "a", Null: true}, ""}, {table.Cell{Text: "a", Fault: "is damaged"}, ""}, {table.Cell{Nested: true, IsList: true, List: []string{"a"}}, ""},
	} {
		if got := c.cell.Plain(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cell, got, c.want)
		}
	}
}

// TestProblems: many problems are counted, and a value in a message cannot spoil a terminal.
func TestProblems(t *testing.T) {
	var p table.Problems
	if p.Err() != nil {
		t.Error("no problem is an error")
	}
	for i := range table.MaxProblems + 3 {
		p.Add(table.Problem{File: filepath.Join("x", "a.csv"), Line: i + 1, Message: "bad"})
	}
	if len(p.List) != table.MaxProblems || p.More != 3 || p.Count() != table.MaxProblems+3 || !strings.HasSuffix(p.Err().Error(), "\nand 3 more problems") {
		t.Errorf("%d listed, %d more: %v", len(p.List), p.More, p.Err())
	}
	if got := table.Quote("a\x1b[31m\u202e"); got != `"a\x1b[31m\u202e"` {
		t.Errorf("Quote = %s", got)
	}
}
