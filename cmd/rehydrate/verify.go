package main

import (
	"errors"

	"github.com/spf13/cobra"

	"rehydrate/audit/verify"
	"rehydrate/pipeline/workspace"
)

func (c *command) verifyCommand() *cobra.Command {
	return c.workspaceCommand("verify", noArgs, func(cmd *cobra.Command, _ []string) error {
		r, err := verify.Workspace(cmd.Context(), c.workspace)
		if errors.Is(err, workspace.ErrInUse) {
			return &problem{err: err, code: exitInUse, hint: "verify again when that command is done"}
		}
		if workspace.Unread(err) {
			return &problem{err: err, code: exitFailed,
				hint: "nothing was checked: see to the rights of the folder and to its disk, then run rehydrate verify again"}
		}
		if err != nil {
			return err
		}
		// The status follows the report: it alone would not say what is damaged.
		return c.answerHolds("verify", r, r.Whole, exitDamaged)
	})
}
