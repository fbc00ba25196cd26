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
	var release string
	cmd := newCommand("labels-agreement", takes(1, math.MaxInt, "a FILE for each annotator, or one Argilla export"), func(cmd *cobra.Command, args []string) error {
		return c.labelsAgreement(cmd.Context(), args, release)
	})
	cmd.Flags().StringVar(&release, "release", "", labelReleaseHelp)
	return cmd
}

// agreementReport is what `labels agreement --json` prints.
type agreementReport struct {
	labels.Agreement
	// Of an Argilla export only.
	Records *int     `json:"records,omitempty"`
	LeftOut int      `json:"left_out,omitempty"` // answers that are drafts or were discarded
	Ignored []string `json:"ignored,omitempty"`  // questions that are no category
}

func (c *command) labelsAgreement(ctx context.Context, files []string, release string) error {
	like, err := likeRelease(ctx, release)
	if err != nil {
		return err
	}
	var report agreementReport
	var annotators []labels.Answers
	switch len(files) {
	case 1:
		export, err := readExport(files[0], like)
		if err != nil {
			return err
		}
		annotators = export.Annotators
		report.Records, report.LeftOut, report.Ignored = &export.Records, export.LeftOut, export.Ignored
	default:
		for _, file := range files {
			all, err := readTable(ctx, file, like)
			if err != nil {
				return err
			}
			annotators = append(annotators, all)
		}
	}
	report.Agreement, err = labels.Agree(like.Schema, annotators)
	if err != nil {
		return asUsage(err)
	}
	return c.answer("labels-agreement", report)
}

func readExport(file string, like *manifest.Release) (labels.Export, error) {
	if strings.ToLower(filepath.Ext(file)) != ".json" {
		return labels.Export{}, usageError("%s alone is not an Argilla export (.json): name a table for each annotator", file)
	}
	f, err := openRegular(file)
	if err != nil {
		return labels.Export{}, asUsage(err)
	}
	defer f.Close()
	export, err := labels.ReadArgilla(f, file, like)
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
