package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// An inventory is what a workspace has, as it lies on the disk.
type inventory struct {
	rows     map[string]dataset.Row // of the dataset's files
	records  map[string]workspace.Record
	outcomes map[string]manifest.Result // of outcomes.csv, nil where there is none
	images   map[string]bool            // names of files
	copied   map[string]bool            // rows of the files of copies
	listed   map[string]bool            // and rows that are registered
	files    map[string]string          // digests of the dataset's files
	must     state.GoneSet
	answers  map[string]bool // rows with an answer of a model
	status   state.Summary
}

// inspect reads all of it.
func (w *world) inspect() (s inventory) {
	w.Helper()
	s = inventory{map[string]dataset.Row{}, map[string]workspace.Record{}, nil, map[string]bool{}, map[string]bool{},
		map[string]bool{},
		map[string]string{}, state.GoneSet{}, map[string]bool{}, state.Summary{}}
	if _, err := os.Stat(filepath.Join(w.dir, "ws", state.StateFile)); errors.Is(err, fs.ErrNotExist) {
		return s
	}
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		shards, err := state.Shards(ctx, ws)
		testkit.OK(w, err)
		for _, f := range shards {
			for row, err := range state.RowsOf(ctx, ws, f.Name) {
				testkit.OK(w, err)
				if _, twice := s.rows[row.ID]; twice {
					w.Errorf("the row of %s is in the dataset twice", row.ID)
				}
				s.rows[row.ID] = row
			}
		}
		names, err := ws.Files(ctx, state.DatasetDir)
		testkit.OK(w, err)
		for _, name := range names {
			f, err := ws.Stat(ctx, name)
			testkit.OK(w, err)
			s.files[name] = f.SHA256
		}
		for rec, err := range ws.Records(ctx, workspace.Select{}) {
			testkit.OK(w, err)
			s.records[rec.Key.String()] = rec
		}
		names, err = ws.Files(ctx, state.ImagesDir)
		testkit.OK(w, err)
		for _, name := range names {
			s.images[name] = true
		}
		s.outcomes = w.outcomes(ws)
		stones, err := state.HoldingTombstones(ctx, ws)
		testkit.OK(w, err)
		s.must, err = state.MustErase(ctx, ws, stones, w.policy)
		testkit.OK(w, err)
		all, err := ws.Answers(ctx, "test")
		testkit.OK(w, err)
		for _, a := range all {
			s.answers[a.Key.String()] = true
		}
		s.status, err = state.Status(ctx, ws, w.now)
		testkit.OK(w, err, s.status.FindRemnants(ctx, ws))
		w.inspectCopies(ctx, ws, &s)
	})
	return s
}

func (w *world) outcomes(ws *workspace.Workspace) map[string]manifest.Result {
	w.Helper()
	f, err := ws.OpenFile(manifest.OutcomesName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	testkit.OK(w, err)
	defer f.Close()
	all := map[string]manifest.Result{}
	for res, err := range manifest.ReadOutcomes(f) {
		testkit.OK(w, err)
		all[res.Key.String()] = res
	}
	return all
}

func (w *world) inspectCopies(ctx context.Context, ws *workspace.Workspace, s *inventory) {
	w.Helper()
	list, err := ws.Copies(ctx)
	testkit.OK(w, err)
	for _, c := range list {
		for _, row := range c.Rows {
			s.listed[row] = true
		}
		for _, f := range c.Files {
			if !dataset.Holds(f.Name) {
				continue
			}
			w.rowsOf(filepath.Join(c.Path, f.Name), s.copied)
		}
	}
}

// rowsOf adds the ids of the rows of a file.
func (w *world) rowsOf(file string, to map[string]bool) {
	w.Helper()
	body, err := os.ReadFile(file)
	testkit.OK(w, err)
	for id, err := range dataset.RowIDs(w.Context(), filepath.Base(file), bytes.NewReader(body), int64(len(body))) {
		testkit.OK(w, err)
		to[id] = true
	}
}

// kept are the rows whose stored result is kept.
func (s inventory) kept() map[string]bool {
	kept := map[string]bool{}
	for name, rec := range s.records {
		if rec.Result != nil && rec.Result.Outcome == manifest.Kept {
			kept[name] = true
		}
	}
	return kept
}

// outcome is the stored one of a row, as "gone/http_404".
func (s inventory) outcome(row string) string {
	rec, ok := s.records[row]
	if !ok || rec.Result == nil {
		return ""
	}
	return string(rec.Result.Outcome) + "/" + string(rec.Result.Reason)
}

// imageOf reports whether an entry has an image, on record and on the disk.
func (s inventory) imageOf(row string) bool {
	id, i := splitRow(row)
	name := state.ImagesDir + "/" + id[:min(2, len(id))] + "/" + id
	if i > 0 {
		name += "-" + strconv.Itoa(i)
	}
	return s.records[row].Image != nil && s.images[name+".png"]
}

// checkSound holds the workspace to the invariant: a stored result is kept exactly if the row is in the dataset,
// outcomes.csv and the copies agree, and nothing of what must be gone is anywhere. It returns what there is.
func (w *world) checkSound() inventory {
	w.Helper()
	s := w.inspect()
	trouble := func(format string, args ...any) {
		w.Helper()
		w.Errorf("after %s:\n"+format, append([]any{strings.Join(w.done, "; ")}, args...)...)
	}
	if a, b := namesOf(s.kept()), namesOf(s.rows); a != b {
		trouble("the stored results keep %q, the dataset has %q", a, b)
	}
	if n := s.status.Outcomes[manifest.Kept]; n != len(s.rows) {
		trouble("the status has %d entries in the dataset, which has %d rows", n, len(s.rows))
	}
	if len(s.status.Unfinished) > 0 {
		trouble("the status has unfinished removals: %q", s.status.Unfinished)
	}
	if a, b := namesOf(s.copied), namesOf(s.listed); a != b {
		trouble("the copies have %q, and %q is registered", a, b)
	}
	for name, rec := range s.records {
		if s.outcomes != nil && rec.Result != nil && s.outcomes[name] != *rec.Result {
			trouble("outcomes.csv says of %s %+v, and the workspace %+v", name, s.outcomes[name], *rec.Result)
		}
		if _, goes := s.must.Of(name); goes && (rec.Image != nil || rec.Reading != nil || s.answers[name]) {
			why, _ := s.must.Of(name)
			trouble("something of %s is stored (image %v, reading %v, answers %v), and must be gone: %s, %s", name,
				rec.Image != nil, rec.Reading != nil, s.answers[name], why.State, why.Reason)
		}
		if (rec.Image != nil) != s.imageOf(name) {
			trouble("an image of %s is on record: %v, and on the disk: %v", name, rec.Image != nil, !(rec.Image != nil))
		}
	}
	if stored := len(slices.DeleteFunc(slices.Collect(maps.Values(s.records)),
		func(r workspace.Record) bool { return r.Image == nil })); stored != len(s.images) {
		trouble("%d images are on record, and on the disk are %v", stored, namesOf(s.images))
	}
	for _, set := range []struct {
		what string
		rows []string
	}{{"the dataset", strings.Fields(namesOf(s.rows))}, {"a copy", strings.Fields(namesOf(s.copied))}} {
		for _, row := range set.rows {
			if s.must.HasRow(row) {
				trouble("%s has the row of %s, which must be gone", set.what, row)
			}
		}
	}
	return s
}

// checkSameBytes asserts that rows which are in both are the same.
func (w *world) checkSameBytes(before, after inventory) {
	w.Helper()
	for id, row := range after.rows {
		if was, ok := before.rows[id]; ok && !reflect.DeepEqual(was, row) {
			w.Errorf("after %s:\nthe row of %s was %+v\nand is %+v", strings.Join(w.done, "; "), id, was, row)
		}
	}
}

// checkNowhere asserts that no file of the workspace or of a copy has any of these texts.
func (w *world) checkNowhere(texts ...string) {
	w.Helper()
	w.checkNotIn("ws", texts...)
	w.checkNotIn("copies", texts...)
}

// checkNotIn is checkNowhere for one of the two.
func (w *world) checkNotIn(folder string, texts ...string) {
	w.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, folder), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		for _, text := range texts {
			if bytes.Contains(body, []byte(text)) {
				w.Errorf("after %s:\n%s has %q", strings.Join(w.done, "; "), name, text)
			}
		}
		return err
	})
	testkit.OK(w, err)
}
