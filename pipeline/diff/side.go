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
	"slices"

	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A side is one of the two datasets. Of a workspace it is the dataset and the outcomes alone, so that a run may be at
// work there.
type side struct {
	count      SideCount
	within     string                                // a file that it has, or a name that one could have
	table      *table                                // the first one, for its columns; nil without Parquet files
	provenance map[string]string                     // what the Parquet files that were read say
	outcomes   string                                // the name of its outcomes.csv, "" without one
	gone       map[manifest.PostID]*state.Conclusion // why posts are gone that it has a tombstone of

	files   []string // tables that are not open yet
	reading *table   // nil for none
	split   string   // what its name says of its rows
	over    bool     // no row of it comes any more
}

// openSide opens the Parquet file, outcomes.csv, folder of a dataset, workspace, or release called name. A release may
// stand beside a dataset.
func openSide(ctx context.Context, name string, besideDataset bool) (*side, error) {
	s := &side{count: SideCount{Path: name}, within: name}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare: %w", err)
	case info.Mode().IsRegular() && filepath.Ext(name) == ".csv":
		s.outcomes = name
	case info.Mode().IsRegular():
		s.files = []string{name}
	case !info.IsDir():
		return nil, fmt.Errorf("compare: %s is neither a file nor a folder", name)
	case isRelease(name):
		s.within = filepath.Join(name, manifest.OutcomesName)
		s.table, err = openRelease(ctx, name, besideDataset)
		if err != nil {
			return nil, err
		}
		s.reading, s.provenance, s.gone = s.table, s.table.provenance, s.table.gone
	default:
		s.within = filepath.Join(name, manifest.OutcomesName)
		s.files, s.outcomes, err = filesOf(name)
		if err != nil {
			return nil, err
		}
		s.gone = tombstonesOf(ctx, name)
	}
	if len(s.files) > 0 {
		err = s.open()
	}
	return s, err
}

// tombstonesOf gives why the posts are gone that a workspace has a tombstone of: an entry that left the release has no
// outcome there. It gives none of another folder, nor of a workspace that cannot be read.
func tombstonesOf(ctx context.Context, folder string) map[manifest.PostID]*state.Conclusion {
	if _, err := os.Stat(filepath.Join(folder, state.StateFile)); err != nil {
		return nil
	}
	ws, err := workspace.Open(ctx, folder, workspace.Options{ReadOnly: true})
	if err != nil {
		return nil
	}
	defer ws.Close()
	stones, err := ws.Tombstones(ctx)
	if err != nil {
		return nil
	}
	gone := make(map[manifest.PostID]*state.Conclusion)
	for _, stone := range stones {
		if !stone.Readmitted {
			gone[stone.ID] = &state.Conclusion{Outcome: manifest.Outcome(stone.State), Reason: stone.Reason}
		}
	}
	return gone
}

// filesOf returns the Parquet files and the outcomes.csv, empty for none, of a folder: those of a workspace, of a
// dataset, which has its files in data/, or whatever Parquet files it holds.
func filesOf(folder string) (tables []string, outcomes string, err error) {
	patterns, lacks := []string{"data/*.parquet", "*.parquet"},
		"holds neither a workspace, a release nor Parquet files, in itself or in data/"
	ours := func(string) bool { return true }
	if _, err := os.Stat(filepath.Join(folder, state.StateFile)); err == nil {
		// What somebody put beside the shards is not of the dataset.
		patterns, lacks = []string{state.DatasetDir + "/data/*.parquet"},
			"is a workspace without a dataset or outcomes yet"
		ours = state.IsShard
	}
	for _, pattern := range patterns {
		names, _ := fs.Glob(os.DirFS(folder), pattern) // its only error is that of a bad pattern
		for _, name := range slices.DeleteFunc(names, func(name string) bool { return !ours(name) }) {
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

// open opens the next table.
func (s *side) open() error {
	name := s.files[0]
	t, err := openTable(name)
	if err != nil {
		return err
	}
	s.files, s.reading = s.files[1:], t
	s.split, _ = dataset.SplitOf("data/" + filepath.Base(name)) // in whatever folder it lies
	if s.table == nil {
		s.table, s.provenance = t, t.provenance
	}
	// the labels of a row stand in that order
	if !maps.Equal(s.table.types, t.types) || !slices.Equal(s.table.labels, t.labels) {
		return fmt.Errorf("compare: %s has other columns, or in another order, than the other files of its dataset: compare them one by one", name)
	}
	// One value stands for all files only where they agree.
	for key, value := range t.provenance {
		if s.provenance[key] != value {
			s.provenance[key] = "(not the same in all files)"
		}
	}
	return nil
}

// close closes the table that is being read.
func (s *side) close() {
	if s.reading != nil {
		s.reading.reader.Close()
		s.reading.reader, s.reading = nil, nil // its footer takes as much as many rows
	}
}

// next returns the next row of the tables, io.EOF after the last.
func (s *side) next() (row, error) {
	for {
		if s.reading == nil {
			if len(s.files) == 0 {
				s.over = s.table != nil // else outcomes stand in for rows
				return row{}, io.EOF
			}
			if err := s.open(); err != nil {
				return row{}, err
			}
		}
		r, err := s.reading.next()
		if err != io.EOF {
			r.split = cmp.Or(r.split, s.split)
			return r, err
		}
		s.close()
	}
}

// readOutcomes takes the outcomes of a side in. Without Parquet files, its rows are the entries that they say are kept.
func (c *comparison) readOutcomes(ctx context.Context, i int) error {
	s := c.sides[i]
	if s.outcomes == "" {
		return nil
	}
	f, _, err := userfile.Open(s.outcomes)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	defer f.Close()
	for res, err := range manifest.ReadOutcomes(f) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("compare %s: %w", s.outcomes, err)
		}
		s.count.Entries++
		id := res.Key.String()
		k := c.ids[id]
		k.outcome[i] = c.same(state.Conclusion{Outcome: res.Outcome, Reason: res.Reason})
		err := c.know(i, id, k)
		if err == nil && res.Outcome == manifest.Kept && s.table == nil {
			err = c.add(i, row{id: id, split: res.Split})
		}
		if err != nil {
			return err
		}
		// What was kept and is a row no longer is told as lost.
		was := k.outcome[before]
		if i == after && was != nil && was.Outcome != manifest.Kept && was != k.outcome[after] &&
			c.ids[id].row[after] == 0 {
			c.outcomes[int32(s.count.Entries)] = Change{ID: id, Kind: "outcome"}
		}
	}
	return nil
}

// same returns where a conclusion is that was met before.
func (c *comparison) same(o state.Conclusion) *state.Conclusion {
	if c.met[o] == nil {
		c.met[o] = &o
	}
	return c.met[o]
}

// labelsOf returns the values of a label column; nil where no label was given.
func (s *side) labelsOf(r *row, column string) []string {
	if i := slices.Index(s.table.labels, column); i < len(r.labels) {
		return r.labels[i]
	}
	return nil
}

// size is about how much memory a row takes that waits.
func (r *row) size() int {
	// A slice takes 24 bytes, a text 16 beside what is in it.
	size := 250 + len(r.id) + len(r.sha256) + len(r.phash) + len(r.text) + len(r.split)
	for _, values := range r.labels {
		size += 24
		for _, v := range values {
			size += 16 + len(v)
		}
	}
	return size
}
