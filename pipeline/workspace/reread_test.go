package workspace

import (
	"path/filepath"
	"testing"

	"rehydrate/manifest"
	"rehydrate/pipeline/attest"
)

// TestReread walks through a re-reading: what it compares with is the first text and outcome, is
// not lost by a second begin, and is gone with the post, with the image or in the end.
func TestReread(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	key := func(i int) manifest.Key { return numbered(4)[i].Key }
	reading := func(i int, text string) Reading {
		return Reading{Fingerprint: "f", ImageSHA256: digestOf([]byte("body of " + key(i).String())), Text: text, Masked: i}
	}
	again := func(i int, text, old string) {
		t.Helper()
		attest.OK(t, w.SetReading(ctx, key(i), reading(i, text), &old))
	}
	var results []manifest.Result
	for i := range 4 {
		store(t, w, key(i), "body of "+key(i).String())
		attest.OK(t, w.SetReading(ctx, key(i), reading(i, "first text"), nil))
		results = append(results, manifest.Result{Key: key(i), Outcome: manifest.Unreadable, Reason: "r", Detail: "d"})
	}
	earlier := func() []Earlier {
		t.Helper()
		var all []Earlier
		for _, r := range collect(t, w.Records(ctx, Select{WithEarlier: true})) {
			all = append(all, r.Earlier)
		}
		return all
	}
	attest.OK(t, w.SetResults(ctx, results))
	attest.OK(t, w.BeginReread(ctx))
	again(0, "second text", "safe text")
	again(1, "second text", "safe text")
	again(2, "second text", "safe text")
	results[0].Outcome = manifest.Kept
	attest.OK(t, w.SetResults(ctx, results))
	attest.OK(t, w.BeginReread(ctx)) // as after a kill
	again(0, "third text", "not the first")
	was := Earlier{Outcome: manifest.Unreadable, Reason: "r"}
	read := Earlier{Read: true, Text: "safe text", Outcome: manifest.Unreadable, Reason: "r"}
	attest.Same(t, "what is compared with", []Earlier{read, read, read, was}, earlier())
	if r := collect(t, w.Records(ctx, Select{}))[1]; r.Reading.Text != "second text" || r.Reading.Masked != 1 || r.Earlier != (Earlier{}) {
		t.Errorf("a record that was not asked for what was earlier = %+v, %+v", r.Reading, r.Earlier)
	}
	attest.OK(t, w.Erase(ctx, key(1).ID))
	attest.OK(t, w.SetTrouble(ctx, key(2), Trouble{Outcome: manifest.Gone}))
	attest.Same(t, "after an erase and a trouble", []Earlier{read, was, was, was}, earlier())
	store(t, w, key(0), "another body")
	attest.Same(t, "after another image", []Earlier{was, was, was, was}, earlier())
	again(3, "second text", "safe text")
	if on, err := w.Rereading(ctx); !on || err != nil {
		t.Errorf("Rereading = %v, %v while it goes on", on, err)
	}
	attest.OK(t, w.EndReread(ctx))
	attest.Same(t, "in the end", make([]Earlier, 4), earlier())
	if on, err := w.Rereading(ctx); on || err != nil {
		t.Errorf("Rereading = %v, %v in the end", on, err)
	}
	attest.OK(t, w.Close())
	if contains(t, filepath.Join(w.Dir(), stateName), "safe text") {
		t.Error("state.db still holds a text that was compared with")
	}
}
