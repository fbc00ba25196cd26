package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/workspace"
)

// verify verifies a workspace with --json; any status but want ends the test.
func (s *site) verify(want int) audit.VerifyReport {
	s.t.Helper()
	f := s.do(nil, "verify", "-w", s.workspace, "--json")
	var r audit.VerifyReport
	if err := json.Unmarshal([]byte(f.stdout), &r); err != nil || f.code != want {
		s.t.Fatalf("verify = exit %d (%v), want %d\n%s%s", f.code, err, want, f.stderr, shorten(f.stdout))
	}
	return r
}

// wholeSite has a workspace with a report, in which everything that verify reads is there.
func wholeSite(t *testing.T) *site {
	t.Helper()
	posts := fewPosts(6)
	posts[4].Condition = redditemu.Removed
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitDone {
		t.Fatalf("report = exit %d\n%s", f.code, f.stderr)
	}
	r := s.verify(exitDone)
	if !r.Whole || !r.Sealed || r.Images != 5 || r.Records == 0 || len(r.Notes) != 0 {
		t.Fatalf("the workspace is not whole to begin with: %+v", r)
	}
	return s
}

// TestBitFlips flips random bits of everything in a sealed workspace but the lock, one at a time, and has
// verify find each, in the file in which it is.
func TestBitFlips(t *testing.T) {
	long(t)
	t.Parallel()
	s := wholeSite(t)
	flips, names := often(1000, 30), filesOf(t, s.workspace)
	random, seed := chance(t)
	hit := map[string]int{}
	t.Logf("%d flips in %d files", flips, len(names))
	for i := range flips {
		// Every file in turn, so that the small ones have theirs.
		name := names[i%len(names)]
		path := filepath.Join(s.workspace, filepath.FromSlash(name))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := random.IntN(8 * len(b))
		b[at/8] ^= 1 << (at % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		hit[name]++
		r := s.verify(exitDamaged)
		if !slices.ContainsFunc(r.Damage, func(d audit.Damage) bool { return d.Where == name && d.Mend != "" }) {
			t.Errorf("seed %d, bit %d of %s: verify names %+v", seed, at, name, r.Damage)
		}
		b[at/8] ^= 1 << (at % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(hit) != min(flips, len(names)) {
		t.Errorf("only %d of %d files were hit", len(hit), len(names))
	}
	s.verify(exitDone)
}

// filesOf are the files of a workspace whose bytes mean something: all but the lock.
func filesOf(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if name != "lock" {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"state.db", "report.html", "outcomes.csv", "audit/seal.json", "audit/checkpoint", "log.key", trainParquet} {
		if !slices.Contains(names, want) {
			t.Fatalf("there is no %s among %q", want, names)
		}
	}
	return names
}

// TestVerifyNames has verify name what is missing, too much and changed in other ways than by a bit.
func TestVerifyNames(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	for name, c := range map[string]struct {
		do    func(p *plot)
		where string
		what  string
	}{
		"a missing image":     {func(p *plot) { p.remove("images/fe/few001.jpg") }, "images/fe/few001.jpg", "missing"},
		"a missing Parquet":   {func(p *plot) { p.remove(trainParquet) }, trainParquet, "missing"},
		"missing outcomes":    {func(p *plot) { p.remove("outcomes.csv") }, "outcomes.csv", "missing"},
		"a missing key":       {func(p *plot) { p.remove("log.key") }, "log.key", "missing"},
		"a missing database":  {func(p *plot) { p.remove("state.db") }, "state.db", "missing"},
		"a missing log":       {func(p *plot) { p.remove("audit/records.jsonl") }, "audit/records.jsonl", "missing"},
		"a stray file":        {func(p *plot) { p.put("notes.txt", []byte("x")) }, "notes.txt", "accounts for"},
		"a stray image":       {func(p *plot) { p.put("images/zz/zz1.jpg", []byte("x")) }, "images/zz/zz1.jpg", "accounts for"},
		"a stray Parquet":     {func(p *plot) { p.put("dataset/data/x.parquet", []byte("x")) }, "dataset/data/x.parquet", "accounts for"},
		"an unfinished file":  {func(p *plot) { p.put("images/.tmp-A", []byte("x")) }, "images/.tmp-A", "unfinished"},
		"a journal":           {func(p *plot) { p.put("state.db-journal", []byte("x")) }, "state.db-journal", "journal"},
		"a truncated Parquet": {func(p *plot) { p.edit(trainParquet, func(b []byte) []byte { return b[:len(b)/2] }) }, trainParquet, "not as it was sealed"},
		"an empty database":   {func(p *plot) { p.put("state.db", nil) }, "state.db", "not as it was sealed"},
		"a link": {func(p *plot) {
			if err := os.Symlink("/etc/hostname", filepath.Join(p.ws, "dataset", "link")); err != nil {
				p.t.Fatal(err)
			}
		}, "dataset/link", "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plot{audited: &audited{site: s.on(t, "")}, t: t, ws: copyTree(t, s.workspace)}
			c.do(p)
			r := s.on(t, p.ws).verify(exitDamaged)
			if !slices.ContainsFunc(r.Damage, func(d audit.Damage) bool { return d.Where == c.where && strings.Contains(d.What, c.what) }) {
				t.Errorf("verify names %+v, want %s: %s", r.Damage, c.where, c.what)
			}
			f := s.on(t, p.ws).do(nil, "verify", "-w", p.ws)
			if f.code != exitDamaged || !strings.Contains(f.stdout, c.where) || !strings.Contains(f.stdout, "to mend it: ") {
				t.Errorf("exit %d:\n%s", f.code, f.stdout)
			}
		})
	}
}

func (p *plot) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.ws, filepath.FromSlash(name))); err != nil {
		p.t.Fatal(err)
	}
}

// TestVerifyMends runs what verify says mends an image, a Parquet and outcomes.csv.
func TestVerifyMends(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	p := &plot{audited: &audited{site: s}, t: t, ws: s.workspace}
	p.remove("images/fe/few001.jpg")
	p.edit("images/fe/few002.jpg", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if r := s.verify(exitDamaged); !strings.HasPrefix(r.Damage[1].Mend, "delete the file, then rehydrate run") {
		t.Errorf("%+v", r.Damage)
	}
	p.remove("images/fe/few002.jpg")
	p.edit(trainParquet, func(b []byte) []byte { b[99] ^= 1; return b })
	p.edit("outcomes.csv", func(b []byte) []byte { return append(b, "few000,0,train,kept,,,\n"...) })
	if r := s.verify(exitDamaged); len(r.Damage) < 4 {
		t.Errorf("%+v", r.Damage)
	}
	s.run(exitDone)
	if f := s.do(nil, "report", "-w", s.workspace); f.code != exitDone {
		t.Fatalf("report = exit %d\n%s", f.code, f.stderr)
	}
	if r := s.verify(exitDone); !r.Whole {
		t.Errorf("%+v", r.Damage)
	}
}

// TestVerifyUnsealed says of a workspace that it is in use, and of one whose run was killed, that it is
// not sealed, and finds what it can find all the same.
func TestVerifyUnsealed(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	killed := s.on(t, copyTree(t, s.workspace))
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.verify(exitDone); r.Sealed || len(r.Notes) == 0 {
		t.Errorf("in use: %+v", r)
	}
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
	if r := s.verify(exitDone); !r.Sealed {
		t.Errorf("closed again: %+v", r)
	}
	p := &plot{audited: &audited{site: killed}, t: t, ws: killed.workspace}
	p.remove("audit/seal.json")
	if r := killed.verify(exitDone); r.Sealed || !strings.Contains(strings.Join(r.Notes, " "), "killed") {
		t.Errorf("killed: %+v", r)
	}
	for _, name := range []string{"images/fe/few001.jpg", "audit/records.jsonl", "audit/checkpoint"} {
		p.edit(name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		killed.verify(exitDamaged)
		p.edit(name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	}
	killed.verify(exitDone)
}

// TestSecondProcess has a second process on a workspace exit 6 at once, and the lock of a killed one be
// free at once.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	ws, err := workspace.Open(t.Context(), s.workspace, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], s.args()...)
	cmd.Env = append(os.Environ(), childVar+"=1")
	for k, v := range s.env() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitInUse {
		t.Errorf("exit %d (%v), want %d\n%s", code, err, exitInUse, out)
	}
	// The clock on the wall would measure the other tests: this is the time that the process took.
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > time.Second {
		t.Errorf("the second process took %v", used)
	}
	// audit and verify read beside a run, and audit says that it left no record.
	f := s.do(nil, "audit", s.release, "-w", s.workspace, "--offline")
	if f.code != exitDone || !strings.Contains(f.stderr, "not recorded in the log: ") {
		t.Errorf("audit beside a run = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	if err := ws.Close(); err != nil {
		t.Fatal(err)
	}
	held := s.child(t.Context(), nil)
	for !s.inUse() {
		if held.ProcessState != nil {
			t.Fatal("the child ended by itself")
		}
	}
	if err := held.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = held.Wait()
	if s.inUse() {
		t.Error("the lock of a killed process is not free")
	}
}

// inUse reports whether some process holds the workspace.
func (s *site) inUse() bool {
	f, err := os.Open(filepath.Join(s.workspace, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return true
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // a child that another test just forked has it open too
	return false
}

// inNamespace runs rehydrate where there is no network, and the workspace is mounted read-only.
func (s *site) inNamespace(args ...string) finished {
	s.t.Helper()
	script := fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,bind,ro %[1]s && ! touch %[1]s/x 2>/dev/null && exec \"$@\"", s.workspace)
	cmd := exec.CommandContext(s.t.Context(), "unshare", append([]string{"-r", "-m", "-n", "sh", "-c", script, "sh", os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), childVar+"=1", "PATH=/usr/bin:/bin:/usr/sbin:/sbin")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return finished{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// TestWithoutNetwork audits and verifies without a network, on a read-only mount, and changes nothing.
func TestWithoutNetwork(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "unshare", "-r", "-m", "-n", "true").CombinedOutput(); err != nil {
		orSkip(t, "right to make namespaces", fmt.Errorf("%w: %s", err, out))
	}
	s := wholeSite(t)
	before := everyFile(t, s.workspace)
	f := s.inNamespace("audit", s.release, "-w", s.workspace, "--offline")
	if f.code != exitDone || !strings.HasPrefix(f.stdout, "PASS") || !strings.Contains(f.stderr, "not recorded in the log: ") {
		t.Errorf("audit = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	f = s.inNamespace("verify", "-w", s.workspace)
	if f.code != exitDone || !strings.Contains(f.stdout, ": whole") {
		t.Errorf("verify = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	for name, b := range everyFile(t, s.workspace) {
		if string(before[name]) != string(b) {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestVerifyBesideWriter has a command open the workspace after verify read the seal: what is another then is no
// damage. What was damaged while nobody was at work is.
func TestVerifyBesideWriter(t *testing.T) {
	t.Parallel()
	s := wholeSite(t)
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, p *plot)
		want int
	}{
		{"a command at work", func(t *testing.T, p *plot) {
			ws := p.noted()
			t.Cleanup(func() {
				if err := ws.Close(); err != nil {
					t.Error(err)
				}
			})
		}, exitInUse},
		{"a command that is done", func(t *testing.T, p *plot) {
			if err := p.noted().Close(); err != nil {
				t.Fatal(err)
			}
		}, exitInUse},
		{"nobody", func(t *testing.T, p *plot) {
			p.edit("state.db", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, exitDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &plot{audited: &audited{site: s.on(t, "")}, t: t, ws: copyTree(t, s.workspace)}
			p.workspace = p.ws
			steps := 0
			p.step = func(step, _ string) error {
				if step == "verify" {
					steps++
					tt.do(t, p)
				}
				return nil
			}
			f := p.do(nil, "verify", "-w", p.ws)
			if f.code != tt.want || steps != 1 {
				t.Fatalf("verify = exit %d after %d steps, want %d\n%s%s", f.code, steps, tt.want, f.stdout, f.stderr)
			}
			if inUse := strings.Contains(f.stderr, "verify again"); inUse != (tt.want == exitInUse) || inUse && (f.stdout != "" || strings.Contains(f.stderr, "damage")) {
				t.Errorf("verify says\n%s%s", f.stdout, f.stderr)
			}
			if p.step = nil; tt.want == exitInUse {
				p.site.verify(exitDone)
			}
		})
	}
}

// noted opens a workspace for writing and changes state.db.
func (p *plot) noted() *workspace.Workspace {
	p.t.Helper()
	ws, err := workspace.Open(p.t.Context(), p.ws, workspace.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := ws.Note(p.t.Context(), auditlog.Event{Kind: auditlog.Audit, Verdict: "pass"}); err != nil {
		p.t.Fatal(err)
	}
	return ws
}
