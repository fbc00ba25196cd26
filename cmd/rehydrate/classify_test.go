package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/cmd/rehydrate/testdata/fakeocr"
	"rehydrate/internal/testkit/modelserver"
	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/study/endpoint"
	"rehydrate/study/models"
)

// A modelSite is a site with a run of FigSIM's shape behind it, all of whose posts are kept, and a model.
type modelSite struct {
	*site
	model *modelserver.Server

	mu     sync.Mutex
	bodies map[string]int // requests that were answered
	left   int            // requests until kill; 0 for never
	kill   func()
}

// newModelSite has every step-th entry of FigSIM's synthetic annotations.
func newModelSite(t *testing.T, step int) *modelSite {
	t.Helper()
	lines := strings.SplitAfter(read(t, "../../manifest/testdata/annotations.csv"), "\n")
	text := lines[0]
	var posts []redditemu.Post
	for i, line := range lines[1 : len(lines)-1] {
		if i%step != 0 {
			continue
		}
		id, _, _ := strings.Cut(line, ",")
		text += line
		posts = append(posts, redditemu.Post{ID: manifest.PostID(id),
			Images: []redditemu.Image{sketch(fakeocr.FirstOwn+i%(len(fakeocr.Captions)-fakeocr.FirstOwn), uint64(i), 0,
				[]string{"jpg", "png", "gif", "webp"}[i%4])}})
	}
	m := &modelSite{site: newSite(t, text, fastPolicy, posts...), bodies: map[string]int{}}
	// Many have the words of another: here every post has to be kept.
	m.run(exitDone, "--filters", "flag")
	m.model = modelserver.New(t, "vllm")
	m.model.Answer, m.model.Play = m.answer, m.play
	return m
}

// answer is what the model says of a picture and a task: mostly a label, sometimes what cannot be read.
func (m *modelSite) answer(r modelserver.Request) string {
	var asked struct {
		Format struct {
			Schema struct {
				Name   string
				Schema struct {
					Properties map[string]struct {
						Enum  []string
						Items *struct{ Enum []string }
					}
				}
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	check(m.t, json.Unmarshal(r.Body, &asked))
	h := fnv.New32a()
	h.Write(r.Body)
	n := int(h.Sum32() >> 4)
	name := asked.Format.Schema.Name
	value := asked.Format.Schema.Schema.Properties[name]
	switch {
	case n%17 == 0:
		return "I would rather not say."
	case n%17 == 1:
		return fmt.Sprintf(`{%q: "something else"}`, name)
	case value.Items != nil && n%5 == 0:
		return fmt.Sprintf(`{%q: []}`, name)
	case value.Items != nil:
		return fmt.Sprintf("```json\n{%q: [%q]}\n```", name, value.Items.Enum[n%len(value.Items.Enum)])
	}
	return fmt.Sprintf(`{%q: %q}`, name, value.Enum[n%len(value.Enum)])
}

// play kills the asking process instead of answering, when it is time.
func (m *modelSite) play(_ http.ResponseWriter, r modelserver.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left > 0 {
		m.left--
		if m.left == 0 {
			m.kill()
			return true
		}
	}
	m.bodies[string(r.Body)]++
	return false
}

// classify are the arguments of a classification into a folder of the test's.
func (m *modelSite) classify(workspace, out string, more ...string) []string {
	return append([]string{"classify", "-w", workspace, "--endpoint", m.model.URL, "--model", "m", "--out",
		filepath.Join(filepath.Dir(m.workspace), out)}, more...)
}

// endedAt runs a classification in a process of its own, and sends it a signal while its n-th request waits for an
// answer.
func (m *modelSite) endedAt(t *testing.T, signal os.Signal, n int, args []string) {
	t.Helper()
	var out bytes.Buffer
	cmd := m.command(t.Context(), nil, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	m.mu.Lock()
	err := cmd.Start()
	m.left, m.kill = n, func() { _ = cmd.Process.Signal(signal) }
	m.mu.Unlock()
	check(t, err)
	err = cmd.Wait()
	if signal == os.Kill && !isKilled(err) || signal != os.Kill && cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Fatalf("the process did not end at request %d: %v\n%s", n, err, &out)
	}
	if _, err := os.Stat(args[len(args)-1]); err == nil {
		t.Fatalf("%s is there, although the process was killed", args[len(args)-1])
	}
}

func isKilled(err error) bool {
	status, ok := err.(*exec.ExitError)
	return ok && !status.Exited()
}

// TestClassify asks about FigSIM's test memes, three tasks, without and with examples, and is interrupted, hung up and
// killed once: the predictions are those of asking once without trouble, and labels score reads them. After an
// interrupt no question is sent again that was answered; a kill costs what came in the last seconds. The sample has
// every 40th of the entries.
func TestClassify(t *testing.T) {
	t.Parallel()
	long(t)
	m := newModelSite(t, often(1, 40))
	once, broken := copyTree(t, m.workspace), copyTree(t, m.workspace)
	random, _ := chance(t)
	tests := 0
	for _, r := range m.outcomes() {
		if r.Split == "test" {
			tests++
		}
	}
	for _, shots := range []string{"0", "6"} {
		m.do(nil, m.classify(once, "once"+shots, "--shots", shots, "--concurrency", "4")...).want(t, exitDone)
		clear(m.bodies)
		args := m.classify(broken, "broken"+shots, "--shots", shots)
		m.endedAt(t, os.Kill, 2+random.IntN(tests*3/4), args)
		killed := maps.Clone(m.bodies) // some of them are stored
		clear(m.bodies)
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
			m.endedAt(t, signal, 2+random.IntN(tests*3/4), args)
		}
		m.do(nil, args...).want(t, exitDone, fmt.Sprintf("%d images of split test, %s examples each", tests, shots),
			"answered before", "macro F1")
		all := maps.Clone(m.bodies)
		maps.Copy(all, killed)
		if len(all) != 3*tests {
			t.Errorf("%s examples: %d questions were answered, want 3 of %d rows", shots, len(all), tests)
		}
		for body, n := range m.bodies {
			if n > 1 {
				t.Errorf("a question was sent %d times: %.300s", n, body)
			}
		}
		m.do(nil, "verify", "-w", broken).want(t, exitDone)
		var predictions []string
		for _, name := range []string{"once", "broken"} {
			predictions = append(predictions, filepath.Join(filepath.Dir(m.workspace), name+shots, "predictions.jsonl"))
		}
		if diff := cmp.Diff(read(t, predictions[0]), read(t, predictions[1])); diff != "" {
			t.Errorf("%s examples: the predictions differ (-once +killed):\n%s", shots, diff)
		}
		if n := strings.Count(read(t, predictions[0]), "\n"); n != tests {
			t.Errorf("%d predictions, want %d", n, tests)
		}
		m.do(nil, "labels", "score", predictions[1], "--release", m.release).want(t, exitDone,
			fmt.Sprintf("%d entries of split test", tests), "figurative: macro F1", "severity: macro F1",
			"related_content: macro F1", "no answer, not scored")
		var report models.Report
		check(t, json.Unmarshal([]byte(read(t, filepath.Join(filepath.Dir(predictions[1]), "run.json"))), &report))
		if report.Rows != tests || len(report.Tasks) != 3 || report.Tasks[0].Models["m"] != tests || report.In == 0 {
			t.Errorf("run.json: %+v", report)
		}
	}
}

// TestClassifyBeside: while a classification waits for a slow server, a purge, a run and a second classification work
// on the workspace. What the purge took out is neither sent nor written, and no late answer about it is stored.
func TestClassifyBeside(t *testing.T) {
	t.Parallel()
	long(t)
	m := newModelSite(t, 40)
	var tests []string
	for _, r := range m.outcomes() {
		if r.Split == "test" {
			tests = append(tests, string(r.ID))
		}
	}
	if len(tests) < 3 {
		t.Fatalf("%d rows of the split test", len(tests))
	}
	const said = "what the model says of a post that goes"
	first, later := tests[0], tests[2]
	m.model.Play = func(w http.ResponseWriter, r modelserver.Request) bool {
		if r.N == 0 {
			m.do(nil, "purge", m.release, "-w", m.workspace, "--offline", "--id", first, "--id", later).want(t, exitDone)
			m.run(exitDone, "--filters", "flag")
			m.do(nil, append(m.classify(m.workspace, "other", "--task", "severity"), "--model", "n")...).want(t, exitDone)
			return modelserver.Says(`{"severity":"None","reason":"`+said+`"}`, "stop")(w, r)
		}
		return false
	}
	m.do(nil, m.classify(m.workspace, "answers", "--task", "severity")...).want(t, exitDone,
		fmt.Sprintf("%d images of split test", len(tests)-2))
	for _, name := range []string{"answers", "other"} {
		lines := read(t, filepath.Join(filepath.Dir(m.workspace), name, "predictions.jsonl"))
		if strings.Count(lines, "\n") != len(tests)-2 || strings.Contains(lines, first) || strings.Contains(lines, later) {
			t.Errorf("%s has %s, without %s and %s", name, lines, first, later)
		}
	}
	if n := len(m.model.Requests()); n != 1+2*(len(tests)-2) {
		t.Errorf("%d requests about %d rows, of which two go", n, len(tests))
	}
	if strings.Contains(read(t, filepath.Join(m.workspace, "state.db")), said) {
		t.Error("state.db holds what was said of a purged post")
	}
	m.do(nil, "verify", "-w", m.workspace).want(t, exitDone)
	m.do(nil, "audit", m.release, "-w", m.workspace, "--offline").want(t, exitDone)
}

// TestServerHints: the URL is asked about only where another one could mend it.
func TestServerHints(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		url  bool
	}{
		{&endpoint.Unreachable{Detail: "cannot be asked: connection refused", Nobody: true}, exitRetry, true},
		{&endpoint.Unreachable{Detail: "asks to wait 2h0m0s"}, exitRetry, false},
		{&models.Failing{Detail: "the answer is not that of a chat", Page: true}, exitRetry, true},
		{&models.Failing{Detail: "the server streams its answer"}, exitRetry, false},
		{&models.Failing{Detail: "cannot identify image file"}, exitRetry, false},
		{&endpoint.Denied{Detail: "401", Hint: "is the key right?"}, exitRejected, false},
		{&endpoint.Unsupported{Parameter: "seed"}, exitUsage, false},
		{endpoint.ErrNotLocal, exitUsage, false},
		{&models.Stale{Rows: 1}, exitRetry, false},
		{&models.Stale{Rows: 1, Absent: 1, Asked: true}, exitRetry, false},
		{fmt.Errorf("%w; 3 answers could not be stored; they are lost: %w", state.ErrInterrupted, workspace.ErrInUse),
			exitInterrupted, false},
		{fmt.Errorf("3 answers could not be stored; they are lost: %w", workspace.ErrInUse), exitInUse, false},
	} {
		code, hint := diagnose(fmt.Errorf("ask about few: %w", tt.err))
		if code != tt.code || strings.Contains(hint, "server running") != tt.url {
			t.Errorf("%v: status %d, hint %q", tt.err, code, hint)
		}
	}
}

// TestRechecksOfOneCommand: what a second recheck of a command did is said with what the first one did, and what is
// left to do is what the second one says.
func TestRechecksOfOneCommand(t *testing.T) {
	removed := func(id string, rows ...string) state.RemovedPost {
		return state.RemovedPost{GonePost: state.GonePost{ID: manifest.PostID(id)}, Rows: rows}
	}
	first := state.Summary{Withheld: 4, OpenCopies: 1, Unverified: 2, Back: 1, ReportGone: true,
		Removed: []state.RemovedPost{removed("a"), removed("b", "b/1")}, FilesGone: []string{"one"},
		Left: []state.Count{{Outcome: manifest.Refused, Entries: 1}},
		Copies: []state.CopyReport{{Path: "far", State: state.CopyOpen, Owed: []string{"a"}},
			{Path: "near", State: state.CopyGood, Purged: []string{"a"}}, {Path: "moved", Purged: []string{"a"}}}}
	second := state.Summary{Withheld: 3, Unverified: 1, Back: 2, Removed: []state.RemovedPost{removed("b"), removed("c")},
		Copies: []state.CopyReport{{Path: "far", State: state.CopyGood, Purged: []string{"a"}},
			{Path: "near", State: state.CopyGood, Purged: []string{"c"}}, {Path: "idle", State: state.CopyGood}}}
	got := follows(first, second)
	want := state.Summary{Withheld: 3, Unverified: 1, Back: 3, ReportGone: true,
		Removed: []state.RemovedPost{removed("a"), removed("b"), removed("c")}, FilesGone: []string{"one"}, Left: first.Left,
		Copies: []state.CopyReport{{Path: "far", State: state.CopyGood, Purged: []string{"a"}},
			{Path: "near", State: state.CopyGood, Purged: []string{"a", "c"}}, {Path: "idle", State: state.CopyGood}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("both rechecks (-want +got):\n%s", diff)
	}
	var concerned []string
	for _, c := range (recheckedAnswer{&got}).Concerned() {
		concerned = append(concerned, c.Path)
	}
	if diff := cmp.Diff([]string{"far", "near"}, concerned); diff != "" {
		t.Errorf("copies that are named (-want +got):\n%s", diff)
	}
	if second.Copies[1].Purged[0] != "c" || len(first.Removed) != 2 || first.Removed[1].Rows == nil {
		t.Error("what a recheck said has changed")
	}
}
