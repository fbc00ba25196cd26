package main

import (
	"context"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

type purgeFlags struct {
	releaseFlags
	redditFlags
	offline         bool
	confirmRemovals bool
	dryRun          bool
	all             bool
	ids             []string
	reason          string
	tombstones      []string
}

func (c *command) purgeCommand() *cobra.Command {
	var f purgeFlags
	cmd := c.workspaceCommand("purge", f.checkArgs, func(cmd *cobra.Command, args []string) error {
		if f.all {
			return c.purgeAll(cmd.Context(), args, f)
		}
		return c.purge(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.offline, "offline", false, "")
	flags.BoolVar(&f.dryRun, "dry-run", false, "")
	flags.StringSliceVar(&f.ids, "id", nil, "")
	flags.StringVar(&f.reason, "reason", string(state.ReasonTakedown), "")
	flags.StringArrayVar(&f.tombstones, "tombstones", nil, "")
	flags.BoolVar(&f.all, "all", false, "")
	flags.BoolVar(&f.confirmRemovals, "confirm-removals", false, "")
	f.releaseFlags.register(cmd)
	f.redditFlags.register(cmd, &f.approval)
	return cmd
}

// reasonForm is what a reason looks like: it stands in outcomes.csv and in the log.
var reasonForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

func (f purgeFlags) request() (pipeline.PurgeRequest, error) {
	q := pipeline.PurgeRequest{Reason: state.Requested(f.reason)}
	if !reasonForm.MatchString(f.reason) {
		return q, usageError("--reason takes one word of a-z, 0-9 and _, not %s", strconv.QuoteToGraphic(f.reason))
	}
	if len(f.ids) == 0 && f.reason != string(state.ReasonTakedown) {
		return q, usageError("--reason needs --id POST, whose removal it explains")
	}
	for _, text := range f.ids {
		id, err := manifest.ParsePostID(text)
		if err != nil {
			return q, usageError("--id: %w", err)
		}
		q.IDs = append(q.IDs, id)
	}
	return q, nil
}

func (c *command) purge(ctx context.Context, path string, f purgeFlags) error {
	request, err := f.request()
	if err != nil {
		return err
	}
	config, err := c.forRemovals(ctx, path, &f.releaseFlags)
	if err != nil {
		return err
	}
	config.ConfirmRemovals = f.confirmRemovals
	for _, name := range f.tombstones {
		listed, err := readTombstones(name, state.ReadTombstones)
		if err != nil {
			return err
		}
		config.Listed = append(config.Listed, listed...)
	}
	if f.dryRun {
		return c.planPurge(ctx, config, request, f.offline)
	}
	leave, err := c.leaveFor(ctx, &config, &f.releaseFlags, &f.redditFlags, f.offline)
	if err != nil {
		return err
	}
	var report pipeline.PurgeReport
	held, err := leave.do(ctx, c, &config, func(*workspace.Workspace) (err error) {
		report, err = pipeline.Purge(ctx, config, request)
		return err
	})
	switch {
	case err == nil:
		err = c.concludePurge(report, held, f.offline)
	case report.Done: // without Reddit's answers: what is removed is told before the error
		if failed := c.answer("purge", purgeAnswer{report, c.datasetsCache(), nil, f.offline, true}); failed != nil {
			return failed
		}
	}
	return leave.end(err)
}

func (c *command) planPurge(ctx context.Context, config pipeline.Config, q pipeline.PurgeRequest, offline bool) error {
	plan, err := reading(ctx, c, func(ws *workspace.Workspace) (pipeline.PurgePlan, error) {
		config.Workspace = ws
		return pipeline.PlanPurge(ctx, config, q)
	})
	if err != nil {
		return err
	}
	return c.answer("purge-plan", purgePlanAnswer{plan, offline, c.again("", dryRun)})
}

// A purgePlanAnswer is what purge prints with --dry-run.
type purgePlanAnswer struct {
	pipeline.PurgePlan
	Offline bool   `json:"-"`
	Start   string `json:"-"` // the command that does it
}

func (c *command) concludePurge(p pipeline.PurgeReport, h *heldImages, offline bool) error {
	if err := c.answer("purge", purgeAnswer{p, c.datasetsCache(), h, offline, false}); err != nil {
		return err
	}
	// An obligation or a doubt that is still open is status 3, even though the purge itself worked.
	for _, copied := range p.Copies {
		if copied.State == state.CopyOpen {
			return exitCode(exitRetry)
		}
	}
	if p.Summary.Unwritten > 0 || p.Summary.Withheld > 0 || p.Summary.Unverified > 0 ||
		len(p.Summary.Stay)+len(p.Summary.Strays) > 0 || p.Summary.Later > 0 {
		return exitCode(exitRetry)
	}
	return nil
}

// Worked reports whether posts were removed, or those of the request had been before.
func (p purgeAnswer) Worked() bool {
	return len(p.Erased)+len(p.Rows)+len(p.Already)+len(p.Empty)+len(p.Unknown) > 0
}

// Reached counts the copies in which nothing is left that must go.
func (p purgeAnswer) Reached() (n int) {
	for _, c := range p.Copies {
		if c.State == state.CopyGood {
			n++
		}
	}
	return n
}

// A purgeAnswer is what purge prints.
type purgeAnswer struct {
	pipeline.PurgeReport
	Cache   string      `json:"cache,omitempty"` // of Hugging Face datasets, which can hold copies of the images
	Held    *heldImages `json:"held_without_a_grant,omitempty"`
	Offline bool        `json:"-"` // no request was sent, as the user wished
	Failed  bool        `json:"-"` // Reddit gave no answer, and an error says why
}
