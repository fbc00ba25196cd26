package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/workspace"
)

// What of the operator must be nowhere, beside what the emulator's app has.
const (
	canaryUser  = "canary_user_zq88"
	canaryImgur = "canaryimgurzq89"
)

// TestSecrets takes canaries through every command, with everything that it says and in text
// as well as JSON, while Reddit and the hosts refuse, repeat what they were sent or send rubbish,
// and while the program panics. Nothing that is printed, stored or left behind holds one.
func TestSecrets(t *testing.T) {
	long(t)
	covered, root := map[string]bool{}, inPrivateFolder(t)
	t.Run("cases", func(t *testing.T) {
		for i, c := range canaryCases {
			covered[c.command] = true
			for j, mode := range [][]string{{"-v"}, {"-v", "--json"}} {
				// A sample has each case in text or in JSON.
				if c.long && j > 0 || !full() && (c.whole || !c.long && j != i%2) {
					continue
				}
				t.Run(c.name()+" "+strings.Join(mode, " "), func(t *testing.T) { c.run(t, mode) })
			}
		}
	})
	if left, err := filepath.Glob(filepath.Join(root, "*")); err != nil || slices.ContainsFunc(left, func(name string) bool {
		return !strings.HasPrefix(filepath.Base(name), "Test")
	}) {
		t.Errorf("%q is left, %v", left, err)
	}
	for _, cmd := range allCommands() {
		if path := cmd.CommandPath(); cmd.Runnable() && !covered[path] {
			t.Errorf("%q has no case in canaryCases", path)
		}
		delete(covered, cmd.CommandPath())
	}
	for path := range covered {
		t.Errorf("canaryCases has %q, which is no command", path)
	}
}

// inPrivateFolder makes a folder of its own the present one, and all temporary files go there.
func inPrivateFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", dir)
	return dir
}

// allCommands are all commands of the program, those that cobra adds among them.
func allCommands() []*cobra.Command {
	root := (&command{}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return all
}

// canaryCases has every command, and for those that ask somebody every trouble.
var canaryCases = []canaryCase{
	{command: "rehydrate", trouble: "no command", said: "Usage:"},
	{command: "rehydrate", trouble: "a secret for a command", args: secretArgument, code: exitUsage, said: "unknown command"},
	{command: "rehydrate", trouble: "a secret for a flag", args: secretArgument, arm: secretIsFlag, code: exitUsage, said: "unknown flag"},
	{command: "rehydrate help", trouble: "a secret for a topic", args: secretArgument, said: "Usage:"},
	{command: "rehydrate completion bash", trouble: "none", said: "complete"},
	{command: "rehydrate completion zsh", trouble: "none", said: "complete"},
	{command: "rehydrate completion fish", trouble: "none", said: "complete"},
	{command: "rehydrate completion powershell", trouble: "none", said: "complete"},
	{command: "rehydrate init", here: true, trouble: "none", args: func(h *haunted) []string {
		return []string{"made", "--manifest", filepath.Join(h.release, "annotations.csv")}
	}, said: "release.toml"},
	{command: "rehydrate init", here: true, trouble: "a secret for a file", args: func(h *haunted) []string {
		return []string{"made", "--manifest", h.emulator.Secret}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate status", trouble: "none", args: inWorkspace, arm: ranBefore, said: "kept"},
	{command: "rehydrate status", trouble: "a secret for a folder", args: func(h *haunted) []string {
		return []string{"-w", h.emulator.Secret}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate status", trouble: "panic", args: inWorkspace, arm: func(h *haunted) { ranBefore(h); h.panicAt(1) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate explain", trouble: "none", args: func(h *haunted) []string { return append(inWorkspace(h), "few000") }, arm: ranBefore, said: "live"},
	{command: "rehydrate explain", trouble: "a secret for an id", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate explain", trouble: "panic", args: func(h *haunted) []string { return append(inWorkspace(h), "few000") },
		arm: func(h *haunted) { ranBefore(h); h.panicAt(1) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate labels", trouble: "a secret for a command", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate labels stats", trouble: "none", args: func(h *haunted) []string { return []string{h.workspace} }, arm: ranBefore, said: "related_content"},
	{command: "rehydrate labels stats", trouble: "a secret for a dataset", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate labels split", here: true, trouble: "none", args: func(h *haunted) []string {
		return []string{h.release, "--ratios", "1:1", "--out", "split.csv"}
	}, said: "worst"},
	{command: "rehydrate labels split", here: true, trouble: "a secret for a name", args: func(h *haunted) []string {
		return []string{h.release, "--ratios", "1:1", "--names", "a," + h.emulator.Secret + "!"}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate labels agreement", trouble: "a secret for a file", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate labels score", trouble: "a secret for a file", args: func(h *haunted) []string {
		return []string{h.emulator.Secret, "--gold", h.release}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate ocr", trouble: "none", args: func(h *haunted) []string { return append(inWorkspace(h), h.release, "--force") }, arm: ranBefore, said: "kept"},
	{command: "rehydrate ocr", trouble: "a secret for a release", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate ocr", trouble: "panic", args: func(h *haunted) []string { return append(inWorkspace(h), h.release, "--force") },
		arm: func(h *haunted) { ranBefore(h); h.panicAt(5) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate dedupe", trouble: "none", args: deduped, arm: ranBefore, said: "groups.csv"},
	{command: "rehydrate dedupe", trouble: "pictures with metadata", args: func(h *haunted) []string {
		return []string{filepath.Join(h.dir, "..", filepath.Base(h.dir)+"-pictures"), "-o", filepath.Join(h.dir, "answer")}
	}, arm: drawnPictures, said: "groups.csv"},
	{command: "rehydrate dedupe", trouble: "a secret for a folder", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate dedupe", trouble: "panic", args: deduped, arm: func(h *haunted) { ranBefore(h); h.panicAt(1) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate report", trouble: "none", args: inWorkspace, arm: ranBefore, said: "report.html"},
	{command: "rehydrate report", trouble: "none, with content", args: func(h *haunted) []string {
		return append(inWorkspace(h), "--out", filepath.Join(h.dir, "look.html"), "--thumbnails", "--texts")
	}, arm: ranBefore, said: "look.html"},
	{command: "rehydrate report", trouble: "a secret for a file", args: func(h *haunted) []string {
		return append(inWorkspace(h), "--out", h.emulator.Secret+"/look.html")
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate report", trouble: "panic", args: inWorkspace, arm: func(h *haunted) { ranBefore(h); h.panicAt(1) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate version", trouble: "none", said: "goimagehash"},
	{command: "rehydrate version", trouble: "a secret for the ocr program", args: func(h *haunted) []string {
		return []string{"--ocr", h.emulator.Secret}
	}, said: "[redacted]"},
	{command: "rehydrate doctor", trouble: "none", args: inWorkspace, said: "credentials"},
	{command: "rehydrate doctor", trouble: "a secret for a release", args: secretArgument, code: exitFailed, said: "[redacted]"},
	{command: "rehydrate doctor", trouble: "a secret for the ocr program", args: func(h *haunted) []string {
		return append(inWorkspace(h), "--ocr", h.emulator.Secret)
	}, code: exitFailed, said: "[redacted]"},
	{command: "rehydrate man", trouble: "none", args: func(h *haunted) []string { return []string{filepath.Join(h.dir, "man1")} }, said: "rehydrate-run.1"},
	{command: "rehydrate man", trouble: "a secret for a folder", args: func(h *haunted) []string {
		return []string{filepath.Join("/proc", h.emulator.Secret)}
	}, code: exitFailed, said: "[redacted]"},
	{command: "rehydrate purge", trouble: "none", args: (*haunted).purgeArgs, arm: ranBefore, said: "asked"},
	{command: "rehydrate purge", trouble: "offline", args: func(h *haunted) []string {
		return append(inWorkspace(h), h.release, "--offline", "--id", "few000")
	}, arm: ranBefore, said: "few000"},
	{command: "rehydrate purge", trouble: "a secret for a post", args: func(h *haunted) []string {
		return append(inWorkspace(h), h.release, "--id", h.emulator.Secret)
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate purge", trouble: "500 at the token endpoint", args: (*haunted).purgeArgs, arm: func(h *haunted) {
		ranBefore(h)
		f := tokenEndpoint
		f.Kind = hostile.Echo(500, echoPage)
		h.emulator.Fault(f)
	}, code: exitRetry, said: "500", long: true},
	{command: "rehydrate purge", trouble: "panic", args: (*haunted).purgeArgs, arm: func(h *haunted) { ranBefore(h); h.panicAt(3) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate export", here: true, trouble: "none", args: func(h *haunted) []string {
		return append(inWorkspace(h), h.release, "--to", "copied", "--note", "a test")
	}, arm: ranBefore, said: "copied"},
	{command: "rehydrate export", here: true, trouble: "a secret for a folder", args: func(h *haunted) []string {
		return append(inWorkspace(h), "--destroyed", h.emulator.Secret, "--note", "a test")
	}, arm: ranBefore, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate tombstones", trouble: "a secret for a command", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate tombstones show", trouble: "none", args: inWorkspace, arm: ranBefore, said: "few003"},
	{command: "rehydrate tombstones export", trouble: "none", args: func(h *haunted) []string { return append(inWorkspace(h), "-") }, arm: ranBefore, said: "few003,removed"},
	{command: "rehydrate tombstones lift", trouble: "a secret for a release", args: func(h *haunted) []string {
		return []string{h.emulator.Secret, "--statement", h.emulator.Secret}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate grant", trouble: "a secret for a command", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate grant show", trouble: "a secret for a file", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate grant check", trouble: "a secret for a release", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate audit", trouble: "none", args: (*haunted).auditArgs, arm: ranBefore, said: "PASS"},
	{command: "rehydrate audit", trouble: "none, offline, with a page", args: func(h *haunted) []string {
		return append(inWorkspace(h), h.release, "--offline", "--html", filepath.Join(h.dir, "audit.html"), "--checkpoint", filepath.Join(h.dir, "checkpoint"))
	}, arm: ranBefore, said: "PASS"},
	{command: "rehydrate audit", trouble: "401 of the API", args: (*haunted).auditArgs, arm: func(h *haunted) {
		ranBefore(h)
		where := infoEndpoint
		where.Kind = hostile.Echo(401, `{"message": "REQUEST", "reason": "REQUEST", "error": 401}`)
		h.emulator.Fault(where)
	}, code: exitRejected, said: "unauthorized", long: true},
	{command: "rehydrate audit", trouble: "an answer cut short", args: (*haunted).auditArgs, arm: func(h *haunted) {
		ranBefore(h)
		where := infoEndpoint
		where.Kind = hostile.TruncatedJSON()
		h.emulator.Fault(where)
	}, code: exitIncomplete, said: "truncated_json", long: true},
	{command: "rehydrate audit", trouble: "a secret for a file", args: func(h *haunted) []string {
		return append(inWorkspace(h), h.release, "--offline", h.emulator.Secret)
	}, arm: ranBefore, code: exitIncomplete, said: "[redacted]"},
	{command: "rehydrate audit", trouble: "a secret for a release", args: secretArgument, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate audit", trouble: "panic", args: func(h *haunted) []string { return append(inWorkspace(h), h.release, "--offline") },
		arm: func(h *haunted) { ranBefore(h); h.panicAt(1) }, code: exitFailed, said: "internal error"},
	{command: "rehydrate verify", trouble: "none", args: inWorkspace, arm: ranBefore, said: "whole"},
	{command: "rehydrate verify", trouble: "a secret for a folder", args: func(h *haunted) []string {
		return []string{"-w", h.emulator.Secret}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate diff", trouble: "none", args: func(h *haunted) []string { return []string{h.workspace, h.workspace} }, arm: ranBefore, said: "none"},
	{command: "rehydrate diff", trouble: "a secret for a dataset", args: func(h *haunted) []string {
		return []string{h.emulator.Secret, h.emulator.Secret}
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate demo", here: true, whole: true, trouble: "none", args: inWorkspace, said: "kept", long: true},
	{command: "rehydrate demo", here: true, trouble: "none, with a release", args: func(h *haunted) []string {
		return []string{"-w", h.workspace, "--release", h.release}
	}, said: "kept"},
	{command: "rehydrate demo", here: true, trouble: "panic", args: inWorkspace, arm: func(h *haunted) { h.panicAt(5) }, code: exitFailed, said: "internal error"},

	{command: "rehydrate run", trouble: "none", args: (*haunted).runArgs, said: "kept"},
	{command: "rehydrate run", trouble: "a secret for a mode", args: func(h *haunted) []string {
		return append(h.runArgs(), "--filters", h.emulator.Secret)
	}, code: exitUsage, said: "[redacted]"},
	{command: "rehydrate run", trouble: "a secret for the ocr program", args: func(h *haunted) []string {
		return append(h.runArgs(), "--ocr", h.emulator.Secret)
	}, code: exitFailed, said: "[redacted]"},
	spoiled("401 at the token endpoint", tokenEndpoint, hostile.Echo(401, `{"message": "REQUEST", "error": 401}`), exitRejected, "bad_credentials"),
	spoiled("401 as HTML at the token endpoint", tokenEndpoint, hostile.Echo(401, echoPage), exitRejected, "bad_credentials"),
	spoiled("403 at the token endpoint", tokenEndpoint, hostile.Echo(403, echoPage), exitRejected, "blocked"),
	spoiled("500 at the token endpoint", tokenEndpoint, hostile.Echo(500, echoPage), exitRetry, "500"),
	spoiled("an OAuth error with 200", tokenEndpoint, hostile.Echo(200, `{"error": "REQUEST", "error_description": "REQUEST", "access_token": "REQUEST"}`), exitRejected, "oauth_error"),
	spoiled("a token with an error", tokenEndpoint, hostile.Echo(200, `{"error": "canary", "access_token": "REQUEST", "message": "REQUEST"}`), exitRejected, "canary"),
	spoiled("a token cut short", tokenEndpoint, hostile.TruncatedJSON(), exitRetry, "token_malformed"),
	spoiled("401 of the API", infoEndpoint, hostile.Echo(401, `{"message": "REQUEST", "reason": "REQUEST", "error": 401}`), exitRejected, "unauthorized"),
	spoiled("401 of the API as HTML", infoEndpoint, hostile.Echo(401, echoPage), exitRejected, "unauthorized"),
	spoiled("403 page that blocks", infoEndpoint, hostile.Echo(403, echoPage), exitRejected, "blocked"),
	spoiled("429 of the API", infoEndpoint, hostile.Echo(429, `{"message": "REQUEST", "error": 429}`), exitRetry, "429"),
	spoiled("500 of the API", infoEndpoint, hostile.Echo(500, `{"message": "REQUEST", "error": 500}`), exitRetry, "500"),
	spoiled("an answer cut short", infoEndpoint, hostile.TruncatedJSON(), exitRetry, "truncated_json"),
	spoiled("a token that ends", once(infoEndpoint), hostile.ExpireTokenHTML(), exitDone, "kept"),
	spoiled("403 of an image host", imageHost, hostile.Echo(403, echoPage), exitRetry, "http_403"),
	spoiled("500 of an image host", imageHost, hostile.Echo(500, echoPage), exitRetry, "http_500"),
	spoiled("a page of an image host", imageHost, hostile.Echo(200, echoPage), exitDone, "html"),
	{command: "rehydrate run", trouble: "panic where credentials are read", args: (*haunted).runArgs, arm: func(h *haunted) {
		getenv := h.process.getenv
		h.process.getenv = func(name string) string {
			if name == "REDDIT_USERNAME" {
				panic(h.given())
			}
			return getenv(name)
		}
	}, code: exitFailed, said: "internal error: canary panic [redacted]"},
	{command: "rehydrate run", trouble: "panic where the ocr program is looked for", args: (*haunted).runArgs, arm: func(h *haunted) {
		h.process.executable = func() (string, error) { panic(h.given()) }
	}, code: exitFailed, said: "internal error: canary panic [redacted]"},
}

// echoPage repeats the request where a client might look: in the title and in the text.
const echoPage = "<html><head><title>REQUEST</title></head><body><h1>REQUEST</h1></body></html>"

var (
	tokenEndpoint = hostile.Fault{Host: "www.reddit.com"}
	infoEndpoint  = hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info"}
	imageHost     = hostile.Fault{Host: "i.redd.it"}
)

func once(f hostile.Fault) hostile.Fault {
	f.Times = 1
	return f
}

// spoiled is a run whose requests of one kind are answered badly.
func spoiled(trouble string, where hostile.Fault, kind hostile.FaultKind, code int, said string) canaryCase {
	where.Kind = kind
	return canaryCase{command: "rehydrate run", trouble: trouble, args: (*haunted).runArgs,
		arm: func(h *haunted) { h.emulator.Fault(where) }, code: code, said: said, long: true}
}

func secretArgument(h *haunted) []string {
	if h.dashed {
		return []string{"--" + h.emulator.Secret}
	}
	return []string{h.emulator.Secret}
}

func secretIsFlag(h *haunted) { h.dashed = true }

func inWorkspace(h *haunted) []string { return []string{"-w", h.workspace} }

// deduped compares the pictures of a workspace.
func deduped(h *haunted) []string {
	return []string{filepath.Join(h.workspace, "images"), "-o", filepath.Join(h.dir, "answer")}
}

// drawnPictures puts two pictures that are the same, with canaries in their metadata, beside the folder that
// is searched.
func drawnPictures(h *haunted) {
	drawn, err := redditemu.Draw(redditemu.Spec{Seed: 7})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range []string{"a.jpg", "b.jpg"} {
		h.write(filepath.Join(h.dir, "..", filepath.Base(h.dir)+"-pictures", name), string(drawn.Body))
	}
}

// ranBefore makes a workspace with a finished dataset.
func ranBefore(h *haunted) {
	if f := h.do(append([]string{"run"}, h.runArgs()...)...); f.code != exitDone {
		h.t.Fatalf("run = exit %d\n%s", f.code, f.stderr)
	}
}

// A canaryCase is one command line in one kind of trouble.
type canaryCase struct {
	command string // its path
	trouble string
	args    func(h *haunted) []string // after the command's path
	arm     func(h *haunted)          // brings the trouble about; may be nil
	code    int
	said    string // must be printed: the trouble was met
	long    bool   // only in text: another case of the command does it with --json
	whole   bool   // only in the full campaign: it reads the whole demo
	here    bool   // it writes into the present folder
}

func (c canaryCase) name() string { return strings.TrimSpace(c.command + ", " + c.trouble) }

// run runs one case in a site of its own and searches all that is left of it.
func (c canaryCase) run(t *testing.T, mode []string) {
	h := newHaunted(t, t.TempDir())
	if c.here {
		t.Chdir(h.dir)
	} else {
		t.Parallel()
	}
	if c.arm != nil {
		c.arm(h)
	}
	args := strings.Fields(c.command)[1:]
	if c.args != nil {
		args = append(args, c.args(h)...)
	}
	f := h.do(append(args, mode...)...)
	if f.code != c.code {
		t.Errorf("exit %d, want %d", f.code, c.code)
	}
	if !strings.Contains(f.stdout+f.stderr, c.said) {
		t.Errorf("%q was not said: the trouble was not met", c.said)
	}
	h.search(f)
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", f.stdout, f.stderr)
	}
}

// A haunted site is one whose secrets are looked for.
type haunted struct {
	*site
	dashed  bool    // the secret stands for a flag
	process process // what the commands get of the world
	dir     string  // holds all that the commands write

	mu     sync.Mutex
	tokens map[string]bool
	before map[string]bool // the tokens of earlier commands, which the present one can't know
}

func newHaunted(t *testing.T, dir string) *haunted {
	t.Helper()
	posts := fewPosts(4)
	posts[3].Condition = redditemu.Removed
	posts[0].Images = nil // one that the emulator draws, with canaries in its metadata
	h := &haunted{site: newSite(t, fewAnnotations(posts), fastPolicy, posts...), dir: dir, tokens: map[string]bool{}}
	h.workspace = filepath.Join(dir, "ws")
	h.emulator.OnRequest(func(hostile.Request) { h.noteTokens() })
	env := map[string]string{"REDDIT_CLIENT_ID": h.emulator.ClientID, "REDDIT_CLIENT_SECRET": h.emulator.Secret,
		"REDDIT_USERNAME": canaryUser, "IMGUR_CLIENT_ID": canaryImgur}
	h.process = process{getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""),
		executable: func() (string, error) { return h.reader, nil }, now: time.Now, stop: make(chan struct{})}
	return h
}

// noteTokens remembers the tokens of now: some end later.
func (h *haunted) noteTokens() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, token := range h.emulator.Tokens() {
		h.tokens[token] = true
	}
}

func (h *haunted) do(args ...string) finished {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	p := h.process
	p.args, p.stdout, p.stderr = args, &stdout, &stderr
	h.mu.Lock()
	h.before = maps.Clone(h.tokens)
	h.mu.Unlock()
	code := run(h.t.Context(), p)
	h.noteTokens()
	return finished{stdout.String(), stderr.String(), code}
}

// runArgs are the arguments of run, without an --ocr: the program is found beside this one.
func (h *haunted) runArgs() []string {
	return slices.DeleteFunc(h.args()[1:], func(a string) bool { return a == "--ocr" || a == h.reader })
}

// auditArgs are the arguments of a live audit.
func (h *haunted) auditArgs() []string {
	return []string{h.release, "-w", h.workspace, "--approval", "TEST-1", "--connect-to", h.emulator.ConnectTo(), "--cacert", h.cacert}
}

// purgeArgs are the arguments of a purge that asks Reddit.
func (h *haunted) purgeArgs() []string {
	return []string{h.release, "-w", h.workspace, "--approval", "TEST-1", "--connect-to", h.emulator.ConnectTo(), "--cacert", h.cacert}
}

// secrets are all that must be found nowhere, by what they are.
func (h *haunted) secrets() map[string]string {
	all := map[string]string{"client id": h.emulator.ClientID, "client secret": h.emulator.Secret, "user name": canaryUser, "imgur's client id": canaryImgur}
	h.mu.Lock()
	defer h.mu.Unlock()
	for token := range h.tokens {
		all["token "+fmt.Sprint(len(all))] = token
	}
	for i, canary := range hostile.Canaries() {
		all["canary "+fmt.Sprint(i)] = canary
	}
	return all
}

// emulatorToken is the form of every token of an emulator, the demo's own as well.
var emulatorToken = regexp.MustCompile(`emu\.[0-9a-z]{26}`)

// search fails the test for every secret in what a command printed, and in every file of the
// folder for what it writes, with Parquet also as it reads.
func (h *haunted) search(f finished) {
	h.t.Helper()
	found := map[string][]byte{"stdout": []byte(f.stdout), "stderr": []byte(f.stderr)}
	maps.Copy(found, everyFile(h.t, h.dir))
	for where, text := range found {
		if emulatorToken.Match(text) {
			h.t.Errorf("%s holds a token", where)
		}
		for what, secret := range h.secrets() {
			if form := findSecret(text, secret); form != "" {
				h.t.Errorf("%s holds the %s (%s)", where, what, form)
			}
		}
	}
}

// everyFile reads all files below a folder, their names, and the values of those that are Parquet.
func everyFile(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		found["the names of files"] = append(found["the names of files"], d.Name()+"\n"...)
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		found[path] = b
		if strings.HasSuffix(path, ".parquet") {
			found[path+" read"] = parquetValues(t, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parquetValues are the strings of a Parquet file, which compression hides.
func parquetValues(t testing.TB, b []byte) []byte {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var values []byte
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		for buf := make([]parquet.Row, 16); ; {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					if v.Kind() == parquet.ByteArray {
						values = append(append(values, v.ByteArray()...), '\n')
					}
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		rows.Close()
	}
	return values
}

// findSecret returns the form in which text holds a secret, "" for none. It looks for the
// secret as it is, escaped and in hex, in any case, and in whatever text has of base64.
func findSecret(text []byte, secret string) string {
	lower := bytes.ToLower(text)
	for form, s := range map[string]string{"raw": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "hex": hex.EncodeToString([]byte(secret))} {
		if bytes.Contains(lower, []byte(strings.ToLower(s))) {
			return form
		}
	}
	for _, alphabet := range []struct {
		form string
		runs *regexp.Regexp
		*base64.Encoding
	}{{"base64", stdRuns, base64.RawStdEncoding}, {"base64 for URLs", urlRuns, base64.RawURLEncoding}} {
		for _, chars := range alphabet.runs.FindAll(text, -1) {
			for from := range 4 { // where the text that was encoded began can't be seen
				part := chars[from:]
				decoded, err := alphabet.DecodeString(string(part[:len(part)-len(part)%4]))
				if err != nil {
					continue
				}
				if rest, err := alphabet.DecodeString(string(part[len(part)-len(part)%4:])); err == nil {
					decoded = append(decoded, rest...)
				}
				if bytes.Contains(bytes.ToLower(decoded), []byte(strings.ToLower(secret))) {
					return alphabet.form
				}
			}
		}
	}
	return ""
}

var (
	stdRuns = regexp.MustCompile(`[A-Za-z0-9+/]{8,}`)
	urlRuns = regexp.MustCompile(`[A-Za-z0-9_-]{8,}`)
)

// TestFindSecret shows that the search of TestSecrets finds each form, and nothing else.
func TestFindSecret(t *testing.T) {
	const secret = "canary+s3cret/zq?90"
	forms := map[string]string{"raw": secret, "upper case": strings.ToUpper(secret), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"hex": fmt.Sprintf("%x", secret), "HEX": fmt.Sprintf("%X", secret)}
	for before := range 4 {
		text := []byte(strings.Repeat("b", before) + secret + strings.Repeat("a", before))
		forms[fmt.Sprint("base64 at ", before)] = base64.StdEncoding.EncodeToString(text)
		forms[fmt.Sprint("unpadded at ", before)] = base64.RawStdEncoding.EncodeToString(text)
		forms[fmt.Sprint("for URLs at ", before)] = base64.URLEncoding.EncodeToString(text)
		forms[fmt.Sprint("for URLs, unpadded at ", before)] = base64.RawURLEncoding.EncodeToString(text)
	}
	dir := t.TempDir()
	for form, text := range forms {
		for _, line := range []string{text, "\x00\x01 " + text + " \xff", `{"x":"` + text + `"}`} {
			if findSecret([]byte(line), secret) == "" {
				t.Errorf("%s: the search does not find %q", form, line)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "."+hex.EncodeToString([]byte(form))), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range everyFile(t, dir) {
		if name != "the names of files" && findSecret(text, secret) == "" {
			t.Errorf("%s: the search of a folder does not find it", name)
		}
	}
	for _, line := range []string{"", secret[1:], secret[:len(secret)-1], base64.StdEncoding.EncodeToString([]byte(secret[1:])), strings.Repeat("A", 100)} {
		if form := findSecret([]byte(line), secret); form != "" {
			t.Errorf("the search finds %q as %s, which is not there", line, form)
		}
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[struct{ Text string }](&file, parquet.Compression(&parquet.Zstd))
	if _, err := w.Write([]struct{ Text string }{{strings.Repeat("x", 1000) + secret}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if findSecret(parquetValues(t, file.Bytes()), secret) == "" {
		t.Error("the search does not find what a Parquet file holds compressed")
	}
}

// TestScrubbed shows that the streams themselves are scrubbed: what a command prints on them
// with a secret in it comes out without.
func TestScrubbed(t *testing.T) {
	for _, file := range []bool{false, true} {
		h := newHaunted(t, inPrivateFolder(t))
		secret := h.emulator.Secret
		if file {
			path := filepath.Join(t.TempDir(), "secret")
			h.write(path, secret+"\n")
			h.process.getenv = func(k string) string { return map[string]string{"REDDIT_CLIENT_SECRET_FILE": path}[k] }
		}
		f := h.do("no-such-command-"+secret, "--json")
		for name, text := range map[string]string{"stdout": f.stdout, "stderr": f.stderr} {
			if !strings.Contains(text, `no-such-command-[redacted]`) || strings.Contains(text, secret) {
				t.Errorf("%s: %s", name, text)
			}
		}
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(f.stdout), &answer); err != nil || answer.Error == "" {
			t.Errorf("--json printed no JSON (%v): %s", err, f.stdout)
		}
	}
}

// TestServeAfterExport: the emulator's credentials are for everybody, also where a user has
// already exported them.
func TestServeAfterExport(t *testing.T) {
	h := newHaunted(t, inPrivateFolder(t)) // its credentials are those of the demo: they follow from the seed
	stop := make(chan struct{})
	close(stop)
	h.process.stop = stop
	if f := h.do("demo", "--serve"); f.code != exitDone || !strings.Contains(f.stdout, "REDDIT_CLIENT_SECRET="+h.emulator.Secret+"\n") {
		t.Errorf("exit %d: %s%s", f.code, f.stdout, f.stderr)
	}
}

// secretFlag is how a flag for a secret would be called.
var secretFlag = regexp.MustCompile(`(?i)secret|token|passw|passphrase|credential|client-?id|api-?key|bearer|user-?name`)

// TestNoSecretFlags: arguments can be read by everybody on the machine, so no flag takes a secret.
func TestNoSecretFlags(t *testing.T) {
	if !secretFlag.MatchString("reddit-client-id") || secretFlag.MatchString("cacert") {
		t.Fatal("the test knows no flag for a secret")
	}
	flags := 0
	for _, cmd := range allCommands() {
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				flags++
				if secretFlag.MatchString(f.Name) {
					t.Errorf("%s --%s: a secret comes from the environment or a file that it names", cmd.CommandPath(), f.Name)
				}
			})
		}
	}
	if flags < 10 {
		t.Errorf("only %d flags were looked at", flags)
	}
}

// given is what a panic is called with here: all that is secret, in several forms.
func (h *haunted) given() string {
	h.noteTokens()
	basic := h.emulator.ClientID + ":" + h.emulator.Secret
	text := fmt.Sprintf("canary panic %s %s %x %s", basic, base64.StdEncoding.EncodeToString([]byte(basic)), h.emulator.Secret, canaryImgur)
	h.mu.Lock()
	defer h.mu.Unlock()
	for token := range h.tokens {
		if !h.before[token] {
			text += " bearer " + token
		}
	}
	return text
}

// panicAt has the clock panic at its n-th reading.
func (h *haunted) panicAt(n int) {
	var mu sync.Mutex
	calls := 0
	h.process.now = func() time.Time {
		mu.Lock()
		calls++
		now := calls == n
		mu.Unlock()
		if now {
			panic(errors.New(h.given()))
		}
		return time.Now()
	}
}

// TestPanics has the clock panic at readings all over a run, in whichever goroutine that is. Each time the run ends in 1 and says so without a secret, and the workspace is
// closed: the next run has it, and the one that ends well is whole.
func TestPanics(t *testing.T) {
	long(t)
	h := newHaunted(t, inPrivateFolder(t))
	readings := 0
	traces := ""
	for n := 1; ; n += 1 + n/4 {
		h.panicAt(n)
		f := h.do(append([]string{"run", "-v"}, h.runArgs()...)...)
		h.search(f)
		if !strings.Contains(f.stderr, "internal error") {
			if f.code != exitDone {
				t.Errorf("the run after all panics ended in %d:\n%s", f.code, f.stderr)
			}
			break
		}
		readings, traces = readings+1, traces+f.stderr
		if f.code != exitFailed || !strings.Contains(f.stderr, "internal error: canary panic [redacted]") || !strings.Contains(f.stderr, "hint: this is a mistake in rehydrate") {
			t.Errorf("reading %d: exit %d:\n%s", n, f.code, f.stderr)
		}
		ws, err := workspace.Open(t.Context(), h.workspace, workspace.Options{})
		if err != nil {
			t.Fatalf("reading %d: the workspace was not closed: %v", n, err)
		}
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	}
	if readings < 3 {
		t.Errorf("only %d readings of the clock panicked", readings)
	}
	for _, where := range []string{"created by golang.org/x/sync/errgroup.(*Group).Go", "(*command).rehydrate("} {
		if !strings.Contains(traces, where) {
			t.Errorf("no panic came from %q: the test misses a kind of goroutine", where)
		}
	}
	t.Logf("the clock panicked at %d readings", readings)
	if t.Failed() {
		t.Log(traces)
	}
	for _, r := range h.outcomes() {
		if want := map[bool]manifest.Outcome{true: manifest.Removed, false: manifest.Kept}[r.Key.ID == "few003"]; r.Outcome != want {
			t.Errorf("outcome of %s = %s, want %s", r.Key.ID, r.Outcome, want)
		}
	}
}
