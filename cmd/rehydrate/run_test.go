package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestDemoOutcomes runs the demo's posts and holds every entry's outcome, and the order of
// outcomes.csv, against what the emulator made the posts to be.
func TestDemoOutcomes(t *testing.T) {
	s, posts := demoSite(t)
	s.run(exitRetry) // one image of the demo can't be had for now

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

// TestEmulatorLog holds the run to the rules that Reddit could check from its side.
func TestEmulatorLog(t *testing.T) {
	t.Parallel()
	s, posts := demoSite(t)
	s.run(exitRetry)
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

// TestRunAgain shows that a finished workspace costs one call and changes no byte.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	before := s.dataset()
	s.emulator.ForgetRequests()
	if sum := s.run(exitDone); !sum.Unchanged {
		t.Error("the second run wrote the dataset again")
	}
	if n := len(s.imageRequests()); n != 0 {
		t.Errorf("the second run asked for %d images", n)
	}
	calls := 0
	for _, r := range s.emulator.Requests() {
		if r.Path == "/api/info" {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("the second run made %d calls of /api/info, want 1", calls)
	}
	if diff := cmp.Diff(before, s.dataset()); diff != "" {
		t.Error("the second run changed the dataset")
	}
}

// fewPosts are n live posts with a drawn image each.
func fewPosts(n int) []redditemu.Post {
	posts := make([]redditemu.Post, n)
	for i := range posts {
		posts[i] = redditemu.Post{ID: manifest.PostID(fmt.Sprintf("few%03d", i))}
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

// TestRemovedBetweenRuns takes posts down after a first run and looks for what is left.
func TestRemovedBetweenRuns(t *testing.T) {
	t.Parallel()
	posts := fewPosts(24)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	var kept []manifest.Result
	for _, r := range s.outcomes() {
		if r.Outcome == manifest.Kept {
			kept = append(kept, r)
		}
	}
	if len(kept) < 12 {
		t.Fatalf("only %d rows kept: too few to take two away", len(kept))
	}
	byMod, byAuthor := kept[0].Key.ID, kept[5].Key.ID
	text := readText(t, s, byMod)
	s.update(byMod, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
	s.update(byAuthor, func(p *redditemu.Post) { p.Condition = redditemu.Deleted })
	s.emulator.ForgetRequests()
	s.run(exitDone)
	if n := len(s.imageRequests()); n != 0 {
		t.Errorf("%d images were asked for", n)
	}
	want := map[manifest.PostID]manifest.Outcome{byMod: manifest.Removed, byAuthor: manifest.Deleted}
	for _, r := range s.outcomes() {
		if w := want[r.Key.ID]; w != "" && r.Outcome != w {
			t.Errorf("outcome of %s = %s, want %s", r.Key.ID, r.Outcome, w)
		}
	}
	for _, id := range []manifest.PostID{byMod, byAuthor} {
		if found, _ := filepath.Glob(filepath.Join(s.workspace, "images", "*", string(id)+"*")); len(found) > 0 {
			t.Errorf("%s is still there", found)
		}
	}
	if text == "" {
		t.Error("the removed post had no text to look for")
	} else {
		s.grep(text, "the text of a removed post")
	}
	for _, id := range s.rows() {
		if want[manifest.PostID(id)] != "" {
			t.Errorf("%s is still in the Parquet", id)
		}
	}

	// Restored by the moderators: it stays out.
	s.update(byMod, func(p *redditemu.Post) { p.Condition = redditemu.Live })
	s.run(exitDone)
	for _, r := range s.outcomes() {
		if r.Key.ID == byMod && (r.Outcome != manifest.Removed || r.Reason != "tombstone") {
			t.Errorf("%s came back as %s (%s)", byMod, r.Outcome, r.Reason)
		}
	}
}

func (s *site) update(id manifest.PostID, f func(*redditemu.Post)) {
	s.t.Helper()
	if err := s.emulator.Update(id, f); err != nil {
		s.t.Fatal(err)
	}
}

// TestMassRemoval takes half of the posts down at once: nothing is erased until confirmed.
func TestMassRemoval(t *testing.T) {
	t.Parallel()
	posts := fewPosts(8)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	images := func() int {
		found, _ := filepath.Glob(filepath.Join(s.workspace, "images", "*", "*"))
		return len(found)
	}
	before := images()
	for _, p := range posts[:4] {
		s.update(p.ID, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
	}
	sum := s.run(exitRetry)
	if sum.Withheld != 4 || sum.Outcomes[manifest.Removed] != 4 || !sum.MassRemoval {
		t.Errorf("withheld %d, removed %d, mass removal %t, want 4, 4 and true", sum.Withheld, sum.Outcomes[manifest.Removed], sum.MassRemoval)
	}
	if n := len(s.rows()); n != before-4 {
		t.Errorf("the Parquet has %d rows, want %d: withheld means not exported", n, before-4)
	}
	if got := images(); got != before {
		t.Errorf("%d images are left of %d: withheld means not erased", got, before)
	}
	if sum := s.run(exitDone, "--confirm-removals"); sum.Withheld != 0 {
		t.Errorf("still %d withheld after --confirm-removals", sum.Withheld)
	}
	if got := images(); got != before-4 {
		t.Errorf("%d images are left of %d after --confirm-removals, want four fewer", got, before)
	}
}

// TestKilled kills the run ten times, each a random moment after a random request; the dataset must come
// out as if it had never been, and the same for any number of workers.
func TestKilled(t *testing.T) {
	t.Parallel()
	annotations, posts := redditemu.Demo(demoSeed)
	start := func() *site { return newSite(t, string(annotations), fastPolicy, posts...) }
	whole := start()
	whole.run(exitRetry, "--workers", "2")
	want, wantRows := whole.dataset(), whole.outcomes()

	for _, workers := range []string{"1", "8"} {
		s := start()
		s.run(exitRetry, "--workers", workers)
		if !cmp.Equal(want, s.dataset()) {
			t.Errorf("the dataset of %s workers is another one", workers)
		}
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := start()
	kills := 0
	for range 10 {
		if s.killedAfter(1+random.Int64N(12), time.Duration(random.Int64N(int64(300*time.Millisecond)))) {
			kills++
		}
	}
	t.Logf("%d of 10 runs were killed before they ended", kills)
	if kills < 3 {
		t.Errorf("only %d of 10 runs were killed before they ended", kills)
	}
	s.run(exitRetry)
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
	err := cmd.Wait()
	close(ended)
	if err == nil {
		s.t.Error("a run of the demo ended in 0")
	}
	return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// TestInterrupted sends SIGINT in the middle of a run and goes on.
func TestInterrupted(t *testing.T) {
	s, _ := demoSite(t)
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
	s.run(exitRetry)
	whole, _ := demoSite(t)
	whole.run(exitRetry)
	if !cmp.Equal(whole.dataset(), s.dataset()) {
		t.Error("the dataset of an interrupted run is another one")
	}
	if first == 0 || len(s.imageRequests()) <= first {
		t.Errorf("%d image requests before the interrupt, %d in all: it was not in the middle", first, len(s.imageRequests()))
	}
}

// TestCanaries looks for what must never reach the disk.
func TestCanaries(t *testing.T) {
	t.Parallel()
	s, _ := demoSite(t)
	s.run(exitRetry)
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

// TestNoApproval shows that nothing is asked, and nothing written, without an approval.
func TestNoApproval(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	f := s.do(s.env(), "run", s.release, "-w", s.workspace, "--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert)
	if f.code != exitRejected || !strings.Contains(f.stderr, "--approval") {
		t.Errorf("exit %d, want %d and a hint to --approval:\n%s", f.code, exitRejected, f.stderr)
	}
	if n := len(s.emulator.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
	if _, err := os.Stat(s.workspace); err == nil {
		t.Error("the workspace was made")
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

// TestOutage shows that no answer is no evidence: while Reddit answers with nonsense a finished
// dataset stays as it is, until its rows are older than the policy allows to export.
func TestOutage(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	before := s.dataset()
	empty := s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", Kind: hostile.EmptyListing()})
	s.emulator.ForgetRequests()
	if sum := s.run(exitRetry); sum.Unverified != 5 || sum.Outcomes[manifest.Kept] != 5 {
		t.Errorf("in the outage: %d without a verdict and outcomes %v, want 5 and 5 kept", sum.Unverified, sum.Outcomes)
	}
	if empty.Fired() == 0 {
		t.Fatal("the outage never happened")
	}
	if !cmp.Equal(before, s.dataset()) {
		t.Error("an outage changed the dataset")
	}
	s.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	sum := s.run(exitRetry)
	if sum.Outcomes[manifest.Kept] != 0 || sum.Outcomes[manifest.Failed] != 5 {
		t.Errorf("49 hours after the last good answer: outcomes %v, want all 5 failed", sum.Outcomes)
	}
	if n := len(s.imageRequests()); n != 0 {
		t.Errorf("%d images were asked for without a verdict", n)
	}
	empty.Clear()
	if s.run(exitDone); !cmp.Equal(before, s.dataset()) {
		t.Error("the dataset after the outage is another one")
	}
}

// TestFlag shows what --filters flag keeps, and where it says so.
func TestFlag(t *testing.T) {
	t.Parallel()
	s, _ := demoSite(t)
	s.run(exitRetry)
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

// TestGallery asks for images of one post by their place in it.
func TestGallery(t *testing.T) {
	t.Parallel()
	post := redditemu.Post{ID: "gal001", Kind: redditemu.KindGallery, Images: []redditemu.Image{
		{Spec: redditemu.Spec{Seed: 1}}, {Spec: redditemu.Spec{Seed: 2}, Status: "failed"}, {Spec: redditemu.Spec{Seed: 3}}}}
	const header = "id,image,split,figurative,severity,related_content,modality,context\n"
	var rows strings.Builder
	for i := range 4 {
		fmt.Fprintf(&rows, "gal001,%d,train,F1,SS6,SR3,M1,C1\n", i)
	}
	s := newSite(t, header+rows.String(), fastPolicy, post)
	s.run(exitDone)
	var got []manifest.Outcome
	for _, r := range s.outcomes() {
		got = append(got, r.Outcome)
	}
	want := []manifest.Outcome{manifest.Kept, manifest.Gone, manifest.Kept, manifest.Gone}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes of the gallery's images (-want +got):\n%s", diff)
	}
	files, _ := filepath.Glob(filepath.Join(s.workspace, "images", "ga", "*"))
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	if diff := cmp.Diff([]string{"gal001-2.jpg", "gal001.jpg"}, files); diff != "" {
		t.Errorf("files of the gallery (-want +got):\n%s", diff)
	}
}

// rows are the ids in the workspace's Parquet, as DuckDB reads them.
func (s *site) rows() []string {
	s.t.Helper()
	var got []struct{ ID string }
	duckdbtest.Query(s.t, &got, `SELECT id AS "ID" FROM read_parquet(`+
		duckdbtest.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))+`)`)
	ids := make([]string, len(got))
	for i, g := range got {
		ids[i] = g.ID
	}
	return ids
}

func (s *site) images() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.workspace, "images", "*", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// mostlyRemoved are n posts of which only those named are live: what asking costs, without
// what fetching and reading would.
func mostlyRemoved(n int, live ...int) []redditemu.Post {
	posts := fewPosts(n)
	for i := range posts {
		if !slices.Contains(live, i) {
			posts[i].Condition = redditemu.Removed
		}
	}
	return posts
}

// TestOneOfFew removes one post of five: one alone is no mass removal.
func TestOneOfFew(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.update(posts[2].ID, func(p *redditemu.Post) { p.Condition = redditemu.Deleted })
	if s.run(exitDone); len(s.images()) != 4 {
		t.Errorf("images after one of five was deleted: %v", s.images())
	}
}

// TestHeldThenRemoved quarantines a post and then removes it: its image must go in that run.
func TestHeldThenRemoved(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.update(posts[0].ID, func(p *redditemu.Post) { p.Condition = redditemu.Quarantined })
	if sum := s.run(exitDone); sum.Outcomes[manifest.Refused] != 1 {
		t.Errorf("outcomes of a quarantined post: %v", sum.Outcomes)
	}
	s.update(posts[0].ID, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
	s.run(exitDone)
	if n := len(s.images()); n != 2 {
		t.Errorf("%d images are left, want 2", n)
	}
}

// TestAloneInItsBatch makes the one post of the second batch vanish: with nothing else in the
// answer its absence is seen only beside a post that is known to be live.
func TestAloneInItsBatch(t *testing.T) {
	t.Parallel()
	posts := mostlyRemoved(101, 0, 1, 100)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.update(posts[100].ID, func(p *redditemu.Post) { p.Condition = redditemu.Absent })
	sum := s.run(exitDone)
	if sum.Outcomes[manifest.Unavailable] != 1 || len(s.images()) != 2 {
		t.Errorf("outcomes %v, images %v, want one unavailable and two images", sum.Outcomes, s.images())
	}
}

// TestRemovalThenBlock learns of a deletion and is then blocked by Reddit: the row leaves the
// dataset all the same, and the next run erases the rest.
func TestRemovalThenBlock(t *testing.T) {
	t.Parallel()
	posts := mostlyRemoved(150, 0, 1, 2)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	gone := posts[1].ID
	s.update(gone, func(p *redditemu.Post) { p.Condition = redditemu.Deleted })
	block := s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", After: 1, Kind: hostile.BlockedHTML()})
	f := s.do(s.env(), s.args()...)
	if f.code != exitRejected || block.Fired() == 0 {
		t.Fatalf("exit %d, want %d; the block fired %d times\n%s", f.code, exitRejected, block.Fired(), f.stderr)
	}
	if slices.Contains(s.rows(), string(gone)) {
		t.Error("the row of a deleted post is still in the dataset")
	}
	if f := s.do(s.env(), "status", "-w", s.workspace); strings.Contains(f.stdout, "outage") || !strings.Contains(f.stdout, "could erase them") {
		t.Errorf("status after the block:\n%s", f.stdout)
	}
	block.Clear()
	s.run(exitDone)
	if n := len(s.images()); n != 2 {
		t.Errorf("%d images are left, want 2", n)
	}
}

// TestDigestChange corrects a wrong digest of the manifest, and breaks a right one: the same
// release gives the same answers, whatever was there before.
func TestDigestChange(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	s := newSite(t, "", fastPolicy, posts...)
	manifestWith := func(digest string) {
		s.write(filepath.Join(s.release, "annotations.csv"), "id,split,figurative,severity,related_content,modality,context,sha256\n"+
			"few000,train,F1,SS6,SR3,M1,C1,"+digest+"\nfew001,train,F1,SS6,SR3,M1,C1,\n")
	}
	wrong := strings.Repeat("0", 64)
	outcome := func() manifest.Outcome { return s.outcomes()[0].Outcome }
	for _, step := range []struct {
		digest string
		want   manifest.Outcome
	}{{wrong, manifest.Changed}, {"", manifest.Kept}, {wrong, manifest.Changed}} {
		manifestWith(step.digest)
		if s.run(exitDone); outcome() != step.want {
			t.Errorf("outcome with digest %q = %s, want %s", step.digest, outcome(), step.want)
		}
	}
}

// TestRehearsal keeps made-up posts and real ones out of each other's workspace.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	f := s.do(s.env(), "demo", "--release", s.release, "-w", s.workspace, "--ocr", s.ocrPath())
	if f.code != exitUsage || !strings.Contains(f.stderr, "rehearsal of Demo") {
		t.Errorf("a rehearsal in a real workspace: exit %d\n%s", f.code, f.stderr)
	}
}

// TestManifestLoss refuses a manifest that names few of the stored images.
func TestManifestLoss(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts[4:]))
	f := s.do(s.env(), s.args()...)
	if f.code != exitUsage || !strings.Contains(f.stderr, "no longer names 4 of the 6 images") || len(s.images()) != 6 {
		t.Errorf("a manifest without most images: exit %d, %d images left\n%s", f.code, len(s.images()), f.stderr)
	}
	s.emulator.ForgetRequests()
	if sum := s.run(exitDone, "--confirm-removals"); sum.Entries != 2 || len(s.images()) != 2 {
		t.Errorf("confirmed: %d entries and %d images, want 2 and 2", sum.Entries, len(s.images()))
	}
	if n := len(s.imageRequests()); n != 0 {
		t.Errorf("%d images were fetched again", n)
	}
}

// TestDamagedImages flips a byte in several stored images: the next run that exports leaves
// them out, and the one after it has them again.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	before := s.dataset()
	for _, name := range s.images()[:4] {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(s.workspace, "dataset")); err != nil {
		t.Fatal(err)
	}
	if sum := s.run(exitRetry); sum.Outcomes[manifest.Failed] != 4 || sum.Outcomes[manifest.Kept] != 2 {
		t.Errorf("outcomes with four damaged images: %v", sum.Outcomes)
	}
	if s.run(exitDone); !cmp.Equal(before, s.dataset()) {
		t.Error("the dataset after the repair is another one")
	}
}

// TestGuardOutlastsAnOutage withholds a mass removal and then loses half of Reddit's answers:
// the removals that were seen before still count, and nothing is erased.
func TestGuardOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	posts := mostlyRemoved(150, 0, 1, 120)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	for _, i := range []int{0, 120} {
		s.update(posts[i].ID, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
	}
	if sum := s.run(exitRetry); !sum.MassRemoval || sum.Withheld != 2 {
		t.Fatalf("two of three removed: %d withheld, mass removal %t", sum.Withheld, sum.MassRemoval)
	}
	outage := s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", After: 1, Kind: hostile.HTML200()})
	sum := s.run(exitRetry)
	if outage.Fired() == 0 || sum.Unverified != 50 {
		t.Errorf("the outage fired %d times and left %d posts without a verdict, want 50", outage.Fired(), sum.Unverified)
	}
	if !sum.MassRemoval || sum.Withheld != 2 || len(s.images()) != 3 {
		t.Errorf("in the outage: %d withheld, mass removal %t, %d images, want 2, true and 3", sum.Withheld, sum.MassRemoval, len(s.images()))
	}
	outage.Clear()
	if s.run(exitDone, "--confirm-removals"); len(s.images()) != 1 {
		t.Errorf("confirmed: %d images, want 1", len(s.images()))
	}
}

// TestConfirmationIsForWhatWasSeen gives the confirmation before there is anything to confirm.
func TestConfirmationIsForWhatWasSeen(t *testing.T) {
	t.Parallel()
	posts := fewPosts(4)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	for _, p := range posts[:3] {
		s.update(p.ID, func(p *redditemu.Post) { p.Condition = redditemu.Removed })
	}
	if sum := s.run(exitRetry, "--confirm-removals"); sum.Withheld != 3 || len(s.images()) != 4 {
		t.Errorf("confirmed in advance: %d withheld, %d images, want 3 and 4", sum.Withheld, len(s.images()))
	}
}

// TestTombstoneWhileBlocked adds a tombstone to the release while Reddit blocks the operator:
// the row leaves the dataset all the same, beside a damaged image.
func TestTombstoneWhileBlocked(t *testing.T) {
	t.Parallel()
	posts := fewPosts(4)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.write(filepath.Join(s.release, "tombstones.csv"), "id,state,time\n"+string(posts[3].ID)+",deleted,2026-01-01T00:00:00Z\n")
	damaged := s.images()[0]
	if err := os.WriteFile(damaged, make([]byte, fileSize(t, damaged)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", Kind: hostile.BlockedHTML()})
	if f := s.do(s.env(), s.args()...); f.code != exitRejected {
		t.Fatalf("exit %d, want %d\n%s", f.code, exitRejected, f.stderr)
	}
	if rows := s.rows(); len(rows) != 2 || slices.Contains(rows, string(posts[3].ID)) {
		t.Errorf("rows %v, want the two whole ones", rows)
	}
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestLimitsChange lowers the policy's limits over stored images, and raises them again.
func TestLimitsChange(t *testing.T) {
	t.Parallel()
	posts := fewPosts(2)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.write(filepath.Join(s.release, "policy.toml"), fastPolicy+"\n[images]\nmax_side = 100\n")
	if sum := s.run(exitDone); sum.Outcomes[manifest.Invalid] != 2 || len(s.images()) != 0 {
		t.Errorf("under lower limits: outcomes %v, images %v", sum.Outcomes, s.images())
	}
	s.write(filepath.Join(s.release, "policy.toml"), fastPolicy)
	if sum := s.run(exitDone); sum.Outcomes[manifest.Kept] != 2 {
		t.Errorf("under the old limits: outcomes %v", sum.Outcomes)
	}
}
