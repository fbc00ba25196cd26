package auditlog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

var someTime = time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)

func TestLines(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, tt := range []struct {
		event Event
		want  string
	}{
		{Event{Seq: 7, Time: someTime, Kind: Verdicts, Posts: []Post{{"abc", "live", ""}, {"abd", "removed", "moderator"}}},
			`{"seq":7,"time":"2026-11-21T15:00:00Z","kind":"verdicts","posts":[["abc","live",""],["abd","removed","moderator"]]}`},
		{Event{Seq: 8, Time: someTime, Kind: Buried, Posts: []Post{{"abd", "removed", "takedown"}},
			Since: someTime.Add(-time.Hour)},
			`{"seq":8,"time":"2026-11-21T15:00:00Z","kind":"tombstone","posts":[["abd","removed","takedown"]],"since":"2026-11-21T14:00:00Z"}`},
		{Event{Time: someTime, Kind: Copy, Path: digest, Note: "the <lab> & friends", Format: "parquet",
			Files: []File{{Name: "data/x.parquet", SHA256: digest, Rows: 3}}},
			`{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"copy","path":"` + digest + `","note":"the <lab> & friends","format":"parquet","files":[{"name":"data/x.parquet","sha256":"` + digest + `","rows":3}]}`},
	} {
		line, err := tt.event.Line()
		testkit.Same(t, "line", tt.want+"\n", string(line), err)
		back, err := ParseLine(line)
		testkit.Same(t, "read back", tt.event, back, err)
	}
}

// TestAtTheLimits: what is just within each limit is a record.
func TestAtTheLimits(t *testing.T) {
	word, digest := strings.Repeat("x", 100), strings.Repeat("0a", 32)
	e := Event{Time: someTime, Kind: Export, Verdict: word, Note: word + word, Tool: word, Root: word[:64],
		Release: digest,
		Posts:   slices.Repeat([]Post{{"zzzzzzzzzzzz9", "live", "x"}, {"z", "", ""}}, MaxPosts/2),
		Old:     slices.Repeat([]File{{Name: word + word}}, MaxFiles), Files: slices.Repeat([]File{{Name: "x"}}, MaxFiles)}
	line, err := e.Line()
	testkit.OK(t, err)
	_, err = ParseLine(line)
	testkit.OK(t, err)
}

// TestNoRoomForContent checks that a record has no room for a name, a title or a URL.
func TestNoRoomForContent(t *testing.T) {
	for name, change := range map[string]func(*Event){
		"kind":          func(e *Event) { e.Kind = "gossip" },
		"since":         func(e *Event) { e.Since = someTime },
		"no since":      func(e *Event) { e.Kind = Buried },
		"since, half":   func(e *Event) { e.Kind, e.Since = Buried, someTime.Add(time.Millisecond) },
		"no kind":       func(e *Event) { e.Kind = "" },
		"verdict":       func(e *Event) { e.Verdict = "by u/someone" },
		"format":        func(e *Event) { e.Format = "/r/place" },
		"id is a URL":   func(e *Event) { e.Posts = []Post{{ID: "https://x"}} },
		"id is empty":   func(e *Event) { e.Posts = []Post{{}} },
		"id is a word":  func(e *Event) { e.Posts = []Post{{ID: "ab_c"}} },
		"id too long":   func(e *Event) { e.Posts = []Post{{ID: "abcdefghijklmn"}} },
		"state":         func(e *Event) { e.Posts = []Post{{"abc", "Live", ""}} },
		"reason":        func(e *Event) { e.Posts = []Post{{"abc", "live", "a title"}} },
		"digest":        func(e *Event) { e.SHA256 = "https://i.redd.it/x.jpg" },
		"short digest":  func(e *Event) { e.SHA256 = "0a" },
		"path":          func(e *Event) { e.Path = "/home/x" },
		"file up":       func(e *Event) { e.Files = []File{{Name: "../x"}} },
		"file absolute": func(e *Event) { e.Old = []File{{Name: "/x"}} },
		"file no file":  func(e *Event) { e.Files = []File{{Name: "."}} },
		"file's name":   func(e *Event) { e.Files = []File{{Name: "a\nb"}} },
		"long word":     func(e *Event) { e.Verdict = strings.Repeat("x", 101) },
		"long line": func(e *Event) {
			e.Files = slices.Repeat([]File{{Name: strings.Repeat("x", 200), SHA256: strings.Repeat("a", 64),
				Rows: 1 << 62}}, MaxFiles)
			e.Old, e.Posts = e.Files, slices.Repeat([]Post{{"abc", "live", manifest.Reason(strings.Repeat("r", 100))}},
				MaxPosts)
		},
		"many posts":      func(e *Event) { e.Posts = slices.Repeat([]Post{{ID: "abc"}}, MaxPosts+1) },
		"negative rows":   func(e *Event) { e.Files = []File{{Name: "x", Rows: -1}} },
		"negative size":   func(e *Event) { e.Size = -1 },
		"negative image":  func(e *Event) { e.Image = -1 },
		"many files":      func(e *Event) { e.Old = slices.Repeat([]File{{Name: "x"}}, MaxFiles+1) },
		"tool":            func(e *Event) { e.Tool = strings.Repeat("x", 101) },
		"root":            func(e *Event) { e.Root = strings.Repeat("x", 65) },
		"file's digest":   func(e *Event) { e.Files = []File{{Name: "x", SHA256: "y"}} },
		"terminal bytes":  func(e *Event) { e.Note = "\x1b[2J" },
		"turned text":     func(e *Event) { e.Note = "a\u202eb" },
		"long note":       func(e *Event) { e.Note = strings.Repeat("x", 201) },
		"phase":           func(e *Event) { e.Phase = "half" },
		"time of a place": func(e *Event) { e.Time = e.Time.In(time.FixedZone("x", 3600)) },
		"part of second":  func(e *Event) { e.Time = e.Time.Add(1) },
		"no time":         func(e *Event) { e.Time = time.Time{} },
		"below 0":         func(e *Event) { e.Seq = -1 },
	} {
		e := Event{Time: someTime, Kind: Verdicts}
		testkit.OK(t, e.check())
		change(&e)
		if _, err := e.Line(); err == nil {
			t.Errorf("%s: %+v became a record", name, e)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	good := `{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"audit","verdict":"pass"}` + "\n"
	_, err := ParseLine([]byte(good))
	testkit.OK(t, err)
	for _, bad := range []string{"", "\n", "{", "null\n", "[]\n", good[:len(good)-1], good + good, " " + good,
		strings.Replace(good, `"verdict"`, `"title":"x","verdict"`, 1),
		strings.Replace(good, `"seq":0`, `"seq":0,"seq":0`, 1),
		strings.Replace(good, `"seq":0`, `"Seq":0`, 1), strings.Replace(good, "pass", `p\u0061ss`, 1),
		`{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"verdicts","posts":[["a","b"]]}` + "\n",
		strings.Repeat("[", maxLine-1) + "\n", strings.Repeat("x", maxLine)} {
		if e, err := ParseLine([]byte(bad)); err == nil {
			t.Errorf("%.80q was read as %+v", bad, e)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"seq":0,"time":"2026-11-21T15:00:00Z","kind":"verdicts","posts":[["abc","live",""]]}` + "\n"))
	f.Add([]byte(`{"seq":1,"time":"2026-11-21T15:00:00Z","kind":"copy","note":"é<>&\u2028","files":[{"name":"x","sha256":""}]}` + "\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseLine(line)
		if err != nil {
			return
		}
		again, err := e.Line()
		if err != nil || !bytes.Equal(again, line) {
			t.Errorf("%q was read and is written as %q, %v", line, again, err)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	_, l := written(f, 3)
	f.Add(l.Checkpoint().Signed)
	f.Add([]byte("rehydrate/x\n3\nAAAA\n\n— rehydrate/x AAAA\n"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		c, err := parseCheckpoint(signed, l.Checkpoint().Key)
		if err == nil && (c.Key != l.Checkpoint().Key || c.Size != l.Size() || c.Root != l.Checkpoint().Root) {
			t.Errorf("a checkpoint that was never signed: %+v", c)
		}
		if c, err := parseBody(string(signed)); err == nil &&
			fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) != string(signed) {
			t.Errorf("%q was read as %+v", signed, c)
		}
	})
}
