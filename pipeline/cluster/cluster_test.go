package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rehydrate/pipeline/attest"
	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// folder makes a workspace's folder of shards, with two images to read in each.
func folder(t *testing.T, shards int) (dir string, done func(shard int)) {
	t.Helper()
	dir = t.TempDir()
	plan, err := json.Marshal(Plan{Format: Format, Shards: shards})
	attest.OK(t, err, os.Mkdir(filepath.Join(dir, state.ShardsDir), 0o700))
	put(t, dir, planName, string(plan))
	for i := range shards {
		put(t, dir, workName(i), "{}\n{}\n")
	}
	return dir, func(shard int) {
		side, err := json.Marshal(Sidecar{Shard: shard, Plan: state.SHA256(plan), Read: 2})
		attest.OK(t, err)
		put(t, dir, sidecarName(shard), string(side))
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	attest.OK(t, os.WriteFile(filepath.Join(dir, state.ShardsDir, name), []byte(text), 0o600))
}

// A controller is an engine that reads nothing: what it is asked, and what it answers.
type controller struct {
	submitted        [][]int
	looks, cancelled int
	look             func(n int) ([]int, error)
}

func (c *controller) Submit(_ context.Context, shards []int) error {
	c.submitted = append(c.submitted, slices.Clone(shards))
	return nil
}

func (c *controller) Running(context.Context) ([]int, string, error) {
	c.looks++
	running, err := c.look(c.looks)
	return running, "", err
}

func (c *controller) Cancel(context.Context) error { c.cancelled++; return nil }

// TestFollow: what is not done is submitted so often and no more, and never while nobody knows what runs.
func TestFollow(t *testing.T) {
	away := errors.New("the controller is away")
	for _, c := range []struct {
		name      string
		look      func(done func(int)) func(n int) ([]int, error)
		log       string
		submitted [][]int
		want      string
	}{
		{"a controller that restarts", func(done func(int)) func(int) ([]int, error) {
			return func(n int) ([]int, error) {
				switch {
				case n == 1:
					done(0)
					return nil, nil
				case n < 1+maxBlind:
					return nil, away
				}
				done(1)
				return []int{1}, nil
			}
		}, "", [][]int{{1}}, "<nil>"},
		{"one that stays away", func(func(int)) func(int) ([]int, error) { return func(int) ([]int, error) { return nil, away } },
			"", nil, "ask the cluster what runs: the controller is away"},
		{"a shard that always fails", func(done func(int)) func(int) ([]int, error) {
			done(1)
			return func(int) ([]int, error) { return nil, nil }
		}, "first\nsecond\nlast\n", [][]int{{0}, {0}, {0}}, "shard 0 of 2 failed 3 times: it printed, at the end of shards/log-00000.txt: second / last"},
		{"all done at the first look", func(done func(int)) func(int) ([]int, error) {
			return func(n int) ([]int, error) { done(0); done(1); return nil, nil }
		}, "", nil, "<nil>"},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, done := folder(t, 2)
			put(t, dir, sidecarName(0), "{")
			put(t, dir, sidecarName(1), `{"plan":"other","read":2}`)
			put(t, dir, logName(0), c.log)
			e := &controller{look: c.look(done)}
			last := 0
			err := Follow(t.Context(), Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second,
				Progress: func(done, items int) { last = done }, Log: slog.New(slog.DiscardHandler)})
			attest.Same(t, c.name+": the error", c.want, fmt.Sprint(err))
			attest.Same(t, c.name+": what was submitted", c.submitted, e.submitted)
			if err == nil && last != 4 {
				t.Errorf("%s: %d of 4 images at the end", c.name, last)
			}
		})
	}
}

// TestFollowCancelled: whoever is interrupted leaves nothing running.
func TestFollowCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := folder(t, 1)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		e := &controller{look: func(int) ([]int, error) { return []int{0}, nil }}
		err := Follow(ctx, Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second, Progress: func(int, int) {}})
		if !errors.Is(err, context.DeadlineExceeded) || e.cancelled != 1 {
			t.Errorf("%v, cancelled %d times", err, e.cancelled)
		}
	})
}

// TestUnfinished: of parts that a kill left and one that is being written the longest counts, and each byte once.
func TestUnfinished(t *testing.T) {
	dir, _ := folder(t, 3)
	c := counter{dir: os.DirFS(dir), parts: map[string]part{}}
	put(t, dir, partPrefix+"00000-aa", strings.Repeat("{}\n", 5))
	put(t, dir, partPrefix+"00001-aa", strings.Repeat("{}\n", 3))
	put(t, dir, partPrefix+"00001-bb", "{}\n{")
	attest.Same(t, "shard 1", 3, c.unfinished([]int{1}))
	put(t, dir, partPrefix+"00001-bb", "{}\n{}\n{}\n{}\n{")
	attest.Same(t, "grown", 4, c.unfinished([]int{1, 2}))
	attest.OK(t, os.Remove(filepath.Join(dir, state.ShardsDir, partPrefix+"00001-bb")))
	attest.Same(t, "taken away", 3, c.unfinished([]int{1}))
	attest.Same(t, "all", 8, c.unfinished([]int{0, 1, 2}))
}

// TestSplitFails: all lists are open at once, and one that cannot be written leaves none, and is the one that is named.
func TestSplitFails(t *testing.T) {
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	attest.OK(t, err)
	defer ws.Close()
	created := 0
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, _ string) error {
		if step == "create" {
			created++
		}
		if created == 4 {
			return errors.New("the disk is full")
		}
		return nil
	})
	_, err = Split(ctx, ws, Plan{Format: Format, Shards: 6}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "write shards/work-00003.jsonl: ") {
		t.Errorf("the error is %v", err)
	}
	left, err := os.ReadDir(filepath.Join(ws.Dir(), state.ShardsDir))
	attest.Same(t, "what is left", 0, len(left), err)
}
