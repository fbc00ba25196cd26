package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/cluster"
	"rehydrate/pipeline/dataset/pictures"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// runFlags are the flags of the jobs that ask Reddit about a release and write its dataset: run, recheck, cluster and
// demo.
type runFlags struct {
	releaseFlags
	redditFlags
	ocrFlags
	filters         filterFlag
	confirmRemovals bool
	retry           []string
	dryRun          bool

	shards int  // split the reading into so many shards, and read nothing; 0: do not split
	merge  bool // take in what the shards read

	rehearsed *rehearsal // what demo makes of its --release; nil elsewhere
}

const aRelease = "one RELEASE: a release folder or an annotations file"

func (c *command) runCommand() *cobra.Command {
	var f runFlags
	cmd := c.workspaceCommand("run", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		if f.dryRun {
			return c.planRun(cmd.Context(), args[0], f, refused(pipeline.CheckRun, c.planReading(f.ocrFlags)),
				c.toRun(&f.releaseFlags))
		}
		return c.doRun(cmd.Context(), args[0], f)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&c.listName, "name", "", "")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "")
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	f.ocrFlags.register(cmd)
	f.registerFetch(cmd)
}

// registerFetch registers the flags of jobs that fetch, whoever reads.
func (f *runFlags) registerFetch(cmd *cobra.Command) {
	f.filters.register(cmd)
	f.registerConfirm(cmd)
	cmd.Flags().StringSliceVar(&f.retry, "retry", nil, "")
}

func (f *runFlags) registerConfirm(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.confirmRemovals, "confirm-removals", false, "")
}

// repeated are the flags of this command that another one about the same workspace needs as well, each after a space.
func (f *runFlags) repeated() string { return repeated("--grant", f.grant) + f.redditFlags.repeated() }

// reads reports whether the job reads images itself.
func (f *runFlags) reads() bool { return !f.merge && f.shards == 0 }

// job does the job of the command.
func (f *runFlags) job(ctx context.Context, config pipeline.Config) (state.Summary, error) {
	switch {
	case f.merge:
		return pipeline.Merge(ctx, config)
	case f.shards > 0:
		return pipeline.Split(ctx, config, f.shards)
	}
	return pipeline.Run(ctx, config)
}

// doRun does the job and prints its summary.
func (c *command) doRun(ctx context.Context, path string, f runFlags) error {
	summary, err := c.rehydrate(ctx, path, f, c.getenv)
	if err != nil {
		return err
	}
	return c.conclude(summary, c.nextRecheck(path, &f), isServed(f.cacert))
}

// rehydrate is the job that run, cluster and demo share.
func (c *command) rehydrate(ctx context.Context, path string, f runFlags,
	getenv func(string) string) (summary state.Summary, err error) {
	// Everything up to inWorkspace only checks: a fault leaves no workspace behind and sends no request.
	config, err := c.prepare(ctx, path, &f.releaseFlags, f.filters)
	if err == nil {
		err = f.ocrFlags.check()
	}
	if err != nil {
		return summary, err
	}
	if f.rehearsed != nil {
		f.rehearsed.change(&config)
	}
	c.sayList(config, &f.releaseFlags)
	if w := cluster.WaitingIn(c.workspace); f.reads() && w.Read > 0 {
		c.log.Warn("a run reads again what shards have read; this takes it in: "+
			c.toType("rehydrate cluster merge RELEASE"), "read", w.Read, "shards", w.Shards)
	}
	grant, err := c.setUp(ctx, path, config, &f, getenv)
	if err != nil {
		return summary, err
	}
	config.Reddit, err = f.client(c, f.approval, config.Policy, getenv, config.Progress)
	if err != nil {
		return summary, err
	}
	if f.reads() {
		pool, err := c.startOCR(ctx, f.ocrFlags, &config)
		if err != nil {
			return summary, err
		}
		defer pool.Close()
	}
	config.ConfirmRemovals, config.Retry, config.Access = f.confirmRemovals, f.retry, grant.access()
	// Only this job makes a workspace.
	err = c.openWorkspace(ctx, workspace.Options{Existing: f.merge}, grant, func(ws *workspace.Workspace) error {
		if err := keepApproval(ctx, ws, config, &f.releaseFlags, grant); err != nil {
			return err
		}
		if err := c.beginAnew(ctx, ws, config); err != nil {
			return err
		}
		config.Workspace = ws
		if err := c.warnOfTime(ctx, config, pipeline.PlanRun); err != nil {
			return err
		}
		summary, err = f.job(ctx, config)
		c.console.Done()
		return err
	})
	return summary, err
}

// keepApproval keeps the approval by which a run asks Reddit, for removals in a time when there is no other.
func keepApproval(ctx context.Context, ws *workspace.Workspace, config pipeline.Config, f *releaseFlags,
	grant *permit) error {
	ours, err := belongs(ctx, ws, config.Release.Name)
	if err != nil || !ours || config.Rehearsal { // the run refuses the workspace of another release
		return err
	}
	kept := state.ApprovalNote{Reference: f.approval}
	if grant != nil {
		kept.Ends = grant.grant.Approval.Expires
	}
	return state.WriteNote(ctx, ws, kept)
}

// beginAnew has a run on a workspace that was ended make it one that holds something again, and says so. The tombstones
// hold.
func (c *command) beginAnew(ctx context.Context, ws *workspace.Workspace, config pipeline.Config) error {
	name := config.Release.Name
	if config.Rehearsal {
		name = state.RehearsalOf(name)
	}
	ours, err := belongs(ctx, ws, name)
	if err != nil || !ours {
		return err
	}
	ended, err := readEnded(ctx, ws)
	if err != nil || ended == nil {
		return err
	}
	c.log.Warn("this workspace was ended by rehydrate purge --all; the run begins it anew", "ended",
		ended.At.Format(time.DateOnly))
	c.ended = false
	return state.ClearNote[state.EndedNote](ctx, ws)
}

// prepare reads what a job on a release begins with: the release, whole, and the policy with the flags on top.
func (c *command) prepare(ctx context.Context, path string, f *releaseFlags, filters filterFlag) (pipeline.Config,
	error) {
	opened, err := c.openRelease(ctx, path)
	if err != nil {
		return pipeline.Config{}, err
	}
	return c.configure(ctx, opened, f, filters)
}

// configure is prepare for a release that is open.
func (c *command) configure(
	ctx context.Context, opened checkedRelease, f *releaseFlags, filters filterFlag,
) (pipeline.Config, error) {
	config := pipeline.Config{Version: build.Version(), Now: c.now, Stop: c.stop, LastAct: c.lastAct, Log: c.log,
		Rehearsal: f.rehearsal, Progress: pipeline.NewProgress(c.observe)}
	var altered error
	config.Release, config.Manifest, config.Tombstones = opened.Release, opened.summary, opened.tombstones
	if f.policy == "" && opened.Dir == "" {
		f.policy, altered = c.keptPolicy(ctx, opened.Release)
	}
	var err error
	config.Policy, config.PolicyText, err = f.readPolicy(opened.Release)
	if altered != nil {
		err = errors.Join(altered, err)
	}
	if err == nil {
		err = filters.apply(&config.Policy)
	}
	if err != nil {
		return config, err
	}
	if c.adjust != nil {
		c.adjust(&config.Policy)
	}
	config.Language, err = dictionary()
	return config, err
}

// dictionary is the filter for English, which is read once: that takes longer than most commands do.
var dictionary = sync.OnceValues(language.New)

// resume is prepare for a job on a workspace that is there.
func (c *command) resume(ctx context.Context, path string, f *releaseFlags, filters filterFlag) (pipeline.Config,
	error) {
	config, err := c.prepare(ctx, path, f, filters)
	if err != nil {
		return config, err
	}
	f.rehearsal, err = c.isRehearsal(ctx, config.Release)
	config.Rehearsal = f.rehearsal
	return config, err
}

// inWorkspace does a command's work in the workspace that is there.
func (c *command) inWorkspace(ctx context.Context, grant *permit, do func(*workspace.Workspace) error) error {
	return c.openWorkspace(ctx, workspace.Options{Existing: true}, grant, do)
}

// openWorkspace does a command's work in the workspace, which it opens and closes.
func (c *command) openWorkspace(
	ctx context.Context, o workspace.Options, grant *permit, do func(*workspace.Workspace) error,
) (err error) {
	o.Now = c.now
	ws, err := workspace.Open(ctx, c.workspace, o)
	if err != nil {
		return err
	}
	defer func() {
		// Closing finishes erasures, so its failure replaces an exit status.
		if failed := ws.Close(); failed != nil {
			var status exitCode
			if errors.As(err, &status) {
				err = nil
			}
			err = errors.Join(err, fmt.Errorf("close the workspace: %w", failed))
		}
	}()
	c.noteKind(ctx, ws)
	// The serial of the grant's list is stored before any work: a crash then still refuses an older list.
	if err := grant.remember(ctx, ws, c.now()); err != nil {
		return err
	}
	return do(ws)
}

// reading answers a question about a command's workspace, which it opens for reading alone.
func reading[T any](ctx context.Context, c *command, ask func(*workspace.Workspace) (T, error)) (T, error) {
	ws, err := workspace.Open(ctx, c.workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		var none T
		return none, err
	}
	defer ws.Close()
	c.noteKind(ctx, ws)
	return ask(ws)
}

// A checkedRelease is a release that was read whole and holds no error.
type checkedRelease struct {
	*manifest.Release
	summary    manifest.Summary
	tombstones []manifest.Tombstone
}

// openRelease opens a release to act or judge by it, and reads all of it.
func (c *command) openRelease(ctx context.Context, path string) (checkedRelease, error) {
	release, err := c.openManifest(ctx, path)
	if err != nil {
		return checkedRelease{}, err
	}
	return readWhole(ctx, release)
}

// openDraft opens a release for its maintainers, and reads all of it. They work on copies of what they published, so
// that its files may be others than SHA256SUMS has.
func (c *command) openDraft(ctx context.Context, path string) (checkedRelease, error) {
	release, err := c.open(ctx, path, false)
	if err != nil {
		return checkedRelease{}, err
	}
	return readWhole(ctx, release)
}

func readWhole(ctx context.Context, release *manifest.Release) (checkedRelease, error) {
	opened := checkedRelease{Release: release}
	var err error
	// The whole manifest is read now: its errors must be known before a request or a write.
	opened.summary, err = opened.Check(ctx)
	if err != nil {
		return opened, asUsage(err)
	}
	return opened, opened.readTombstones()
}

func (c *checkedRelease) readTombstones() (err error) {
	if c.TombstonesPath != "" {
		c.tombstones, err = readTombstones(c.TombstonesPath, manifest.ReadTombstones)
	}
	return err
}

// openManifest opens a release to act or judge by it. One that was published has to be as it was published.
func (c *command) openManifest(ctx context.Context, path string) (*manifest.Release, error) {
	return c.open(ctx, path, true)
}

// open opens a release, and says what it is where it is none. asPublished is that of manifest.Options.
func (c *command) open(ctx context.Context, path string, asPublished bool) (*manifest.Release, error) {
	if err := userfile.Exists(path); err != nil {
		return nil, asUsage(err)
	}
	within := pictures.WorkspaceOf(path)
	if within != "" && !isReleaseFolder(path) && filepath.Base(path) != manifest.ListName {
		return nil, &problem{err: fmt.Errorf("%s is a workspace, not a release", path), code: exitUsage,
			hint: "name the release, and the workspace with -w: " + c.onRelease(path, within)}
	}
	rel, err := c.openEither(ctx, path, asPublished)
	if err == nil {
		c.release = path
		return rel, nil
	}
	if b, failed := userfile.Read(path); failed == nil {
		if _, failed := policy.ParseGrant(b, path); failed == nil {
			return nil, &problem{err: fmt.Errorf("%s is a grant, not a release", path), code: exitUsage,
				hint: fmt.Sprintf("%s RELEASE --grant %s", thisCommand, path)}
		}
	}
	return nil, asUsage(err)
}

// readTombstones reads a file of tombstones as a release publishes them, or as a workspace has them.
func readTombstones[T any](name string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, _, err := userfile.Open(name)
	if err != nil {
		return nil, usageError("read tombstones: %w", err)
	}
	defer f.Close()
	stones, err := read(f)
	if err != nil {
		return nil, asUsage(fmt.Errorf("%s: %w", name, err))
	}
	return stones, nil
}

// asUsage makes an error about the user's files one of usage.
func asUsage(err error) error { return userfile.Faulty(err) }

func readPolicy(path string) (policy.Policy, error) {
	if path == "" { // a bare annotations file, and no --policy
		return policy.Default(), nil
	}
	b, err := userfile.Read(path)
	if err != nil {
		return policy.Policy{}, usageError("read the policy: %w", err)
	}
	pol, err := policy.Parse(b, path)
	if err != nil {
		return policy.Policy{}, asUsage(err)
	}
	return pol, nil
}

// startOCR finds the ocr program and starts its workers. The caller closes the pool.
func (c *command) startOCR(ctx context.Context, f ocrFlags, config *pipeline.Config) (*ocr.Pool, error) {
	program, err := c.findOCR(f.program)
	if err != nil {
		return nil, err
	}
	config.Workers = f.workers
	// The dictionary decides which uncertain words are accepted, and its digest tells readings apart.
	pool, err := ocr.Start(ctx, ocr.Config{Command: []string{program, "worker"}, Workers: f.workers,
		TessdataDir: c.getenv("TESSDATA_PREFIX"),
		Dictionary:  config.Language.Knows, DictionaryID: language.DictionaryDigest, Log: c.log})
	if err != nil {
		return nil, err
	}
	config.OCR = pool
	return pool, nil
}

// isRehearsal reports whether the posts of the workspace are made up. A rehearsal needs neither approval nor grant.
func (c *command) isRehearsal(ctx context.Context, rel *manifest.Release) (bool, error) {
	return reading(ctx, c, func(ws *workspace.Workspace) (bool, error) {
		b, bound, err := ws.Binding(ctx)
		rehearsal := b.Release == state.RehearsalOf(rel.Name)
		switch {
		case err != nil:
		case !bound: // made and never run
			err = workspace.ErrNoWorkspace
		case b.Release != rel.Name && !rehearsal:
			err = &workspace.OtherRelease{Have: b.Release, Want: rel.Name}
		}
		return rehearsal, err
	})
}
