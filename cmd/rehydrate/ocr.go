package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/csvcell"
	"rehydrate/internal/durable"
	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/report"
)

type rereadFlags struct {
	releaseFlags
	ocrFlags
	filters filterFlag
	dryRun  bool
	force   bool
	html    string
}

func (c *command) ocrCommand() *cobra.Command {
	var f rereadFlags
	cmd := c.workspaceCommand("ocr", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		if err := c.checkRereadReport(f); err != nil {
			return err
		}
		return c.reread(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "")
	flags.BoolVar(&f.force, "force", false, "")
	flags.StringVar(&f.html, "html", "", "")
	markWritten(cmd, "html")
	f.ocrFlags.register(cmd)
	f.filters.register(cmd)
	f.releaseFlags.register(cmd)
	return cmd
}

func (c *command) reread(ctx context.Context, path string, f rereadFlags) error {
	if err := f.ocrFlags.check(); err != nil {
		return err
	}
	config, err := c.resume(ctx, path, &f.releaseFlags, f.filters)
	if err != nil {
		return err
	}
	var grant *permit
	if !f.dryRun { // a plan shows nothing that needs a grant
		grant, err = c.useGrant(ctx, config, &f.releaseFlags)
		if err != nil {
			return err
		}
	}
	pool, err := c.startOCR(ctx, f.ocrFlags, &config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if f.dryRun {
		return c.planReread(ctx, config, f.force)
	}
	config.Access = grant.access()
	return c.usingRows(ctx, grant, func(ws *workspace.Workspace) error {
		config.Workspace = ws
		report, err := pipeline.ReadAgain(ctx, config, f.force)
		c.console.Done()
		if err != nil {
			return err
		}
		if err := c.answer("ocr", report); err != nil {
			return err
		}
		if f.html != "" {
			if err := c.writeRereadReport(ctx, f.html, report); err != nil {
				return err
			}
		}
		// Only now are the old texts erased: after a crash before this line the same command reports again.
		if err := ws.EndReread(ctx); err != nil {
			return err
		}
		return statusOf(report.Summary)
	})
}

func (c *command) checkRereadReport(f rereadFlags) error {
	// Before anything is read: hours later, a page that cannot be written would be found out too late.
	info, err := os.Stat(f.html)
	switch {
	case f.html == "":
		return nil
	case f.dryRun:
		return usageError("--html and --dry-run exclude each other: a dry run changes nothing; leave one of them out")
	case err == nil && !info.Mode().IsRegular():
		return usageError("--html %s is not a regular file; name a new file, or one to write over", f.html)
	}
	return nil
}

func (c *command) writeRereadReport(ctx context.Context, name string, r state.Reread) error {
	err := c.outsideWorkspace("--html", name) // again: a folder can have become a link since the command began
	if err == nil {
		err = durable.Write(ctx, name, 0o600, func(w io.Writer) error {
			return report.WriteReread(w, report.RereadPage{Reread: r, Tool: build.Version(), Made: c.now()})
		})
	}
	if err != nil {
		return &problem{err: fmt.Errorf("write what changed: %w", err), code: exitFailed,
			hint: "all images are read and the dataset is written; run the same command with another --html to write the page"}
	}
	fmt.Fprintf(c.stdout,
		"\nwrote %s\nIt holds text of posts that a purge does not reach: delete it when you have read it.\n",
		csvcell.Shown(name))
	return nil
}

// An ocrPlanAnswer is what ocr prints with --dry-run.
type ocrPlanAnswer struct {
	pipeline.Workload
	Start string `json:"-"` // the command that does it
}

func (c *command) planReread(ctx context.Context, config pipeline.Config, force bool) error {
	plan, err := reading(ctx, c, func(ws *workspace.Workspace) (pipeline.Workload, error) {
		config.Workspace = ws
		return pipeline.PlanReread(ctx, config, force)
	})
	if err != nil {
		return err
	}
	return c.answer("ocr-plan", ocrPlanAnswer{plan, c.again("", dryRun)})
}
