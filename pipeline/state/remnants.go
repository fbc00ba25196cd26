package state

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"rehydrate/internal/durable"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// A Remnant is a file of a workspace that still has something of a row which must go.
type Remnant struct {
	File string
	Row  string // the first one that was found
}

func (r Remnant) String() string { return fmt.Sprintf("%s: %s is still in it", r.File, r.What()) }

// What says what is left.
func (r Remnant) What() string {
	switch {
	case r.File == StateFile:
		return "what was read and measured of " + r.Row
	case strings.HasPrefix(r.File, ImagesDir+"/"):
		return "the image of " + r.Row
	}
	return "the row of " + r.Row
}

// Unremoved says beside the error of a job that a removal is not finished.
type Unremoved struct{ Left []Remnant }

func (e *Unremoved) Error() string {
	first, more := e.Left[0], ""
	if n := len(e.Left) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("the removal is not finished: %s must go and is still in %s%s; run the same command again",
		first.What(), first.File, more)
}

// Remnants returns what must go and is still in the workspace, each list in order of the files. Unfinished is what the
// next job that can write takes out: shards of the dataset with rows of MustLeaveDataset, and lists and results of a
// cluster, images and texts of rows of MustErase. Strays are those of Strays. A file that cannot be read is passed
// over.
func Remnants(ctx context.Context, ws *workspace.Workspace, stones Holding, p policy.Policy) (unfinished,
	strays []Remnant, err error) {
	erase, withheld, err := mustGo(ctx, ws, stones, p)
	if err != nil {
		return nil, nil, err
	}
	withheld.add(erase)
	unfinished, err = unfinishedOf(ctx, ws, erase, withheld)
	if err != nil {
		return nil, nil, err
	}
	strays, err = Strays(ctx, ws, erase)
	return unfinished, strays, err
}

// unfinishedOf finds what a removal has left of rows that must be erased, and of those that must leave the dataset.
func unfinishedOf(ctx context.Context, ws *workspace.Workspace, erase, leave GoneSet) ([]Remnant, error) {
	if leave.Empty() {
		return nil, nil
	}
	left, err := storedOf(ctx, ws, erase)
	if err != nil {
		return nil, err
	}
	for f, err := range regularFiles(ctx, ws, DatasetDir, ShardsDir) {
		if err != nil {
			return nil, err
		}
		row := ""
		switch {
		case IsShard(f):
			row = rowIn(ctx, ws, f, leave)
		case strings.HasPrefix(f, ShardsDir+"/"):
			row = cmp.Or(rowIn(ctx, ws, f, erase), lineIn(ctx, ws, f, erase))
		}
		if row != "" {
			left = append(left, Remnant{f, row})
		}
	}
	slices.SortFunc(left, func(a, b Remnant) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row))
	})
	return left, ctx.Err()
}

// Strays returns the files in the dataset's folder that no run wrote and that have one of the rows, in order of the
// files. They are somebody's own, and no job removes them. A file that cannot be read is passed over: it need not be of
// this dataset, and the audit names it.
func Strays(ctx context.Context, ws *workspace.Workspace, gone GoneSet) (found []Remnant, err error) {
	if gone.Empty() {
		return nil, nil
	}
	for name, err := range regularFiles(ctx, ws, DatasetDir) {
		if err != nil {
			return nil, err
		}
		if IsShard(name) {
			continue
		}
		if row := rowIn(ctx, ws, name, gone); row != "" {
			found = append(found, Remnant{name, row})
		}
	}
	slices.SortFunc(found, func(a, b Remnant) int { return cmp.Compare(a.File, b.File) })
	return found, ctx.Err()
}

// FindRemnants fills in what a summary says of rows that must go and are still in the workspace, for which it reads the
// ids of the dataset.
func (s *Summary) FindRemnants(ctx context.Context, ws *workspace.Workspace) error {
	stones, err := HoldingTombstones(ctx, ws)
	if err != nil {
		return err
	}
	p, err := LastPolicy(ctx, ws)
	if err != nil {
		return err
	}
	unfinished, strays, err := Remnants(ctx, ws, stones, p)
	s.Unfinished, s.Strays = Texts(unfinished), Texts(strays)
	return err
}

// Texts are remnants in words.
func Texts(left []Remnant) (texts []string) {
	for _, r := range left {
		texts = append(texts, r.String())
	}
	return texts
}

// storedOf returns the images, and the texts in state.db, that are stored of rows which must go.
func storedOf(ctx context.Context, ws *workspace.Workspace, gone GoneSet) (left []Remnant, err error) {
	posts := []manifest.PostID{}
	for id := range gone.Posts {
		posts = append(posts, id)
	}
	for _, p := range gone.Entries {
		posts = append(posts, p.ID)
	}
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true, IDs: posts}) {
		if err != nil {
			return nil, err
		}
		row := rec.Key.String()
		if rec.Image == nil && rec.Reading == nil || !gone.HasRow(row) {
			continue
		}
		file := StateFile // an erasure removes the file first
		if rec.Image != nil {
			name := ws.ImageName(rec.Key, rec.Image.Format)
			if f, err := ws.OpenFile(name); err == nil {
				f.Close()
				file = name
			}
		}
		left = append(left, Remnant{file, row})
	}
	return left, nil
}

// regularFiles yields the names of files in folders of the workspace, but for unfinished ones and what cannot be read.
func regularFiles(ctx context.Context, ws *workspace.Workspace, folders ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, folder := range folders {
			for f, err := range ws.Walk(ctx, folder) {
				switch {
				case workspace.Unread(err):
					continue
				case err == nil && (!f.Mode.IsRegular() || durable.IsTemp(path.Base(f.Name))):
					continue
				}
				if !yield(f.Name, err) || err != nil {
					return
				}
			}
		}
	}
}

// rowIn returns a row of gone that a file has, "" for none.
func rowIn(ctx context.Context, ws *workspace.Workspace, name string, gone GoneSet) string {
	there, _ := errors.AsType[*RowThere](FileLacksRows(ctx, ws.OpenFile, name, gone))
	if there == nil {
		return ""
	}
	return there.ID
}

// lineIn is rowIn for a list or the results of a shard, which have an object a line.
func lineIn(ctx context.Context, ws *workspace.Workspace, name string, gone GoneSet) (row string) {
	if path.Ext(name) != ".jsonl" && !strings.HasPrefix(path.Base(name), "part-") {
		return ""
	}
	_ = withFile(ws.OpenFile, name, func(f *os.File, _ int64) error {
		in := json.NewDecoder(bufio.NewReaderSize(durable.Reader(ctx, f), 64<<10))
		for {
			var line struct {
				ID    manifest.PostID
				Image int
			}
			if err := in.Decode(&line); err != nil { // at the end, or of what is damaged: a job removes it whole
				return err
			}
			if key := (manifest.Key{ID: line.ID, Image: line.Image}).String(); gone.HasRow(key) {
				row = key
				return fs.SkipAll
			}
		}
	})
	return row
}
