package state

import (
	"fmt"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestOutcomeOfWhatCanBeKnown walks through what can be known of an entry before dedupe and language.
func TestOutcomeOfWhatCanBeKnown(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	fresh, old := now.Add(-time.Hour), now.Add(-49*time.Hour)
	image, reading := &workspace.Image{SHA256: "00"}, &workspace.Reading{ImageSHA256: "00"}
	key := manifest.Key{ID: "abc123"}
	row := &manifest.Result{Key: key, Outcome: manifest.Kept}
	type result struct {
		Outcome manifest.Outcome
		Reason  manifest.Reason
	}
	post := func(s manifest.PostState, r manifest.Reason) workspace.Post {
		return workspace.Post{ID: key.ID, State: s, Reason: r, CheckedAt: fresh, LiveAt: fresh}
	}
	live := post(manifest.StateLive, "")
	absent := live
	absent.AbsentAt = fresh
	stale := live
	stale.LiveAt = old
	withheld := post(manifest.StateRemoved, "moderator")
	withheld.Withheld = true
	buried := map[manifest.PostID]workspace.Tombstone{key.ID: {Tombstone: manifest.Tombstone{ID: key.ID,
		State: manifest.StateRemoved, Time: old}}}

	tests := []struct {
		name       string
		rec        workspace.Record
		tombstones map[manifest.PostID]workspace.Tombstone
		want       result
	}{
		{"never asked", workspace.Record{}, nil, result{manifest.Pending, ""}},
		{"no verdict", workspace.Record{Post: post(manifest.StateUnknown, "http_503")}, nil,
			result{manifest.Failed, "http_503"}},
		{"removed", workspace.Record{Post: post(manifest.StateRemoved, "moderator")}, nil,
			result{manifest.Removed, "moderator"}},
		{"removed, image still here", workspace.Record{Post: withheld, Image: image, Reading: reading}, nil,
			result{manifest.Removed, "moderator"}},
		{"deleted", workspace.Record{Post: post(manifest.StateDeleted, "author")}, nil, result{manifest.Deleted, "author"}},
		{"unavailable", workspace.Record{Post: post(manifest.StateUnavailable, "absent_twice")}, nil,
			result{manifest.Unavailable, "absent_twice"}},
		{"quarantined", workspace.Record{Post: post(manifest.StateHeld, "quarantine"), Image: image, Reading: reading},
			nil, result{manifest.Refused, "quarantine"}},
		{"live, not fetched", workspace.Record{Post: live}, nil, result{manifest.Pending, ""}},
		{"live, image gone", workspace.Record{Post: live,
			Trouble: &workspace.Trouble{Outcome: manifest.Gone, Reason: "http_404"}}, nil, result{manifest.Gone, "http_404"}},
		{"live, not read", workspace.Record{Post: live, Image: image}, nil, result{manifest.Pending, ""}},
		{"live, not readable by OCR", workspace.Record{Post: live, Image: image,
			Reading: &workspace.Reading{Failed: &workspace.Trouble{Outcome: manifest.Failed, Reason: "ocr_timeout"}}}, nil,
			result{manifest.Failed, "ocr_timeout"}},
		{"live, whole", workspace.Record{Post: live, Image: image, Reading: reading}, nil, result{Candidate, ""}},
		{"live, absent from the last answer", workspace.Record{Post: absent, Image: image, Reading: reading}, nil,
			result{manifest.Failed, "absent_once"}},
		{"live, but asked too long ago", workspace.Record{Post: stale, Image: image, Reading: reading}, nil,
			result{manifest.Failed, "not_rechecked"}},
		{"a row, asked too long ago", workspace.Record{Post: stale, Image: image, Reading: reading, Result: row}, nil,
			result{Candidate, ""}},
		{"a row, absent from the last answer", workspace.Record{Post: absent, Image: image, Reading: reading,
			Result: row}, nil, result{Candidate, ""}},
		{"a row with an odd answer", workspace.Record{Post: live, Image: image, Reading: reading, Result: row,
			Trouble: &workspace.Trouble{Outcome: manifest.NoMedia, Reason: "no_url", Beside: workspace.Odd}}, nil,
			result{Candidate, ""}},
		{"an image with an odd answer", workspace.Record{Post: live, Image: image, Reading: reading,
			Trouble: &workspace.Trouble{Outcome: manifest.Gone, Reason: "http_404", Beside: workspace.Odd}}, nil,
			result{Candidate, ""}},
		{"a row that the policy refuses now", workspace.Record{Post: live, Image: image, Reading: reading, Result: row,
			Trouble: &workspace.Trouble{Outcome: manifest.Invalid, Reason: "too_large", Beside: workspace.Out}}, nil,
			result{manifest.Invalid, "too_large"}},
		{"a picture that left its gallery", workspace.Record{Post: live, Image: image, Reading: reading, Result: row,
			Trouble: &workspace.Trouble{Outcome: manifest.Gone, Reason: policy.LeftGallery, Beside: workspace.Waiting}},
			nil, result{manifest.Gone, policy.LeftGallery}},
		{"live, same bytes as many others", workspace.Record{Post: live,
			Image: &workspace.Image{OriginalSHA256: "shared"}, Reading: reading}, nil,
			result{manifest.Placeholder, "suspected_placeholder"}},
		{"live, same bytes as many others, which the manifest names",
			workspace.Record{Post: live, Image: &workspace.Image{OriginalSHA256: "shared"},
				Entry: manifest.Entry{SHA256: "shared"}, Reading: reading}, nil, result{Candidate, ""}},
		{"live, same bytes as many others, and not those that the manifest names",
			workspace.Record{Post: live, Reading: reading,
				Image: &workspace.Image{OriginalSHA256: "shared"}, Entry: manifest.Entry{SHA256: "a", StrippedSHA256: "b"}},
			nil,
			result{manifest.Placeholder, "suspected_placeholder"}},
		{"came back under a tombstone", workspace.Record{Post: live, Image: image, Reading: reading}, buried,
			result{manifest.Removed, "tombstone"}},
		{"removed under a tombstone", workspace.Record{Post: post(manifest.StateRemoved, "spam_filter")}, buried,
			result{manifest.Removed, "spam_filter"}},
	}
	for _, tt := range tests {
		tt.rec.Entry.Key = key
		shared := map[manifest.Key]bool{}
		if tt.rec.Image != nil && tt.rec.Image.OriginalSHA256 == "shared" {
			shared[key] = isOf(auditlog.Suspect{URLs: 4}, tt.rec, 4)
		}
		got := Judge{Policy: policy.Default(), Tombstones: tt.tombstones, shared: shared, Now: now}.Outcome(tt.rec)
		testkit.Same(t, fmt.Sprintf("%s: outcome", tt.name), tt.want, result{got.Outcome, got.Reason})
	}
}
