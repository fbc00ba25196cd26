package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"rehydrate/cmd/internal/build"
	"rehydrate/internal/durable"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/ocr"
)

// parquetOutput writes one row an input into a file that gets its name at the end.
func parquetOutput(path string, force bool) output {
	return output{place: path, begin: func(ctx context.Context, e ocr.Engine) (sink, error) {
		file, err := create(ctx, path, force)
		if err != nil {
			return sink{}, err
		}
		return parquetSink(file, e), nil
	}}
}

func parquetSink(file *durable.File, e ocr.Engine) sink {
	rows := dataset.NewReadingsWriter(file, build.Version(), map[string]string{
		"engine": system(e), "model": e.Model + " " + e.ModelSHA256, "parameters": e.Parameters,
		"fingerprint": e.Fingerprint(),
	})
	end := func(complete bool) error {
		defer file.Discard()
		if !complete { // half a table under its final name would pass as the whole
			return nil
		}
		err := rows.Close()
		if err == nil {
			err = file.Publish()
		}
		if err != nil {
			return fmt.Errorf("write the Parquet file: %w", err)
		}
		return nil
	}
	row := func(r result) error {
		if _, err := rows.Write([]dataset.ReadingRow{newRow(r)}); err != nil {
			return fmt.Errorf("write the row of %q: %w", r.name, err)
		}
		return nil
	}
	return sink{row, end}
}

func newRow(r result) dataset.ReadingRow {
	// A name need not be UTF-8, a Parquet string must be.
	row := dataset.ReadingRow{File: strings.ToValidUTF8(r.name, "\ufffd")}
	if bad, ok := errors.AsType[*badFile](r.err); ok {
		row.Error, row.Reason = new(strings.ToValidUTF8(bad.Error(), "\ufffd")), new(string(bad.reason))
		return row
	}
	row.Text, row.Confidence, row.SHA256 = &r.Text, new(float32(r.Confidence)), &r.sha256
	row.Width, row.Height = new(int32(r.width)), new(int32(r.height))
	for _, w := range r.Words {
		row.Words = append(row.Words, dataset.ReadingWord{Text: w.Text, Confidence: float32(w.Confidence),
			X: int32(w.X), Y: int32(w.Y), Width: int32(w.W), Height: int32(w.H),
			Line: int32(w.Line), Accepted: w.Accepted})
	}
	return row
}
