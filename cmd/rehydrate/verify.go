package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rehydrate/pipeline/audit"
	"rehydrate/pipeline/workspace"
)

func (c *command) verifyCommand() *cobra.Command {
	return newCommand("verify", exactArgs(0, "no arguments"), func(cmd *cobra.Command, _ []string) error {
		r, err := audit.Verify(cmd.Context(), audit.VerifyConfig{Workspace: c.workspace})
		if errors.Is(err, workspace.ErrInUse) {
			return &problem{err: err, code: exitInUse, hint: "verify again when that command is done"}
		}
		if err != nil {
			return err
		}
		err = c.show(r, func() { c.printVerify(r) })
		// After the report: the status alone would not say what is damaged.
		if err == nil && !r.Whole {
			return exitCode(exitDamaged)
		}
		return err
	})
}

// printVerify prints the report for people.
func (c *command) printVerify(r audit.VerifyReport) {
	w := table(c.stdout, 0)
	verdict := "whole"
	if !r.Sealed {
		verdict += ", as far as it can be told without a seal"
	}
	if !r.Whole {
		verdict = times(len(r.Damage), "thing is wrong", "things are wrong")
	}
	fmt.Fprintf(w, "%s: %s\n", oneTerminalLine(r.Workspace), verdict)
	fmt.Fprintf(w, "read\t%s, %s and %s among them; %d records of the log\n", times(r.Files, "file", "files"),
		times(r.Images, "image", "images"), times(r.Rows, "row", "rows"), r.Records)
	if r.SealedAt != nil {
		fmt.Fprintf(w, "sealed\t%s\n", r.SealedAt.Format(time.RFC3339))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", oneTerminalLine(n))
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "\n%s\t%s\n\tto mend it: %s\n", oneTerminalLine(d.Where), oneTerminalLine(d.What), d.Mend)
	}
	w.Flush()
}
