package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/curate/annotate"
	"rehydrate/curate/review"
	"rehydrate/internal/durable"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/copies"
	"rehydrate/pipeline/workspace"
)

func (c *command) annotateCommand() *cobra.Command {
	return newGroup("annotate", c.annotateExportCommand(), c.annotateMergeCommand(), c.annotateReviewCommand())
}

// roundFlags say what is annotated, and with which labels.
type roundFlags struct {
	scheme, seed, only string
}

func (f *roundFlags) register(cmd *cobra.Command) {
	f.registerScheme(cmd)
	f.registerPick(cmd)
}

func (f *roundFlags) registerPick(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.seed, "seed", "1", "")
	cmd.Flags().StringVar(&f.only, "only", "", "")
}

func (f *roundFlags) registerScheme(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.scheme, "scheme", "", "")
}

// read reads which labels are given, and to which images.
func (f *roundFlags) read(ctx context.Context, rel *manifest.Release) (*manifest.Release, annotate.Pick, error) {
	var pick annotate.Pick
	scheme, err := annotate.Scheme(f.scheme, rel)
	if err == nil {
		pick, err = annotate.NewPick(ctx, f.seed, f.only)
	}
	if err != nil {
		err = asUsage(err)
	}
	return scheme, pick, err
}

func (c *command) annotateExportCommand() *cobra.Command {
	var round roundFlags
	var access releaseFlags
	var order annotate.Order
	cmd := c.workspaceCommand("annotate-export", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		tooFew := func(n int) bool { return n < 1 }
		err := copies.CheckNote(order.Note)
		switch {
		case order.To == "":
			return usageError("%s needs --out DIR, the folder to make", cmd.CommandPath())
		case slices.ContainsFunc(order.Batches, tooFew) || order.Overlap < 1:
			return usageError("--batches and --overlap take numbers from 1 on")
		case err != nil:
			return usageError("--note: %w", err)
		}
		return c.annotateExport(cmd.Context(), args[0], round, &access, order)
	})
	round.register(cmd)
	access.register(cmd)
	registerOut(cmd, &order.To, "")
	cmd.Flags().StringVar(&order.Note, "note", "an annotation round", "")
	cmd.Flags().IntSliceVar(&order.Batches, "batches", nil, "")
	cmd.Flags().IntVar(&order.Overlap, "overlap", 2, "")
	return cmd
}

func (c *command) annotateExport(ctx context.Context, path string, round roundFlags, access *releaseFlags,
	order annotate.Order) error {
	config, err := c.resume(ctx, path, access, "")
	if err != nil {
		return err
	}
	scheme, pick, err := round.read(ctx, config.Release)
	if err != nil {
		return err
	}
	grant, err := c.useGrant(ctx, config, access)
	if err != nil {
		return err
	}
	order.Scheme, order.Pick, order.Now, order.Access = scheme.Schema, pick, c.now, grant.access()
	order.Release, order.Tombstones, order.Policy = config.Release, config.Tombstones, config.Policy
	return c.usingRows(ctx, grant, func(ws *workspace.Workspace) error {
		order.Workspace = ws
		sent, err := annotate.Export(ctx, order)
		if err != nil {
			return exportProblem(err)
		}
		return c.answer("annotate-export", sent)
	})
}

func (c *command) annotateMergeCommand() *cobra.Command {
	var round roundFlags
	var m annotate.Merging
	var release, out, decides string
	cmd := newCommand("annotate-merge", takes(1, math.MaxInt, "Argilla exports (.json), or a FILE for each annotator"),
		func(cmd *cobra.Command, args []string) error {
			_, err := os.Lstat(out)
			var unknown error
			m.Decides = labels.LastOfThree
			if decides != "" {
				m.Decides, unknown = labels.ParseDecider(decides)
			}
			switch {
			case release == "":
				return usageError("%s needs --release RELEASE, whose posts were annotated", cmd.CommandPath())
			case !strings.HasSuffix(out, ".jsonl"):
				return usageError("--out takes a file that ends in .jsonl, not %q", out)
			case err == nil:
				return usageError("--out %s exists; name a new file", out)
			case unknown != nil:
				return usageError("--decides: %w", unknown)
			}
			if err := areThere(args); err != nil {
				return err
			}
			m.Files = args
			return c.annotateMerge(cmd.Context(), release, round, m, out)
		})
	cmd.Flags().StringVar(&release, "release", "", "")
	round.registerScheme(cmd)
	registerOut(cmd, &out, "")
	cmd.Flags().StringVar(&decides, "decides", "", "")
	cmd.Flags().StringVar(&m.Batch, "batch", annotate.BatchName, "")
	return cmd
}

func (c *command) annotateMerge(ctx context.Context, release string, round roundFlags, m annotate.Merging,
	out string) error {
	opened, err := c.openDraft(ctx, release)
	if err != nil {
		return err
	}
	m.Release = opened.Release
	m.Scheme, err = annotate.Scheme(round.scheme, m.Release)
	var merged *annotate.Merged
	if err == nil {
		merged, err = annotate.Merge(ctx, m)
	}
	if err != nil {
		return asUsage(err)
	}
	written, err := merged.Write(ctx, out)
	if err != nil {
		return err
	}
	return c.answerHolds("annotate-merge", mergeAnswer{merged, written}, len(merged.Open) == 0, exitRetry)
}

// A mergeAnswer is what annotate merge prints.
type mergeAnswer struct {
	*annotate.Merged
	Written string `json:"written"`
}

func (c *command) annotateReviewCommand() *cobra.Command {
	var round roundFlags
	page := review.Config{Now: c.now}
	cmd := c.workspaceCommand("annotate-review", noArgs, func(cmd *cobra.Command, _ []string) error {
		switch {
		case !regexp.MustCompile(`^A[1-9][0-9]{0,3}$`).MatchString(page.Annotator):
			return usageError("--annotator takes a number such as A1, not the name %q", page.Annotator)
		case slices.ContainsFunc(page.Batches, func(n int) bool { return n < 1 }):
			return usageError("--batches takes numbers from 1 on")
		}
		return c.annotateReview(cmd.Context(), round, page)
	})
	round.registerScheme(cmd)
	round.registerPick(cmd)
	cmd.Flags().StringVar(&page.Annotator, "annotator", "A1", "")
	cmd.Flags().StringVar(&page.Answers, "answers", "answers", "")
	markWritten(cmd, "answers")
	cmd.Flags().IntSliceVar(&page.Batches, "batches", nil, "")
	return cmd
}

func (c *command) annotateReview(ctx context.Context, round roundFlags, page review.Config) error {
	binding, err := reading(ctx, c, func(ws *workspace.Workspace) (b workspace.Binding, err error) {
		b, _, err = ws.Binding(ctx)
		return b, err
	})
	if err != nil {
		return err
	}
	scheme, pick, err := round.read(ctx, &manifest.Release{Schema: binding.Schema})
	if err != nil {
		return err
	}
	page.Workspace, page.Scheme, page.Pick = c.workspace, scheme.Schema, pick
	if err := durable.MkdirAll(ctx, page.Answers, 0o700); err != nil {
		return err
	}
	page.Answers = filepath.Join(page.Answers, page.Annotator+".jsonl")
	server, err := review.Open(ctx, page)
	switch {
	case errors.Is(err, workspace.ErrBehind):
		return err
	case err != nil:
		return asUsage(err)
	}
	if server.Absent != nil {
		c.log.Warn(server.Absent.String())
	}
	ctx, cancel := c.untilStopped(ctx)
	defer cancel()
	fmt.Fprintf(c.stderr, "rehydrate: the page is at %s until you press Ctrl-C here; keep the address to yourself\n",
		server.URL())
	if err := server.Serve(ctx); err != nil {
		return err
	}
	return c.answer("annotate-review", reviewAnswer{server.Summary(), server.Absent, page.Answers})
}

// A reviewAnswer is what annotate review prints in the end.
type reviewAnswer struct {
	review.Summary
	Absent  *annotate.Absent `json:"absent,omitempty"`
	Answers string           `json:"answers"`
}
