package main

import (
	"math"

	"github.com/spf13/cobra"

	"rehydrate/report"
	"rehydrate/study"
)

func (c *command) labelsModerationCommand() *cobra.Command {
	f := study.Flagging{ModerationRules: study.DefaultRules()}
	var t tableFlags
	cmd := newCommand("labels-moderation", takes(1, math.MaxInt, "one or more files of SCORES"), func(cmd *cobra.Command, args []string) error {
		switch err := t.check(c); {
		case f.Gold == "":
			return usageError("moderation needs the labels: --release RELEASE")
		case err != nil:
			return err
		}
		if err := areThere(args); err != nil {
			return err
		}
		table, err := study.Moderate(cmd.Context(), args, f)
		if err == nil {
			err = t.page.write(cmd.Context(), c, report.Study{Title: "Moderation by " + table.By, Moderation: &table.ModerationTable})
		}
		if err != nil {
			return err
		}
		return t.answer(c, "labels-moderation", table)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Gold, "release", "", "the `release` with the labels")
	flags.StringVar(&f.By, "by", "", "count by the labels of this `category` (default: the first that is a scale)")
	flags.StringVar(&f.Beside, "beside", "", "take means of severities with and without a label of this `category` (default for FigSIM: figurative)")
	flags.StringVar(&f.Split, "split", study.All, "count the entries of this `split` alone")
	flags.StringSliceVar(&f.SelfHarm, "self-harm", f.SelfHarm, "the `categories` of self-harm; any: every flag is one of self-harm")
	flags.Float64Var(&f.Severity, "severity", f.Severity, "the least severity that is a flag")
	flags.Float64Var(&f.Score, "score", f.Score, "the least score that is a flag, of a category that has only a score")
	flags.BoolVar(&f.Test, "test", false, "test whether severities differ with and without a label of --beside")
	t.register(cmd, "measure,service,label,group,flagged,n,value,low,high,p")
	t.page.register(cmd)
	return cmd
}
