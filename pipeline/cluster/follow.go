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
	"strconv"
	"strings"
	"time"

	"rehydrate/internal/printable"
	"rehydrate/pipeline/state"
)

// An Engine runs `rehydrate cluster work` for indices of shards, each in a process of its own.
type Engine interface {
	// Submit has shards read. It returns when they wait in a queue.
	Submit(ctx context.Context, shards []int) error
	// Running returns the shards that wait or are being read, also those that an earlier process submitted, and why
	// they wait, where none is being read or some wait until somebody releases them.
	Running(ctx context.Context) (shards []int, why string, err error)
	// Cancel ends all of them.
	Cancel(ctx context.Context) error
}

// A Following is a workspace whose shards are being read.
type Following struct {
	Workspace string
	Engine    Engine
	Attempts  int                               // how often a shard is submitted at most
	Every     time.Duration                     // between two looks
	Progress  func(done, items int, why string) // images read, of how many, and why none is being read
	Log       *slog.Logger
	// Leave reports, when ctx has ended, that what waits or runs is to go on, for a later Follow; nil for never.
	Leave func() bool
}

const (
	// maxBlind is how many looks in a row may fail: a controller that restarts is away for a while.
	maxBlind = 60
	// maxRefused is how many shards in a row the engine may refuse while it says what runs: it is busy, or will never
	// take them.
	maxRefused = 5
)

// Follow submits what is not done until all shards are, and returns the error of the first that fails too often. When
// all are done, or ctx ends, it cancels what still waits or runs, unless f.Leave says otherwise.
func Follow(ctx context.Context, f Following) error {
	w := follower{Following: f, dir: os.DirFS(f.Workspace),
		counter: counter{dir: os.DirFS(f.Workspace), parts: map[string]part{}}}
	var err error
	w.plan, w.digest, err = readPlan(w.dir)
	if err != nil {
		return err
	}
	w.attempts = make([]int, w.plan.Shards)
	for i := range w.plan.Shards {
		n, err := w.counter.lines(workName(i))
		if err != nil {
			return err
		}
		w.items += n
	}
	for left := 1; left > 0 && err == nil; {
		left, err = w.look(ctx)
		if left > 0 && err == nil {
			select {
			case <-ctx.Done():
			case <-time.After(f.Every):
			}
			err = ctx.Err()
		}
	}
	// Also when all are done: a second copy of a shard may still wait, and has nothing to read after the merge.
	left := err != nil && f.Leave != nil && f.Leave()
	if err == nil || ctx.Err() != nil && !left {
		if err := f.Engine.Cancel(context.WithoutCancel(ctx)); err != nil {
			f.Log.Warn("what still runs could not be cancelled", "error", err)
		}
	}
	return err
}

// A follower is what Follow knows from one look to the next.
type follower struct {
	Following
	dir            fs.FS
	plan           Plan
	digest         string
	items          int // of all shards
	counter        counter
	attempts       []int // of each shard
	blind, refused int   // looks and submissions in a row that failed
	why            string
}

// look submits what is neither done nor running. It returns how many shards are left.
func (w *follower) look(ctx context.Context) (left int, err error) {
	// What runs before what is done: a shard that ends in between counts as done, and is not submitted again.
	running, known, err := w.running(ctx)
	if err != nil {
		return 0, err
	}
	_, digest, err := readPlan(w.dir)
	if err != nil && !errors.Is(err, ErrNoPlan) {
		return 0, err
	}
	if digest != w.digest {
		return 0, fmt.Errorf("%w while it was read: another run took these shards in, or split them again", ErrOtherPlan)
	}
	// Before the sidecars: it lists the folder, and only so does a network file system show what was just made.
	parts := w.counter.unfinished()
	var again []int
	done := 0
	for i := range w.plan.Shards {
		side, err := readSidecar(w.dir, i)
		if err == nil && side.Plan == w.digest {
			done += side.Read + side.Current + side.Failed
			continue
		}
		left++
		done += parts[i]
		if known && !slices.Contains(running, i) {
			again = append(again, i)
		}
	}
	if left == 0 {
		done, w.why = w.items, ""
	}
	w.Progress(min(done, w.items), w.items, w.why)
	if len(again) == 0 {
		return left, nil
	}
	return left, w.submit(ctx, again)
}

// running asks the engine. known is false where it did not answer.
func (w *follower) running(ctx context.Context) (shards []int, known bool, err error) {
	shards, why, err := w.Engine.Running(ctx)
	if err != nil {
		w.blind++
		switch {
		case w.blind >= maxBlind || ctx.Err() != nil:
			return nil, false, fmt.Errorf("ask the cluster what runs: %w", err)
		case w.blind == 1:
			w.Log.Warn("the cluster does not say what runs: it is asked again", "error", err)
		}
		w.why = "no answer"
		return nil, false, nil
	}
	if isHeld(why) && why != w.why {
		w.Log.Warn("the cluster holds shards back until somebody releases them", "reason", why)
	}
	w.blind, w.why = 0, why
	return shards, true, nil
}

func (w *follower) submit(ctx context.Context, shards []int) error {
	for _, i := range shards {
		if w.attempts[i] == w.Attempts {
			return fmt.Errorf("shard %d of %d failed %d times: %s", i, w.plan.Shards, w.Attempts, lastWords(w.dir, i))
		}
	}
	if err := w.Engine.Submit(ctx, shards); err != nil {
		w.refused++
		switch {
		case w.refused == maxRefused || ctx.Err() != nil:
			return fmt.Errorf("submit shards: %w", err)
		case w.refused == 1:
			w.Log.Warn("the cluster did not take the shards: it is asked again", "error", err)
		}
		return nil
	}
	w.refused = 0
	for _, i := range shards {
		w.attempts[i]++
	}
	return nil
}

// logName is what a shard printed last.
func logName(shard int) string { return fmt.Sprintf("%s%05d.txt", logPrefix, shard) }

// lastWords is the end of what a shard printed.
func lastWords(dir fs.FS, shard int) string {
	name := path.Join(state.ShardsDir, logName(shard))
	text, err := fs.ReadFile(dir, name)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || lines[0] == "" {
		return "it printed nothing"
	}
	return "it printed, at the end of " + name + ": " + printable.Line(strings.Join(lines[max(0, len(lines)-2):],
		" / "))
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
func (c *counter) unfinished() map[int]int {
	names, _ := fs.Glob(c.dir, path.Join(state.ShardsDir, partPrefix+"*")) // a bad pattern is its only error
	most := map[int]int{}
	for _, name := range names {
		lines, err := c.lines(path.Base(name))
		index, _, _ := strings.Cut(strings.TrimPrefix(path.Base(name), partPrefix), "-")
		shard, err2 := strconv.Atoi(index)
		if err == nil && err2 == nil { // of parts that a kill left and one that is being written, the longest counts
			most[shard] = max(most[shard], lines)
		}
	}
	return most
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
