package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

func (c *command) recheckCommand() *cobra.Command {
	f := runFlags{ocrFlags: ocrFlags{workers: 1}}
	cmd := c.workspaceCommand("recheck", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		if f.dryRun {
			return c.planRun(cmd.Context(), args[0], f, refused(pipeline.CheckRecheck, pipeline.PlanRecheck),
				func(context.Context, pipeline.Config) string { return c.again("", dryRun) })
		}
		return c.recheckRelease(cmd.Context(), args[0], f)
	})
	f.registerConfirm(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "")
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

// recheckRelease asks Reddit about every post, and takes out what is gone. It needs no grant.
func (c *command) recheckRelease(ctx context.Context, path string, f runFlags) error {
	config, err := c.forRemovals(ctx, path, &f.releaseFlags)
	if err != nil {
		return err
	}
	leave, err := c.leaveFor(ctx, &config, &f.releaseFlags, &f.redditFlags, false)
	if err != nil {
		return err
	}
	config.ConfirmRemovals = f.confirmRemovals
	var summary state.Summary
	held, err := leave.do(ctx, c, &config, func(ws *workspace.Workspace) error {
		if err := keepFilters(ctx, ws, &config); err != nil {
			return err
		}
		if err := c.warnOfTime(ctx, config, pipeline.PlanRecheck); err != nil {
			return err
		}
		summary, err = pipeline.Recheck(ctx, config)
		return err
	})
	if err == nil {
		err = c.answer("recheck", recheckAnswer{summary, held})
	}
	if err == nil {
		err = statusOf(summary)
	}
	return leave.end(err)
}

// A recheckAnswer is what recheck prints.
type recheckAnswer struct {
	state.Summary
	Held *heldImages `json:"held_without_a_grant,omitempty"`
}

// keepFilters has a recheck write the dataset as the last run was told to make it.
func keepFilters(ctx context.Context, ws *workspace.Workspace, config *pipeline.Config) error {
	last, err := state.ReadNote[state.PolicyNote](ctx, ws)
	config.Policy.Filter.Mode = cmp.Or(last.Filter.Mode, config.Policy.Filter.Mode)
	return err
}
