package dataset

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"

	"rehydrate/manifest"
)

// WriteFolder writes the rows of a split as Hugging Face's ImageFolder reads them: SPLIT/KEY.jpg (or png, gif,
// webp), the images as stored, and SPLIT/metadata.csv with the column file_name and then the others. KEY is
// the id, with - for its /. It returns what it wrote, metadata.csv included.
//
// Labels are the numbers of the Parquet, a multi-label category a JSON list of them, and an empty cell is no
// label given: the loaders read CSV with pandas, which takes a label named None, NA or null for no value. An
// OCR text that is one of those words, or empty, still comes out as no value there.
//
// metadata.csv is for programs: unlike outcomes.csv it has nothing in front of a cell that a spreadsheet would
// run as a formula, because a loader would take that for a part of the text.
//
// Every image is made while metadata.csv is being written, so a folder that has one is whole.
func WriteFolder(sink Sink, s manifest.Schema, flagged bool, split string, rows iter.Seq2[Row, error]) (stats Stats, err error) {
	err = checkSchema(s, flagged)
	if err == nil {
		err = checkSplit(split)
	}
	if err == nil {
		f := folder{sink: sink, schema: s, flagged: flagged, split: split, rows: rows}
		err = sink(split+"/metadata.csv", f.write)
		stats = f.stats
	}
	if err != nil {
		return Stats{}, fmt.Errorf("write image folder: %w", err)
	}
	return stats, nil
}

type folder struct {
	sink    Sink
	schema  manifest.Schema
	flagged bool
	split   string
	rows    iter.Seq2[Row, error]
	stats   Stats
}

func (f *folder) write(w io.Writer) error {
	counted := &counter{w: w}
	table := csv.NewWriter(counted)
	header := []string{"file_name"}
	for _, name := range baseColumns(f.flagged) {
		if name != "image" {
			header = append(header, name)
		}
	}
	for _, c := range f.schema.Categories {
		header = append(header, c.Name)
	}
	if err := table.Write(header); err != nil {
		return err
	}
	for row, err := range f.rows {
		if err != nil {
			return fmt.Errorf("after %d rows: %w", f.stats.Rows, err)
		}
		if err := f.row(table, &row); err != nil {
			return fmt.Errorf("row %d (%q): %w", f.stats.Rows+1, row.ID, err)
		}
		f.stats.Rows++
		f.stats.ImageBytes += int64(len(row.Image))
	}
	table.Flush()
	f.stats.Bytes = f.stats.ImageBytes + counted.n
	return table.Error()
}

func (f *folder) row(table *csv.Writer, r *Row) error {
	if err := r.check(f.schema); err != nil {
		return err
	}
	key, err := fileKey(r.ID)
	if err != nil {
		return err
	}
	ext, err := extension(r)
	if err != nil {
		return err
	}
	name := key + "." + ext
	if err := f.sink(f.split+"/"+name, func(w io.Writer) error {
		_, err := w.Write(r.Image)
		return err
	}); err != nil {
		return err
	}
	cells := []string{name, r.ID, r.Text, strconv.FormatFloat(r.Confidence, 'f', -1, 32), strconv.Itoa(r.Width), strconv.Itoa(r.Height), r.SHA256, r.PHash}
	if f.flagged {
		cells = append(cells, r.Filter)
	}
	for i, c := range f.schema.Categories {
		cell, err := labelCell(c.Kind, r.Labels[i])
		if err != nil {
			return err
		}
		cells = append(cells, cell)
	}
	return table.Write(cells)
}

// labelCell writes the labels of one category.
func labelCell(kind manifest.CategoryKind, ids []int) (string, error) {
	switch {
	case ids == nil, kind != manifest.Multi && len(ids) == 0:
		return "", nil
	case kind != manifest.Multi:
		return strconv.Itoa(ids[0]), nil
	}
	text, err := json.Marshal(ids)
	return string(text), err
}

// counter counts what passes through.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
