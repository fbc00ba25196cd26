package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
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
	if r.Log.Since == nil || !r.Log.Since.Holds || r.Log.Since.Records != first.Log.Records || r.Log.Records <= first.Log.Records {
		t.Fatalf("the log grew, and the audit says %+v of %+v", r.Log, first.Log)
	}
	s.audit(exitDone, "--offline", "--since", later)

	// A log that another workspace of the same release wrote holds in itself.
	other := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	other.run(exitDone)
	for name, ws := range map[string]string{"another workspace": other.workspace, "an older log": early} {
		t.Run(name, func(t *testing.T) {
			r := s.on(t, ws).audit(exitFound, "--offline", "--since", later)
			if r.Log.Since == nil || r.Log.Since.Holds || !hasFinding(r, audit.FoundLog, "--since") {
				t.Errorf("%+v %+v", r.Log.Since, r.Findings)
			}
		})
	}
	t.Run("a checkpoint that was edited", func(t *testing.T) {
		b, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		forged := filepath.Join(t.TempDir(), "forged")
		s.write(forged, string(bytes.Replace(b, []byte("\n"), []byte("\n1"), 1)))
		if r := s.on(t, s.workspace).audit(exitFound, "--offline", "--since", forged); !hasFinding(r, audit.FoundLog, "--since") {
			t.Errorf("%+v", r.Findings)
		}
	})
	// A record that is not one is named; one that was changed into another throws doubt on all.
	for from, to := range map[string]string{`"seq":2,`: `"seq":9,`, `"live"`: `"held"`} {
		p := &plot{audited: &audited{site: s}, t: t, ws: copyTree(t, s.workspace)}
		p.edit("audit/records.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) })
		want := map[string]int64{`"seq":2,`: 2}[from]
		r := s.on(t, p.ws).audit(exitFound, "--offline", "--since", kept)
		if r.Log.Broken == nil || *r.Log.Broken != want || r.Log.Consistent {
			t.Errorf("%s was changed, and the log breaks at %+v: %+v", from, r.Log.Broken, r.Findings)
		}
	}
}

func hasFinding(r audit.Report, kind audit.FindingKind, where string) bool {
	for _, f := range r.Findings {
		if f.Kind == kind && strings.Contains(f.Where, where) {
			return true
		}
	}
	return false
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
	if f.code != exitFound || !strings.HasPrefix(f.stdout, "FAIL") || strings.Contains(f.stdout, "\x1b") || !strings.Contains(f.stdout, "few003") {
		t.Errorf("exit %d:\n%s", f.code, f.stdout)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	html := string(b)
	for _, bad := range []string{"<script", "\x1b", "http://", "https://", " onclick", "<link", "@import"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"FAIL", "&lt;script&gt;", "few003", "prefers-color-scheme: dark", "Content-Security-Policy", "Every post"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	// The same inputs give the same bytes but for the time.
	at := regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
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
	if strings.Replace(one.stdout, at.FindString(one.stdout), "", 1) != strings.Replace(two.stdout, at.FindString(two.stdout), "", 1) {
		t.Errorf("two audits of the same differ:\n%s\n%s", one.stdout, two.stdout)
	}
	var shape map[string]json.RawMessage
	if err := json.Unmarshal([]byte(one.stdout), &shape); err != nil || string(shape["verdict"]) != `"FAIL"` || !strings.Contains(string(shape["findings"]), `"kind": "row"`) {
		t.Errorf("%v: %s", err, one.stdout)
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
	live := []string{"audit", s.release, "--json", "--id-column", "post", "--approval", "TEST-1", "--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert}
	verdict := func(want int, args ...string) audit.Report {
		t.Helper()
		f := s.do(s.env(), args...)
		var r audit.Report
		if err := json.Unmarshal([]byte(f.stdout), &r); err != nil || f.code != want {
			t.Fatalf("%q = exit %d (%v), want %d\n%s%s", args, f.code, err, want, f.stderr, shorten(f.stdout))
		}
		return r
	}
	verdict(exitDone, append(live, file)...)
	// Ids of another release are neither asked about nor findings.
	s.write(file, string(parquetOf(t, onlyID{"zzz001"}, onlyID{"zzz002"})))
	if r := verdict(exitIncomplete, append(live, file)...); r.Coverage.Asked != 4 || len(r.Posts) != 4 || len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0].What, "2 ids of another release") {
		t.Errorf("%+v %+v", r.Coverage, r.Gaps)
	}
	s.write(file, string(parquetOf(t, onlyID{"few000"}, onlyID{"few001"})))
	verdict(exitIncomplete, "audit", s.release, "--json", "--offline", "--id-column", "post", file)
	s.write(file, string(parquetOf(t, onlyID{"few000"}, onlyID{"t3_few003"})))
	if r := verdict(exitFound, append(live, file)...); len(r.Findings) != 1 || r.Findings[0].ID != "few003" || r.Scope.Workspace != "" {
		t.Errorf("%+v", r.Findings)
	}
	// What cannot be asked is no PASS, and what was found is a FAIL all the same.
	s.write(file, string(parquetOf(t, onlyID{"few000"})))
	s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info", Kind: hostile.TruncatedJSON()})
	verdict(exitIncomplete, append(live, file)...)
	// Neither is what cannot be read.
	for name, b := range map[string]string{"no Parquet": "PAR1 and nothing else", "cut off": string(parquetOf(t, onlyID{"few000"})[:40]), "no ids": string(parquetOf(t, withHash{"few000", 1}))} {
		s.write(file, b)
		if r := verdict(exitIncomplete, "audit", s.release, "--json", "--offline", "--id-column", "post", file); len(r.Gaps) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if f := s.do(nil, "audit", s.release, "--offline", filepath.Join(t.TempDir(), "nosuch")); f.code != exitIncomplete {
		t.Errorf("a file that is not there: exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	if f := s.do(nil, "audit", s.release, file); f.code != exitRejected {
		t.Errorf("without approval: exit %d\n%s", f.code, f.stderr)
	}
}

// TestAuditIsRecorded has an audit leave its verdict in the log, where the next one finds it.
func TestAuditIsRecorded(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	f := s.do(nil, "audit", s.release, "-w", s.workspace, "--offline")
	if f.code != exitDone || !strings.Contains(f.stderr, "; recorded in the log\n") {
		t.Fatalf("exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	l, err := ws.LogReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var last auditlog.Event
	for e, err := range l.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last.Kind != auditlog.Audit || last.Verdict != "pass" || !strings.Contains(f.stderr, "report sha256 "+last.SHA256) {
		t.Errorf("the last record: %+v\n%s", last, f.stderr)
	}
	s.verify(exitDone)
	s.audit(exitDone, "--offline")
}

// reopened opens a workspace for writing and closes it, as any command does: what a backup brought back is noted.
func (p *plot) reopened() {
	p.t.Helper()
	ws, err := workspace.Open(p.t.Context(), p.ws, workspace.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := ws.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// recorded audits the workspace and leaves the record of it in the log.
func (p *plot) recorded() {
	p.t.Helper()
	f := p.do(nil, "audit", p.release, "-w", p.ws, "--offline")
	if f.code != exitDone || !strings.Contains(f.stderr, "; recorded in the log\n") {
		p.t.Fatalf("audit = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
}

// gapsIn are what the gaps say of a place.
func gapsIn(r audit.Report, where string) string {
	var all []string
	for _, g := range r.Gaps {
		if g.Where == where {
			all = append(all, g.What)
		}
	}
	return strings.Join(all, "\n")
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
		lose  func(p *plot)
		says  string
		holds bool // the early checkpoint
		fails bool // for the files of the dataset that no record tells of any more
	}{
		{"an older log", func(p *plot) { p.restore("audit") }, fmt.Sprintf("records %d to %d of the log as it was are lost", n, n), true, false},
		{"a log that is gone", func(p *plot) {
			for _, name := range []string{"records.jsonl", "checkpoint", "log.pub"} {
				p.remove("audit/" + name)
			}
		}, fmt.Sprintf("records 0 to %d of the log as it was are lost", n), false, true},
		{"another history", func(p *plot) {
			other := &plot{audited: p.audited, t: p.t, ws: copyTree(p.t, backup)}
			other.now = func() time.Time { return time.Now().Add(time.Minute) }
			other.recorded()
			other.recorded()
			p.backup = other.ws
			p.restore("audit")
		}, fmt.Sprintf("any of the %d records of the log as it was can be missing", n+1), true, false},
		{"a new key", func(p *plot) { p.remove("log.key") }, "there is a new one", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws := copyTree(t, s.workspace)
			p := &plot{audited: &audited{site: s.on(t, ws), backup: backup}, t: t, ws: ws}
			p.recorded()
			tt.lose(p)
			p.reopened()
			later := filepath.Join(t.TempDir(), "later")
			lost, whole := exitIncomplete, exitDone
			if tt.fails {
				lost, whole = exitFound, exitFound
			}
			r := p.audit(lost, "--offline", "--checkpoint", later)
			if got := gapsIn(r, "audit"); !strings.Contains(got, tt.says) || len(r.Gaps) != 1 {
				t.Errorf("the gaps say %+v, want %q", r.Gaps, tt.says)
			}
			if tt.holds {
				if r := p.audit(exitIncomplete, "--offline", "--since", early); !r.Log.Since.Holds || len(r.Gaps) != 1 {
					t.Errorf("against a checkpoint from before: %+v %+v", r.Log.Since, r.Gaps)
				}
			}
			if r := p.audit(whole, "--offline", "--since", later); len(r.Gaps) != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "put back from a backup") {
				t.Errorf("against a checkpoint from after it: %+v %+v", r.Gaps, r.Notes)
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
	p := &plot{audited: &audited{site: s, backup: copyTree(t, s.workspace)}, t: t, ws: s.workspace}
	root := t.TempDir()
	kept, destroyed := filepath.Join(root, "kept"), filepath.Join(root, "destroyed")
	s.copyTo(kept).want(t, exitDone)
	s.copyTo(destroyed).want(t, exitDone)
	if err := os.RemoveAll(destroyed); err != nil {
		t.Fatal(err)
	}
	s.do(nil, "export", "--destroyed", destroyed, "--note", "a test", "-w", s.workspace).want(t, exitDone)
	if r := s.audit(exitDone, "--offline"); len(r.Gaps) != 0 {
		t.Fatalf("before anything is put back: %+v", r.Gaps)
	}
	want := "the copy " + fmt.Sprintf("%x", sha256.Sum256([]byte(kept)))
	check := func(on *site, says string) {
		t.Helper()
		r := on.audit(exitIncomplete, "--offline")
		if got := gapsIn(r, want); len(r.Gaps) != 1 || !strings.Contains(got, says) || !strings.Contains(got, "was registered on 20") {
			t.Errorf("the gaps are %+v, want one of %s saying %q", r.Gaps, want, says)
		}
		open := 0
		for _, o := range r.Obligations {
			if o.Where == want && strings.Contains(o.What, says) {
				open++
			}
		}
		if open != 1 {
			t.Errorf("the open obligations are %+v", r.Obligations)
		}
	}
	byHand := &plot{audited: p.audited, t: t, ws: copyTree(t, s.workspace)}
	byHand.sql("UPDATE copy SET files = 'null', told = 'gone' WHERE path = '" + kept + "'")
	check(s.on(t, byHand.ws), "and no record says so")

	p.restore("state.db")
	p.reopened()
	if list := s.copies(exitDone); len(list) != 0 {
		t.Fatalf("the state.db that was put back knows of %+v", list)
	}
	check(s, "state.db no longer knows where it is")
}
