package redditemu

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

func TestScenario(t *testing.T) {
	var ids []manifest.PostID
	for i := range 1049 {
		ids = append(ids, manifest.PostID(fmt.Sprint("s", i)))
	}
	posts := Scenario(ids, 11)
	s, err := Start(Options{})
	testkit.OK(t, err)
	defer s.Close()
	testkit.OK(t, s.Put(posts...))

	states, outcomes, conditions := map[manifest.PostState]int{}, map[manifest.Outcome]int{}, map[string]bool{}
	captions, live := map[string]bool{}, map[manifest.PostID]bool{}
	for i, p := range posts {
		if p.ID != ids[i] {
			t.Fatalf("post %d is %s, want %s", i, p.ID, ids[i])
		}
		if p.CopyOf != "" && !live[p.CopyOf] {
			t.Errorf("%s copies %s, which is not an earlier live post", p.ID, p.CopyOf)
		}
		live[p.ID] = p.Want == manifest.StateLive && len(p.Images) > 0 && p.Images[0].Serve == ServeImage
		if p.Want != p.Condition.State() {
			t.Errorf("%s: Want %q under %s", p.ID, p.Want, p.Condition)
		}
		states[p.Want]++
		outcomes[p.WantOutcome]++
		conditions[string(p.Condition)+p.RemovedBy] = true
		if len(p.Images) > 0 && p.Images[0].Spec.Caption != "" {
			if c := p.Images[0].Spec.Caption; captions[c] {
				t.Errorf("%s repeats caption %q", p.ID, c)
			}
			captions[p.Images[0].Spec.Caption] = true
		}
	}
	if n := states[manifest.StateLive]; n < 930 || n > 1020 {
		t.Errorf("%d of 1049 live, want about 975", n)
	}
	if n := outcomes[manifest.Duplicate]; n < 15 || n > 50 {
		t.Errorf("%d copies, want about 30", n)
	}
	for _, p := range restOf() {
		if key := string(p.normalized().Condition) + p.RemovedBy; !conditions[key] {
			t.Errorf("no post is %s", key)
		}
	}
	testkit.Same(t, "the beginning depends on what follows (-long +short)", posts[:300], Scenario(ids[:300], 11))
	if cmp.Equal(posts[:50], Scenario(ids[:50], 12)) {
		t.Error("seeds 11 and 12 make the same posts")
	}
}

func TestDemo(t *testing.T) {
	annotations, posts := Demo(1)
	again, _ := Demo(1)
	if string(annotations) != string(again) {
		t.Error("Demo(1) differs from itself")
	}
	rows, err := csv.NewReader(strings.NewReader(string(annotations))).ReadAll()
	testkit.OK(t, err)
	want := []string{"id", "split", "figurative", "severity", "related_content", "modality", "context", "sha256"}
	if !slices.Equal(rows[0], want) || len(rows)-1 != len(posts) || len(posts) < 55 || len(posts) > 75 {
		t.Errorf("header %v, %d rows, %d posts", rows[0], len(rows)-1, len(posts))
	}
	outcomes, splits, ids := map[manifest.Outcome]int{}, map[string]int{}, map[manifest.PostID]int{}
	for i, p := range posts {
		if rows[i+1][0] != string(p.ID) {
			t.Errorf("row %d is %s, post %s", i+1, rows[i+1][0], p.ID)
		}
		outcomes[p.WantOutcome]++
		splits[rows[i+1][1]]++
		if _, ok := ids[p.ID]; ok {
			t.Errorf("id %s twice", p.ID)
		}
		ids[p.ID] = i
		if o, ok := ids[p.CopyOf]; p.CopyOf != "" && (!ok || posts[o].WantOutcome != manifest.Kept) {
			t.Errorf("%s is a copy of %s, which is not before it", p.ID, p.CopyOf)
		}
	}
	for _, o := range manifest.Outcomes() {
		if o != manifest.Pending && outcomes[o] == 0 {
			t.Errorf("no entry of the demo ends as %s", o)
		}
	}
	if len(splits) != 3 || splits["test"] < 8 {
		t.Errorf("splits %v", splits)
	}

	path := filepath.Join(t.TempDir(), "annotations.csv")
	testkit.OK(t, os.WriteFile(path, annotations, 0o600))
	r, err := manifest.Open(path, manifest.Options{})
	testkit.OK(t, err)
	n, sums := 0, 0
	for e, err := range r.Entries(t.Context()) {
		testkit.OK(t, err)
		n++
		if e.SHA256 != "" {
			sums++
		}
	}
	if n != len(posts) || sums != 2 {
		t.Errorf("%d entries with %d digests, want %d with 2", n, sums, len(posts))
	}
}
