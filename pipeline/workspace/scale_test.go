package workspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/attest"
	"rehydrate/pipeline/auditlog"
)

// TestBrief: Brief has of each entry what Records has, as far as outcomes depend on it.
func TestBrief(t *testing.T) {
	ctx := t.Context()
	w := loaded(t, numbered(4)...)
	img := store(t, w, key("a000"), "body")
	failed := &Trouble{Outcome: manifest.Failed, Reason: "ocr_timeout"}
	attest.OK(t, w.SetReadings(ctx, NewReading{Key: key("a000"), Reading: Reading{ImageSHA256: img.SHA256, Failed: failed, Masked: 2}}),
		w.SetTrouble(ctx, key("a001"), Trouble{Outcome: manifest.Gone, Reason: "http_404", Detail: "a sentence"}),
		w.SetPosts(ctx, []Post{{ID: "a000", State: manifest.StateLive, CheckedAt: hour(1), LiveAt: hour(1), AbsentAt: hour(2), Unseen: true},
			{ID: "a001", State: manifest.StateLive, Reason: "r", LiveAt: hour(3)}, {ID: "a002", State: manifest.StateRemoved, Reason: "moderator", Withheld: true}}),
		w.SetResults(ctx, []manifest.Result{{Key: key("a000"), Outcome: manifest.Kept, Reason: "no_text"}}))
	type brief struct {
		Key     manifest.Key
		Digests string
		Post    Post
		Has     [4]bool
		Texts   string
	}
	said := func(r Record) brief {
		b := brief{r.Key, r.SHA256 + r.StrippedSHA256 + r.PixelsSHA256, r.Post, [4]bool{r.Image != nil, r.Trouble != nil, r.Reading != nil, r.Result != nil}, ""}
		b.Post.CheckedAt, b.Post.Subreddit = time.Time{}, ""
		if r.Image != nil {
			b.Texts += r.Image.OriginalSHA256 + r.Image.SHA256 + r.Image.PixelsSHA256
		}
		if r.Trouble != nil {
			b.Texts += fmt.Sprint(r.Trouble.Outcome, r.Trouble.Reason)
		}
		if r.Reading != nil {
			b.Texts += fmt.Sprint(r.Reading.Failed, r.Reading.Masked)
		}
		if r.Result != nil {
			b.Texts += fmt.Sprint(r.Result.Key, r.Result.Outcome, r.Result.Reason)
		}
		return b
	}
	var want, got []brief
	for _, r := range collect(t, w.Records(ctx, Select{})) {
		want = append(want, said(r))
	}
	for _, r := range collect(t, w.Brief(ctx)) {
		got = append(got, said(r))
	}
	attest.Same(t, "brief records", want, got)
}

// BenchmarkClose closes a workspace whose run fetched b.N images, and opens it again.
func BenchmarkClose(b *testing.B) {
	w, err := Open(b.Context(), b.TempDir(), Options{})
	attest.OK(b, err)
	digest := strings.Repeat("0123456789abcdef", 4)
	for stored := 0; stored < b.N; stored += 1000 {
		var events []auditlog.Event
		for i := stored; i < min(stored+1000, b.N); i++ {
			events = append(events, auditlog.Event{Kind: auditlog.Fetch, Posts: []auditlog.Post{{ID: manifest.PostID(fmt.Sprintf("1s%07d", i))}},
				SHA256: digest, Original: digest, Pixels: digest})
		}
		attest.OK(b, w.Note(b.Context(), events...))
	}
	b.ResetTimer()
	attest.OK(b, w.Close())
	closed := b.Elapsed()
	w, err = Open(b.Context(), w.Dir(), Options{Existing: true})
	attest.OK(b, err)
	b.StopTimer()
	attest.OK(b, w.Close())
	b.ReportMetric(closed.Seconds(), "close-s")
	b.ReportMetric((b.Elapsed() - closed).Seconds(), "open-s")
}
