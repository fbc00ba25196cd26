package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"rehydrate/manifest"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
)

// childVar makes the test binary be rehydrate itself, for tests that kill it.
const childVar = "REHYDRATE_TEST_BE_REHYDRATE"

func TestMain(m *testing.M) {
	beAsked()
	if os.Getenv(childVar) != "" {
		os.Exit(realMain())
	}
	testscript.Main(m, map[string]func(){"rehydrate": func() { os.Exit(realMain()) }, "ocr": serveFakeOCR})
}

// realOCR is where the real ocr program lies: it is built when the first test asks for it.
func realOCR(t testing.TB) string {
	t.Helper()
	program, err := buildOCR()
	if err != nil {
		t.Fatalf("build cmd/ocr (scripts/setup installs what it needs): %v", err)
	}
	return program
}

// sourceDir is the folder of this package. A test may have left it before the program is built.
var sourceDir, _ = os.Getwd()

// buildOCR builds beside the fake program, in the folder that testscript removes at the end.
var buildOCR = sync.OnceValues(func() (string, error) {
	fake, err := exec.LookPath("ocr")
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(fake), "real", "ocr")
	build := exec.Command("go", "build", "-o", program, "rehydrate/cmd/ocr")
	build.Dir = sourceDir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// A site is an emulated Reddit with a release to rehydrate from it.
type site struct {
	t         testing.TB
	emulator  *hostile.Server
	release   string
	workspace string
	cacert    string
	now       func() time.Time
	stop      chan struct{}
	step      func(step, name string) error // before each step that changes the disk; may be nil
	reader    string                        // the ocr program
}

// real has the site's commands read with Tesseract.
func (s *site) real() *site {
	s.reader = realOCR(s.t)
	return s
}

// fastPolicy asks the emulator as fast as a policy can; the rest is the default.
const fastPolicy = demoPolicy

// newSite starts an emulator that knows posts, and writes a release of annotations.
func newSite(t testing.TB, annotations string, pol string, posts ...redditemu.Post) *site {
	t.Helper()
	return newSiteOn(t, redditemu.Options{Seed: 1}, annotations, pol, posts...)
}

// newSiteOn is newSite with an emulator of its own kind.
func newSiteOn(t testing.TB, o redditemu.Options, annotations string, pol string, posts ...redditemu.Post) *site {
	t.Helper()
	emulator, err := hostile.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	if err := emulator.Put(posts...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &site{t: t, emulator: emulator, release: filepath.Join(dir, "release"), workspace: filepath.Join(dir, "ws"),
		cacert: filepath.Join(dir, "ca.pem"), now: time.Now, stop: make(chan struct{}), reader: fakeOCRPath(t)}
	s.write(s.cacert, string(emulator.CAPEM()))
	s.write(filepath.Join(s.release, "annotations.csv"), annotations)
	s.write(filepath.Join(s.release, "policy.toml"), pol)
	s.write(filepath.Join(s.release, "release.toml"), demoRelease)
	return s
}

// demoSite is the site of `rehydrate demo`.
func demoSite(t *testing.T) (*site, []redditemu.Post) {
	t.Helper()
	annotations, posts := redditemu.Demo(demoSeed)
	return newSite(t, string(annotations), fastPolicy, posts...).real(), posts
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) args(more ...string) []string {
	return append([]string{"run", s.release, "-w", s.workspace, "--approval", "TEST-1",
		"--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert, "--ocr", s.reader}, more...)
}

func (s *site) env() map[string]string {
	return map[string]string{"REDDIT_CLIENT_ID": s.emulator.ClientID, "REDDIT_CLIENT_SECRET": s.emulator.Secret, "REDDIT_USERNAME": "test_user"}
}

// A finished command: what it printed and its exit status.
type finished struct {
	stdout, stderr string
	code           int
}

// do runs a command line in this process.
func (s *site) do(env map[string]string, args ...string) finished {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	ctx := context.WithValue(s.t.Context(), durable.HookKey{}, s.step)
	code := run(ctx, process{args: args, getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""),
		stdout: &stdout, stderr: &stderr, executable: os.Executable, now: s.now, stop: s.stop})
	return finished{stdout.String(), stderr.String(), code}
}

// run runs the release with --json and returns the summary; any status but want ends the test.
func (s *site) run(want int, more ...string) state.Summary {
	s.t.Helper()
	f := s.do(s.env(), s.args(append(more, "--json")...)...)
	if f.code != want {
		s.t.Fatalf("run = exit %d, want %d\n%s%s", f.code, want, f.stderr, f.stdout)
	}
	var sum state.Summary
	if err := json.Unmarshal([]byte(f.stdout), &sum); err != nil {
		s.t.Fatalf("run --json printed no summary: %v\n%s", err, f.stdout)
	}
	return sum
}

// outcomes reads outcomes.csv.
func (s *site) outcomes() []manifest.Result {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.workspace, "outcomes.csv"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	var all []manifest.Result
	for r, err := range manifest.ReadOutcomes(f) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// dataset returns the bytes of every file of the dataset, by name.
func (s *site) dataset() map[string]string {
	s.t.Helper()
	files := map[string]string{}
	root := filepath.Join(s.workspace, "dataset")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// child starts the release's run in a process of its own.
func (s *site) child(ctx context.Context, stderr io.Writer, more ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0], s.args(more...)...)
	cmd.Env = append(os.Environ(), childVar+"=1")
	for k, v := range s.env() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// imageRequests are the emulator's requests that are not to Reddit's API.
func (s *site) imageRequests() []hostile.Request {
	var images []hostile.Request
	for _, r := range s.emulator.Requests() {
		if r.Host != "www.reddit.com" && r.Host != "oauth.reddit.com" {
			images = append(images, r)
		}
	}
	return images
}

// orSkip ends a test for which this machine lacks something: as failed under CI, as skipped elsewhere.
func orSkip(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed under CI (scripts/setup --with-readers, on Linux): %v", what, err)
	}
	t.Skipf("no %s (scripts/setup --with-readers, on Linux): %v", what, err)
}
