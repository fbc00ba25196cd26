package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"rehydrate/internal/durable"
	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// folder makes a workspace's folder of shards, with two images to read in each.
func folder(t *testing.T, shards int) (dir string, done func(shard int)) {
	t.Helper()
	dir = t.TempDir()
	plan, err := json.Marshal(Plan{Format: Format, Shards: shards})
	testkit.OK(t, err, os.Mkdir(filepath.Join(dir, state.ShardsDir), 0o700))
	put(t, dir, planName, string(plan))
	for i := range shards {
		put(t, dir, workName(i), "{}\n{}\n")
	}
	return dir, func(shard int) {
		side, err := json.Marshal(Sidecar{Format: Format, Shard: shard, Plan: state.SHA256(plan), Read: 2})
		testkit.OK(t, err)
		put(t, dir, sidecarName(shard), string(side))
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, state.ShardsDir, name), []byte(text), 0o600))
}

// A controller is an engine that reads nothing: what it is asked, and what it answers.
type controller struct {
	submitted               [][]int
	looks, asked, cancelled int
	held                    []string // at each look
	look                    func(n int) ([]int, error)
	refuse                  func(n int) error // nil takes all
}

func (c *controller) Submit(_ context.Context, shards []int) error {
	c.asked++
	if c.refuse != nil {
		if err := c.refuse(c.asked); err != nil {
			return err
		}
	}
	c.submitted = append(c.submitted, slices.Clone(shards))
	return nil
}

func (c *controller) Running(context.Context) ([]int, string, error) {
	held := ""
	if c.looks < len(c.held) {
		held = c.held[c.looks]
	}
	c.looks++
	running, err := c.look(c.looks)
	return running, held, err
}

func (c *controller) Cancel(context.Context) error {
	c.cancelled++
	return errors.New("it cannot be reached")
}

// TestFollow: what is not done is submitted so often and no more, and never while nobody knows what runs.
func TestFollow(t *testing.T) {
	away := errors.New("the controller is away")
	nothing := func(int) ([]int, error) { return nil, nil }
	for _, c := range []struct {
		name      string
		look      func(done func(int)) func(n int) ([]int, error)
		refuse    func(n int) error
		log       string
		submitted [][]int
		want      string
		warned    int // that it is asked again
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
		}, nil, "", [][]int{{1}}, "<nil>", 1},
		{"one that stays away", func(func(int)) func(int) ([]int,
			error) {
			return func(int) ([]int, error) { return nil, away }
		},
			nil, "", nil, "ask the cluster what runs: the controller is away", 1},
		{"one that is busy, and takes the shards later", func(done func(int)) func(int) ([]int, error) {
			done(0)
			return func(n int) ([]int, error) {
				if n == 2*maxRefused {
					done(1)
				}
				return nil, nil
			}
		}, func(n int) error {
			if n%maxRefused != 0 {
				return away
			}
			return nil
		}, "", [][]int{{1}}, "<nil>", 2},
		{"one that never takes them", func(func(int)) func(int) ([]int, error) { return nothing },
			func(int) error { return errors.New("invalid partition") }, "", nil, "submit shards: invalid partition", 1},
		{"a shard that always fails", func(done func(int)) func(int) ([]int, error) {
			done(1)
			return nothing
		}, nil, "first\nsecond\nlast\n", [][]int{{0}, {0}, {0}},
			"shard 0 of 2 failed 3 times: it printed, at the end of shards/log-00000.txt: second / last", 0},
		{"all done at the first look", func(done func(int)) func(int) ([]int, error) {
			return func(n int) ([]int, error) { done(0); done(1); return nil, nil }
		}, nil, "", nil, "<nil>", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, done := folder(t, 2)
			put(t, dir, sidecarName(0), "{")
			put(t, dir, sidecarName(1), `{"plan":"other","read":2}`)
			put(t, dir, logName(0), c.log)
			e := &controller{look: c.look(done), refuse: c.refuse}
			last, log := 0, &strings.Builder{}
			err := Follow(t.Context(), Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second,
				Progress: func(done, items int, _ string) { last = done }, Log: slog.New(slog.NewTextHandler(log, nil))})
			testkit.Same(t, c.name+": warnings", c.warned, strings.Count(log.String(), "it is asked again"))
			testkit.Same(t, c.name+": the error", c.want, fmt.Sprint(err))
			testkit.Same(t, c.name+": what was submitted", c.submitted, e.submitted)
			if err == nil && (last != 4 || e.cancelled != 1) {
				t.Errorf("%s: %d of 4 images at the end, cancelled %d times", c.name, last, e.cancelled)
			}
		})
	}
}

// TestFollowLeaves: whoever says that what runs is to go on leaves it alone when ctx ends, and not when all is done.
func TestFollowLeaves(t *testing.T) {
	for _, leave := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dir, done := folder(t, 1)
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			e := &controller{look: func(int) ([]int, error) { return []int{0}, nil }}
			f := Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second, Progress: func(int, int, string) {},
				Log: slog.New(slog.DiscardHandler), Leave: func() bool { return leave }}
			err := Follow(ctx, f)
			want := map[bool]int{true: 0, false: 1}[leave]
			if !errors.Is(err, context.DeadlineExceeded) || e.cancelled != want {
				t.Errorf("%v: %v, cancelled %d times, want %d", leave, err, e.cancelled, want)
			}
			done(0)
			testkit.OK(t, Follow(t.Context(), f))
			testkit.Same(t, "cancelled in the end", want+1, e.cancelled)
		})
	}
}

// TestFollowCancelled: whoever is interrupted leaves nothing running, or is told what could not be cancelled.
func TestFollowCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := folder(t, 1)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var log strings.Builder
		e := &controller{look: func(int) ([]int, error) { return []int{0}, nil },
			held: []string{"Priority", "JobHeldUser", "JobHeldUser", ""}}
		err := Follow(ctx, Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second,
			Progress: func(int, int, string) {},
			Log:      slog.New(slog.NewTextHandler(&log, nil))})
		if !errors.Is(err, context.DeadlineExceeded) || e.cancelled != 1 {
			t.Errorf("%v, cancelled %d times", err, e.cancelled)
		}
		if strings.Count(log.String(), "until somebody releases") != 1 ||
			!strings.Contains(log.String(), "it cannot be reached") {
			t.Errorf("the log is\n%s", log.String())
		}
	})
}

// TestFollowOvertaken: shards that another run has taken in, or whose plan cannot be read, are not read again.
func TestFollowOvertaken(t *testing.T) {
	for want, meanwhile := range map[string]func(dir string) error{
		"another run took these shards in": func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, state.ShardsDir))
		},
		"split them again": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, PlanFile), []byte(lines(t, Plan{Format: Format, Shards: 2})), 0o600)
		},
		"read shards/plan.json: ": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, PlanFile), []byte("{"), 0o600)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, _ := folder(t, 1)
			e := &controller{}
			e.look = func(n int) ([]int, error) {
				if n == 2 {
					testkit.OK(t, meanwhile(dir))
				}
				return nil, nil
			}
			err := Follow(t.Context(), Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second,
				Progress: func(int, int, string) {}})
			if err == nil || !strings.Contains(err.Error(), want) || len(e.submitted) != 1 {
				t.Errorf("%v, want %q, submitted %v", err, want, e.submitted)
			}
		})
	}
}

// TestLocal: a process is interrupted, and one that does not heed it is killed; the log of one that was killed says so.
func TestLocal(t *testing.T) {
	for _, test := range []struct {
		trap, want string
		grace      time.Duration
	}{{"", "signal: killed", 10 * time.Millisecond}, {"echo it ends; exit 1", "it ends", time.Minute}} {
		dir, _ := folder(t, 1)
		at := func(name string) string { return filepath.Join(dir, state.ShardsDir, name) }
		l := &Local{Command: Command{dir, []string{"sh", "-c", "trap '" + test.trap + "' INT; touch " + at("begun") +
			"; while :; do sleep 0.01; done"}}, AtOnce: 1, Grace: test.grace}
		testkit.OK(t, l.Submit(t.Context(), []int{0}))
		for _, err := os.Stat(at("begun")); err != nil; _, err = os.Stat(at("begun")) {
			time.Sleep(time.Millisecond)
		}
		testkit.OK(t, l.Cancel(t.Context()))
		if last := lastWords(os.DirFS(dir), 0); !strings.HasSuffix(last, ": "+test.want) {
			t.Errorf("%s, want %s", last, test.want)
		}
	}
}

// TestDropLog: what a shard printed goes when it names a post that must go.
func TestDropLog(t *testing.T) {
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	defer ws.Close()
	testkit.OK(t, os.Mkdir(filepath.Join(ws.Dir(), state.ShardsDir), 0o700))
	put(t, ws.Dir(), logName(0), "rehydrate: read shard 0 of 3: few003: read images/fe/few003.jpg: input/output error\n")
	put(t, ws.Dir(), logName(1), "rehydrate: few0031 is another post\n")
	put(t, ws.Dir(), logName(2), "rehydrate: read shard 2 of 3: few004/1: input/output error\n")
	put(t, ws.Dir(), planName, `{"format":1}`)
	testkit.OK(t, Drop(t.Context(), ws, func(row string) bool { return row == "few003" || row == "few004/1" }))
	left, err := ws.Files(t.Context(), state.ShardsDir)
	testkit.Same(t, "what is left", []string{"shards/" + logName(1), PlanFile}, left, err)
}

// FuzzFolder: whatever stands in the files of the folder, what reads them ends, and yields no image twice or unasked.
func FuzzFolder(f *testing.F) {
	item, result := `{"id":"few001","image":1,"stored":{"sha256":"a"}}`,
		`{"id":"few001","image":1,"stored":{"sha256":"a"},"reading":{"text":"x"}}`
	f.Add(`{"format":1,"shards":2}`, item, result, `{"shard":0,"read":1}`, "3 RUNNING None\n4 PENDING JobHeldUser\n")
	f.Add(`{"format":1,"shards":-1}`, item+"\n"+item, result+"\n"+result, `{"fault":{}}`, "N/A PENDING Priority")
	f.Add("null", "{", "null\nnull", "[]", "\n")
	f.Fuzz(func(t *testing.T, plan, work, results, sidecar, queue string) {
		dir := fstest.MapFS{}
		for name, text := range map[string]string{planName: plan, workName(0): work, resultName(0): results,
			sidecarName(0): sidecar} {
			dir[state.ShardsDir+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		if p, _, err := readPlan(dir); err == nil && (p.Shards < 1 || p.Shards > MaxShards) {
			t.Errorf("%d shards", p.Shards)
		}
		if side, err := readSidecar(dir, 0); err == nil {
			side.Shard, side.SHA256 = 0, state.SHA256([]byte(results))
			seen := map[manifest.Key]bool{}
			for r, err := range matched(dir, side) {
				if err == nil && seen[r.Key()] {
					t.Errorf("%s twice", r.Key())
				}
				seen[r.Key()] = true
			}
		}
		for line, err := range without(dir, resultName(0), func(id string) bool { return id == "few001" }) {
			var r Result
			if err == nil && line != nil && json.Unmarshal(line, &r) == nil && r.Key().String() == "few001" {
				t.Errorf("%s stays", line)
			}
		}
		if all, _, err := tasks(queue); err != nil && len(all) > 0 {
			t.Errorf("%v, and %v", all, err)
		}
	})
}

// TestTasks: why tasks wait is of interest while none runs, and always where somebody must release one.
func TestTasks(t *testing.T) {
	for out, want := range map[string]string{
		"":                                   "",
		"0 PENDING Resources\n":              "Resources",
		"0 RUNNING None\n1 PENDING Priority": "",
		"0 RUNNING None\n1 PENDING JobHeldAdmin\n2 PENDING Priority\n": "JobHeldAdmin",
		"0 PENDING launch failed requeued held":                        "launch failed requeued held",
	} {
		_, why, err := tasks(out)
		testkit.Same(t, out, want, why, err)
	}
}

// TestUnfinished: of parts that a kill left and one that is being written the longest counts, and each byte once.
func TestUnfinished(t *testing.T) {
	dir, _ := folder(t, 3)
	c := counter{dir: os.DirFS(dir), parts: map[string]part{}}
	put(t, dir, partPrefix+"00000-aa", strings.Repeat("{}\n", 5))
	put(t, dir, partPrefix+"00001-aa", strings.Repeat("{}\n", 3))
	put(t, dir, partPrefix+"00001-bb", "{}\n{")
	testkit.Same(t, "two shards", map[int]int{0: 5, 1: 3}, c.unfinished())
	put(t, dir, partPrefix+"00001-bb", "{}\n{}\n{}\n{}\n{")
	testkit.Same(t, "grown", map[int]int{0: 5, 1: 4}, c.unfinished())
	testkit.OK(t, os.Remove(filepath.Join(dir, state.ShardsDir, partPrefix+"00001-bb")))
	testkit.Same(t, "taken away", map[int]int{0: 5, 1: 3}, c.unfinished())
}

// TestSplitFails: where a list cannot be written, it is the one that is named, and there is no plan, without which no
// list counts.
func TestSplitFails(t *testing.T) {
	ws, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "ws"), workspace.Options{})
	testkit.OK(t, err)
	defer ws.Close()
	ctx := context.WithValue(t.Context(), durable.HookKey{}, func(step, name string) error {
		if step == "rename" && strings.HasSuffix(name, "work-00003.jsonl") {
			return errors.New("the disk is full")
		}
		return nil
	})
	_, err = Split(ctx, ws, Plan{Format: Format, Shards: 6}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "write shards/work-00003.jsonl: ") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(ws.Dir(), state.ShardsDir, planName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plan: %v", err)
	}
}

// TestLastWords: of what a failed shard printed the last two lines are told, or that it printed nothing.
func TestLastWords(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "it printed nothing"},
		{"empty lines", "\n \n", "it printed nothing"},
		{"a line", "no disk\n", "it printed, at the end of shards/log-00000.txt: no disk"},
		{"three lines", "a\nb\nc", "it printed, at the end of shards/log-00000.txt: b / c"},
	} {
		dir, _ := folder(t, 1)
		put(t, dir, logName(0), test.text)
		testkit.Same(t, test.name, test.want, lastWords(os.DirFS(dir), 0))
	}
	dir, _ := folder(t, 1)
	testkit.Same(t, "no file", "it printed nothing", lastWords(os.DirFS(dir), 0))
}

// TestFollowEnds: at the end all images count as done, also those that left their shards, and nothing waits.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, done := folder(t, 1)
		e := &controller{held: []string{"Priority", "Priority"}, look: func(n int) ([]int, error) {
			if n == 2 {
				done(0)
				put(t, dir, sidecarName(0), strings.Replace(sidecarOf(t, dir), `"read":2`, `"read":1`, 1))
			}
			return []int{0}, nil
		}}
		var told []string
		err := Follow(t.Context(), Following{Workspace: dir, Engine: e, Attempts: 3, Every: time.Second,
			Progress: func(done, items int, why string) { told = append(told, fmt.Sprint(done, "/", items, " ", why)) },
			Log:      slog.New(slog.DiscardHandler)})
		testkit.Same(t, "the progress", []string{"0/2 Priority", "2/2 "}, told, err)
	})
}

// TestFollowCounts: of a shard that is done its images count, those read before and those that failed among them, and
// of one that is being read its results so far.
func TestFollowCounts(t *testing.T) {
	dir, _ := folder(t, 2)
	put(t, dir, workName(0), "{}\n{}\n{}\n{}\n{}\n{}\n")
	plan, err := os.ReadFile(filepath.Join(dir, PlanFile))
	testkit.OK(t, err)
	done := Sidecar{Format: Format, Plan: state.SHA256(plan), Read: 1, Current: 2, Failed: 3}
	put(t, dir, sidecarName(0), lines(t, done))
	put(t, dir, partPrefix+"00001-aa", "{}\n")
	ctx, stop := context.WithCancel(t.Context())
	told := ""
	_ = Follow(ctx, Following{Workspace: dir, Attempts: 1, Every: time.Hour, Log: slog.New(slog.DiscardHandler),
		Engine:   &controller{look: func(int) ([]int, error) { return []int{1}, nil }},
		Progress: func(done, items int, _ string) { told = fmt.Sprint(done, "/", items); stop() }}) // stopped
	testkit.Same(t, "the progress", "7/8", told)
}

// TestFollowHalf: shards without their lists are not followed.
func TestFollowHalf(t *testing.T) {
	dir, _ := folder(t, 2)
	testkit.OK(t, os.Remove(filepath.Join(dir, state.ShardsDir, workName(1))))
	e := &controller{}
	for _, want := range []error{fs.ErrNotExist, ErrNoPlan} {
		if err := Follow(t.Context(), Following{Workspace: dir, Engine: e, Attempts: 1}); !errors.Is(err, want) ||
			e.asked > 0 {
			t.Errorf("%v, submitted %d times", err, e.asked)
		}
		testkit.OK(t, os.RemoveAll(filepath.Join(dir, state.ShardsDir)))
	}
}

// sidecarOf is the sidecar of the first shard.
func sidecarOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, state.ShardsDir, sidecarName(0)))
	testkit.OK(t, err)
	return string(text)
}
