package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

func (s *site) ocrArgs(more ...string) []string {
	return append([]string{"ocr", s.release, "-w", s.workspace, "--ocr", s.reader}, more...)
}

// ocr reads the release again with --json; any status but want ends the test.
func (s *site) ocr(want int, more ...string) pipeline.Reread {
	s.t.Helper()
	var r pipeline.Reread
	s.ocrInto(&r, want, more...)
	return r
}

func (s *site) ocrInto(into any, want int, more ...string) {
	s.t.Helper()
	f := s.do(nil, s.ocrArgs(append(more, "--json")...)...)
	if f.code != want {
		s.t.Fatalf("ocr = exit %d, want %d\n%s%s", f.code, want, f.stderr, f.stdout)
	}
	if err := json.Unmarshal([]byte(f.stdout), into); err != nil {
		s.t.Fatalf("ocr --json: %v\n%s", err, f.stdout)
	}
}

// records reads what the workspace knows.
func (s *site) records() []workspace.Record {
	s.t.Helper()
	ws, err := workspace.Open(s.t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer ws.Close()
	var all []workspace.Record
	for rec, err := range ws.Records(s.t.Context(), workspace.Select{WithEarlier: true, WithWords: true}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

// age gives entries readings of an older engine, which change makes, and what an old run made of them.
func (s *site) age(change func(*workspace.Record)) {
	s.t.Helper()
	ctx, all := s.t.Context(), s.records()
	ws, err := workspace.Open(ctx, s.workspace, workspace.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer ws.Close()
	for i := range all {
		change(&all[i])
		if err := ws.SetReading(ctx, all[i].Key, *all[i].Reading); err != nil {
			s.t.Fatal(err)
		}
	}
	var results []manifest.Result
	for _, r := range all {
		results = append(results, *r.Result)
	}
	if err := ws.SetResults(ctx, results); err != nil {
		s.t.Fatal(err)
	}
}

// TestReread reads stale images again and no others, tells what changed, and makes the very
// dataset that a run with the new engine makes.
func TestReread(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	fresh := s.dataset()
	var text string
	s.age(func(r *workspace.Record) {
		switch r.ID {
		case "few001":
			first, rest, _ := strings.Cut(r.Reading.Text, " ")
			r.Reading.Fingerprint, r.Reading.Text, text = "older", "MISREAD "+rest, first
		case "few003":
			r.Reading.Fingerprint, r.Reading.Words, r.Reading.Text = "older", nil, ""
			r.Result.Outcome, r.Result.Reason = manifest.NotEnglish, "foreign_words"
		}
	})
	s.emulator.ForgetRequests()
	var plan pipeline.Workload
	s.ocrInto(&plan, exitDone, "--dry-run")
	if diff := cmp.Diff(pipeline.Workload{Images: 5, Read: 2}, plan); diff != "" {
		t.Errorf("what is to do (-want +got):\n%s", diff)
	}
	got := s.ocr(exitDone)
	if got.Read != 2 || got.Changed != 2 || len(got.Texts) != 2 || got.Lost != 1 {
		t.Errorf("read again: %+v", got)
	}
	if diff := cmp.Diff(pipeline.TextChange{ID: "few001", Gained: []string{text}, Lost: []string{"MISREAD"}}, got.Texts[0]); diff != "" {
		t.Errorf("the changed text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]pipeline.OutcomeChange{{ID: "few003", Old: state.Conclusion{Outcome: manifest.NotEnglish, Reason: "foreign_words"},
		New: state.Conclusion{Outcome: manifest.Kept}}}, got.Outcomes); diff != "" {
		t.Errorf("the changed outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fresh, s.dataset()); diff != "" {
		t.Error("the dataset is not the one that a run with the present engine made")
	}
	if again := s.ocr(exitDone); again.Read != 0 || again.Changed != 0 || len(again.Outcomes) != 0 || !again.Summary.Unchanged {
		t.Errorf("a second time: %+v", again)
	}
	if forced := s.ocr(exitDone, "--force"); forced.Read != 5 || forced.Changed != 0 || !forced.Summary.Unchanged {
		t.Errorf("by force: %+v", forced)
	}
	for _, r := range s.records() {
		if r.Earlier != (workspace.Earlier{}) {
			t.Errorf("%s: what it was compared with is still there: %+v", r.ID, r.Earlier)
		}
	}
	if n := len(s.emulator.Requests()); n != 0 {
		t.Errorf("ocr sent %d requests", n)
	}
}

// TestRereadText reads what people read.
func TestRereadText(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.age(func(r *workspace.Record) {
		r.Reading.Fingerprint, r.Reading.Text = "older", r.Reading.Text+" \x1b[2Jwrong"
		r.Result.Outcome, r.Result.Reason = manifest.Unreadable, "low_dictionary_hit"
	})
	f := s.do(nil, s.ocrArgs("--dry-run")...)
	if want := "to read again: 3 of 3 images; how long that takes is known after the first reading\n"; f.stdout != want || f.code != exitDone {
		t.Errorf("ocr --dry-run = exit %d, %q, want %q", f.code, f.stdout, want)
	}
	f = s.do(nil, s.ocrArgs("-v")...)
	for _, want := range []string{"read again: 3 images; 3 texts changed, 0 words gained, 3 words lost\n  few000: -[2Jwrong\n",
		"3 entries have another outcome\n  few000: unreadable, low_dictionary_hit -> kept\n", "unchanged in "} {
		if !strings.Contains(f.stdout, want) || f.code != exitDone {
			t.Errorf("ocr = exit %d, and does not say %q:\n%s%s", f.code, want, f.stdout, f.stderr)
		}
	}
	if strings.Contains(f.stdout, "\x1b") {
		t.Error("an escape sequence of the old text reached the terminal")
	}
}

// TestRereadRules: ocr keeps to the rules of run: what was last seen live too long ago is left
// out, a grant is needed where the policy says so, one command at a time works in a workspace.
func TestRereadRules(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	if f := s.do(nil, s.ocrArgs()...); f.code != exitUsage || !strings.Contains(f.stderr, "rehydrate run RELEASE") {
		t.Errorf("ocr without a workspace = exit %d\n%s", f.code, f.stderr)
	}
	if _, err := os.Stat(s.workspace); err == nil {
		t.Error("ocr made a workspace")
	}
	s.run(exitDone)
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := s.do(nil, s.ocrArgs()...); f.code != exitInUse {
		t.Errorf("ocr in a workspace in use = exit %d, want %d\n%s", f.code, exitInUse, f.stderr)
	}
	for _, args := range [][]string{s.ocrArgs("--dry-run"), {"explain", "few000", "-w", s.workspace}} {
		if f := s.do(nil, args...); f.code != exitDone {
			t.Errorf("%s in a workspace in use = exit %d\n%s", args, f.code, f.stderr)
		}
	}
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
	close(s.stop)
	if f := s.do(nil, s.ocrArgs("--force")...); f.code != exitInterrupted || !strings.Contains(f.stderr, "again to go on") {
		t.Errorf("ocr that is interrupted = exit %d, want %d\n%s", f.code, exitInterrupted, f.stderr)
	}
	s.stop = make(chan struct{})
	s.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	var plan pipeline.Workload
	s.ocrInto(&plan, exitDone, "--dry-run")
	if plan.Left != 3 {
		t.Errorf("49 hours later %d rows would be left out, want 3", plan.Left)
	}
	if got := s.ocr(exitRetry); got.Summary.Outcomes[manifest.Failed] != 3 || len(got.Outcomes) != 3 || got.Outcomes[0].New.Reason != "not_rechecked" {
		t.Errorf("49 hours later: %+v", got)
	}
	s.now = time.Now
	s.write(filepath.Join(s.release, "policy.toml"), "[access]\ngrant = \"required\"\n"+fastPolicy)
	before := s.dataset()
	if f := s.do(nil, s.ocrArgs("--force")...); f.code != exitRejected || !strings.Contains(f.stderr, "grant") {
		t.Errorf("ocr without a grant = exit %d\n%s", f.code, f.stderr)
	}
	if diff := cmp.Diff(before, s.dataset()); diff != "" {
		t.Error("ocr without a grant changed the dataset")
	}
}

// TestRereadKilled kills a re-reading on its way: nothing is exported, the old texts are there, a
// run goes on, and the next ocr reports the whole.
func TestRereadKilled(t *testing.T) {
	long(t)
	t.Parallel()
	posts := fewPosts(30)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	read := 0
	s.age(func(r *workspace.Record) {
		r.Reading.Fingerprint, r.Reading.Text = "older", "old text of "+string(r.ID)
		read++
	})
	before := s.dataset()
	cmd := exec.CommandContext(t.Context(), os.Args[0], s.ocrArgs("--workers", "1")...)
	cmd.Env = append(os.Environ(), childVar+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reread := func() (n int) {
		for _, r := range s.records() {
			if r.Earlier.Read {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); reread() < 3 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	n := reread()
	if n < 3 || n == read {
		t.Fatalf("killed after %d of %d images: the test shows nothing", n, read)
	}
	for _, r := range s.records() {
		if old := "old text of " + string(r.ID); r.Earlier.Text != old && r.Reading.Text != old {
			t.Errorf("%s: the old text is lost: %+v", r.ID, r.Earlier)
		}
	}
	if diff := cmp.Diff(before, s.dataset()); diff != "" {
		t.Error("the killed re-reading changed the dataset")
	}
	s.run(exitDone)
	got := s.ocr(exitDone)
	if got.Read != read || got.Changed != read {
		t.Errorf("after a kill and a run: %d read, %d changed, want %d", got.Read, got.Changed, read)
	}
	if diff := cmp.Diff(before, s.dataset()); diff != "" {
		t.Error("the dataset is not the one that a run with the present engine made")
	}
	if got := s.ocr(exitDone); got.Read != 0 {
		t.Errorf("reported twice: %+v", got)
	}
	s.ocr(exitDone, "--force")
	var plan pipeline.Workload
	if s.ocrInto(&plan, exitDone, "--force", "--dry-run"); plan.Read != read || plan.Rate <= 0 || plan.Estimate <= 0 {
		t.Errorf("after %d images were read in one go, the plan is %+v", read, plan)
	}
}

// TestRereadHash reads images again whose hashes are of another kind: no row leaves the dataset, and the
// log tells of no download.
func TestRereadHash(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	fresh, ctx := s.dataset(), t.Context()
	all := s.records()
	ws, err := workspace.Open(ctx, s.workspace, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, r := range all {
		body, err := ws.ReadImage(ctx, r.Key, *r.Image)
		if err != nil {
			t.Fatal(err)
		}
		r.Image.HashKind, r.Image.PHash = "older", 1
		for _, err := range []error{ws.StoreImage(ctx, r.Key, body, *r.Image), ws.SetReading(ctx, r.Key, *r.Reading), ws.SetPosts(ctx, []workspace.Post{r.Post})} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
	fetched := func() (n int) {
		for _, h := range s.explain("few000").History {
			if h.Kind == auditlog.Fetch {
				n++
			}
		}
		return n
	}
	before := fetched()
	if got := s.ocr(exitDone); got.Read != 3 || got.Changed != 0 || len(got.Outcomes) != 0 {
		t.Errorf("with hashes of another kind: %+v", got)
	}
	if diff := cmp.Diff(fresh, s.dataset()); diff != "" {
		t.Error("the dataset is not the one that it was")
	}
	if n := fetched(); n != before {
		t.Errorf("the log tells of %d downloads, want %d: nothing was downloaded", n, before)
	}
}

// TestMaskUnanswered turns masking on while Reddit gives no verdict: the row stays, and without the name.
func TestMaskUnanswered(t *testing.T) {
	t.Parallel()
	post := captioned("few000", withHandle, 7, 0)
	s := newSite(t, fewAnnotations([]redditemu.Post{post}), fastPolicy+"\n[text]\nmask_names = false\n", post)
	s.run(exitDone)
	s.write(filepath.Join(s.release, "policy.toml"), fastPolicy)
	s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", Kind: hostile.EmptyListing()})
	if sum := s.run(exitRetry); sum.Unverified != 1 || sum.Outcomes[manifest.Kept] != 1 || sum.Masked.Names != 1 {
		t.Errorf("without a verdict: %+v", sum)
	}
	for name, body := range s.dataset() {
		if strings.HasSuffix(name, ".parquet") && bytes.Contains(parquetValues(t, []byte(body)), []byte("somebody")) {
			t.Errorf("masking on: %s holds the name", name)
		}
	}
}

// oldTexts begins a re-reading that has read two rows again: the first one's old text is hostile and
// was stored while names were not masked, the post of the second one was withheld since.
func (s *site) oldTexts() {
	s.t.Helper()
	ctx, all := s.t.Context(), s.records()
	ws, err := workspace.Open(ctx, s.workspace, workspace.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer ws.Close()
	withheld := all[1].Post
	withheld.State, withheld.Reason, withheld.Withheld = manifest.StateRemoved, "moderator", true
	for _, err := range []error{ws.BeginReread(ctx),
		ws.Reread(ctx, all[0].Key, *all[0].Reading, "u/somebody OLDWORD <script>alert(1)</script> \x1b[2J"),
		ws.Reread(ctx, all[1].Key, *all[1].Reading, "GONEWORD"), ws.SetPosts(ctx, []workspace.Post{withheld})} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestRereadReport writes what changed as a page: outside the workspace alone, escaped, without names
// and without a word of a post that is gone. The workspace keeps numbers.
func TestRereadReport(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.oldTexts()
	dir := t.TempDir()
	if err := os.Symlink(s.workspace, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{filepath.Join(s.workspace, "changes.html"), filepath.Join(s.workspace, "dataset", "changes.html"),
		filepath.Join(dir, "link", "changes.html"), filepath.Join(dir, "nosuch", "changes.html"), dir} {
		if f := s.do(nil, s.ocrArgs("--report", bad)...); f.code != exitUsage || !strings.Contains(f.stderr, "--report") {
			t.Errorf("ocr --report %s = exit %d, want %d\n%s", bad, f.code, exitUsage, f.stderr)
		}
	}
	page := filepath.Join(dir, "changes.html")
	if f := s.do(nil, s.ocrArgs("--dry-run", "--report", page)...); f.code != exitUsage {
		t.Errorf("ocr --dry-run --report = exit %d, want %d", f.code, exitUsage)
	}
	// A name that is too long for the file system.
	if f := s.do(nil, s.ocrArgs("--report", filepath.Join(dir, strings.Repeat("x", 256)))...); f.code != exitFailed || !strings.Contains(f.stderr, "hint: all is read") {
		t.Errorf("ocr --report to a file that can't be written = exit %d, want %d\n%s", f.code, exitFailed, f.stderr)
	}
	if old := s.records()[0].Earlier; !strings.Contains(old.Text, "OLDWORD") {
		t.Errorf("the page was not written, and the old text is gone: %+v", old)
	}
	f := s.do(nil, s.ocrArgs("--json", "--report", page)...)
	var got pipeline.Reread
	if err := json.Unmarshal([]byte(f.stdout), &got); err != nil || f.code != exitRetry {
		t.Fatalf("ocr --json --report = exit %d, %v\n%s%s", f.code, err, f.stderr, f.stdout)
	}
	if got.Read != 2 || got.Changed != 1 || len(got.Texts) != 1 || got.Lost != 4 || len(got.Outcomes) != 1 || got.Outcomes[0].ID != "few001" {
		t.Errorf("what changed: %+v", got)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<th scope="row">few000</th><td>[user] OLDWORD &lt;script&gt;alert(1)&lt;/script&gt; [2J</td><td>` + got.Texts[0].Gained[0],
		`<th scope="row">few001</th><td>kept</td><td>removed, moderator</td>`, "delete it when it has been read"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the page does not hold %q:\n%s", want, b)
		}
	}
	for _, never := range []string{"somebody", "GONEWORD", "\x1b"} {
		if strings.Contains(string(b), never) || strings.Contains(f.stdout, never) {
			t.Errorf("%q stands in the page or in what was printed", never)
		}
	}
	if info, err := os.Stat(page); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the page is %v, %v, want it to be its owner's alone", info, err)
	}
	s.onlyCounts(t)
}

// onlyCounts holds that of the old texts the workspace has numbers, which its report shows.
func (s *site) onlyCounts(t *testing.T) {
	t.Helper()
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitDone {
		t.Fatalf("report = exit %d\n%s", f.code, f.stderr)
	}
	report, err := os.ReadFile(filepath.Join(s.workspace, reportName))
	if want := "2 images. Changed texts: 1; words gained "; err != nil || !strings.Contains(string(report), want) {
		t.Errorf("the report does not say %q, %v", want, err)
	}
	err = filepath.WalkDir(s.workspace, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("OLDWORD")) || bytes.Contains(b, []byte("GONEWORD")) {
			t.Errorf("%s holds a word of an old text", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMaskNames reads a name with masking off and on: off, it is in the text; on, it is nowhere
// in the workspace but in the picture.
func TestMaskNames(t *testing.T) {
	t.Parallel()
	post := captioned("few000", withHandle, 7, 0)
	off := fastPolicy + "\n[text]\nmask_names = false\n"
	s := newSite(t, "id,split,figurative,severity,related_content,modality,context\nfew000,train,F1,SS6,SR3,M1,C1\n", off, post)
	held := func() bool {
		b, err := os.ReadFile(filepath.Join(s.workspace, "state.db"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("somebody"))
	}
	if sum := s.run(exitDone); sum.Masked != (state.Masked{}) || !held() {
		t.Errorf("masking off: %+v masked, the name is stored: %v", sum.Masked, held())
	}
	s.write(filepath.Join(s.release, "policy.toml"), fastPolicy)
	got := s.ocr(exitDone)
	if got.Read != 1 || got.Summary.Masked != (state.Masked{Names: 1, Images: 1}) {
		t.Errorf("masking on: %+v", got)
	}
	if held() {
		t.Error("masking on: state.db holds the name")
	}
	rec := s.records()[0]
	if !strings.Contains(rec.Reading.Text, "[user]") || !slices.ContainsFunc(rec.Reading.Words, func(w workspace.Word) bool { return w.Text == "[user]" }) {
		t.Errorf("masking on: %q %v", rec.Reading.Text, rec.Reading.Words)
	}
	for name, body := range s.dataset() {
		if strings.HasSuffix(name, ".parquet") && bytes.Contains(parquetValues(t, []byte(body)), []byte("somebody")) {
			t.Errorf("masking on: %s holds the name", name)
		}
	}
	if f := s.do(nil, "status", "-w", s.workspace); !strings.Contains(f.stdout, "\nnames masked: 1 in 1 image\n") {
		t.Errorf("status does not count masked names:\n%s", f.stdout)
	}
	s.write(filepath.Join(s.release, "policy.toml"), off)
	if sum := s.run(exitDone); sum.Masked.Names != 0 || !held() {
		t.Errorf("masking off again: %+v masked, the name is stored: %v", sum.Masked, held())
	}
}
