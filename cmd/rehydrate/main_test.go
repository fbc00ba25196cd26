package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"rehydrate/audit/verify"
	"rehydrate/cmd/rehydrate/testdata/fakeocr"
	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/redditemu/hostile"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// childVar makes the test binary be rehydrate itself, for tests that kill it.
const childVar = "REHYDRATE_TEST_BE_REHYDRATE"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(realMain(nil))
	}
	testscript.Main(m, map[string]func(){"rehydrate": main, "ocr": fakeocr.Main, "ocr-remembered": serveRemembered,
		"reddit": serveSpecks, "measured": measured})
}

// sourceDir is the folder of this package. A test may have left it before the program is built.
var sourceDir, _ = os.Getwd()

// buildOCR builds the real ocr program.
var buildOCR = sync.OnceValues(func() (string, error) { return built("real", "../ocr") })

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return string(b)
}

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

// fastPolicy asks the emulator as fast as a policy can; the rest is the default.
var fastPolicy = demoPolicy

// quick is fastPolicy with more keys under [reddit].
func quick(keys string) string {
	return strings.Replace(fastPolicy, "[reddit]\n", "[reddit]\n"+keys+"\n", 1)
}

// newSite starts an emulator that knows posts, and writes a release of annotations.
func newSite(t testing.TB, annotations string, pol string, posts ...redditemu.Post) *site {
	t.Helper()
	return newSiteOn(t, redditemu.Options{Seed: 1}, annotations, pol, posts...)
}

// newSiteOn is newSite with an emulator of its own kind.
func newSiteOn(t testing.TB, o redditemu.Options, annotations string, pol string, posts ...redditemu.Post) *site {
	t.Helper()
	emulator, err := hostile.Start(o)
	check(t, err)
	t.Cleanup(emulator.Close)
	check(t, emulator.Put(posts...))
	dir := t.TempDir()
	s := &site{t: t, emulator: emulator, release: filepath.Join(dir, "release"), workspace: filepath.Join(dir, "ws"),
		cacert: filepath.Join(dir, "ca.pem"), now: time.Now, stop: make(chan struct{}), reader: fakeOCRPath(t)}
	s.write(s.cacert, string(emulator.CAPEM()))
	s.write(filepath.Join(s.release, "annotations.csv"), annotations)
	s.write(filepath.Join(s.release, "policy.toml"), pol)
	s.write(filepath.Join(s.release, "release.toml"), demoRelease)
	return s
}

// real has the site's commands read with Tesseract.
func (s *site) real() *site {
	s.t.Helper()
	program, err := buildOCR()
	check(s.t, err)
	s.reader = program
	return s
}

// fewPosts are n live posts with a sketch each, whose text no other of the first 30 has.
func fewPosts(n int) []redditemu.Post {
	posts := make([]redditemu.Post, n)
	for i := range posts {
		posts[i] = redditemu.Post{ID: manifest.PostID(fmt.Sprintf("few%03d", i)),
			Images: []redditemu.Image{
				sketch(fakeocr.FirstOwn+i%(len(fakeocr.Captions)-fakeocr.FirstOwn), uint64(1000+i), 0, "jpg")}}
	}
	return posts
}

func fewAnnotations(posts []redditemu.Post) string {
	var b strings.Builder
	b.WriteString("id,split,figurative,severity,related_content,modality,context\n")
	for i, p := range posts {
		fmt.Fprintf(&b, "%s,%s,F1|F3,SS6,SR3,M1,C1\n", p.ID, []string{"train", "validation", "test"}[i%3])
	}
	return b.String()
}

func (s *site) update(id manifest.PostID, f func(*redditemu.Post)) {
	s.t.Helper()
	check(s.t, s.emulator.Update(id, f))
}

// becomes puts posts into a condition.
func (s *site) becomes(c redditemu.Condition, posts ...redditemu.Post) {
	for _, p := range posts {
		s.update(p.ID, func(p *redditemu.Post) { p.Condition = c })
	}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	check(s.t, os.MkdirAll(filepath.Dir(name), 0o700))
	check(s.t, os.WriteFile(name, []byte(text), 0o600))
}

// reddit are the flags that lead to the emulator.
func (s *site) reddit() []string {
	return []string{"--connect-to", s.emulator.ConnectTo(), "--cacert", s.cacert}
}

func (s *site) args(more ...string) []string {
	return slices.Concat([]string{"run", s.release, "-w", s.workspace, "--approval", "TEST-1", "--ocr", s.reader},
		s.reddit(), more)
}

// job are the arguments of another command that asks the emulator about the release.
func (s *site) job(command string, more ...string) []string {
	return slices.Concat(strings.Fields(command), []string{s.release, "-w", s.workspace, "--approval", "TEST-1"},
		s.reddit(), more)
}

func (s *site) env() map[string]string {
	return map[string]string{"REDDIT_CLIENT_ID": s.emulator.ClientID, "REDDIT_CLIENT_SECRET": s.emulator.Secret,
		"REDDIT_USERNAME": "test_user"}
}

// A finished command: what it printed and its exit status.
type finished struct {
	stdout, stderr string
	code           int
}

func (f finished) want(t testing.TB, code int, texts ...string) {
	t.Helper()
	if f.code != code {
		t.Fatalf("exit %d, want %d\n%s%s", f.code, code, f.stderr, f.stdout)
	}
	for _, text := range texts {
		if !strings.Contains(f.stdout+f.stderr, text) {
			t.Errorf("the output does not hold %q:\n%s%s", text, f.stderr, f.stdout)
		}
	}
}

// do runs a command line in this process.
func (s *site) do(env map[string]string, args ...string) finished {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	ctx := context.WithValue(s.t.Context(), durable.HookKey{}, s.step)
	code := run(ctx, process{args: args, getenv: func(k string) string { return env[k] }, stdin: strings.NewReader(""),
		stdout: &stdout, stderr: &stderr, executable: func() (string, error) { return exec.LookPath("rehydrate") },
		now: s.now, stop: s.stop, lastAct: time.Minute})
	return finished{stdout.String(), stderr.String(), code}
}

// oneObject is what a command printed with --json: exactly one object.
func oneObject(t testing.TB, f finished) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.stdout), &object); err != nil || object == nil {
		t.Errorf("stdout is not one JSON object: %v\n%s", err, f.stdout)
	}
	return object
}

// printed is what a command prints with --json; any status but want ends the test.
func printed[T any](s *site, want int, args ...string) (v T) {
	s.t.Helper()
	f := s.do(s.env(), append(args, "--json")...)
	f.want(s.t, want)
	if err := json.Unmarshal([]byte(f.stdout), &v); err != nil {
		s.t.Fatalf("%q printed no JSON: %v\n%s", args, err, f.stdout)
	}
	return v
}

func (s *site) run(want int, more ...string) state.Summary {
	s.t.Helper()
	return printed[state.Summary](s, want, s.args(more...)...)
}

func (s *site) verify(want int) verify.Report {
	s.t.Helper()
	return printed[verify.Report](s, want, "verify", "-w", s.workspace)
}

// copyTo makes a registered copy.
func (s *site) copyTo(to string) finished {
	s.t.Helper()
	return s.do(s.env(), "export", s.release, "-w", s.workspace, "--out", to, "--note", "a test")
}

func (s *site) copies(want int) []state.CopyReport {
	s.t.Helper()
	list := printed[struct{ Copies []state.CopyReport }](s, want, "export", "--list", "-w", s.workspace)
	return list.Copies
}

// outcomes reads outcomes.csv.
func (s *site) outcomes() []manifest.Result {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.workspace, "outcomes.csv"))
	check(s.t, err)
	defer f.Close()
	var all []manifest.Result
	for r, err := range manifest.ReadOutcomes(f) {
		check(s.t, err)
		all = append(all, r)
	}
	return all
}

// outcomeOf is the outcome of a post's first entry, as "outcome/reason".
func (s *site) outcomeOf(id manifest.PostID) string {
	s.t.Helper()
	for _, r := range s.outcomes() {
		if r.ID == id {
			return string(r.Outcome) + "/" + string(r.Reason)
		}
	}
	s.t.Fatalf("no entry %s", id)
	return ""
}

// records reads what the workspace knows.
func (s *site) records() []workspace.Record {
	s.t.Helper()
	ws, err := workspace.Open(s.t.Context(), s.workspace, workspace.Options{ReadOnly: true})
	check(s.t, err)
	defer ws.Close()
	var all []workspace.Record
	for rec, err := range ws.Records(s.t.Context(), workspace.Select{WithEarlier: true, WithWords: true}) {
		check(s.t, err)
		all = append(all, rec)
	}
	return all
}

func (s *site) images() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.workspace, "images", "*", "*"))
	check(s.t, err)
	return found
}

// dataset returns the bytes of every file of the dataset, by name.
func (s *site) dataset() map[string]string { return tree(s.t, filepath.Join(s.workspace, "dataset")) }

// exported are the ids in the workspace's Parquet.
func (s *site) exported() []string {
	s.t.Helper()
	return rowsOf(s.t, filepath.Join(s.workspace, "dataset", "data"))
}

// imageRequests are the emulator's requests that are not to Reddit's API.
func (s *site) imageRequests() []hostile.Request {
	return slices.DeleteFunc(s.emulator.Requests(),
		func(r hostile.Request) bool { return strings.HasSuffix(r.Host, ".reddit.com") })
}

// command is a command line in a process of its own, under another program, whose arguments end with it, if there is
// one.
func (s *site) command(ctx context.Context, under []string, args ...string) *exec.Cmd {
	testkit.HearHangups()
	line := slices.Concat(under, []string{os.Args[0]}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), childVar+"=1", "GOGC=") // it holds as much memory as a user's does
	for k, v := range s.env() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// outcome runs a command to its end; -1 is the exit status of one that was killed.
func outcome(t *testing.T, cmd *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return finished{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
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

// grep fails the test for every file of the workspace that holds text.
func (s *site) grep(text, what string) {
	s.t.Helper()
	files := tree(s.t, s.workspace)
	for name, body := range files {
		if strings.Contains(body, text) {
			s.t.Errorf("%s holds %s: %q", name, what, text)
		}
	}
	if len(files) < 3 {
		s.t.Errorf("only %d files in the workspace: nothing was searched", len(files))
	}
}

// tree returns the bytes of all files in a folder, by name; none where there is no such folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = read(t, path)
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		check(t, err)
	}
	return files
}

func onlyParquet(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return !strings.HasSuffix(name, ".parquet") })
	return files
}

// everyFile reads all files below a folder, their names, and the values of those that are Parquet.
func everyFile(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for name, text := range tree(t, dir) {
		found["the names of files"] = append(found["the names of files"], name+"\n"...)
		found[name] = []byte(text)
		if strings.HasSuffix(name, ".parquet") {
			found[name+" read"] = parquetValues(t, []byte(text))
		}
	}
	return found
}

// eachRow gives every row of a Parquet file, whose first column is the id.
func eachRow(t testing.TB, b []byte, f func(parquet.Row)) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	check(t, err)
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		for buf := make([]parquet.Row, 16); ; {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				f(row)
			}
			if err == io.EOF {
				break
			}
			check(t, err)
		}
		rows.Close()
	}
}

// parquetValues are the strings of a Parquet file, which compression hides.
func parquetValues(t testing.TB, b []byte) (values []byte) {
	t.Helper()
	eachRow(t, b, func(row parquet.Row) {
		for _, v := range row {
			if v.Kind() == parquet.ByteArray {
				values = append(append(values, v.ByteArray()...), '\n')
			}
		}
	})
	return values
}

// rowsOf are the ids in the Parquet files of a folder, in their order; none where there is no such folder.
func rowsOf(t testing.TB, dir string) (ids []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	check(t, err)
	for _, name := range found {
		eachRow(t, []byte(read(t, name)), func(row parquet.Row) { ids = append(ids, row[0].String()) })
	}
	slices.Sort(ids)
	return ids
}

// orSkip ends a test for which this machine lacks something: as failed under CI, as skipped elsewhere.
func orSkip(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		testkit.Lacking(t, what, err)
	}
}
