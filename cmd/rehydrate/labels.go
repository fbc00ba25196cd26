package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rehydrate/internal/printable"
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
			return t.answer(c, "labels-stats", statsTablesOf(stats, schema))
		})
	t.register(cmd, "split,category,code,count")
	cmd.Flags().StringVar(&release, "release", "", "")
	return cmd
}

// statsTables are statistics as people read them.
type statsTables struct {
	labels.Stats
	Counts []textTable  `json:"-"`
	Shown  []pairTables `json:"-"`
}

// pairTables show a pair of categories, whose names they have.
type pairTables struct {
	labels.Pair
	Tables []textTable
}

// A textTable has rows of cells, as they are printed.
type textTable [][]string

// A column is one of a textTable, its head first.
type column []string

func (c column) width() int {
	width := 0
	for _, cell := range c {
		width = max(width, utf8.RuneCountInString(cell))
	}
	return width + 2 // as aligned sets it
}

// tablesOf sets columns beside the first one, and before the last one if there is one, in as many tables as it takes to
// fit a terminal of 80 columns. A group of columns is cut only where it is wider than one table.
func tablesOf(first column, groups [][]column, last ...column) []textTable {
	room := 80 - first.width()
	for _, c := range last {
		room -= c.width()
	}
	var tables [][]column
	left := 0 // of the room in the last table
	for _, group := range groups {
		whole := 0
		for _, c := range group {
			whole += c.width()
		}
		begins := whole > left
		for _, c := range group {
			if begins || c.width() > left {
				tables, left = append(tables, nil), room
			}
			begins = false
			at := len(tables) - 1
			tables[at], left = append(tables[at], c), left-c.width()
		}
	}
	rows := make([]textTable, len(tables))
	for i, columns := range tables {
		rows[i] = make(textTable, len(first))
		for _, c := range slices.Concat([]column{first}, columns, last) {
			for row, cell := range c {
				rows[i][row] = append(rows[i][row], cell)
			}
		}
	}
	return rows
}

func statsTablesOf(s labels.Stats, schema manifest.Schema) statsTables {
	t := statsTables{Stats: s, Counts: countTables(s)}
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
			t.Shown = append(t.Shown, pairTables{p, sharesOf(p, row, column)})
		}
	}
	return t
}

// countTables counts the labels of all categories by split, over all splits if there are several, and in the rows of a
// release that has several an image.
func countTables(s labels.Stats) []textTable {
	first, total := column{"split"}, column{"total"}
	for _, split := range s.Splits {
		first, total = append(first, printable.EscapedLine(cmp.Or(split.Name, "not told"))),
			append(total, strconv.Itoa(split.Entries))
	}
	several := len(s.Splits) != 1
	if several {
		first, total = append(first, "all"), append(total, strconv.Itoa(s.Entries))
	}
	if s.Annotations > 0 {
		first, total = append(first, "annotations"), append(total, strconv.Itoa(s.Annotations))
	}
	var groups [][]column
	for _, c := range s.Categories {
		var group []column
		for _, i := range byCode(c) {
			l := c.Labels[i]
			counts := column{printable.EscapedLine(l.Code)}
			for _, n := range l.BySplit {
				counts = append(counts, strconv.Itoa(n))
			}
			if several {
				counts = append(counts, strconv.Itoa(l.Count))
			}
			if s.Annotations > 0 {
				counts = append(counts, strconv.Itoa(l.Annotations))
			}
			group = append(group, counts)
		}
		groups = append(groups, group)
	}
	return tablesOf(first, groups, total)
}

// sharesOf shows the percentages of each row of a pair.
func sharesOf(p labels.Pair, row, col labels.CategoryStats) []textTable {
	first := column{""}
	for _, r := range byCode(row) {
		first = append(first, printable.EscapedLine(row.Labels[r].Code))
	}
	all := p.Shares()
	var group []column
	for _, i := range byCode(col) {
		shares := column{printable.EscapedLine(col.Labels[i].Code)}
		for _, r := range byCode(row) {
			shares = append(shares, fmt.Sprintf("%.1f", 100*all[r][i]))
		}
		group = append(group, shares)
	}
	return tablesOf(first, [][]column{group})
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
