package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"rehydrate/internal/durable"
	"rehydrate/study"
)

// splitFlags are the flags of `labels split`.
type splitFlags struct {
	ratios, names, out string
	seed               uint64
	force              bool
}

func (c *command) labelsSplitCommand() *cobra.Command {
	var f splitFlags
	cmd := newCommand("labels-split", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		return c.labelsSplit(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.ratios, "ratios", "60:20:20", "")
	flags.StringVar(&f.names, "names", "", "")
	flags.Uint64Var(&f.seed, "seed", 1, "")
	registerOut(cmd, &f.out, "")
	flags.BoolVar(&f.force, "force", false, "")
	return cmd
}

func (c *command) labelsSplit(ctx context.Context, path string, f splitFlags) error {
	shares, err := study.Shares(f.ratios, f.names)
	if err != nil {
		return err
	}
	// Refused now, not after minutes of splitting.
	if err := newFile("--out", f.out, f.force); err != nil {
		return err
	}
	split, err := study.Divide(ctx, path, shares, f.seed)
	if err != nil {
		return err
	}
	if f.out != "" {
		split.Out = f.out
		err := durable.Write(ctx, f.out, 0o600, func(w io.Writer) error { return c.render(w, "labels-split-csv", split) })
		if err != nil {
			return fmt.Errorf("write the split: %w", err)
		}
	}
	return c.answer("labels-split", split)
}
