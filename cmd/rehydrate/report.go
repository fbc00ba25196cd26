package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/durable"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/report"
)

type reportFlags struct {
	out               string
	thumbnails, texts bool
	force             bool
	study             studyFlags
}

func (c *command) reportCommand() *cobra.Command {
	var f reportFlags
	cmd := c.workspaceCommand("report", noArgs, func(cmd *cobra.Command, _ []string) error {
		return c.report(cmd.Context(), f)
	})
	registerOut(cmd, &f.out, "")
	cmd.Flags().BoolVar(&f.thumbnails, "thumbnails", false, "")
	cmd.Flags().BoolVar(&f.texts, "texts", false, "")
	cmd.Flags().StringVar(&f.study.release, "release", "", "")
	cmd.Flags().StringSliceVar(&f.study.annotators, "annotators", nil, "")
	cmd.Flags().StringVar(&f.study.decides, "decides", "", "")
	cmd.Flags().StringVar(&f.study.features, "features", "", "")
	cmd.Flags().StringVar(&f.study.by, "by", "", "")
	cmd.Flags().StringSliceVar(&f.study.scores, "scores", nil, "")
	cmd.Flags().StringArrayVar(&f.study.models, "model", nil, "")
	cmd.Flags().StringVar(&f.study.split, "split", "", "")
	cmd.Flags().BoolVar(&f.force, "force", false, "")
	return cmd
}

func (c *command) report(ctx context.Context, f reportFlags) error {
	of := f.study
	given := of.features+of.by+of.decides+of.split != "" || len(of.annotators)+len(of.scores)+len(of.models) > 0
	switch {
	case of.release == "" && given:
		return usageError("--annotators, --decides, --features, --by, --scores, --model and --split need --release RELEASE")
	case of.release != "" && (f.thumbnails || f.texts):
		return usageError("the page of --release shows no post; leave --thumbnails and --texts out")
	case of.release != "" && f.out == "":
		return usageError("--release needs --out FILE, such as study.html")
	case of.release != "":
		return c.writeStudy(ctx, of, pageFlags{"out", f.out, f.force})
	}
	if f.out == "" && f.force {
		return usageError("--force needs --out FILE: without it, report.html in the workspace is replaced anyway")
	}
	if err := newFile("--out", f.out, f.force); err != nil {
		return err
	}
	if f.out == "" && (f.thumbnails || f.texts) {
		return usageError("--thumbnails and --texts need --out FILE, outside the workspace: rehydrate purge could not remove posts from the report")
	}
	name := f.out
	err := c.openWorkspace(ctx, workspace.Options{Existing: true, ReadOnly: f.out != ""}, nil,
		func(ws *workspace.Workspace) (err error) {
			if err := refuseEnded(ctx, ws); err != nil {
				return err
			}
			// Without the paths of this machine, as toType has them: a page is handed on.
			advice := adviceFor
			if c.madeUp {
				advice = func(n state.Count) string {
					return strings.ReplaceAll(adviceFor(n), "rehydrate run RELEASE", rehearsedBy)
				}
			}
			write := func(w io.Writer) error {
				return report.Write(ctx, w, ws, report.Options{Now: c.now(), Version: build.Version(),
					Thumbnails: f.thumbnails, Texts: f.texts, Advice: advice})
			}
			if f.out == "" {
				name = filepath.Join(c.workspace, workspace.ReportName)
				_, err = ws.Replace(ctx, workspace.ReportName, write, nil) // where every purge removes it
			} else {
				err = durable.Write(ctx, f.out, 0o600, write)
			}
			if err != nil {
				err = fmt.Errorf("write the report: %w", err)
			}
			return err
		})
	if errors.Is(err, workspace.ErrInUse) {
		return &problem{err: err, code: exitInUse,
			hint: "--out FILE writes the report elsewhere, while the run goes on"}
	}
	if err != nil {
		return err
	}
	return c.answer("report", reportAnswer{Report: name, Thumbnails: f.thumbnails, Texts: f.texts})
}

// A reportAnswer is what report prints.
type reportAnswer struct {
	Report     string   `json:"report"`
	Thumbnails bool     `json:"thumbnails"`
	Texts      bool     `json:"texts"`
	Notes      []string `json:"notes,omitempty"`
}
