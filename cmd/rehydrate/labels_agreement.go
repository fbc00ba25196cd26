package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
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
	var annotators []labels.Annotator
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
			annotators = append(annotators, labels.Annotator{Labels: all})
		}
	}
	report.Agreement, err = labels.Agree(like.Schema, annotators)
	if err != nil {
		return asUsage(err)
	}
	return c.show(report, func() { c.printAgreement(report) })
}

func readExport(file string, like *manifest.Release) (labels.Export, error) {
	if strings.ToLower(filepath.Ext(file)) != ".json" {
		return labels.Export{}, usageError("%s alone is not an Argilla export (.json): name a table for each annotator", file)
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file) // a pipe would wait for ever
	}
	if err != nil {
		return labels.Export{}, asUsage(err)
	}
	f, err := os.Open(file)
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

func (c *command) printAgreement(r agreementReport) {
	for _, p := range r.Pairs {
		fmt.Fprintf(c.stdout, "%s and %s both annotated %s", p.A, p.B, times(p.Both, "entry", "entries"))
		if p.OnlyA+p.OnlyB > 0 {
			fmt.Fprintf(c.stdout, "; %d only %s, %d only %s, which are left out", p.OnlyA, p.A, p.OnlyB, p.B)
		}
		fmt.Fprintln(c.stdout)
	}
	if len(r.Pairs) > 1 {
		fmt.Fprintf(c.stdout, "%d annotators: each number is the mean over the %d pairs\n", len(r.Annotators), len(r.Pairs))
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(c.stdout, "%s left out: drafts or discarded\n", times(r.LeftOut, "answer", "answers"))
	}
	for _, question := range r.Ignored {
		fmt.Fprintf(c.stdout, "question %s is not a category and was left out\n", strconv.QuoteToGraphic(question))
	}
	fmt.Fprintln(c.stdout)
	w := table(c.stdout, 0)
	fmt.Fprintln(w, "category\tentries\tkappa\tstrength\tobserved\tJaccard")
	var without []string
	for _, ca := range r.Categories {
		if ca.Entries == 0 {
			without = append(without, ca.Name)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", ca.Name, ca.Entries, describeKappa(ca.Kappa), decimal(ca.Observed, 2), decimal(ca.Jaccard, 2))
		for _, l := range ca.Labels {
			fmt.Fprintf(w, "  %s %s\t\t%s\t\t\n", oneTerminalLine(l.Code), oneTerminalLine(l.Name), describeKappa(l.Kappa))
		}
	}
	w.Flush()
	for _, ca := range r.Categories {
		if ca.Unanswered > 0 && ca.Entries > 0 {
			fmt.Fprintf(c.stdout, "%s: %s of both without an answer of one\n", ca.Name, times(ca.Unanswered, "entry", "entries"))
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(c.stdout, "not compared, for no entry has an answer of both: %s\n", strings.Join(without, ", "))
	}
}

// describeKappa gives the cells kappa and strength.
func describeKappa(k labels.Kappa) string {
	if k.Value == nil {
		return "undefined\t" + k.Undefined
	}
	return decimal(k.Value, 2) + "\t" + k.Strength
}
