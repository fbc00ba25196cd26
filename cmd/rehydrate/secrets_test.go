package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/workspace"
)

// What of the operator must be nowhere, beside what the emulator's app has.
const (
	canaryUser  = "canary_user_zq88"
	canaryImgur = "canaryimgurzq89"
	canaryKey   = "canary-model-key-zq90"
)

// TestSecrets takes canaries through every command, with everything that it says and in text
// as well as JSON, while Reddit and the hosts refuse, repeat what they were sent or send rubbish,
// and while the program panics. Nothing that is printed, stored or left behind holds one.
func TestSecrets(t *testing.T) {
	long(t)
	covered, root := map[string]bool{}, inPrivateFolder(t)
	ran := newHaunted(t, t.TempDir())
	ran.do("run", "ASKS").want(t, exitDone)
	t.Run("cases", func(t *testing.T) {
		for i, c := range canaryCases {
			covered[strings.TrimSpace("rehydrate "+c.command)] = true
			for j, mode := range [][]string{{"-v"}, {"-v", "--json"}} {
				// A sample has each case in text or in JSON, and no demo that is read whole.
				if full() || j == i%2 && c.args != "" || c.command != "demo" && j == i%2 {
					t.Run(c.command+", "+c.trouble+" "+strings.Join(mode, " "), func(t *testing.T) { c.run(t, ran, mode) })
				}
			}
		}
	})
	left, err := filepath.Glob(filepath.Join(root, "[^T]*")) // all but the tests' own folders
	if err != nil || len(left) > 0 {
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

// TestUnaskedBytes: what a host sends behind the end of an answer is printed nowhere.
func TestUnaskedBytes(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	s := newSite(t, fewAnnotations(fewPosts(1)), fastPolicy, fewPosts(1)...)
	s.emulator.Fault(hostile.Fault{Host: "i.redd.it", PathPrefix: "/", Kind: hostile.Unasked("more of it")})
	f := s.do(s.env(), s.args("-v")...)
	if s.emulator.Close(); strings.Contains(printed.String()+f.stdout+f.stderr, "more of it") ||
		!strings.Contains(f.stderr, "not_an_image") {
		t.Errorf("printed:\n%s%s%s", &printed, f.stdout, f.stderr)
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

// A canaryCase is one command line in one kind of trouble.
type canaryCase struct {
	command, trouble string
	// after the command; SECRET, WS (after a run), NEW (no workspace yet), RELEASE, DIR, ASKS and REDDIT stand for theirs
	args string
	arm  func(h *haunted) // brings the trouble about; may be nil
	code int
	said string // must be printed: the trouble was met
}

// canaryCases has every command, and for those that ask somebody every trouble.
var canaryCases = []canaryCase{
	{"", "no command", "", nil, exitDone, "Rebuild a dataset"},
	{"", "a secret for a command", "SECRET", nil, exitUsage, "unknown command"},
	{"", "a secret for a flag", "--SECRET", nil, exitUsage, "has no flag"},
	{"help", "a secret for a topic", "SECRET", nil, exitUsage, "unknown command"},
	{"completion", "a secret for a shell", "SECRET", nil, exitUsage, "has no command"},
	{"completion bash", "none", "", nil, exitDone, "complete"},
	{"completion zsh", "none", "", nil, exitDone, "complete"},
	{"completion fish", "none", "", nil, exitDone, "complete"},
	{"completion powershell", "none", "", nil, exitDone, "complete"},
	{"init", "none", "DIR/made --manifest RELEASE/annotations.csv", nil, exitDone, "release.toml"},
	{"init", "a secret for a file", "DIR/made --manifest SECRET", nil, exitUsage, "[redacted]"},
	{"status", "none", "-w WS", nil, exitDone, "kept"},
	{"status", "a secret for a folder", "-w SECRET", nil, exitUsage, "[redacted]"},
	{"status", "panic", "-w WS", panicAt(1), exitFailed, "internal error"},
	{"explain", "none", "few000 -w WS", nil, exitDone, "live"},
	{"explain", "a secret for an id", "SECRET", nil, exitUsage, "[redacted]"},
	{"explain", "panic", "few000 -w WS", panicAt(1), exitFailed, "internal error"},
	{"labels", "a secret for a command", "SECRET", nil, exitUsage, "[redacted]"},
	{"labels stats", "none", "WS", nil, exitDone, "related_content"},
	{"labels stats", "a secret for a dataset", "SECRET", nil, exitUsage, "[redacted]"},
	{"labels split", "none", "RELEASE --ratios 1:1 --out DIR/split.csv", nil, exitDone, "train"},
	{"labels split", "a secret for a name", "RELEASE --ratios 1:1 --names a,SECRET!", nil, exitUsage, "[redacted]"},
	{"labels agreement", "a secret for a file", "SECRET", nil, exitUsage, "[redacted]"},
	{"labels score", "a secret for a file", "SECRET --release RELEASE", nil, exitUsage, "[redacted]"},
	{"labels groups", "a secret for a file", "SECRET --release RELEASE", nil, exitUsage, "[redacted]"},
	{"labels weights", "a secret for a release", "SECRET", nil, exitUsage, "[redacted]"},
	{"features", "a secret for a dataset", "SECRET", nil, exitUsage, "[redacted]"},
	{"classify", "a secret for a workspace", "-w SECRET --endpoint http://127.0.0.1:1/v1 --model m", nil, exitUsage,
		"[redacted]"},
	{"classify", "a secret for a server",
		"-w WS --endpoint http://127.0.0.1:1/SECRET --model m --split all -o DIR/answers", nil, exitRetry, "127.0.0.1:1"},
	{"classify", "an answer that holds the key", "-w WS --endpoint MODEL --model m --split all -o DIR/answers",
		haunt(200, `{"model":"KEY","choices":[{"finish_reason":"stop","message":{"content":"the key is KEY"}}]}`),
		exitDone, "not_json"},
	{"classify", "401", "-w WS --endpoint MODEL --model m --split all -o DIR/answers",
		haunt(401, `{"error":{"message":"bad key KEY","code":"KEY"}}`), exitRejected, "401"},
	{"classify", "a parameter that is refused", "-w WS --endpoint MODEL --model m --split all -o DIR/answers",
		haunt(400, `{"error":{"message":"KEY: temperature is not supported","param":"temperature"}}`), exitUsage,
		"--omit temperature"},
	{"moderate", "a secret for a workspace", "-w SECRET --endpoint http://127.0.0.1:1/v1 --model m", nil, exitUsage,
		"[redacted]"},
	{"moderate", "scores that hold the key", "-w WS --endpoint MODEL --model m -o DIR/answers",
		haunt(200,
			`{"model":"KEY","results":[{"flagged":true,"categories":{"KEY":true},"category_scores":{"KEY":0.5}}]}`),
		exitDone, "flagged"},
	{"moderate", "403", "-w WS --endpoint MODEL --model m -o DIR/answers",
		haunt(403, `{"error":{"message":"bad key KEY"}}`), exitRejected, "403"},
	{"moderate", "a refusal of a third party",
		"-w WS --release RELEASE REDDIT --third-party X --note why --endpoint MODEL --model m --guard -o DIR/answers",
		haunt(400, `{"error":{"message":"not with KEY","code":"content_policy_violation"}}`), exitDone, "refused"},
	{"select", "a secret for a dump", "SECRET --subreddit memes -o DIR/found", nil, exitUsage, "[redacted]"},
	{"cluster", "a secret for a command", "SECRET", nil, exitUsage, "[redacted]"},
	{"cluster run", "a secret for an engine", "ASKS --shards 2 --engine SECRET", nil, exitUsage, "[redacted]"},
	{"cluster split", "401 of the API", "ASKS --shards 2", echo(infoEndpoint, 401, echoReason), exitRejected,
		"unauthorized"},
	{"cluster merge", "a secret for a release", "SECRET", nil, exitUsage, "[redacted]"},
	{"cluster work", "a secret for a shard", "--shard SECRET", nil, exitUsage, "[redacted]"},
	{"cluster work", "no shards", "--shard 0/2 -w WS", nil, exitFailed, "no work was split"},
	{"annotate", "a secret for a command", "SECRET", nil, exitUsage, "[redacted]"},
	{"annotate export", "none", "RELEASE -w WS --out DIR/round", nil, exitDone, "figurative"},
	{"annotate export", "a secret for a release", "SECRET --out DIR/round", nil, exitUsage, "[redacted]"},
	{"annotate merge", "a secret for a file", "SECRET --release RELEASE --out DIR/merged.jsonl", nil, exitUsage,
		"[redacted]"},
	{"annotate review", "stopped at once", "-w WS --answers DIR/answers", stopped, exitDone, "images"},
	{"annotate review", "a secret for an annotator", "-w WS --annotator SECRET --answers DIR/answers", nil, exitUsage,
		"[redacted]"},
	{"labels moderation", "a secret for a file", "SECRET --release RELEASE", nil, exitUsage, "[redacted]"},
	{"ocr", "none", "RELEASE -w WS --force", nil, exitDone, "kept"},
	{"ocr", "a secret for a release", "SECRET", nil, exitUsage, "[redacted]"},
	{"ocr", "panic", "RELEASE -w WS --force", panicAt(5), exitFailed, "internal error"},
	{"dedupe", "none", "WS/images -o DIR/answer", nil, exitDone, "groups.csv"},
	{"dedupe", "pictures with metadata", "DIR-pictures -o DIR/answer", drawnPictures, exitDone, "groups.csv"},
	{"dedupe", "a secret for a folder", "SECRET", nil, exitUsage, "[redacted]"},
	{"dedupe", "panic", "WS/images -o DIR/answer", panicAt(1), exitFailed, "internal error"},
	{"report", "none", "-w WS", nil, exitDone, "report.html"},
	{"report", "none, with content", "-w WS --out DIR/look.html --thumbnails --texts", nil, exitDone, "look.html"},
	{"report", "a secret for a file", "-w WS --out SECRET/look.html", nil, exitUsage, "[redacted]"},
	{"report", "panic", "-w WS", panicAt(1), exitFailed, "internal error"},
	{"version", "none", "", nil, exitDone, "goimagehash"},
	{"version", "a secret for the ocr program", "--ocr SECRET", nil, exitDone, "[redacted]"},
	{"doctor", "none", "-w WS", nil, exitDone, "credentials"},
	{"doctor", "a secret for a release", "SECRET", nil, exitFailed, "[redacted]"},
	{"doctor", "a secret for the ocr program", "-w WS --ocr SECRET", nil, exitFailed, "[redacted]"},
	{"man", "none", "--out DIR/man1", nil, exitDone, "rehydrate-run.1"},
	{"man", "a secret for a folder", "--out /proc/SECRET", nil, exitFailed, "[redacted]"},
	{"recheck", "none", "ASKS -w WS", nil, exitDone, "asked"},
	{"recheck", "500 at the token endpoint", "ASKS -w WS", echo(tokenEndpoint, 500, echoPage), exitRetry, "500"},
	{"purge", "none", "ASKS -w WS", nil, exitDone, "asked"},
	{"purge", "offline", "RELEASE -w WS --offline --id few000", nil, exitDone, "few000"},
	{"purge", "a secret for a post", "RELEASE -w WS --id SECRET", nil, exitUsage, "[redacted]"},
	{"purge", "500 at the token endpoint", "ASKS -w WS", echo(tokenEndpoint, 500, echoPage), exitRetry, "500"},
	{"purge", "panic", "ASKS -w WS", panicAt(3), exitFailed, "internal error"},
	{"export", "none", "RELEASE -w WS --out DIR/copied --note mine", nil, exitDone, "copied"},
	{"export", "a secret for a folder", "-w WS --destroyed SECRET --note mine", nil, exitUsage, "[redacted]"},
	{"publish", "none", "RELEASE -w WS --digests --checked --out DIR/published", nil, exitDone, "SHA256SUMS"},
	{"publish", "none, to read", "RELEASE -w WS --out DIR/published", nil, exitUsage, "--checked"},
	{"publish", "a secret for a file", "RELEASE --out DIR/published --sign SECRET", nil, exitUsage, "[redacted]"},
	{"tombstones", "a secret for a command", "SECRET", nil, exitUsage, "[redacted]"},
	{"tombstones show", "none", "-w WS", nil, exitDone, "few003"},
	{"tombstones export", "none", "-w WS", nil, exitDone, "few003,removed"},
	{"tombstones lift", "a secret for a release", "SECRET --statement SECRET", nil, exitUsage, "[redacted]"},
	{"grant", "a secret for a command", "SECRET", nil, exitUsage, "[redacted]"},
	{"grant show", "a secret for a file", "SECRET", nil, exitUsage, "[redacted]"},
	{"grant check", "a secret for a release", "SECRET", nil, exitUsage, "[redacted]"},
	{"audit", "none", "ASKS -w WS", nil, exitDone, "PASS"},
	{"audit", "none, offline, with a page", "RELEASE -w WS --offline --html DIR/a.html --checkpoint DIR/c", nil,
		exitDone, "PASS"},
	{"audit", "401 of the API", "ASKS -w WS", echo(infoEndpoint, 401, echoReason), exitRejected, "unauthorized"},
	{"audit", "an answer cut short", "ASKS -w WS", spoil(infoEndpoint, hostile.TruncatedJSON()), exitUndecided,
		"truncated_json"},
	{"audit", "a secret for a file", "RELEASE -w WS --offline SECRET", nil, exitUsage, "[redacted]"},
	{"audit", "a secret for a release", "SECRET", nil, exitUsage, "[redacted]"},
	{"audit", "panic", "RELEASE -w WS --offline", panicAt(1), exitFailed, "internal error"},
	{"verify", "none", "-w WS", nil, exitDone, "whole"},
	{"verify", "a secret for a folder", "-w SECRET", nil, exitUsage, "[redacted]"},
	{"diff", "none", "WS WS", nil, exitDone, "none"},
	{"diff", "a secret for a dataset", "SECRET SECRET", nil, exitUsage, "[redacted]"},
	{"demo", "none", "", nil, exitDone, "kept"},
	{"demo", "none, with a release", "-w NEW --release RELEASE", nil, exitDone, "kept"},
	{"demo", "panic", "-w NEW", panicAt(5), exitFailed, "internal error"},

	{"run", "none", "ASKS", nil, exitDone, "kept"},
	{"run", "a secret for a mode", "ASKS --filters SECRET", nil, exitUsage, "[redacted]"},
	{"run", "a secret for the ocr program", "ASKS --ocr SECRET", nil, exitFailed, "[redacted]"},
	{"run", "401 at the token endpoint", "ASKS", echo(tokenEndpoint, 401, echoMessage), exitRejected, "bad_credentials"},
	{"run", "401 as HTML at the token endpoint", "ASKS", echo(tokenEndpoint, 401, echoPage), exitRejected,
		"bad_credentials"},
	{"run", "403 at the token endpoint", "ASKS", echo(tokenEndpoint, 403, echoPage), exitRejected, "blocked"},
	{"run", "500 at the token endpoint", "ASKS", echo(tokenEndpoint, 500, echoPage), exitRetry, "500"},
	{"run", "an OAuth error with 200", "ASKS", echo(tokenEndpoint, 200,
		`{"error": "REQUEST", "error_description": "REQUEST", "access_token": "REQUEST"}`), exitRejected, "oauth_error"},
	{"run", "a token with an error", "ASKS", echo(tokenEndpoint, 200,
		`{"error": "canary", "access_token": "REQUEST", "message": "REQUEST"}`), exitRejected, "oauth_error"},
	{"run", "a token cut short", "ASKS", spoil(tokenEndpoint, hostile.TruncatedJSON()), exitRetry, "token_malformed"},
	{"run", "401 of the API", "ASKS", echo(infoEndpoint, 401, echoReason), exitRejected, "unauthorized"},
	{"run", "401 of the API as HTML", "ASKS", echo(infoEndpoint, 401, echoPage), exitRejected, "unauthorized"},
	{"run", "403 page that blocks", "ASKS", echo(infoEndpoint, 403, echoPage), exitRejected, "blocked"},
	{"run", "429 of the API", "ASKS", echo(infoEndpoint, 429, echoMessage), exitRetry, "429"},
	{"run", "500 of the API", "ASKS", echo(infoEndpoint, 500, echoMessage), exitRetry, "500"},
	{"run", "an answer cut short", "ASKS", spoil(infoEndpoint, hostile.TruncatedJSON()), exitRetry, "truncated_json"},
	{"run", "a token that ends", "ASKS", spoil(hostile.Fault{Host: infoEndpoint.Host, Times: 1},
		hostile.ExpireTokenHTML()), exitDone, "kept"},
	{"run", "403 of an image host", "ASKS", echo(imageHost, 403, echoPage), exitRetry, "http_403"},
	{"run", "500 of an image host", "ASKS", echo(imageHost, 500, echoPage), exitRetry, "http_500"},
	{"run", "a page of an image host", "ASKS", echo(imageHost, 200, echoPage), exitRetry, "html"},
	{"run", "panic where credentials are read", "ASKS", func(h *haunted) {
		getenv := h.process.getenv
		h.process.getenv = func(name string) string {
			if name == "REDDIT_USERNAME" {
				panic(h.given())
			}
			return getenv(name)
		}
	}, exitFailed, "internal error: canary panic [redacted]"},
	{"run", "panic where the ocr program is looked for", "ASKS", func(h *haunted) {
		h.process.executable = func() (string, error) { panic(h.given()) }
	}, exitFailed, "internal error: canary panic [redacted]"},
}

// haunt makes the model repeat its key in an answer, as it is and as JSON can spell it.
func haunt(code int, body string) func(*haunted) {
	return func(h *haunted) {
		h.model = modelserver.New(h.t, "vllm")
		h.model.Play = func(w http.ResponseWriter, r modelserver.Request) bool {
			key := r.Header.Get("Authorization") + " " + strings.Replace(canaryKey, "c", `\u0063`,
				1) + " " + base64.StdEncoding.EncodeToString([]byte(canaryKey))
			return modelserver.Status(code, strings.ReplaceAll(body, "KEY", key), "Location",
				"https://"+canaryKey+".example/")(w, r)
		}
	}
}

// The answers repeat the request where a client might look.
const (
	echoPage    = "<html><head><title>REQUEST</title></head><body><h1>REQUEST</h1></body></html>"
	echoMessage = `{"message": "REQUEST", "error": 400}`
	echoReason  = `{"message": "REQUEST", "reason": "REQUEST", "error": 401}`
)

var (
	tokenEndpoint = hostile.Fault{Host: "www.reddit.com"}
	infoEndpoint  = hostile.Fault{Host: "oauth.reddit.com", PathPrefix: "/api/info"}
	imageHost     = hostile.Fault{Host: "i.redd.it"}
)

func spoil(where hostile.Fault, kind hostile.FaultKind) func(*haunted) {
	where.Kind = kind
	return func(h *haunted) { h.emulator.Fault(where) }
}

func echo(where hostile.Fault, code int, body string) func(*haunted) {
	return spoil(where, hostile.Echo(code, body))
}

func panicAt(n int) func(*haunted) { return func(h *haunted) { h.panicAt(n) } }

// stopped asks the command to stop before it begins.
func stopped(h *haunted) {
	stop := make(chan struct{})
	close(stop)
	h.process.stop = stop
}

// drawnPictures puts two pictures that are the same, with canaries in their metadata, beside the folder that
// is searched.
func drawnPictures(h *haunted) {
	drawn, err := redditemu.Draw(redditemu.Spec{Seed: 7})
	check(h.t, err)
	for _, name := range []string{"a.jpg", "b.jpg"} {
		h.write(filepath.Join(h.dir+"-pictures", name), string(hostile.Plant(drawn.Body)))
	}
}

// run runs one case in a site of its own and searches all that is left of it.
func (c canaryCase) run(t *testing.T, ran *haunted, mode []string) {
	h := newHaunted(t, t.TempDir())
	if c.command == "demo" { // it writes into the present folder
		t.Chdir(h.dir)
	} else {
		t.Parallel()
	}
	if strings.Contains(c.args, "WS") {
		check(t, os.CopyFS(h.workspace, os.DirFS(ran.workspace)))
		check(t, os.Chmod(h.workspace, 0o700))
		maps.Copy(h.tokens, ran.tokens)
	}
	if c.arm != nil {
		c.arm(h)
	}
	f := h.do(slices.Concat(strings.Fields(c.command), strings.Fields(c.args), mode)...)
	f.want(t, c.code, c.said)
	if slices.Contains(mode, "--json") {
		oneObject(t, f)
	}
	h.search(f)
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", f.stdout, f.stderr)
	}
}

// A haunted site is one whose secrets are looked for.
type haunted struct {
	*site
	process process // what the commands get of the world
	dir     string  // holds all that the commands write
	model   *modelserver.Server

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
		"REDDIT_USERNAME": canaryUser, "IMGUR_CLIENT_ID": canaryImgur, "ENDPOINT_API_KEY": canaryKey}
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

// do runs a command line, in which the words of canaryCase.args stand for theirs. The ocr program is found beside this
// one.
func (h *haunted) do(args ...string) finished {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	model := "http://127.0.0.1:1/v1"
	if h.model != nil {
		model = h.model.URL
	}
	words := strings.NewReplacer("MODEL", model, "SECRET", h.emulator.Secret, "WS", h.workspace, "NEW", h.workspace,
		"RELEASE", h.release, "DIR", h.dir)
	var line []string
	for _, arg := range args {
		switch arg {
		case "ASKS":
			line = slices.Concat(line, []string{h.release, "-w", h.workspace, "--approval", "TEST-1"}, h.reddit())
		case "REDDIT":
			line = slices.Concat(line, []string{"--approval", "TEST-1"}, h.reddit())
		default:
			line = append(line, words.Replace(arg))
		}
	}
	p := h.process
	p.args, p.stdout, p.stderr = line, &stdout, &stderr
	h.mu.Lock()
	h.before = maps.Clone(h.tokens)
	h.mu.Unlock()
	code := run(h.t.Context(), p)
	h.noteTokens()
	return finished{stdout.String(), stderr.String(), code}
}

// secrets are all that must be found nowhere, by what they are.
func (h *haunted) secrets() map[string]string {
	all := map[string]string{"client id": h.emulator.ClientID, "client secret": h.emulator.Secret,
		"user name": canaryUser, "imgur's client id": canaryImgur, "key of the models": canaryKey}
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
	secrets := h.secrets()
	for where, text := range found {
		if emulatorToken.Match(text) {
			h.t.Errorf("%s holds a token", where)
		}
		read := readings(text)
		for what, secret := range secrets {
			if form := findSecret(read, secret); form != "" {
				h.t.Errorf("%s holds the %s (%s)", where, what, form)
			}
		}
	}
}

// readings are a text and what its base64 stands for, in lower case, by what they are.
func readings(text []byte) map[string][]byte {
	read := map[string][]byte{"text": bytes.ToLower(text)}
	for _, alphabet := range []struct {
		form string
		runs *regexp.Regexp
		*base64.Encoding
	}{{"base64", stdRuns, base64.RawStdEncoding}, {"base64 for URLs", urlRuns, base64.RawURLEncoding}} {
		var all []byte
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
				all = append(append(all, decoded...), 0) // no secret holds it
			}
		}
		read[alphabet.form] = bytes.ToLower(all)
	}
	return read
}

// findSecret returns the form in which a text, of which these are the readings, holds a secret, "" for none. It looks
// for the secret as it is, escaped and in hex, in any case, and in whatever text has of base64.
func findSecret(read map[string][]byte, secret string) string {
	for form, s := range map[string]string{"raw": secret, "query": url.QueryEscape(secret),
		"path": url.PathEscape(secret), "hex": hex.EncodeToString([]byte(secret))} {
		if bytes.Contains(read["text"], []byte(strings.ToLower(s))) {
			return form
		}
	}
	for form, text := range read {
		if bytes.Contains(text, []byte(strings.ToLower(secret))) {
			return form
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
	forms := map[string]string{"raw": secret, "upper case": strings.ToUpper(secret), "query": url.QueryEscape(secret),
		"path": url.PathEscape(secret),
		"hex":  fmt.Sprintf("%x", secret), "HEX": fmt.Sprintf("%X", secret)}
	for before := range 4 {
		text := []byte(strings.Repeat("b", before) + secret + strings.Repeat("a", before))
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding,
			"unpadded": base64.RawStdEncoding, "for URLs": base64.RawURLEncoding} {
			forms[fmt.Sprint(name, " at ", before)] = encoding.EncodeToString(text)
		}
	}
	for form, text := range forms {
		for _, line := range []string{text, "\x00\x01 " + text + " \xff", `{"x":"` + text + `"}`} {
			if findSecret(readings([]byte(line)), secret) == "" {
				t.Errorf("%s: the search does not find %q", form, line)
			}
		}
	}
	for _, line := range []string{"", secret[1:], secret[:len(secret)-1],
		base64.StdEncoding.EncodeToString([]byte(secret[1:])), strings.Repeat("A", 100)} {
		if form := findSecret(readings([]byte(line)), secret); form != "" {
			t.Errorf("the search finds %q as %s, which is not there", line, form)
		}
	}
	dir := t.TempDir()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[struct{ Text string }](&file, parquet.Compression(&parquet.Zstd))
	_, err := w.Write([]struct{ Text string }{{strings.Repeat("x", 1000) + secret}})
	check(t, errors.Join(err, w.Close()))
	check(t, os.WriteFile(filepath.Join(dir, ".hidden.parquet"), file.Bytes(), 0o600))
	if findSecret(readings(everyFile(t, dir)[".hidden.parquet read"]), secret) == "" {
		t.Error("the search does not find what a hidden Parquet file holds compressed")
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
	if f := h.do("demo", "--serve"); f.code != exitDone ||
		!strings.Contains(f.stdout, "REDDIT_CLIENT_SECRET="+h.emulator.Secret+"\n") {
		t.Errorf("exit %d: %s%s", f.code, f.stdout, f.stderr)
	}
}

// secretFlag is how a flag for a secret would be called.
var secretFlag = regexp.MustCompile(`(?i)secret|token$|passw|passphrase|credential|client-?id|api-?key|bearer|user-?name`)

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
	text := fmt.Sprintf("canary panic %s %s %x %s", basic, base64.StdEncoding.EncodeToString([]byte(basic)),
		h.emulator.Secret, canaryImgur)
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
	var calls atomic.Int64
	h.process.now = func() time.Time {
		if calls.Add(1) == int64(n) {
			panic(errors.New(h.given()))
		}
		return time.Now()
	}
}

// TestPanics has the clock panic at readings all over a run, in whichever goroutine that is. Each time the run ends in
// 1 and says so without a secret, and the workspace is closed: the next run has it, and the one that ends well is
// whole.
func TestPanics(t *testing.T) {
	long(t)
	h := newHaunted(t, inPrivateFolder(t))
	readings := 0
	traces := ""
	for n := 1; ; n += 1 + n/4 {
		h.panicAt(n)
		f := h.do("run", "-v", "ASKS")
		h.search(f)
		if !strings.Contains(f.stderr, "internal error") {
			if f.code != exitDone {
				t.Errorf("the run after all panics ended in %d:\n%s", f.code, f.stderr)
			}
			break
		}
		readings, traces = readings+1, traces+f.stderr
		if f.code != exitFailed || !strings.Contains(f.stderr, "internal error: canary panic [redacted]") ||
			!strings.Contains(f.stderr, "  This is a mistake in rehydrate") {
			t.Errorf("reading %d: exit %d:\n%s", n, f.code, f.stderr)
		}
		ws, err := workspace.Open(t.Context(), h.workspace, workspace.Options{})
		if err != nil {
			t.Fatalf("reading %d: the workspace was not closed: %v", n, err)
		}
		check(t, ws.Close())
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
		if want := map[bool]manifest.Outcome{true: manifest.Removed,
			false: manifest.Kept}[r.Key.ID == "few003"]; r.Outcome != want {
			t.Errorf("outcome of %s = %s, want %s", r.Key.ID, r.Outcome, want)
		}
	}
}
