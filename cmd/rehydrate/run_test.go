package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/duckdbtest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/workspace"
)

// TestDemo runs the demo's posts once, with Tesseract: what the words of a picture decide, from its pixels to the
// Parquet that strangers read and the report that people see, is seen by no smaller test.
func TestDemo(t *testing.T) {
	long(t)
	t.Parallel()
	s, posts := demoSite(t)
	s.run(exitRetry) // one image of the demo can't be had for now
	for _, part := range []struct {
		name string
		test func(*testing.T, *site, []redditemu.Post)
	}{{"outcomes", demoOutcomes}, {"requests", demoRequests}, {"canaries", demoCanaries},
		{"stranger", func(t *testing.T, s *site, _ []redditemu.Post) { stranger(t, s, annotations(t, s)) }}, {"report", demoReport}, {"flag", demoFlag}} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s.on(t, s.workspace), posts) })
	}
}

// demoOutcomes holds every entry's outcome, and the order of outcomes.csv, against what the emulator made the posts to be.
func demoOutcomes(t *testing.T, s *site, posts []redditemu.Post) {
	want := map[manifest.PostID]manifest.Outcome{}
	for _, p := range posts {
		want[p.ID] = p.WantOutcome
	}
	rows := annotations(t, s)
	got := s.outcomes()
	if len(got) != len(rows) {
		t.Fatalf("outcomes.csv has %d rows, the manifest %d", len(got), len(rows))
	}
	seen := map[manifest.Outcome]int{}
	for i, r := range got {
		seen[r.Outcome]++
		if string(r.Key.ID) != rows[i][0] || r.Split != rows[i][1] {
			t.Errorf("row %d is %s %s, the manifest has %s %s", i, r.Key.ID, r.Split, rows[i][0], rows[i][1])
		}
		if w := want[r.Key.ID]; w != "" && r.Outcome != w {
			t.Errorf("outcome of %s = %s (%s, %s), want %s", r.Key.ID, r.Outcome, r.Reason, r.Detail, w)
		}
	}
	for _, o := range []manifest.Outcome{manifest.Kept, manifest.Duplicate, manifest.NotEnglish, manifest.Removed, manifest.Deleted,
		manifest.Unavailable, manifest.NoMedia, manifest.Gone, manifest.Placeholder, manifest.Invalid, manifest.Refused, manifest.Failed} {
		if seen[o] == 0 {
			t.Errorf("no entry of the demo ended as %s", o)
		}
	}
}

func annotations(t *testing.T, s *site) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.release, "annotations.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// demoRequests holds the run to the rules that Reddit could check from its side.
func demoRequests(t *testing.T, s *site, posts []redditemu.Post) {
	states := map[manifest.PostID]manifest.PostState{}
	urls := map[string]manifest.PostID{}
	for _, p := range posts {
		states[p.ID] = p.Condition.State()
		for _, u := range p.URLs() {
			urls[u] = p.ID
		}
	}
	agent := regexp.MustCompile(`^linux:rehydrate:[^ ]+ \(by /u/test_user\)$`)
	var api []hostile.Request
	for _, r := range s.emulator.Requests() {
		if !agent.MatchString(r.UserAgent) {
			t.Errorf("%s %s%s: User-Agent %q is not of the form Reddit wants", r.Method, r.Host, r.Path, r.UserAgent)
		}
		if r.Auth == "bearer" && r.Host != "oauth.reddit.com" {
			t.Errorf("the bearer token was sent to %s", r.Host)
		}
		if len(r.IDs) > 100 {
			t.Errorf("%d ids in one call", len(r.IDs))
		}
		if r.Host == "www.reddit.com" || r.Host == "oauth.reddit.com" {
			api = append(api, r)
		} else if r.Referer != "" {
			t.Errorf("%s was sent a Referer", r.Host)
		}
		if id, ok := urls["https://"+r.Host+r.Path]; ok && states[id] != manifest.StateLive {
			t.Errorf("the image of %s was asked for, which is %s", id, states[id])
		}
	}
	// The policy allows 100 a minute, and a client that has rested 20 at once. What arrives may be
	// closer by the time the earlier one spent on its way, hence the small allowance.
	for i := range api {
		for j := i + 1; j < len(api); j++ {
			d, n := api[j].Time.Sub(api[i].Time)+50*time.Millisecond, j-i+1
			if d < time.Minute && n > 100 || float64(n) > 20+d.Minutes()*100 {
				t.Fatalf("%d requests to Reddit came within %v: more than 100 a minute, or a burst of more than 20", n, d)
			}
		}
	}
	if len(api) < 3 {
		t.Errorf("only %d requests to Reddit's API: the test saw too little", len(api))
	}
}

// fewPosts are n live posts with a sketch each, whose text no other of the first 30 has.
func fewPosts(n int) []redditemu.Post {
	posts := make([]redditemu.Post, n)
	for i := range posts {
		posts[i] = redditemu.Post{ID: manifest.PostID(fmt.Sprintf("few%03d", i)),
			Images: []redditemu.Image{sketch(firstOwn+i%(len(captions)-firstOwn), uint64(1000+i), 0, "jpg")}}
	}
	return posts
}

func fewAnnotations(posts []redditemu.Post) string {
	var b strings.Builder
	b.WriteString("id,split,figurative,severity,related_content,modality,context\n")
	for i, p := range posts {
		fmt.Fprintf(&b, "%s,%s,F1|F3,SS6,SR3,M1,C1\n", p.ID, []string{"train", "validation", "test"}[i%3])
	}
	return b.String()
}

func (s *site) update(id manifest.PostID, f func(*redditemu.Post)) {
	s.t.Helper()
	if err := s.emulator.Update(id, f); err != nil {
		s.t.Fatal(err)
	}
}

// TestKilled kills the run several times, each a random moment after a random request; the dataset must come
// out as if it had never been, and the same for any number of workers.
func TestKilled(t *testing.T) {
	long(t)
	t.Parallel()
	posts := pinnedPosts() // in every state, with near-duplicates
	start := func() *site { return newSite(t, fewAnnotations(posts), fastPolicy, posts...) }
	whole := start()
	whole.run(exitDone, "--workers", "2")
	want, wantRows := whole.dataset(), whole.outcomes()

	for _, workers := range []string{"1", "8"} {
		s := start()
		s.run(exitDone, "--workers", workers)
		if !cmp.Equal(want, s.dataset()) {
			t.Errorf("the dataset of %s workers is another one", workers)
		}
	}

	random, _ := chance(t)
	s := start()
	kills, tries := 0, often(10, 4)
	for range tries {
		if s.killedAfter(1+random.Int64N(8), time.Duration(random.Int64N(int64(100*time.Millisecond)))) {
			kills++
		}
	}
	t.Logf("%d of %d runs were killed before they ended", kills, tries)
	if kills == 0 {
		t.Error("no run was killed before it ended")
	}
	s.run(exitDone)
	if !cmp.Equal(want, s.dataset()) {
		t.Error("the dataset of a run that was killed is another one")
	}
	if diff := cmp.Diff(wantRows, s.outcomes()); diff != "" {
		t.Errorf("outcomes of a run that was killed (-whole +killed):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(s.workspace, "images", "*", ".*")); len(left) > 0 {
		t.Errorf("temporary files are left: %s", left)
	}
}

// killedAfter starts a run in a process of its own, kills it some time after its n-th request, and reports
// whether that ended it.
func (s *site) killedAfter(n int64, pause time.Duration) bool {
	s.t.Helper()
	reached := make(chan struct{})
	var requests atomic.Int64
	s.emulator.OnRequest(func(hostile.Request) {
		if requests.Add(1) == n {
			close(reached)
		}
	})
	defer s.emulator.OnRequest(nil)
	cmd := s.child(s.t.Context(), nil)
	ended := make(chan struct{})
	go func() {
		select {
		case <-reached:
			timer := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
			<-ended
			timer.Stop()
		case <-ended:
		}
	}()
	_ = cmd.Wait() // killed, or done
	close(ended)
	return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// TestInterrupted sends SIGINT in the middle of a run and goes on.
func TestInterrupted(t *testing.T) {
	long(t)
	t.Parallel()
	posts := fewPosts(60)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	asked := make(chan struct{}, 1000)
	s.emulator.OnRequest(func(r hostile.Request) {
		if r.Host == "i.redd.it" {
			asked <- struct{}{}
		}
	})
	var stderr bytes.Buffer
	cmd := s.child(t.Context(), &stderr)
	for range 5 {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatalf("the run asked for no image within a minute:\n%s", &stderr)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit %d, want %d\n%s", code, exitInterrupted, &stderr)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v to stop", d)
	}
	s.emulator.OnRequest(nil)
	first := len(s.imageRequests())
	s.run(exitDone)
	whole := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	whole.run(exitDone)
	if !cmp.Equal(whole.dataset(), s.dataset()) {
		t.Error("the dataset of an interrupted run is another one")
	}
	if first == 0 || len(s.imageRequests()) <= first {
		t.Errorf("%d image requests before the interrupt, %d in all: it was not in the middle", first, len(s.imageRequests()))
	}
}

// demoCanaries looks for what must never reach the disk.
func demoCanaries(t *testing.T, s *site, _ []redditemu.Post) {
	for _, canary := range hostile.Canaries() {
		s.grep(canary, "a canary")
	}
	for _, secret := range []string{s.emulator.Secret, "Exif\x00\x00II", "http://ns.adobe.com/xap", "/comments/", "https://i.redd.it/"} {
		s.grep(secret, "what must not be stored")
	}
}

// grep fails the test for every file of the workspace that holds text.
func (s *site) grep(text, what string) {
	s.t.Helper()
	files := 0
	err := filepath.WalkDir(s.workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			s.t.Errorf("%s holds %s: %q", path, what, text)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if files < 3 {
		s.t.Errorf("only %d files in the workspace: nothing was searched", files)
	}
}

// readText is the stored text of a post's first image.
func readText(t *testing.T, s *site, id manifest.PostID) string {
	t.Helper()
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for rec, err := range ws.Records(t.Context(), workspace.Select{ID: id}) {
		if err != nil {
			t.Fatal(err)
		}
		return rec.Reading.Text
	}
	t.Fatalf("no entry %s", id)
	return ""
}

// demoFlag shows what --filters flag keeps, and where it says so.
func demoFlag(t *testing.T, s *site, _ []redditemu.Post) {
	marked := map[manifest.Key]manifest.Outcome{}
	for _, r := range s.outcomes() {
		if r.Outcome == manifest.Duplicate || r.Outcome == manifest.NotEnglish || r.Outcome == manifest.Unreadable {
			marked[r.Key] = r.Outcome
		}
	}
	sum := s.run(exitRetry, "--filters", "flag")
	if len(marked) == 0 || sum.Flagged != len(marked) {
		t.Errorf("%d rows are flagged, %d were dropped", sum.Flagged, len(marked))
	}
	for _, r := range s.outcomes() {
		if want, ok := marked[r.Key]; ok && (r.Outcome != manifest.Kept || r.Reason != manifest.Reason(want)) {
			t.Errorf("%s = %s (%s), want kept (%s)", r.Key.ID, r.Outcome, r.Reason, want)
		}
	}
	var got []struct {
		ID, Filter string
	}
	duckdbtest.Query(t, &got, `SELECT id AS "ID", filter AS "Filter" FROM read_parquet(`+
		duckdbtest.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))+`) WHERE filter IS NOT NULL`)
	if len(got) != len(marked) {
		t.Errorf("the filter column marks %d rows, want %d", len(got), len(marked))
	}
	for _, g := range got {
		if want := marked[manifest.Key{ID: manifest.PostID(g.ID)}]; string(want) != g.Filter {
			t.Errorf("filter of %s = %s, want %s", g.ID, g.Filter, want)
		}
	}
}

func (s *site) images() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.workspace, "images", "*", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
