package main

import (
	"math"

	"github.com/spf13/cobra"

	"rehydrate/study"
)

func (c *command) labelsAgreementCommand() *cobra.Command {
	var release, batch string
	cmd := newCommand("labels-agreement", takes(1, math.MaxInt, "a FILE for each annotator, or one Argilla export"), func(cmd *cobra.Command, args []string) error {
		if err := areThere(args); err != nil {
			return err
		}
		agreement, err := study.Agree(cmd.Context(), args, release, batch)
		if err != nil {
			return err
		}
		return c.answer("labels-agreement", agreement)
	})
	cmd.Flags().StringVar(&release, "release", "", labelReleaseHelp)
	cmd.Flags().StringVar(&batch, "batch", "", "compare batch by batch too: the `column` of the first file, or metadata of an Argilla export, that names them")
	return cmd
}
