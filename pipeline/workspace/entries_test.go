package workspace

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"rehydrate/manifest"
)

// TestResultsFromRecords stores results that are made of the workspace while they are pulled,
// more of them than one batch holds.
func TestResultsFromRecords(t *testing.T) {
	w := loaded(t, numbered(resultBatch+5)...)
	for _, outcome := range []manifest.Outcome{manifest.Pending, manifest.Kept} {
		err := w.SetResults(t.Context(), func(yield func(manifest.Result, error) bool) {
			for rec, err := range w.Records(t.Context(), Select{}) {
				if !yield(manifest.Result{Key: rec.Key, Outcome: outcome, Detail: strconv.Itoa(rec.Ordinal)}, err) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, rec := range collect(t, w.Records(t.Context(), Select{})) {
			if rec.Result == nil || rec.Result.Outcome != outcome || rec.Result.Detail != strconv.Itoa(rec.Ordinal) {
				t.Fatalf("result of entry %d = %+v, want %s", rec.Ordinal, rec.Result, outcome)
			}
			n++
		}
		if n != resultBatch+5 {
			t.Errorf("%d results, want %d", n, resultBatch+5)
		}
	}
	failed := errors.New("no more")
	if err := w.SetResults(t.Context(), seq([]manifest.Result{{Outcome: manifest.Failed}}, failed)); !errors.Is(err, failed) {
		t.Errorf("SetResults of a broken sequence: %v", err)
	}
	for _, rec := range collect(t, w.Records(t.Context(), Select{})) {
		if rec.Result.Outcome != manifest.Kept {
			t.Fatalf("a broken sequence changed the result of entry %d to %s", rec.Ordinal, rec.Result.Outcome)
		}
	}
}

// TestLoadAsksBeforeItLoses gives the workspace a manifest without two of three stored images.
func TestLoadAsksBeforeItLoses(t *testing.T) {
	w := loaded(t, numbered(3)...)
	for _, e := range numbered(3) {
		store(t, w, e.Key, "image "+string(e.ID))
	}
	refused := errors.New("refused")
	var images, of int
	err := w.Load(t.Context(), binding("2"), seq(numbered(1), nil), func(i, o int) error {
		images, of = i, o
		return refused
	})
	if !errors.Is(err, refused) || images != 2 || of != 3 {
		t.Errorf("Load: %v, asked about %d of %d, want refused, 2 of 3", err, images, of)
	}
	if n := len(collect(t, w.Records(t.Context(), Select{}))); n != 3 {
		t.Errorf("a refused Load left %d entries of 3", n)
	}
	if err := w.Load(t.Context(), binding("2"), seq(numbered(1), nil), func(int, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if files, err := w.Files(t.Context(), imagesName); err != nil || len(files) != 1 {
		t.Errorf("files after an allowed Load: %v, %v, want one", files, err)
	}
}

// TestSweepErasesTombstoned brings a tombstone to a post that has content, as a release does
// whose list grew.
func TestSweepErasesTombstoned(t *testing.T) {
	w := loaded(t, numbered(2)...)
	ids := []manifest.PostID{numbered(2)[0].ID, numbered(2)[1].ID}
	for _, e := range numbered(2) {
		store(t, w, e.Key, "image "+string(e.ID))
		if err := w.SetPosts(t.Context(), []Post{{ID: e.ID, State: manifest.StateLive, LiveAt: time.Unix(1e9, 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.AddTombstones(t.Context(), []manifest.Tombstone{{ID: ids[0], State: manifest.StateDeleted, Time: time.Unix(1e9, 0)}}); err != nil {
		t.Fatal(err)
	}
	swept, err := w.Sweep(t.Context())
	if err != nil || swept.Erased != 1 {
		t.Errorf("Sweep = %+v, %v, want one erased", swept, err)
	}
	for _, rec := range collect(t, w.Records(t.Context(), Select{})) {
		if has := rec.Image != nil; has != (rec.ID == ids[1]) {
			t.Errorf("post %s has an image: %t", rec.ID, has)
		}
	}
	if swept, err = w.Sweep(t.Context()); err != nil || swept != (Swept{}) {
		t.Errorf("a second Sweep = %+v, %v, want nothing to do", swept, err)
	}
}
