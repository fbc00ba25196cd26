package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// TestHeardKeepsTheFirstTime: an image is gone since the first audit that heard so, also where an audit takes back what
// was said of its post, for another image of it is back, and says in the same breath that this one is still gone.
func TestHeardKeepsTheFirstTime(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	post := func(reason manifest.Reason) []auditlog.Post {
		return []auditlog.Post{{ID: "abc", State: manifest.StateLive, Reason: reason}}
	}
	gone := func(image int) auditlog.Event {
		return auditlog.Event{Kind: auditlog.Audit, Image: image, Posts: post(policy.LeftGallery)}
	}
	back := auditlog.Event{Kind: auditlog.Audit, Posts: post("")}
	type audits = [][]auditlog.Event // each of the next day
	for _, tt := range []struct {
		name   string
		audits audits
		want   map[int]time.Time
	}{
		{"heard twice", audits{{gone(1)}, {gone(1)}}, map[int]time.Time{1: day(1)}},
		{"another one later", audits{{gone(1)}, {gone(2)}}, map[int]time.Time{1: day(1), 2: day(2)}},
		{"one of two is back", audits{{gone(1), gone(2)}, {back, gone(2)}}, map[int]time.Time{2: day(1)}},
		{"first of three is back", audits{{gone(0), gone(1), gone(2)}, {back, gone(1), gone(2)}},
			map[int]time.Time{1: day(1), 2: day(1)}},
		{"all are back", audits{{gone(1), gone(2)}, {back}}, nil},
		{"gone again after it was back", audits{{gone(1)}, {back}, {gone(1)}}, map[int]time.Time{1: day(3)}},
		{"one is gone again", audits{{gone(1), gone(2)}, {back, gone(2)}, {gone(1)}},
			map[int]time.Time{1: day(3), 2: day(1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			note := HeardNote{}
			for i, records := range tt.audits {
				for _, e := range records {
					e.SHA256 = day(i + 1).Format(time.DateOnly)
					note.Hear(e, day(i+1))
				}
			}
			var have map[int]time.Time
			for image, h := range note["abc"].Images {
				if have == nil {
					have = map[int]time.Time{}
				}
				have[image] = h.Since
			}
			if diff := cmp.Diff(tt.want, have); diff != "" {
				t.Error(diff)
			}
		})
	}
}
