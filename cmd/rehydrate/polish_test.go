package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/cmd/internal/console"
	"rehydrate/pipeline"
	"rehydrate/pipeline/reddit"
)

// Every command's help says what it does, shows an example of itself and lists its exit statuses.
func TestHelpIsWhole(t *testing.T) {
	for _, cmd := range allCommands() {
		path := cmd.CommandPath()
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s: no description", path)
		}
		if !strings.Contains(cmd.Example, path) && cmd.Name() != "rehydrate" {
			t.Errorf("%s: its example %q does not call it", path, cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is not indented", path, line)
			}
		}
		_, statuses, found := strings.Cut(cmd.Long, "\n\nExit status:\n")
		if !found || !strings.Contains(statuses, "  0    ") || !strings.Contains(statuses, "  2    ") {
			t.Errorf("%s: no exit statuses, or not those for done and for wrong usage", path)
		}
	}
}

// A manual page is written of every command, and man finds nothing to complain of.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	f := plainRun(t, nil, "man", dir)
	if f.code != exitDone {
		t.Fatalf("man = exit %d\n%s", f.code, f.stderr)
	}
	for _, cmd := range commandsOf((&command{}).root()) {
		page, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH EXIT STATUS\n", ".SH EXAMPLE\n", ".SH SEE ALSO\n"} {
			if !bytes.Contains(page, []byte(want)) {
				t.Errorf("the manual page of %s has no %q", cmd.CommandPath(), want)
			}
		}
	}
	if _, err := exec.LookPath("groff"); err != nil {
		return // its own check is one more, the ones above hold without it
	}
	out, err := exec.CommandContext(t.Context(), "groff", "-man", "-Tascii", "-ww", "-z", filepath.Join(dir, "rehydrate-run.1")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// plainRun runs a command line in this process with an environment of its own.
func plainRun(t *testing.T, env map[string]string, args ...string) finished {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), process{args: args, getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""),
		stdout: &stdout, stderr: &stderr, executable: os.Executable, now: time.Now})
	return finished{stdout.String(), stderr.String(), code}
}

// A hint to the help names the command that was called.
func TestUsageHint(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"nosuch"}, "see rehydrate --help"},
		{[]string{"run", "--nosuch"}, "see rehydrate run --help"},
		{[]string{"grant", "check"}, "see rehydrate grant check --help"},
		{[]string{"status", "-q", "-v"}, "see rehydrate status --help"},
	}
	for _, test := range tests {
		f := plainRun(t, nil, test.args...)
		if f.code != exitUsage || !strings.HasSuffix(f.stderr, "rehydrate: hint: "+test.want+"\n") {
			t.Errorf("%v = exit %d, %q, want the hint %q", test.args, f.code, f.stderr, test.want)
		}
	}
}

// What a shell offers: words where there are words, nothing where files would be wrong.
func TestCompletion(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"run", "--filters", ""}, "drop\nflag\n:4\n"},
		{[]string{"explain", ""}, ":4\n"},
		{[]string{"run", ""}, ":0\n"}, // files and folders
		{[]string{"status", "--workspace", ""}, ":16\n"},
		{[]string{"run", "--retry", ""}, "gone\nplaceholder\ninvalid\nchanged\nrefused\nfailed\n:4\n"},
	}
	for _, test := range tests {
		f := plainRun(t, nil, append([]string{"__complete"}, test.args...)...)
		if diff := cmp.Diff(test.want, f.stdout); diff != "" {
			t.Errorf("complete %v (-want +got):\n%s", test.args, diff)
		}
	}
	if f := plainRun(t, nil, "completion", "bash"); f.code != exitDone || !strings.Contains(f.stdout, "__start_rehydrate") {
		t.Errorf("completion bash = exit %d, %d bytes", f.code, len(f.stdout))
	}
}

// Progress is plain lines in a pipe, and nothing at all when quiet; a wait is said at once.
func TestObserve(t *testing.T) {
	now := time.Unix(0, 0)
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		c := &command{quiet: quiet, console: console.New("rehydrate", &out, &out, "xterm", func() time.Time { return now })}
		c.observe(pipeline.Snapshot{Stage: "read", Total: 10, Done: 1})
		now = now.Add(time.Minute)
		c.observe(pipeline.Snapshot{Stage: "read", Total: 10, Done: 5, Failed: 2})
		c.observe(pipeline.Snapshot{Stage: "read", Total: 10, Done: 5, Wait: &reddit.Wait{For: 3 * time.Second, Host: "i.redd.it", Reason: "server_error"}})
		want := "rehydrate: read: 5 of 10 entries, 0 fetched, 0 read, 0 not to be had, 2 to retry, about 1m0s left\n" +
			"rehydrate: waiting 3s for i.redd.it: server_error\n"
		if quiet {
			want = ""
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("quiet %t (-want +got):\n%s", quiet, diff)
		}
	}
}

// Doctor says what is missing and how to get it, and never what a credential is.
func TestDoctor(t *testing.T) {
	long(t)
	ws := filepath.Join(t.TempDir(), "ws")
	env := map[string]string{"PATH": os.Getenv("PATH"), "REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET": "canary-secret", "REDDIT_USERNAME": "canary_user"}
	f := plainRun(t, env, "doctor", "-w", ws, "--ocr", realOCR(t))
	if f.code != exitDone || strings.Contains(f.stdout, "FAIL") || strings.Contains(f.stdout, "canary") {
		t.Errorf("doctor with all there = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
	for _, want := range []string{"ok    ocr self-test", "ok    credentials", "ok    disk", "ok    clock", "ok    workspace"} {
		if !strings.Contains(f.stdout, want) {
			t.Errorf("doctor does not say %q:\n%s", want, f.stdout)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	env = map[string]string{"REDDIT_CLIENT_ID": "canary-id", "REDDIT_CLIENT_SECRET_FILE": secret, "REDDIT_USERNAME": "canary_user"}
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	f = plainRun(t, env, "doctor", "-w", ws, "--ocr", filepath.Join(t.TempDir(), "nowhere"), filepath.Join(ws, "nothing.csv"))
	if f.code != exitFailed || strings.Contains(f.stdout, "canary-") {
		t.Errorf("doctor with much missing = exit %d\n%s", f.code, f.stdout)
	}
	for _, want := range []string{"FAIL  ocr ", "scripts/setup", "FAIL  credentials", "chmod 600", "FAIL  workspace", "chmod 700", "FAIL  release"} {
		if !strings.Contains(f.stdout, want) {
			t.Errorf("doctor does not say %q:\n%s", want, f.stdout)
		}
	}
}

// A clock before the program's first release, and one behind what the workspace was told, are wrong.
func TestDoctorClock(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c := process{args: []string{"doctor", "-w", filepath.Join(t.TempDir(), "ws"), "--ocr", realOCR(t)}, getenv: func(string) string { return "" },
		stdout: &stdout, stderr: &stderr, executable: os.Executable, now: func() time.Time { return time.Unix(0, 0) }}
	if code := run(t.Context(), c); code != exitFailed || !strings.Contains(stdout.String(), "FAIL  clock           it says 1970-01-01T00:00:00Z") {
		t.Errorf("doctor in 1970 = exit %d\n%s", code, stdout.String())
	}
}

func TestVersion(t *testing.T) {
	long(t)
	f := plainRun(t, nil, "version", "--ocr", realOCR(t))
	for _, want := range []string{"rehydrate  ", "go         go1.", "Tesseract 5", "hash       ", "layouts    workspace ", "github.com/parquet-go/parquet-go v0.32.0"} {
		if !strings.Contains(f.stdout, want) {
			t.Errorf("version does not say %q:\n%s", want, f.stdout)
		}
	}
	f = plainRun(t, nil, "version", "--ocr", filepath.Join(t.TempDir(), "nowhere"), "--json")
	if f.code != exitDone || !strings.Contains(f.stdout, `"ocr": null`) || !strings.Contains(f.stdout, `"no_ocr": `) {
		t.Errorf("version without ocr = exit %d\n%s%s", f.code, f.stdout, f.stderr)
	}
}
