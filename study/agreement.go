package study

import (
	"context"
	"path/filepath"
	"strings"

	"rehydrate/internal/userfile"
	"rehydrate/labels"
	"rehydrate/manifest"
	"rehydrate/study/argilla"
)

// An Agreement is how far annotators agree.
type Agreement struct {
	labels.Agreement
	// Of an Argilla export only.
	Records *int     `json:"records,omitempty"`
	LeftOut int      `json:"left_out,omitempty"` // answers that are drafts or were discarded
	Ignored []string `json:"ignored,omitempty"`  // questions that are no category
	// Where batches were named.
	Batches []labels.BatchAgreement `json:"batches,omitempty"`
}

// Uncompared names the categories without an entry that both annotated.
func (a Agreement) Uncompared() []string {
	var names []string
	for _, ca := range a.Categories {
		if ca.Entries == 0 {
			names = append(names, ca.Name)
		}
	}
	return names
}

// Agree compares annotators, who have a file each, or one Argilla export. batch, if not "", is the column of the first file, or
// the metadata of the export, that names batches.
func Agree(ctx context.Context, files []string, release, batch string) (out Agreement, err error) {
	like, err := like(ctx, release)
	if err != nil {
		return out, err
	}
	var annotators []labels.Answers
	var batches map[manifest.Key]string
	switch len(files) {
	case 1:
		export, err := readExport(files[0], batch, like)
		if err != nil {
			return out, err
		}
		annotators, batches = export.Annotators, export.Batches
		out.Records, out.LeftOut, out.Ignored = &export.Records, export.LeftOut, export.Ignored
	default:
		for _, file := range files {
			all, err := ReadTable(ctx, file, like)
			if err != nil {
				return out, err
			}
			annotators = append(annotators, all)
		}
		if batch == "" {
			break
		}
		batches, err = ReadColumn(ctx, files[0], batch, withParquet)
		if err != nil {
			return out, userfile.Faulty(err)
		}
	}
	if batch != "" && len(batches) == 0 {
		return out, userfile.Wrong("--batch %s: no entry of %s has a value there", batch, files[0])
	}
	out.Agreement, err = labels.Agree(like.Schema, annotators)
	if err != nil {
		return out, userfile.Faulty(err)
	}
	out.Batches = labels.AgreeByBatch(like.Schema, annotators, batches)
	return out, nil
}

func readExport(file, batch string, like *manifest.Release) (out argilla.Export, err error) {
	if strings.ToLower(filepath.Ext(file)) != ".json" {
		return out, userfile.Wrong("%s alone is not an Argilla export (.json): name a table for each annotator", file)
	}
	f, _, err := userfile.Open(file)
	if err == nil {
		defer f.Close()
		reader := argilla.New(batch, like)
		err = reader.Read(f, file)
		out = reader.Export()
	}
	if err != nil {
		return out, userfile.Faulty(err)
	}
	return out, nil
}
