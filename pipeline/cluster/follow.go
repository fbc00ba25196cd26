package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"rehydrate/pipeline/state"
)

// An Engine runs `rehydrate work` for indices of shards, each in a process of its own.
type Engine interface {
	// Submit has shards read. It returns when they wait in a queue.
	Submit(ctx context.Context, shards []int) error
	// Running returns the shards that wait or are being read, also those that an earlier process submitted, and why some wait until
	// somebody releases them.
	Running(ctx context.Context) (shards []int, held string, err error)
	// Cancel ends all of them.
	Cancel(ctx context.Context) error
}

// A Following is a workspace whose shards are being read.
type Following struct {
	Workspace string
	Engine    Engine
	Attempts  int           // how often a shard is submitted at most
	Every     time.Duration // between two looks
	Progress  func(done, items int)
	Log       *slog.Logger
}

// maxBlind is how many looks in a row may fail: a controller that restarts is away for a while.
const maxBlind = 60

// Follow submits what is not done until all shards are, and returns the error of the first that fails too often. When ctx
// ends it cancels what runs.
func Follow(ctx context.Context, f Following) (err error) {
	dir := os.DirFS(f.Workspace)
	plan, digest, err := readPlan(dir)
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), f.Engine.Cancel(context.WithoutCancel(ctx)))
		}
	}()
	counter := counter{dir: dir, parts: map[string]part{}}
	items := 0
	for i := range plan.Shards {
		n, err := counter.lines(workName(i))
		if err != nil {
			return err
		}
		items += n
	}
	attempts, blind, told := make([]int, plan.Shards), 0, ""
	for {
		// What runs before what is done: a shard that ends in between counts as done, and is not submitted again.
		running, held, err := f.Engine.Running(ctx)
		if held != told {
			f.Log.Warn("the cluster holds shards back until somebody releases them", "reason", held)
			told = held
		}
		if err != nil {
			blind++
			f.Log.Warn("the cluster does not say what runs", "error", err, "looks", blind)
			if blind >= maxBlind || ctx.Err() != nil {
				return fmt.Errorf("ask the cluster what runs: %w", err)
			}
		} else {
			blind = 0
		}
		var todo, again []int
		done := 0
		for i := range plan.Shards {
			side, read := readSidecar(dir, i)
			if read == nil && side.Plan == digest {
				done += side.Read + side.Current + side.Failed
				continue
			}
			todo = append(todo, i)
			if err == nil && !slices.Contains(running, i) {
				again = append(again, i)
			}
		}
		if len(todo) == 0 {
			f.Progress(items, items)
			return nil
		}
		f.Progress(min(done+counter.unfinished(todo), items), items)
		for _, i := range again {
			attempts[i]++
			if attempts[i] > f.Attempts {
				return fmt.Errorf("shard %d of %d failed %d times: %s", i, plan.Shards, f.Attempts, lastWords(dir, i))
			}
		}
		if len(again) > 0 {
			if err := f.Engine.Submit(ctx, again); err != nil {
				return fmt.Errorf("submit shards: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.Every):
		}
	}
}

// logName is what a shard printed last.
func logName(shard int) string { return fmt.Sprintf("log-%05d.txt", shard) }

// lastWords is the end of what a shard printed.
func lastWords(dir fs.FS, shard int) string {
	name := path.Join(state.ShardsDir, logName(shard))
	text, err := fs.ReadFile(dir, name)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || lines[0] == "" {
		return "it printed nothing"
	}
	return "it printed, at the end of " + name + ": " + state.PrintableLine(strings.Join(lines[max(0, len(lines)-2):], " / "))
}

// A counter counts lines of files that grow, each byte once.
type counter struct {
	dir   fs.FS
	parts map[string]part
}

type part struct {
	at    int64
	lines int
}

// unfinished counts the results of shards that are being read.
func (c *counter) unfinished(shards []int) (n int) {
	names, _ := fs.Glob(c.dir, path.Join(state.ShardsDir, partPrefix+"*")) // a bad pattern is its only error
	most := map[string]int{}
	for _, name := range names {
		lines, err := c.lines(path.Base(name))
		shard, _, _ := strings.Cut(strings.TrimPrefix(path.Base(name), partPrefix), "-")
		if err == nil { // of parts that a kill left and one that is being written, the longest counts
			most[shard] = max(most[shard], lines)
		}
	}
	for _, i := range shards {
		n += most[fmt.Sprintf("%05d", i)]
	}
	return n
}

func (c *counter) lines(name string) (int, error) {
	p := c.parts[name]
	f, err := c.dir.Open(path.Join(state.ShardsDir, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if s, ok := f.(io.Seeker); ok {
		_, err = s.Seek(p.at, io.SeekStart)
	}
	buf := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = f.Read(buf)
		p.at += int64(n)
		p.lines += bytes.Count(buf[:n], []byte{'\n'})
	}
	c.parts[name] = p
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p.lines, err
}
