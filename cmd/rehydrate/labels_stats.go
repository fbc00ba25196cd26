package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/clean"
)

func (c *command) labelsStatsCommand() *cobra.Command {
	var (
		asCSV   bool
		release string
	)
	cmd := newCommand("labels-stats", exactArgs(1, "one RELEASE or DATASET"), func(cmd *cobra.Command, args []string) error {
		if asCSV && c.json {
			return usageError("--csv and --json: choose one")
		}
		stats, schema, err := c.statsOf(cmd.Context(), args[0], release)
		switch {
		case err != nil:
			return err
		case asCSV:
			return writeCounts(c.stdout, stats)
		}
		return c.show(stats, func() { printStats(c.stdout, stats, schema) })
	})
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV with the columns split,category,code,count")
	cmd.Flags().StringVar(&release, "release", "", labelReleaseHelp)
	return cmd
}

// writeCounts writes one record for each split, category and label.
func writeCounts(out io.Writer, s labels.Stats) error {
	w := csv.NewWriter(out)
	if err := w.Write([]string{"split", "category", "code", "count"}); err != nil {
		return err
	}
	for i, split := range s.Splits {
		for _, c := range s.Categories {
			for _, l := range c.Labels {
				if err := w.Write([]string{split.Name, c.Name, clean.Cell(l.Code), strconv.Itoa(l.BySplit[i])}); err != nil {
					return err
				}
			}
		}
	}
	w.Flush()
	return w.Error()
}

// widest is how many labels stand side by side in one table: as many as fit a wide terminal.
const widest = 24

func printStats(out io.Writer, s labels.Stats, schema manifest.Schema) {
	for rest := s.Categories; len(rest) > 0; {
		n, width := 0, 0
		for n < len(rest) && (n == 0 || width+len(rest[n].Labels) <= widest) {
			width += len(rest[n].Labels)
			n++
		}
		printCounts(out, s, rest[:n])
		rest = rest[n:]
		fmt.Fprintln(out)
	}
	printCardinality(out, s)
	shown := func(category string) bool {
		return slices.ContainsFunc(schema.Tasks(), func(t manifest.Task) bool { return t.Category == category })
	}
	for _, p := range s.Pairs {
		if shown(p.Rows) && shown(p.Columns) {
			fmt.Fprintln(out)
			printPair(out, s, p)
		}
	}
}

// byCode orders a category's labels by the numbers in their codes, as papers print them. Without
// a common prefix and numbers the order of the schema stays.
func byCode(c labels.CategoryStats) []int {
	order := make([]int, len(c.Labels))
	numbers := make([]int, len(c.Labels))
	prefix := strings.TrimRight(c.Labels[0].Code, "0123456789")
	plain := true
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

// printCounts prints a table as FigSIM's Table 8: a line a split, a column a label.
func printCounts(out io.Writer, s labels.Stats, categories []labels.CategoryStats) {
	w := table(out, tabwriter.AlignRight)
	head := "split"
	for _, c := range categories {
		for _, l := range byCode(c) {
			head += "\t" + oneTerminalLine(c.Labels[l].Code)
		}
	}
	fmt.Fprintf(w, "%s\ttotal\t\n", head)
	line := func(name string, count func(labels.LabelStats) int, entries int) {
		fmt.Fprint(w, name)
		for _, c := range categories {
			for _, l := range byCode(c) {
				fmt.Fprintf(w, "\t%d", count(c.Labels[l]))
			}
		}
		fmt.Fprintf(w, "\t%d\t\n", entries)
	}
	for i, split := range s.Splits {
		line(split.Name, func(l labels.LabelStats) int { return l.BySplit[i] }, split.Entries)
	}
	if len(s.Splits) != 1 {
		line("all", func(l labels.LabelStats) int { return l.Count }, s.Entries)
	}
	w.Flush()
}

func printCardinality(out io.Writer, s labels.Stats) {
	w := table(out, 0)
	for _, c := range s.Categories {
		fmt.Fprintf(w, "%s\t%s\t", c.Name, oneTerminalLine(c.Title))
		if c.Kind == manifest.Multi {
			fmt.Fprintf(w, "%.2f labels an entry, None not counted", c.Cardinality)
		} else {
			fmt.Fprint(w, "one label an entry")
		}
		for _, l := range c.Labels {
			if l.Exclusive {
				fmt.Fprintf(w, "; %s with %s (%s)", times(l.Count, "entry", "entries"), oneTerminalLine(l.Code), oneTerminalLine(l.Name))
			}
		}
		if c.Unlabelled > 0 {
			fmt.Fprintf(w, "; %s without any label", times(c.Unlabelled, "entry", "entries"))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// printPair prints the shares of a pair of categories in percent of each row.
func printPair(out io.Writer, s labels.Stats, p labels.Pair) {
	find := func(name string) labels.CategoryStats {
		return s.Categories[slices.IndexFunc(s.Categories, func(c labels.CategoryStats) bool { return c.Name == name })]
	}
	rows, columns := find(p.Rows), find(p.Columns)
	w := table(out, tabwriter.AlignRight)
	fmt.Fprintf(out, "%s by %s, percent of each row\n", p.Rows, p.Columns)
	for _, l := range byCode(columns) {
		fmt.Fprintf(w, "\t%s", oneTerminalLine(columns.Labels[l].Code))
	}
	fmt.Fprintln(w, "\t")
	shares := p.Shares()
	for _, r := range byCode(rows) {
		fmt.Fprint(w, oneTerminalLine(rows.Labels[r].Code))
		for _, l := range byCode(columns) {
			fmt.Fprintf(w, "\t%.1f", 100*shares[r][l])
		}
		fmt.Fprintln(w, "\t")
	}
	w.Flush()
}
