package state

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

var noon = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// liveRecord is an entry of a live post, with an image that was read.
func liveRecord(id manifest.PostID, was *manifest.Result) workspace.Record {
	return workspace.Record{Entry: manifest.Entry{Key: manifest.Key{ID: id}, Split: "train"},
		Post:    workspace.Post{ID: id, State: manifest.StateLive, CheckedAt: noon, LiveAt: noon},
		Image:   &workspace.Image{SHA256: "00", Limits: policy.Default().ImageLimits()},
		Reading: &workspace.Reading{ImageSHA256: "00"}, Result: was}
}

func result(o manifest.Outcome, reason manifest.Reason) *manifest.Result {
	return &manifest.Result{Outcome: o, Reason: reason}
}

// yielded yields records, each with its key in its result.
func yielded(records []workspace.Record) iter.Seq2[workspace.Record, error] {
	return func(yield func(workspace.Record, error) bool) {
		for _, rec := range records {
			if rec.Result != nil {
				res := *rec.Result
				res.Key, res.Split = rec.Key, rec.Split
				rec.Result = &res
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// TestTakeOutOfOneEntry: what becomes of an entry by what is known of it, of its stored result and of its row.
func TestTakeOutOfOneEntry(t *testing.T) {
	kept, flagged := result(manifest.Kept, ""), result(manifest.Kept, "not_english")
	post := func(state manifest.PostState, reason manifest.Reason) func(*workspace.Record) {
		return func(r *workspace.Record) { r.Post.State, r.Post.Reason = state, reason }
	}
	trouble := func(o manifest.Outcome, reason manifest.Reason, beside workspace.Beside) func(*workspace.Record) {
		return func(r *workspace.Record) { r.Trouble = &workspace.Trouble{Outcome: o, Reason: reason, Beside: beside} }
	}
	bare := func(r *workspace.Record) { r.Image, r.Reading = nil, nil }
	for _, c := range []struct {
		name   string
		change func(*workspace.Record)
		was    *manifest.Result
		row    bool
		want   string
		leaves bool
	}{
		{"a row", func(*workspace.Record) {}, kept, true, "kept/", false},
		{"a row that a filter marks", func(*workspace.Record) {}, flagged, true, "kept/not_english", false},
		{"a row whose result was lost", func(*workspace.Record) {}, nil, true, "kept/", false},
		{"a row of which the result says otherwise", func(*workspace.Record) {}, result(manifest.Pending, "x"), true,
			"kept/", false},
		{"a row whose post is removed", post(manifest.StateRemoved, "moderator"), kept, true, "removed/moderator",
			true},
		{"a row whose post is unavailable", post(manifest.StateUnavailable, "absent"), kept, true,
			"unavailable/absent", true},
		{"a row whose post is quarantined", post(manifest.StateHeld, "quarantine"), kept, true, "refused/quarantine",
			true},
		{"a row without a verdict", post(manifest.StateUnknown, "http_503"), kept, true, "kept/", false},
		{"a row whose image left its gallery", trouble(manifest.Gone, policy.LeftGallery, workspace.Waiting), kept,
			true,
			"gone/" + string(policy.LeftGallery), true},
		{"a row whose image is refused now", trouble(manifest.Invalid, "too_large", workspace.Out), kept, true,
			"invalid/too_large", true},
		{"a row with an odd answer", trouble(manifest.NoMedia, "no_url", workspace.Odd), kept, true, "kept/", false},
		{"a row whose image is damaged", func(r *workspace.Record) {
			bare(r)
			trouble(manifest.Failed, ReasonDamaged,
				"")(r)
		}, kept, true,
			"failed/" + string(ReasonDamaged), true},
		{"a row whose image is lost", bare, kept, true, "kept/", false},
		{"no row, although it was kept", func(*workspace.Record) {}, kept, false,
			"pending/" + string(ReasonNotWritten), false},
		{"no row, never judged", func(*workspace.Record) {}, nil, false, "pending/", false},
		{"no row, judged", func(*workspace.Record) {}, result(manifest.NotEnglish, "dictionary"), false,
			"not_english/dictionary", false},
		{"no row, gone", post(manifest.StateDeleted, "author"), result(manifest.NotEnglish, ""), false,
			"deleted/author", false},
		{"no row, failed", func(r *workspace.Record) { bare(r); trouble(manifest.Failed, "http_503", "")(r) },
			result(manifest.Failed, "http_503"), false,
			"failed/http_503", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := liveRecord("aaa1", c.was)
			c.change(&rec)
			rows := map[string]bool{}
			if c.row {
				rows["aaa1"] = true
			}
			out, err := Judge{Policy: policy.Default(), Now: noon}.TakeOut(yielded([]workspace.Record{rec}), rows,
				nil, false)
			testkit.OK(t, err)
			res := out.Results[0]
			testkit.Same(t, "outcome", c.want, string(res.Outcome)+"/"+string(res.Reason))
			testkit.Same(t, "leaves", c.leaves, out.Leave["aaa1"])
			testkit.Same(t, "key and split", "aaa1 train", res.Key.String()+" "+res.Split)
			changed := rec.Result == nil || res.Outcome != rec.Result.Outcome || res.Reason != rec.Result.Reason
			testkit.Same(t, "changed", changed, out.changed)
		})
	}
}

// TestTakeOutAsksBeforeManyLeave: at most one row, or a tenth of them, leaves for anything but a removal until that is
// confirmed. Removals and rows that left the manifest leave in any number, and duplicates of what left are decided
// anew.
func TestTakeOutAsksBeforeManyLeave(t *testing.T) {
	for _, c := range []struct {
		held, removed, left, of int
		confirmed               bool
		leave                   int
		stay                    int
	}{
		{1, 0, 0, 5, false, 1, 0}, {2, 0, 0, 5, false, 0, 2}, {2, 0, 0, 5, true, 2, 0}, {2, 0, 0, 20, false, 2, 0},
		{3, 0, 0, 20, false, 0, 3}, {2, 3, 0, 20, false, 5, 0}, {3, 9, 0, 20, false, 9, 3}, {0, 5, 0, 5, false, 5, 0},
		{0, 0, 4, 9, false, 4, 0},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			var records []workspace.Record
			rows := map[string]bool{}
			for i := range c.of {
				id := manifest.PostID(fmt.Sprintf("a%03d", i))
				rows[string(id)] = true
				rec := liveRecord(id, result(manifest.Kept, ""))
				switch {
				case i < c.held:
					rec.Post.State, rec.Post.Reason = manifest.StateHeld, "quarantine"
				case i < c.held+c.removed:
					rec.Post.State = manifest.StateRemoved
				case i < c.held+c.removed+c.left:
					continue
				}
				records = append(records, rec)
			}
			twin := liveRecord("twin", &manifest.Result{Outcome: manifest.Duplicate,
				DuplicateOf: manifest.Key{ID: "a000"}})
			out, err := Judge{Policy: policy.Default(), Now: noon}.TakeOut(yielded(append(records, twin)), rows,
				nil, c.confirmed)
			testkit.OK(t, err)
			testkit.Same(t, "rows that leave", c.leave, len(out.Leave))
			var stay []Count
			if c.stay > 0 {
				stay = []Count{{Outcome: manifest.Refused, Reason: "quarantine", Entries: c.stay}}
			}
			testkit.Same(t, "rows that stay", stay, out.Stay)
			last := out.Results[len(out.Results)-1]
			want := manifest.Duplicate
			if out.Leave["a000"] && c.left == 0 {
				want = manifest.Pending
				testkit.Same(t, "why", ReasonSuccessor, last.Reason)
			}
			testkit.Same(t, "the duplicate of the first", want, last.Outcome)
			n := 0
			for res, err := range out.All() {
				testkit.OK(t, err)
				testkit.Same(t, "a row of outcomes.csv", out.Results[n], res)
				n++
			}
			testkit.Same(t, "rows of outcomes.csv", len(out.Results), n)
			total := 0
			for _, n := range out.Counts()["train"] {
				total += n
			}
			testkit.Same(t, "entries by outcome", len(out.Results), total)
		})
	}
	broken := errors.New("disk")
	_, err := Judge{}.TakeOut(func(yield func(workspace.Record, error) bool) { yield(workspace.Record{}, broken) },
		nil, nil, false)
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// TestTakenOutIsStoredWhereItChanged: results that are as they were cost no write, and one that is not is stored.
func TestTakenOutIsStoredWhereItChanged(t *testing.T) {
	ws := sameImages(t, noon, "aaa1", "bbb2")
	same := &TakenOut{Results: []manifest.Result{{Key: manifest.Key{ID: "aaa1"}, Outcome: manifest.Kept}}}
	testkit.OK(t, same.Store(t.Context(), ws))
	for rec, err := range ws.Records(t.Context(), workspace.Select{}) {
		if err != nil || rec.Result != nil {
			t.Errorf("%s is stored as %+v, %v", rec.ID, rec.Result, err)
		}
	}
	same.changed = true
	same.Results = append(same.Results, manifest.Result{Key: manifest.Key{ID: "bbb2"}, Outcome: manifest.Pending,
		Reason: ReasonNotWritten})
	testkit.OK(t, same.Store(t.Context(), ws))
	missing, _ := errors.AsType[*Unwritten](CheckWritten(t.Context(), ws))
	if missing == nil || missing.Rows != 1 || !strings.Contains(missing.Error(), "1 row of the dataset is missing") {
		t.Errorf("rows that are missing: %v", missing)
	}
	if text := (&Unwritten{2}).Error(); !strings.Contains(text, "2 rows of the dataset are missing") {
		t.Error(text)
	}
	same.Results = same.Results[:1]
	same.Results = append(same.Results, manifest.Result{Key: manifest.Key{ID: "bbb2"}, Outcome: manifest.Pending})
	testkit.OK(t, same.Store(t.Context(), ws), CheckWritten(t.Context(), ws))
}

// TestKnownAndHandedOut: what needs the other entries is as it was decided last, and what is handed out must be fresh.
func TestKnownAndHandedOut(t *testing.T) {
	j := Judge{Policy: policy.Default(), Now: noon}
	for _, c := range []struct {
		was  *manifest.Result
		want manifest.Outcome
	}{
		{nil, manifest.Pending}, {result(manifest.Kept, ""), manifest.Kept},
		{result(manifest.Duplicate, "flat"), manifest.Duplicate},
		{result(manifest.NotEnglish, ""), manifest.NotEnglish}, {result(manifest.Unreadable, ""), manifest.Unreadable},
		{result(manifest.Pending, "successor"), manifest.Pending},
		{result(manifest.Failed, "http_503"), manifest.Pending},
		{result(manifest.Gone, "http_404"), manifest.Pending},
	} {
		testkit.Same(t, fmt.Sprint(c.was), c.want, j.Known(liveRecord("aaa1", c.was)).Outcome)
	}
	gone := liveRecord("aaa1", result(manifest.Kept, ""))
	gone.Post.State = manifest.StateDeleted
	testkit.Same(t, "of a deleted post", manifest.Deleted, j.Known(gone).Outcome)
	old := liveRecord("aaa1", result(manifest.Kept, ""))
	old.Post.LiveAt = noon.Add(-49 * time.Hour)
	testkit.Same(t, "a row that is old", manifest.Kept, j.Known(old).Outcome)
	testkit.Same(t, "handed out", manifest.Reason("not_rechecked"), j.HandedOut(old).Reason)
	testkit.Same(t, "handed out in time", Candidate, j.HandedOut(liveRecord("aaa1", result(manifest.Kept, ""))).Outcome)
	unseen := liveRecord("aaa1", nil)
	unseen.Post.Unseen = true
	testkit.Same(t, "not seen since", manifest.Reason("not_rechecked"), j.Outcome(unseen).Reason)
	testkit.Same(t, "in words", "not seen live since its image was fetched", j.Outcome(unseen).Detail)
	testkit.Same(t, "of what is old, in words", "last seen live longer ago than the policy's recheck_within",
		j.HandedOut(old).Detail)
	waits := liveRecord("aaa1", nil)
	waits.Post.State, waits.Post.Withheld = manifest.StateRemoved, true
	testkit.Same(t, "of what is withheld", withheldDetail, j.Outcome(waits).Detail)
	left := liveRecord("aaa1", nil)
	left.Trouble = &workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, Beside: workspace.Waiting}
	testkit.Same(t, "of an image that is", withheldDetail, j.Outcome(left).Detail)
	left.Image = nil
	testkit.Same(t, "of one whose file is lost", withheldDetail, j.Outcome(left).Detail)
	left.Trouble.Beside = ""
	testkit.Same(t, "of one that went", "", j.Outcome(left).Detail)
	odd := liveRecord("aaa1", nil)
	odd.Trouble = &workspace.Trouble{Outcome: manifest.NoMedia, Reason: "no_url", Beside: workspace.Odd}
	testkit.Same(t, "of an odd answer", "the stored image stays: the last answer was no_media, no_url",
		j.Outcome(odd).Detail)
	request := Judge{Tombstones: Holding{"aaa1": {Reason: ReasonTakedown,
		Tombstone: manifest.Tombstone{ID: "aaa1", State: manifest.StateRemoved}}}}
	testkit.Same(t, "by request", ReasonTakedown, request.Outcome(liveRecord("aaa1", nil)).Reason)
}

// TestStatusSaysWhatTheDatasetHas counts entries by what is in the dataset, and what waits or is old.
func TestStatusSaysWhatTheDatasetHas(t *testing.T) {
	ctx := t.Context()
	ids := []manifest.PostID{"aaa1", "bbb2", "ccc3", "ddd4", "eee5", "fff6"}
	ws := sameImages(t, noon, ids...)
	old := noon.Add(-49 * time.Hour)
	testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{
		{ID: "bbb2", State: manifest.StateRemoved, Reason: "moderator", CheckedAt: noon, LiveAt: old, Withheld: true,
			Unconfirmed: true},
		{ID: "ccc3", State: manifest.StateHeld, Reason: "quarantine", CheckedAt: noon, LiveAt: noon},
		{ID: "ddd4", State: manifest.StateLive, CheckedAt: old, LiveAt: old},
		{ID: "eee5", State: manifest.StateUnknown, Reason: "http_503", LiveAt: noon},
	}))
	var results []manifest.Result
	for _, id := range ids {
		results = append(results, manifest.Result{Key: manifest.Key{ID: id}, Outcome: manifest.Kept})
	}
	results[0].Reason = "not_english"
	results[5] = manifest.Result{Key: manifest.Key{ID: "fff6"}, Outcome: manifest.Pending, Reason: ReasonNotWritten}
	testkit.OK(t, ws.SetResults(ctx, results), ws.SetTrouble(ctx, manifest.Key{ID: "aaa1"},
		workspace.Trouble{Outcome: manifest.NoMedia, Reason: "no_url", Beside: workspace.Odd}),
		WriteNote(ctx, ws, MassRemovalNote(0.25)),
		WriteNote(ctx, ws, ExportNote{Files: []workspace.File{{Name: "dataset/data/train-00000-of-00001.parquet",
			SHA256: "0"}}}))
	s, err := Status(ctx, ws, noon)
	testkit.OK(t, err)
	since, by := noon, noon.Add(policy.DeleteWithin)
	want := Summary{Release: "R", Entries: 6, Posts: 6,
		Outcomes: map[manifest.Outcome]int{manifest.Kept: 4, manifest.Removed: 1, manifest.Pending: 1},
		Reasons: []Count{{manifest.Kept, "", 3}, {manifest.Kept, "not_english", 1},
			{manifest.Removed, "moderator", 1}, {manifest.Pending, ReasonNotWritten, 1}},
		Odd: []Count{{manifest.NoMedia, "no_url", 1}}, Stay: []Count{{manifest.Refused, "quarantine", 1}},
		Flagged: 1, Retry: 2, Unwritten: 1,
		Withheld: 1, WithheldSince: &since, SettleBy: &by, MassRemoval: true, MassRemovalShare: 0.25, OldestAsk: &old,
		Stale:        true,
		FilesMissing: []string{"dataset/data/train-00000-of-00001.parquet"}, Returned: []TombstoneEntry{}}
	testkit.Same(t, "status", want, s)
	images, err := Held(ctx, ws)
	testkit.Same(t, "images", 6, images, err)
	empty, err := workspace.Open(ctx, t.TempDir(), workspace.Options{})
	testkit.OK(t, err)
	defer empty.Close()
	if _, err := Status(ctx, empty, noon); !errors.Is(err, workspace.ErrNoWorkspace) {
		t.Errorf("status of nothing: %v", err)
	}
}

// TestNearItemOfAFlatPicture: a picture without any edges is compared by its bytes, too.
func TestNearItemOfAFlatPicture(t *testing.T) {
	rec := liveRecord("aaa1", nil)
	testkit.Same(t, "content", "", NearItem(rec).Content)
	rec.Image.Flat, rec.Image.PHash, rec.Reading.Wide = true, 7, &[4]uint64{1, 2, 3, 4}
	item := NearItem(rec)
	testkit.Same(t, "content of a flat one", "00", item.Content)
	testkit.Same(t, "hash", uint64(7), item.Hash.Bits)
	if item.Wide == nil || item.Wide[3] != 4 {
		t.Errorf("wide hash %v", item.Wide)
	}
}

// TestWhichSharedImagesStandIn: what came from many URLs stands in for what is missing where it is small, came through
// a redirect or has no text, unless the release names its digest.
func TestWhichSharedImagesStandIn(t *testing.T) {
	shared := func(width, height int, redirected bool, text, digest string) workspace.Record {
		return workspace.Record{Entry: manifest.Entry{Key: manifest.Key{ID: "aaa1"}, SHA256: digest},
			Reading: &workspace.Reading{Text: text},
			Image:   &workspace.Image{Width: width, Height: height, Redirected: redirected, SHA256: "00"}}
	}
	for _, c := range []struct {
		rec  workspace.Record
		want bool
	}{
		{shared(SmallSide, 5, false, "text", ""), false}, {shared(5, SmallSide, false, "text", ""), false},
		{shared(SmallSide-1, 5, false, "text", ""), true},
		{shared(SmallSide, 5, true, "text", ""), true}, {shared(SmallSide, 5, false, " ", ""), true},
		{shared(5, 5, true, "", "00"), false},
		{shared(5, 5, true, "", "01"), true},
	} {
		testkit.Same(t, fmt.Sprintf("%+v, %q, in place of others", *c.rec.Image, c.rec.Reading.Text),
			c.rec.SHA256 != c.rec.Image.SHA256, isOf(auditlog.Suspect{Replaced: 4}, c.rec, 4))
		testkit.Same(t, fmt.Sprintf("%+v, %q", *c.rec.Image, c.rec.Reading.Text), c.want,
			isOf(auditlog.Suspect{URLs: 4}, c.rec, 4))
	}
}

// TestRemovedImageOfAPostThatIsHeld: an image that was removed from its post does not come back with what is said of
// the post, but an answer that is only odd removes nothing.
func TestRemovedImageOfAPostThatIsHeld(t *testing.T) {
	for _, c := range []struct {
		state  manifest.PostState
		beside workspace.Beside
		want   string
	}{
		{manifest.StateLive, workspace.Odd, "/"}, {manifest.StateLive, "", "gone/gallery_item_deleted"},
		{manifest.StateHeld, "", "gone/gallery_item_deleted"},
		{manifest.StateHeld, workspace.Odd, "refused/"}, {"", workspace.Waiting, "gone/gallery_item_deleted"},
		{manifest.StateUnknown, workspace.Going, "gone/gallery_item_deleted"},
		{manifest.StateRemoved, "", "removed/"},
	} {
		rec := liveRecord("aaa1", nil)
		rec.Post.State = c.state
		rec.Trouble = &workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, Beside: c.beside}
		res := Judge{Policy: policy.Default(), Now: noon}.Outcome(rec)
		testkit.Same(t, fmt.Sprintf("%s, %s", c.state, c.beside), c.want, string(res.Outcome)+"/"+string(res.Reason))
	}
}
