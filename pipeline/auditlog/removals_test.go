package auditlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// TestRemovals: what is removed and not back, after records in a short form.
func TestRemovals(t *testing.T) {
	for _, c := range []struct{ records, tombstones, entries, images string }{
		{"fetch a 0 1", "", "", ""},
		{"fetch a 0 1; tombstone a", "a", "", "a=1"},
		{"fetch a 0 1; erased a 0", "", "", "a=1"},
		{"fetch a 0 1; tombstone a; erased a 0; fetch a 0 1", "a", "", ""},
		// A post that came back with another picture has had both.
		{"fetch a 0 1; tombstone a; erased a 0; fetch a 0 2", "a", "", "a=1"},
		{"fetch a 0 1; erased a 0; fetch a 0 2; tombstone a; erased a 0", "a", "", "a=1 a=2"},
		{"fetch a 0 1; fetch a 0 2; tombstone a", "a", "", "a=2"},
		{"fetch a 0 1; tombstone a; lifted a", "a undone", "", "a=1"},
		{"fetch a 0 1; tombstone a; readmitted a; readmitted a 0 revoked", "a", "", "a=1"},
		{"fetch a 0 1; fetch a 1 2; erased a 1 gallery_item_deleted", "", "a/1", "a/1=2"},
		{"fetch a 0 1; fetch a 1 2; erased a 0 gallery_item_deleted", "", "a", "a=1"},
		{"fetch a 0 1; erased a 0 crosspost_parent_removed; fetch a 0 3", "", "", "a=1"},
		{"fetch a 0 1; erased a 0 crosspost_parent_removed; fetch a 1 3", "", "a", "a=1"},
		// Whether it is the same picture is decided again, by the digests of what was taken down.
		{"fetch a 0 1; fetch b 0 1; tombstone a; erased a 0; erased b 0 same_as_removed", "a", "", "a=1"},
		{"fetch a 0 1; fetch a 1 2; erased a 1 left_manifest; tombstone a", "a", "", "a/1=2 a=1"},
		{"fetch a 0 1; fetch a 1 2; erased a 1 left_manifest; fetch a 1 3; erased a 1 gallery_item_deleted", "", "a/1",
			"a/1=2 a/1=3"},
		{"fetch a 0 1; erased a 0 host_sends_no_images; tombstone a", "a", "", ""},
		{"fetch a 0 1; fetch a 1 2; erased a 0 host_sends_no_images; fetch a 0 3; tombstone a", "a", "", "a/1=2 a=3"},
		{"fetch a 0 1; erased a 0 left_manifest; fetch b 0 2; erased b 0 ended", "", "", ""},
	} {
		gone := NewRemovals()
		for _, take := range []func(Event){gone.Add, gone.Learn} {
			for i, record := range strings.Split(c.records, "; ") {
				take(shortRecord(int64(i), strings.Fields(record)))
			}
		}
		var stones, entries, images []string
		for _, s := range gone.Tombstones {
			stones = append(stones, string(s.ID)+map[bool]string{true: " undone"}[s.Undone])
		}
		for k := range gone.Entries {
			entries = append(entries, k.String())
		}
		for id, of := range gone.Images {
			for image, all := range of {
				for _, d := range all {
					images = append(images, manifest.Key{ID: id, Image: image}.String()+"="+d.SHA256)
				}
			}
		}
		slices.Sort(images)
		got := []string{strings.Join(stones, " "), strings.Join(entries, " "), strings.Join(images, " ")}
		if diff := gocmp.Diff([]string{c.tombstones, c.entries, c.images}, got); diff != "" {
			t.Errorf("%s: tombstones, entries, images (-want +got):\n%s", c.records, diff)
		}
	}
}

// shortRecord is a record of "kind post [image [verdict]]", of a fetch "fetch post image digest".
func shortRecord(seq int64, words []string) Event {
	e := Event{Seq: seq, Kind: Kind(words[0]), Posts: []Post{{ID: manifest.PostID(words[1])}}}
	if len(words) > 2 {
		e.Image = int(words[2][0] - '0')
	}
	switch {
	case e.Kind == Fetch:
		e.SHA256 = words[3]
	case e.Kind == Buried:
		e.Posts[0].State, e.Since = manifest.StateRemoved, time.Unix(seq, 0)
	case len(words) > 3:
		e.Verdict = words[3]
	}
	return e
}

// TestBack: posts that were gone, or of which an image was held back, and that Reddit showed since.
func TestBack(t *testing.T) {
	for _, c := range []struct{ records, want string }{
		{"verdicts live", ""},
		{"verdicts deleted; withheld deleted; verdicts live", "live 2"},
		{"verdicts unavailable; verdicts live; verdicts unknown; verdicts held", "held 3"},
		{"verdicts deleted; verdicts live; verdicts deleted", ""},
		{"verdicts deleted; verdicts live; tombstone removed", ""},
		{"withheld live gallery_item_deleted; verdicts live", "live 1"},
		{"verdicts live; withheld live gallery_item_deleted", ""},
	} {
		gone := NewRemovals()
		for i, record := range strings.Split(c.records, "; ") {
			words := append(strings.Fields(record), "")
			gone.Add(Event{Kind: Kind(words[0]), Time: time.Unix(int64(i), 0),
				Posts: []Post{{"a", manifest.PostState(words[1]), manifest.Reason(words[2])}}})
		}
		got := ""
		for _, b := range gone.Back {
			got = fmt.Sprintf("%s %d", b.State, b.At.Unix())
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.records, got, c.want)
		}
	}
}

// TestSuspects: what is recorded of a picture is what a log tells, over as many records as there is room for, and more
// of it comes in a later one. Whose it was before it first came in place of others stays.
func TestSuspects(t *testing.T) {
	before := []string{"b", "a/2"}
	for i := range 2*MaxPosts + 5 {
		before = append(before, fmt.Sprintf("p%03d/1", i))
	}
	want, digest := Suspect{URLs: 3, Replaced: 2, Before: before, Named: true}, strings.Repeat("a", 64)
	all := Suspects{}
	for _, e := range want.Events(digest) {
		e.Time = time.Unix(1, 0).UTC()
		line, err := e.Line()
		testkit.OK(t, err)
		e, err = ParseLine(line)
		testkit.OK(t, err)
		all.Add(e)
	}
	got := all[digest]
	testkit.Same(t, "as often", []int{3, 2}, []int{got.URLs, got.Replaced})
	testkit.Same(t, "whose it was", slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(got.Before)))
	late := []string{"x"}
	testkit.Same(t, "as much", []string(nil), all.Update(Suspects{digest: {URLs: 2, Replaced: 2, Before: late}}))
	testkit.Same(t, "more", []string{digest}, all.Update(Suspects{digest: {Replaced: 5, Before: late}}))
	testkit.Same(t, "most", Suspect{3, 5, got.Before, true}, all[digest])
	for n, want := range map[int]bool{0: false, 3: true, 5: true, 6: false} {
		testkit.Same(t, fmt.Sprint(n, " times"), want, all[digest].Came(n))
	}
}
