package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unique"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
)

// maxHeld bounds the memory of one side, in bytes: some two million memes with their texts.
const maxHeld = 1 << 30

// A side is one of the two datasets, read whole but for its images.
type side struct {
	each       func(*row) // takes the first row of each id; nil where they are held
	count      SideCount
	rows       []row                                      // those that are held, in order
	place      map[string]int                             // id -> its place in rows
	table      *table                                     // the first one, closed, for its columns; nil without Parquet files
	provenance map[string]string                          // what all Parquet files say
	entries    []string                                   // ids of the outcomes, in order
	verdicts   map[string]unique.Handle[state.Conclusion] // nil without outcomes
	held       int64
}

// read reads the Parquet file, outcomes.csv, folder of a dataset, or workspace called name. Of a workspace it reads
// the dataset and the outcomes alone, so that a run may be at work there.
func (s *side) read(ctx context.Context, name string) (err error) {
	var tables []string
	outcomes := ""
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return fmt.Errorf("compare: %w", err)
	case info.Mode().IsRegular() && filepath.Ext(name) == ".csv":
		outcomes = name
	case info.Mode().IsRegular():
		tables = []string{name}
	case !info.IsDir():
		return fmt.Errorf("compare: %s is neither a file nor a folder", name)
	default:
		tables, outcomes, err = filesOf(name)
		if err != nil {
			return err
		}
	}
	s.count.Path, s.place = name, map[string]int{}
	for _, table := range tables {
		if err := s.readTable(ctx, table); err != nil {
			return err
		}
	}
	if outcomes == "" {
		return nil
	}
	// After the tables: outcomes stand in for rows where there are none.
	return s.readOutcomes(ctx, outcomes)
}

// filesOf returns the Parquet files and the outcomes.csv, empty for none, of a folder: those of a workspace, of a
// dataset, which has its files in data/, or whatever Parquet files it holds.
func filesOf(folder string) (tables []string, outcomes string, err error) {
	patterns, lacks := []string{"data/*.parquet", "*.parquet"},
		"holds neither a workspace nor Parquet files, in itself or in data/"
	if _, err := os.Stat(filepath.Join(folder, state.StateFile)); err == nil {
		// What somebody put beside the shards is not of the dataset.
		patterns, lacks = []string{state.DatasetDir + "/data/*-of-*.parquet"},
			"is a workspace without a dataset or outcomes yet"
	}
	for _, pattern := range patterns {
		names, _ := fs.Glob(os.DirFS(folder), pattern) // its only error is that of a bad pattern
		for _, name := range names {
			tables = append(tables, filepath.Join(folder, name))
		}
		if len(tables) > 0 {
			break
		}
	}
	if info, err := os.Stat(filepath.Join(folder, manifest.OutcomesName)); err == nil && info.Mode().IsRegular() {
		outcomes = filepath.Join(folder, manifest.OutcomesName)
	}
	if len(tables) == 0 && outcomes == "" {
		err = fmt.Errorf("compare: %s %s", folder, lacks)
	}
	return tables, outcomes, err
}

// readOutcomes takes the outcomes in. Without Parquet files, the rows are the entries that they say are kept.
func (s *side) readOutcomes(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	defer f.Close()
	s.verdicts = map[string]unique.Handle[state.Conclusion]{}
	for res, err := range manifest.ReadOutcomes(f) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("compare %s: %w", name, err)
		}
		id := strings.Clone(res.Key.String()) // as a part of its line it would keep the line in memory
		s.count.Entries++
		s.entries = append(s.entries, id)
		s.verdicts[id] = unique.Make(state.Conclusion{Outcome: res.Outcome, Reason: res.Reason})
		if err := s.hold(len(id)); err != nil {
			return err
		}
		if res.Outcome == manifest.Kept && s.table == nil {
			if err := s.add(row{id: id, split: res.Split}); err != nil {
				return err
			}
		}
	}
	return nil
}

// shardName is how the Parquet of a split is called.
var shardName = regexp.MustCompile(`^(.+)-\d{5}-of-\d{5}\.parquet$`)

func (s *side) readTable(ctx context.Context, name string) error {
	t, err := openTable(name)
	if err != nil {
		return err
	}
	defer t.reader.Close()
	if s.table == nil {
		s.table, s.provenance = t, t.provenance
	}
	if !maps.Equal(s.table.types, t.types) {
		return fmt.Errorf("compare: %s has other columns than the other files of its dataset: compare them one by one", name)
	}
	// One value stands for all files only where they agree.
	for key, value := range t.provenance {
		if s.provenance[key] != value {
			s.provenance[key] = "(not the same in all files)"
		}
	}
	split := "" // what the file's name says of its rows
	if m := shardName.FindStringSubmatch(filepath.Base(name)); m != nil {
		split = m[1]
	}
	for {
		r, err := t.next()
		if err == io.EOF {
			t.reader = nil // its footer takes as much as many rows
			return nil
		}
		if err == nil {
			r.split = cmp.Or(r.split, split)
			err = s.add(r)
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// add takes a row in, unless it cannot be compared.
func (s *side) add(r row) error {
	s.count.Rows++
	if r.id == "" {
		s.count.WithoutID++
		return nil
	}
	if _, twice := s.place[r.id]; twice {
		s.count.Repeated++
		return nil
	}
	s.place[r.id] = len(s.rows)
	if s.each != nil {
		s.each(&r)
		return s.hold(len(r.id))
	}
	s.rows = append(s.rows, r)
	// A slice takes 24 bytes, a text 16 beside what is in it.
	size := len(r.id) + len(r.sha256) + len(r.phash) + len(r.text) + len(r.split)
	for _, values := range r.labels {
		size += 24
		for _, v := range values {
			size += 16 + len(v)
		}
	}
	return s.hold(size)
}

// hold counts the memory of one more row or entry.
func (s *side) hold(size int) error {
	const overhead = 250 // of the row itself, and of its place in the map
	s.held += int64(size) + overhead
	if s.held > maxHeld {
		return fmt.Errorf("compare: %s is too large: the rows of a side may take %d MiB of memory, without images",
			s.count.Path, maxHeld>>20)
	}
	return nil
}

// labelsOf returns the values of a label column; nil where no label was given.
func (s *side) labelsOf(r *row, column string) []string {
	if i := slices.Index(s.table.labels, column); i < len(r.labels) {
		return r.labels[i]
	}
	return nil
}
