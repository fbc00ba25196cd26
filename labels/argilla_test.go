package labels

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
)

// The five forms of an export, each with the same answers of two users; the users' ids are
// made up, and must not come out again.
const (
	userOne = "11111111-aaaa-4aaa-8aaa-canary000001"
	userTwo = "22222222-bbbb-4bbb-8bbb-canary000002"
)

var exports = map[string]string{
	"to_json of Argilla 2": `[{"id": "abc123", "fields": {"image": "data:"}, "metadata": {}, "suggestions": {"severity": {"value": "SS5", "score": null, "agent": null}},
	  "responses": {"severity": [{"value": "Suicide ideation", "user_id": "` + userOne + `"}, {"value": "SS3", "user_id": "` + userTwo + `"}],
	    "figurative": [{"value": ["F1", "F3"], "user_id": "` + userOne + `"}, {"value": [], "user_id": "` + userTwo + `"}],
	    "comment": [{"value": "hm", "user_id": "` + userOne + `"}]}, "vectors": {}, "_server_id": "9e8d"}]`,
	"one record a line": `
	{"id": "5d1f0c2e-8a55-4f3c-9f3e-2f60b2a3c111", "metadata": {"post_id": "t3_abc123"}, "responses": {"severity": [{"value": "SS2", "user_id": "` + userOne + `"}], "comment": []}}` +
		"\n" + `{"id": "abc124", "responses": {}}` + "\n" +
		`{"id": "abc125", "responses": {"severity": [{"value": null, "user_id": "` + userTwo + `"}]}}` + "\n",
	"flat": `[{"id": "abc123", "severity.responses": ["SS2", "SS3"], "severity.responses.users": ["` + userOne + `", "` + userTwo + `"], "severity.responses.status": ["submitted", "submitted"],
	  "figurative.responses": [["F1", "F3"], []], "figurative.responses.users": ["` + userOne + `", "` + userTwo + `"], "figurative.responses.status": ["submitted", "submitted"],
	  "comment.responses": ["hm"], "severity.suggestion": "SS5"}]`,
	"one response a user": `[{"external_id": "abc123", "fields": {}, "responses": [
	  {"user_id": "` + userOne + `", "status": "submitted", "values": {"severity": {"value": "SS2"}, "figurative": {"value": ["F1", "F3"]}, "comment": {"value": "hm"}}},
	  {"user_id": "` + userTwo + `", "status": "submitted", "values": {"severity": {"value": "SS3"}, "figurative": {"value": []}}},
	  {"user_id": "` + userTwo + `", "status": "draft", "values": {"severity": {"value": "SS5"}}}]}]`,
	"one list a question": `{"external_id": "abc123", "severity": {"user_id": ["` + userOne + `", "` + userTwo + `"], "value": ["SS2", "SS3"], "status": ["submitted", "submitted"]},
	  "figurative": [{"user_id": "` + userOne + `", "value": ["F1", "F3"], "status": "submitted"}, {"user_id": "` + userTwo + `", "value": [], "status": "submitted"}], "figurative-suggestion": null}`,
}

func TestReadArgilla(t *testing.T) {
	post := manifest.Key{ID: "abc123"}
	for name, text := range exports {
		got, err := ReadArgilla(strings.NewReader(text), "e.json", manifest.BuiltIn())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		one, two := [][]int{{0, 2}, {2}, nil, nil, nil}, [][]int{{}, {3}, nil, nil, nil}
		want := []Annotator{{Labels: map[manifest.Key][][]int{post: one}}, {Labels: map[manifest.Key][][]int{post: two}}}
		if name == "one record a line" {
			want = []Annotator{{Labels: map[manifest.Key][][]int{post: {nil, {2}, nil, nil, nil}}}}
		}
		if diff := cmp.Diff(want, got.Annotators); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		ignored := map[bool][]string{true: {"comment"}}[!strings.HasPrefix(name, "one record") && !strings.HasPrefix(name, "one list")]
		if diff := cmp.Diff(ignored, got.Ignored); diff != "" {
			t.Errorf("%s: ignored (-want +got)\n%s", name, diff)
		}
		if leftOut := number(name == "one response a user"); got.LeftOut != leftOut {
			t.Errorf("%s: %d answers left out, want %d", name, got.LeftOut, leftOut)
		}
	}
}

func TestReadArgillaProblems(t *testing.T) {
	answer := func(value string) string {
		return `{"value": ` + value + `, "user_id": "` + userOne + `"}`
	}
	for text, want := range map[string]string{
		"":                 "e.json:1:1: the file is no Argilla export",
		"id,severity\n":    "e.json:1:1: the file is no Argilla export",
		"[1]":              "e.json:1:2: a record is no JSON object",
		"[null]":           "e.json:1:2: a record is no JSON object",
		"\n\n[{}, {]":      "e.json:3:5: record 2, which follows here, is not valid JSON",
		`[{"id": "abc123"`: "the JSON ends in the middle",
		"[{}":              "the JSON ends in the middle",
		"[]":               "none of the 0 records has a submitted response",
		"[]\n[{}]":         "e.json:2:1: something follows the list of records", // two exports in one file
		"{}\n}\n{}":        "e.json:2:1: record 2, which follows here, is not valid JSON",
		"{}\n]\n{}":        "e.json:2:1: record 2, which follows here, is not valid JSON",
		"\n" + `{"id": "abc123", "responses": {}}` + "\n\n" + ` {"id": "abc124", "responses": {"severity": [` + answer(`"SS9"`) + `]}}`:                       `e.json:4:2: record 2: "SS9" is not a label of category severity`,
		`[{"id": "abc123", "responses": {"severity": [` + answer(`{"rank": 1}`) + `]}}]`:                                                                      "record 1: an answer for category severity is neither",
		`[{"id": "abc123", "responses": {"severity": [` + answer(`["SS1", "SS2"]`) + `]}}]`:                                                                   "category severity has 2 labels, and takes one",
		`[{"id": "abc123", "responses": {"figurative": [` + answer(`["F4", "F1"]`) + `]}}]`:                                                                   `label "F4" (None) of category figurative stands beside another`,
		`[{"id": "abc123", "responses": {"severity": [` + answer(`"SS1"`) + `,` + answer(`"SS1"`) + `]}}]`:                                                    "one user answered for category severity twice",
		`[{"id": "9e8d-77-uuid", "responses": {"severity": [` + answer(`"SS1"`) + `]}}]`:                                                                      "record 1: it has no post id",
		`[{"id": "abc123", "responses": {"severity": [` + answer(`"SS1"`) + `]}}, {"id": "t3_abc123", "responses": {"severity": [` + answer(`"SS1"`) + `]}}]`: "record 2: post abc123 has a record already",
		`[{"id": "abc123", "responses": "none"}]`:                                                                                                             "the responses are of no form that is known",
		`[{"id": "abc123", "responses": {"severity": "SS1"}}]`:                                                                                                "the responses are of no form that is known",
		`[{"id": "abc123", "responses": {"comment": [` + answer(`"hm"`) + `]}}]`:                                                                              "none of the 1 records has a submitted response",
		`[{"id": "abc123", "responses": [{"user_id": 1, "values": {"severity": "SS1"}}]}]`:                                                                    "the responses are of no form that is known",
	} {
		_, err := ReadArgilla(strings.NewReader(text), "e.json", manifest.BuiltIn())
		var problems *manifest.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n = %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s\n = %v, which names a user", text, err)
		}
	}
}

// TestReadArgillaLarge: a file beyond the limit is called too large wherever it was cut, and one of
// nothing but line breaks takes no more memory than the limit of lines.
func TestReadArgillaLarge(t *testing.T) {
	for _, text := range []string{exports["to_json of Argilla 2"], exports["one record a line"], "{}" + strings.Repeat(" ", 200)} {
		if _, err := readArgilla(strings.NewReader(text), "e.json", manifest.BuiltIn(), 100); err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%.20s... = %v", text, err)
		}
	}
	c := &lineCounter{in: strings.NewReader(strings.Repeat("\n", maxLines+10))}
	if n, err := io.Copy(io.Discard, c); err != nil || n != maxLines+10 {
		t.Fatal(n, err)
	}
	if len(c.starts) != maxLines {
		t.Errorf("%d lines are remembered", len(c.starts))
	}
	if line, column := c.at(maxLines - 5); line != maxLines-4 || column != 1 {
		t.Errorf("at = %d, %d", line, column)
	}
	if line, column := c.at(maxLines + 5); line != 0 || column != 0 {
		t.Errorf("behind the last: at = %d, %d", line, column)
	}
}

// FuzzReadArgilla: whatever is read, no entry has a label that the schema has not, and no error
// names a user.
func FuzzReadArgilla(f *testing.F) {
	for _, text := range exports {
		f.Add(text)
	}
	f.Add(`[{"id": "abc123", "responses": {"severity": [{"value": 1e400, "user_id": {}}]}}]`)
	release := manifest.BuiltIn()
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadArgilla(strings.NewReader(text), "e.json", release)
		if err != nil {
			var problems *manifest.Problems
			if !errors.As(err, &problems) || len(problems.List) != 1 || problems.List[0].Line < 1 || problems.List[0].Column < 1 || problems.List[0].Hint == "" {
				t.Fatalf("%v is no problem with a place and a hint", err)
			}
			return
		}
		for _, a := range got.Annotators {
			for k, all := range a.Labels {
				if id, err := manifest.ParsePostID(string(k.ID)); err != nil || id != k.ID || len(all) != len(release.Schema.Categories) {
					t.Fatalf("entry %v has labels %v", k, all)
				}
				for c, labels := range all {
					for _, l := range labels {
						if l < 0 || l >= len(release.Schema.Categories[c].Labels) {
							t.Fatalf("entry %v has label %d of category %d", k, l, c)
						}
					}
				}
			}
		}
		if len(got.Annotators) > 1 {
			if _, err := Agree(release.Schema, got.Annotators); err != nil && !strings.Contains(err.Error(), "in common") {
				t.Fatal(err)
			}
		}
	})
}
