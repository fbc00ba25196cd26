package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/policy"
)

// TestScripts runs every script of testdata/script. `exits STATUS COMMAND [ARG...]` fails unless the command, a process of
// its own, ends with exactly that status. Beside it there is an emulated Reddit, with the release in $WORK/release and
// the workspace in $WORK/ws; the commands of a script and of the program run in the test's process:
//
//	site N [KEYS [MORE [LIVE...]]]  start it with N posts, few000 and so on, live all or those of the numbers; KEYS of the
//	                              policy under [reddit], and MORE tables; an earlier site is forgotten
//	twins N                       the same, the first three with the same picture
//	figsim N                      a site of FigSIM's own release, which wants a grant
//	sign grant FROM UNTIL | sign revocations SERIAL [GRANT...] | sign lift ASSERTED ID...
//	                              write one into the release, signed by its signer; times are from the program's clock on
//	sign forged ASSERTED ID...    a lift in the folder forged, a copy of the release that pins another key, which signs it
//	policy [KEYS [MORE]]          write the release's policy again
//	manifest FIRST END [HEAD=CELL...]  write the release's annotations: posts FIRST up to END, with more columns
//	post ID KEY=VALUE...          change a post: condition, by, subreddit, kind, serve, slug, raw, gallery (N images),
//	                              picture (CAPTION:SEED:SHADE:FORMAT)
//	on PATH N COMMAND...          do one of these commands at the N-th request to that path, before it is answered
//	fault PATH AFTER empty|html|blocked, or clear    spoil what Reddit answers
//	flip FILE...                  turn the middle byte of files into another one
//	stop                          ask the command to stop, as an interrupt does
//	clock DURATION                set the program's clock forward, from now
//	dieat STEP N                  have the next command die at the N-th step that changes the disk and is called that
//	rh STATUS COMMAND [ARG...]    the program, with -w ws, the fake ocr program, and, where it asks Reddit, with an approval
//	outcome ID=OUTCOME/REASON...  what outcomes.csv says of posts (a beginning is enough)
//	rows ID... | rows N           the ids in the dataset's Parquet, or how many
//	rowsof FOLDER ID...           the ids in another folder's Parquet
//	images N                      how many images are stored
//	asked N                       how many images were asked for since the last `asked`; `asked all N`: any request
//	keep NAME, same NAME          keep the dataset; it is still the one that was kept
//	nowhere TEXT                  no file of the workspace but the release's own words holds the text
//	left FOLDER N                 how many files are in a folder, hidden ones and folders below included
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: scriptCommands(),
		Setup: func(e *testscript.Env) error {
			e.Values[scriptKey{}] = &script{work: e.WorkDir, kept: map[string]map[string]string{}, t: e.T().(testing.TB)}
			return nil
		},
	})
}

type scriptKey struct{}

// A script is the state of one.
type script struct {
	*site
	t    testing.TB
	work string
	kept map[string]map[string]string

	ahead atomic.Int64 // of the program's clock

	mu    sync.Mutex // guards hooks
	hooks []*hook
}

// A hook is what an `on` line asks for.
type hook struct {
	path string
	n    int
	args []string
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	cmds := map[string]func(*testscript.TestScript, bool, []string){"exits": exits}
	for name, f := range map[string]func(*script, *testscript.TestScript, []string){
		"site": (*script).start, "twins": (*script).twins, "figsim": (*script).figsim, "sign": (*script).sign, "manifest": (*script).manifest, "rh": (*script).rh, "on": (*script).on,
		"outcome": (*script).outcome, "rows": (*script).rowsAre, "rowsof": (*script).rowsOf, "images": (*script).imagesAre, "asked": (*script).asked,
		"keep": (*script).keep, "same": (*script).same, "nowhere": (*script).nowhere, "left": (*script).left, "flip": (*script).flip, "dieat": (*script).dieAt,
	} {
		cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("%s can't be negated", name)
			}
			f(ts.Value(scriptKey{}).(*script), ts, args)
		}
	}
	for _, name := range []string{"post", "policy", "fault", "stop", "clock"} {
		cmds[name] = func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(ts.Value(scriptKey{}).(*script).change(name, args))
		}
	}
	return cmds
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	got := 0
	var status *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &status):
		got = status.ExitCode()
	default:
		ts.Check(err)
	}
	if got != number(ts, args[0]) {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// at is the i-th argument, "" where there is none; \n in it is a line break.
func at(args []string, i int) string {
	if i < len(args) {
		return strings.ReplaceAll(args[i], `\n`, "\n")
	}
	return ""
}

func (s *script) start(ts *testscript.TestScript, args []string) {
	posts := fewPosts(number(ts, at(args, 0)))
	if len(args) > 3 { // all others are removed: what asking costs, without what fetching and reading would
		for i := range posts {
			if !slices.Contains(args[3:], strconv.Itoa(i)) {
				posts[i].Condition = redditemu.Removed
			}
		}
	}
	s.begin(ts, newSite(s.t, fewAnnotations(posts), quick(at(args, 1))+"\n"+at(args, 2), posts...))
}

// twins starts a site of which the first three posts show the same picture in different files.
func (s *script) twins(ts *testscript.TestScript, args []string) {
	posts := fewPosts(number(ts, at(args, 0)))
	for i, format := range []string{"png", "jpg", "gif"} {
		posts[i].Images = []redditemu.Image{sketch(firstOwn, 7, uint8(i), format)}
	}
	s.begin(ts, newSite(s.t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...))
}

func (s *script) figsim(ts *testscript.TestScript, args []string) {
	s.begin(ts, figSIMSite(s.t, number(ts, at(args, 0))))
}

func (s *script) sign(ts *testscript.TestScript, args []string) {
	when := func(text string) string {
		d, err := time.ParseDuration(text)
		ts.Check(err)
		return s.now().Add(d).UTC().Format(time.RFC3339)
	}
	switch args[0] {
	case "grant":
		s.signed(s.grantPath(), policy.GrantNamespace, grantText(s.t, s.release, func(g map[string]any) {
			g["asserted"], g["not_before"], g["expires"] = when(args[1]), when(args[1]), when(args[2])
		}))
	case "revocations":
		s.signed(filepath.Join(s.release, manifest.RevocationsName), policy.RevocationsNamespace, revocationsText(s.t, "FigSIM", number(ts, args[1]), args[2:]...))
	default:
		release, key := s.release, testSigner(s.t, "rehydrate test signer")
		if args[0] == "forged" {
			release, key = filepath.Join(s.work, "forged"), testSigner(s.t, "somebody else")
			ts.Check(errors.Join(os.RemoveAll(release), os.CopyFS(release, os.DirFS(s.release))))
			settings, _, _ := strings.Cut(read(s.t, filepath.Join(release, "release.toml")), "\n[[signer]]")
			s.write(filepath.Join(release, "release.toml"), settings+pin(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))))
		}
		rel, err := manifest.Open(release, manifest.Options{})
		ts.Check(err)
		b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-lift", "release": map[string]any{"name": rel.Name, "digest": rel.Digest},
			"ids": args[2:], "why": "asked for by the author", "asserted": when(args[1])})
		ts.Check(err)
		s.signedBy(key, filepath.Join(release, "lift.json"), policy.LiftNamespace, string(b))
	}
}

// begin puts a site where the script sees it.
func (s *script) begin(ts *testscript.TestScript, site *site) {
	s.site, s.hooks = site, nil
	s.ahead.Store(0)
	s.now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	s.workspace = filepath.Join(s.work, "ws")
	release := filepath.Join(s.work, "release")
	ts.Check(errors.Join(os.RemoveAll(s.workspace), os.RemoveAll(release)))
	ts.Check(os.CopyFS(release, os.DirFS(s.release)))
	s.release = release
	s.emulator.OnRequest(s.answer)
}

// answer does what hooks ask for at a request.
func (s *script) answer(r hostile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		if !strings.HasPrefix(r.Path, h.path) {
			continue
		}
		if h.n--; h.n == 0 {
			if err := s.change(h.args[0], h.args[1:]); err != nil {
				s.t.Error(err)
			}
		}
	}
}

func (s *script) on(ts *testscript.TestScript, args []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, &hook{path: args[0], n: number(ts, args[1]), args: args[2:]})
}

// change does a command that needs no script, so that a hook can do it too.
func (s *script) change(name string, args []string) error {
	switch name {
	case "post":
		return s.emulator.Update(manifest.PostID(args[0]), func(p *redditemu.Post) {
			for _, arg := range args[1:] {
				s.set(p, arg)
			}
		})
	case "policy":
		if p, ok := s.emulator.Post("few000"); ok && len(args) > 1 {
			args[1] = strings.ReplaceAll(args[1], "SHA256", fmt.Sprintf("%x", sha256.Sum256(p.Images[0].Body)))
		}
		return os.WriteFile(filepath.Join(s.release, "policy.toml"), []byte(quick(at(args, 0))+"\n"+at(args, 1)), 0o600)
	case "fault":
		if args[0] == "clear" {
			s.emulator.ClearFaults()
			return nil
		}
		kind := map[string]hostile.FaultKind{"empty": hostile.EmptyListing(), "html": hostile.HTML200(), "blocked": hostile.BlockedHTML()}[at(args, 2)]
		after, err := strconv.Atoi(args[1])
		s.emulator.Fault(hostile.Fault{Host: "oauth.reddit.com", PathPrefix: args[0], After: after, Kind: kind})
		return err
	case "stop":
		close(s.stop)
		return nil
	default: // clock
		by, err := time.ParseDuration(args[0])
		s.ahead.Store(int64(by))
		return err
	}
}

// set changes one thing of a post, KEY=VALUE.
func (s *script) set(p *redditemu.Post, arg string) {
	key, value, _ := strings.Cut(arg, "=")
	switch key {
	case "condition":
		p.Condition = redditemu.Condition(value)
	case "by":
		p.RemovedBy = value
	case "subreddit":
		p.Subreddit = value
	case "kind":
		p.Kind = redditemu.Kind(value)
	case "slug":
		p.Images[0].Slug = value
	case "gallery": // more images, of which the second failed
		n, _ := strconv.Atoi(value)
		p.Images = nil
		for i := range n {
			p.Images = append(p.Images, fewPosts(i + 1)[i].Images[0])
		}
		p.Images[1].Status = "failed"
	case "serve":
		p.Images[0].Serve = redditemu.Serve(value)
	case "raw":
		p.Raw = []byte(value)
	case "picture": // CAPTION:SEED:SHADE:FORMAT
		var caption, seed, shade int
		var format string
		if _, err := fmt.Sscanf(value, "%d:%d:%d:%s", &caption, &seed, &shade, &format); err != nil {
			s.t.Fatalf("picture %s: %v", value, err)
		}
		slug := p.Images[0].Slug
		p.Images = []redditemu.Image{sketch(caption, uint64(seed), uint8(shade), format)}
		p.Images[0].Slug = slug
	case "link":
		p.Link = value
	default:
		s.t.Fatalf("no key %s", key)
	}
}

func (s *script) manifest(ts *testscript.TestScript, args []string) {
	first, end := number(ts, args[0]), number(ts, args[1])
	lines := strings.Split(strings.TrimSpace(fewAnnotations(fewPosts(end))), "\n")
	lines = append(lines[:1], lines[1+first:]...)
	for _, column := range args[2:] {
		head, cells, _ := strings.Cut(column, "=")
		all := strings.Split(cells, ",")
		lines[0] += "," + head
		for i := range lines[1:] {
			lines[1+i] += "," + at(all, i)
		}
	}
	s.write(filepath.Join(s.release, "annotations.csv"), strings.Join(lines, "\n")+"\n")
}

func (s *script) flip(ts *testscript.TestScript, args []string) {
	for _, arg := range args {
		name := filepath.Join(s.work, arg)
		b, err := os.ReadFile(name)
		ts.Check(err)
		b[len(b)/2] ^= 1
		ts.Check(os.WriteFile(name, b, 0o600))
	}
}

func (s *script) dieAt(ts *testscript.TestScript, args []string) {
	n := number(ts, args[1])
	s.step = func(step, name string) error {
		if strings.HasPrefix(step+" "+name, args[0]) {
			if n--; n == 0 {
				panic("killed")
			}
		}
		return nil
	}
}

func (s *script) rh(ts *testscript.TestScript, args []string) {
	want, line := number(ts, args[0]), slices.Clone(args[1:])
	for i := range line {
		line[i] = at(line, i)
	}
	for i, arg := range line[1:] {
		if _, err := os.Lstat(filepath.Join(s.work, strings.SplitN(arg, "/", 2)[0])); err == nil && !filepath.IsAbs(arg) || strings.HasSuffix(arg, ".csv") || line[i] == "-w" {
			line[1+i] = filepath.Join(s.work, arg)
		}
	}
	if !slices.Contains(line, "-w") {
		line = append(line, "-w", s.workspace)
	}
	asks := slices.Contains([]string{"run", "audit", "purge"}, line[0]) && !slices.Contains(line, "--offline") && !slices.Contains(line, "--dry-run")
	if asks {
		line = append(line, "--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert)
		if _, err := os.Stat(s.grantPath()); err != nil && !slices.Contains(line, "--grant") && !slices.Contains(line, "--approval") {
			line = append(line, "--approval", "TEST-1")
		}
	}
	if slices.Contains([]string{"run", "ocr", "demo"}, line[0]) {
		line = append(line, "--ocr", s.reader)
	}
	var env map[string]string
	if asks {
		env = s.env()
		if id := ts.Getenv("IMGUR"); id != "" {
			env["IMGUR_CLIENT_ID"] = s.emulator.ImgurClientID
		}
	}
	f := s.do(env, line...)
	fmt.Fprint(ts.Stdout(), f.stdout)
	fmt.Fprint(ts.Stderr(), f.stderr)
	s.step = nil
	select {
	case <-s.stop:
		s.stop = make(chan struct{})
	default:
	}
	if f.code != want {
		ts.Fatalf("exit status %d, want %d", f.code, want)
	}
}

func (s *script) outcome(ts *testscript.TestScript, args []string) {
	for _, arg := range args {
		id, want, _ := strings.Cut(arg, "=")
		if got := s.outcomeOf(manifest.PostID(id)); !strings.HasPrefix(got, want) {
			ts.Fatalf("outcome of %s is %s, want %s", id, got, want)
		}
	}
}

func (s *script) rowsAre(ts *testscript.TestScript, args []string) {
	sameRows(ts, s.exported(), args)
}

func (s *script) rowsOf(ts *testscript.TestScript, args []string) {
	sameRows(ts, slices.Sorted(maps.Keys(rowsOf(s.t, filepath.Join(s.work, args[0])))), args[1:])
}

// sameRows compares ids with those wanted, or their number.
func sameRows(ts *testscript.TestScript, got, want []string) {
	if n, err := strconv.Atoi(at(want, 0)); err == nil {
		if len(got) != n {
			ts.Fatalf("rows %v, want %d", got, n)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("rows (-want +got):\n%s", diff)
	}
}

func (s *script) imagesAre(ts *testscript.TestScript, args []string) {
	if got := s.images(); len(got) != number(ts, args[0]) {
		ts.Fatalf("images %v, want %s", got, args[0])
	}
}

func (s *script) asked(ts *testscript.TestScript, args []string) {
	n := len(s.imageRequests())
	if args[0] == "all" {
		n = len(s.emulator.Requests())
	}
	if n != number(ts, args[len(args)-1]) {
		ts.Fatalf("%d requests, want %s", n, args)
	}
	s.emulator.ForgetRequests()
}

func (s *script) keep(_ *testscript.TestScript, args []string) { s.kept[args[0]] = s.dataset() }

func (s *script) same(ts *testscript.TestScript, args []string) {
	if diff := cmp.Diff(s.kept[args[0]], s.dataset(), cmp.Transformer("length", func(b []byte) int { return len(b) })); diff != "" {
		ts.Fatalf("the dataset is another one than %s", args[0])
	}
}

func (s *script) nowhere(ts *testscript.TestScript, args []string) {
	for name, text := range tree(s.t, s.workspace) {
		if bytes.Contains([]byte(text), []byte(args[0])) {
			ts.Fatalf("%s holds %q", name, args[0])
		}
	}
}

func (s *script) left(ts *testscript.TestScript, args []string) {
	if files := tree(s.t, filepath.Join(s.work, args[0])); len(files) != number(ts, args[1]) {
		ts.Fatalf("%d files in %s, want %s: %q", len(files), args[0], args[1], slices.Sorted(maps.Keys(files)))
	}
}
