package state

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// rowsOfSet are the rows of these that a set has.
func rowsOfSet(g GoneSet, rows ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !g.HasRow(row) }), " ")
}

// TestWhichRowsMustGo: the three sets differ in what is withheld, in what the policy does not allow, and in what left
// the manifest.
func TestWhichRowsMustGo(t *testing.T) {
	ctx := t.Context()
	ids := []manifest.PostID{"live1", "gone2", "wait3", "held4", "held5", "left6", "stone7", "pict8"}
	ws := sameImages(t, noon, ids...)
	testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{
		{ID: "gone2", State: manifest.StateUnavailable, Reason: "absent", CheckedAt: noon, LiveAt: noon},
		{ID: "wait3", State: manifest.StateDeleted, Reason: "author", CheckedAt: noon, LiveAt: noon, Withheld: true},
		{ID: "held4", State: manifest.StateHeld, Reason: "quarantine", CheckedAt: noon, LiveAt: noon},
		{ID: "held5", State: manifest.StateHeld, Reason: "quarantine", CheckedAt: noon, LiveAt: noon},
	}))
	testkit.OK(t, ws.SetTrouble(ctx, manifest.Key{ID: "left6"},
		workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, Beside: workspace.Waiting}),
		ws.DropImage(ctx, manifest.Key{ID: "pict8"},
			workspace.Trouble{Outcome: manifest.Refused, Reason: policy.SameAsRemoved}, true))
	var results []manifest.Result
	for _, id := range ids {
		results = append(results, manifest.Result{Key: manifest.Key{ID: id}, Outcome: manifest.Kept})
	}
	results[3].Outcome = manifest.Refused // held5 is in the dataset yet
	testkit.OK(t, ws.SetResults(ctx, results))
	testkit.OK(t, ws.AddTombstones(ctx, []workspace.Tombstone{{Tombstone: manifest.Tombstone{ID: "stone7",
		State: manifest.StateRemoved, Time: noon}}}))
	rows := []string{"live1", "gone2", "wait3", "held4", "held5", "left6", "stone7", "pict8", "nobody9"}
	stones, err := HoldingTombstones(ctx, ws)
	testkit.OK(t, err)

	erased, err := MustErase(ctx, ws, stones, policy.Default())
	testkit.Same(t, "rows whose content is erased", "gone2 stone7 pict8", rowsOfSet(erased, rows...), err)
	out, err := MustLeaveDataset(ctx, ws, stones, policy.Default())
	testkit.Same(t, "rows that the dataset must not have", "gone2 wait3 left6 stone7 pict8", rowsOfSet(out, rows...),
		err)
	waits, err := Withheld(ctx, ws)
	testkit.Same(t, "rows that wait", "wait3 left6", rowsOfSet(waits, rows...), err)
	copies, err := MustLeaveCopies(ctx, ws, erased, stones, policy.Default())
	testkit.Same(t, "rows of copies, where there is none", erased, copies.GoneSet, err)

	testkit.OK(t, ws.SetCopy(ctx, workspace.Copy{Path: "/good", Made: noon, Files: []workspace.File{{Name: "a"}},
		Rows: []string{"live1", "held4", "held5"}}),
		ws.SetCopy(ctx, workspace.Copy{Path: "/owes", Made: noon, Files: []workspace.File{{Name: "a"}}, Rows: rows}),
		ws.SetCopy(ctx, workspace.Copy{Path: "/closed", Made: noon, Told: "returned"}))
	copies, err = MustLeaveCopies(ctx, ws, erased, stones, policy.Default())
	testkit.Same(t, "rows that copies must lose", "gone2 held4 stone7 pict8 nobody9",
		rowsOfSet(copies.GoneSet, rows...), err)
	testkit.Same(t, "rows whose content is erased, as before", "gone2 stone7 pict8", rowsOfSet(erased, rows...))
	why, _ := copies.Of("held4")
	testkit.Same(t, "why", GonePost{"held4", manifest.StateHeld, "quarantine"}, why)
	why, _ = copies.Of("nobody9")
	testkit.Same(t, "why", GonePost{"nobody9", manifest.StateUnavailable, LeftManifest}, why)
	why, _ = erased.Of("pict8")
	testkit.Same(t, "why", GonePost{"pict8", manifest.StateRemoved, policy.SameAsRemoved}, why)
	why, _ = erased.Of("stone7")
	testkit.Same(t, "why", GonePost{"stone7", manifest.StateRemoved, ""}, why)

	list, err := ListCopies(ctx, ws)
	testkit.OK(t, err)
	owed := map[string]string{}
	for _, c := range list {
		owed[c.Path] = string(c.State) + ": " + strings.Join(c.Owed, " ")
	}
	testkit.Same(t, "copies", map[string]string{"/good": "open: held4",
		"/owes": "open: gone2 held4 stone7 pict8 nobody9", "/closed": "closed: "}, owed)
	open, err := openCopies(ctx, ws)
	testkit.Same(t, "open obligations", 2, open, err)

	testkit.OK(t, WriteNote(ctx, ws, EndedNote{At: noon}))
	copies, err = MustLeaveCopies(ctx, ws, erased, stones, policy.Default())
	testkit.Same(t, "after the end", strings.Join(rows, " "), rowsOfSet(copies.GoneSet, rows...), err)
	testkit.Same(t, "an empty set", true, GoneSet{}.Empty())
	testkit.Same(t, "one that is not", false, erased.Empty())
	testkit.Same(t, "one of entries alone", false, GoneSet{Entries: map[string]GonePost{"a": {}}}.Empty())
	testkit.Same(t, "rows of a gallery whose post is gone", true, erased.HasRow("gone2/3"))
	testkit.Same(t, "another image of a post", false, erased.HasRow("pict8/1"))
}

// TestStatesOfCopies: what a record says of its copy.
func TestStatesOfCopies(t *testing.T) {
	files := []workspace.File{{Name: "a"}}
	for want, c := range map[CopyState]workspace.Copy{CopyOpen: {Open: true, Files: files, Told: "x"},
		CopyGood:   {Files: files, Told: "x"},
		CopyClosed: {Told: "x"}, CopyUnfinished: {}} {
		testkit.Same(t, string(want), want, StateOfCopy(c))
	}
	r := NewCopyReport(workspace.Copy{Path: "/p", Note: "n", Format: "f", Made: noon, Files: files,
		Rows: []string{"a", "b"}, Told: "t"})
	testkit.Same(t, "report", CopyReport{Path: "/p", Note: "n", Format: "f", Made: noon, Files: files, Rows: 2,
		State: CopyGood, Told: "t",
		Owed: []string{}, Purged: []string{}}, r)
	for name, want := range map[string]bool{"data/train-00000-of-00001.parquet": true, "train/abc123.jpg": true,
		"README.md": false, "LICENSE": false} {
		testkit.Same(t, name, want, HasRows(name))
	}
	testkit.Same(t, "path of a third party", "third-party:x", ThirdPartyPath("x"))
}

// writeDataset writes the kept rows of a workspace as a run does, into one file for each split.
func writeDataset(t *testing.T, ws *workspace.Workspace) {
	t.Helper()
	ctx := t.Context()
	b, _, err := ws.Binding(ctx)
	testkit.OK(t, err)
	for _, split := range b.Splits {
		rows := 0
		for _, err := range Rows(ctx, ws, policy.Default(), split) {
			testkit.OK(t, err)
			rows++
		}
		_, err := dataset.WriteShards(func(name string, write func(io.Writer) error) error {
			_, err := ws.Replace(ctx, path.Join(DatasetDir, name), write, nil)
			return err
		}, b.Schema, dataset.Provenance{Release: "R", OCREngine: "e"}, false, split, []int{rows},
			Rows(ctx, ws, policy.Default(), split))
		testkit.OK(t, err)
	}
}

// TestRowsOfTheDataset reads back which rows its files have, and what is none of them.
func TestRowsOfTheDataset(t *testing.T) {
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1", "bbb2", "ccc3")
	testkit.OK(t, ws.SetResults(ctx, []manifest.Result{{Key: manifest.Key{ID: "aaa1"}, Outcome: manifest.Kept},
		{Key: manifest.Key{ID: "bbb2"}, Outcome: manifest.Kept, Reason: "not_english"},
		{Key: manifest.Key{ID: "ccc3"}, Outcome: manifest.Kept}}))
	writeDataset(t, ws)
	_, err := ws.Replace(ctx, DatasetDir+"/data/mine.parquet",
		func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }, nil)
	testkit.OK(t, err)
	files, err := Shards(ctx, ws)
	testkit.OK(t, err)
	var names []string
	for _, f := range files {
		names = append(names, path.Base(f.Name))
		if f.SHA256 == "" || f.Size == 0 {
			t.Errorf("%+v", f)
		}
	}
	testkit.Same(t, "files", []string{"test-00000-of-00001.parquet", "train-00000-of-00001.parquet"}, names)
	present := map[string]bool{}
	for _, f := range files {
		made, err := ReadRows(ctx, ws, f.Name, present)
		testkit.Same(t, "what made it", "e", made.OCREngine, err)
	}
	testkit.Same(t, "rows", []string{"aaa1", "bbb2", "ccc3"}, slices.Sorted(maps.Keys(present)))
	made, err := ReadRows(ctx, ws, files[0].Name, nil)
	testkit.Same(t, "without its rows", "e", made.OCREngine, err)
	half := map[string]bool{}
	if _, err := ReadRows(ctx, ws, DatasetDir+"/data/mine.parquet", half); err == nil || len(half) > 0 {
		t.Errorf("a file that is none: %v, %v", half, err)
	}
	if _, err := ReadRows(ctx, ws, "dataset/none.parquet", half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}

	gone := GoneSet{Posts: map[manifest.PostID]GonePost{"bbb2": {ID: "bbb2"}}}
	err = FileLacksRows(ctx, ws.OpenFile, files[1].Name, gone)
	there, _ := errors.AsType[*RowThere](err)
	if there == nil || there.ID != "bbb2" || there.Error() != "the row of bbb2 is still in it" {
		t.Errorf("a file with a row that must go: %v", err)
	}
	testkit.OK(t, FileLacksRows(ctx, ws.OpenFile, files[0].Name, gone))
	testkit.OK(t, FileLacksRows(ctx, func(string) (*os.File, error) { return nil, os.ErrNotExist }, "README.md", gone))
	testkit.OK(t, LacksRows(ctx, bytes.NewReader([]byte("bbb2")), 4, "README.md", gone))
	if err := LacksRows(ctx, bytes.NewReader([]byte("bbb2")), 4, "x.parquet", gone); err == nil {
		t.Error("what cannot be read passes")
	}

	var read []string
	for row, err := range RowsOf(ctx, ws, files[1].Name) {
		testkit.OK(t, err)
		read = append(read, row.ID+" "+row.Path)
	}
	testkit.Same(t, "rows of a file", []string{"aaa1 aaa1.jpg", "bbb2 bbb2.jpg"}, read)
	for row, err := range RowsOf(ctx, ws, files[1].Name) { // and no error for who has enough
		testkit.Same(t, "the first row", "aaa1", row.ID, err)
		break
	}
	for _, name := range []string{"dataset/data/mine.parquet", "none"} {
		failed := 0
		for _, err := range RowsOf(ctx, ws, name) {
			if err != nil && strings.Contains(err.Error(), "read "+name) {
				failed++
			}
		}
		testkit.Same(t, "errors of "+name, 1, failed)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	for _, err := range RowsOf(stopped, ws, files[0].Name) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	}
}
