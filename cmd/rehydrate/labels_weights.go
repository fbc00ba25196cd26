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

func (c *command) labelsWeightsCommand() *cobra.Command {
	var f taskFlags
	var split string
	cmd := newCommand("labels-weights", exactArgs(1, "one RELEASE: a release folder or an annotations file"), func(cmd *cobra.Command, args []string) error {
		return c.labelsWeights(cmd.Context(), args[0], split, f)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&split, "split", manifest.DefaultSplit, "weigh the labels of this `split`, or all")
	return cmd
}

// weightsReport is what `labels weights --json` prints.
type weightsReport struct {
	Split string               `json:"split"`
	Tasks []labels.TaskWeights `json:"tasks"`
}

func (c *command) labelsWeights(ctx context.Context, path, split string, f taskFlags) error {
	release, err := likeRelease(ctx, path)
	if err != nil {
		return err
	}
	tasks, err := f.resolve(release.Schema)
	if err != nil {
		return err
	}
	entries, _, split, err := goldEntries(ctx, release, split)
	if err != nil {
		return err
	}
	return c.answer("labels-weights", weightsReport{split, labels.Weights(tasks, entries)})
}

// fileThresholds are the thresholds that were found for a task on a file's own probabilities.
type fileThresholds struct {
	File     string             `json:"file"`
	Category string             `json:"category"`
	Split    string             `json:"tuned_on"`
	Labels   []labels.Threshold `json:"labels"`
}

// readProbabilities reads a file of probabilities and decides by them, with thresholds tuned on the entries of another split.
func (s scorer) readProbabilities(ctx context.Context, file string) (labels.Answers, []fileThresholds, error) {
	numbers, err := manifest.ReadNumbers(ctx, file, "", withNames)
	if err != nil {
		return nil, nil, asUsage(err)
	}
	answers := labels.Answers{}
	var all []fileThresholds
	for _, t := range s.tasks {
		p, err := probabilitiesOf(t, s.release.Schema, numbers)
		if err != nil {
			return nil, nil, usageError("%s: %w", file, err)
		}
		if p == nil { // a file of other tasks
			continue
		}
		var thresholds []labels.Threshold
		if t.Kind == manifest.Multi {
			if !slices.ContainsFunc(s.tuneOn, func(e manifest.Entry) bool { return p[e.Key] != nil }) {
				return nil, nil, usageError("%s has no row of split %s, on which thresholds are found: add its rows, or name another split with --tune-on", file, s.flags.tuneOn)
			}
			thresholds = t.Tune(s.tuneOn, p)
			all = append(all, fileThresholds{file, t.Category, s.flags.tuneOn, thresholds})
		}
		if err := t.Decide(s.release.Schema, p, thresholds, answers); err != nil {
			return nil, nil, err
		}
	}
	if len(answers) == 0 {
		return nil, nil, usageError("%s has no column of probabilities: name them after category and code, such as %s", file, s.tasks[0].Column(s.tasks[0].Classes[0].Code))
	}
	return answers, all, nil
}

// probabilitiesOf gives the probabilities of a task's classes, nil where the file has no column of the task. A class of
// several labels has a column of its own (severity.SS4+SS5), or the sum of its labels' where one of them must be right, else
// the largest.
func probabilitiesOf(t labels.Task, schema manifest.Schema, numbers manifest.Numbers) (labels.Probabilities, error) {
	values := func(code string) []float64 {
		for _, c := range numbers.Columns {
			if c.Name == t.Column(code) {
				return c.Values
			}
		}
		return nil
	}
	var columns [][][]float64 // by class: those to put together
	var missing []string
	met := false
	for i, codes := range t.Codes(schema) {
		if whole := values(t.Classes[i].Code); whole != nil {
			columns, met = append(columns, [][]float64{whole}), true
			continue
		}
		var parts [][]float64
		for _, code := range codes {
			part := values(code)
			if part == nil {
				missing = append(missing, t.Column(code))
			}
			parts, met = append(parts, part), met || part != nil
		}
		columns = append(columns, parts)
	}
	switch {
	case !met:
		return nil, nil
	case len(missing) > 0:
		return nil, fmt.Errorf("it lacks the columns of numbers %s", strings.Join(missing, ", "))
	}
	p := labels.Probabilities{}
	for row, key := range numbers.Keys {
		of := make([]float64, len(columns))
		for class, parts := range columns {
			for _, part := range parts {
				if t.Kind == manifest.Multi {
					of[class] = math.Max(of[class], part[row])
				} else {
					of[class] += part[row]
				}
			}
		}
		p[key] = of
	}
	return p, nil
}
