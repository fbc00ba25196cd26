package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
)

// scoreFlags are the flags of `labels score`.
type scoreFlags struct {
	gold, split, by        string
	tasks, merge, leaveOut []string
	merged, left, byGiven  bool // given, perhaps as "", which takes the schema's default away
}

func (c *command) labelsScoreCommand() *cobra.Command {
	var f scoreFlags
	cmd := newCommand("labels-score", takes(1, math.MaxInt, "one or more files of PREDICTIONS"), func(cmd *cobra.Command, args []string) error {
		f.merged, f.left, f.byGiven = cmd.Flags().Changed("merge"), cmd.Flags().Changed("leave-out"), cmd.Flags().Changed("by")
		return c.labelsScore(cmd.Context(), args, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.gold, "gold", "", "the `release` with the true labels")
	flags.StringVar(&f.split, "split", "", "the `split` that is scored, or all (default: test where there is one, else all)")
	flags.StringArrayVar(&f.tasks, "task", nil, "score this `category` (repeatable; default: the schema's tasks)")
	flags.StringArrayVar(&f.merge, "merge", nil, "score these `codes` as one class, such as SS4+SS5 (repeatable; \"\" for none; default for FigSIM: SS4+SS5)")
	flags.StringArrayVar(&f.leaveOut, "leave-out", nil, "do not score this `code` (repeatable; \"\" for none; default for FigSIM: SR5)")
	flags.StringVar(&f.by, "by", "", "tell errors of ordinal tasks by the labels of this `category` too (default for FigSIM: figurative)")
	return cmd
}

// resolve gives the tasks that the flags and the schema ask for.
func (f scoreFlags) resolve(schema manifest.Schema) ([]labels.Task, error) {
	tasks := schema.Tasks()
	if len(f.tasks) > 0 {
		known := tasks
		tasks = nil
		for _, name := range f.tasks {
			i := slices.IndexFunc(known, func(t manifest.Task) bool { return t.Category == name })
			if i < 0 { // a category that is not a task of the schema can be scored too
				known, i = append(known, manifest.Task{Category: name}), len(known)
			}
			if slices.ContainsFunc(tasks, func(t manifest.Task) bool { return t.Category == name }) {
				return nil, usageError("--task %s stands twice", name)
			}
			tasks = append(tasks, known[i])
		}
	}
	for i := range tasks {
		if f.merged {
			tasks[i].Merge = nil
		}
		if f.left {
			tasks[i].LeaveOut = nil
		}
		if f.byGiven {
			tasks[i].By = f.by
		}
	}
	if f.by != "" && !slices.ContainsFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == f.by }) {
		return nil, usageError("--by: there is no category %q", f.by)
	}
	for _, flag := range []struct {
		name   string
		groups []string
		add    func(*manifest.Task, []string)
	}{
		{"--merge", f.merge, func(t *manifest.Task, codes []string) { t.Merge = append(t.Merge, codes) }},
		{"--leave-out", f.leaveOut, func(t *manifest.Task, codes []string) { t.LeaveOut = append(t.LeaveOut, codes...) }},
	} {
		for _, group := range flag.groups {
			if group == "" {
				continue
			}
			codes := strings.Split(group, "+")
			category, err := categoryOf(schema, codes[0])
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(tasks, func(t manifest.Task) bool { return t.Category == category })
			if i < 0 {
				return nil, usageError("%s %s: category %s is not scored; add it with --task %s", flag.name, group, category, category)
			}
			flag.add(&tasks[i], codes)
		}
	}
	var out []labels.Task
	for _, t := range tasks {
		task, err := labels.NewTask(schema, t)
		if err != nil {
			return nil, usageError("%w", err)
		}
		out = append(out, task)
	}
	return out, nil
}

// categoryOf is the one category that has a label with the code.
func categoryOf(schema manifest.Schema, code string) (string, error) {
	var found, codes []string
	for _, c := range schema.Categories {
		for _, l := range c.Labels {
			codes = append(codes, l.Code)
			if l.Code == code {
				found = append(found, c.Name)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0: // most likely misspelt
		err := usageError("no category has a label with the code %q", code)
		if near := manifest.Nearest(code, codes); near != "" {
			err = &problem{err: err, code: exitUsage, hint: "did you mean " + near + "?"}
		}
		return "", err
	}
	return "", usageError("code %q stands for labels of both %s and %s", code, found[0], found[1])
}

const allSplits = "all"

// goldEntries reads the entries of a split, and the ids of the others. "" is test where there is one, else all.
func goldEntries(ctx context.Context, r *manifest.Release, of string) (gold []manifest.Entry, others map[manifest.Key]bool, split string, err error) {
	var all []manifest.Entry
	var splits []string
	for e, err := range r.Entries(ctx) {
		if err != nil {
			return nil, nil, "", asUsage(err)
		}
		all = append(all, e)
		if !slices.Contains(splits, e.Split) {
			splits = append(splits, e.Split)
		}
	}
	split = of
	if split == "" {
		split = allSplits
		if slices.Contains(splits, "test") {
			split = "test"
		}
	}
	if split != allSplits && !slices.Contains(splits, split) {
		return nil, nil, "", usageError("--split: the release has no split %q; it has %s", split, strings.Join(splits, ", "))
	}
	others = make(map[manifest.Key]bool)
	for _, e := range all {
		if split == allSplits || e.Split == split {
			gold = append(gold, e)
		} else {
			others[e.Key] = true
		}
	}
	return gold, others, split, nil
}

// scoreReport is what `labels score --json` prints.
type scoreReport struct {
	Split string `json:"split"`
	labels.Scores
}

func (c *command) labelsScore(ctx context.Context, files []string, f scoreFlags) error {
	if f.gold == "" {
		return usageError("score needs the true labels: --gold RELEASE")
	}
	gold, err := likeRelease(ctx, f.gold)
	if err != nil {
		return err
	}
	tasks, err := f.resolve(gold.Schema)
	if err != nil {
		return err
	}
	entries, others, split, err := goldEntries(ctx, gold, f.split)
	if err != nil {
		return err
	}
	var predictions []labels.Predictions
	for _, file := range files {
		all, err := readTable(ctx, file, gold)
		if err != nil {
			return err
		}
		predictions = append(predictions, labels.Predictions{File: file, Labels: all})
	}
	scores, err := labels.Score(gold.Schema, tasks, entries, others, predictions)
	if err != nil {
		return asUsage(err)
	}
	return c.answer("labels-score", scoreReport{split, scores})
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

func percent(s labels.Spread) string {
	if s.SD == nil { // of one file
		return fmt.Sprintf("%.2f", 100*s.Mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100**s.SD)
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
