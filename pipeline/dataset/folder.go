package dataset

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"

	"rehydrate/manifest"
)

// WriteFolder writes the rows of a split as Hugging Face's ImageFolder reads them: SPLIT/KEY.jpg (or png, gif, webp),
// the images as stored, and SPLIT/metadata.csv with the column file_name and then the others. KEY is the id, with - for
// its /. It returns what it wrote, metadata.csv included; a folder that has one is whole.
//
// Labels are the numbers of the Parquet, a multi-label category a JSON list of them; an empty cell means that none was
// given. An OCR text that is empty, None, NA or null has no value any more where pandas reads it.
func WriteFolder(sink Sink, s manifest.Schema, flagged bool, split string, rows iter.Seq2[Row, error]) (stats Stats, err error) {
	err = checkSplit(split)
	if err == nil {
		err = sink(split+"/metadata.csv", func(w io.Writer) error {
			counted := &counter{w: w}
			table := csv.NewWriter(counted)
			if err := table.Write(folderHeader(s, flagged)); err != nil {
				return err
			}
			for row, err := range rows {
				if err != nil {
					return fmt.Errorf("after %d rows: %w", stats.Rows, err)
				}
				stats.Rows++
				stats.ImageBytes += int64(len(row.Image))
				cells, err := folderRow(sink, s, flagged, split, &row)
				if err := cmp.Or(err, table.Write(cells)); err != nil {
					return fmt.Errorf("row %d (%q): %w", stats.Rows, row.ID, err)
				}
			}
			table.Flush()
			stats.Bytes = stats.ImageBytes + counted.n
			return table.Error()
		})
	}
	if err != nil {
		return Stats{}, fmt.Errorf("write image folder: %w", err)
	}
	return stats, nil
}

func folderHeader(s manifest.Schema, flagged bool) []string {
	header := []string{"file_name"}
	for _, column := range features(s, flagged) {
		if column.Name != "image" {
			header = append(header, column.Name)
		}
	}
	return header
}

// folderRow makes the image of a row, and returns its record.
func folderRow(sink Sink, s manifest.Schema, flagged bool, split string, r *Row) ([]string, error) {
	_, name, err := r.files(s)
	if err != nil {
		return nil, err
	}
	if err := sink(split+"/"+name, func(w io.Writer) error {
		_, err := w.Write(r.Image)
		return err
	}); err != nil {
		return nil, err
	}
	// Nothing stands in front of a cell that a spreadsheet would run as a formula: this file is for programs, and a
	// loader would take that for a part of the text.
	cells := []string{name, r.ID, r.Text, strconv.FormatFloat(r.Confidence, 'f', -1, 32), strconv.Itoa(r.Width),
		strconv.Itoa(r.Height), r.SHA256, r.PHash}
	if flagged {
		cells = append(cells, r.Filter)
	}
	for i, c := range s.Categories {
		cell, err := labelCell(c.Kind, r.Labels[i])
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// labelCell writes the labels of one category.
func labelCell(kind manifest.CategoryKind, ids []int) (string, error) {
	// Numbers, because pandas takes a label named None, NA or null for no value.
	switch {
	case ids == nil, kind != manifest.Multi && len(ids) == 0:
		return "", nil
	case kind != manifest.Multi:
		return strconv.Itoa(ids[0]), nil
	}
	text, err := json.Marshal(ids)
	return string(text), err
}
