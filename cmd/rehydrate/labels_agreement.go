package main

import (
	"math"

	"github.com/spf13/cobra"

	"rehydrate/study"
)

const usualSeed = 1 // of intervals

func (c *command) labelsAgreementCommand() *cobra.Command {
	var of study.Annotations
	cmd := newCommand("labels-agreement", takes(1, math.MaxInt,
		"a FILE for each annotator, one FILE with --columns, or one Argilla export"),
		func(cmd *cobra.Command, args []string) error {
			if err := areThere(args); err != nil {
				return err
			}
			of.Files = args
			agreement, err := study.Agree(cmd.Context(), of)
			if err != nil {
				return err
			}
			return c.answer("labels-agreement", agreement)
		})
	cmd.Flags().StringSliceVar(&of.Columns, "columns", nil, "")
	cmd.Flags().StringVar(&of.Category, "category", "", "")
	cmd.Flags().StringVar(&of.Release, "release", "", "")
	cmd.Flags().StringVar(&of.Batch, "batch", "", "")
	cmd.Flags().StringVar(&of.Decides, "decides", "", "")
	cmd.Flags().Uint64Var(&of.Seed, "seed", usualSeed, "")
	return cmd
}
