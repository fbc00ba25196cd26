package main

import (
	"context"
	"slices"

	"rehydrate/manifest"
	"rehydrate/report"
	"rehydrate/study"
)

// studyFlags name what a page of a paper's numbers is made of.
type studyFlags struct {
	release                    string
	annotators, scores, models []string
	features, decides, by      string
	split                      string // of the models' predictions
}

// writeStudy writes one page with all that the files give of the release's labels, tests, moderation and scores.
func (c *command) writeStudy(ctx context.Context, f studyFlags, out pageFlags) error {
	if err := out.check(); err != nil {
		return err
	}
	stats, schema, err := study.Stats(ctx, f.release, "")
	if err != nil {
		return err
	}
	page := report.Study{Title: "Numbers of " + schema.Name, Counts: &stats, Schema: schema.Name}
	for _, t := range schema.Tasks() {
		page.Together = append(page.Together, t.Category)
	}
	if len(f.annotators) > 0 {
		agreement, err := study.Agree(ctx, study.Annotations{Files: f.annotators, Release: f.release, Decides: f.decides,
			Seed: usualSeed})
		if err != nil {
			return err
		}
		page.Agreement = &agreement.Agreement
		if n := agreement.Unknown; n > 0 {
			page.Notes = append(page.Notes, times(n, "annotated entry is",
				"annotated entries are")+" left out: not in the release")
		}
		for _, m := range agreement.Missing {
			page.Notes = append(page.Notes, m.String())
		}
	}
	page.Notes = append(page.Notes, f.leaveOut(schema)...)
	if f.features != "" {
		groups, err := study.TestGroups(ctx, f.features,
			study.Grouping{Gold: f.release, By: f.by, Split: study.All, Alpha: 0.05})
		if err != nil {
			return err
		}
		page.Tests = testsOf(groups)
	}
	if len(f.scores) > 0 {
		table, err := study.Moderate(ctx, f.scores, study.Flagging{Gold: f.release, By: f.by, Split: study.All,
			ModerationRules: study.DefaultRules()})
		if err != nil {
			return err
		}
		page.Moderation = &table.ModerationTable
	}
	if len(f.models) > 0 {
		compared, err := study.Compare(ctx, "model", f.models, study.Scoring{Gold: f.release, Split: f.split})
		if err != nil {
			return err
		}
		for _, m := range compared.Models {
			page.Models = append(page.Models, report.Model{Name: m.Name, Scores: m.Scores.Scores})
			for _, missing := range m.Missing {
				missing.File = m.Name // a page names no file
				page.Notes = append(page.Notes, missing.String())
			}
		}
	}
	if err := out.write(ctx, c, page); err != nil {
		return err
	}
	return c.answer("report", reportAnswer{Report: out.file, Notes: page.Notes})
}

// leaveOut takes away what is tested or counted by a category, where none was named and none is a scale, and says so:
// which one is the user's choice.
func (f *studyFlags) leaveOut(schema manifest.Schema) (notes []string) {
	isScale := func(c manifest.Category) bool { return c.Kind == manifest.Ordinal }
	if f.by != "" || slices.ContainsFunc(schema.Categories, isScale) {
		return nil
	}
	const why = " is left out: no category is a scale; name one with --by, such as --by "
	if f.features != "" {
		notes = append(notes, "--features"+why+schema.Categories[0].Name)
	}
	if len(f.scores) > 0 {
		notes = append(notes, "--scores"+why+schema.Categories[0].Name)
	}
	f.features, f.scores = "", nil
	return notes
}
