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
	cmd := newCommand("labels-groups", exactArgs(1, "one file of FEATURES"), func(cmd *cobra.Command, args []string) error {
		switch err := t.check(c); {
		case f.Gold == "":
			return usageError("groups needs the labels: --release RELEASE")
		case err != nil:
			return err
		case !(f.Alpha > 0 && f.Alpha < 1):
			return usageError("--alpha is a number between 0 and 1, such as 0.05")
		}
		if err := areThere(args); err != nil {
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
	flags.StringVar(&f.Gold, "release", "", "the `release` with the labels")
	flags.StringVar(&f.By, "by", "", "test between the labels of this `category` (default: the first that is a scale)")
	flags.StringVar(&f.Split, "split", study.All, "test the entries of this `split` alone")
	flags.StringVar(&f.ID, "id", "", "the `column` with the post ids (default: one that people keep ids in)")
	flags.StringArrayVar(&f.Features, "feature", nil, "test this `column` (repeatable; default: all columns of numbers)")
	flags.StringArrayVar(&f.YesNo, "yes-no", nil, "1 and 0 of this `column` mean yes and no (repeatable; default: what features.json declares, and true, yes, false, no)")
	flags.Float64Var(&f.Alpha, "alpha", 0.05, "mark pairs whose corrected p is below this `number`")
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
