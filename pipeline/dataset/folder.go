package dataset

import (
	"fmt"
	"io"
	"iter"

	"rehydrate/manifest"
)

// WriteFolder writes the rows of a split as Hugging Face's ImageFolder reads them: SPLIT/KEY.jpg (or png, gif, webp),
// the images as stored, and SPLIT/metadata.parquet, which names them in the column file_name and has the other columns
// of the Parquet with their types and label names, filter with flagged alone. KEY is the id, with - for its /. It
// returns what a card says of them; a folder that has a metadata.parquet is whole.
func WriteFolder(sink Sink, s manifest.Schema, p Provenance, flagged bool, split string,
	rows iter.Seq2[Row, error]) (Split, error) {
	out, images, err := Split{Name: split}, int64(0), checkSplit(split)
	named := func(yield func(Row, error) bool) {
		for row, err := range rows {
			if err == nil {
				images += int64(len(row.Image))
				err = writeImage(sink, s, split, &row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
	if err == nil {
		err = sink(shardName(Folder, split, 0, 0), func(w io.Writer) error {
			stats, err := writeTable(w, s, p, layoutOf(Folder, flagged), named)
			out.Add(stats)
			return err
		})
	}
	if err != nil {
		return Split{}, fmt.Errorf("write image folder: %w", err)
	}
	out.Bytes += images
	return out, nil
}

// writeImage makes the image of a row, and leaves its name in the row in its place.
func writeImage(sink Sink, s manifest.Schema, split string, r *Row) error {
	_, name, err := r.files(s)
	if err == nil {
		err = sink(split+"/"+name, func(w io.Writer) error {
			_, err := w.Write(r.Image)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%q: %w", r.ID, err)
	}
	r.Path, r.Image = name, nil
	return nil
}
