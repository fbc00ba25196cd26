package manifest

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func results(list ...Result) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func readResults(b []byte) (list []Result, err error) {
	for r, err := range ReadOutcomes(bytes.NewReader(b)) {
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

func TestOutcomes(t *testing.T) {
	list := []Result{
		{Key: Key{ID: "abc"}, Split: "train", Outcome: Kept},
		{Key: Key{ID: "abc", Image: maxImage}, Split: "train", Outcome: Duplicate, DuplicateOf: Key{ID: "abc"}},
		{Key: Key{ID: "abd"}, Split: "test", Outcome: Duplicate, Reason: "same_text",
			DuplicateOf: Key{ID: "abc", Image: 999}},
		{Key: Key{ID: "abe"}, Split: "test", Outcome: Failed, Reason: "http_503", Detail: "=cmd|' /C calc'!A0"},
		{Key: Key{ID: "abf"}, Split: "test", Outcome: Gone, Reason: "http_404", Detail: "'-1, \"q\"\nsecond"},
	}
	var b bytes.Buffer
	if err := WriteOutcomes(&b, results(list...)); err != nil {
		t.Fatal(err)
	}
	want := `id,image,split,outcome,reason,detail,duplicate_of
abc,0,train,kept,,,
abc,999,train,duplicate,,,abc
abd,0,test,duplicate,same_text,,abc/999
abe,0,test,failed,http_503,'=cmd|' /C calc'!A0,
abf,0,test,gone,http_404,"''-1, ""q""
second",
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	got, err := readResults(b.Bytes())
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("read back, %v (-want +got):\n%s", err, diff)
	}
	for range ReadOutcomes(&b) { // leaving early must not panic
		break
	}
	for in, want := range map[string]string{
		strings.Repeat("x", maxDetail):   strings.Repeat("x", maxDetail),
		strings.Repeat("x", maxDetail+1): strings.Repeat("x", maxDetail),
		strings.Repeat("é", maxDetail+1): strings.Repeat("é", maxDetail), "a\x00\xff\r\nb\r": "a\uFFFD\nb",
		"\x1b]0;x\a\u009b2J\u202eq\tr": "]0;x2Jq\tr",
	} {
		if got := cleanDetail(in); got != want {
			t.Errorf("cleanDetail(%.20q) = %d bytes %.20q, want %d", in, len(got), got, len(want))
		}
	}
}

func TestWriteOutcomesRefuses(t *testing.T) {
	good := Result{Key: Key{ID: "abc"}, Split: "train", Outcome: Kept}
	for name, spoil := range map[string]func(*Result){
		"id":        func(r *Result) { r.ID = "T3_x" },
		"no id":     func(r *Result) { r.ID = "" },
		"image":     func(r *Result) { r.Image = -1 },
		"big image": func(r *Result) { r.Image = maxImage + 1 },
		"split":     func(r *Result) { r.Split = "" },
		"outcome":   func(r *Result) { r.Outcome = "" },
		"reason":    func(r *Result) { r.Reason = "Not so" },
		"case":      func(r *Result) { r.Reason = "Notso" },
		"duplicate": func(r *Result) { r.DuplicateOf.Image = 1 },
		"its image": func(r *Result) { r.DuplicateOf = Key{"abd", -1} },
		"too big":   func(r *Result) { r.DuplicateOf = Key{"abd", maxImage + 1} },
	} {
		bad := good
		spoil(&bad)
		if err := WriteOutcomes(&bytes.Buffer{}, results(good, bad)); err == nil ||
			!strings.Contains(err.Error(), "entry 2") {
			t.Errorf("%s: %v, want an error of entry 2", name, err)
		}
	}
	broken := errors.New("state is gone")
	err := WriteOutcomes(&bytes.Buffer{}, func(yield func(Result, error) bool) { yield(Result{}, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if err := WriteOutcomes(failingWriter{}, results(good)); err == nil {
		t.Error("a full disk went unnoticed")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestReadOutcomesRefuses(t *testing.T) {
	const head = outcomesHeader + "\n"
	const good = "abc,0,train,kept,,,\n"
	for in, want := range map[string]string{
		"":                                       "line 1: the file is empty",
		"id,outcome\n":                           "line 1: the header is not",
		head + good + good:                       "line 3, column 1: post abc, image 0, is already on line 2",
		head + "ABC,0,train,kept,,,\n":           `line 2, column 1: "ABC" is not a post id`,
		head + "abc,00,train,kept,,,\n":          "line 2, column 5: the image is not the number",
		head + "abc,0,train,lost,,,\n":           `line 2, column 13: "lost" is not an outcome`,
		head + "abc,0,train,duplicate,,,abd/0\n": "line 2, column 25: duplicate_of does not name",
		head + "abc,0,train,duplicate,,,abd/x\n": "line 2, column 25: duplicate_of does not name",
		head + "abc,0,train,duplicate,,,/1\n":    "line 2, column 25: duplicate_of does not name",
		head + "abc,0,train,kept,,\n":            "line 2, column 19: the row has 6 fields",
		head + good + "abd,0,tr":                 "line 3, column 9: the row has 3 fields",
	} {
		_, err := readResults([]byte(in))
		var p *Problem
		if !errors.As(err, &p) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// FuzzReadTables: what a reader of our tables takes can be written, and is then read the same.
func FuzzReadTables(f *testing.F) {
	f.Add([]byte("id,image,split,outcome,reason,detail,duplicate_of\nabc,0,train,duplicate,x,'=1,abd/1\n"))
	f.Add([]byte("id,state,time\nabc,removed,2025-12-31T23:59:59Z\n"))
	f.Add([]byte("id,state,time\nabc,gone,0000-00-00T00:00:00Z\n\n\x00"))
	f.Add([]byte("id,state,time,reason\nabc,removed,2025-12-31T23:59:59Z,moderator\nabd,deleted,2025-12-31T23:59:59Z,\n"))
	f.Add([]byte("id,state,time,reason\nabc,removed,2025-12-31T23:59:59Z,\"=1,2\"\nabd,removed,2025-12-31T23:59:59Z\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readResults(b)
		var p *Problem
		if err != nil && (!errors.As(err, &p) || p.Line < 1) {
			t.Fatalf("error %v has no line", err)
		}
		var again bytes.Buffer
		if err := WriteOutcomes(&again, results(list...)); err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		stones, err := ReadReasons(bytes.NewReader(b), func(r Reason) bool { return r != "nonsense" })
		if err != nil {
			if !errors.As(err, &p) || p.Line < 1 || p.Hint == "" {
				t.Fatalf("error %v has no line or no hint", err)
			}
			return
		}
		again.Reset()
		if err := WriteReasons(&again, stones); err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		got, err := ReadReasons(&again, func(r Reason) bool { return r != "nonsense" })
		if diff := cmp.Diff(stones, got); err != nil || diff != "" {
			t.Fatalf("%v, (-want +got):\n%s", err, diff)
		}
	})
}

func TestTombstones(t *testing.T) {
	at := time.Date(2025, 12, 31, 23, 59, 59, 999, time.FixedZone("", 3600))
	list := []Tombstone{{ID: "abc", State: StateRemoved, Time: at}, {ID: "abd", State: StateUnavailable, Time: at}}
	var b bytes.Buffer
	if err := WriteTombstones(&b, list); err != nil {
		t.Fatal(err)
	}
	want := "id,state,time\nabc,removed,2025-12-31T22:59:59Z\nabd,unavailable,2025-12-31T22:59:59Z\n"
	if b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
	got, err := ReadTombstones(&b)
	for i := range list {
		list[i].Time = at.UTC().Truncate(time.Second)
	}
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("read back, %v (-want +got):\n%s", err, diff)
	}
	if got, err := ReadTombstones(strings.NewReader("id,state,time\n")); err != nil || len(got) != 0 {
		t.Errorf("header only: %v, %v, want none", got, err)
	}
}

// TestReasons: the list of a workspace tells reasons; a list without them, and who does not go by them, has none.
func TestReasons(t *testing.T) {
	at := time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC)
	list := []ReasonedTombstone{{Tombstone{ID: "abc", State: StateRemoved, Time: at}, "moderator"},
		{Tombstone{ID: "abd", State: StateDeleted, Time: at}, ""}}
	var b bytes.Buffer
	if err := WriteReasons(&b, list); err != nil {
		t.Fatal(err)
	}
	text := "id,state,time,reason\nabc,removed,2025-12-31T23:59:59Z,moderator\nabd,deleted,2025-12-31T23:59:59Z,\n"
	if b.String() != text {
		t.Errorf("wrote %q, want %q", b.String(), text)
	}
	known := func(r Reason) bool { return r == "moderator" }
	got, err := ReadReasons(strings.NewReader(text), known)
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("read back, %v (-want +got):\n%s", err, diff)
	}
	stones := []Tombstone{list[0].Tombstone, list[1].Tombstone}
	bare, err := ReadTombstones(strings.NewReader(text))
	if diff := cmp.Diff(stones, bare); err != nil || diff != "" {
		t.Errorf("without the reasons, %v (-want +got):\n%s", err, diff)
	}
	b.Reset()
	if err := WriteTombstones(&b, bare); err != nil {
		t.Fatal(err)
	}
	list[0].Reason = ""
	got, err = ReadReasons(&b, known)
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("of a list without reasons, %v (-want +got):\n%s", err, diff)
	}
	for _, head := range []string{"id,state,time\n", "id,state,time,reason\n", "\ufeffid,state,time,reason\n"} {
		if !BeginsTombstones([]byte(head)) {
			t.Errorf("%q begins no list of tombstones", head)
		}
	}
	if err := WriteReasons(io.Discard, []ReasonedTombstone{{stones[0], "by a moderator"}}); err == nil {
		t.Error("a reason that is no word was written")
	}
	for row, want := range map[string]string{
		"moderater":        `line 3, column 34: "moderater" is not a reason for a removal`,
		"\"by, somebody\"": `line 3, column 34: "by, somebody" is not a reason for a removal`,
		"Moderator":        `line 3, column 34: "Moderator" is not a reason for a removal`,
		"moderator,x":      "line 3, column 44: the row has 5 fields, the header has 4",
	} {
		_, err := ReadReasons(strings.NewReader(text[:len(text)-len("abd,deleted,2025-12-31T23:59:59Z,\n")]+
			"abd,removed,2025-12-31T23:59:59Z,"+row+"\n"), known)
		var problems *Problems
		if !errors.As(err, &problems) || len(problems.List) != 1 {
			t.Errorf("%s: %v, want %q", row, err, want)
			continue
		}
		p := problems.List[0]
		p.Hint = ""
		if p.Error() != want {
			t.Errorf("%s: %q, want %q", row, p.Error(), want)
		}
	}
}

func TestTombstonesRefuse(t *testing.T) {
	const time1 = "2025-12-31T23:59:59Z"
	text := "id,state,time\n" + strings.Join([]string{
		"abc,removed," + time1, "t3_abd,removed," + time1, "abe,live," + time1, "abf,removed,2025-12-31",
		"abg,removed,2025-12-31T23:59:59+01:00",
		"abh,removed,2025-12-31T23:59:59.5Z", "abc,deleted," + time1, "abi,removed",
		"abj,removed,1970-01-01T00:00:00Z", "abk,removed,0001-01-01T00:00:00Z", "",
	}, "\n")
	_, err := ReadTombstones(strings.NewReader(text))
	var problems *Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error %v is not a *Problems", err)
	}
	want := []string{
		`line 3, column 1: "t3_abd" is not a post id`, `line 4, column 5: "live" is not a state of a tombstone`,
		"line 5, column 13: the time is not one in UTC, to the second",
		"line 6, column 13: the time is not one in UTC, to the second",
		"line 7, column 13: the time is not one in UTC, to the second",
		"line 8, column 1: post abc, image 0, is already on line 2",
		"line 9, column 12: the row has 2 fields, the header has 3",
		"line 10, column 13: the time is what programs write for a missing one",
		"line 11, column 13: the time is what programs write for a missing one",
	}
	var got []string
	for _, p := range problems.List {
		p.Hint = ""
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, in := range []string{"", "id,state\n", "abc,removed," + time1 + "\n"} {
		if _, err := ReadTombstones(strings.NewReader(in)); err == nil {
			t.Errorf("%q passed as a tombstones file", in)
		}
	}
	abc := Tombstone{ID: "abc", State: StateRemoved}
	for _, bad := range [][]Tombstone{{{ID: "T", State: StateRemoved}}, {{ID: "abc", State: StateLive}}, {abc, abc}} {
		if err := WriteTombstones(&bytes.Buffer{}, bad); err == nil {
			t.Errorf("%v was written", bad)
		}
	}
	if err := WriteTombstones(failingWriter{}, []Tombstone{abc}); err == nil {
		t.Error("a full disk went unnoticed")
	}
}
