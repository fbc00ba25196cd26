package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/audit"
	"rehydrate/internal/testkit/browser"
	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
)

// TestRecorded replays posts as Reddit's API really answered for them, each with an image of
// its own: every post must end in the state that its recording shows. The states were worked
// out by hand from the recordings (pipeline/reddit/testdata).
func TestRecorded(t *testing.T) {
	long(t)
	t.Parallel()
	const recordings = "../../pipeline/reddit/testdata"
	states := map[manifest.PostID]manifest.PostState{}
	for _, r := range cells(t, filepath.Join(recordings, "reddit-states.csv")) {
		states[manifest.PostID(r[0])] = manifest.PostState(r[1])
	}
	var posts []redditemu.Post
	things := strings.Split(strings.TrimSpace(read(t, filepath.Join(recordings, "reddit-things.jsonl"))), "\n")
	for _, thing := range things {
		var v struct{ Data struct{ ID manifest.PostID } }
		check(t, json.Unmarshal([]byte(thing), &v))
		posts = append(posts, redditemu.Post{ID: v.Data.ID, Kind: redditemu.KindSelf, Raw: []byte(thing)})
	}
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	for _, host := range []string{"i.redd.it", "i.imgur.com"} { // have a picture under any name
		s.emulator.Fault(hostile.Fault{Host: host, Kind: hostile.OnPicture(hostile.FaultKind{})})
	}
	if sum := s.run(exitDone); sum.Entries != len(things) || len(states) != len(things) {
		t.Fatalf("%d entries, %d recordings, %d states", sum.Entries, len(things), len(states))
	}
	images := 0
	for _, rec := range s.records() {
		want := states[rec.ID]
		if rec.Post.State != want {
			t.Errorf("state of %s = %s (%s), want %s", rec.ID, rec.Post.State, rec.Post.Reason, want)
		}
		if rec.Image != nil {
			images++
			if want != manifest.StateLive {
				t.Errorf("the image of %s is stored, which is %s", rec.ID, want)
			}
		}
	}
	// 91 recordings are on i.redd.it, 58 on i.imgur.com, 15 are galleries; some of them are removed.
	if images < 100 {
		t.Errorf("only %d images were fetched", images)
	}
}

// cells are the rows of a CSV file after its heading.
func cells(t *testing.T, file string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(read(t, file))).ReadAll()
	check(t, err)
	return rows[1:]
}

// TestDemo runs the demo's posts once, with Tesseract: what the words of a picture decide, from its pixels to the
// Parquet that strangers read and the report that people see, is seen by no smaller test.
func TestDemo(t *testing.T) {
	long(t)
	t.Parallel()
	annotations, posts := redditemu.Demo(demoSeed)
	s := newSite(t, string(annotations), fastPolicy, posts...).real()
	s.run(exitRetry) // one image of the demo can't be had for now
	got := s.outcomes()
	seen := expected(t, s, posts, got, 0)
	for _, o := range []manifest.Outcome{manifest.Kept, manifest.Duplicate, manifest.NotEnglish, manifest.Removed,
		manifest.Deleted,
		manifest.Unavailable, manifest.NoMedia, manifest.Gone, manifest.Placeholder, manifest.Invalid, manifest.Refused,
		manifest.Failed} {
		if seen[string(o)] == 0 {
			t.Errorf("no entry of the demo ended as %s", o)
		}
	}
	s.demoRequests(t, posts)
	for _, never := range append(hostile.Canaries(), s.emulator.Secret, "Exif\x00\x00II", "http://ns.adobe.com/xap",
		"/comments/", "https://i.redd.it/") {
		s.grep(never, "what must not be stored")
	}
	stranger(t, s)

	// The report in a browser: its numbers are those of outcomes.csv, and it asks for nothing.
	s.do(nil, "report", "-w", s.workspace).want(t, exitDone)
	v := browser.Start(t).Open(t, filepath.Join(s.workspace, "report.html"))
	if len(v.Console) > 0 || len(v.Requests) > 0 || strings.Contains(v.DOM, "<img") {
		t.Errorf("console %q, requests %q, or an image, want none", v.Console, v.Requests)
	}
	shown := map[string]int{}
	for _, m := range outcomeRow.FindAllStringSubmatch(v.DOM, -1) {
		if n, _ := strconv.Atoi(m[2]); n > 0 {
			shown[m[1]] = n
		}
	}
	if diff := cmp.Diff(seen, shown); diff != "" {
		t.Errorf("outcomes (-outcomes.csv +report):\n%s", diff)
	}
	for _, sure := range []string{"It ended on", "http_503", "rehydrate run RELEASE tries again", "Figurative",
		"same_text"} {
		if !strings.Contains(v.DOM, sure) {
			t.Errorf("the report does not say %q", sure)
		}
	}

	// What --filters flag keeps, and where it says so.
	sum := s.run(exitRetry, "--filters", "flag")
	marked := map[string]string{}
	for i, r := range s.outcomes() {
		switch was := got[i].Outcome; was {
		case manifest.Duplicate, manifest.NotEnglish, manifest.Unreadable:
			marked[string(r.ID)] = string(was)
			if r.Outcome != manifest.Kept || r.Reason != manifest.Reason(was) {
				t.Errorf("%s = %s (%s), want kept (%s)", r.ID, r.Outcome, r.Reason, was)
			}
		}
	}
	var flagged []struct{ ID, Filter string }
	duckdb.Query(t, &flagged, `SELECT id AS "ID", filter AS "Filter" FROM read_parquet(`+
		duckdb.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))+`) WHERE filter IS NOT NULL`)
	if len(marked) == 0 || sum.Flagged != len(marked) || len(flagged) != len(marked) {
		t.Errorf("%d rows are flagged, the filter column marks %d, and %d were dropped", sum.Flagged, len(flagged),
			len(marked))
	}
	for _, f := range flagged {
		if marked[f.ID] != f.Filter {
			t.Errorf("filter of %s = %s, want %s", f.ID, f.Filter, marked[f.ID])
		}
	}
}

// outcomeRow matches a row of the funnel's table as a browser gives it back.
var outcomeRow = regexp.MustCompile(`<tr><th scope="row">([a-z_]+)</th><td class="number">(\d+)</td><td class="number">[\d.]+ %</td><td>`)

// demoRequests holds the run to the rules that Reddit could check from its side.
func (s *site) demoRequests(t *testing.T, posts []redditemu.Post) {
	t.Helper()
	gone := map[string]manifest.PostState{}
	for _, p := range posts {
		for _, u := range p.URLs() {
			if state := p.Condition.State(); state != manifest.StateLive {
				gone[u] = state
			}
		}
	}
	agent := regexp.MustCompile(`^linux:rehydrate:[^ ]+ \(by /u/test_user\)$`)
	api := 0
	for _, r := range s.emulator.Requests() {
		isAPI := strings.HasSuffix(r.Host, ".reddit.com")
		if isAPI {
			api++
		}
		if !agent.MatchString(r.UserAgent) || len(r.IDs) > 100 || r.Auth == "bearer" && r.Host != "oauth.reddit.com" ||
			!isAPI && r.Referer != "" {
			t.Errorf("%s %s%s: User-Agent %q, %d ids, authorization %s, Referer %q", r.Method, r.Host, r.Path, r.UserAgent,
				len(r.IDs), r.Auth, r.Referer)
		}
		if state, ok := gone["https://"+r.Host+r.Path]; ok {
			t.Errorf("%s%s was asked for, the image of a post that is %s", r.Host, r.Path, state)
		}
	}
	if api < 3 {
		t.Errorf("only %d requests to Reddit's API: the test saw too little", api)
	}
}

// figsim is a site of every n-th entry of FigSIM's own shape: 1,049 made-up ids with the counts of its Table 8.
func figsim(t *testing.T, n int) (s *site, ids []manifest.PostID, posts []redditemu.Post) {
	t.Helper()
	lines := strings.SplitAfter(read(t, "../../manifest/testdata/annotations.csv"), "\n")
	text := lines[0]
	for i, line := range lines[1 : len(lines)-1] {
		if i%n == 0 {
			id, _, _ := strings.Cut(line, ",")
			text, ids = text+line, append(ids, manifest.PostID(id))
		}
	}
	posts = redditemu.Scenario(ids, demoSeed)
	s = newSite(t, text, fastPolicy, posts...)
	if full() {
		s = s.real()
	}
	return s, ids, posts
}

// TestFigSIM runs FigSIM's shape through the emulator and Tesseract: only so many captions show whether the text of a
// picture reaches the dataset. The sample has every ninth of them and the fake ocr program.
func TestFigSIM(t *testing.T) {
	t.Parallel()
	long(t)
	s, ids, posts := figsim(t, often(1, 9))
	sum := s.run(exitDone)
	got := s.outcomes()
	if len(got) != len(ids) || sum.Entries != len(ids) {
		t.Fatalf("outcomes.csv has %d rows, the summary %d, want %d", len(got), sum.Entries, len(ids))
	}
	calls := 0
	for _, r := range s.emulator.Requests() {
		if r.Path == "/api/info" && len(r.IDs) > 0 {
			calls++
		}
	}
	// 11 for 1,049 posts and one or two for the second look at the absent ones; at most as
	// many again in the last look at those whose images are new.
	batches := (len(ids) + 99) / 100
	if l := *sum.Looks; l.Resolve < batches || l.Resolve > batches+2 || l.Last < 1 || l.Last > batches ||
		calls != l.Resolve+l.Last {
		t.Errorf("%d calls of /api/info, of which %+v, want %d and one or two to resolve and 1 to %d before the export",
			calls, l, batches, batches)
	}
	stranger(t, s)
	if full() {
		expected(t, s, posts, got, 20)
	}
	for _, mode := range [][]string{{"--offline"}, nil} {
		if r := s.audit(exitDone, mode...); r.Verdict != audit.Pass || r.Scope.Entries != len(ids) ||
			r.Scope.LookedAt < len(ids)/2 {
			t.Errorf("audit %q of a workspace that is clean: %s of %+v", mode, r.Verdict, r.Scope)
		}
	}
	if r := s.verify(exitDone); !r.Whole || r.Images < len(ids)/2 {
		t.Errorf("verify: %+v", r)
	}
}

// expected holds the outcomes, in the order of the manifest, against what the emulator made the posts to be, and counts
// them. One in some of those that rest on what OCR reads may be another; 0 is none.
func expected(t *testing.T, s *site, posts []redditemu.Post, got []manifest.Result, some int) map[string]int {
	t.Helper()
	byText := map[manifest.Outcome]bool{manifest.Kept: true, manifest.Duplicate: true, manifest.NotEnglish: true,
		manifest.Unreadable: true}
	want := map[manifest.PostID]manifest.Outcome{}
	for _, p := range posts {
		want[p.ID] = p.WantOutcome
	}
	rows := cells(t, filepath.Join(s.release, "annotations.csv"))
	if len(rows) != len(got) {
		t.Fatalf("outcomes.csv has %d rows, the manifest %d", len(got), len(rows))
	}
	judged, differ, seen := 0, map[string]int{}, map[string]int{}
	sum := 0
	for i, r := range got {
		seen[string(r.Outcome)]++
		if string(r.ID) != rows[i][0] || r.Split != rows[i][1] || r.Outcome == manifest.Pending {
			t.Errorf("row %d is %s %s %s, the manifest has %s %s", i, r.ID, r.Split, r.Outcome, rows[i][0], rows[i][1])
		}
		w := want[r.ID]
		switch {
		case w == "" || w == r.Outcome:
		case byText[w] && byText[r.Outcome] && some > 0:
			differ[fmt.Sprintf("%s for %s", r.Outcome, w)]++
			sum++
		default:
			t.Errorf("outcome of %s = %s (%s, %s), want %s", r.ID, r.Outcome, r.Reason, r.Detail, w)
		}
		if byText[w] {
			judged++
		}
	}
	t.Logf("outcomes that rest on OCR: %d, of them other than drawn: %v", judged, differ)
	if sum*some > judged {
		t.Errorf("%d of %d outcomes that rest on OCR are other than drawn", sum, judged)
	}
	return seen
}

// stranger checks a workspace's Parquet with DuckDB: rows, images against their digests, and
// labels against the manifest.
func stranger(t *testing.T, s *site) {
	t.Helper()
	kept := map[string]string{}
	for _, r := range s.outcomes() {
		if r.Outcome == manifest.Kept {
			kept[string(r.Key.ID)] = r.Split
		}
	}
	files := duckdb.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))
	var got []struct {
		ID, Split, Figurative, Severity, Modality string
		Good                                      bool
	}
	duckdb.Query(t, &got, `SELECT id AS "ID", regexp_extract(filename, 'data/([a-z]+)-', 1) AS "Split",
		array_to_string(figurative, '|') AS "Figurative", severity::VARCHAR AS "Severity", modality::VARCHAR AS "Modality",
		sha256(image.bytes) = sha256 AND length(phash) = 16 AND image.path IS NOT NULL AND width > 0 AND ocr_text IS NOT NULL AS "Good"
		FROM read_parquet(`+files+`, filename = true)`)
	if len(got) != len(kept) {
		t.Fatalf("DuckDB reads %d rows, outcomes.csv keeps %d", len(got), len(kept))
	}
	manifestRow := map[string][]string{}
	for _, r := range cells(t, filepath.Join(s.release, "annotations.csv")) {
		manifestRow[r[0]] = r
	}
	severity := map[string]string{"SS6": "0", "SS1": "1", "SS2": "2", "SS3": "3", "SS4": "4", "SS5": "5"}
	figurative := strings.NewReplacer("F1", "0", "F2", "1", "F3", "2", "F4", "3")
	for _, g := range got {
		m := manifestRow[g.ID]
		if !g.Good || kept[g.ID] != g.Split {
			t.Errorf("row %s in %s: image, digest or split is wrong", g.ID, g.Split)
		}
		if g.Figurative != figurative.Replace(m[2]) || g.Severity != severity[m[3]] || "M"+plusOne(g.Modality) != m[5] {
			t.Errorf("labels of %s = %s %s %s, the manifest has %v", g.ID, g.Figurative, g.Severity, g.Modality, m)
		}
	}
}

// plusOne turns a label index of a category whose codes count from 1 into its digit.
func plusOne(index string) string {
	if len(index) != 1 {
		return index
	}
	return string(index[0] + 1)
}
