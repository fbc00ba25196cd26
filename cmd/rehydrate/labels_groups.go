package main

import (
	"math"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"rehydrate/report"
	"rehydrate/study"
)

func (c *command) labelsGroupsCommand() *cobra.Command {
	var f study.Grouping
	var t tableFlags
	cmd := newCommand("labels-groups", exactArgs(1, "one file of FEATURES"),
		func(cmd *cobra.Command, args []string) error {
			err := t.check(c)
			switch {
			case f.Gold == "":
				return usageError("%s needs --release RELEASE, which has the labels", cmd.CommandPath())
			case err != nil:
				return err
			case !(f.Alpha > 0 && f.Alpha < 1):
				return usageError("--alpha takes a number between 0 and 1, such as 0.05, not %g", f.Alpha)
			}
			err = areThere(args)
			if err != nil {
				return err
			}
			groups, err := study.TestGroups(cmd.Context(), args[0], f)
			if err == nil {
				err = t.page.write(cmd.Context(), c, report.Study{Title: "Features by " + groups.By, Tests: testsOf(groups)})
			}
			if err != nil {
				return err
			}
			return t.answer(c, "labels-groups", groups)
		})
	flags := cmd.Flags()
	flags.StringVar(&f.Gold, "release", "", "")
	flags.StringVar(&f.By, "by", "", "")
	flags.StringVar(&f.Split, "split", study.All, "")
	flags.StringVar(&f.ID, "id", "", "")
	flags.StringArrayVar(&f.Features, "feature", nil, "")
	flags.StringArrayVar(&f.YesNo, "yes-no", nil, "")
	flags.Float64Var(&f.Alpha, "alpha", 0.05, "")
	t.register(cmd, "feature,label,group,other,measure,value")
	t.page.register(cmd)
	return cmd
}

// testsOf gives tests as a page shows them.
func testsOf(g study.Groups) *report.Tests {
	return &report.Tests{By: g.By, File: filepath.Base(g.File.File), Alpha: g.Alpha, Tests: g.Tests}
}

// fiveDigits writes a number as people compare them.
func fiveDigits(v float64) string {
	if math.Abs(v) >= 1e5 && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
