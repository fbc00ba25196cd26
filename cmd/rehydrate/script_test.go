package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/md5" // by which a policy can name a picture
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
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
	"github.com/hiddeco/sshsig"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"rehydrate/cmd/rehydrate/testdata/fakeocr"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestScripts runs every script of testdata/script. `exits STATUS COMMAND [ARG...]` fails unless the command, a process
// of its own, ends with exactly that status. Beside it there is an emulated Reddit, with the release in $WORK/release
// and the workspace in $WORK/ws; the commands of a script and of the program run in the test's process:
//
//	site N [KEYS [MORE [LIVE...]]]  start it with N posts, few000 and so on, live all or those of the numbers; KEYS of the
//	                              policy under [reddit], and MORE tables; an earlier site is forgotten
//	twins N                       the same, the first three with the same picture
//	authority DIR                 openssl as a time-stamping authority, with the files of DIR; its URL is $AUTHORITY
//	model ANSWER...               a model that says these in turn, whatever it is asked; its URL is $MODEL. In ANSWER, ' stands for "
//	moderator SCORES...           the same for a moderation service: the scores by category in turn
//	heard N                       how many requests the model got since the last `heard`
//	figsim N                      a site of FigSIM's own release, which wants a grant
//	sign grant FROM UNTIL | sign revocations SERIAL [GRANT...] | sign lift ASSERTED ID[@TIME]...
//	                              write one into the release, signed by its signer; times are from the program's clock on
//	sign forged ASSERTED ID[@TIME]...  a lift in the folder forged, a copy of the release that pins another key, which signs it
//	policy [KEYS [MORE]]          write the release's policy again
//	manifest FIRST END [HEAD=CELL...]  write the release's annotations: posts FIRST up to END, with more columns
//	post ID[,ID...] KEY=VALUE...  change a member of posts or of their first image; the value is a word or JSON. Besides
//	                              gallery=N images, picture=CAPTION:SEED:SHADE:FORMAT
//	draw FILE CAPTION:SEED:SHADE:FORMAT    write such a picture
//	on PATH N COMMAND...          do one of these commands at the N-th request to that path, before it is answered
//	fault [HOST]/PATH AFTER KIND, or clear    spoil what Reddit, or a host, answers; KIND is one of faultKinds
//	flip FILE...                  turn the middle byte of files into another one
//	sql QUERY                     change state.db, or print what it holds
//	hold, unhold, touch           open the workspace as a run at work has it, close it, or both
//	put FILE                      write somebody's file
//	interrupt                     ask the next command, or the one at work, to stop
//	clock DURATION                set the program's clock forward, from now
//	at STEP N die | fail | COMMAND...    at the next command's N-th step on the disk that is called that, die, have it
//	                              fail, or do a command
//	rh STATUS COMMAND [ARG...]    the program, with -w ws, the fake ocr program, and, where it asks Reddit, with an approval
//	outcome ID=OUTCOME/REASON...  what outcomes.csv says of posts (a beginning is enough)
//	rows ID... | rows N           the ids in the dataset's Parquet, or how many
//	rowsof FOLDER ID...           the ids in another folder's Parquet
//	images N                      how many images are stored
//	asked N                       how many images were asked for since the last `asked`; `asked all N`: any request;
//	                              `asked HOST/PATH N`: those that begin so, which are not forgotten
//	keep NAME, same NAME          keep the dataset; it is still the one that was kept
//	nowhere TEXT [FOLDER]         no file of the workspace, or of another folder, holds the text
//	left FOLDER N                 how many files are in a folder, hidden ones and folders below included
func TestScripts(t *testing.T) {
	t.Parallel()
	testdata, err := filepath.Abs("../../manifest/testdata")
	check(t, err)
	testscript.Run(t, testscript.Params{
		ContinueOnError: true, // one fault may explain the others
		UpdateScripts:   *update,
		Dir:             "testdata/script",
		Cmds:            scriptCommands(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("DATA", testdata)
			e.Setenv("RELEASES", filepath.Join(testdata, "../../releases"))
			s := &script{work: e.WorkDir, kept: map[string]map[string]string{}, t: e.T().(testing.TB),
				commands: (&command{}).root()}
			e.Values[scriptKey{}] = s
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
	held *workspace.Workspace

	commands *cobra.Command // to look flags up

	model *modelserver.Server
	told  int // requests of it that `heard` counted

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
	cmds := map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "draw": draw}
	for name, f := range map[string]func(*script, *testscript.TestScript, []string){
		"site": (*script).start, "twins": (*script).twins, "figsim": (*script).figsim, "sign": (*script).sign,
		"manifest": (*script).manifest, "rh": (*script).rh, "on": (*script).on, "at": (*script).at, "sql": (*script).sql,
		"outcome": (*script).outcome, "rows": (*script).rowsAre, "rowsof": (*script).rowsOf, "images": (*script).imagesAre,
		"asked": (*script).asked, "keep": (*script).keep, "same": (*script).same, "authority": (*script).authority,
		"model": startModel("vllm"), "moderator": startModel("openai"), "heard": (*script).heard,
		"nowhere": (*script).nowhere, "left": (*script).left,
	} {
		cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("%s can't be negated", name)
			}
			f(ts.Value(scriptKey{}).(*script), ts, args)
		}
	}
	for _, name := range []string{"post", "policy", "fault", "interrupt", "clock", "flip", "put", "hold", "unhold",
		"touch"} {
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
	err := ts.Exec(args[1], args[2:]...)
	switch {
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

// arg is the i-th argument, "" where there is none; \n in it is a line break.
func arg(args []string, i int) string {
	if i < len(args) {
		return strings.ReplaceAll(args[i], `\n`, "\n")
	}
	return ""
}

func (s *script) start(ts *testscript.TestScript, args []string) {
	posts := fewPosts(number(ts, arg(args, 0)))
	if len(args) > 3 { // all others are removed: what asking costs, without what fetching and reading would
		for i := range posts {
			if !slices.Contains(args[3:], strconv.Itoa(i)) {
				posts[i].Condition = redditemu.Removed
			}
		}
	}
	s.begin(ts, newSite(s.t, fewAnnotations(posts), patient(arg(args, 1))+"\n"+arg(args, 2), posts...))
}

// patient is quick without the pause before the second question about an absent post, of which sweep's tests know.
func patient(keys string) string {
	return strings.Replace(quick(keys), `second_look_after = "1s"`, `second_look_after = "0s"`, 1)
}

// twins starts a site of which the first three posts show the same picture in different files.
func (s *script) twins(ts *testscript.TestScript, args []string) {
	posts := fewPosts(number(ts, arg(args, 0)))
	for i, format := range []string{"png", "jpg", "gif"} {
		posts[i].Images = []redditemu.Image{sketch(fakeocr.FirstOwn, 7, uint8(i), format)}
	}
	s.begin(ts, newSite(s.t, fewAnnotations(posts), patient("mass_removal_share = 1.0"), posts...))
}

// startModel starts a server of a model.
func startModel(dialect string) func(*script, *testscript.TestScript, []string) {
	return func(s *script, ts *testscript.TestScript, args []string) {
		s.model = modelserver.New(s.t, dialect)
		s.model.Answer = func(r modelserver.Request) string {
			return strings.ReplaceAll(arg(args, r.N%len(args)), "'",
				`"`)
		}
		ts.Setenv("MODEL", s.model.URL)
		s.told = 0
	}
}

func (s *script) heard(ts *testscript.TestScript, args []string) {
	got := len(s.model.Requests())
	if got-s.told != number(ts, arg(args, 0)) {
		ts.Fatalf("the model got %d requests, want %s", got-s.told, args[0])
	}
	s.told = got
}

// authority starts a time-stamping authority: openssl, with the configuration, keys and certificates of a folder.
func (s *script) authority(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := exec.CommandContext(r.Context(), "sh", "-c",
			"cat > query && openssl ts -reply -config config -section ts -queryfile query -inkey tsa.key -signer tsa.pem -out reply && cat reply")
		reply.Dir, reply.Stdin, reply.Stdout = dir, r.Body, w
		if err := reply.Run(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("AUTHORITY", server.URL)
}

func (s *script) figsim(ts *testscript.TestScript, args []string) {
	s.begin(ts, figSIMSite(s.t, number(ts, arg(args, 0))))
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
		s.signed(filepath.Join(s.release, manifest.RevocationsName), policy.RevocationsNamespace,
			revocationsText(s.t, number(ts, args[1]), args[2:]...))
	default:
		release, key := s.release, testSigner(s.t, "rehydrate test signer")
		if args[0] == "forged" {
			release, key = filepath.Join(s.work, "forged"), testSigner(s.t, "somebody else")
			ts.Check(errors.Join(os.RemoveAll(release), os.CopyFS(release, os.DirFS(s.release))))
			settings, _, _ := strings.Cut(read(s.t, filepath.Join(release, "release.toml")), "\n[[signer]]")
			s.write(filepath.Join(release, "release.toml"), settings+pin(key))
		}
		s.signedBy(key, filepath.Join(release, "lift.json"), policy.LiftNamespace,
			liftText(s.t, release, when(args[1]), s.named(args[2:]...)...))
	}
}

// named names tombstones: of a post the one that the workspace lists, or, as ID@TIME, that of that time.
func (s *site) named(posts ...string) (names []policy.NamedTombstone) {
	stones, err := readTombstones(filepath.Join(s.workspace, manifest.TombstonesName), manifest.ReadTombstones)
	check(s.t, err)
	for _, post := range posts {
		id, text, _ := strings.Cut(post, "@")
		var at time.Time
		if i := slices.IndexFunc(stones, func(t manifest.Tombstone) bool { return string(t.ID) == id }); i >= 0 {
			at = stones[i].Time
		}
		if text != "" {
			at, err = time.Parse(time.RFC3339, text)
			check(s.t, err)
		}
		names = append(names, policy.NameTombstone(manifest.PostID(id), at))
	}
	return names
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

// at does a command at a step of the next command.
func (s *script) at(ts *testscript.TestScript, args []string) {
	n := number(ts, args[1])
	s.step = func(step, name string) error {
		if strings.HasPrefix(step+" "+name, args[0]) {
			if n--; n == 0 {
				return s.change(args[2], args[3:])
			}
		}
		return nil
	}
}

var faultKinds = map[string]hostile.FaultKind{"empty": hostile.EmptyListing(), "html": hostile.HTML200(),
	"nothing": hostile.EmptyBody(), "blocked": hostile.BlockedHTML(),
	"region": hostile.RegionBlock(), "full403": hostile.OverCapacity(403), "full429": hostile.OverCapacity(429),
	"cut": hostile.TruncatedBody(),
	"404": hostile.Status(404, nil, []byte("not found")),
	"denied": hostile.Status(403, http.Header{"Content-Type": {"application/xml"}},
		[]byte("<Error><Code>AccessDenied</Code></Error>")),
	"avif": hostile.Status(200, http.Header{"Content-Type": {"image/avif"}},
		[]byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf")),
	"login": hostile.RedirectTo("https://www.reddit.com/login?dest=x"),
	"noai":  hostile.RobotsTag("noindex, noai"), "noindex": hostile.RobotsTag("noindex, googlebot: noai"),
	"same": hostile.Status(200, http.Header{"Content-Type": {"image/png"}}, sketch(9, 5, 0, "png").Body),
	"page": hostile.RedirectTo("https://www.reddit.com/media?url=https%3A%2F%2Fi.redd.it%2Fx.jpg")}

// change does a command that needs no script, so that a hook can do it too.
func (s *script) change(name string, args []string) error {
	switch name {
	case "post":
		for id := range strings.SplitSeq(args[0], ",") {
			s.update(manifest.PostID(id), func(p *redditemu.Post) {
				for _, arg := range args[1:] {
					if err := set(p, arg); err != nil {
						s.t.Fatalf("%s: %v", arg, err)
					}
				}
			})
		}
		return nil
	case "policy":
		text := patient(arg(args, 0)) + "\n" + s.digest(arg(args, 1))
		return os.WriteFile(filepath.Join(s.release, "policy.toml"), []byte(text), 0o600)
	case "fault":
		if args[0] == "clear" {
			s.emulator.ClearFaults()
			return nil
		}
		host, path, _ := strings.Cut(args[0], "/")
		if host == "" {
			host = "oauth.reddit.com"
		}
		after, err := strconv.Atoi(args[1])
		s.emulator.Fault(hostile.Fault{Host: host, PathPrefix: "/" + path, After: after, Kind: faultKinds[args[2]]})
		return err
	case "interrupt": // as Ctrl-C does
		close(s.stop)
		return nil
	case "die":
		panic("killed") // nothing of what is open is finished
	case "fail":
		return errors.New("the disk is full")
	case "flip":
		for _, name := range args {
			b, err := os.ReadFile(filepath.Join(s.work, name))
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(filepath.Join(s.work, name), b, 0o600); err != nil {
				return err
			}
		}
		return nil
	case "put":
		return os.WriteFile(filepath.Join(s.work, args[0]), []byte("mine\n"), 0o600)
	case "hold", "touch": // and change state.db, as a run does
		ws, err := workspace.Open(context.Background(), s.workspace, workspace.Options{})
		if err != nil {
			return err
		}
		s.held = ws
		err = ws.Note(context.Background(), auditlog.Event{Kind: auditlog.Audit, Verdict: "pass"})
		if name == "touch" {
			err = errors.Join(err, ws.Close())
		}
		return err
	case "unhold":
		return s.held.Close()
	default: // clock
		by, err := time.ParseDuration(args[0])
		s.ahead.Store(int64(by))
		return err
	}
}

// set changes one member of a post or of its first image, KEY=VALUE; a VALUE that is not JSON is a string.
func set(p *redditemu.Post, arg string) error {
	key, value, _ := strings.Cut(arg, "=")
	switch key {
	case "gallery": // more images, of which the second failed
		n, err := strconv.Atoi(value)
		p.Images = nil
		for i := range n {
			p.Images = append(p.Images, fewPosts(i + 1)[i].Images[0])
			p.Images[i].Slug = fmt.Sprintf("%sx%d", p.ID, i)
		}
		p.Images[1].Status = "failed"
		return err
	case "list": // of a gallery: the places of its images that it lists, in their order
		all := p.Images
		p.Images = nil
		for at := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(at)
			if err != nil {
				return err
			}
			p.Images = append(p.Images, all[n])
		}
		return nil
	case "deleted": // the author takes an image out of a gallery
		n, err := strconv.Atoi(value)
		p.Images = slices.Clone(p.Images)
		p.Images[n].Status = redditemu.StatusDeleted
		return err
	case "picture":
		slug := p.Images[0].Slug
		img, err := sketched(value)
		p.Images = []redditemu.Image{img}
		p.Images[0].Slug = slug
		return err
	}
	if !json.Valid([]byte(value)) {
		value = strconv.Quote(value)
	}
	into := any(p)
	if slices.Contains([]string{"serve", "slug", "status", "noapi"}, key) {
		into = &p.Images[0]
	}
	return json.Unmarshal([]byte(`{"`+key+`":`+value+`}`), into)
}

// sketched is the picture CAPTION:SEED:SHADE:FORMAT.
func sketched(text string) (redditemu.Image, error) {
	var caption, seed, shade int
	var format string
	_, err := fmt.Sscanf(text, "%d:%d:%d:%s", &caption, &seed, &shade, &format)
	return sketch(caption, uint64(seed), uint8(shade), format), err
}

func draw(ts *testscript.TestScript, _ bool, args []string) {
	img, err := sketched(args[1])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o700))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), img.Body, 0o600))
}

func (s *script) sql(ts *testscript.TestScript, args []string) {
	db, err := sql.Open("sqlite", filepath.Join(s.workspace, "state.db"))
	ts.Check(err)
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), args[0])
	ts.Check(err)
	defer rows.Close()
	for rows.Next() {
		var text string
		ts.Check(rows.Scan(&text))
		fmt.Fprintln(ts.Stdout(), text)
	}
	ts.Check(errors.Join(rows.Err(), rows.Close(), db.Close()))
	if _, err := os.Stat(filepath.Join(s.workspace, state.SealFile)); err == nil {
		sealAgain(s.t, s.workspace)
	}
}

// digest puts the digest of few000's image where a text says SHA256 or MD5.
func (s *script) digest(text string) string {
	if p, ok := s.emulator.Post("few000"); ok {
		text = strings.ReplaceAll(text, "SHA256", fmt.Sprintf("%x", sha256.Sum256(p.Images[0].Body)))
		text = strings.ReplaceAll(text, "MD5", fmt.Sprintf("%x", md5.Sum(p.Images[0].Body)))
	}
	return text
}

func (s *script) manifest(ts *testscript.TestScript, args []string) {
	first, end := number(ts, args[0]), number(ts, args[1])
	lines := strings.Split(strings.TrimSpace(fewAnnotations(fewPosts(end))), "\n")
	lines = append(lines[:1], lines[1+first:]...)
	for _, column := range args[2:] {
		head, cells, _ := strings.Cut(column, "=")
		all := strings.Split(s.digest(cells), ",")
		lines[0] += "," + head
		for i := range lines[1:] {
			lines[1+i] += "," + arg(all, i)
		}
	}
	s.write(filepath.Join(s.release, "annotations.csv"), strings.Join(lines, "\n")+"\n")
}

func (s *script) rh(ts *testscript.TestScript, args []string) {
	want, line := number(ts, args[0]), slices.Clone(args[1:])
	for i := range line {
		line[i] = arg(line, i)
	}
	for i, arg := range line[1:] {
		if _, err := os.Lstat(filepath.Join(s.work, strings.SplitN(arg, "/", 2)[0])); err == nil && arg != "" &&
			!filepath.IsAbs(arg) ||
			strings.HasSuffix(arg, ".csv") || line[i] == "-w" {
			line[1+i] = filepath.Join(s.work, arg)
		}
	}
	called, _, err := s.commands.Find(line)
	ts.Check(err)
	has := func(flag string) bool { return called.Flags().Lookup(flag) != nil }
	given := func(flag string) bool { return slices.Contains(line, flag) }
	if has("workspace") && !given("-w") {
		line = append(line, "-w", s.workspace)
	}
	// classify and moderate ask Reddit where they know the release.
	asks := has("connect-to") && (!has("model") || given("--release")) && !given("--offline") && !given("--dry-run")
	if asks {
		line = append(line, s.reddit()...)
		if _, err := os.Stat(s.grantPath()); err != nil && !given("--grant") && !given("--approval") {
			line = append(line, "--approval", "TEST-1")
		}
	}
	if has("ocr") && !given("--ocr") && called.Name() != "version" && called.Name() != "doctor" {
		line = append(line, "--ocr", s.reader)
	}
	var env map[string]string
	if asks {
		env = s.env()
		env["HOME"] = ts.Getenv("HOME")
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
	sameRows(ts, filepath.Join(s.workspace, "dataset", "data"), args)
}

func (s *script) rowsOf(ts *testscript.TestScript, args []string) {
	sameRows(ts, ts.MkAbs(args[0]), args[1:])
}

// sameRows compares the ids in a folder with those wanted, or their number.
func sameRows(ts *testscript.TestScript, dir string, want []string) {
	got := rowsOf(ts.Value(scriptKey{}).(*script).t, dir)
	if n, err := strconv.Atoi(arg(want, 0)); err == nil {
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
	n, part := len(s.imageRequests()), false
	if args[0] == "all" {
		n = len(s.emulator.Requests())
	} else if part = len(args) > 1; part {
		n = 0
		for _, r := range s.emulator.Requests() {
			if strings.HasPrefix(r.Host+r.Path, args[0]) {
				n++
			}
		}
	}
	if n != number(ts, args[len(args)-1]) {
		ts.Fatalf("%d requests, want %s", n, args)
	}
	if !part {
		s.emulator.ForgetRequests()
	}
}

func (s *script) keep(_ *testscript.TestScript, args []string) { s.kept[args[0]] = s.dataset() }

func (s *script) same(ts *testscript.TestScript, args []string) {
	if !maps.Equal(s.kept[args[0]], s.dataset()) {
		ts.Fatalf("the dataset is another one than %s", args[0])
	}
}

func (s *script) nowhere(ts *testscript.TestScript, args []string) {
	dir := s.workspace
	if len(args) > 1 {
		dir = ts.MkAbs(args[1])
	}
	for name, text := range everyFile(s.t, dir) {
		if bytes.Contains(text, []byte(args[0])) {
			ts.Fatalf("%s holds %q", name, args[0])
		}
	}
}

func (s *script) left(ts *testscript.TestScript, args []string) {
	if files := tree(s.t, ts.MkAbs(args[0])); len(files) != number(ts, args[1]) {
		ts.Fatalf("%d files in %s, want %s: %q", len(files), args[0], args[1], slices.Sorted(maps.Keys(files)))
	}
}

const figSIMFolder = "../../releases/figsim"

// testSigner is obviously nobody's key.
func testSigner(t testing.TB, seed string) ssh.Signer {
	t.Helper()
	key := sha256.Sum256([]byte(seed))
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(key[:]))
	check(t, err)
	return s
}

// pin is the [[signer]] table for a key.
func pin(key ssh.Signer) string {
	return fmt.Sprintf("\n[[signer]]\nname = \"Test Signer\"\nkey = %q\n",
		strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))))
}

// signed writes a file and its signature by testSigner.
func (s *site) signed(path, namespace, text string) {
	s.t.Helper()
	s.signedBy(testSigner(s.t, "rehydrate test signer"), path, namespace, text)
}

func (s *site) signedBy(key ssh.Signer, path, namespace, text string) {
	s.t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(text), key, sshsig.HashSHA512, namespace)
	check(s.t, err)
	s.write(path, text)
	s.write(path+manifest.SignatureSuffix, string(sshsig.Armor(sig)))
}

// grantText is a grant for a release, for a day.
func grantText(t testing.TB, release string, change func(map[string]any)) string {
	t.Helper()
	rel, err := manifest.Open(release, manifest.Options{})
	check(t, err)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	grant := map[string]any{"v": 1, "type": "rehydrate-grant", "id": "test-1",
		"holder":  map[string]any{"name": "Test Holder", "organization": "Test University"},
		"release": map[string]any{"name": rel.Name, "digest": rel.Digest},
		"purpose": map[string]any{"statement": "A test.", "academic": true, "commercial": false},
		"ethics":  map[string]any{"body": "Test Board", "reference": "TB-1"},
		"platform_approval": map[string]any{"program": "Test Program", "reference": "RFR-TEST-1",
			"expires": at(48 * time.Hour)},
		"asserted": at(-time.Hour), "not_before": at(-time.Hour), "expires": at(24 * time.Hour)}
	if change != nil {
		change(grant)
	}
	b, err := json.MarshalIndent(grant, "", "  ")
	check(t, err)
	return string(b)
}

func revocationsText(t testing.TB, serial int, revoked ...string) string {
	t.Helper()
	now := time.Now().UTC()
	list := []any{}
	for _, id := range revoked {
		list = append(list, map[string]any{"id": id, "at": now.Format(time.RFC3339), "reason": "a test"})
	}
	b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-revocations",
		"release": map[string]any{"name": "FigSIM"},
		"serial":  serial, "issued": now.Add(-time.Minute).Format(time.RFC3339),
		"next_update": now.Add(time.Hour).Format(time.RFC3339), "revoked": list})
	check(t, err)
	return string(b)
}

// liftText is a statement that lifts tombstones of a release.
func liftText(t testing.TB, release, asserted string, names ...policy.NamedTombstone) string {
	t.Helper()
	rel, err := manifest.Open(release, manifest.Options{})
	check(t, err)
	b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-lift", "tombstones": names,
		"why": "asked for by the author", "asserted": asserted,
		"release": map[string]any{"name": rel.Name, "digest": rel.Digest}})
	check(t, err)
	return string(b)
}

// figSIMSite is a site whose release is the FigSIM folder of this repository, with a test
// signer and a few made-up posts in place of the annotations.
func figSIMSite(t testing.TB, n int) *site {
	t.Helper()
	posts := fewPosts(n)
	_, speed, _ := strings.Cut(fastPolicy, "\n")
	s := newSite(t, fewAnnotations(posts), read(t, filepath.Join(figSIMFolder, "policy.toml"))+"\n"+speed, posts...)
	s.write(filepath.Join(s.release, "release.toml"),
		read(t, filepath.Join(figSIMFolder, "release.toml"))+pin(testSigner(t, "rehydrate test signer")))
	return s
}

func (s *site) grantPath() string { return filepath.Join(s.release, manifest.GrantName) }
