package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/durable"
	"rehydrate/pipeline/report"
	"rehydrate/pipeline/workspace"
)

type reportFlags struct {
	out               string
	thumbnails, texts bool
}

func (c *command) reportCommand() *cobra.Command {
	var f reportFlags
	cmd := newCommand("report", exactArgs(0, "no arguments"), func(cmd *cobra.Command, _ []string) error {
		return c.report(cmd.Context(), f)
	})
	cmd.Flags().StringVar(&f.out, "out", "", "write this `file` and not the workspace's report.html")
	cmd.Flags().BoolVar(&f.thumbnails, "thumbnails", false, "add up to 60 small images, blurred until clicked (wants --out)")
	cmd.Flags().BoolVar(&f.texts, "texts", false, "add the texts that OCR read (wants --out)")
	return cmd
}

func (c *command) report(ctx context.Context, f reportFlags) error {
	if f.out == "" && (f.thumbnails || f.texts) {
		return usageError("--thumbnails and --texts put content of posts into the report, which no purge would find: name a file outside the workspace with --out")
	}
	if f.out != "" {
		if err := c.outsideWorkspace("--out", f.out); err != nil {
			return err
		}
	}
	name := f.out
	err := c.openWorkspace(ctx, workspace.Options{Existing: true, ReadOnly: f.out != ""}, nil, func(ws *workspace.Workspace) (err error) {
		write := func(w io.Writer) error {
			return report.Write(ctx, w, ws, report.Options{Now: c.now(), Version: version(), Thumbnails: f.thumbnails, Texts: f.texts, Advice: adviceFor})
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
		return &problem{err: err, code: exitInUse, hint: "--out FILE writes the report elsewhere, beside the run"}
	}
	if err != nil {
		return err
	}
	return c.answer("report", map[string]any{"report": name, "thumbnails": f.thumbnails, "texts": f.texts})
}

// outsideWorkspace refuses a file that lies in the workspace.
func (c *command) outsideWorkspace(flag, file string) error {
	// Links are followed first, so that a link into the workspace is refused as well.
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return usageError("%s %s: %w", flag, file, err)
	}
	ws, err := filepath.EvalSymlinks(c.workspace)
	if err != nil {
		return nil // there is no workspace; opening it reports that
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		ws, err = filepath.Abs(ws)
	}
	if err != nil {
		return err
	}
	if dir == ws || strings.HasPrefix(dir, ws+string(filepath.Separator)) {
		return usageError("%s %s lies in the workspace: name a file outside of it", flag, file)
	}
	return nil
}
