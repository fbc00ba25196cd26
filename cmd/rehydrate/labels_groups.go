package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/pipeline/clean"
	"rehydrate/pipeline/report"
)

// groupsFlags are the flags of `labels groups`.
type groupsFlags struct {
	gold, by, split, id string
	features            []string
	alpha               float64
	asCSV               bool
	page                pageFlags
}

func (c *command) labelsGroupsCommand() *cobra.Command {
	var f groupsFlags
	cmd := newCommand("labels-groups", exactArgs(1, "one file of FEATURES"), func(cmd *cobra.Command, args []string) error {
		return c.labelsGroups(cmd.Context(), args[0], f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.gold, "gold", "", "the `release` with the labels")
	flags.StringVar(&f.by, "by", "", "test between the labels of this `category` (default: the first that is a scale)")
	flags.StringVar(&f.split, "split", allSplits, "test the entries of this `split` alone")
	flags.StringVar(&f.id, "id", "", "the `column` with the post ids (default: one that people keep ids in)")
	flags.StringArrayVar(&f.features, "feature", nil, "test this `column` (repeatable; default: all columns of numbers)")
	flags.Float64Var(&f.alpha, "alpha", 0.05, "mark pairs whose corrected p is below this `number`")
	flags.BoolVar(&f.asCSV, "csv", false, "print CSV with the columns feature,label,group,other,measure,value")
	f.page.register(cmd)
	return cmd
}

// groupsReport is what `labels groups --json` prints.
type groupsReport struct {
	By      string                 `json:"by"`
	Split   string                 `json:"split"`
	Entries int                    `json:"entries"` // of the split
	File    labels.FileScore       `json:"file"`
	Without int                    `json:"without_label"` // entries of the file that have no answer for the category
	Alpha   float64                `json:"alpha"`
	LeftOut []manifest.OtherColumn `json:"left_out,omitempty"`
	Tests   []labels.GroupTest     `json:"tests"`
}

func (c *command) labelsGroups(ctx context.Context, file string, f groupsFlags) error {
	switch {
	case f.gold == "":
		return usageError("groups needs the labels: --gold RELEASE")
	case f.asCSV && c.json:
		return usageError("--csv and --json: choose one")
	case !(f.alpha > 0 && f.alpha < 1):
		return usageError("--alpha is a number between 0 and 1, such as 0.05")
	}
	if err := f.page.check(c, "--html"); err != nil {
		return err
	}
	found, err := f.test(ctx, file)
	if err != nil {
		return err
	}
	if err := f.page.write(ctx, c, report.Study{Title: "Features by " + found.By, Tests: f.shown(found)}); err != nil {
		return err
	}
	if f.asCSV {
		return writeGroups(c.stdout, found.Tests)
	}
	return c.answer("labels-groups", found)
}

// shown gives tests as a page shows them.
func (f groupsFlags) shown(found groupsReport) *report.Tests {
	return &report.Tests{By: found.By, File: filepath.Base(found.File.File), Alpha: f.alpha, Tests: found.Tests}
}

func (f groupsFlags) test(ctx context.Context, file string) (out groupsReport, err error) {
	gold, err := likeRelease(ctx, f.gold)
	if err != nil {
		return out, err
	}
	by, err := categoryToGroup(gold.Schema, f.by)
	if err != nil {
		return out, err
	}
	entries, others, split, err := goldEntries(ctx, gold, f.split)
	if err != nil {
		return out, err
	}
	numbers, err := manifest.ReadNumbers(ctx, file, f.id, withNames)
	if err != nil {
		return out, asUsage(err)
	}
	columns, err := f.choose(numbers)
	if err != nil {
		return out, err
	}
	rows := make(map[manifest.Key]int, len(numbers.Keys))
	for i, key := range numbers.Keys {
		rows[key] = i
	}
	out = groupsReport{By: gold.Schema.Categories[by].Name, Split: split, Entries: len(entries), Alpha: f.alpha,
		File: labels.MatchIDs(file, entries, others, rows), LeftOut: numbers.Others}
	// What a file says nothing about is not a missing value of each of its features.
	entries = slices.DeleteFunc(entries, func(e manifest.Entry) bool {
		_, ok := rows[e.Key]
		return !ok
	})
	if len(entries) == 0 {
		return out, usageError("no row of %s is about an entry of split %s", file, split)
	}
	var features []labels.Feature
	for _, column := range columns {
		feature := labels.Feature{Name: column.Name}
		for _, e := range entries {
			feature.Values = append(feature.Values, column.Values[rows[e.Key]])
		}
		features = append(features, feature)
	}
	for _, e := range entries {
		if e.Labels[by] == nil {
			out.Without++
		}
	}
	out.Tests, err = labels.CompareGroups(gold.Schema, out.By, entries, features)
	return out, err
}

// categoryToGroup gives the place of a category; for "" of the first that is a scale.
func categoryToGroup(schema manifest.Schema, name string) (int, error) {
	var names []string
	for i, c := range schema.Categories {
		if c.Name == name || name == "" && c.Kind == manifest.Ordinal {
			return i, nil
		}
		names = append(names, c.Name)
	}
	if name == "" {
		return 0, usageError("no category is a scale: name one of %s with --by", strings.Join(names, ", "))
	}
	return 0, usageError("--by: the release has no category %q; it has %s", name, strings.Join(names, ", "))
}

// choose gives the columns of --feature, or all.
func (f groupsFlags) choose(numbers manifest.Numbers) ([]manifest.NumberColumn, error) {
	if f.features == nil {
		return numbers.Columns, nil
	}
	var chosen []manifest.NumberColumn
	for _, name := range f.features {
		for _, other := range numbers.Others {
			if other.Name == name {
				return nil, usageError("--feature %s: the column does not hold numbers: %s", name, otherText(other))
			}
		}
		i := slices.IndexFunc(numbers.Columns, func(c manifest.NumberColumn) bool { return c.Name == name })
		if i < 0 {
			return nil, usageError("--feature %s: the file has no such column of numbers", name)
		}
		chosen = append(chosen, numbers.Columns[i])
	}
	return chosen, nil
}

// otherText says what is in a column that does not hold numbers.
func otherText(c manifest.OtherColumn) string {
	if c.Line == 0 {
		return "it has no value at all"
	}
	return fmt.Sprintf("a text on line %d", c.Line)
}

// writeGroups writes one record for each number.
func writeGroups(out io.Writer, tests []labels.GroupTest) error {
	rows := [][]string{{"feature", "label", "group", "other", "measure", "value"}}
	for _, t := range tests {
		add := func(group, other, measure string, value float64) {
			cells := []string{t.Feature, t.Label, group, other}
			for i, cell := range cells { // which come from files: a spreadsheet must not read them as formulas
				cells[i] = clean.Cell(cell)
			}
			rows = append(rows, append(cells, measure, strconv.FormatFloat(value, 'g', -1, 64)))
		}
		add("", "", "n", float64(t.N))
		add("", "", "missing", float64(t.Missing))
		for _, g := range t.Groups {
			add(g.Code, "", "n", float64(g.N))
			add(g.Code, "", "missing", float64(g.Missing))
			if v := g.Values; v != nil {
				add(g.Code, "", "mean", v.Mean)
				add(g.Code, "", "mean_rank", v.MeanRank)
				add(g.Code, "", "q1", v.Q1)
				add(g.Code, "", "median", v.Median)
				add(g.Code, "", "q3", v.Q3)
			}
		}
		r := t.Result
		if r == nil {
			continue
		}
		add("", "", "h", r.H)
		add("", "", "freedom", float64(r.Freedom))
		add("", "", "p", r.P)
		add("", "", "p_holm", r.PHolm)
		add("", "", "epsilon_squared", r.EpsilonSquared)
		if r.EtaSquared != nil {
			add("", "", "eta_squared", *r.EtaSquared)
		}
		for _, p := range r.Pairs {
			add(p.A, p.B, "z", p.Z)
			add(p.A, p.B, "p", p.P)
			add(p.A, p.B, "p_bonferroni", p.PBonferroni)
		}
	}
	return csv.NewWriter(out).WriteAll(rows)
}

// fiveDigits writes a number as people compare them.
func fiveDigits(v float64) string {
	if math.Abs(v) >= 1e5 && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
