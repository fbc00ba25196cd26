package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// openEither opens a release, or a list of posts. asPublished is that of manifest.Options.
func (c *command) openEither(ctx context.Context, path string, asPublished bool) (*manifest.Release, error) {
	if err := noTombstones(path); err != nil {
		return nil, err
	}
	o := manifest.Options{OpenParquet: scan.OpenManifest, AsPublished: asPublished}
	if !manifest.IsList(path) {
		return manifest.Open(path, o)
	}
	english, err := dictionary()
	if err != nil {
		return nil, err
	}
	o.Known = english.Knows
	name, err := c.nameOfList(ctx)
	if err != nil {
		return nil, err
	}
	return manifest.OpenList(ctx, path, name, o)
}

// noTombstones refuses a list of tombstones where a release or annotations are wanted: its states and times would be
// taken for labels.
func noTombstones(path string) error {
	if !isTombstones(path) {
		return nil
	}
	return &problem{
		err:  fmt.Errorf("%s is a list of tombstones: it says which posts were removed, and is no release", path),
		code: exitUsage,
		hint: "make a release of a list of the post ids, and put the tombstones into it:\n" +
			typed("rehydrate", "init", "DIR", "--manifest", "ids.txt") + "\n" +
			typed("cp", path, "DIR/"+manifest.TombstonesName),
	}
}

// isTombstones reports whether a file begins as a list of tombstones. One that cannot be read does not.
func isTombstones(path string) bool {
	f, _, err := userfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	return err == nil && manifest.BeginsTombstones(head)
}

// nameOfList is the name of a list: that of --name, that under which the workspace has it, that of its file in a
// rehearsal, or that of the workspace.
func (c *command) nameOfList(ctx context.Context) (string, error) {
	if c.listName != "" {
		return c.listName, nil
	}
	bound, err := reading(ctx, c, func(ws *workspace.Workspace) (string, error) {
		b, _, err := ws.Binding(ctx)
		return b.Release, err
	})
	if err == nil && manifest.IsListName(bound) {
		return state.ReleaseOf(bound), nil
	}
	if c.rehearsed != "" {
		return c.rehearsed, nil
	}
	dir, err := filepath.Abs(c.workspace)
	return filepath.Base(dir), err
}

// policyOf is the policy of a release, or what holds where it has none.
func policyOf(release *manifest.Release) (policy.Policy, error) {
	if release.IsList() {
		return policy.Cautious(), nil
	}
	return readPolicy(release.PolicyPath)
}

// keptPolicy is the copy, in the workspace of a release without a policy, of the one that a run named with --policy; ""
// for none. A workspace that cannot be read says so when the job opens it; one that lost its state.db keeps its policy.
// altered is the *workspace.Altered of a copy that no command left there.
func (c *command) keptPolicy(ctx context.Context, release *manifest.Release) (path string, altered error) {
	kept, err := reading(ctx, c, func(ws *workspace.Workspace) (string, error) {
		b, _, err := ws.Binding(ctx)
		if err != nil || b.Release != release.Name {
			return "", err
		}
		f, err := ws.OpenFile(state.PolicyFile)
		if err != nil {
			return "", err
		}
		altered = ws.CheckFile(ctx, state.PolicyFile)
		return filepath.Join(c.workspace, state.PolicyFile), f.Close()
	})
	if errors.Is(err, workspace.ErrNoWorkspace) { // or state.db was lost, and with it for what it was kept
		path := filepath.Join(c.workspace, state.PolicyFile)
		if _, none := os.Lstat(path); none == nil {
			return path, nil
		}
	}
	if err != nil {
		return "", nil
	}
	return kept, altered
}

// sayList says what a run does with a list, and under which policy.
func (c *command) sayList(config pipeline.Config, f *releaseFlags) {
	if c.quiet || !config.Release.IsList() {
		return
	}
	rules := "the rules in " + f.policy + " hold"
	if f.policy == "" {
		rules = fmt.Sprintf("cautious rules hold (%g requests a minute, Reddit's image hosts alone, nothing filtered "+
			"out); --policy FILE names others, -v prints these", config.Policy.Reddit.RequestsPerMinute)
	}
	fmt.Fprintf(c.stderr, "rehydrate: %s is a list of ids: one split, no labels; %s\n", config.Release.ManifestPath,
		rules)
	if f.policy == "" && c.verbose {
		for line := range strings.Lines(string(policy.CautiousTOML())) {
			fmt.Fprint(c.stderr, strings.TrimRight("    "+line, " \n")+"\n")
		}
	}
}
