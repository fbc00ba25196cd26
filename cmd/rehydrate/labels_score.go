package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/manifest"
	"rehydrate/study"
)

// registerTasks registers the flags that say what is scored, or weighted.
func registerTasks(cmd *cobra.Command, f *study.Tasks) {
	flags := cmd.Flags()
	f.Overrides = flags.Changed // perhaps to "", which takes the schema's default away
	flags.StringArrayVar(&f.Names, "task", nil, "")
	flags.StringArrayVar(&f.Merge, "merge", nil, "")
	flags.StringArrayVar(&f.LeaveOut, "leave-out", nil, "")
}

func (c *command) labelsScoreCommand() *cobra.Command {
	var f study.Scoring
	var compare []string
	cmd := newCommand("labels-score", takes(0, math.MaxInt, "files of PREDICTIONS"),
		func(cmd *cobra.Command, args []string) error {
			switch {
			case f.Gold == "":
				return usageError("%s needs --release RELEASE, which has the true labels", cmd.CommandPath())
			case len(f.Columns) > 0 && f.Probabilities:
				return usageError("--column and --probabilities exclude each other; leave one of them out")
			case len(compare) > 0 && len(args) > 0:
				return usageError("--compare names the files; leave %s out, or put it into --compare NAME=FILE,FILE",
					args[0])
			case len(compare) > 0:
				models, err := study.Compare(cmd.Context(), "compare", compare, f)
				if err != nil {
					return err
				}
				return c.answer("labels-compare", models)
			case len(args) == 0:
				return usageError("%s needs one or more files of PREDICTIONS", cmd.CommandPath())
			}
			if err := areThere(args); err != nil {
				return err
			}
			scores, err := study.Score(cmd.Context(), args, f)
			if err != nil {
				return err
			}
			return c.answer("labels-score", scores)
		})
	registerTasks(cmd, &f.Tasks)
	flags := cmd.Flags()
	flags.StringVar(&f.Gold, "release", "", "")
	flags.StringVar(&f.Split, "split", "", "")
	flags.StringVar(&f.By, "by", "", "")
	flags.StringArrayVar(&f.ErrorsBy, "errors-by", nil, "")
	flags.StringArrayVar(&compare, "compare", nil, "")
	flags.StringArrayVar(&f.Columns, "column", nil, "")
	flags.BoolVar(&f.Probabilities, "probabilities", false, "")
	flags.StringVar(&f.TuneOn, "tune-on", "validation", "")
	return cmd
}

func (c *command) labelsWeightsCommand() *cobra.Command {
	var f study.Tasks
	var split string
	cmd := newCommand("labels-weights", exactArgs(1, aRelease), func(cmd *cobra.Command, args []string) error {
		weights, err := study.Weights(cmd.Context(), args[0], split, f)
		if err != nil {
			return err
		}
		return c.answer("labels-weights", weights)
	})
	registerTasks(cmd, &f)
	cmd.Flags().StringVar(&split, "split", manifest.DefaultSplit, "")
	return cmd
}

func someOf(n int, ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	if len(ids) < n { // only the first few are named
		ids = append(slices.Clone(ids), "...")
	}
	return " (" + strings.Join(ids, ", ") + ")"
}

// countsOf prints the numbers of the files, once where they are equal.
func countsOf(numbers []int) string {
	if slices.Min(numbers) == slices.Max(numbers) {
		return fmt.Sprint(numbers[0])
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

func rate(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(n)/float64(of))
}
