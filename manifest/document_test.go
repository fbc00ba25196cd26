package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type tomlHost struct {
	Name  string  `toml:"name"`
	Rate  float64 `toml:"rate"`
	Ports []int   `toml:"ports"`
}

type tomlDocument struct {
	Title  string `toml:"title"`
	Secure bool   `toml:"secure"`
	Reddit struct {
		Minutes float64 `toml:"minutes"`
		Retries int64   `toml:"retries"`
	} `toml:"reddit"`
	Images struct {
		Host []tomlHost `toml:"host"`
	} `toml:"images"`
	Words map[string]string `toml:"words"`
	Free  map[string]any    `toml:"free"`
	Day   any               `toml:"day"`
}

func TestDecodeTOML(t *testing.T) {
	text := "title = 'a'\nday = 2025-01-02\n[reddit]\nminutes = 1\n[[images.host]]\nname = \"b\"\n[[images.host]]\nports = [1, 2]\n[words]\n\"x.y\" = \"z\"\n[free]\na = [[1], {b = 2}]\ndeep = " + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) +
		"\n" + strings.Repeat("k", maxTOMLPath-len("free.")) + " = 1\n"
	got := tomlDocument{Secure: true}
	doc, err := DecodeTOML("a.toml", []byte(text), &got)
	if err != nil || doc.Err() != nil {
		t.Fatal(err, doc.Err())
	}
	want := tomlDocument{Title: "a", Secure: true, Words: map[string]string{"x.y": "z"}}
	want.Reddit.Minutes = 1
	want.Images.Host = []tomlHost{{Name: "b"}, {Ports: []int{1, 2}}}
	got.Free, got.Day = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	for key, place := range map[string]string{
		"reddit.minutes": "4:1", "reddit.retries": "3:2", "images.host[1].ports[1]": "8:13", "images.host[1].name": "7:3",
		"images.host[0]": "5:3",
		`words."x.y"`:    "10:1", tomlKey("words", "q.r"): "9:2", "free.a[0][0]": "12:7", "free.a[1].b": "12:12",
		"none": "1", "day": "2:1", "free.a[0]": "12:1",
	} {
		doc.problems = nil
		doc.Add(key, "x", "")
		if got := doc.Err().Error(); got != "a.toml:"+place+": x" {
			t.Errorf("%s is at %q, want %s", key, got, place)
		}
	}
}

func TestDecodeTOMLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"tittle = 'a'\nsecure = false": "a.toml:1:1: unknown key \"tittle\"\n  hint: did you mean title?",
		"Title = 'a'":                  "a.toml:1:1: unknown key \"Title\"\n  hint: did you mean title?",
		"[nowhere]\na.b = 1\n[nowhere.c]\n[[images.host]]\nimages.host = 1": "a.toml:1:2: unknown key \"nowhere\"\n  hint: the keys here are title, secure, reddit, images, words, free, day\n" +
			"a.toml:5:1: unknown key \"images\" in [images.host]\n  hint: the keys here are name, rate, ports",
		"images.host = [{name = 'a', port = 1}]": "a.toml:1:29: unknown key \"port\" in [images.host]\n  hint: did you mean ports?",
		"title = 1\nsecure = 'x'\nwords = {a = 1}": "a.toml:1:1: title is not a text\n  hint: write title = \"...\"\n" +
			"a.toml:2:1: secure is not true or false\n  hint: write secure = true\na.toml:3:10: a is not a text\n  hint: write a = \"...\"",
		"reddit = 1":                                          "a.toml:1:1: reddit is not a table\n  hint: write [reddit] on a line, and its keys below",
		"[images.host]\nname = 1":                             "a.toml:1:9: host is not a list of tables\n  hint: write host = [{...}, {...}]",
		"[[reddit]]\nminutes = 1":                             "a.toml:1:3: reddit is not a table",
		"reddit.minutes = 2025-01-02":                         "a.toml:1:8: minutes is not a number\n  hint: write minutes = 1",
		"reddit.retries = 1.5":                                "a.toml:1:8: retries is not a number",
		"title = {a = 1}\nsecure = true\nwords = {}\nday = 1": "a.toml:1:1: title is not a text",
		"title = [1]":                                         "a.toml:1:1: title is not a text",
		"images.host = [1, {}]":                               "a.toml:1:16: host[0] is not a table",
		"reddit.retries = 9999999999999999999":                "a.toml:1:18: not valid TOML: decimal number is too large",
		"title = 'a'\ntitle = 'b'":                            "a.toml:2:1: not valid TOML: ",
		"[free]\na = " + strings.Repeat("[", 10) + "1" + strings.Repeat("]",
			10): "a.toml:2:15: the file has too many keys, or a key is too long",
		"[words]\n" + strings.Repeat("k", maxTOMLPath-len("words.")+1) + " = ''": "a.toml:2:1: the file has too many keys",
		"x = [1,\n":                        "a.toml:1:8: not valid TOML: array is incomplete",
		"x = \"\xff\"":                     "a.toml:1:6: not valid TOML: ",
		"\xff\xfet\x00":                    "a.toml:1:1: the file is in UTF-16",
		"\ufefftitle = 1":                  "a.toml:1:1: title is not a text",
		strings.Repeat("#\n", maxTOML/2+1): "a.toml:1: the file is larger than 512 KiB",
	} {
		var v tomlDocument
		doc, err := DecodeTOML("a.toml", []byte(text), &v)
		if err == nil {
			err = doc.Err()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// Files of the greatest size that cost the library, or the table of keys, the most.
func TestDecodeTOMLHostile(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, maxTOML/len(s)-1) }
	keys := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxTOML-700; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"dotted":     fill("a.") + "a = 1",
		"brackets":   "x = " + fill("[")[4:],
		"headers":    keys("[h%d]\n"),
		"lists":      fill("[[a]]\nb.c.d=1\n"),
		"items":      "x = [" + fill("1,")[10:] + "]",
		"nested":     fill("x = " + strings.Repeat("{a=", 9000) + "1" + strings.Repeat("}", 9000) + "\n"),
		"long table": "[" + fill("a")[:maxTOML-10] + "]\n",
		"unknown":    keys("[[images.host]]\nk%d=1\n"),
	} {
		start := time.Now()
		var v tomlDocument
		doc, err := DecodeTOML("a.toml", []byte(text), &v)
		if err == nil {
			err = doc.Err()
		}
		if took := time.Since(start); err == nil || took > 10*time.Second {
			t.Errorf("%s: %.200v after %v", name, err, took)
		}
	}
}

type jsonHead struct {
	Version int64 `json:"v"`
}

type jsonPart struct {
	ID   string `json:"id"`
	Note string `json:"note,omitempty"`
}

type jsonSample struct {
	jsonHead
	Part  jsonPart   `json:"part"`
	On    bool       `json:"on"`
	At    time.Time  `json:"at"`
	Parts []jsonPart `json:"parts"`
	Words []string   `json:"words"`
}

const sampleJSON = `{
  "v": 1, "on": false,
  "part": {"id": "some text", "note": "\u0041"},
  "at": "2000-01-02T03:04:05+01:00",
  "parts": [{"id": "a"}, {"id": "b"}],
  "words": ["x", "y"]
}
`

func TestDecodeJSON(t *testing.T) {
	var got jsonSample
	d, err := DecodeJSON("s.json", []byte(sampleJSON+strings.Repeat(" ", maxJSON-len(sampleJSON))), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := jsonSample{jsonHead{1}, jsonPart{"some text", "A"}, false, time.Date(2000, 1, 2, 2, 4, 5, 0, time.UTC),
		[]jsonPart{{ID: "a"}, {ID: "b"}}, []string{"x", "y"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(jsonSample{}), cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
	d.Add("parts[1].note", "no note", "")
	d.Add("parts[1].id", "bad", "")
	d.Add("words[1]", "a bad word", "")
	if err := d.Err(); err == nil || err.Error() != "s.json:5:26: no note\ns.json:5:27: bad\ns.json:6:18: a bad word" {
		t.Errorf("Err = %v", err)
	}
}

func TestDecodeJSONRefuses(t *testing.T) {
	const text = " is not one line of plain text of 1 to 500 bytes"
	for _, c := range []struct{ from, to, want string }{ // to replaces from in the sample
		{`"v": 1`, `"v": 0`, "2:3: v is not a whole number of 1 or more"},
		{`"v": 1`, `"v": 1.0`, "2:3: v is not a whole number"},
		{`"v": 1`, `"v": "1"`, "2:3: v is not a whole number"},
		{`"v": 1`, `"v": 9223372036854775808`, "2:3: v is not a whole number"},
		{`"v": 1`, `"v": null`, "2:3: v is not a whole number"},
		{`"v": 1`, `"V": 1`, `2:3: unknown key "V"` + "\n  hint: did you mean v?"},
		{`"v": 1`, `"w": 1`, "s.json:1: v is missing"},
		{`"v": 1`, `"v": 1, "v": 1`, `2:11: the key "v" stands twice`},
		{`"v": 1`, `"v": 1, "\u0076": 1`, `2:11: the key "v" stands twice`},
		{`"v": 1`, `"v": 1, "": [{}]`, `2:11: unknown key ""`},
		{`"v": 1`, `"v": 1, "x": {"y": [1]}`, `2:11: unknown key "x"`},
		{`"v": 1`, `// one` + "\n" + `"v": 1`, "2:3: not valid JSON"},
		{"false", "0", "2:11: on is not true or false"},
		{"false", `"false"`, "on is not true or false"},
		{"false", "null", "on is not true or false"},
		{`{"id": "some text", "note": "\u0041"}`, "[]", "^s.json:3:3: part is not an object"},
		{`{"id": "some text", "note": "\u0041"}`, "null", "part is not an object"},
		{`"id": "some text"`, `"ids": ""`, "3:3: part.id is missing"},
		{`"id": "some text"`, `"id": "z", "of": 1`, `unknown key "of" in [part]`},
		{"some text", `\u0000`, "3:12: part.id" + text},
		{"some text", `a\nb`, "part.id" + text},
		{"some text", "a \u202eb", "part.id" + text},
		{"some text", "a\u200bb", "part.id" + text},
		{"some text", `\ud800`, "part.id" + text},
		{"some text", "\xff", "part.id" + text},
		{"some text", " a", "part.id" + text},
		{"some text", "", "part.id" + text},
		{"some text", strings.Repeat("x", 501), "part.id" + text},
		{`"some text"`, "12", "part.id" + text},
		{`"\u0041"`, "null", "part.note" + text},
		{"some text", "a\x00", "not valid JSON: invalid character '\\x00'"},
		{`"2000-01-02T03:04:05+01:00"`, `"2026-01-02"`, "4:3: at is not a time to the second"},
		{`"2000-01-02T03:04:05+01:00"`, `"2026-02-30T03:04:05Z"`, "at is not a time"},
		{`"2000-01-02T03:04:05+01:00"`, `"2026-01-02T03:04:05.5Z"`, "at is not a time"},
		{`"2000-01-02T03:04:05+01:00"`, `"1999-01-02T03:04:05Z"`, "at is not a time"},
		{`"2000-01-02T03:04:05+01:00"`, "1767312000", "at is not a time"},
		{`"2000-01-02T03:04:05+01:00"`, "null", "at is not a time"},
		{`"2000-01-02T03:04:05+01:00"`, "{}", "at is not a time"},
		{`[{"id": "a"}, {"id": "b"}]`, `{"id": "a"}`, "5:3: parts is not a list"},
		{`[{"id": "a"}, {"id": "b"}]`, "null", "parts is not a list"},
		{`{"id": "b"}`, `"b"`, "5:26: parts[1] is not an object"},
		{`{"id": "b"}`, `{"x": "b"}`, `unknown key "x" in [parts]`},
		{`{"id": "b"}`, "{}", "5:26: parts[1].id is missing"},
		{`["x", "y"]`, `["x", [["y"]]]`, "words[1]" + text},
		{"]\n}", "]\n", "not valid JSON: unexpected end"},
		{"]\n}", "]\n}}", "not valid JSON"},
		{"]\n}\n", "]\n}\n{}", "8:1: not valid JSON"},
		{sampleJSON, "", "1:1: not valid JSON"},
		{sampleJSON, " []", "1:1: not a JSON object"},
		{sampleJSON, "\ufeff{}", "s.json:1: v is missing"},
		{sampleJSON, "\xfe\xff\x00{", "s.json:1:1: the file is in UTF-16"},
		{sampleJSON, strings.Repeat(" ", maxJSON+1), "the file is larger than 64 KiB"},
		{`"v": 1`, `"v": 1, "x": ` + strings.Repeat("[", 9e3) + strings.Repeat("]", 9e3), `2:11: unknown key "x"`},
		{sampleJSON, strings.Repeat("[", 3e4) + strings.Repeat("]", 3e4), "exceeded max depth"},
	} {
		if !strings.Contains(sampleJSON, c.from) {
			t.Fatalf("the sample does not hold %q", c.from)
		}
		_, err := DecodeJSON("s.json", []byte(strings.Replace(sampleJSON, c.from, c.to, 1)), new(jsonSample))
		var problems *Problems
		if !errors.As(err, &problems) || !strings.Contains("^"+err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "s.json:") {
			t.Errorf("%s for %s: %v, want %q", c.to[:min(len(c.to), 60)], c.from, err, c.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\u202e\u200b\r") {
			t.Errorf("the error repeats what a terminal obeys: %q", err)
		}
	}
}
