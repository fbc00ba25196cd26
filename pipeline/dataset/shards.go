package dataset

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"rehydrate/manifest"
)

// A Sink makes the file called name (slash-separated, inside the folder of the dataset) hold exactly what write writes,
// and returns write's error. WriteFolder calls it for the images while it writes metadata.parquet.
type Sink func(name string, write func(io.Writer) error) error

// ShardBytes is how much of rows a shard takes: what Hugging Face datasets cuts at, too.
const ShardBytes = 500_000_000

// PlanShards says how many rows of a split each shard gets. A shard ends where the next row would take it over
// ShardBytes. sizes yields RowBytes of each row, in order. No rows are one shard without rows.
func PlanShards(sizes iter.Seq[int64]) []int {
	// It depends on nothing else, because the names tell the number of shards before the first row is written.
	plan, bytes := []int{0}, int64(0)
	for size := range sizes {
		last := len(plan) - 1
		// A row that is larger than a shard gets one of its own.
		if plan[last] > 0 && bytes+size > ShardBytes {
			plan, bytes, last = append(plan, 0), 0, last+1
		}
		plan[last]++
		bytes += size
	}
	return plan
}

// RowBytes is what PlanShards counts of a row: the lengths of its image and its text, in bytes, and a little more for
// id, digest and labels.
func RowBytes(image, text int64) int64 { return image + text + 200 }

// WriteShards writes the rows of a split as Parquet files of as many rows as plan says, under the names of
// FileName, and returns what a card says of it. rows must yield as many rows as plan has.
func WriteShards(sink Sink, s manifest.Schema, p Provenance, flagged bool, split string, plan []int,
	rows iter.Seq2[Row, error]) (Split, error) {
	next, stop := iter.Pull2(rows)
	defer stop()
	out := Split{Name: split}
	for i, want := range plan {
		err := sink(FileName(split, i, len(plan)), func(w io.Writer) error {
			stats, err := WriteParquet(w, s, p, flagged, func(yield func(Row, error) bool) {
				for range want { // one sequence of rows feeds all files
					row, err, ok := next()
					if !ok || !yield(row, err) || err != nil {
						return
					}
				}
			})
			if err == nil && stats.Rows != want {
				err = fmt.Errorf("write parquet: %d rows came, %d were planned: the stored state changed meanwhile",
					stats.Rows, want)
			}
			out.Add(stats)
			return err
		})
		if err != nil {
			return Split{}, err
		}
	}
	// A row too many is as wrong as one too few.
	_, err, more := next()
	if err == nil && more {
		err = errors.New("more rows came than were planned: the stored state changed meanwhile")
	}
	if err != nil {
		return Split{}, fmt.Errorf("write parquet: %w", err)
	}
	return out, nil
}

// FileName returns the path of a shard of a split's Parquet inside the dataset folder, in the pattern by
// which Hugging Face finds splits: data/train-00000-of-00002.parquet is shard 0 of 2.
func FileName(split string, shard, of int) string {
	return fmt.Sprintf("data/%s-%05d-of-%05d.parquet", split, shard, of)
}

var shardOf = regexp.MustCompile(`^data/([^/]+)-[0-9]{5,}-of-[0-9]{5,}\.parquet$`)

// SplitOf returns the split for whose shard FileName gives a name; false for any other name.
func SplitOf(name string) (split string, ok bool) {
	m := shardOf.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// shardName is the name of a shard of a split in a format; a folder has one file of rows for each split.
func shardName(f Format, split string, shard, of int) string {
	switch f {
	case WebDataset:
		return fmt.Sprintf("%s-%06d.tar", split, shard)
	case Folder:
		return split + "/metadata.parquet"
	}
	return FileName(split, shard, of)
}

var imageEndings = []string{"jpg", "png", "gif", "webp"}

// files checks a row and returns what its files are called: its id, with - for the / before the number of a later
// image, and that of its image.
func (r *Row) files(s manifest.Schema) (key, image string, err error) {
	if err := r.check(s); err != nil {
		return "", "", err
	}
	key = strings.ReplaceAll(r.ID, "/", "-")
	// No dot: readers of a tar take what is behind the first one for the kind of file.
	if !plainKey.MatchString(key) {
		return "", "", fmt.Errorf("the id %q cannot be the name of a file", r.ID)
	}
	ext := path.Ext(r.Path)
	if !slices.Contains(imageEndings, strings.TrimPrefix(ext, ".")) {
		return "", "", fmt.Errorf("the file name %q of its image has no ending of an image", r.Path)
	}
	return key, key + ext, nil
}

var plainKey = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// checkSplit refuses a split that cannot be part of a file name.
func checkSplit(split string) error {
	if split == "" || split == "." || split == ".." || strings.ContainsAny(split, `/\`) || !printable(split) {
		return fmt.Errorf("the split %q cannot be part of a file name", split)
	}
	return nil
}
