package main

import (
	"context"

	"rehydrate/report"
	"rehydrate/study"
)

// studyFlags name what a page of a paper's numbers is made of.
type studyFlags struct {
	release                    string
	annotators, scores, models []string
	features, decides          string
}

// writeStudy writes one page with all that the files give of the release's labels, tests, moderation and scores.
func (c *command) writeStudy(ctx context.Context, f studyFlags, out pageFlags) error {
	if err := out.check(c, "--out"); err != nil {
		return err
	}
	stats, schema, err := study.Stats(ctx, f.release, "")
	if err != nil {
		return err
	}
	page := report.Study{Title: "Numbers of " + schema.Name, Counts: &stats}
	for _, t := range schema.Tasks() {
		page.Together = append(page.Together, t.Category)
	}
	if len(f.annotators) > 0 {
		agreement, err := study.Agree(ctx, study.Annotations{Files: f.annotators, Release: f.release, Decides: f.decides, Seed: usualSeed})
		if err != nil {
			return err
		}
		page.Agreement = &agreement.Agreement
	}
	if f.features != "" {
		groups, err := study.TestGroups(ctx, f.features, study.Grouping{Gold: f.release, Split: study.All, Alpha: 0.05})
		if err != nil {
			return err
		}
		page.Tests = testsOf(groups)
	}
	if len(f.scores) > 0 {
		table, err := study.Moderate(ctx, f.scores, study.Flagging{Gold: f.release, Split: study.All, ModerationRules: study.DefaultRules()})
		if err != nil {
			return err
		}
		page.Moderation = &table.ModerationTable
	}
	if len(f.models) > 0 {
		compared, err := study.Compare(ctx, f.models, study.Scoring{Gold: f.release})
		if err != nil {
			return err
		}
		for _, m := range compared.Models {
			page.Models = append(page.Models, report.Model{Name: m.Name, Scores: m.Scores.Scores})
		}
	}
	if err := out.write(ctx, c, page); err != nil {
		return err
	}
	return c.answer("report", map[string]any{"report": out.file, "thumbnails": false, "texts": false})
}
