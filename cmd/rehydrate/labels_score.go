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

// taskFlags say what is scored, or weighted.
type taskFlags struct {
	tasks, merge, leaveOut, errorsBy []string
	by                               string
	given                            func(flag string) bool // perhaps as "", which takes the schema's default away
}

func (f *taskFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.given = flags.Changed
	flags.StringArrayVar(&f.tasks, "task", nil, "take this `category` (repeatable; default: the schema's tasks)")
	flags.StringArrayVar(&f.merge, "merge", nil, "take these `codes` as one class, such as SS4+SS5 (repeatable; \"\" for none; default for FigSIM: SS4+SS5)")
	flags.StringArrayVar(&f.leaveOut, "leave-out", nil, "leave this `code` out (repeatable; \"\" for none; default for FigSIM: SR5)")
}

// scoreFlags are the flags of `labels score`.
type scoreFlags struct {
	taskFlags
	gold, split, tuneOn string
	compare             []string
	probabilities       bool
}

func (c *command) labelsScoreCommand() *cobra.Command {
	var f scoreFlags
	cmd := newCommand("labels-score", takes(0, math.MaxInt, "files of PREDICTIONS"), func(cmd *cobra.Command, args []string) error {
		switch {
		case f.gold == "":
			return usageError("score needs the true labels: --gold RELEASE")
		case len(f.compare) > 0 && len(args) > 0:
			return usageError("--compare names the files: leave %s out, or put it into --compare NAME=FILE,FILE", args[0])
		case len(f.compare) > 0:
			return c.compareScores(cmd.Context(), f)
		case len(args) == 0:
			return usageError("score takes one or more files of PREDICTIONS")
		}
		return c.labelsScore(cmd.Context(), args, f)
	})
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.gold, "gold", "", "the `release` with the true labels")
	flags.StringVar(&f.split, "split", "", "the `split` that is scored, or all (default: test where there is one, else all)")
	flags.StringVar(&f.by, "by", "", "tell errors of ordinal tasks by the labels of this `category` too (default for FigSIM: figurative)")
	flags.StringArrayVar(&f.errorsBy, "errors-by", nil, "count wrong predictions by the labels of this `category` (repeatable; \"\" for none; default for FigSIM: modality, context)")
	flags.StringArrayVar(&f.compare, "compare", nil, "score these files as one model and print a table of models, as `NAME=FILE,FILE` (repeatable)")
	flags.BoolVar(&f.probabilities, "probabilities", false, "PREDICTIONS hold a probability in a column for each label, such as figurative.F1")
	flags.StringVar(&f.tuneOn, "tune-on", "validation", "find the thresholds of --probabilities on this `split`")
	return cmd
}

// resolve gives the tasks that the flags and the schema ask for.
func (f taskFlags) resolve(schema manifest.Schema) ([]labels.Task, error) {
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
		if f.given("merge") {
			tasks[i].Merge = nil
		}
		if f.given("leave-out") {
			tasks[i].LeaveOut = nil
		}
		if f.given("by") {
			tasks[i].By = f.by
		}
		if f.given("errors-by") {
			tasks[i].ErrorsBy = slices.DeleteFunc(slices.Clone(f.errorsBy), func(name string) bool { return name == "" })
		}
	}
	if f.by != "" && !slices.ContainsFunc(schema.Categories, func(c manifest.Category) bool { return c.Name == f.by }) {
		return nil, usageError("--by: the release has no category %q", f.by)
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
	Thresholds []fileThresholds `json:"thresholds,omitempty"` // of --probabilities
}

// A scorer scores files against the gold labels of a release.
type scorer struct {
	release *manifest.Release
	tasks   []labels.Task
	gold    []manifest.Entry
	others  map[manifest.Key]bool
	split   string
	tuneOn  []manifest.Entry // of --probabilities
	flags   scoreFlags
}

func (f scoreFlags) scorer(ctx context.Context) (s scorer, err error) {
	s.flags = f
	s.release, err = likeRelease(ctx, f.gold)
	if err != nil {
		return s, err
	}
	s.tasks, err = f.resolve(s.release.Schema)
	if err != nil {
		return s, err
	}
	s.gold, s.others, s.split, err = goldEntries(ctx, s.release, f.split)
	if err != nil || !f.probabilities {
		return s, err
	}
	if s.split == f.tuneOn || s.split == allSplits {
		return s, usageError("--tune-on %s: thresholds that were tuned on what is scored make the scores too high; name another --split", f.tuneOn)
	}
	s.tuneOn, _, _, err = goldEntries(ctx, s.release, f.tuneOn)
	return s, err
}

func (s scorer) score(ctx context.Context, files []string) (report scoreReport, err error) {
	var predictions []labels.Predictions
	for _, file := range files {
		p := labels.Predictions{File: file}
		if s.flags.probabilities {
			var thresholds []fileThresholds
			p.Labels, thresholds, err = s.readProbabilities(ctx, file)
			report.Thresholds = append(report.Thresholds, thresholds...)
		} else {
			p.Labels, err = readTable(ctx, file, s.release)
		}
		if err != nil {
			return report, err
		}
		predictions = append(predictions, p)
	}
	report.Split = s.split
	report.Scores, err = labels.Score(s.release.Schema, s.tasks, s.gold, s.others, predictions)
	if err != nil {
		return report, asUsage(err)
	}
	return report, nil
}

func (c *command) labelsScore(ctx context.Context, files []string, f scoreFlags) error {
	s, err := f.scorer(ctx)
	if err != nil {
		return err
	}
	report, err := s.score(ctx, files)
	if err != nil {
		return err
	}
	return c.answer("labels-score", report)
}

// compareReport is what `labels score --compare --json` prints.
type compareReport struct {
	Split   string       `json:"split"`
	Entries int          `json:"entries"`
	Models  []modelScore `json:"models"`
	Tasks   []string     `json:"-"`
}

// A modelScore is what the files of one model are worth.
type modelScore struct {
	Name string `json:"name"`
	scoreReport
}

func (c *command) compareScores(ctx context.Context, f scoreFlags) error {
	s, err := f.scorer(ctx)
	if err != nil {
		return err
	}
	report, err := s.compare(ctx)
	if err != nil {
		return err
	}
	return c.answer("labels-compare", report)
}

func (s scorer) compare(ctx context.Context) (compareReport, error) {
	out := compareReport{Split: s.split, Entries: len(s.gold)}
	for _, t := range s.tasks {
		out.Tasks = append(out.Tasks, t.Category)
	}
	for _, model := range s.flags.compare {
		name, files, named := strings.Cut(model, "=")
		if !named || name == "" || files == "" {
			return out, usageError("--compare takes NAME=FILE or NAME=FILE,FILE, not %q", model)
		}
		if slices.ContainsFunc(out.Models, func(m modelScore) bool { return m.Name == name }) {
			return out, usageError("--compare: %q stands twice; give all its files at once: NAME=FILE,FILE", name)
		}
		scores, err := s.score(ctx, strings.Split(files, ","))
		if err != nil {
			return out, fmt.Errorf("--compare %s: %w", name, err)
		}
		out.Models = append(out.Models, modelScore{name, scores})
	}
	return out, nil
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
