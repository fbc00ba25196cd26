package dataset

import (
	"archive/tar"
	"fmt"
	"io"
	"iter"
	"time"

	"rehydrate/manifest"
)

// WriteWebDataset writes the rows of a split as WebDataset shards, SPLIT-000000.tar and on, of at most
// ShardBytes but for a single row that is larger. Each row is two members: KEY.jpg (or png, gif, webp), the
// image as stored, and KEY.json with the other columns, labels by name (null: none given). KEY is the id,
// with - for its /. It returns what it wrote, all shards together.
//
// The tars are USTAR with owner 0, mode 0644 and the time 0 throughout: one input gives one sequence of
// bytes. No rows give one empty shard, so that each split has a file.
func WriteWebDataset(sink Sink, s manifest.Schema, flagged bool, split string, rows iter.Seq2[Row, error]) (Stats, error) {
	fail := func(err error) (Stats, error) { return Stats{}, fmt.Errorf("write webdataset: %w", err) }
	if err := checkSchema(s, flagged); err != nil {
		return fail(err)
	}
	if err := checkSplit(split); err != nil {
		return fail(err)
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	t := tarShards{schema: s, flagged: flagged, next: next}
	if err := t.advance(); err != nil {
		return fail(err)
	}
	for shard := 0; shard == 0 || t.more; shard++ {
		if err := sink(fmt.Sprintf("%s-%06d.tar", split, shard), t.shard); err != nil {
			return fail(err)
		}
	}
	return t.stats, nil
}

// tarShards cuts rows into tars. It holds the row that comes next.
type tarShards struct {
	schema  manifest.Schema
	flagged bool
	next    func() (Row, error, bool)
	stats   Stats

	row  Row
	more bool   // row is one
	key  string // of row
	ext  string
	meta []byte // of row, its JSON
}

// advance gets the next row and what is written of it.
func (t *tarShards) advance() (err error) {
	t.row, err, t.more = t.next()
	if err != nil {
		return fmt.Errorf("after %d rows: %w", t.stats.Rows, err)
	}
	if !t.more {
		return nil
	}
	err = t.row.check(t.schema)
	if err == nil {
		t.key, err = fileKey(t.row.ID)
	}
	if err == nil {
		t.ext, err = extension(&t.row)
	}
	if err == nil {
		t.meta, err = metadataJSON(t.schema, t.flagged, &t.row)
	}
	if err != nil {
		return fmt.Errorf("row %d (%q): %w", t.stats.Rows+1, t.row.ID, err)
	}
	return nil
}

// tarSize is what a file of n bytes takes in a tar.
func tarSize(n int) int64 { return 512 + (int64(n)+511)/512*512 }

// tarEnd is what ends a tar.
const tarEnd = 1024

func (t *tarShards) shard(w io.Writer) error {
	tw := tar.NewWriter(w)
	size := int64(tarEnd)
	for rows := 0; t.more; rows++ {
		grown := size + tarSize(len(t.row.Image)) + tarSize(len(t.meta))
		// The first row goes in whatever its size.
		if rows > 0 && grown > ShardBytes {
			break
		}
		size = grown
		if err := t.member(tw, "."+t.ext, t.row.Image); err != nil {
			return err
		}
		if err := t.member(tw, ".json", t.meta); err != nil {
			return err
		}
		t.stats.Rows++
		t.stats.ImageBytes += int64(len(t.row.Image))
		if err := t.advance(); err != nil {
			return err
		}
	}
	t.stats.Bytes += size
	return tw.Close()
}

func (t *tarShards) member(tw *tar.Writer, ending string, body []byte) error {
	err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: t.key + ending, Size: int64(len(body)), Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = tw.Write(body)
	}
	if err != nil {
		return fmt.Errorf("row %d (%q): %w", t.stats.Rows+1, t.row.ID, err)
	}
	return nil
}

// metadataJSON is a row without its image: the columns of the Parquet in their order, labels by name.
func metadataJSON(s manifest.Schema, flagged bool, r *Row) ([]byte, error) {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	o := object{{"id", r.ID}, {"ocr_text", r.Text}, {"ocr_confidence", float32(r.Confidence)}, {"width", r.Width}, {"height", r.Height},
		{"sha256", r.SHA256}, {"phash", orNull(r.PHash)}}
	if flagged {
		o = append(o, member{"filter", orNull(r.Filter)})
	}
	for i := range s.Categories {
		c := &s.Categories[i]
		names := labelNames(c, r.Labels[i])
		switch {
		case c.Kind == manifest.Multi && names == nil, c.Kind != manifest.Multi && len(names) == 0:
			o = append(o, member{c.Name, nil})
		case c.Kind == manifest.Multi:
			o = append(o, member{c.Name, names})
		default:
			o = append(o, member{c.Name, names[0]})
		}
	}
	text, err := jsonText(o)
	return append([]byte(text), '\n'), err
}

// labelNames gives the names of labels; nil for nil.
func labelNames(c *manifest.Category, ids []int) []string {
	if ids == nil {
		return nil
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = c.Labels[id].Name
	}
	return names
}
