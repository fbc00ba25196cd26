package argilla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/labels"
	"rehydrate/manifest"
)

// The ids of the users are made up, and must not come out again.
const (
	userOne = "11111111-aaaa-4aaa-8aaa-canary000001"
	userTwo = "22222222-bbbb-4bbb-8bbb-canary000002"
)

const export = `[{"id": "5d1f0c2e-8a55-4f3c-9f3e-2f60b2a3c111", "fields": {"image": "data:"}, "metadata": {"post_id": "t3_abc123"},
  "suggestions": {"severity": {"value": "SS5", "score": null, "agent": null}},
  "responses": {"severity": [{"value": "Suicide ideation", "user_id": "` + userOne + `"}, {"value": "SS3", "user_id": "` + userTwo + `", "status": "submitted"}],
    "figurative": [{"value": ["F1", "F3"], "user_id": "` + userOne + `"}, {"value": [], "user_id": "` + userTwo + `"}],
    "comment": [{"value": "hm", "user_id": "` + userOne + `"}]}, "vectors": {}, "_server_id": "9e8d"},
 {"id": "abc124", "responses": {}},
 {"id": "abc125", "responses": {"severity": [{"value": null, "user_id": "` + userTwo + `"}, {"value": "SS1", "user_id": "` + userTwo + `", "status": "draft"}]}},
 {"id": "x", "fields": {"id": 123456}, "metadata": null, "responses": {"severity": [{"value": "SS1", "user_id": 7}, {"value": "", "user_id": 8}]}}]`

func readExport(text string, most int64) (Export, error) {
	a := New("post_id", manifest.BuiltIn())
	a.most = most
	err := a.Read(context.Background(), strings.NewReader(text), "e.json")
	return a.Export(), err
}

func TestReadArgilla(t *testing.T) {
	got, err := readExport(export, maxExport)
	testkit.OK(t, err)
	labelled := func(id manifest.PostID, given ...[]int) labels.Answers {
		return labels.Answers{{ID: id}: append(given, nil, nil, nil)}
	}
	want := Export{Records: 4, LeftOut: 1, Ignored: []string{"comment"},
		Batches: map[manifest.Key]string{{ID: "abc123"}: "t3_abc123"}, Annotators: []labels.Answers{
			labelled("abc123", []int{0, 2}, []int{2}), labelled("abc123", []int{}, []int{3}),
			labelled("123456", nil, []int{1})}}
	testkit.Same(t, "the export", want, got)
}

// TestOrderOfAnnotators: annotators are numbered by their first answers in the file, whatever the questions are called.
func TestOrderOfAnnotators(t *testing.T) {
	got, err := readExport(`[{"id": "abc123", "responses": {"severity": [{"value": "SS1", "user_id": 1}], "comment": [],
		"figurative": [{"value": ["F1"], "user_id": 2}, {"value": ["F2"], "user_id": 1}]}}]`, maxExport)
	testkit.OK(t, err)
	testkit.Same(t, "the annotators", []labels.Answers{{{ID: "abc123"}: {{1}, {1}, nil, nil, nil}},
		{{ID: "abc123"}: {{0}, nil, nil, nil, nil}}}, got.Annotators)
}

func TestReadArgillaProblems(t *testing.T) {
	const again = "is not an Argilla export"
	severity := func(values ...string) string {
		var all []string
		for _, v := range values {
			all = append(all, `{"value": `+v+`, "user_id": "`+userOne+`"}`)
		}
		return `{"id": "abc123", "responses": {"severity": [` + strings.Join(all, ",") + `]}}`
	}
	for text, want := range map[string]string{
		"":                                     again,
		"id,severity\n":                        again,
		severity(`"SS1"`):                      again, // one record a line
		"[1]":                                  "e.json: record 1: it does not have the form",
		"[{}, {]":                              "e.json: record 2: the file is not valid JSON there",
		"[{} {}]":                              "e.json: record 2: the file is not valid JSON there",
		`[{"id": "abc1`:                        "the JSON ends in the middle",
		"[{}":                                  "the JSON ends in the middle",
		"[{}}":                                 "the file is not valid JSON there",
		"[]":                                   "none of the 0 records has a submitted response",
		"[]\n[{}]":                             "something follows the list of records", // two exports in one file
		"[null, " + severity(`"SS9"`) + "]":    `record 2: "SS9" is not a label of category severity`,
		"[" + severity("9") + "]":              `record 1: "9" is not a label of category severity`,
		"[" + severity("true") + "]":           "record 1: an answer for category severity is neither",
		"[" + severity(`{"rank": 1}`) + "]":    "record 1: an answer for category severity is neither",
		"[" + severity(`[["SS1"]]`) + "]":      "record 1: an answer for category severity is neither",
		"[" + severity(`["SS1", "SS2"]`) + "]": "category severity has 2 labels, and takes one",
		"[" + severity(`"SS1"`, `"SS1"`) + "]": "one user answered for category severity twice",
		"[" + severity(`"SS1"`) + "," + strings.Replace(severity(`"SS1"`), "abc123", "t3_abc123", 1) +
			"]": "record 2: post abc123 has a record already",
		"[" + strings.Replace(severity(`"SS1"`), "abc123", "9e8d-77-uuid", 1) +
			"]": "record 1: it has no post id",
		"[" + strings.Replace(severity(`["F4", "F1"]`), "severity", "figurative", 1) +
			"]": `label "F4" (None) of category figurative stands beside another`,
		"[" + strings.Replace(severity(`"hm"`), "severity", "comment", 1) +
			"]": "none of the 1 records has a submitted response",
		`[{"id": "abc123", "responses": {"severity": [{"value": "SS1"}], "severity": [{"value": "SS2"}]}}]`: "record 1: a key stands twice",
		`[{"id": "abc123", "responses": {"severity": [{"value": "SS1", "value": "SS2"}]}}]`:                 "record 1: a key stands twice",
		`[{"id": "abc123", "responses": "none"}]`:                                                           "record 1: it does not have the form",
		`[{"id": "abc123", "responses": {"severity": "SS1"}}]`:                                              "record 1: it does not have the form",
		`[{"id": "abc123", "responses": {"severity": [{"value": "SS1"}]}}]`:                                 "record 1: an answer for category severity has no user_id",
		`[{"id": "abc123", "responses": {"severity": [{"value": "SS1", "user_id": null}]}}]`:                "has no user_id",
		`[{"id": "abc123", "responses": {"severity": [{"value": "SS1", "user_id": " "}]}}]`:                 "has no user_id",
		`[{"id": "abc123", "responses": [{"user_id": 1, "values": {}}]}]`:                                   "record 1: it does not have the form",
	} {
		_, err := readExport(text, maxExport)
		var problems *manifest.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n = %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s\n = %v, which names a user", text, err)
		}
	}
	// Beyond the limit it is too large wherever it was cut.
	if _, err := readExport("[{}"+strings.Repeat(" ", 1<<20), 1<<20); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("cut at 1 MiB: %v", err)
	}
	for _, most := range []int64{1, 100, 900} {
		if _, err := readExport(export, most); err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("cut at %d bytes: %v", most, err)
		}
	}
}

// TestArgillaIDs: a record's id is in the metadata or field that has a name of a post's id and of nothing else, however it is
// spelled, and else the record's own.
func TestArgillaIDs(t *testing.T) {
	idOf := func(within, name string) string {
		out, err := readExport(`[{"id": "own", "`+within+`": {"`+name+`": "abc1"}, "responses": {"severity": [{"value": "SS1", "user_id": 1}]}}]`, maxExport)
		testkit.OK(t, err)
		for key := range out.Annotators[0] {
			return key.String()
		}
		return ""
	}
	for _, within := range []string{"metadata", "fields"} {
		for _, name := range manifest.IDColumns(manifest.NameOfID) {
			testkit.Same(t, name, "abc1", idOf(within, name))
			testkit.Same(t, name, "abc1", idOf(within, strings.ToUpper(strings.ReplaceAll(name, "_", "-"))))
		}
		for _, name := range manifest.IDColumns(manifest.NameWithID, manifest.NameOfAddress, manifest.NameInDumps) {
			testkit.Same(t, name, "own", idOf(within, name))
		}
	}
}

// TestArgillaFiles: a user of two exports is one annotator, who may answer for a post in one of them, and each record's fault is told.
func TestArgillaFiles(t *testing.T) {
	record := func(id, user, value string) string {
		return `{"id": "` + id + `", "responses": {"severity": [{"value": "` + value + `", "user_id": "` + user + `"}]}}`
	}
	a := New("", manifest.BuiltIn())
	read := func(file string, records ...string) error {
		return a.Read(t.Context(), strings.NewReader("\ufeff["+strings.Join(records, ",")+"]"), file)
	}
	testkit.OK(t, read("1.json", record("abc1", userOne, "SS1"), record("abc2/3", userTwo, "SS2")))
	testkit.OK(t, read("2.json", record("abc1", userTwo, "SS3")))
	one := labels.Answers{{ID: "abc1"}: {nil, {1}, nil, nil, nil}}
	two := labels.Answers{{ID: "abc1"}: {nil, {3}, nil, nil, nil}, {ID: "abc2", Image: 3}: {nil, {2}, nil, nil, nil}}
	testkit.Same(t, "annotators", []labels.Answers{one, two}, a.Export().Annotators)
	err := read("3.json", record("abc1", userOne, "SS1"), record("abc3", userOne, "SS9"))
	if text := fmt.Sprint(err); !strings.Contains(text, "3.json: record 1: one user answered") || !strings.Contains(text, `record 2: "SS9" is not`) {
		t.Errorf("two faults: %v", err)
	}
}

// TestOwnIDOfARelease: a record whose own id is that of another post of the release is refused, whichever records there
// are.
func TestOwnIDOfARelease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.csv")
	testkit.OK(t, os.WriteFile(file, []byte("id,severity\nabc123,SS1\nabc124,SS2\n"), 0o600))
	release, err := manifest.OpenTable(file, manifest.BuiltIn(), manifest.Options{})
	testkit.OK(t, err)
	for own, want := range map[string]string{"abc123": "record 1: its own id is that of post abc123", "row1": "",
		"abc125": ""} {
		text := `[{"id": "` + own + `", "metadata": {"post_id": "abc124"}, "responses": {"severity": [` +
			`{"value": "SS1", "user_id": 1}]}}]`
		err := New("", release).Read(t.Context(), strings.NewReader(text), "e.json")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", own, err, want)
		}
	}
}

// FuzzReadArgilla: whatever is read, no entry has a label that the schema does not have, and no error names a user.
func FuzzReadArgilla(f *testing.F) {
	f.Add(export)
	f.Add(`[{"id": "abc123", "responses": {"severity": [{"value": 1e400, "user_id": {}}]}}]`)
	release := manifest.BuiltIn()
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readExport(text, maxExport)
		if err != nil {
			var problems *manifest.Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 || problems.List[0].Hint == "" {
				t.Fatalf("%v is not a problem with a hint", err)
			}
			return
		}
		for _, a := range got.Annotators {
			for k, all := range a {
				if id, err := manifest.ParsePostID(string(k.ID)); err != nil || id != k.ID || len(all) != len(release.Schema.Categories) {
					t.Fatalf("entry %v has labels %v", k, all)
				}
				for c, given := range all {
					for _, l := range given {
						if l < 0 || l >= len(release.Schema.Categories[c].Labels) {
							t.Fatalf("entry %v has label %d of category %d", k, l, c)
						}
					}
				}
			}
		}
	})
}

// TestImageOfRecord: metadata that name an image of the post name the entry.
func TestImageOfRecord(t *testing.T) {
	record := func(id, metadata string) string {
		return `{"id": "` + id + `", "metadata": {` + metadata + `}, "responses": {"severity": [{"value": "SS1", "user_id": 1}]}}`
	}
	for text, want := range map[string]string{
		record("abc123", `"image": 1`) + "," + record("abc123", `"image": 0`):       "abc123 abc123/1",
		record("abc123", `"image": "1.jpg"`):                                        "abc123",
		record("abc123/2", `"image": 1`):                                            "names image 2 of post abc123",
		record("abc123", `"image": 1`) + "," + record("abc124", `"image": "b.jpg"`): "holds numbers of images and something else",
	} {
		got, err := readExport("["+text+"]", maxExport)
		var keys []string
		if err == nil {
			for key := range got.Annotators[0] {
				keys = append(keys, key.String())
			}
		}
		slices.Sort(keys)
		if keys := strings.Join(keys, " "); keys != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v, want %s", text, keys, err, want)
		}
	}
}

// TestRecordThatIsNoAnswer: metadata by which the row of a table is no answer leave out the answers of a record.
func TestRecordThatIsNoAnswer(t *testing.T) {
	record := func(id, metadata string) string {
		return `{"id": "` + id + `", "status": "pending", "metadata": {` + metadata + `}, "responses": {"severity": [` +
			`{"value": "SS1", "user_id": 1}, {"value": "SS2", "user_id": 2}]}}`
	}
	for metadata, want := range map[string]int{
		`"status": "rejected"`: 2, `"is_valid": false`: 2, `"llm_error": "timeout"`: 2, `"status": "approved"`: 0, `"error": null`: 0,
	} {
		got, err := readExport("["+record("abc123", metadata)+","+record("abc124", "")+"]", maxExport)
		if err != nil || got.LeftOut != want || len(got.Annotators[0]) != 2-want/2 {
			t.Errorf("%s: %d left out of %v, %v, want %d", metadata, got.LeftOut, got.Annotators, err, want)
		}
	}
}

// TestAboutOfRecord: a record whose metadata or fields name a comment or another post, or whose own id is that of
// another record's post, is refused.
func TestAboutOfRecord(t *testing.T) {
	record := func(id, metadata, fields string) string {
		return `{"id": "` + id + `", "metadata": {` + metadata + `}, "fields": {` + fields + `}, "responses": {"severity": [{"value": "SS1", "user_id": 1}]}}`
	}
	for text, want := range map[string]string{
		record("abc123", `"post_id": "abc124"`, "") + "," + record("abc124", `"post_id": "abc123"`, ""): "record 1: its own id is that of post abc123, and its metadata",
		record("t3_abc123", `"post_id": "abc124"`, ""):                                                  "record 1: its own id is that of post abc123",
		record("row1", `"post_id": "abc124"`, "") + "," + record("7", `"post_id": "abc123"`, ""):        "",
		record("abc123", `"post_id": "t3_abc123"`, ""):                                                  "",
		record("x", `"post_id": "abc123", "submission_id": "abc124"`, ""):                               `record 1: column "submission_id" names another post`,
		record("x", `"post_id": "abc123"`, `"permalink": "/r/x/comments/abc123/t/kz0abcd/"`):            `record 1: column "permalink" says that this row is about a comment`,
		record("x", `"post_id": "abc123", "type": "comment"`, ""):                                       `column "type" says`,
		record("abc123", `"is_comment": true`, ""):                                                      `column "is_comment" says`,
		record("abc123", `"kind": "figure"`, `"name": "a", "url": "https://i.redd.it/a.png"`):           "",
	} {
		if _, err := readExport("["+text+"]", maxExport); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
