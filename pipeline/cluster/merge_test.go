package cluster

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// thePlan is a plan of one shard.
func thePlan() Plan {
	return Plan{Format: Format, Shards: 1, Release: "r", Manifest: "m", Tool: "1", Policy: policy.Default()}
}

func openWorkspace(t *testing.T) *workspace.Workspace {
	t.Helper()
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { ws.Close() })
	testkit.OK(t, os.Mkdir(filepath.Join(ws.Dir(), state.ShardsDir), 0o700))
	return ws
}

func lines[T any](t *testing.T, values ...T) string {
	t.Helper()
	var b strings.Builder
	out := json.NewEncoder(&b)
	for _, v := range values {
		testkit.OK(t, out.Encode(v))
	}
	return b.String()
}

// readShard puts a shard of two images that was read, few001 and few002, into a workspace: the second by the same
// engine before. change may alter what is written, before it gets its digests.
func readShard(t *testing.T, ws *workspace.Workspace, change func(items *[]Item, results *[]Result, side *Sidecar)) {
	t.Helper()
	items := []Item{{ID: "few001", Stored: workspace.Image{SHA256: "a"}},
		{ID: "few002", Stored: workspace.Image{SHA256: "b"}, Last: &workspace.Reading{Fingerprint: "f", ImageSHA256: "b"}}}
	results := []Result{{ID: "few001", Stored: workspace.Image{SHA256: "a"}, Reading: workspace.Reading{Text: "HELLO"}}}
	plan := lines(t, thePlan())
	side := Sidecar{Format: Format, Shards: 1, Plan: state.SHA256([]byte(plan)), Tool: "1",
		Engine: ocr.Engine{Name: "fake"}, Fingerprint: "f"}
	if change != nil {
		change(&items, &results, &side)
	}
	if side.SHA256 == "" {
		side.SHA256 = state.SHA256([]byte(lines(t, results...)))
	}
	put(t, ws.Dir(), planName, plan)
	put(t, ws.Dir(), workName(0), lines(t, items...))
	put(t, ws.Dir(), resultName(0), lines(t, results...))
	put(t, ws.Dir(), sidecarName(0), lines(t, side))
}

// TestCheck: a merge takes what its plan asked for and its sidecar names, whole, and nothing else.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*[]Item, *[]Result, *Sidecar)
		want   string // of the error
	}{
		{"whole", nil, ""},
		{"other bytes than the sidecar names", func(_ *[]Item, _ *[]Result, s *Sidecar) { s.SHA256 = state.SHA256(nil) },
			"shards/result-00000.jsonl is not what its sidecar names"},
		{"another plan", func(_ *[]Item, _ *[]Result, s *Sidecar) { s.Plan = "other" }, "its results are of another plan"},
		{"another shard", func(_ *[]Item, _ *[]Result, s *Sidecar) { s.Shard = 1 }, "its results are of another plan"},
		{"an image without a result", func(_ *[]Item, r *[]Result, _ *Sidecar) { *r = nil },
			"few001 is not among its results"},
		{"a result of another image", func(_ *[]Item, r *[]Result, _ *Sidecar) { (*r)[0].Stored.SHA256 = "c" },
			"few001 is not among its results"},
		{"read before by another engine", func(i *[]Item, _ *[]Result, _ *Sidecar) { (*i)[1].Last.Fingerprint = "g" },
			"few002 is not among its results"},
		{"read before, of another image", func(i *[]Item, _ *[]Result, _ *Sidecar) { (*i)[1].Last.ImageSHA256 = "c" },
			"few002 is not among its results"},
		{"failed before", func(i *[]Item, _ *[]Result, _ *Sidecar) { (*i)[1].Last.Failed = &workspace.Trouble{} },
			"few002 is not among its results"},
		{"never read before", func(i *[]Item, _ *[]Result, _ *Sidecar) { (*i)[1].Last = nil },
			"few002 is not among its results"},
	} {
		ws := openWorkspace(t)
		readShard(t, ws, tt.change)
		engine, shards, err := Check(ws, thePlan())
		if tt.want == "" {
			testkit.Same(t, tt.name, "fake", engine.Name, err)
			testkit.Same(t, tt.name, 1, shards)
		} else if err == nil || !strings.Contains(err.Error(), "1 of 1 shards are not done: 0 ("+tt.want+")") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	ws := openWorkspace(t)
	if _, _, err := Check(ws, thePlan()); err != ErrNoPlan {
		t.Errorf("without a plan: %v", err)
	}
	readShard(t, ws, nil)
	other := thePlan()
	other.Manifest = "n"
	if _, _, err := Check(ws, other); err == nil || !strings.Contains(err.Error(), "for another release") {
		t.Errorf("another release: %v", err)
	}
}

// TestResults: what is gone since the list was written, or what nobody asked for, is not taken in.
func TestResults(t *testing.T) {
	ws := openWorkspace(t)
	readShard(t, ws, func(i *[]Item, r *[]Result, _ *Sidecar) {
		*i = append(*i, Item{ID: "few003", Stored: workspace.Image{SHA256: "c"}})
		*r = append(*r, Result{ID: "few009"}, Result{ID: "few003", Stored: workspace.Image{SHA256: "old"}}, (*r)[0],
			Result{ID: "few003", Stored: workspace.Image{SHA256: "c"}})
	})
	var got []manifest.PostID
	for r, err := range Results(ws, 0) {
		testkit.OK(t, err)
		got = append(got, r.ID)
	}
	testkit.Same(t, "results", []manifest.PostID{"few001", "few003"}, got)
	n := 0
	for range Results(ws, 0) { // who has enough gets no more
		n++
		break
	}
	testkit.Same(t, "the first", 1, n)
	for _, err := range Results(ws, 1) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a shard that nobody read: %v", err)
		}
	}
	put(t, ws.Dir(), resultName(0), lines(t, Result{ID: "few001", Stored: workspace.Image{SHA256: "a"},
		Reading: workspace.Reading{Text: "LIES"}}))
	for r, err := range Results(ws, 0) {
		if err == nil {
			t.Errorf("%+v was taken in, which the sidecar does not name", r)
		}
	}
}

// TestSplitAgain: results by an equal plan stay, those of another go. Another number of shards alone is refused while
// there are results, and then possible.
func TestSplitAgain(t *testing.T) {
	ws := openWorkspace(t)
	has := func() bool {
		names, err := ws.Files(t.Context(), state.ShardsDir)
		testkit.OK(t, err)
		return slices.Contains(names, state.ShardsDir+"/"+resultName(0))
	}
	readShard(t, ws, nil)
	_, err := Split(t.Context(), ws, thePlan(), nil)
	testkit.OK(t, err)
	if !has() {
		t.Error("the same plan removed what was read by it")
	}
	for name, change := range map[string]func(*Plan){
		"version": func(p *Plan) { p.Tool = "2" }, "release": func(p *Plan) { p.Release = "s" },
		"annotations": func(p *Plan) { p.Manifest = "n" }, "policy": func(p *Plan) { p.Policy.Filter.Mode = policy.Flag },
	} {
		readShard(t, ws, nil)
		p := thePlan()
		change(&p)
		_, err := Split(t.Context(), ws, p, nil)
		testkit.OK(t, err)
		if has() {
			t.Errorf("results of another %s stay", name)
		}
	}
	readShard(t, ws, nil)
	more := thePlan()
	more.Shards = 2
	testkit.Same(t, "what waits", Waiting{Shards: 1, Read: 1}, WaitingIn(ws.Dir()))
	_, err = Split(t.Context(), ws, more, nil)
	if !errors.As(err, new(*Unmerged)) || !has() {
		t.Errorf("another number of shards: %v, and its results are there: %t", err, has())
	}
	testkit.OK(t, Clear(t.Context(), ws))
	testkit.Same(t, "what waits after a merge", Waiting{}, WaitingIn(ws.Dir()))
	_, err = Split(t.Context(), ws, more, nil)
	testkit.OK(t, err)
}

// TestOwns: a cluster's are the files that it writes, in its folder alone.
func TestOwns(t *testing.T) {
	for name, want := range map[string]bool{PlanFile: true, "shards/" + workName(3): true,
		"shards/" + resultName(3):  true,
		"shards/" + sidecarName(3): true, "shards/" + logName(3): true, "shards/" + partPrefix + "00003-af": true,
		planName: false, "dataset/" + planName: false, "shards/old/" + planName: false, "shards/notes.txt": false,
		"shards/work-3.jsonl": false} {
		testkit.Same(t, name, want, Owns(name))
	}
}

// TestMerged: after the end of a merge nothing is left to merge, until work is split again or an image is not read.
func TestMerged(t *testing.T) {
	ws, now := openWorkspace(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	merged := func(what string, want bool, digests ...string) {
		t.Helper()
		got, err := Merged(t.Context(), ws, digests[0], digests[1])
		testkit.Same(t, what, want, got, err)
	}
	merged("never split", false, "r", "m")
	readShard(t, ws, nil)
	merged("split", false, "r", "m")
	testkit.OK(t, Clear(t.Context(), ws))
	merged("cleared", true, "r", "m")
	merged("another release", false, "s", "m")
	merged("other annotations", false, "r", "n")
	readShard(t, ws, nil)
	merged("killed before the shards went", false, "r", "m")
	testkit.OK(t, Clear(t.Context(), ws)) // and once more
	merged("cleared again", true, "r", "m")

	entries := func(yield func(manifest.Entry, error) bool) {
		yield(manifest.Entry{Key: manifest.Key{ID: "few001"}, Split: "train"}, nil)
	}
	post := workspace.Post{ID: "few001", State: manifest.StateLive, CheckedAt: now, LiveAt: now}
	testkit.OK(t, ws.Load(t.Context(), workspace.Binding{Release: "x", ReleaseDigest: "r", ManifestDigest: "m",
		Splits: []string{"train"}}, entries, nil),
		ws.SetPosts(t.Context(), []workspace.Post{post}))
	merged("without an image", true, "r", "m")
	body := []byte("an image")
	img := workspace.Image{SHA256: state.SHA256(body), Format: "png", Bytes: int64(len(body))}
	testkit.OK(t, ws.StoreImage(t.Context(), manifest.Key{ID: "few001"}, body, img))
	merged("with an image that nobody read", false, "r", "m")
	gone := post
	gone.State, gone.Reason = manifest.StateRemoved, "moderator"
	testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{gone}))
	merged("with one of a post that is gone", true, "r", "m")
	testkit.OK(t, ws.SetPosts(t.Context(), []workspace.Post{post}))
	merged("with one of a post that is live again", false, "r", "m")
	testkit.OK(t, ws.SetReadings(t.Context(), workspace.NewReading{Key: manifest.Key{ID: "few001"},
		Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: img.SHA256}}))
	merged("with an image that was read", true, "r", "m")
	_, err := Split(t.Context(), ws, thePlan(), nil)
	testkit.OK(t, err)
	merged("split again", false, "r", "m")
	testkit.OK(t, clear(t.Context(), ws))
	merged("split for nothing", false, "r", "m")
}

// TestSlurmEnvironment: Slurm's programs are started with their settings and without credentials.
func TestSlurmEnvironment(t *testing.T) {
	bin := t.TempDir()
	for _, program := range []string{"sbatch", "squeue", "scancel"} {
		script := "#!/bin/sh\nenv > " + filepath.Join(bin, program+".env") + "\n"
		testkit.OK(t, os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{"REDDIT_CLIENT_SECRET": "canary", "OPENAI_API_KEY": "canary",
		"IMGUR_CLIENT_ID": "canary",
		"HTTPS_PROXY":     "http://u:canary@x", "SLURM_CONF": "/etc/ours.conf", "SBATCH_PARTITION": "cpu",
		"TESSDATA_PREFIX": "/data"} {
		t.Setenv(name, value)
	}
	s := &Slurm{Command: Command{Workspace: bin, Args: []string{"rehydrate", IndexArg}}}
	_, _, err := s.Running(t.Context())
	testkit.OK(t, s.Submit(t.Context(), []int{0}), err, s.Cancel(t.Context()))
	for _, program := range []string{"sbatch", "squeue", "scancel"} {
		env, err := os.ReadFile(filepath.Join(bin, program+".env"))
		testkit.OK(t, err)
		if strings.Contains(string(env), "canary") {
			t.Errorf("%s has credentials:\n%s", program, env)
		}
		for _, want := range []string{"SLURM_CONF=/etc/ours.conf", "SBATCH_PARTITION=cpu", "TESSDATA_PREFIX=/data",
			"PATH=" + bin} {
			if !strings.Contains(string(env), want) {
				t.Errorf("%s does not have %s:\n%s", program, want, env)
			}
		}
	}
}
