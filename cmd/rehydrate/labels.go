package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/study"
)

func (c *command) labelsCommand() *cobra.Command {
	return newGroup("labels", c.labelsStatsCommand(), c.labelsSplitCommand(), c.labelsAgreementCommand(),
		c.labelsScoreCommand(),
		c.labelsGroupsCommand(), c.labelsWeightsCommand(), c.labelsModerationCommand())
}

func (c *command) labelsStatsCommand() *cobra.Command {
	var t tableFlags
	var release string
	cmd := newCommand("labels-stats", exactArgs(1, "one RELEASE or DATASET"),
		func(cmd *cobra.Command, args []string) error {
			if err := t.check(c); err != nil {
				return err
			}
			if err := areThere(args); err != nil {
				return err
			}
			stats, schema, err := study.Stats(cmd.Context(), args[0], release)
			if err != nil {
				return err
			}
			return t.answer(c, "labels-stats", tablesOf(stats, schema))
		})
	t.register(cmd, "split,category,code,count")
	cmd.Flags().StringVar(&release, "release", "", "")
	return cmd
}

// statsTables are statistics as people read them.
type statsTables struct {
	labels.Stats
	Counts []countsTable `json:"-"`
	Shown  []statsPair   `json:"-"`
}

// A countsTable counts the labels of categories that stand side by side.
type countsTable struct {
	labels.Stats
	Shown []labels.CategoryStats
}

// A statsPair is a pair of categories, whose names it has, with the categories.
type statsPair struct {
	labels.Pair
	Row, Column labels.CategoryStats
}

func tablesOf(s labels.Stats, schema manifest.Schema) statsTables {
	t := statsTables{Stats: s}
	const widest = 24 // labels side by side, as many as fit a wide terminal
	for rest := s.Categories; len(rest) > 0; {
		n, width := 0, 0
		for n < len(rest) && (n == 0 || width+len(rest[n].Labels) <= widest) {
			width += len(rest[n].Labels)
			n++
		}
		t.Counts, rest = append(t.Counts, countsTable{s, rest[:n]}), rest[n:]
	}
	// Every two categories would be many tables: those of tasks are what a paper shows.
	tasks := map[string]labels.CategoryStats{}
	for _, c := range s.Categories {
		if slices.ContainsFunc(schema.Tasks(), func(task manifest.Task) bool { return task.Category == c.Name }) {
			tasks[c.Name] = c
		}
	}
	for _, p := range s.Pairs {
		row, isRow := tasks[p.Rows]
		column, isColumn := tasks[p.Columns]
		if isRow && isColumn {
			t.Shown = append(t.Shown, statsPair{p, row, column})
		}
	}
	return t
}

// byCode orders a category's labels by the numbers in their codes, as papers print them.
func byCode(c labels.CategoryStats) []int {
	order := make([]int, len(c.Labels))
	numbers := make([]int, len(c.Labels))
	prefix := strings.TrimRight(c.Labels[0].Code, "0123456789")
	plain := true // without a common prefix and numbers the order of the schema stays
	for i, l := range c.Labels {
		n, err := strconv.Atoi(strings.TrimPrefix(l.Code, prefix))
		order[i], numbers[i] = i, n
		plain = plain && err == nil && strings.HasPrefix(l.Code, prefix)
	}
	if plain {
		slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	}
	return order
}

func decimal(v *float64, digits int) string {
	if v == nil { // a measure that is not defined
		return "-"
	}
	s := strconv.FormatFloat(*v, 'f', digits, 64)
	if bare := strings.TrimPrefix(s, "-"); strings.Trim(bare, "0.") == "" {
		return bare // -0.00
	}
	return s
}
