package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/audit"
	"rehydrate/internal/testkit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestAuditSince keeps a checkpoint, lets the log grow, and then rewrites the log in every way: each time
// the audit says that it does not go on from the checkpoint, and where.
func TestAuditSince(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	kept := filepath.Join(t.TempDir(), "kept")
	first := s.audit(exitDone, "--offline", "--checkpoint", kept)
	early := copyTree(t, s.workspace)
	s.becomes(redditemu.Removed, posts[2])
	s.run(exitDone)
	later := filepath.Join(t.TempDir(), "later")
	r := s.audit(exitDone, "--offline", "--since", kept, "--checkpoint", later)
	if r.Log.Since == nil || !r.Log.Since.Holds || r.Log.Since.Records != first.Log.Records ||
		r.Log.Records <= first.Log.Records {
		t.Fatalf("the log grew, and the audit says %+v of %+v", r.Log, first.Log)
	}
	s.audit(exitDone, "--offline", "--since", later)

	// A log that another workspace of the same release wrote holds in itself.
	other := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	other.run(exitDone)
	for name, ws := range map[string]string{"another workspace": other.workspace, "an older log": early} {
		t.Run(name, func(t *testing.T) {
			r := s.on(t, ws).audit(exitFound, "--offline", "--since", later)
			if r.Log.Since == nil || r.Log.Since.Holds || !hasFinding(r, audit.FoundRecord, "--since") {
				t.Errorf("%+v %+v", r.Log.Since, r.Findings)
			}
		})
	}
	t.Run("a checkpoint that was edited", func(t *testing.T) {
		forged := filepath.Join(t.TempDir(), "forged")
		s.write(forged, strings.Replace(read(t, kept), "\n", "\n1", 1))
		if r := s.on(t, s.workspace).audit(exitFound, "--offline", "--since", forged); !hasFinding(r,
			audit.FoundRecord, "--since") {
			t.Errorf("%+v", r.Findings)
		}
	})
	// A record that is not one is named; one that was changed into another throws doubt on all.
	for from, to := range map[string]string{`"seq":2,`: `"seq":9,`, `"live"`: `"held"`} {
		p := (&audited{site: s}).plot(t)
		p.edit("audit/records.jsonl", func(s string) string { return strings.Replace(s, from, to, 1) })
		want := map[string]int64{`"seq":2,`: 2}[from]
		r := p.audit(exitFound, "--offline", "--since", kept)
		if r.Log.Broken == nil || *r.Log.Broken != want || r.Log.Consistent {
			t.Errorf("%s was changed, and the log breaks at %+v: %+v", from, r.Log.Broken, r.Findings)
		}
	}
}

func hasFinding(r audit.Report, kind audit.FindingKind, where string) bool {
	return slices.ContainsFunc(r.Findings,
		func(f audit.Finding) bool { return slices.Contains(f.Kinds, kind) && strings.Contains(f.Where, where) })
}

// TestAuditReport holds the three forms of a report to what they promise.
func TestAuditReport(t *testing.T) {
	t.Parallel()
	posts := fewPosts(4)
	posts[3].Condition = redditemu.Removed
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	hostile := filepath.Join(t.TempDir(), "<script>alert(1)</script>\x1b[2J.csv")
	s.write(hostile, "few003\n")
	page := filepath.Join(t.TempDir(), "audit.html")
	args := []string{"audit", s.release, "-w", s.workspace, "--offline", "--no-record", hostile}
	f := s.do(nil, append(args, "--html", page)...)
	f.want(t, exitFound, "FAIL", "few003")
	html := read(t, page)
	for _, bad := range []string{"<script", "\x1b", "http://", "https://", " onclick", "<link", "@import"} {
		if strings.Contains(html, bad) || bad == "\x1b" && strings.Contains(f.stdout, bad) {
			t.Errorf("the page, or what is printed, holds %q", bad)
		}
	}
	for _, want := range []string{"FAIL", "&lt;script&gt;", "few003", "prefers-color-scheme: dark",
		"Content-Security-Policy", "Every post"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	// The same inputs give the same bytes but for the time.
	at := regexp.MustCompile(`(?m)^  "time": .*$`)
	fixed := time.Now()
	s.now = func() time.Time { return fixed }
	one := s.do(nil, append(args, "--json")...)
	if sum := sha256.Sum256([]byte(one.stdout)); !strings.Contains(one.stderr, fmt.Sprintf("report sha256 %x;", sum)) {
		t.Errorf("the digest is not of what --json prints: %s", one.stderr)
	}
	fixed = fixed.Add(time.Minute)
	two := s.do(nil, append(args, "--json")...)
	if one.stdout == two.stdout {
		t.Error("the time does not stand in the report")
	}
	if strings.Replace(one.stdout, at.FindString(one.stdout), "", 1) != strings.Replace(two.stdout,
		at.FindString(two.stdout), "", 1) {
		t.Errorf("two audits of the same differ:\n%s\n%s", one.stdout, two.stdout)
	}
}

// TestAuditWithoutWorkspace audits a Parquet with nothing but the release, live.
func TestAuditWithoutWorkspace(t *testing.T) {
	t.Parallel()
	posts := fewPosts(4)
	posts[3].Condition = redditemu.Deleted
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	file := filepath.Join(t.TempDir(), "x.parquet")
	s.write(file, string(parquetOf(t, onlyID{"few000"}, onlyID{"few001"})))
	offline := []string{"audit", s.release, "--offline", "--id-column", "post", file}
	live := slices.Concat([]string{"audit", s.release, "--id-column", "post", "--approval", "TEST-1", file}, s.reddit())
	verdict := func(want int, args ...string) audit.Report {
		t.Helper()
		return printed[audit.Report](s, want, args...)
	}
	verdict(exitDone, live...)
	// Ids of another release are neither asked about nor findings.
	s.write(file, string(parquetOf(t, onlyID{"zzz001"}, onlyID{"zzz002"})))
	if r := verdict(exitUndecided, live...); r.Coverage.Asked != 4 || len(r.Posts) != 4 || len(r.Open) != 1 ||
		!strings.Contains(r.Open[0].What, "2 ids of another release") {
		t.Errorf("%+v %+v", r.Coverage, r.Open)
	}
	s.write(file, string(parquetOf(t, onlyID{"few000"}, onlyID{"few001"})))
	verdict(exitUndecided, offline...)
	s.write(file, string(parquetOf(t, onlyID{"few000"}, onlyID{"t3_few003"})))
	if r := verdict(exitFound, live...); len(r.Findings) != 1 || r.Findings[0].ID != "few003" || r.Scope.Workspace != "" {
		t.Errorf("%+v", r.Findings)
	}
	// What cannot be asked is no PASS, and what was found is a FAIL all the same.
	s.write(file, string(parquetOf(t, onlyID{"few000"})))
	s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", Kind: hostile.TruncatedJSON()})
	verdict(exitUndecided, live...)
	// Neither is what cannot be read.
	for name, b := range map[string]string{"no Parquet": "PAR1 and nothing else",
		"cut off": string(parquetOf(t, onlyID{"few000"})[:40]), "no ids": string(parquetOf(t, withHash{"few000", 1}))} {
		s.write(file, b)
		if r := verdict(exitUndecided, offline...); len(r.Open) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if asked := s.imageRequests(); len(asked) > 0 {
		t.Errorf("image hosts were asked: %+v", asked)
	}
	s.do(nil, "audit", s.release, "--offline", filepath.Join(t.TempDir(), "nosuch")).want(t, exitUsage,
		"there is no file or folder")
	s.do(nil, "audit", s.release, file).want(t, exitRejected)
}

// TestAuditHearsLeftImages: without a workspace, an audit hears from Reddit that an image was taken out of a gallery,
// or went with the post that a crosspost shows, be it one that has a tombstone in the release alone. It recognises the
// image by the release's digests, and its id.
func TestAuditHearsLeftImages(t *testing.T) {
	t.Parallel()
	posts := fewPosts(5)
	posts[0].Kind, posts[0].Images = redditemu.KindGallery, slices.Concat(posts[0].Images, fewPosts(8)[6].Images)
	posts[1].Kind = redditemu.KindCrosspost
	posts[2].Kind, posts[2].Parent = redditemu.KindCrosspost, &posts[3]
	s := newSite(t, "id,image,split,figurative,severity,related_content,modality,context\n"+
		"few000,0,train,F1,SS6,SR3,M1,C1\nfew000,1,train,F1,SS6,SR3,M1,C1\nfew001,0,test,F1,SS6,SR3,M1,C1\n"+
		"few002,0,test,F1,SS6,SR3,M1,C1\nfew004,0,test,F1,SS6,SR3,M1,C1\n", fastPolicy, posts...)
	s.run(exitDone)
	published := filepath.Join(t.TempDir(), "published")
	s.do(nil, "publish", s.release, "-o", published, "-w", s.workspace, "--checked", "--digests").want(t, exitDone)
	found := t.TempDir()
	check(t, os.CopyFS(found, os.DirFS(filepath.Join(s.workspace, "images", "fe"))))
	for from, to := range map[string]string{"few000.jpg": "a.jpg", "few000-1.jpg": "b.jpg", "few001.jpg": "c.jpg",
		"few002.jpg": "d.jpg"} {
		check(t, os.Rename(filepath.Join(found, from), filepath.Join(found, to)))
	}
	audited := func(want int, release string) string {
		t.Helper()
		r := printed[audit.Report](s, want, slices.Concat([]string{"audit", release, found, "--approval", "TEST-1"},
			s.reddit())...)
		var got []string
		for _, f := range r.Findings {
			if f.Since == nil || f.Due == nil {
				t.Errorf("nobody knows since when %s is gone: %+v", f.ID, f)
			}
			got = append(got, f.ID+" "+filepath.Base(f.Where))
		}
		for _, o := range r.Open {
			got = append(got, "open "+filepath.Base(o.Where))
		}
		return strings.Join(got, ", ")
	}
	testkit.Same(t, "while all is there", "", audited(exitDone, published))
	s.update("few000", func(p *redditemu.Post) { p.Images[1].Status = redditemu.StatusDeleted })
	testkit.Same(t, "out of a gallery", "few000/1 b.jpg", audited(exitFound, published))
	s.update("few001", func(p *redditemu.Post) {
		parent := *p.Parent
		parent.Condition, p.Parent = redditemu.Deleted, &parent
	})
	testkit.Same(t, "with the parent of a crosspost", "few000/1 b.jpg, few001 c.jpg", audited(exitFound, published))
	check(t, os.Remove(filepath.Join(published, "SHA256SUMS"))) // it is edited on purpose
	s.write(filepath.Join(published, "tombstones.csv"), "id,state,time\nfew003,removed,2026-01-01T00:00:00Z\n")
	testkit.Same(t, "with a parent that has a tombstone", "few000/1 b.jpg, few001 c.jpg, few002 d.jpg",
		audited(exitFound, published))
}

// TestAuditIsRecorded has an audit leave its verdict in the log, where the next one finds it.
func TestAuditIsRecorded(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	f := s.do(nil, "audit", s.release, "-w", s.workspace, "--offline")
	f.want(t, exitDone, "; recorded in the log\n")
	log := printed[auditlog.FolderReport](s, exitDone, "audit", "--log", filepath.Join(s.workspace, "audit"))
	if len(log.Statements) != 1 || !strings.Contains(f.stderr, "report sha256 "+log.Statements[0]) {
		t.Errorf("the log has %q\n%s", log.Statements, f.stderr)
	}
	s.verify(exitDone)
	s.audit(exitDone, "--offline")
}

// TestLogOfACommandAtWork: records that follow a checkpoint are those of a command that is at work or was killed, where
// they are records and have the next numbers. Of the last the end can be missing.
func TestLogOfACommandAtWork(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	folder := filepath.Join(s.workspace, "audit")
	earlier := copyTree(t, folder)
	s.run(exitDone)
	records, err := os.ReadFile(filepath.Join(folder, "records.jsonl"))
	check(t, err)
	before, err := os.ReadFile(filepath.Join(earlier, "records.jsonl"))
	check(t, err)
	added := bytes.Count(records, []byte("\n")) - bytes.Count(before, []byte("\n"))
	put := func(text string) { s.write(filepath.Join(earlier, "records.jsonl"), text) }
	lines := strings.SplitAfter(strings.TrimSuffix(string(records), "\n"), "\n")
	last := lines[len(lines)-1]
	for _, missing := range []int{0, 1, 2, len(last) / 2, len(last)} { // at the end, with the line end
		put(string(records[:len(records)-missing]))
		log := printed[auditlog.FolderReport](s, exitDone, "audit", "--log", earlier)
		testkit.Same(t, fmt.Sprintf("records that the checkpoint does not cover, %d bytes missing", missing), added,
			log.Behind)
	}
	next := fmt.Sprintf(`{"seq":%d,"time":"`, len(lines))
	for what, text := range map[string]string{
		"one that is no record":           string(records) + "{}\n",
		"one that ends too early":         string(records) + next + "\n",
		"one twice":                       string(records) + last + "\n",
		"one that follows no more":        string(before) + last + "\n",
		"the beginning of one no more":    string(before) + last[:len(last)/2],
		"the beginning of no record":      string(records) + "{}",
		"a beginning longer than records": string(records) + next + strings.Repeat("0", 64<<10),
	} {
		put(text)
		log := printed[auditlog.FolderReport](s, exitFound, "audit", "--log", earlier)
		if !strings.Contains(log.What, "beyond checkpoint") {
			t.Errorf("%s: %q", what, log.What)
		}
	}
}

// reopened opens a workspace for writing and closes it, as any command does: what a backup brought back is noted.
func (p *audited) reopened() { p.open(func(*workspace.Workspace) error { return nil }) }

// recorded audits the workspace and leaves the record of it in the log.
func (p *audited) recorded() {
	p.t.Helper()
	p.do(nil, "audit", p.release, "-w", p.workspace, "--offline").want(p.t, exitDone, "; recorded in the log\n")
}

// TestAuditLostRecords drops the record of an audit by putting back an older audit/, and by what else loses
// records: no audit passes any more, until it is given a checkpoint from after that.
func TestAuditLostRecords(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	backup, early := copyTree(t, s.workspace), filepath.Join(t.TempDir(), "early")
	n := s.audit(exitDone, "--offline", "--checkpoint", early).Log.Records
	for _, tt := range []struct {
		name  string
		lose  func(p *audited)
		says  string
		holds bool // the early checkpoint
		fails bool // for the files of the dataset that no record tells of any more
	}{
		{"an older log", func(p *audited) { p.restore("audit") },
			fmt.Sprintf("records %d to %d of the former log are lost", n, n), true, false},
		{"a log that is gone", func(p *audited) { p.remove("audit/records.jsonl", "audit/checkpoint", "audit/log.pub") },
			fmt.Sprintf("records 0 to %d of the former log are lost", n), false, true},
		{"another history", func(p *audited) {
			other := &audited{site: p.on(t, copyTree(t, backup))}
			other.now = func() time.Time { return time.Now().Add(time.Minute) }
			other.recorded()
			other.recorded()
			p.backup = other.workspace
			p.restore("audit")
		}, fmt.Sprintf("any of the %d records of the former one can be missing", n+1), true, false},
		{"a new key", func(p *audited) { p.remove("log.key") }, "the log has a new key", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := (&audited{site: s, backup: backup}).plot(t)
			p.recorded()
			tt.lose(p)
			p.reopened()
			later := filepath.Join(t.TempDir(), "later")
			lost, whole := exitUndecided, exitDone
			if tt.fails {
				lost, whole = exitFound, exitFound
			}
			r := p.audit(lost, "--offline", "--checkpoint", later)
			if len(r.Open) != 1 || r.Open[0].Where != "audit" || !strings.Contains(r.Open[0].What, tt.says) {
				t.Errorf("the gaps say %+v, want %q", r.Open, tt.says)
			}
			if tt.holds {
				if r := p.audit(exitUndecided, "--offline", "--since", early); !r.Log.Since.Holds || len(r.Open) != 1 {
					t.Errorf("against a checkpoint from before: %+v %+v", r.Log.Since, r.Open)
				}
			}
			if r := p.audit(whole, "--offline", "--since", later); len(r.Open) != 0 ||
				!strings.Contains(strings.Join(r.Notes, "\n"), "put back from a backup") {
				t.Errorf("against a checkpoint from after it: %+v %+v", r.Open, r.Notes)
			}
		})
	}
}

// TestAuditForgottenCopy puts back a state.db of before a copy was registered, and closes one by hand: the log
// tells of both, and no audit passes.
func TestAuditForgottenCopy(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	p := &audited{site: s, backup: copyTree(t, s.workspace)}
	root := t.TempDir()
	kept, destroyed := filepath.Join(root, "kept"), filepath.Join(root, "destroyed")
	s.copyTo(kept).want(t, exitDone)
	s.copyTo(destroyed).want(t, exitDone)
	check(t, os.RemoveAll(destroyed))
	s.do(nil, "export", "--destroyed", destroyed, "--note", "a test", "-w", s.workspace).want(t, exitDone)
	if r := s.audit(exitDone, "--offline"); len(r.Open) != 0 {
		t.Fatalf("before anything is put back: %+v", r.Open)
	}
	want := "the copy " + fmt.Sprintf("%x", sha256.Sum256([]byte(kept)))
	owes := func(on *site, says string) {
		t.Helper()
		r := on.audit(exitUndecided, "--offline")
		if g := r.Open; len(g) != 1 || g[0].Where != want || !strings.Contains(g[0].What, says) ||
			!strings.Contains(g[0].What, "was registered on 20") {
			t.Errorf("the gaps are %+v, want one of %s saying %q", r.Open, want, says)
		}
		if !slices.ContainsFunc(r.Open,
			func(o audit.Open) bool { return o.Where == want && strings.Contains(o.What, says) }) {
			t.Errorf("the open obligations are %+v", r.Open)
		}
	}
	byHand := p.plot(t)
	byHand.sql("UPDATE copy SET files = 'null', told = 'gone' WHERE path = '" + kept + "'")
	owes(byHand.site, "and no record says so")

	p.restore("state.db")
	p.reopened()
	digest := strings.TrimPrefix(want, "the copy ")
	if list := s.copies(exitRetry); len(list) != 1 || list[0].Path != "sha256:"+digest[:16] ||
		list[0].State != state.CopyOpen {
		t.Fatalf("the state.db that was put back knows of %+v, want the one that the log has open", list)
	}
	owes(s, "state.db no longer knows where it is")
}
