package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/console"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/state"
)

// clusterFlags are those of a run whose images are read elsewhere.
type clusterFlags struct {
	until  string
	shards int
	merge  bool
	engine string
	sbatch string
	atOnce int
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.until, "until", "", "stop before the reading, with `fetched`, and split it into --shards")
	cmd.Flags().IntVar(&f.shards, "shards", 0, "how many shards the reading is split into")
	cmd.Flags().BoolVar(&f.merge, "merge", false, "take in what the shards read, ask Reddit again and write the dataset")
	cmd.Flags().StringVar(&f.engine, "cluster", "", "all three steps, the reading by an `engine`: slurm, or local for processes of this machine")
	cmd.Flags().StringVar(&f.sbatch, "sbatch", "", "further `arguments` of sbatch, separated by spaces: --partition=cpu --time=60")
	cmd.Flags().IntVar(&f.atOnce, "at-once", 0, "how many shards are read at one time (default: what Slurm lets; local: one for each processor)")
}

func (f *clusterFlags) check(recheck bool) error {
	switch {
	case f.until != "" && f.until != "fetched":
		return usageError("--until takes fetched, not %q", f.until)
	case f.engine != "" && f.engine != "slurm" && f.engine != "local":
		return usageError("--cluster takes slurm and local, not %q", f.engine)
	case f.engine != "" && (f.until != "" || f.merge), f.merge && (f.until != "" || f.shards != 0):
		return usageError("--cluster does what --until fetched --shards N and then --merge do: give one of the three")
	case (f.until != "" || f.engine != "") != (f.shards != 0):
		return usageError("--shards goes with --until fetched or --cluster")
	case f.shards < 0 || f.shards > cluster.MaxShards:
		return usageError("--shards takes 1 to %d, not %d", cluster.MaxShards, f.shards)
	case f.sbatch != "" && f.engine != "slurm":
		return usageError("--sbatch goes with --cluster slurm")
	case f.atOnce < 0 || f.atOnce > 0 && f.engine == "":
		return usageError("--at-once takes 1 or more, and goes with --cluster")
	case recheck && (f.merge || f.shards > 0):
		return usageError("--recheck fetches and reads nothing: leave out --until, --shards, --merge and --cluster")
	}
	return nil
}

// concludeSplit says what is left to do with the shards.
func (c *command) concludeSplit(s state.Summary, release string, f runFlags) error {
	if err := c.answer("split", struct {
		state.Summary
		Shards  int    `json:"shards"`
		Release string `json:"-"`
	}{s, f.shards, release}); err != nil {
		return err
	}
	s.Retry -= s.Outcomes[manifest.Pending] // they wait for the shards, not for another run
	return statusOf(s)
}

// onCluster fetches, has an engine read, and merges.
func (c *command) onCluster(ctx context.Context, path string, f runFlags) error {
	work, err := c.workOf(f)
	if err != nil {
		return err
	}
	if _, err := c.rehydrate(ctx, path, f, c.getenv); err != nil {
		return err
	}
	if err := c.follow(ctx, work, f.clusterFlags); err != nil {
		return err
	}
	f.clusterFlags = clusterFlags{merge: true}
	f.confirmRemovals, f.retry = false, nil // they were for what was there before the first step
	summary, err := c.rehydrate(ctx, path, f, c.getenv)
	if err != nil {
		return err
	}
	return c.conclude(summary)
}

// follow has the shards of the workspace read. Nothing holds the workspace meanwhile: runs can recheck it.
func (c *command) follow(ctx context.Context, work cluster.Command, f clusterFlags) error {
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	following := cluster.Following{Workspace: work.Workspace, Attempts: 3, Log: c.log, Progress: c.observeShards}
	if f.engine == "slurm" {
		following.Engine = &cluster.Slurm{Command: work, AtOnce: f.atOnce, Sbatch: strings.Fields(f.sbatch)}
		following.Every = 2 * time.Second
	} else {
		work.Args = append(work.Args, "--workers", "1")
		local := &cluster.Local{Command: work, AtOnce: cmp.Or(f.atOnce, runtime.NumCPU()), Grace: 10 * time.Second}
		defer local.Cancel(ctx) // also where a shard failed too often, and others are still read
		following.Engine = local
		following.Every = 100 * time.Millisecond
	}
	err := cluster.Follow(ctx, following)
	c.console.Done()
	if ctx.Err() != nil {
		return state.ErrInterrupted
	}
	return err
}

// workOf is the command that reads one shard of the workspace, on a machine that can have it read.
func (c *command) workOf(f runFlags) (cluster.Command, error) {
	if f.engine == "slurm" {
		if _, err := exec.LookPath("sbatch"); err != nil {
			return cluster.Command{}, fmt.Errorf("%w: run this on a login node of the cluster", err)
		}
	}
	dir, err := filepath.Abs(c.workspace)
	if err != nil {
		return cluster.Command{}, err
	}
	self, err := c.executable()
	if err != nil {
		return cluster.Command{}, err
	}
	program, err := c.findOCR(f.program)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	return cluster.Command{Workspace: dir, Args: []string{self, "work", "--quiet", "--workspace", dir, "--ocr", program,
		"--shard", cluster.IndexArg + "/" + strconv.Itoa(f.shards)}}, err
}

func (c *command) workCommand() *cobra.Command {
	var f ocrFlags
	var shard string
	cmd := newCommand("work", exactArgs(0, "no arguments"), func(cmd *cobra.Command, _ []string) error {
		index, of, ok := strings.Cut(shard, "/")
		i, err := strconv.Atoi(index)
		n, err2 := strconv.Atoi(of)
		if !ok || err != nil || err2 != nil || i < 0 || i >= n {
			return usageError("--shard takes I/N with I from 0 to N-1, not %q", shard)
		}
		if err := f.check(); err != nil {
			return err
		}
		return c.work(cmd.Context(), f, i, n)
	})
	cmd.Flags().StringVar(&shard, "shard", "", "which shard of how many: `I/N`, I from 0 to N-1")
	f.register(cmd)
	return cmd
}

func (c *command) work(ctx context.Context, f ocrFlags, shard, of int) error {
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	var config pipeline.Config
	var err error
	config.Language, err = dictionary()
	if err == nil {
		err = c.startOCR(ctx, f, &config)
	}
	if err != nil && ctx.Err() != nil {
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	defer config.OCR.Close()
	done, err := cluster.Work(ctx, cluster.Job{Workspace: c.workspace, Shard: shard, Shards: of, Tool: version(),
		OCR: config.OCR, Workers: f.workers, Progress: func(done, items int) { c.observeShards(done, items, "") }})
	c.console.Done()
	if ctx.Err() != nil {
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	return c.answer("work", struct {
		Shard   int `json:"shard"`
		Shards  int `json:"shards"`
		Read    int `json:"read"`
		Current int `json:"current"`
		Failed  int `json:"failed"`
	}{done.Shard, done.Shards, done.Read, done.Current, done.Failed})
}

// observeShards shows how far the reading of shards is, and why it stands.
func (c *command) observeShards(done, items int, why string) {
	if c.quiet {
		return
	}
	p := console.Progress{Task: "shards", Words: "read", Done: done, Total: items, Line: fmt.Sprintf("read: %d of %d images done", done, items)}
	if why != "" {
		p.Words = "waiting for Slurm: " + why
		p.Line += ", " + p.Words
	}
	c.console.Show(p)
}
