package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/dataset/scan"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// maxHeld bounds the memory of one side, in bytes: some two million memes with their texts.
const maxHeld = 1 << 30

// A side is one of the two datasets, read whole but for its images.
type side struct {
	count      SideCount
	hasTables  bool
	rows       []scan.TableRow   // the first row of each id, in order
	place      map[string]int    // id -> its place in rows
	columns    map[string]string // name -> type
	labels     []string          // the label columns
	names      map[string][]string
	has        map[string]bool // which of sha256, phash and ocr_text are columns
	provenance map[string]string

	hasOutcomes bool
	entries     []string // ids of the outcomes, in order
	verdicts    map[string]state.Conclusion

	held int64
}

// A source is where a side is read from.
type source struct {
	tables   []string // names of Parquet files
	outcomes string   // name of an outcomes.csv, "" for none
	open     func(name string) (*os.File, error)
}

// read reads the Parquet file, outcomes.csv, folder of a dataset, or workspace called name. A workspace is
// opened for reading only, and may be at work.
func read(ctx context.Context, name string) (*side, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare: %w", err)
	case info.Mode().IsRegular() && filepath.Ext(name) == ".csv":
		return source{outcomes: name, open: os.Open}.read(ctx, name)
	case info.Mode().IsRegular():
		return source{tables: []string{name}, open: os.Open}.read(ctx, name)
	case !info.IsDir():
		return nil, fmt.Errorf("compare: %s is neither a file nor a folder", name)
	}
	ws, err := workspace.Open(ctx, name, workspace.Options{ReadOnly: true})
	if errors.Is(err, workspace.ErrNoWorkspace) {
		return readFolder(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	s, err := readWorkspace(ctx, name, ws)
	return s, errors.Join(err, ws.Close())
}

// readFolder reads a dataset, with its Parquet files in data/, or a folder of Parquet files. An outcomes.csv in
// it counts too.
func readFolder(ctx context.Context, name string) (*side, error) {
	src := source{open: func(file string) (*os.File, error) { return os.Open(filepath.Join(name, file)) }}
	for _, pattern := range []string{"data/*.parquet", "*.parquet"} {
		found, err := fs.Glob(os.DirFS(name), pattern)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		if len(src.tables) == 0 {
			src.tables = found
		}
	}
	if info, err := os.Stat(filepath.Join(name, manifest.OutcomesName)); err == nil && info.Mode().IsRegular() {
		src.outcomes = manifest.OutcomesName
	}
	if len(src.tables) == 0 && src.outcomes == "" {
		return nil, fmt.Errorf("compare: %s holds neither a workspace nor Parquet files, in itself or in data/", name)
	}
	return src.read(ctx, name)
}

func readWorkspace(ctx context.Context, name string, ws *workspace.Workspace) (*side, error) {
	src := source{open: ws.OpenFile}
	files, err := ws.Files(ctx, path.Join(state.DatasetDir, "data"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if shardName.MatchString(path.Base(f)) {
			src.tables = append(src.tables, f)
		}
	}
	f, err := ws.OpenFile(manifest.OutcomesName)
	if err == nil {
		f.Close()
		src.outcomes = manifest.OutcomesName
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(src.tables) == 0 && src.outcomes == "" {
		return nil, fmt.Errorf("compare: the workspace %s has neither a dataset nor outcomes yet", name)
	}
	return src.read(ctx, name)
}

// read reads everything of the source. Without Parquet files, the rows are the entries that the outcomes say
// are kept.
func (src source) read(ctx context.Context, name string) (*side, error) {
	s := &side{count: SideCount{Path: name}, hasTables: len(src.tables) > 0, hasOutcomes: src.outcomes != "",
		place: map[string]int{}, names: map[string][]string{}, has: map[string]bool{}, verdicts: map[string]state.Conclusion{}}
	if s.hasOutcomes {
		if err := src.using(src.outcomes, func(f *os.File) error { return s.readOutcomes(ctx, f) }); err != nil {
			return nil, err
		}
	}
	for i, table := range src.tables {
		if err := src.using(table, func(f *os.File) error { return s.readTable(ctx, f, i == 0) }); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (src source) using(name string, use func(*os.File) error) error {
	f, err := src.open(name)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	defer f.Close()
	return use(f)
}

func (s *side) readOutcomes(ctx context.Context, f *os.File) error {
	for res, err := range manifest.ReadOutcomes(f) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("compare %s: %w", f.Name(), err)
		}
		id := res.Key.String()
		s.count.Entries++
		s.entries = append(s.entries, id)
		s.verdicts[id] = state.Conclusion{Outcome: res.Outcome, Reason: res.Reason}
		if err := s.hold(len(id)); err != nil {
			return err
		}
		if res.Outcome == manifest.Kept && !s.hasTables {
			if err := s.add(scan.TableRow{ID: id, Split: res.Split}); err != nil {
				return err
			}
		}
	}
	return nil
}

// shardName is how the Parquet of a split is called.
var shardName = regexp.MustCompile(`^(.+)-\d{5}-of-\d{5}\.parquet$`)

func (s *side) readTable(ctx context.Context, f *os.File, first bool) error {
	t, err := scan.OpenTable(f)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := s.describe(t, f.Name(), first); err != nil {
		return err
	}
	split := "" // what the file's name says of its rows
	if m := shardName.FindStringSubmatch(filepath.Base(f.Name())); m != nil {
		split = m[1]
	}
	for {
		row, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		row.Split = cmp.Or(row.Split, split)
		if err := s.add(row); err != nil {
			return err
		}
	}
}

// describe takes over what a file says of its dataset as a whole. All files of a dataset have the same columns.
func (s *side) describe(t *scan.Table, name string, first bool) error {
	if !first {
		if !maps.Equal(s.columns, t.Columns()) {
			return fmt.Errorf("compare: %s has other columns than the other files of its dataset: compare them one by one", name)
		}
		for key, value := range t.Provenance() {
			if s.provenance[key] != value {
				s.provenance[key] = "(not the same in all files)"
			}
		}
		return nil
	}
	s.columns, s.labels, s.provenance = t.Columns(), t.Labels(), t.Provenance()
	for _, column := range []string{"sha256", "phash", "ocr_text"} {
		s.has[column] = t.Has(column)
	}
	for _, column := range s.labels {
		s.names[column] = t.LabelNames(column)
	}
	return nil
}

// add takes a row in, unless it cannot be compared.
func (s *side) add(row scan.TableRow) error {
	s.count.Rows++
	if row.ID == "" {
		s.count.WithoutID++
		return nil
	}
	if _, twice := s.place[row.ID]; twice {
		s.count.Repeated++
		return nil
	}
	s.place[row.ID] = len(s.rows)
	s.rows = append(s.rows, row)
	size := len(row.ID) + len(row.SHA256) + len(row.PHash) + len(row.Text) + len(row.Split)
	for _, values := range row.Labels {
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
		return fmt.Errorf("compare: %s is too large: the rows of a side may take %d MiB of memory, without images", s.count.Path, maxHeld>>20)
	}
	return nil
}

// labelsOf returns the values of a label column; nil where no label was given.
func (s *side) labelsOf(r *scan.TableRow, column string) []string {
	if i := slices.Index(s.labels, column); i >= 0 && i < len(r.Labels) {
		return r.Labels[i]
	}
	return nil
}
