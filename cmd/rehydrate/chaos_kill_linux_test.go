package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
)

// points chooses where to kill what makes calls: in the full mode at every rename, fsync and unlink and a quarter of the
// pwrites, else at a sample of each kind.
func points(calls []string, sample int, random *rand.Rand) []point {
	count := map[string]int{}
	for _, kind := range calls {
		count[kind]++
	}
	var chosen []point
	for _, c := range diskCalls {
		list := random.Perm(count[c.name])
		switch {
		case !full():
			list = list[:min(sample, len(list))]
		case c.name == "pwrite":
			list = list[:len(list)/4]
		}
		for _, i := range list {
			chosen = append(chosen, point{c.name, i + 1})
		}
	}
	return chosen
}

// strikes counts the faults that happened, by kind.
type strikes struct {
	mu    sync.Mutex
	kinds map[string]int
}

func (y *strikes) add(kind string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.kinds == nil {
		y.kinds = map[string]int{}
	}
	y.kinds[kind]++
}

func (y *strikes) sum() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for _, k := range y.kinds {
		n += k
	}
	return n
}

// check asserts that nearly all of the faults happened: goroutines do not end in the same order each time, so a
// run can have some calls less than the one that was counted.
func (y *strikes) check(t *testing.T, points int) {
	t.Helper()
	t.Logf("%d of %d points were hit: %v", y.sum(), points, y.kinds)
	if y.sum() < points*95/100 || y.sum() == 0 {
		t.Errorf("only %d of %d points were hit", y.sum(), points)
	}
}

// counted runs a command line to its end and returns the calls that it made.
func (c *chaosSite) counted(t *testing.T, args []string) []string {
	t.Helper()
	cmd, stderr := c.told(t, args)
	whole, err := traceKill(cmd, point{})
	if err != nil || !whole.status.Exited() || whole.status.ExitStatus() != exitDone {
		t.Fatalf("traced, and not killed: %v, %v\n%s", whole.status, err, read(t, stderr))
	}
	return whole.calls
}

// told is a command line in a process of its own with a file for what it says: nobody waits for it who could copy that.
func (c *chaosSite) told(t *testing.T, args []string) (cmd *exec.Cmd, stderr string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd = c.command(t.Context(), args...)
	cmd.Stderr = f
	return cmd, f.Name()
}

// killedAt runs a command line and kills it at a point. False means that it ended before.
func (c *chaosSite) killedAt(t *testing.T, at point, args []string, hit *strikes) bool {
	t.Helper()
	cmd, stderr := c.told(t, args)
	end, err := traceKill(cmd, at)
	switch {
	case err != nil:
		t.Fatal(err)
	case end.killed():
		hit.add(at.kind)
		return true
	case !end.status.Exited() || end.status.ExitStatus() != exitDone:
		t.Errorf("after %d calls it ended with %v, and was to be killed at %v\n%s", len(end.calls), end.status, at, read(t, stderr))
	}
	return false
}

// TestChaosRunKilled kills a run with SIGKILL before each rename, fsync and unlink that it makes, and before
// writes of the database. The next run completes each to the same bytes, with nothing to mend and nothing left over.
func TestChaosRunKilled(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "ptrace", canTrace())
	random, _ := chance(t)
	c := newChaosSite(t)
	first := c.at(t, c.place(t))
	calls := first.counted(t, first.runArgs())
	first.settled(t, c.want)
	chosen := points(calls, 4, random)
	if least := 300; full() && len(chosen) < least {
		t.Errorf("only %d points, want %d", len(chosen), least)
	}
	var hit strikes
	t.Run("at", func(t *testing.T) {
		for _, at := range chosen {
			t.Run(at.String(), func(t *testing.T) {
				t.Parallel()
				c := c.at(t, c.place(t))
				if c.killedAt(t, at, c.runArgs(), &hit) {
					c.unsettled(t)
				}
				c.finish(t)
				c.settled(t, c.want)
			})
		}
	})
	hit.check(t, len(chosen))
}

// TestChaosRunKilledAtRandom kills runs at random moments, several in a row in one workspace.
func TestChaosRunKilledAtRandom(t *testing.T) {
	long(t)
	t.Parallel()
	random, _ := chance(t)
	c := newChaosSite(t)
	first := c.at(t, c.place(t))
	began := time.Now()
	if out, err := first.command(t.Context(), first.runArgs()...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	chains, each := 2, 5
	if full() {
		chains = 40
	}
	var hit strikes
	t.Run("chain", func(t *testing.T) {
		for i := range chains {
			random := rand.New(rand.NewPCG(random.Uint64(), 0))
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				c := c.at(t, c.place(t))
				for kills := 0; kills < each; {
					if !c.killedAfter(t, time.Duration(random.Int64N(int64(took)))) {
						continue // it had ended by then, and there is another run
					}
					kills++
					hit.add("moment")
					if kills%2 == 0 {
						c.unsettled(t)
					}
				}
				c.finish(t)
				c.settled(t, c.want)
			})
		}
	})
	hit.check(t, chains*each)
}

// killedAfter starts a run and kills it after d; false means that it had ended by then.
func (c *chaosSite) killedAfter(t *testing.T, d time.Duration) bool {
	t.Helper()
	cmd := c.command(t.Context(), c.runArgs()...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && !status.Signaled() {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return status.Signaled() && status.Signal() == syscall.SIGKILL
}

// A purgeScene is a workspace with a registered copy, from which posts are to be purged.
type purgeScene struct {
	*chaosSite
	template string // the workspace before it
	args     func(c *chaosSite) []string
	before   map[string]string // its Parquet files, by their base name
	want     map[string]string // the workspace after it
}

func newPurgeScene(t *testing.T, args func(c *chaosSite) []string) *purgeScene {
	t.Helper()
	p := &purgeScene{chaosSite: newChaosSite(t), args: args, before: map[string]string{}}
	p.do(nil, "report", "-w", p.workspace).want(t, exitDone)
	p.template = p.workspace
	for name, text := range onlyParquet(tree(t, p.workspace)) {
		p.before[path.Base(name)] = text
	}
	return p
}

// copied is where the registered copy of a workspace is.
func (c *chaosSite) copied() string { return filepath.Join(filepath.Dir(c.workspace), "copy") }

// fresh is the scene in a workspace of its own, before the purge.
func (p *purgeScene) fresh(t *testing.T) *purgeScene {
	t.Helper()
	other := *p
	other.chaosSite = p.at(t, p.place(t))
	copyFolder(t, p.template, other.workspace)
	other.copyTo(other.copied()).want(t, exitDone)
	return &other
}

// between asserts what must hold at any moment of a purge: no file that was written since has the row of a post that
// goes, and what the workspace knows to be gone is not handed out, nor passed over by an audit.
func (p *purgeScene) between(t *testing.T, export bool) {
	t.Helper()
	left := false
	for _, dir := range []string{p.workspace, p.copied()} {
		for name, text := range onlyParquet(tree(t, dir)) {
			ids := bytesIDs(t, text)
			has := slices.ContainsFunc(strings.Split(purgedIDs, ","), func(id string) bool { return ids[id] })
			if left = left || has; has && text != p.before[path.Base(name)] {
				t.Errorf("%s in %s was written with the row of a post that goes", name, dir)
			}
		}
	}
	known := p.known(t)
	if len(known) == 0 {
		return
	}
	f := p.do(nil, "audit", p.release, "-w", p.workspace, "--offline", "--no-record")
	if left && f.code != exitFound {
		t.Errorf("rows of %v are left, and audit = exit %d\n%s", known, f.code, shorten(f.stdout))
	}
	if !export {
		return
	}
	other := p.at(t, p.place(t)) // what opens it for writing must not help the purge
	copyFolder(t, p.workspace, other.workspace)
	to := filepath.Join(filepath.Dir(other.workspace), "handed-out")
	f = other.copyTo(to)
	for id := range rowsOf(t, filepath.Join(to, "data")) {
		if slices.Contains(known, id) {
			t.Errorf("export handed out %s (exit %d)", id, f.code)
		}
	}
}

// known are the purged posts of which the workspace knows that they are gone.
func (p *purgeScene) known(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(strings.Split(purgedIDs, ","), func(id string) bool { return !knows(p.site, id) })
}

func bytesIDs(t *testing.T, parquet string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for id := range strings.FieldsSeq(string(parquetValues(t, []byte(parquet)))) {
		ids[id] = true
	}
	return ids
}

// purged asserts that nothing of the purged posts is left, in the workspace and in its copy.
func (p *purgeScene) purged(t *testing.T) {
	t.Helper()
	p.settled(t, p.want)
	for _, dir := range []string{p.workspace, p.copied()} {
		s := p.on(t, dir)
		for _, word := range purgedWords {
			s.grep(word, "a word of a purged post")
		}
	}
	for _, dir := range []string{filepath.Join(p.workspace, "dataset", "data"), filepath.Join(p.copied(), "data")} {
		ids := rowsOf(t, dir)
		for id := range strings.SplitSeq(purgedIDs, ",") {
			if ids[id] || !ids["chaos00"] {
				t.Errorf("rows in %s: %v", dir, ids)
			}
		}
	}
	for _, c := range p.copies(exitDone) {
		if c.State != state.CopyGood || len(c.Owed) > 0 {
			t.Errorf("the copy: %+v", c)
		}
	}
}

// TestChaosPurgeKilled kills a purge with SIGKILL before each rename, fsync and unlink that it makes, and before
// writes of the database. No state in between exports a removed row, and the next purge completes each.
func TestChaosPurgeKilled(t *testing.T) {
	long(t)
	t.Parallel()
	orSkip(t, "ptrace", canTrace())
	for _, way := range []struct {
		name  string
		share int // one of so many points
		args  func(c *chaosSite) []string
	}{
		{"by request", 1, (*chaosSite).purgeArgs},
		{"by asking", 4, func(c *chaosSite) []string {
			return []string{"purge", c.release, "-w", c.workspace, "--approval", "TEST-1", "--connect-to", c.emulator.ConnectTo(), "--cacert", c.cacert}
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			random, _ := chance(t)
			p := newPurgeScene(t, way.args)
			if way.share > 1 {
				for id := range strings.SplitSeq(purgedIDs, ",") {
					p.becomes(redditemu.Deleted, redditemu.Post{ID: manifest.PostID(id)})
				}
			}
			first := p.fresh(t)
			calls := first.counted(t, first.args(first.chaosSite))
			p.want = first.made(t)
			first.want = p.want
			first.purged(t)
			chosen := points(calls, 3, random)
			random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			chosen = chosen[:len(chosen)/way.share]
			var hit strikes
			t.Run("at", func(t *testing.T) {
				for i, at := range chosen {
					t.Run(at.String(), func(t *testing.T) {
						t.Parallel()
						p := p.fresh(t)
						if p.killedAt(t, at, p.args(p.chaosSite), &hit) {
							p.unsettled(t)
							p.between(t, i%4 == 0)
						}
						p.do(p.env(), p.args(p.chaosSite)...).want(t, exitDone)
						p.purged(t)
					})
				}
			})
			hit.check(t, len(chosen))
		})
	}
}
