package workspace

import (
	"path/filepath"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestAnswersGoWithTheirImage: an answer is of the image that is stored, stays while that does, and leaves nothing in
// state.db.
func TestAnswersGoWithTheirImage(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(5)...)
	var keys []manifest.Key
	for _, e := range numbered(5) {
		keys = append(keys, e.Key)
	}
	images := map[int]Image{}
	answer := func(i int, text string) Answer {
		return Answer{Key: keys[i], Asked: "d", ImageSHA256: images[i].SHA256, Task: "severity", Run: 2, Outcome: "ok",
			Text: text, Detail: "why",
			Model: "m", In: 700, Out: 12, At: time.Unix(1e9, 0).UTC()}
	}
	for i := range 5 {
		images[i] = store(t, w, keys[i], "body of "+keys[i].String())
	}
	all := func(text string) (all []Answer) {
		for i := range 5 {
			all = append(all, answer(i, text))
		}
		return all
	}
	cost := Spending{Requests: 5, In: 3500, Out: 60, Cost: 0.5}
	testkit.OK(t, w.SetAnswers(ctx, all("an older answer"), "m", cost))
	testkit.OK(t, w.SetAnswers(ctx, all("the secret answer"), "m", cost))
	is := func(step string, want ...int) {
		t.Helper()
		var all []Answer
		for _, i := range want {
			all = append(all, answer(i, "the secret answer"))
		}
		got, err := w.Answers(ctx, "severity")
		testkit.Same(t, step, all, got, err)
	}
	is("stored", 0, 1, 2, 3, 4)
	other, err := w.Answers(ctx, "figurative")
	testkit.Same(t, "of another task", []Answer(nil), other, err)
	old := answer(0, "of an older image")
	old.ImageSHA256 = images[1].SHA256
	missing := answer(0, "of no entry")
	missing.ID = "zzzzz"
	testkit.OK(t, w.SetAnswers(ctx, []Answer{old, missing}, "n", Spending{Requests: 2}))
	is("after answers about other images", 0, 1, 2, 3, 4)
	testkit.OK(t, w.StoreImage(ctx, keys[0], []byte("body of "+keys[0].String()), images[0]))
	is("after the same image", 0, 1, 2, 3, 4)
	testkit.OK(t, w.Erase(ctx, keys[1].ID))
	is("after an erase", 0, 2, 3, 4)
	testkit.OK(t, w.SetAnswers(ctx, []Answer{answer(1, "a late answer")}, "n", Spending{Requests: 1}))
	is("after a late answer", 0, 2, 3, 4)
	testkit.OK(t, w.DropImage(ctx, keys[2], Trouble{Outcome: manifest.Gone}, false))
	is("after a trouble", 0, 3, 4)
	store(t, w, keys[3], "another body")
	is("after another image", 0, 4)
	// As a backup brings it back: the image is gone, and the answer is there.
	testkit.OK(t, w.SetPosts(ctx, []Post{{ID: keys[4].ID, State: manifest.StateRemoved}}))
	_, err = w.db.Exec("DELETE FROM image WHERE id = ?", keys[4].ID)
	testkit.OK(t, err)
	swept, err := w.Sweep(ctx, nil)
	if err != nil || swept.Erased != 1 {
		t.Errorf("Sweep = %+v, %v, want one erasure finished", swept, err)
	}
	is("after a sweep", 0)
	testkit.OK(t, w.Load(ctx, binding("2"), seq(numbered(5)[1:], nil), nil))
	is("after the entry left")
	spent, err := w.Spent(ctx)
	testkit.Same(t, "spent in all", map[string]Spending{"m": {10, 7000, 120, 1}, "n": {Requests: 3}}, spent, err)
	testkit.OK(t, w.Close())
	if contains(t, filepath.Join(w.Dir(), stateName), "a late answer") {
		t.Error("state.db holds an answer that came late")
	}
	if contains(t, filepath.Join(w.Dir(), stateName), "the secret answer") {
		t.Error("state.db still holds an answer")
	}
}
