package manifest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"rehydrate/internal/keysort"
	"rehydrate/internal/unpack"
)

func gz(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zst(t testing.TB, text string) string {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

// bzipped has the row of abc alone; the library packs no bzip2.
const bzipped = "QlpoOTFBWSZTWYcIKVgAAAXRgAAQAAQ8IogAIAAxADAg0aMhkhnWEVjHi7kinChIQ4QUrAA="

func bzip(t testing.TB) string {
	b, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const moods = `name = "moods"
[[category]]
name = "mood"
kind = "single"
labels = [{code = "sad"}, {code = "glad"}]
`

// listed gives a release's entries as "id split mood", or its problems.
func listed(t *testing.T, toml string, files map[string]string) ([]string, error) {
	t.Helper()
	files[SettingsName] = toml
	r, err := Open(folder(t, files), Options{})
	list, err := entries(t, r, err)
	var all []string
	for _, e := range list {
		all = append(all, fmt.Sprint(e.ID, " ", e.Split, " ", e.Labels[0]))
	}
	return all, err
}

// TestInputs reads every form of the same rows.
func TestInputs(t *testing.T) {
	const rows = "id,mood\nabc,sad\nabd,glad\n"
	const list = `[{"id": "abc", "mood": "sad"}, {"mood": "glad", "x": [{"y": "]}"}], "id": "abd"}]`
	for _, test := range []struct {
		toml  string
		files map[string]string
	}{
		{`manifest = "a.csv"`, map[string]string{"a.csv": rows}},
		{`manifest = "a.csv"`, map[string]string{"a.csv": strings.ReplaceAll(rows, ",", ";")}},
		{`manifest = "a.csv.gz"`, map[string]string{"a.csv.gz": gz(t, rows)}},
		{`manifest = "a.csv.zst"`, map[string]string{"a.csv.zst": zst(t, rows)}},
		{`manifest = "a.csv"`, map[string]string{"a.csv": zst(t, rows)}}, // the first bytes count
		{`manifest = "a.json"`, map[string]string{"a.json": list}},
		{`manifest = "a.json"`, map[string]string{"a.json": strings.ReplaceAll(list, " ", "\r\n\t ")}},
		{`manifest = "a.json.gz"`, map[string]string{"a.json.gz": gz(t,
			`{"info": {"a": [1, "[{"]}, "none": [], "annotations": `+list+`, "more": null}`)}},
		{`records = "data.rows"` + "\n" + `manifest = "a.json"`,
			map[string]string{"a.json": `{"rows": [{}], "data": {"x": {"rows": 1}, "rows": ` + list + `, "z": [{}]}}`}},
		{`manifest = "a.json"`,
			map[string]string{"a.json": "{\"id\": \"abc\", \"mood\": \"sad\"}\n{\"id\": \"abd\", \"mood\": \"glad\"}\n"}},
		{`manifest = "part-*.csv"`, map[string]string{"part-2.csv": "mood,id\nglad,abd\n",
			"part-1.csv": "id,mood\nabc,sad\n"}},
		{`manifest = "*.csv.bz2"`, map[string]string{"1.csv.bz2": bzip(t), "2.csv.bz2": "mood,id\nglad,abd\n"}},
		{`manifest = "parts"`, map[string]string{"parts/2.jsonl": `{"id": "abd", "mood": "glad"}`,
			"parts/1.csv": "id,mood\nabc,sad\n", "parts/README.md": "x"}},
	} {
		got, err := listed(t, test.toml+"\n"+moods, test.files)
		if diff := cmp.Diff([]string{"abc train [0]", "abd train [1]"}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.toml, err, diff)
		}
	}
	split := func(name string) string { return fmt.Sprintf("[[file]]\npath = %q\nsplit = %q\n", name+".csv", name) }
	got, err := listed(t, `name = "x"`+"\n"+split("test")+split("dev")+strings.TrimPrefix(moods, "name = \"moods\"\n"),
		map[string]string{"test.csv": "id,mood\nabc,sad\n", "dev.csv": "id,mood\nabd,sad\n"})
	if diff := cmp.Diff([]string{"abc test [0]", "abd dev [0]"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestHostileInputs: each file that is damaged, or made to break its reader, gives problems with the file and a line.
func TestHostileInputs(t *testing.T) {
	long := strings.Repeat("x", 100<<20)
	bomb := long[:65<<20]
	for _, test := range []struct {
		toml  string
		files map[string]string
		want  []string
	}{
		{`manifest = "a.json"`, map[string]string{"a.json": strings.Repeat("[", 10_000)},
			[]string{"a.json:1:1002 the JSON has more than 1000 brackets"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `{"a": ` + strings.Repeat(`{"a": `, 10_000)},
			[]string{"a.json:1:6007 the JSON has more than 1000 brackets"}},
		{`manifest = "a.json"`, map[string]string{"a.json": "[\n{\"id\": \"abc\", \"mood\": \"" + long +
			"\"},\n{\"id\": \"abd\", \"mood\": \"bad\"}]"}, []string{"a.json:2:0 the record is longer " +
			"than 1024 KiB", `a.json:3:23 "bad" is not a label`}},
		{`manifest = "a.jsonl"`, map[string]string{"a.jsonl": "{\"id\": \"abc\", \"mood\": \"sad\"}\n\"" +
			long[:1<<20] + "\"\n"}, []string{"a.jsonl:2:0 the line is longer than 1024 KiB"}},
		{`manifest = "a.csv"`, map[string]string{"a.csv": zst(t, "id,mood\nabc,sad\n"+bomb)},
			[]string{"a.csv:3:0 the packed file becomes more than 250 times as large"}},
		{`manifest = "a.json"`, map[string]string{"a.json": gz(t, "[\n\n{\"id\": \""+bomb)},
			[]string{"a.json:3:0 the packed file becomes more than 250 times as large"}},
		{`manifest = "a.csv"`, map[string]string{"a.csv": gz(t, "id,mood\nabc,sad\n")[:30]}, []string{"a.csv:"}},
		{`manifest = "a.csv"`, map[string]string{"a.csv": "\x28\xb5\x2f\xfdxxxx"},
			[]string{"a.csv:1:0 the packed file cannot be read"}},
		{`manifest = "*.csv"`, map[string]string{"a.csv": "id,mood\nabc,sad\n", "b.csv": "id,mood\nabd,sad\nabc,sad\n"},
			[]string{`b.csv:3:0 post abc, image 0, is already in "a.csv", line 2`}},
		{`manifest = "*.csv"`, map[string]string{"a.csv": "id,mood\nabc,sad\n", "b.csv": "id,tone\nabd,sad\n"},
			[]string{`b.csv:1:0 the file has no column "mood"`}},
		{`manifest = "a.json"`, map[string]string{"a.json": ""}, []string{"a.json:1:1 the file is empty"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `{"info": 1}`},
			[]string{"a.json:1:12 no key of the object holds a list"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `"x"`}, []string{"a.json:1:1 no list of records stands here"}},
		{`manifest = "a.json"`, map[string]string{"a.json": "\ufeff[5]"},
			[]string{"a.json:1:0 the list holds something that is not a record"}},
		{"records = \"x\"\nmanifest = \"a.json\"", map[string]string{"a.json": `{"info": []}`},
			[]string{`a.json:1:13 the file has no key "x"`}},
		{`manifest = "a.json"`, map[string]string{"a.json": `[{"id": "abc", "mood": "sad"} {"id": "abd"}]`},
			[]string{"a.json:1:31 the file is not valid JSON: ']' is missing"}},
		{`manifest = "a.json"`,
			map[string]string{"a.json": "[{\"id\": \"abc\", \"mood\": \"sad\"}, 5,\n{\"id\": \"abd\", \"mood\": nil}]"},
			[]string{"a.json:1:0 the list holds something that is not a record", "a.json:2:24 the record is not valid JSON"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `[{"id": "abc", "mood": "sad"`},
			[]string{"a.json:1:29 the file ends inside a value"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `[{"id": "abc", "mood": "sad"}][{"id": "abd", "mood": "sad"}]`},
			[]string{"a.json:1:31 something follows the records"}},
		{`manifest = "a.json"`, map[string]string{"a.json": "[{\"id\": \"abc\", \"mood\": \"sad\"}]\n[{}]"},
			[]string{"a.json:2:1 something follows the records"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `[{"id": "abc", "mood": "sad"}] cut`},
			[]string{"a.json:1:32 something follows the records"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `{"a": [{"id": "abc", "mood": "sad"}]} {"a": [{}]}`},
			[]string{"a.json:1:39 something follows the records"}},
		{`manifest = "a.json"`, map[string]string{"a.json": `{"1abcde": {"mood": "sad"}}{"1abcdf": {"mood": "sad"}}`},
			[]string{"a.json:1:28 something follows the records"}},
		{"records = \"x.a\"\nmanifest = \"a.json\"",
			map[string]string{"a.json": `{"x": {"a": [{"id": "abc", "mood": "sad"}], "b": [1]}, "c": 1}{}`},
			[]string{"a.json:1:63 something follows the records"}},
		{"records = \"x.a\"\nmanifest = \"a.json\"",
			map[string]string{"a.json": `{"x": {"a": [{"id": "abc", "mood": "sad"}], "a": [{}]}}`},
			[]string{`a.json:1:50 the key "a" stands twice`}},
		{"records = \"x.a\"\nmanifest = \"a.json\"",
			map[string]string{"a.json": `{"x": {"a": [{"id": "abc", "mood": "sad"}]}, "x": {}}`},
			[]string{`a.json:1:51 the key "x" stands twice`}},
		{"records = \"x\"\nmanifest = \"a.json\"",
			map[string]string{"a.json": `{"x": [{"id": "abc", "mood": "sad"}], "y": [`},
			[]string{"a.json:1:45 the file ends inside a value"}},
		{`manifest = "no*.csv"`, map[string]string{}, []string{`release.toml:1:1 manifest "no*.csv" cannot be opened`}},
	} {
		_, err := listed(t, test.toml+"\n"+moods, test.files)
		wantPlaces(t, test.toml+fmt.Sprintf("%.80v", test.files), err, test.want...)
	}
}

// TestColumns reads values of each type as they are kept, and refuses others.
func TestColumns(t *testing.T) {
	for _, test := range []struct{ kind, in, want string }{
		{"text", "a b", "[a b]"}, {"text", "", "[]"}, {"integer", "-7", "[-7]"}, {"integer", " 4.0 ", "[4]"},
		{"integer", "", "[]"},
		{"integer", "4.5", ""}, {"integer", "x", ""}, {"integer", "99999999999999999999", ""},
		{"number", "1e3", "[1000]"}, {"number", "0.1", "[0.1]"}, {"number", "NaN", ""}, {"number", "0x1", ""},
		{"boolean", "True", "[true]"}, {"boolean", "0", "[false]"}, {"boolean", "maybe", ""},
		{"timestamp", "1567435668.0", "[2019-09-02T14:47:48Z]"}, {"timestamp", "2019-09-02 14:47:48.25+02:00",
			"[2019-09-02T12:47:48.25Z]"}, {"timestamp", "2019-09-02", ""}, {"timestamp", "2019-09-02 14:47:48", ""},
		{"timestamp", "soon", ""}, {"timestamp", "2019-13-02", ""}, {"timestamp", "1e18", ""},
	} {
		r, err := release(t, "name = \"x\"\nmanifest = \"a.csv\"\n[[column]]\nname = \"c\"\ntype = \""+test.kind+"\"\n",
			"id,c\nabc,\""+test.in+"\"\n")
		list, err := entries(t, r, err)
		if test.want == "" {
			wantPlaces(t, test.in, err, "a.csv:2:5 ")
		} else if err != nil || fmt.Sprint(list[0].Values[0]) != test.want {
			t.Errorf("%s %q: %v, %v, want %s", test.kind, test.in, list, err, test.want)
		}
	}
	for zone, want := range map[string]string{"Europe/Berlin": "[2019-09-02T12:47:48Z]",
		"UTC": "[2019-09-02T14:47:48Z]", "Mars": ""} {
		r, err := release(t,
			"name = \"x\"\nmanifest = \"a.csv\"\n[[column]]\nname = \"c\"\ntype = \"timestamp\"\ntimezone = \""+zone+"\"\n",
			"id,c\nabc,2019-09-02 14:47:48\n")
		list, err := entries(t, r, err)
		if want == "" {
			wantPlaces(t, zone, err, `release.toml:4:1 column c has timezone "Mars"`)
		} else if err != nil || fmt.Sprint(list[0].Values[0]) != want {
			t.Errorf("%s: %v, %v, want %s", zone, list, err, want)
		}
	}
	lists := "name = \"x\"\nmanifest = \"a.jsonl\"\n[[column]]\nname = \"c\"\ntype = \"integer\"\nlist = true\n"
	r, err := release(t, lists, `{"id":"abc","c":[1,2.0]}`+"\n"+`{"id":"abd","c":[]}`+"\n"+`{"id":"abe","c":null}`+"\n"+`{"id":"abf","c":5}`)
	list, err := entries(t, r, err)
	if err != nil || fmt.Sprintf("%#v", []any{list[0].Values[0], list[1].Values[0], list[2].Values[0],
		list[3].Values[0]}) !=
		`[]interface {}{[]string{"1", "2"}, []string{}, []string(nil), []string{"5"}}` {
		t.Errorf("lists: %v, %v", list, err)
	}
	const inList = "the list of column c holds something other than values"
	for bad, want := range map[string]string{`[[1]]`: inList, `[null]`: inList, `{"a":1}`: "column c wants",
		`[1,""]`: "the list of column c has an empty item", `["x"]`: ""} {
		r, err := release(t, lists, `{"id":"abc","c":`+bad+`}`)
		_, err = entries(t, r, err)
		wantPlaces(t, bad, err, "a.jsonl:1:17 "+want)
	}
	r, err = release(t, strings.Replace(lists, "jsonl", "csv", 1), "id,c\nabc,1|2\nabd,1||2\n")
	_, err = entries(t, r, err)
	wantPlaces(t, "a gap", err, "a.csv:3:5 the list of column c has an empty item")
	for toml, want := range map[string]string{
		"[[column]]\nname = \"c\"\ntype = \"word\"\n":                                          "release.toml:4:1 column c has type",
		"[[column]]\nname = \"sha256\"\ntype = \"text\"\n":                                     `release.toml:4:1 column name "sha256" is taken`,
		"[[column]]\nname = \"c\"\ntype = \"text\"\n[[column]]\nname = \"C\"\ntype = \"text\"": `release.toml:7:1 two categories or columns are named "C"`,
		"rows = \"lots\"\n": `release.toml:3:1 rows is "lots"`,
		"rows = \"many\"\n[[column]]\nname = \"c\"\ntype = \"text\"\nlist = true\n": "release.toml:5:1 column c is a list",
	} {
		_, err := release(t, "name = \"x\"\nmanifest = \"a.csv\"\n"+toml, "id,c\nabc,1\n")
		wantPlaces(t, toml, err, want)
	}
}

// TestManyShare: rows about one image have one split and the same digests, wherever they stand.
func TestManyShare(t *testing.T) {
	a, b := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"the same",
			map[string]string{"a.csv": "abc,train," + a + ",sad\nabd,test,,sad\nabc,train," + a + ",glad\nabd,test,,sad\n"},
			nil},
		{"another split", map[string]string{"a.csv": "abc,train,,sad\nabd,test,,sad\nabc,test,,glad\n"},
			[]string{"a.csv:4:0 post abc, image 0, is in split test, on line 2 in split train"}},
		{"in another file", map[string]string{"a.csv": "abd,test,,sad\nabc,train,,sad\n", "b.csv": "abc,test,,glad\n"},
			[]string{`b.csv:2:0 post abc, image 0, is in split test, in "a.csv", line 3 in split train`}},
		{"other digests", map[string]string{"a.csv": "abc,train," + a + ",sad\nabc,train," + b + ",glad\n"},
			[]string{"a.csv:3:0 post abc, image 0, has other digests than on line 2"}},
		{"a digest once", map[string]string{"a.csv": "abc,train,,sad\nabc,train," + b + ",glad\n"},
			[]string{"a.csv:3:0 post abc, image 0, has other digests than on line 2"}},
		{"a wrong row", map[string]string{"a.csv": "abc,train,,sad\nabc,,,glad\n"},
			[]string{"a.csv:3:5 the split is empty"}},
	} {
		for name, rows := range test.files {
			test.files[name] = "id,split,sha256,mood\n" + rows
		}
		_, err := listed(t, "manifest = \"*.csv\"\nrows = \"many\"\n"+moods, test.files)
		wantPlaces(t, test.name, err, test.want...)
	}
}

// TestKeysort sorts more keys than it holds in memory, and gives each back.
func TestKeysort(t *testing.T) {
	s := new(keysort.Sorter)
	defer s.Close()
	const n = 1<<20 + 5
	for i := range uint64(n) {
		if err := s.Add(keysort.Key{Hi: i * 7919 % 1009, Lo: i, Note: ^i}); err != nil {
			t.Fatal(err)
		}
	}
	var last keysort.Key
	got := 0
	err := s.Each(func(k keysort.Key) {
		if got > 0 && last.Compare(k) >= 0 || k.Hi != k.Lo*7919%1009 || k.Note != ^k.Lo {
			t.Fatalf("%v after %v", k, last)
		}
		last, got = k, got+1
	})
	if err != nil || got != n {
		t.Errorf("%d keys of %d, %v", got, n, err)
	}
	for _, k := range []Key{{"abc", 0}, {"zzzzzzzzzzzzz", 999}, {"0", 1}, {"00", 1}, {"1y2p0ij32e8e7", 20}} {
		p := placeKey(k, 4095, 1<<28-1)
		if id, image := p.key(); id != k.ID || image != k.Image || p.file() != 4095 || p.line() != 1<<28-1 {
			t.Errorf("%v came back as %s, %d, file %d, line %d", k, id, image, p.file(), p.line())
		}
	}
}

// An error of the disk under a packed file stays one: it is not the file's fault.
func TestUnpackDisk(t *testing.T) {
	broken := fmt.Errorf("broken disk")
	r, err := unpack.NewReader(io.MultiReader(strings.NewReader(zst(t, "id\nabc\n")[:12]), iotest.ErrReader(broken)))
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if e := (*unpack.Error)(nil); err == nil || fmt.Sprintf("%T", err) == fmt.Sprintf("%T", e) {
		t.Errorf("a broken disk: %v", err)
	}
}

// FuzzInputs: whatever a file holds, it gives entries or problems with places, and what is packed gives the same.
func FuzzInputs(f *testing.F) {
	f.Add([]byte(`[{"id": "abc", "mood": "sad"}, {"id": "abd", "mood": ["glad"]}]`), byte(0))
	f.Add([]byte("{\"info\": {\"a\": [1]}, \"annotations\":\n[{\"id\": \"abc\", \"mood\": null}], \"x\": [2, {}]}"),
		byte(0))
	f.Add([]byte(`{"a": {"b": [{"id": "abc"} {]]`), byte(0))
	f.Add([]byte("id;mood\nabc;sad\n"), byte(1))
	f.Add([]byte(zst(f, "id,mood\nabc,sad\n")), byte(1))
	f.Add([]byte(gz(f, `[{"id": "abc"}]`)), byte(0))
	f.Add([]byte("\x1f\x8b\b0000000"), byte(0)) // cut off in its header
	f.Fuzz(func(t *testing.T, b []byte, kind byte) {
		name := []string{"a.json", "a.csv", "a.jsonl"}[kind%3]
		read := func(text string) string {
			got, err := listed(t, "manifest = \""+name+"\"\n"+moods, map[string]string{name: text})
			if err != nil {
				return fmt.Sprint(got, places(t, err))
			}
			return fmt.Sprint(got)
		}
		plain := read(string(b))
		if r, err := unpack.NewReader(bytes.NewReader(b)); err == nil && len(b) > 0 {
			if text, err := io.ReadAll(r); err == nil && string(text) == string(b) && read(zst(t, string(b))) != plain {
				t.Errorf("%q: packed it gives %s, plain %s", b, read(zst(t, string(b))), plain)
			}
		}
	})
}

// TestByteOrderMark: a release whose files all begin with a byte order mark is the one without them.
func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{
		"a.csv": "id,mood\nabc,sad\n", "b.csv": "\"id\";\"mood\"\nabc;sad\n", "a.tsv": "id\tmood\nabc\tsad\n",
		"a.jsonl": `{"id": "abc", "mood": "sad"}`,
		"a.json":  `[{"id": "abc", "mood": "sad"}]`,
		"b.json":  "{\"id\": \"abc\", \"mood\": \"sad\"}\n{\"id\": \"abd\", \"mood\": \"sad\"}\n",
		"c.json":  `{"rows": [{"id": "abc", "mood": "sad"}]}`, "a.csv.gz": gz(t, "\ufeffid,mood\nabc,sad\n"),
		"a.csv.zst": zst(t, "\ufeffid,mood\nabc,sad\n"),
	} {
		if name != "a.csv.gz" && name != "a.csv.zst" {
			text = "\ufeff" + text
		}
		got, err := listed(t, "\ufeffmanifest = \""+name+"\"\n"+moods, map[string]string{name: text})
		if err != nil || len(got) == 0 || got[0] != "abc train [0]" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	stones, err := ReadTombstones(strings.NewReader("\ufeffid,state,time\nabc,removed,2025-12-31T23:59:59Z\n"))
	if err != nil || len(stones) != 1 {
		t.Errorf("tombstones %v, %v", stones, err)
	}
	scheme, err := OpenScheme(file(t, "scheme.toml",
		"\ufeff[[category]]\nname = \"mood\"\nkind = \"single\"\nlabels = [{code = \"sad\"}]\n"))
	if err != nil || len(scheme.Schema.Categories) != 1 {
		t.Errorf("a scheme: %v", err)
	}
}

// TestSplitsContradict: a column of splits and the [[file]] of its rows say one split.
func TestSplitsContradict(t *testing.T) {
	for own, want := range map[string]string{
		"train": "", "Training": "",
		"test":   `a.csv:2:8: the column says split "test", and the [[file]] of release.toml split "train"`,
		"fold_1": `the column says split "fold_1"`,
	} {
		dir := folder(t,
			map[string]string{SettingsName: "name = \"x\"\n[[file]]\npath = \"a.csv\"\nsplit = \"train\"\n[[category]]\nname = \"mood\"\n" +
				"kind = \"single\"\nlabels = [{code = \"sad\", name = \"sad\"}]\n",
				"a.csv": "id,split,mood\nabc123," + own + ",sad\n"})
		r, err := Open(dir, Options{})
		list, err := entries(t, r, err)
		switch {
		case want == "" && (err != nil || len(list) != 1 || list[0].Split != "train"):
			t.Errorf("%s: %v, %v", own, list, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", own, err, want)
		}
	}
}

// TestStandIns says what a file is that stands where the data should be: the page that shows it, or the pointer that a
// clone without Git LFS leaves.
func TestStandIns(t *testing.T) {
	const (
		page    = "\n \n<!DOCTYPE html>\n<html lang=\"en\">\n<title>a.csv</title>\n</html>\n"
		pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:c41f\nsize 133063930\n"
	)
	for _, test := range []struct{ text, line, want string }{
		{page, "3", "the file is a web page, and holds no data"},
		{"\ufeff<HTML>\n", "1", "the file is a web page"},
		{pointer, "1", "the file is a pointer of Git LFS, and the data is elsewhere"},
	} {
		for _, name := range []string{"a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet", "a.csv.gz", "a.txt"} {
			path := file(t, name, test.text)
			err := unread(t, path)
			wantPlaces(t, test.text, err, name+":"+test.line+":0 "+test.want)
			if name == "a.txt" {
				_, err = OpenList(t.Context(), path, "ids", Options{})
				wantPlaces(t, test.text, err, name+":"+test.line+":0 "+test.want)
			}
		}
	}
	if _, err := listed(t, "manifest = \"a.csv\"\n"+moods, map[string]string{"a.csv": pointer}); err == nil ||
		!strings.Contains(err.Error(), "git lfs pull") {
		t.Errorf("a release whose annotations are a pointer: %v", err)
	}
}

// unread gives the error of a file that has no rows to read.
func unread(t *testing.T, path string) error {
	t.Helper()
	files, err := FindSources(path)
	if err != nil {
		return err
	}
	source, err := OpenSource(files, "", parquet("id", nil))
	if err != nil {
		return err
	}
	_, err = source.Rows()
	return err
}
