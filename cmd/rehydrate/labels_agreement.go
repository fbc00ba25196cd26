package main

import (
	"context"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rehydrate/labels"
	"rehydrate/manifest"
)

func (c *command) labelsAgreementCommand() *cobra.Command {
	var release, batch string
	cmd := newCommand("labels-agreement", takes(1, math.MaxInt, "a FILE for each annotator, or one Argilla export"), func(cmd *cobra.Command, args []string) error {
		return c.labelsAgreement(cmd.Context(), args, release, batch)
	})
	cmd.Flags().StringVar(&release, "release", "", labelReleaseHelp)
	cmd.Flags().StringVar(&batch, "batch", "", "compare batch by batch too: the `column` of the first file, or metadata of an Argilla export, that names them")
	return cmd
}

// agreementReport is what `labels agreement --json` prints.
type agreementReport struct {
	labels.Agreement
	// Of an Argilla export only.
	Records *int     `json:"records,omitempty"`
	LeftOut int      `json:"left_out,omitempty"` // answers that are drafts or were discarded
	Ignored []string `json:"ignored,omitempty"`  // questions that are no category
	// Of --batch only.
	Batches []labels.BatchAgreement `json:"batches,omitempty"`
}

func (c *command) labelsAgreement(ctx context.Context, files []string, release, batch string) error {
	report, err := agree(ctx, files, release, batch)
	if err != nil {
		return err
	}
	return c.answer("labels-agreement", report)
}

func agree(ctx context.Context, files []string, release, batch string) (report agreementReport, err error) {
	like, err := likeRelease(ctx, release)
	if err != nil {
		return report, err
	}
	var annotators []labels.Answers
	var batches map[manifest.Key]string
	switch len(files) {
	case 1:
		export, err := readExport(files[0], batch, like)
		if err != nil {
			return report, err
		}
		annotators, batches = export.Annotators, export.Batches
		report.Records, report.LeftOut, report.Ignored = &export.Records, export.LeftOut, export.Ignored
	default:
		for _, file := range files {
			all, err := readTable(ctx, file, like)
			if err != nil {
				return report, err
			}
			annotators = append(annotators, all)
		}
		if batch == "" {
			break
		}
		batches, err = manifest.ReadColumn(ctx, files[0], batch, withNames)
		if err != nil {
			return report, asUsage(err)
		}
	}
	if batch != "" && len(batches) == 0 {
		return report, usageError("--batch %s: no entry of %s has a value there", batch, files[0])
	}
	report.Agreement, err = labels.Agree(like.Schema, annotators)
	if err != nil {
		return report, asUsage(err)
	}
	report.Batches = labels.AgreeByBatch(like.Schema, annotators, batches)
	return report, nil
}

func readExport(file, batch string, like *manifest.Release) (labels.Export, error) {
	if strings.ToLower(filepath.Ext(file)) != ".json" {
		return labels.Export{}, usageError("%s alone is not an Argilla export (.json): name a table for each annotator", file)
	}
	f, err := openRegular(file)
	if err != nil {
		return labels.Export{}, asUsage(err)
	}
	defer f.Close()
	export, err := labels.ReadArgilla(f, file, batch, like)
	if err != nil {
		return labels.Export{}, asUsage(err)
	}
	return export, nil
}

// Uncompared names the categories without an entry that both annotated.
func (r agreementReport) Uncompared() []string {
	var names []string
	for _, ca := range r.Categories {
		if ca.Entries == 0 {
			names = append(names, ca.Name)
		}
	}
	return names
}
