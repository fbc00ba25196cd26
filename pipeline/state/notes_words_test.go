package state

import (
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestNotesAreKeptApart: a note is read as it was written, two notes do not share a place, and a damaged one is an
// error.
func TestNotesAreKeptApart(t *testing.T) {
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1")
	none, err := ReadNote[ExportNote](ctx, ws)
	testkit.Same(t, "none", ExportNote{}, none, err)
	export := ExportNote{Inputs: "i", Files: []workspace.File{{Name: "a", SHA256: "1", Size: 2}},
		Card: &dataset.Card{Name: "n"},
		Next: map[string]string{"a": "9", "c": ""}}
	testkit.OK(t, WriteNote(ctx, ws, export), WriteNote(ctx, ws, HostsNote{"h": {Since: noon}}),
		WriteNote(ctx, ws, MergedNote{Release: "r"}),
		WriteNote(ctx, ws, MassRemovalNote(.3)), WriteNote(ctx, ws, LastRun{Unverified: 4}),
		WriteNote(ctx, ws, LastReread{Read: 5}),
		WriteNote(ctx, ws, OCRRate(6)), WriteNote(ctx, ws,
			PolicyNote{policy.Policy{Text: policy.Text{MaskNames: true}}}),
		WriteNote(ctx, ws, ApprovalNote{Reference: "7"}), WriteNote(ctx, ws, EndedNote{Unfinished: true}),
		WriteNote(ctx, ws, LiftedNote{{ID: "l"}}), WriteNote(ctx, ws, RevocationsNote(8)))
	got, err := ReadNote[ExportNote](ctx, ws)
	testkit.Same(t, "export", export.Files, got.Files, err)
	hosts, err := ReadNote[HostsNote](ctx, ws)
	testkit.Same(t, "hosts", HostsNote{"h": {Since: noon}}, hosts, err)
	merged, err := ReadNote[MergedNote](ctx, ws)
	testkit.Same(t, "merged", MergedNote{Release: "r"}, merged, err)
	mass, err := ReadNote[MassRemovalNote](ctx, ws)
	testkit.Same(t, "mass removal", MassRemovalNote(.3), mass, err)
	run, err := ReadNote[LastRun](ctx, ws)
	testkit.Same(t, "last run", 4, run.Unverified, err)
	reread, err := ReadNote[LastReread](ctx, ws)
	testkit.Same(t, "last re-reading", 5, reread.Read, err)
	rate, err := ReadNote[OCRRate](ctx, ws)
	testkit.Same(t, "rate", OCRRate(6), rate, err)
	p, err := LastPolicy(ctx, ws)
	testkit.Same(t, "policy", true, p.Text.MaskNames, err)
	approval, err := ReadNote[ApprovalNote](ctx, ws)
	testkit.Same(t, "approval", "7", approval.Reference, err)
	ended, err := ReadNote[EndedNote](ctx, ws)
	testkit.Same(t, "ended", true, ended.Unfinished, err)
	lifted, err := ReadNote[LiftedNote](ctx, ws)
	testkit.Same(t, "lifted", manifest.PostID("l"), lifted[0].ID, err)
	serial, err := SeenRevocations(ctx, ws, "R")
	testkit.Same(t, "revocations", int64(8), serial, err)
	serial, err = SeenRevocations(ctx, ws, "another release")
	testkit.Same(t, "revocations of another release", int64(0), serial, err)

	testkit.Same(t, "a file on record", true, got.Wrote(workspace.File{Name: "a", SHA256: "1", Size: 2}))
	testkit.Same(t, "the one to come", true, got.Wrote(workspace.File{Name: "a", SHA256: "9", Size: 7}))
	testkit.Same(t, "another one", false, got.Wrote(workspace.File{Name: "a", SHA256: "2", Size: 2}))
	testkit.Same(t, "one without a digest", false, got.Wrote(workspace.File{Name: "c"}))
	testkit.Same(t, "one of no record", false, got.Wrote(workspace.File{Name: "b"}))

	testkit.OK(t, ClearNote[ExportNote](ctx, ws))
	none, err = ReadNote[ExportNote](ctx, ws)
	testkit.Same(t, "cleared", ExportNote{}, none, err)
	testkit.OK(t, ws.SetMeta(ctx, ExportNote{}.key(), "{"))
	if _, err = ReadNote[ExportNote](ctx, ws); err == nil || !strings.Contains(err.Error(), `note "export"`) {
		t.Errorf("a damaged note: %v", err)
	}
	fresh := sameImages(t, noon, "aaa1")
	p, err = LastPolicy(ctx, fresh)
	testkit.Same(t, "policy before the first run", policy.Default().Digest(), p.Digest(), err)
	j, err := StoredJudge(ctx, ws, noon)
	testkit.Same(t, "judge", true, j.Policy.Text.MaskNames && j.Now.Equal(noon) && len(j.Tombstones) == 0, err)
}

// TestWords: what a text gained and lost is counted by words.
func TestWords(t *testing.T) {
	gained, lost := DiffWords("the cat the dog", "the dog dog\u202e bird")
	testkit.Same(t, "gained", []string{"dog", "bird"}, gained)
	testkit.Same(t, "lost", []string{"cat", "the"}, lost)
	testkit.Same(t, "short", "kept", Conclusion{Outcome: manifest.Kept}.Short())
	testkit.Same(t, "short, with a reason", "gone, http_404",
		Conclusion{Outcome: manifest.Gone, Reason: "http_404"}.Short())
	c := NewConclusion(manifest.Result{Outcome: manifest.Duplicate, Reason: "r", Detail: "d",
		DuplicateOf: manifest.Key{ID: "a", Image: 2}})
	testkit.Same(t, "conclusion", Conclusion{manifest.Duplicate, "r", "d", "a/2"}, c)
	testkit.Same(t, "conclusion of no duplicate", Conclusion{Outcome: manifest.Kept},
		NewConclusion(manifest.Result{Outcome: manifest.Kept}))
	for name, want := range map[string]bool{"dataset/data/train-00000-of-00001.parquet": true,
		"dataset/data/mine.parquet":            false,
		"dataset/train-00000-of-00001.parquet": false, "dataset/data/x/train-00000-of-00001.parquet": false,
		"dataset/data/train-100000-of-100001.parquet": true, "dataset/data/my-list-of-memes.parquet": false} {
		testkit.Same(t, name, want, IsShard(name))
	}
	testkit.Same(t, "rehearsal", "rehearsal of R true false R R",
		strings.Join([]string{RehearsalOf("R"), text(IsRehearsal(RehearsalOf("R"))), text(IsRehearsal("R")),
			ReleaseOf(RehearsalOf("R")), ReleaseOf("R")}, " "))
	masked := policy.Policy{Text: policy.Text{MaskNames: true}}
	testkit.Same(t, "fingerprint", "e", ReadingFingerprint("e", policy.Policy{}))
	if f := ReadingFingerprint("e", masked); !strings.HasPrefix(f, "e names masked ") {
		t.Error(f)
	}
}

func text(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// TestReportOfARereading compares texts and outcomes with those before it began, but shows none of a post that went.
func TestReportOfARereading(t *testing.T) {
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1", "bbb2", "ccc3", "ddd4")
	key := func(id manifest.PostID) manifest.Key { return manifest.Key{ID: id} }
	testkit.OK(t, ws.SetResults(ctx, []manifest.Result{{Key: key("aaa1"), Outcome: manifest.Kept},
		{Key: key("bbb2"), Outcome: manifest.Kept},
		{Key: key("ccc3"), Outcome: manifest.Kept}}), ws.BeginReread(ctx))
	old, same := "the cat", "new words"
	for id, before := range map[manifest.PostID]*string{"aaa1": &old, "bbb2": &same, "ccc3": &old, "ddd4": nil} {
		testkit.OK(t, ws.SetReadings(ctx, workspace.NewReading{Key: key(id), Old: before,
			Reading: workspace.Reading{Fingerprint: "g", ImageSHA256: SHA256([]byte("\xff\xd8\xff?")),
				Text: "new words"}}))
	}
	testkit.OK(t, ws.SetPosts(ctx, []workspace.Post{{ID: "ccc3", State: manifest.StateHeld, CheckedAt: noon}}),
		ws.SetResults(ctx, []manifest.Result{{Key: key("aaa1"), Outcome: manifest.NotEnglish, Reason: "dictionary"},
			{Key: key("bbb2"), Outcome: manifest.Kept},
			{Key: key("ccc3"), Outcome: manifest.Kept, Reason: "short"}, {Key: key("ddd4"), Outcome: manifest.Kept}}))
	r, err := CompareReadings(ctx, ws, policy.Default())
	testkit.OK(t, err)
	testkit.Same(t, "report", Reread{Read: 3, Changed: 1, Gained: 2, Lost: 2,
		Texts: []TextChange{{ID: "aaa1", Gained: []string{"new", "words"}, Lost: []string{"the", "cat"}}},
		Outcomes: []OutcomeChange{{ID: "aaa1", Old: Conclusion{Outcome: manifest.Kept},
			New: Conclusion{Outcome: manifest.NotEnglish, Reason: "dictionary"}},
			{ID: "ccc3", Old: Conclusion{Outcome: manifest.Kept},
				New: Conclusion{Outcome: manifest.Kept, Reason: "short"}}}}, r)
}

// TestDraftOfReadings: a text in another language is none, one that failed is not drafted, and masks are no words.
func TestDraftOfReadings(t *testing.T) {
	filter, err := language.New()
	testkit.OK(t, err)
	ctx := t.Context()
	ws := sameImages(t, noon, "aaa1", "bbb2", "ccc3")
	body := []byte("\xff\xd8\xff?")
	testkit.OK(t, ws.SetReadings(ctx, workspace.NewReading{Key: manifest.Key{ID: "bbb2"},
		Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: SHA256(body),
			Failed: &workspace.Trouble{Outcome: manifest.Failed, Reason: "ocr_timeout"}}}))
	d, err := DraftAll(ctx, ws, filter, policy.Default())
	testkit.OK(t, err)
	testkit.Same(t, "a picture without text", manifest.Kept, d.results[0].Outcome)
	testkit.Same(t, "one that could not be read", manifest.Outcome(""), d.results[1].Outcome)
	testkit.Same(t, "images with the same bytes", 3, d.most)
	if d.near[0].Wide == nil || d.near[1].Wide != nil {
		t.Errorf("what is compared: %+v", d.near)
	}
	decided, err := Judge{Policy: policy.Default(), Now: noon}.Decide(ctx, ws, d)
	testkit.OK(t, err, decided.Store(ctx, ws))
	testkit.Same(t, "because", 1, decided.Because("ocr_timeout"))
	n := 0
	for res, err := range decided.All() {
		testkit.Same(t, "result", decided.Results[n], res, err)
		n++
	}
	// A text that came after the draft is no entry without one.
	late, err := DraftAll(ctx, ws, filter, policy.Default())
	testkit.OK(t, err, ws.SetReadings(ctx, workspace.NewReading{Key: manifest.Key{ID: "bbb2"},
		Reading: workspace.Reading{Fingerprint: "f", ImageSHA256: SHA256(body)}}))
	if _, err := (Judge{Policy: policy.Default(), Now: noon}).Decide(ctx, ws, late); err == nil ||
		!strings.Contains(err.Error(), "decide about bbb2") {
		t.Errorf("a text that came late: %v", err)
	}
}
