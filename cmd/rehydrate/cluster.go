package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/cmd/internal/console"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

func (c *command) clusterCommand() *cobra.Command {
	return newGroup("cluster", c.clusterRunCommand(), c.clusterSplitCommand(), c.clusterWorkCommand(),
		c.clusterMergeCommand())
}

// engineFlags say which engine reads the shards of `cluster run`.
type engineFlags struct {
	engine string
	sbatch string
	atOnce int
}

func (f *engineFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.engine, "engine", "slurm", "")
	cmd.Flags().StringVar(&f.sbatch, "sbatch", "", "")
	cmd.Flags().IntVar(&f.atOnce, "at-once", 0, "")
}

func (f *engineFlags) check() error {
	switch {
	case f.engine != "slurm" && f.engine != "local":
		return usageError("--engine takes slurm or local, not %q", f.engine)
	case f.sbatch != "" && f.engine != "slurm":
		return usageError("--sbatch is for --engine slurm; leave one of them out")
	case f.atOnce < 0:
		return usageError("--at-once takes 1 or more")
	}
	return nil
}

func registerShards(cmd *cobra.Command, shards *int) {
	cmd.Flags().IntVar(shards, "shards", 0, "")
}

func checkShards(path string, n int) error {
	if n < 1 || n > cluster.MaxShards {
		if n == 0 {
			return usageError("%s needs --shards N, from 1 to %d", path, cluster.MaxShards)
		}
		return usageError("--shards takes 1 to %d, not %d", cluster.MaxShards, n)
	}
	return nil
}

func (c *command) clusterRunCommand() *cobra.Command {
	var f runFlags
	var e engineFlags
	cmd := c.workspaceCommand("cluster-run", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		if err := checkShards(cmd.CommandPath(), f.shards); err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return err
		}
		return c.onCluster(cmd.Context(), args[0], f, e)
	})
	registerShards(cmd, &f.shards)
	e.register(cmd)
	registerProgram(cmd, &f.program)
	f.workers = 1 // here nothing is read
	f.registerFetch(cmd)
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

func (c *command) clusterSplitCommand() *cobra.Command {
	f := runFlags{ocrFlags: ocrFlags{workers: 1}}
	cmd := c.workspaceCommand("cluster-split", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		if err := checkShards(cmd.CommandPath(), f.shards); err != nil {
			return err
		}
		summary, err := c.rehydrate(cmd.Context(), args[0], f, c.getenv)
		if err != nil {
			return err
		}
		return c.concludeSplit(summary, f)
	})
	registerShards(cmd, &f.shards)
	f.registerFetch(cmd)
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

func (c *command) clusterMergeCommand() *cobra.Command {
	f := runFlags{merge: true, ocrFlags: ocrFlags{workers: 1}}
	cmd := c.workspaceCommand("cluster-merge", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		err := c.doRun(cmd.Context(), args[0], f)
		if errors.Is(err, cluster.ErrNoPlan) {
			return c.concludeMerged(cmd.Context(), args[0], err)
		}
		return err
	})
	f.filters.register(cmd)
	f.registerConfirm(cmd)
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

// concludeMerged is the end of a merge that found no shards: none is an error only where there was nothing to merge
// before.
func (c *command) concludeMerged(ctx context.Context, path string, none error) error {
	rel, err := c.openRelease(ctx, path)
	if err != nil {
		return err
	}
	merged, err := reading(ctx, c, func(ws *workspace.Workspace) (bool, error) {
		return cluster.Merged(ctx, ws, rel.Digest, rel.ManifestDigest)
	})
	if err != nil || !merged {
		return cmp.Or(err, none)
	}
	return c.answer("merged", mergedAnswer{rel.Name, 0})
}

// A mergedAnswer is what cluster merge prints where nothing is left to merge.
type mergedAnswer struct {
	Release string `json:"release"`
	Merged  int    `json:"merged"` // shards
}

// concludeSplit says what is left to do with the shards.
func (c *command) concludeSplit(s state.Summary, f runFlags) error {
	if err := c.answer("split", shardsAnswer{s, f.shards}); err != nil {
		return err
	}
	s.Retry -= s.Outcomes[manifest.Pending] // they wait for the shards, not for another run
	return statusOf(s)
}

// unmergedHint is what to do with shards that another split would lose.
func unmergedHint(w cluster.Waiting) string {
	hint := "nothing was changed: rehydrate cluster merge RELEASE takes them in\n"
	if w.Read < w.Shards {
		hint = fmt.Sprintf("nothing was changed: name --shards %d to read the others, and merge then\n", w.Shards)
	}
	return hint + "to read all of them again, delete the folder shards in the workspace"
}

// waitsForShards reports whether images wait for their shards, and not for another run.
func (c *command) waitsForShards(s state.Summary) bool {
	return s.Outcomes[manifest.Pending] > 0 && cluster.WaitingIn(c.workspace).Shards > 0
}

// toRetry are the entries that another run can change, without those that wait for their shards.
func (c *command) toRetry(s state.Summary) int {
	if c.waitsForShards(s) {
		return s.Retry - s.Outcomes[manifest.Pending]
	}
	return s.Retry
}

// shardsNext says what is left to do with images that wait for their shards, "" for nothing. A split says it itself.
func (c *command) shardsNext(s state.Summary) string {
	if !c.waitsForShards(s) || c.called != nil && c.called.Name() == "split" {
		return ""
	}
	images, w := times(s.Outcomes[manifest.Pending], "image", "images"), cluster.WaitingIn(c.workspace)
	shards := times(w.Shards, "shard", "shards")
	if w.Read == w.Shards {
		return fmt.Sprintf("To merge %s of %s that were read: %s", images, shards,
			c.toType("rehydrate cluster merge RELEASE"))
	}
	return fmt.Sprintf("To read %s in %s, of which %s read: rehydrate cluster work --shard I/%d%s for each, then %s",
		images, shards, times(w.Read, "was", "were"), w.Shards, c.named(), c.toType("rehydrate cluster merge RELEASE"))
}

// A shardsAnswer is what cluster split prints.
type shardsAnswer struct {
	state.Summary
	Shards int `json:"shards"`
}

// onCluster fetches, has an engine read, and merges.
func (c *command) onCluster(ctx context.Context, path string, f runFlags, e engineFlags) error {
	work, err := c.workOf(f, e)
	if err != nil {
		return err
	}
	if _, err := c.rehydrate(ctx, path, f, c.getenv); err != nil {
		return err
	}
	if err := c.follow(ctx, work, e); err != nil {
		return err
	}
	f.shards, f.merge = 0, true
	f.confirmRemovals, f.retry = false, nil // they were for what was there before the first step
	return c.doRun(ctx, path, f)
}

// follow has the shards of the workspace read. Nothing holds the workspace meanwhile: runs can recheck it.
func (c *command) follow(ctx context.Context, work cluster.Command, f engineFlags) error {
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	following := cluster.Following{Workspace: work.Workspace, Attempts: 3, Log: c.log, Progress: c.observeShards}
	if f.engine == "slurm" {
		following.Engine = &cluster.Slurm{Command: work, AtOnce: f.atOnce, Sbatch: strings.Fields(f.sbatch)}
		following.Every = 2 * time.Second
		following.Leave = c.hungUp // a lost login
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
func (c *command) workOf(f runFlags, e engineFlags) (cluster.Command, error) {
	if e.engine == "slurm" {
		if _, err := exec.LookPath("sbatch"); err != nil {
			return cluster.Command{},
				fmt.Errorf("there is no Slurm here (%w): call it on a login node, or use --engine local", err)
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
	return cluster.Command{Workspace: dir, Args: []string{self, "cluster", "work", "--quiet", "--workspace", dir,
		"--ocr", program,
		"--shard", cluster.IndexArg + "/" + strconv.Itoa(f.shards)}}, err
}

func (c *command) clusterWorkCommand() *cobra.Command {
	var f ocrFlags
	var shard string
	cmd := c.workspaceCommand("cluster-work", noArgs, func(cmd *cobra.Command, _ []string) error {
		if shard == "" {
			return usageError("%s needs --shard I/N: which shard of how many", cmd.CommandPath())
		}
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
	cmd.Flags().StringVar(&shard, "shard", "", "")
	f.register(cmd)
	return cmd
}

func (c *command) work(ctx context.Context, f ocrFlags, shard, of int) error {
	if err := areThere([]string{c.workspace}); err != nil {
		return err
	}
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	var config pipeline.Config
	var pool *ocr.Pool
	var err error
	config.Language, err = dictionary()
	if err == nil {
		pool, err = c.startOCR(ctx, f, &config)
	}
	if err != nil && ctx.Err() != nil {
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	defer pool.Close()
	done, err := cluster.Work(ctx, cluster.Job{Workspace: c.workspace, Shard: shard, Shards: of, Tool: build.Version(),
		OCR: pool, Workers: f.workers, Progress: func(done, items int) { c.observeShards(done, items, "") }})
	c.console.Done()
	if ctx.Err() != nil {
		return state.ErrInterrupted
	}
	if err != nil {
		return err
	}
	return c.answer("work", workAnswer{done.Shard, done.Shards, done.Read, done.Current, done.Failed})
}

// A workAnswer is what cluster work prints.
type workAnswer struct {
	Shard   int `json:"shard"`
	Shards  int `json:"shards"`
	Read    int `json:"read"`
	Current int `json:"current"`
	Failed  int `json:"failed"`
}

// observeShards shows how far the reading of shards is, and why it stands.
func (c *command) observeShards(done, items int, why string) {
	if c.quiet {
		return
	}
	p := console.Progress{Task: "shards", Words: "read", Done: done, Total: items,
		Line: fmt.Sprintf("read: %d of %d images done", done, items)}
	if why != "" {
		p.Words = "waiting for Slurm: " + why
		p.Line += ", " + p.Words
	}
	c.console.Show(p)
}
