package dataset

import (
	"archive/tar"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/parquet-go/parquet-go"

	"rehydrate/manifest"
)

// WriteWebDataset writes the rows of a split as WebDataset shards, SPLIT-000000.tar and on, of at most ShardBytes but
// for a single row that is larger. Each row is two members: KEY.jpg, the image as stored, and KEY.json with the other
// columns, filter with flagged alone, labels by name (null: none given). KEY is the id, with - for its /. It returns
// what a card says of them.
//
// The image is called jpg whatever its type: Hugging Face datasets refuses a split whose first examples differ in their
// endings, and leaves out later images with another one. Readers find the type in the image itself.
func WriteWebDataset(sink Sink, s manifest.Schema, flagged bool, split string, rows iter.Seq2[Row, error]) (Split,
	error) {
	next, stop := iter.Pull2(tarRows(s, flagged, rows))
	defer stop()
	out, err := Split{Name: split}, checkSplit(split)
	if err != nil {
		return Split{}, fmt.Errorf("write webdataset: %w", err)
	}
	row, err, more := next()
	shard := func(stats *Stats, w io.Writer) error {
		tw, size := tar.NewWriter(w), int64(tarEnd)
		for n := 0; more; n++ {
			grown := size + tarSize(len(row.Image)) + tarSize(len(row.meta))
			// The first row goes in whatever its size.
			if n > 0 && grown > ShardBytes {
				break
			}
			size = grown
			if err := addMember(tw, row.key+".jpg", row.Image); err != nil {
				return err
			}
			if err := addMember(tw, row.key+".json", row.meta); err != nil {
				return err
			}
			stats.Rows++
			stats.ImageBytes += int64(len(row.Image))
			// It may belong to the next shard, which then begins with it.
			row, err, more = next()
			if err != nil {
				return err
			}
		}
		return tw.Close()
	}
	// No rows give one empty shard, so that each split has a file.
	for i := 0; err == nil && (i == 0 || more); i++ {
		stats := Stats{}
		err = sink(shardName(WebDataset, split, i, 0), func(w io.Writer) error {
			return stats.measure(w, func(w io.Writer) error { return shard(&stats, w) })
		})
		out.Add(stats)
	}
	if err != nil {
		return Split{}, fmt.Errorf("write webdataset: %w", err)
	}
	return out, nil
}

// A tarRow is a row with what is written of it.
type tarRow struct {
	Row
	key  string // what the names of its members begin with
	meta []byte // its JSON
}

func tarRows(s manifest.Schema, flagged bool, rows iter.Seq2[Row, error]) iter.Seq2[tarRow, error] {
	return func(yield func(tarRow, error) bool) {
		base, n := columnsOf(WebDataset, flagged), 0
		for row, err := range rows {
			t := tarRow{Row: row}
			if err != nil {
				yield(t, fmt.Errorf("after %d rows: %w", n, err))
				return
			}
			n++
			t.key, _, err = row.files(s)
			if err == nil {
				t.meta, err = metadataJSON(s, base, &row)
			}
			if err != nil {
				err = fmt.Errorf("row %d (%q): %w", n, row.ID, err)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// tarSize is what a file of n bytes takes in a tar.
func tarSize(n int) int64 { return 512 + (int64(n)+511)/512*512 }

// tarEnd is what ends a tar.
const tarEnd = 1024

func addMember(tw *tar.Writer, name string, body []byte) error {
	// Without an owner and a time: one input gives one sequence of bytes.
	err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(body)), Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = tw.Write(body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// metadataJSON is a row without its image: the columns of the Parquet in their order, labels by name.
func metadataJSON(s manifest.Schema, base []column, r *Row) ([]byte, error) {
	var o object
	for _, c := range base {
		if c.Name != ImageName { // which is the other member
			o = append(o, member{c.Name, plainValue(c.leaves[0].get(r))})
		}
	}
	for i, c := range s.Categories {
		var label any // null: none given
		names := []string{}
		for _, id := range r.Labels[i] {
			names = append(names, c.Labels[id].Name)
		}
		switch {
		case c.Kind == manifest.Multi && r.Labels[i] != nil:
			label = names
		case c.Kind != manifest.Multi && len(names) > 0:
			label = names[0]
		}
		o = append(o, member{c.Name, label})
	}
	for i, c := range s.Columns {
		o = append(o, member{c.Name, c.JSON(r.Values[i])})
	}
	text, err := jsonText(o)
	return append([]byte(text), '\n'), err
}

// plainValue is a value as encoding/json takes it.
func plainValue(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Float:
		return v.Float()
	case v.Kind() == parquet.Int32:
		return v.Int32()
	}
	return string(v.ByteArray())
}
