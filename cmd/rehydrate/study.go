package main

import (
	"context"

	"rehydrate/pipeline/report"
)

// studyFlags name what a page of a paper's numbers is made of.
type studyFlags struct {
	release                    string
	annotators, scores, models []string
	features                   string
}

// writeStudy writes one page with all that the files give of the release's labels, tests, moderation and scores.
func (c *command) writeStudy(ctx context.Context, f studyFlags, out pageFlags) error {
	if err := out.check(c, "--out"); err != nil {
		return err
	}
	stats, schema, err := c.statsOf(ctx, f.release, "")
	if err != nil {
		return err
	}
	study := report.Study{Title: "Numbers of " + schema.Name, Counts: &stats}
	for _, t := range schema.Tasks() {
		study.Together = append(study.Together, t.Category)
	}
	if len(f.annotators) > 0 {
		agreement, err := agree(ctx, f.annotators, f.release, "")
		if err != nil {
			return err
		}
		study.Agreement = &agreement.Agreement
	}
	if f.features != "" {
		g := groupsFlags{gold: f.release, split: allSplits, alpha: 0.05}
		tests, err := g.test(ctx, f.features)
		if err != nil {
			return err
		}
		study.Tests = g.shown(tests)
	}
	if len(f.scores) > 0 {
		table, err := moderationFlags{gold: f.release, split: allSplits, selfHarm: selfHarmNames(), severity: 1, score: 0.5}.tabulate(ctx, f.scores)
		if err != nil {
			return err
		}
		study.Moderation = &table.ModerationTable
	}
	if len(f.models) > 0 {
		s, err := scoreFlags{gold: f.release, compare: f.models, taskFlags: taskFlags{given: func(string) bool { return false }}}.scorer(ctx)
		if err != nil {
			return err
		}
		compared, err := s.compare(ctx)
		if err != nil {
			return err
		}
		for _, m := range compared.Models {
			study.Models = append(study.Models, report.Model{Name: m.Name, Scores: m.Scores})
		}
	}
	if err := out.write(ctx, c, study); err != nil {
		return err
	}
	return c.answer("report", map[string]any{"report": out.file, "thumbnails": false, "texts": false})
}
