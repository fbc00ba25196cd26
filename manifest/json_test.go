package manifest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	d, err := DecodeJSON("s.json", []byte(sampleJSON), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := jsonSample{jsonHead{1}, jsonPart{"some text", "A"}, false, time.Date(2000, 1, 2, 2, 4, 5, 0, time.UTC), []jsonPart{{ID: "a"}, {ID: "b"}}, []string{"x", "y"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(jsonSample{}), cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
	d.Add("parts[1].note", "no note", "")
	d.Add("words[1]", "a bad word", "")
	if err := d.Err(); err == nil || err.Error() != "s.json:5:26: no note\ns.json:6:18: a bad word" {
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
		{`"v": 1`, `"v": 1, "": [{}]`, `s.json:1: unknown key ""`},
		{`"v": 1`, `"v": 1, "x": {"y": [1]}`, `2:11: unknown key "x"`},
		{`"v": 1`, `// one` + "\n" + `"v": 1`, "2:3: not valid JSON"},
		{"false", "0", "2:11: on is not true or false"},
		{"false", `"false"`, "on is not true or false"},
		{"false", "null", "on is not true or false"},
		{`{"id": "some text", "note": "\u0041"}`, "[]", "3:3: part is not an object"},
		{`{"id": "some text", "note": "\u0041"}`, "null", "part is not an object"},
		{`"id": "some text"`, `"ids": ""`, "3:3: part.id is missing"},
		{`"id": "some text"`, `"id": "z", "of": 1`, `unknown key "part.of"`},
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
		{`{"id": "b"}`, `{"x": "b"}`, `unknown key "parts[1].x"`},
		{`{"id": "b"}`, "{}", "5:26: parts[1].id is missing"},
		{`["x", "y"]`, `["x", [["y"]]]`, "words[1]" + text},
		{"]\n}", "]\n", "not valid JSON: unexpected end"},
		{"]\n}", "]\n}}", "not valid JSON"},
		{"]\n}\n", "]\n}\n{}", "8:1: not valid JSON"},
		{sampleJSON, "", "1:1: not valid JSON"},
		{sampleJSON, " []", "1:1: not a JSON object"},
		{sampleJSON, "\ufeff{}", "the file starts with a byte order mark"},
		{sampleJSON, strings.Repeat(" ", maxJSON+1), "the file is longer than 65536 bytes"},
		{sampleJSON, strings.Repeat("[", 3e4) + strings.Repeat("]", 3e4), "exceeded max depth"},
	} {
		if !strings.Contains(sampleJSON, c.from) {
			t.Fatalf("the sample does not hold %q", c.from)
		}
		_, err := DecodeJSON("s.json", []byte(strings.Replace(sampleJSON, c.from, c.to, 1)), new(jsonSample))
		var problems *Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "s.json:") {
			t.Errorf("%s for %s: %v, want %q", c.to[:min(len(c.to), 60)], c.from, err, c.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x00\x1b\u202e\u200b\r") {
			t.Errorf("the error repeats what a terminal obeys: %q", err)
		}
	}
}
