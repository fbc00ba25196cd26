package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestOddAnswersCostNothing: whatever Reddit or a host answers in place of an image that is stored, and that is no
// removal, costs nothing: neither the image nor its reading, the reading of an earlier engine, what a model was paid to
// say of it, nor the row.
func TestOddAnswersCostNothing(t *testing.T) {
	odd := map[string]string{} // steps by name
	for word := range oddities {
		if !isRemoval(word) {
			odd["image "+word] = "image " + word + " p01 g/1"
		}
	}
	for word := range answers {
		odd["another place, "+word] = "move " + word + " p01 g/1"
		odd["a host that answers "+word] = "host " + word + " i.redd.it; move 40 p01; move 41 g/1"
	}
	odd["small"] = "move small:40 p01; move small:40 g/1"
	odd["redirected"] = "move redirected:40 p01 g/1"
	odd["what another shows"] = "move 3 p01 g/1"
	odd["another picture"] = "move 40 p01; move 41 g/1"
	odd["another picture of everybody"] = "move 40 p00; move 41 p01; move 42 p02; move 43 p03; move 44 p04; move 45 g; move 46 g/1; move 47 g/2"
	odd["a cut one"] = "move short:40 p01 g/1"
	odd["one picture for everybody"] = "host 60000 i.redd.it; move 40 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10 p11 p12 p13 g g/1 g/2"
	odd["unclear"] = "post unclear p01 g"
	var together []string // an odd answer about each post
	for i, word := range slices.Sorted(maps.Keys(oddities)) {
		if !isRemoval(word) {
			together = append(together, fmt.Sprintf("image %s p%02d", word, i))
		}
	}
	begin := newOdd(t)
	type oddity struct{ steps, job string }
	cases := map[string]oddity{}
	for name, steps := range odd {
		cases[name] = oddity{steps, "run"}
	}
	for _, job := range []string{"run", "recheck", "purge", "split", "split; work; merge",
		"run retry=gone retry=no_media"} {
		cases["all of Reddit's together, "+job] = oddity{strings.Join(together, "; "), job}
	}
	for n, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		if leftOut(n, 7) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin.copied(t)
			before := w.everything()
			if has := slices.Concat(slices.Collect(maps.Values(before.content))...); len(has) != 4*17 ||
				slices.Contains(has, "") {
				t.Fatalf("the workspace has %q", before.content)
			}
			w.do(c.steps + "; " + c.job + "; " + c.job).ok()
			after := w.everything()
			testkit.Same(t, "rows", before.rows, after.rows)
			testkit.Same(t, "images, texts and answers", before.content, after.content)
			s := w.checkSound()
			for row := range before.content {
				if s.outcome(row) != "kept/" {
					t.Errorf("%s is %s", row, s.outcome(row))
				}
			}
		})
	}
}

// newOdd is a world with everything that can be lost: readings of two engines, since a re-reading failed, and answers.
func newOdd(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, append(numbered(14), "g*3")...).do("run; engine B").ok()
	if w.do("reread all unwritable=" + manifest.OutcomesName); !errors.Is(w.err, errFault) {
		t.Fatalf("the re-reading was not stopped: %v", w.err)
	}
	w.err = nil
	return w.do("answers")
}

// all is what an odd answer must not cost.
type all struct {
	rows    string
	content map[string][]string // by row: digest of the image, text of the reading, the earlier text, the model's answer
}

func (w *world) everything() (out all) {
	w.Helper()
	out = all{namesOf(w.inspect().rows), map[string][]string{}}
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		answers, err := ws.Answers(ctx, "test")
		testkit.OK(w, err)
		said := map[manifest.Key]string{}
		for _, a := range answers {
			said[a.Key] = a.Text
		}
		for rec, err := range ws.Records(ctx, workspace.Select{WithEarlier: true}) {
			testkit.OK(w, err)
			if rec.Image != nil && rec.Reading != nil {
				out.content[rec.Key.String()] = []string{rec.Image.SHA256, rec.Reading.Text, rec.Earlier.Text, said[rec.Key]}
			}
		}
	})
	return out
}

// TestMovedImageIsAskedForOnce: of a stored image that lies in another place now, the place is noted where it is the
// same file; another file is odd, and asked for once.
func TestMovedImageIsAskedForOnce(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; move 1 p01; move 41 p02; run").ok()
	testkit.Same(t, "images fetched", 2, len(w.reddit.fetched))
	testkit.Same(t, "odd answers", []state.Count{{Outcome: manifest.Changed, Reason: "another_image", Entries: 1}},
		w.summary.Odd)
	w.do("run").ok()
	testkit.Same(t, "images fetched by the next run", 0, len(w.reddit.fetched))
	testkit.Same(t, "rows", "p00 p01 p02 p03", namesOf(w.checkSound().rows))
}

// TestStoredImageOutlivesAMoveToARemovedPicture: that Reddit names for a post a picture which was taken down elsewhere
// costs the stored one nothing.
func TestStoredImageOutlivesAMoveToARemovedPicture(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; post copyright p01; run; move 1 p02; run; run").ok()
	s := w.checkSound()
	testkit.Same(t, "rows", "p00 p02 p03", namesOf(s.rows))
	testkit.Same(t, "p02", "kept/", s.outcome("p02"))
}

// TestLabelledPictureTakesThePlaceOfAnother: where the release says which picture was labelled, and it is not the
// stored one, that is no row, and the right one takes its place when Reddit names it.
func TestLabelledPictureTakesThePlaceOfAnother(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; answers; names 40 p02; run").ok()
	s := w.checkSound()
	testkit.Same(t, "an image of p02", true, s.imageOf("p02"))
	testkit.Same(t, "p02", "changed/sha256", s.outcome("p02"))
	before := s.records["p02"].Image.SHA256
	w.do("move 41 p02; run").ok()
	s = w.checkSound()
	testkit.Same(t, "p02, with a third picture", "changed/sha256", s.outcome("p02"))
	testkit.Same(t, "its image", before, s.records["p02"].Image.SHA256)
	same := w.copied(t).do("serve 40 p02; run").ok().checkSound()
	testkit.Same(t, "p02, with the right picture in the same place", "changed/sha256", same.outcome("p02"))
	same = w.copied(t).do("serve 40 p02; run retry=changed").ok().checkSound()
	testkit.Same(t, "p02, with the right picture in the same place that is asked again", "kept/", same.outcome("p02"))
	w.do("move 503 p02; run; serve 40 p02; run").ok()
	s = w.checkSound()
	testkit.Same(t, "p02, with the right picture", "kept/", s.outcome("p02"))
	testkit.Same(t, "its image", state.SHA256(drawn("40")), s.records["p02"].Image.SHA256)
	testkit.Same(t, "an answer about the other one", false, s.answers["p02"])
	if text := s.rows["p02"].Text; !strings.Contains(text, unique("A", 40)) {
		t.Errorf("text %q", text)
	}
	// Nothing that stands in for a missing picture has the digest of the labelled one, whatever its size, or whoever has
	// it, too.
	w.do("names small:42 p01 p03; run; move small:42 p01 p03; run").ok()
	s = w.checkSound()
	for _, id := range []string{"p01", "p03"} {
		testkit.Same(t, "the small image of "+id, state.SHA256(drawn("small:42")), s.records[id].Image.SHA256)
	}
}

// TestOneRowWasSeenInTheFuture: where one row only was seen live while a clock was ahead, the status says so.
func TestOneRowWasSeenInTheFuture(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; clock 99h; recheck; clock -99h; recheck on=1/post,unclear,p01").ok()
	s := w.checkSound().status
	testkit.Same(t, "the oldest answer is of the future", false, policy.Ahead(*s.OldestAsk, w.now))
	testkit.Same(t, "ahead, stale", [2]bool{true, true}, [2]bool{s.Ahead, s.Stale})
}
