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
	cmd := newCommand("labels-moderation", takes(1, math.MaxInt, "one or more files of SCORES"),
		func(cmd *cobra.Command, args []string) error {
			err := t.check(c)
			switch {
			case f.Gold == "":
				return usageError("%s needs --release RELEASE, which has the labels", cmd.CommandPath())
			case err != nil:
				return err
			}
			err = areThere(args)
			if err != nil {
				return err
			}
			table, err := study.Moderate(cmd.Context(), args, f)
			if err == nil {
				err = t.page.write(cmd.Context(), c, report.Study{Title: "Moderation by " + table.By,
					Moderation: &table.ModerationTable})
			}
			if err != nil {
				return err
			}
			return t.answer(c, "labels-moderation", table)
		})
	flags := cmd.Flags()
	flags.StringVar(&f.Gold, "release", "", "")
	flags.StringVar(&f.By, "by", "", "")
	flags.StringVar(&f.Beside, "beside", "", "")
	flags.StringVar(&f.Split, "split", study.All, "")
	flags.StringSliceVar(&f.SelfHarm, "self-harm", f.SelfHarm, "")
	flags.Float64Var(&f.Severity, "severity", f.Severity, "")
	flags.Float64Var(&f.Score, "score", f.Score, "")
	flags.BoolVar(&f.Test, "test", false, "")
	t.register(cmd, "measure,service,label,group,flagged,n,value,low,high,p")
	t.page.register(cmd)
	return cmd
}
