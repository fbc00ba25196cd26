package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"rehydrate/manifest"
	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/dataset/duckdbtest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/workspace"
)

// TestRecorded replays posts as Reddit's API really answered for them, each with an image of
// its own: every post must end in the state that its recording shows. The states were worked
// out by hand from the recordings (pipeline/reddit/testdata).
func TestRecorded(t *testing.T) {
	long(t)
	t.Parallel()
	const recordings = "../../pipeline/reddit/testdata"
	want := recordedStates(t, filepath.Join(recordings, "reddit-states.csv"))
	var annotations strings.Builder
	annotations.WriteString("id,split,figurative,severity,related_content,modality,context\n")
	things := lines(t, filepath.Join(recordings, "reddit-things.jsonl"))
	for _, thing := range things {
		fmt.Fprintf(&annotations, "%s,train,F3,SS6,SR6,M1,C1\n", thingID(t, thing))
	}
	s := newSite(t, annotations.String(), fastPolicy)
	for _, thing := range things {
		p := redditemu.Post{ID: manifest.PostID(thingID(t, thing)), Kind: redditemu.KindSelf, Raw: thing}
		if err := s.emulator.Put(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, host := range []string{"i.redd.it", "i.imgur.com"} { // have a picture under any name
		s.emulator.Fault(hostile.Fault{Host: host, Kind: hostile.OnPicture(hostile.FaultKind{})})
	}
	sum := s.run(exitDone)
	if sum.Entries != len(things) || len(want) != len(things) {
		t.Fatalf("%d entries, %d recordings, %d states", sum.Entries, len(things), len(want))
	}
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	images := 0
	for p, err := range ws.Posts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.State != want[p.ID] {
			t.Errorf("state of %s = %s (%s), want %s", p.ID, p.State, p.Reason, want[p.ID])
		}
	}
	for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Image != nil {
			images++
			if want[rec.Key.ID] != manifest.StateLive {
				t.Errorf("the image of %s is stored, which is %s", rec.Key.ID, want[rec.Key.ID])
			}
		}
	}
	// 91 recordings are on i.redd.it, 58 on i.imgur.com, 15 are galleries; some of them are removed.
	if images < 100 {
		t.Errorf("only %d images were fetched", images)
	}
}

func recordedStates(t *testing.T, file string) map[manifest.PostID]manifest.PostState {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	states := map[manifest.PostID]manifest.PostState{}
	for _, r := range rows[1:] {
		states[manifest.PostID(r[0])] = manifest.PostState(r[1])
	}
	return states
}

func lines(t *testing.T, file string) []json.RawMessage {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []json.RawMessage
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		all = append(all, bytes.Clone(sc.Bytes()))
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func thingID(t *testing.T, thing json.RawMessage) string {
	t.Helper()
	var v struct{ Data struct{ ID string } }
	if err := json.Unmarshal(thing, &v); err != nil {
		t.Fatal(err)
	}
	return v.Data.ID
}

// TestFigSIM runs FigSIM's own shape, 1,049 made-up ids with the counts of its Table 8, through the emulator and
// Tesseract: only so many captions show whether the text of a picture reaches the dataset. The sample has every sixth
// of them and the fake ocr program.
func TestFigSIM(t *testing.T) {
	t.Parallel()
	long(t)
	b, err := os.ReadFile("../../manifest/testdata/annotations.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var ids []manifest.PostID
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	header, all := rows[0], rows[1:]
	rows = nil
	if err := w.Write(header); err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if i%often(1, 6) != 0 {
			continue
		}
		rows, ids = append(rows, r), append(ids, manifest.PostID(r[0]))
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	posts := redditemu.Scenario(ids, demoSeed)
	s := newSite(t, text.String(), fastPolicy, posts...)
	if full() {
		s = s.real()
	}
	sum := s.run(exitDone)
	got := s.outcomes()
	if len(got) != len(ids) || sum.Entries != len(ids) {
		t.Fatalf("outcomes.csv has %d rows, the summary %d, want %d", len(got), sum.Entries, len(ids))
	}
	for i, r := range got {
		if r.Key.ID != ids[i] {
			t.Fatalf("row %d is %s, the manifest has %s", i, r.Key.ID, ids[i])
		}
		if r.Outcome == manifest.Pending {
			t.Errorf("%s is still pending after a whole run", r.Key.ID)
		}
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
	if l := *sum.Looks; l.Resolve < batches || l.Resolve > batches+2 || l.Last < 1 || l.Last > batches || calls != l.Resolve+l.Last {
		t.Errorf("%d calls of /api/info, of which %+v, want %d and one or two to resolve and 1 to %d before the export", calls, l, batches, batches)
	}
	stranger(t, s, rows)
	if full() {
		expected(t, posts, got)
		recall(t, s, posts)
	}
	for _, mode := range [][]string{{"--offline"}, nil} {
		if r := s.audit(exitDone, mode...); r.Verdict != audit.Pass || r.Scope.Entries != len(ids) || r.Scope.LookedAt < len(ids)/2 {
			t.Errorf("audit %q of a workspace that is clean: %s of %+v", mode, r.Verdict, r.Scope)
		}
	}
	if r := s.verify(exitDone); !r.Whole || r.Images < len(ids)/2 {
		t.Errorf("verify: %+v", r)
	}
}

// expected holds the outcomes against what the emulator made the posts to be. Those that rest
// on what OCR reads may differ in a few; the others may not.
func expected(t *testing.T, posts []redditemu.Post, got []manifest.Result) {
	t.Helper()
	byText := map[manifest.Outcome]bool{manifest.Kept: true, manifest.Duplicate: true, manifest.NotEnglish: true, manifest.Unreadable: true}
	want := map[manifest.PostID]manifest.Outcome{}
	for _, p := range posts {
		want[p.ID] = p.WantOutcome
	}
	judged, differ := 0, map[string]int{}
	for _, r := range got {
		w := want[r.Key.ID]
		switch {
		case w == "" || w == r.Outcome:
		case byText[w] && byText[r.Outcome]:
			differ[fmt.Sprintf("%s for %s", r.Outcome, w)]++
		default:
			t.Errorf("outcome of %s = %s (%s), want %s", r.Key.ID, r.Outcome, r.Reason, w)
		}
		if byText[w] {
			judged++
		}
	}
	sum := 0
	for _, n := range differ {
		sum += n
	}
	t.Logf("outcomes that rest on OCR: %d, of them other than drawn: %v", judged, differ)
	if sum*20 > judged {
		t.Errorf("%d of %d outcomes that rest on OCR are other than drawn: more than 5 %%", sum, judged)
	}
}

// recall measures how much of the English captions that the emulator drew is in ocr_text.
func recall(t *testing.T, s *site, posts []redditemu.Post) {
	t.Helper()
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	read := map[manifest.PostID]string{}
	for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Reading != nil {
			read[rec.Key.ID] = rec.Reading.Text
		}
	}
	drawn, found := 0, 0
	for i, p := range posts {
		text, ok := read[p.ID]
		if !ok || i%4 != 0 || len(p.Images) != 1 || p.Images[0].Spec.Language != "" || p.WantOutcome != manifest.Kept {
			continue
		}
		d, err := redditemu.Draw(p.Images[0].Spec)
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]int{}
		for _, w := range wordsOf(text) {
			have[w]++
		}
		for _, w := range wordsOf(strings.Join(d.Words, " ")) {
			drawn++
			if have[w] > 0 {
				have[w]--
				found++
			}
		}
	}
	t.Logf("word recall on drawn captions: %d of %d = %.3f", found, drawn, float64(found)/float64(drawn))
	if drawn < 500 || found*10 < drawn*8 {
		t.Errorf("OCR found %d of %d drawn words, want at least 8 in 10 of many", found, drawn)
	}
}

// wordsOf are the runs of letters and digits of a text, in capitals, apostrophes dropped.
func wordsOf(text string) []string {
	text = strings.NewReplacer("'", "", "\u2019", "").Replace(strings.ToUpper(text))
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// stranger checks a workspace's Parquet with DuckDB: rows, images against their digests, and
// labels against the manifest.
func stranger(t *testing.T, s *site, rows [][]string) {
	t.Helper()
	kept := map[string]string{}
	for _, r := range s.outcomes() {
		if r.Outcome == manifest.Kept {
			kept[string(r.Key.ID)] = r.Split
		}
	}
	files := duckdbtest.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))
	var got []struct {
		ID, Split, Figurative, Severity, Modality string
		Good                                      bool
	}
	duckdbtest.Query(t, &got, `SELECT id AS "ID", regexp_extract(filename, 'data/([a-z]+)-', 1) AS "Split",
		array_to_string(figurative, '|') AS "Figurative", severity::VARCHAR AS "Severity", modality::VARCHAR AS "Modality",
		sha256(image.bytes) = sha256 AND length(phash) = 16 AND image.path IS NOT NULL AND width > 0 AND ocr_text IS NOT NULL AS "Good"
		FROM read_parquet(`+files+`, filename = true)`)
	if len(got) != len(kept) {
		t.Fatalf("DuckDB reads %d rows, outcomes.csv keeps %d", len(got), len(kept))
	}
	manifestRow := map[string][]string{}
	for _, r := range rows {
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
