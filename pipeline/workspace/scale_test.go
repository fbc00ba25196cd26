package workspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// TestAlike: Alike counts each entry once, with the facts that Records has of it, as far as outcomes depend on them.
func TestAlike(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(8)...)
	failed := &Trouble{Outcome: manifest.Failed, Reason: "ocr_timeout"}
	var posts []Post
	var results []manifest.Result
	for i, k := range []manifest.Key{key("a000"), key("a001"), key("a004"), key("a005")} {
		img := store(t, w, k, fmt.Sprint("body ", i))
		testkit.OK(t, w.SetReadings(ctx, NewReading{Key: k, Reading: Reading{ImageSHA256: img.SHA256, Failed: failed, Masked: 2, Text: k.String()}}))
		posts = append(posts, Post{ID: k.ID, State: manifest.StateLive, CheckedAt: hour(1), LiveAt: hour(int64(1 + i/3)), AbsentAt: hour(2), Unseen: true})
		results = append(results, manifest.Result{Key: k, Outcome: manifest.Kept, Reason: "no_text", Detail: k.String()})
	}
	testkit.OK(t, w.DropImage(ctx, key("a002"), Trouble{Outcome: manifest.Gone, Reason: "http_404", Detail: "a sentence"}, false),
		w.SetPosts(ctx, append(posts, Post{ID: "a002", State: manifest.StateLive, Reason: "r", LiveAt: hour(3)},
			Post{ID: "a003", State: manifest.StateRemoved, Reason: "moderator", Withheld: true, CheckedAt: hour(4)})),
		w.SetResults(ctx, results))
	count := func(counts map[string]int, n int, alone bool, r Record) {
		who := ""
		if alone || r.Post.Withheld {
			who = r.Key.String()
		}
		if r.Reading != nil {
			who += fmt.Sprint(" ", r.Reading.Failed, r.Reading.Masked)
		}
		if r.Trouble != nil {
			who += fmt.Sprint(" ", r.Trouble.Outcome, r.Trouble.Reason)
		}
		if r.Result != nil {
			who += fmt.Sprint(" ", r.Result.Outcome, r.Result.Reason)
		}
		r.Post.ID, r.Post.CheckedAt = "", time.Time{}
		counts[fmt.Sprint(who, r.Post, r.Image != nil)] += n
	}
	want, got := map[string]int{}, map[string]int{}
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		count(want, 1, r.ID == "a001", r)
	}
	for _, a := range collect(t, w.Alike(ctx, []manifest.PostID{"a001"})) {
		count(got, a.Entries, a.ID != "", a.Record)
	}
	testkit.Same(t, "entries that are alike", want, got)
	if len(got) != 6 { // two of the stored images are alike, and the two posts that were never asked about
		t.Errorf("%d kinds of entries: %v", len(got), got)
	}
}

// BenchmarkClose closes a workspace whose run fetched b.N images, and opens it again.
func BenchmarkClose(b *testing.B) {
	w, err := Open(b.Context(), b.TempDir(), Options{})
	testkit.OK(b, err)
	digest := strings.Repeat("0123456789abcdef", 4)
	for stored := 0; stored < b.N; stored += 1000 {
		var events []auditlog.Event
		for i := stored; i < min(stored+1000, b.N); i++ {
			events = append(events, auditlog.Event{Kind: auditlog.Fetch, Posts: []auditlog.Post{{ID: manifest.PostID(fmt.Sprintf("1s%07d", i))}},
				SHA256: digest, Original: digest, Pixels: digest})
		}
		testkit.OK(b, w.Note(b.Context(), events...))
	}
	b.ResetTimer()
	testkit.OK(b, w.Close())
	closed := b.Elapsed()
	w, err = Open(b.Context(), w.Dir(), Options{Existing: true})
	testkit.OK(b, err)
	b.StopTimer()
	testkit.OK(b, w.Close())
	b.ReportMetric(closed.Seconds(), "close-s")
	b.ReportMetric((b.Elapsed() - closed).Seconds(), "open-s")
}
