package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// A DiffSide is one of the two things that Diff compares: a Parquet file, the folder of a dataset, a
// workspace, or an outcomes.csv. It holds no file open but the workspace's database.
type DiffSide struct {
	name     string
	tables   []namedFile
	outcomes *namedFile
	ws       *workspace.Workspace
}

// A namedFile is a file of a side. Split is what its name says of its rows.
type namedFile struct {
	name, split string
	open        func() (*os.File, error)
}

// shardName is how the Parquet of a split is called.
var shardName = regexp.MustCompile(`^(.+)-\d{5}-of-\d{5}\.parquet$`)

// OpenDiffSide finds out what path is. A workspace is opened for reading only, and may be at work.
func OpenDiffSide(ctx context.Context, name string) (*DiffSide, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	switch {
	case info.Mode().IsRegular():
		f := newNamedFile(name)
		if path.Ext(name) == ".csv" {
			return &DiffSide{name: name, outcomes: &f}, nil
		}
		return &DiffSide{name: name, tables: []namedFile{f}}, nil
	case !info.IsDir():
		return nil, fmt.Errorf("compare: %s is neither a file nor a folder", name)
	}
	ws, err := workspace.Open(ctx, name, workspace.Options{ReadOnly: true})
	if errors.Is(err, workspace.ErrNoWorkspace) {
		return datasetSide(name)
	}
	if err != nil {
		return nil, err
	}
	return workspaceSide(ctx, name, ws)
}

func newNamedFile(name string) namedFile {
	return namedFile{name: name, split: splitOf(name), open: func() (*os.File, error) { return os.Open(name) }}
}

func splitOf(name string) string {
	if m := shardName.FindStringSubmatch(filepath.Base(name)); m != nil {
		return m[1]
	}
	return ""
}

// datasetSide is the folder of a dataset, with its Parquet files in data/, or a folder of Parquet files. An
// outcomes.csv in it counts too.
func datasetSide(name string) (*DiffSide, error) {
	s := &DiffSide{name: name}
	for _, pattern := range []string{filepath.Join("data", "*.parquet"), "*.parquet"} {
		found, err := fs.Glob(os.DirFS(name), filepath.ToSlash(pattern))
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		for _, f := range found {
			s.tables = append(s.tables, newNamedFile(filepath.Join(name, filepath.FromSlash(f))))
		}
		if len(s.tables) > 0 {
			break
		}
	}
	outcomes := filepath.Join(name, manifest.OutcomesName)
	if info, err := os.Stat(outcomes); err == nil && info.Mode().IsRegular() {
		f := newNamedFile(outcomes)
		s.outcomes = &f
	}
	if len(s.tables) == 0 && s.outcomes == nil {
		return nil, fmt.Errorf("compare: %s holds neither a workspace nor Parquet files, in itself or in data/", name)
	}
	return s, nil
}

func workspaceSide(ctx context.Context, name string, ws *workspace.Workspace) (*DiffSide, error) {
	s := &DiffSide{name: name, ws: ws}
	inside := func(file string) namedFile {
		return namedFile{name: filepath.Join(name, filepath.FromSlash(file)), split: splitOf(file),
			open: func() (*os.File, error) { return ws.OpenFile(file) }}
	}
	files, err := ws.Files(ctx, path.Join(state.DatasetDir, "data"))
	if err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	for _, f := range files {
		if shardName.MatchString(path.Base(f)) {
			s.tables = append(s.tables, inside(f))
		}
	}
	if f, err := ws.OpenFile(manifest.OutcomesName); err == nil {
		f.Close()
		outcomes := inside(manifest.OutcomesName)
		s.outcomes = &outcomes
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, ws.Close())
	}
	if len(s.tables) == 0 && s.outcomes == nil {
		return nil, errors.Join(fmt.Errorf("compare: the workspace %s has neither a dataset nor outcomes yet", name), ws.Close())
	}
	return s, nil
}

// Close closes what the side holds open.
func (s *DiffSide) Close() error {
	if s.ws == nil {
		return nil
	}
	return s.ws.Close()
}

// A Change is one entry that differs between two datasets.
type Change struct {
	ID string `json:"id"`
	// Kind is gained or lost where only one side has the row, changed where both have it and it is another,
	// outcome where neither has it and its outcome is another.
	Kind string `json:"kind"`
	// Old and New are the outcomes; nil where the side has no outcomes, or not this entry.
	Old    *state.Conclusion      `json:"old_outcome,omitempty"`
	New    *state.Conclusion      `json:"new_outcome,omitempty"`
	Split  *[2]string             `json:"split,omitempty"` // old and new, where they differ
	Image  *ImageChange           `json:"image,omitempty"`
	Text   *WordChange            `json:"text,omitempty"`
	Labels map[string]LabelChange `json:"labels,omitempty"`
}

// An ImageChange is an image that is another now.
type ImageChange struct {
	Old      string `json:"old_sha256"`
	New      string `json:"new_sha256"`
	Distance *int   `json:"phash_distance"` // differing bits of the 64; nil where a side has no hash
}

// A WordChange says which words of a text came and went, without control characters. Words that only moved
// are neither.
type WordChange struct {
	Gained []string `json:"gained"`
	Lost   []string `json:"lost"`
}

// A LabelChange is the labels of one category, before and after; nil is none given.
type LabelChange struct {
	Old []string `json:"old"`
	New []string `json:"new"`
}

// A SideCount says what a side holds.
type SideCount struct {
	Path      string `json:"path"`
	Rows      int    `json:"rows"`
	Entries   int    `json:"entries"`    // of its outcomes
	Repeated  int    `json:"repeated"`   // rows whose id an earlier row has; they are not compared
	WithoutID int    `json:"without_id"` // rows without an id; they are not compared
}

// A KeyChange is something said of a dataset as a whole that is another now.
type KeyChange struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// A WhyCount counts the entries whose outcome went from Old to New; a part is nil where the side does not
// tell.
type WhyCount struct {
	Old   *state.Conclusion `json:"old_outcome"`
	New   *state.Conclusion `json:"new_outcome"`
	Count int               `json:"count"`
}

// A Diff sums up the differences between two datasets.
type Diff struct {
	Old        SideCount   `json:"old"`
	New        SideCount   `json:"new"`
	Changed    bool        `json:"changed"` // there is any difference below
	Gained     int         `json:"gained"`
	Lost       int         `json:"lost"`
	Images     int         `json:"images_changed"`
	Texts      int         `json:"texts_changed"`
	Labels     int         `json:"labels_changed"`
	Splits     int         `json:"splits_changed"`
	Outcomes   int         `json:"outcomes_changed"` // of entries that are rows of neither side
	WhyGained  []WhyCount  `json:"why_gained"`
	WhyLost    []WhyCount  `json:"why_lost"`
	WhyElse    []WhyCount  `json:"why_outcomes"`
	Schema     []KeyChange `json:"schema"`
	Provenance []KeyChange `json:"provenance"`
	// Step is what Croissant's numbering makes of it: major where rows went or changed, minor where rows or
	// columns came, patch where only the file is another, none.
	Step        string   `json:"version_step"`
	NotCompared []string `json:"not_compared"` // what could not be compared, and why
}

// CompareDatasets compares two sides and calls visit with each change: the rows of the old side in its order, then
// those gained in the order of the new one, then changed outcomes of entries that are no rows. It streams
// both; memory holds the ids and digests of both, and old texts by the batch. An error of visit ends it.
func CompareDatasets(ctx context.Context, older, newer *DiffSide, visit func(Change) error) (Diff, error) {
	c := &comparison{older: older, newer: newer, visit: visit, rows: map[string]*rowDigest{}, why: map[string]map[[4]string]int{}}
	for _, step := range []func(context.Context) error{c.start, c.readOld, c.tellRest} {
		if err := step(ctx); err != nil {
			return Diff{}, err
		}
	}
	return c.sum(), nil
}
