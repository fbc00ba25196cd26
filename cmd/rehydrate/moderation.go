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
	"rehydrate/pipeline/clean"
	"rehydrate/pipeline/report"
)

func (c *command) moderationCommand() *cobra.Command {
	return newGroup("moderation", c.moderationTableCommand())
}

// moderationFlags are the flags of `moderation table`.
type moderationFlags struct {
	gold, by, beside, split string
	selfHarm                []string
	severity, score         float64
	test, asCSV             bool
	page                    pageFlags
}

// selfHarmNames are the categories of self-harm of OpenAI, Azure and Llama Guard.
func selfHarmNames() []string {
	return []string{"self-harm", "self-harm/intent", "self-harm/instructions", "S11"}
}

// anyIsSelfHarm as a category counts every flag as one of self-harm.
const anyIsSelfHarm = "any"

func (c *command) moderationTableCommand() *cobra.Command {
	var f moderationFlags
	cmd := newCommand("moderation-table", takes(1, math.MaxInt, "one or more files of SCORES"), func(cmd *cobra.Command, args []string) error {
		return c.moderationTable(cmd.Context(), args, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.gold, "gold", "", "the `release` with the labels")
	flags.StringVar(&f.by, "by", "", "count by the labels of this `category` (default: the first that is a scale)")
	flags.StringVar(&f.beside, "beside", "", "take means of severities with and without a label of this `category` (default for FigSIM: figurative)")
	flags.StringVar(&f.split, "split", allSplits, "count the entries of this `split` alone")
	flags.StringSliceVar(&f.selfHarm, "self-harm", selfHarmNames(),
		"the `categories` of self-harm; any: every flag is one of self-harm")
	flags.Float64Var(&f.severity, "severity", 1, "the least severity that is a flag")
	flags.Float64Var(&f.score, "score", 0.5, "the least score that is a flag, of a category that has only a score")
	flags.BoolVar(&f.test, "test", false, "test whether severities differ with and without a label of --beside")
	flags.BoolVar(&f.asCSV, "csv", false, "print CSV with the columns measure,service,label,group,flagged,n,value,low,high,p")
	f.page.register(cmd)
	return cmd
}

// moderationReport is what `moderation table --json` prints.
type moderationReport struct {
	Split string `json:"split"`
	labels.ModerationTable
}

func (c *command) moderationTable(ctx context.Context, files []string, f moderationFlags) error {
	switch {
	case f.gold == "":
		return usageError("the table needs the labels: --gold RELEASE")
	case f.asCSV && c.json:
		return usageError("--csv and --json: choose one")
	}
	if err := f.page.check(c, "--html"); err != nil {
		return err
	}
	table, err := f.tabulate(ctx, files)
	if err != nil {
		return err
	}
	if err := f.page.write(ctx, c, report.Study{Title: "Moderation by " + table.By, Moderation: &table.ModerationTable}); err != nil {
		return err
	}
	if f.asCSV {
		return writeModeration(c.stdout, table.ModerationTable)
	}
	return c.answer("moderation-table", table)
}

func (f moderationFlags) tabulate(ctx context.Context, files []string) (out moderationReport, err error) {
	gold, err := likeRelease(ctx, f.gold)
	if err != nil {
		return out, err
	}
	by, err := categoryToGroup(gold.Schema, f.by)
	if err != nil {
		return out, err
	}
	beside := f.beside
	for _, t := range gold.Schema.Tasks() {
		if beside == "" && t.Category == gold.Schema.Categories[by].Name {
			beside = t.By
		}
	}
	entries, others, split, err := goldEntries(ctx, gold, f.split)
	if err != nil {
		return out, err
	}
	rules := labels.ModerationRules{SelfHarm: f.selfHarm, Severity: f.severity, Score: f.score}
	if slices.Contains(f.selfHarm, anyIsSelfHarm) {
		rules.SelfHarm = nil
	}
	var all []labels.Judgements
	for _, file := range files {
		judged, err := readJudgements(file, rules)
		if err != nil {
			return out, err
		}
		all = append(all, judged)
	}
	out.Split = split
	out.ModerationTable, err = labels.TabulateModeration(gold.Schema, gold.Schema.Categories[by].Name, beside, f.test, entries, others, all)
	if err != nil {
		return out, asUsage(err)
	}
	// A file's name without its ending names its column, as long as that tells files apart.
	names := make(map[string]int)
	short := func(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }
	for _, s := range out.Services {
		names[short(s.Name)]++
	}
	for i, s := range out.Services {
		if names[short(s.Name)] == 1 {
			out.Services[i].Name = short(s.Name)
		}
	}
	return out, nil
}

func readJudgements(file string, rules labels.ModerationRules) (labels.Judgements, error) {
	f, err := openRegular(file)
	if err != nil {
		return labels.Judgements{}, asUsage(err)
	}
	defer f.Close()
	judged, err := labels.ReadJudgements(f, file, rules)
	if err != nil {
		return labels.Judgements{}, asUsage(err)
	}
	return judged, nil
}

// Blocks are the two halves of the table.
func (r moderationReport) Blocks() []string { return []string{"self-harm", "overall"} }

// WithSeverity are the services that tell severities.
func (r moderationReport) WithSeverity() []labels.ServiceRow {
	return slices.DeleteFunc(slices.Clone(r.Services), func(s labels.ServiceRow) bool {
		return !slices.ContainsFunc(s.Labels, func(l labels.LabelRate) bool { return l.Severity != nil })
	})
}

// flagRate writes a share of one of the blocks as the paper does, with its counts.
func flagRate(block string, l labels.LabelRate) string {
	r := l.SelfHarm
	if block == "overall" {
		r = l.Overall
	}
	if r.Rate == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f %d/%d", *r.Rate, r.Flagged, r.N)
}

// writeModeration writes one record for each number of the table.
func writeModeration(out io.Writer, t labels.ModerationTable) error {
	rows := [][]string{{"measure", "service", "label", "group", "flagged", "n", "value", "low", "high", "p"}}
	text := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, s := range t.Services {
		for _, l := range s.Labels {
			service, label := clean.Cell(s.Name), clean.Cell(l.Code) // which come from files
			for _, r := range []struct {
				measure string
				labels.Rate
			}{{"self_harm", l.SelfHarm}, {"overall", l.Overall}} {
				rows = append(rows, []string{r.measure, service, label, "", strconv.Itoa(r.Flagged), strconv.Itoa(r.N), text(r.Rate.Rate),
					text(r.Low), text(r.High), ""})
			}
			for _, m := range l.Severity {
				rows = append(rows, []string{"mean_severity", service, label, m.Group, "", strconv.Itoa(m.N), text(m.Mean), "", "", text(m.P)})
			}
		}
	}
	return csv.NewWriter(out).WriteAll(rows)
}
