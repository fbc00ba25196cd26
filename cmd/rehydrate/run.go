package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

const approvalHint = "Reddit wants approval before any use of its API, research included: " +
	"apply to Reddit for Researchers, then name the approval with --approval REF"

// runFlags are the flags of `run`, and of `demo`, which runs the same job.
type runFlags struct {
	approval        string
	grant           string
	connectTo       []string
	cacert          string
	ocr             string
	workers         int
	filters         string
	policy          string
	confirmRemovals bool
	retry           []string
	rehearsal       bool // the posts are the emulator's
}

func (c *command) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run RELEASE",
		Short: "Do the whole job: ask Reddit, fetch, read, filter, write the dataset",
		Long: `Run the whole job on a release: a folder with a release.toml, or a bare
annotations file that uses FigSIM's schema.

It asks Reddit about every post (100 a request), downloads the images of live posts
from the hosts that the policy allows, reads their text, and writes outcomes.csv
(one row an entry) and the dataset folder into the workspace. Start it again to go
on after an interruption, to retry what failed, or to bring a finished dataset up to
date: posts that were removed since are erased and leave the dataset.

Contacts www.reddit.com, oauth.reddit.com and the policy's image hosts, nothing else.
Credentials come from REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME, or
from files named by REDDIT_CLIENT_ID_FILE and so on. Writes only into the workspace.

A release whose policy asks for a grant needs a valid one (--grant) before anything is
asked or written, and while the run fetches and exports. The grant names the approval;
without one --approval does.` +
			exitHelp(exitDone, exitFailed, exitUsage, exitRetry, exitInUse, exitRejected, exitInterrupted),
		Example: "  rehydrate run figsim/ --grant grant.json -w figsim-rehydrated\n  rehydrate run annotations.csv --approval RFR-2026-0123",
		Args:    exactArgs(1, "one RELEASE: a release folder or an annotations file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.rehydrate(cmd.Context(), args[0], f, c.getenv)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.approval, "approval", "", "the `reference` of Reddit's approval of your use (default: the grant's)")
	cmd.Flags().StringVar(&f.grant, "grant", "", grantFlagHelp)
	cmd.Flags().StringArrayVar(&f.connectTo, "connect-to", nil, "connect to ADDR:PORT instead of HOST:PORT, given as `HOST:PORT:ADDR:PORT` (as in curl; repeatable)")
	cmd.Flags().StringVar(&f.cacert, "cacert", "", "trust the certificate authorities in this PEM `file` instead of the system's")
	cmd.Flags().StringVar(&f.policy, "policy", "", "the policy `file` for a bare annotations file")
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.ocr, "ocr", "", "the ocr `program` (default: beside rehydrate, then on PATH)")
	cmd.Flags().IntVar(&f.workers, "workers", runtime.NumCPU(), "how many OCR workers to run at once")
	cmd.Flags().StringVar(&f.filters, "filters", "", "what to do with filtered rows, by `mode`: drop them, or flag: keep and mark them (default: as the policy says)")
	cmd.Flags().BoolVar(&f.confirmRemovals, "confirm-removals", false, "accept the mass removal that an earlier run withheld (not what this one finds), or a manifest that drops as much")
	cmd.Flags().StringSliceVar(&f.retry, "retry", nil, "ask image hosts again about entries that ended in this `outcome or reason`: invalid, gone, placeholder, changed, http_403... (repeatable)")
}

// rehydrate does what run and demo share: everything is checked before the first request
// and before the workspace is touched.
func (c *command) rehydrate(ctx context.Context, releasePath string, f runFlags, getenv func(string) string) error {
	opened, err := openRelease(ctx, releasePath)
	if err != nil {
		return err
	}
	pol, err := f.effectivePolicy(opened.Release)
	if err != nil {
		return err
	}
	grant, err := c.useGrant(ctx, opened.Release, pol, &f)
	if err != nil {
		return err
	}
	progress := pipeline.NewProgress(c.console.observe)
	client, err := c.redditClient(f, pol, getenv, progress)
	if err != nil {
		return err
	}
	words, err := language.New()
	if err != nil {
		return err
	}
	pool, err := c.startOCR(ctx, f, words)
	if err != nil {
		return err
	}
	defer pool.Close()
	return c.inWorkspace(ctx, func(ws *workspace.Workspace) error {
		if err := grant.remember(ctx, ws, c.now()); err != nil {
			return err
		}
		summary, err := pipeline.Run(ctx, pipeline.Config{Release: opened.Release, Manifest: opened.summary,
			Tombstones: opened.tombstones, Policy: pol, Workspace: ws,
			Reddit: client, OCR: pool, Workers: f.workers, Language: words, Version: version(), Now: c.now, Stop: c.stop,
			ConfirmRemovals: f.confirmRemovals, Rehearsal: f.rehearsal, Access: grant.access(), Retry: f.retry, Progress: progress, Log: c.log})
		c.console.done()
		if err != nil {
			return err
		}
		return c.conclude(summary)
	})
}

// inWorkspace does a command's work in the workspace, which it locks and closes.
func (c *command) inWorkspace(ctx context.Context, do func(*workspace.Workspace) error) (err error) {
	ws, err := workspace.Open(ctx, c.workspace, workspace.Options{TestOnlyStep: c.testOnlyStep})
	if err != nil {
		return err
	}
	defer func() {
		// Closing finishes erasures: that it failed counts more than an exit status.
		if failed := ws.Close(); failed != nil {
			var status exitCode
			if errors.As(err, &status) {
				err = nil
			}
			err = errors.Join(err, fmt.Errorf("close the workspace: %w", failed))
		}
	}()
	return do(ws)
}

// A checkedRelease is a release that was read whole and holds no error.
type checkedRelease struct {
	*manifest.Release
	summary    manifest.Summary
	tombstones []manifest.Tombstone
}

// openRelease opens a release and reads all of it once, so that every error in it is known
// before anything is asked or written.
func openRelease(ctx context.Context, path string) (checkedRelease, error) {
	var c checkedRelease
	var err error
	if c.Release, err = manifest.Open(path, manifest.Options{OpenParquet: dataset.OpenManifest}); err != nil {
		return c, asUsage(err)
	}
	if c.summary, err = c.Check(ctx); err != nil {
		return c, asUsage(err)
	}
	if c.TombstonesPath == "" {
		return c, nil
	}
	c.tombstones, err = readTombstones(c.TombstonesPath)
	return c, err
}

// readTombstones reads a tombstones.csv of the release, or one that was kept elsewhere.
func readTombstones(name string) ([]manifest.Tombstone, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usageError("read tombstones: %w", err)
	}
	defer f.Close()
	stones, err := manifest.ReadTombstones(f)
	if err != nil {
		return nil, asUsage(fmt.Errorf("%s: %w", name, err))
	}
	return stones, nil
}

// asUsage makes an error about the user's files one of usage, unless it is a cancellation.
func asUsage(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &problem{err: err, code: exitUsage}
}

// effectivePolicy is the release's policy, or the file's for a bare manifest, with the flags
// on top.
func (f runFlags) effectivePolicy(release *manifest.Release) (policy.Policy, error) {
	path := release.PolicyPath
	if f.policy != "" {
		if release.Dir != "" {
			return policy.Policy{}, usageError("--policy is for a bare annotations file: %s has its own policy", release.Dir)
		}
		path = f.policy
	}
	pol, err := readPolicy(path)
	if err != nil {
		return policy.Policy{}, err
	}
	switch mode := policy.Mode(f.filters); mode {
	case "":
	case policy.Drop, policy.Flag:
		pol.Filter.Mode = mode
	default:
		return policy.Policy{}, usageError("--filters takes drop or flag, not %q", f.filters)
	}
	for _, r := range f.retry {
		if r == "" || strings.ContainsAny(r, " \t") {
			return policy.Policy{}, usageError("--retry takes an outcome or a reason of outcomes.csv, not %q", r)
		}
	}
	if f.workers < 1 {
		return policy.Policy{}, usageError("--workers must be at least 1, not %d", f.workers)
	}
	return pol, nil
}

// readPolicy reads a policy file; without one the default holds.
func readPolicy(path string) (policy.Policy, error) {
	if path == "" {
		return policy.Default(), nil
	}
	b, err := readSmall(path)
	if err != nil {
		return policy.Policy{}, usageError("read the policy: %w", err)
	}
	pol, err := policy.Parse(b, path)
	if err != nil {
		return policy.Policy{}, asUsage(err)
	}
	return pol, nil
}

// readSmall reads a file of settings: the first mebibyte of it, so that naming the wrong
// file costs nothing. Whoever parses it refuses one of that size.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

func (c *command) redditClient(f runFlags, pol policy.Policy, getenv func(string) string, progress *pipeline.Progress) (*reddit.Client, error) {
	o := reddit.Options{Approval: f.approval, Policy: pol, Version: version(), Log: c.log, OnWait: progress.OnWait,
		Scrubber: c.streams.scrubber}
	for _, s := range f.connectTo {
		to, err := reddit.ParseConnectTo(s)
		if err != nil {
			return nil, usageError("--connect-to: %w", err)
		}
		o.ConnectTo = append(o.ConnectTo, to)
	}
	if f.cacert != "" {
		pem, err := readSmall(f.cacert)
		if err != nil {
			return nil, usageError("--cacert: %w", err)
		}
		o.RootCAs = x509.NewCertPool()
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError("--cacert: %s holds no PEM certificate", f.cacert)
		}
	}
	if o.Approval == "" {
		return nil, reddit.ErrNoApproval
	}
	var err error
	if o.Credentials, err = reddit.CredentialsFromEnv(getenv); err != nil {
		return nil, &problem{err: err, code: exitRejected,
			hint: "set REDDIT_CLIENT_ID, REDDIT_CLIENT_SECRET and REDDIT_USERNAME, or the same names with _FILE"}
	}
	if o.ImgurClientID, err = reddit.ImgurClientIDFromEnv(getenv); err != nil {
		return nil, &problem{err: err, code: exitRejected,
			hint: "set IMGUR_CLIENT_ID or IMGUR_CLIENT_ID_FILE to the id of an app registered with imgur, or neither"}
	}
	return reddit.New(o)
}

// startOCR finds the ocr program and starts its workers. The dictionary of words decides what
// of an uncertain reading is accepted.
func (c *command) startOCR(ctx context.Context, f runFlags, words *language.Filter) (*ocr.Pool, error) {
	program, err := c.findOCR(f.ocr)
	if err != nil {
		return nil, err
	}
	return ocr.Start(ctx, ocr.Config{Command: []string{program, "worker"}, Workers: f.workers,
		TessdataDir: c.getenv("TESSDATA_PREFIX"), Dictionary: words.Knows, DictionaryID: language.DictionaryDigest(), Log: c.log})
}

func (c *command) findOCR(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if self, err := c.executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "ocr")
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("ocr"); err == nil {
		return path, nil
	}
	return "", &problem{err: fmt.Errorf("the ocr program is neither beside rehydrate nor on PATH"), code: exitFailed,
		hint: "install Tesseract with scripts/setup, then: go build -o bin/ ./cmd/ocr (or name it with --ocr)"}
}
