package labels

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

var sixtyTwentyTwenty = []Share{{"train", 60}, {"validation", 20}, {"test", 20}}

// resplit gives the entries the splits of an assignment.
func resplit(t *testing.T, entries []manifest.Entry, a Assignment) []manifest.Entry {
	t.Helper()
	split := make(map[manifest.PostID]string)
	for i, id := range a.Posts {
		if _, twice := split[id]; twice {
			t.Fatalf("post %s was given two splits", id)
		}
		split[id] = a.Splits[i]
	}
	var out []manifest.Entry
	for _, e := range entries {
		if split[e.ID] == "" {
			t.Fatalf("post %s was given no split", e.ID)
		}
		e.Split = split[e.ID]
		out = append(out, e)
	}
	return out
}

// TestSplitFigSIM: over every seed no label is further from its exact share than the worst of the
// paper's own split (Table 8), in entries and as a part of the share.
func TestSplitFigSIM(t *testing.T) {
	r, entries := figsim(t)
	paper, err := counted(t, r.Schema, entries).Deviate(sixtyTwentyTwenty)
	testkit.OK(t, err)
	for seed := range uint64(5) {
		a, err := Split(t.Context(), r.Schema, entries, sixtyTwentyTwenty, seed)
		testkit.OK(t, err)
		ours, err := counted(t, r.Schema, resplit(t, entries, a)).Deviate(sixtyTwentyTwenty)
		testkit.OK(t, err)
		testkit.Same(t, fmt.Sprintf("seed %d: sizes", seed),
			[]SplitSize{{"train", 629}, {"validation", 210}, {"test", 210}}, ours.Splits)
		if math.Abs(ours.Worst.Off) > 2 || math.Abs(ours.Worst.Off) > math.Abs(paper.Worst.Off) {
			t.Errorf("seed %d: worst label is off by %+v, the paper's by %+v", seed, ours.Worst, paper.Worst)
		}
		if math.Abs(ours.WorstShare.Off) > math.Abs(paper.WorstShare.Off)+1e-12 {
			t.Errorf("seed %d: worst label is off by the share %+v, the paper's by %+v", seed, ours.WorstShare,
				paper.WorstShare)
		}
		if ours.Mean > paper.Mean {
			t.Errorf("seed %d: mean deviation %v, the paper's is %v", seed, ours.Mean, paper.Mean)
		}
	}
}

// TestSplitAgain: a seed gives one split, another seed another, and the images of a post stay together.
func TestSplitAgain(t *testing.T) {
	r, entries := figsim(t)
	for i := range entries {
		entries[i].Key = manifest.Key{ID: entries[i-i%3].ID, Image: i % 3} // galleries of three
	}
	split := func(seed uint64) Assignment {
		a, err := Split(t.Context(), r.Schema, entries, sixtyTwentyTwenty, seed)
		testkit.OK(t, err)
		resplit(t, entries, a) // each post once
		return a
	}
	first := split(7)
	testkit.Same(t, "the same seed gave another split", first, split(7))
	// The posts' splits of a seed stay the same, on any machine and in any version (docs/labels.md).
	if got := crc32.ChecksumIEEE([]byte(strings.Join(first.Splits, " "))); got != 0x7a0e5248 {
		t.Errorf("seed 7 gives splits with the checksum %#x", got)
	}
	if cmp.Equal(first, split(8)) {
		t.Error("another seed gave the same split")
	}
	if len(first.Posts) != 350 {
		t.Errorf("%d posts were split, there are 350", len(first.Posts))
	}
}

// TestSplitByHand parts four posts of two kinds in halves: each half must get one of each kind.
func TestSplitByHand(t *testing.T) {
	schema, _ := small()
	post := func(id manifest.PostID, labels ...int) manifest.Entry {
		return manifest.Entry{Key: manifest.Key{ID: id}, Labels: [][]int{labels, {0}}}
	}
	entries := []manifest.Entry{post("a", 0), post("b", 0), post("c", 1), post("d", 1), post("e"), post("f")}
	halves := []Share{{"one", 1}, {"two", 1}}
	for seed := range uint64(20) {
		a, err := Split(t.Context(), schema, entries, halves, seed)
		testkit.OK(t, err)
		for i := 0; i < 6; i += 2 {
			if a.Splits[i] == a.Splits[i+1] {
				t.Errorf("seed %d: posts %s and %s, which are alike, are both in %s", seed, a.Posts[i], a.Posts[i+1],
					a.Splits[i])
			}
		}
	}
}

// TestWants: a post with a label goes to the split that lacks most of it, of equals to the one that
// lacks most posts; a post without one where most posts are lacking.
func TestWants(t *testing.T) {
	schema, _ := small()
	var entries []manifest.Entry
	for _, id := range []manifest.PostID{"a", "b", "c", "d"} {
		entries = append(entries, manifest.Entry{Key: manifest.Key{ID: id}, Labels: [][]int{{0}, {}}})
	}
	s := newStratifier(schema, entries, []float64{.5, .5}, 1)
	s.counts[0][0], s.filled[1] = 1, 2 // the first has the label once, the second has more posts
	if label, size := s.wants(0), s.wants(-1); label != 1 || size != 0 {
		t.Errorf("a post with the label goes to %d, one without to %d; want 1 and 0", label, size)
	}
	s.counts[0][0] = 0
	if got := s.wants(0); got != 0 {
		t.Errorf("where both lack the label alike, a post goes to %d, want 0", got)
	}
}

// TestDeviateByHand: of 8 entries in parts of 3 to 1, 6 and 2 would be exact.
func TestDeviateByHand(t *testing.T) {
	s := Stats{Splits: []SplitSize{{"test", 2}, {"else", 9}, {"train", 6}},
		Categories: []CategoryStats{{Name: "c", Labels: []LabelStats{
			{Code: "A", Count: 8, BySplit: []int{1, 0, 7}}, {Code: "never", BySplit: []int{0, 0, 0}},
			{Code: "B", Count: 4, BySplit: []int{3, 0, 1}}}}}}
	got, err := s.Deviate([]Share{{"train", 3}, {"test", 1}})
	want := Deviation{Splits: []SplitSize{{"train", 6}, {"test", 2}}, Mean: (1. + 1 + 2 + 2) / 4,
		Labels: []LabelDeviation{{"c", "A", 8, []float64{6, 2}, []float64{1, -1}, []float64{1. / 6, -1. / 2}},
			{"c", "B", 4, []float64{3, 1}, []float64{-2, 2}, []float64{-2. / 3, 2}}},
		Worst: Worst{"c", "B", "train", -2}, WorstShare: Worst{"c", "B", "test", 2}}
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" || err != nil {
		t.Errorf("error %v (-want +got)\n%s", err, diff)
	}
	if _, err := s.Deviate([]Share{{"train", 3}, {"dev", 1}}); err == nil {
		t.Error("a split that is not there was measured")
	}
}

func TestSplitRefuses(t *testing.T) {
	schema, entries := small()
	for name, shares := range map[string][]Share{
		"too few posts":    {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}},
		"too small a part": {{"a", 1000}, {"b", 1}},
	} {
		if a, err := Split(t.Context(), schema, entries, shares, 1); err == nil {
			t.Errorf("%s: split into %v", name, a.Splits)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Split(stopped, schema, entries, sixtyTwentyTwenty[:2], 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Split of a cancelled context = %v", err)
	}
}
