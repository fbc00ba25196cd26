package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// checkArgs holds the arguments of a purge against its flags. --all needs no RELEASE: a workspace can be ended when the
// release is at hand no more.
func (f *purgeFlags) checkArgs(cmd *cobra.Command, args []string) error {
	switch {
	case !f.all:
		return exactArgs(1, aRelease)(cmd, args)
	case len(f.ids) > 0, len(f.tombstones) > 0, cmd.Flags().Changed("reason"):
		return usageError("--all removes everything; leave --id, --reason and --tombstones out")
	}
	return takes(0, 1, "no RELEASE, or one, with --all")(cmd, args)
}

// purgeAll ends the workspace, or says what would go.
func (c *command) purgeAll(ctx context.Context, args []string, f purgeFlags) error {
	ctx, stop := c.untilStopped(ctx) // what is left when it is stopped goes the next time
	defer stop()
	if len(args) > 0 { // a release that is named must be the workspace's
		rel, err := c.openManifest(ctx, args[0])
		if err == nil {
			_, err = c.isRehearsal(ctx, rel)
		}
		if err != nil {
			return err
		}
	}
	if f.dryRun || !f.confirmRemovals {
		plan, err := reading(ctx, c, func(ws *workspace.Workspace) (pipeline.Ending, error) {
			return pipeline.PlanEnd(ctx, ws)
		})
		if err != nil {
			return err
		}
		do := c.again(confirms, dryRun, confirms)
		if f.dryRun {
			return c.answer("purge-all-plan", endPlan{plan, do})
		}
		return &problem{code: exitUsage,
			err: fmt.Errorf("--all would end the workspace %s and remove %s, %s, %s and %s",
				c.workspace, times(plan.Images, "image", "images"), times(plan.Texts, "text", "texts"),
				times(len(plan.Files), "file", "files"),
				times(openedCopies(plan.Copies), "registered copy", "registered copies")),
			hint: "nothing was changed; to do it: " + do}
	}
	return c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error {
		ending, err := pipeline.End(ctx, ws, c.now())
		c.noteKind(ctx, ws)
		if ctx.Err() != nil {
			return state.ErrInterrupted
		}
		if err != nil {
			return err
		}
		done := len(ending.Rows) == 0 && !slices.ContainsFunc(ending.Copies, isOpen)
		return c.answerHolds("purge-all", endAnswer{ending, c.datasetsCache()}, done, exitRetry)
	})
}

// confirms is the flag by which what was held back or planned is done.
const confirms = "--confirm-removals"

// endsAgain is the one command that takes anything out of a workspace that was ended, or of its copies.
const endsAgain = "rehydrate purge --all " + confirms

// An endPlan is what purge --all --dry-run prints.
type endPlan struct {
	pipeline.Ending
	Again string `json:"-"` // the command that does it
}

// An endAnswer is what purge --all prints.
type endAnswer struct {
	pipeline.Ending
	Cache string `json:"cache,omitempty"`
}

func isOpen(c state.CopyReport) bool { return c.State == state.CopyOpen }

// openedCopies counts the copies that are not closed.
func openedCopies(list []state.CopyReport) (n int) {
	for _, c := range list {
		if c.State != state.CopyClosed {
			n++
		}
	}
	return n
}

// An endedReport says in a summary that the workspace was ended.
type endedReport struct {
	At         time.Time `json:"at"`
	Unfinished bool      `json:"unfinished,omitempty"`
}

// readEnded returns nil for a workspace that was not ended.
func readEnded(ctx context.Context, ws *workspace.Workspace) (*endedReport, error) {
	note, err := state.ReadNote[state.EndedNote](ctx, ws)
	if err != nil || note.At.IsZero() {
		return nil, err
	}
	return &endedReport{note.At, note.Unfinished}, nil
}

// noteKind notes whether the workspace was ended, and whether its posts are made up: then some commands do not work on
// it. One that cannot be read says so when the command reads it.
func (c *command) noteKind(ctx context.Context, ws *workspace.Workspace) {
	ended, err := readEnded(ctx, ws)
	c.ended = err == nil && ended != nil
	b, bound, err := ws.Binding(ctx)
	c.madeUp = err == nil && bound && state.IsRehearsal(b.Release)
}

// refuseEnded refuses a workspace that was ended. Nothing is handed out of it, also where the command that ends it was
// killed and rows are left; and no single post is taken out: copies that could not be reached owe all their rows, which
// only --all takes out.
func refuseEnded(ctx context.Context, ws *workspace.Workspace) error {
	ended, err := readEnded(ctx, ws)
	if err != nil || ended == nil {
		return err
	}
	on := ended.At.Format(time.DateOnly)
	if ended.Unfinished {
		return &problem{code: exitUsage,
			err:  fmt.Errorf("purge --all began to end this workspace on %s, and was interrupted", on),
			hint: endsAgain + " finishes it"}
	}
	return &problem{code: exitUsage, err: fmt.Errorf("the workspace was ended on %s", on),
		hint: endsAgain + " removes what was put back since, and tries again to reach the copies\n" +
			"rehydrate run RELEASE starts again"}
}

// usingRows does a command's work on the rows of the workspace, which must not have been ended.
func (c *command) usingRows(ctx context.Context, grant *permit, do func(*workspace.Workspace) error) error {
	return c.inWorkspace(ctx, grant, func(ws *workspace.Workspace) error {
		if err := refuseEnded(ctx, ws); err != nil {
			return err
		}
		return do(ws)
	})
}
