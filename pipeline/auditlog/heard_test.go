package auditlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rehydrate/manifest"
	"rehydrate/policy"
)

// TestHeardKeepsTheFirstTime: an image is gone since the first audit that heard so, also where an audit takes back what
// was said of its post, for another image of it is back, and says in the same breath that this one is still gone.
func TestHeardKeepsTheFirstTime(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	post := func(reason manifest.Reason) []Post {
		return []Post{{ID: "abc", State: manifest.StateLive, Reason: reason}}
	}
	gone := func(image int) Event {
		return Event{Kind: Audit, Image: image, Posts: post(policy.LeftGallery)}
	}
	back := Event{Kind: Audit, Posts: post("")}
	type audits = [][]Event // each of the next day
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
			note := Heard{}
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

// TestHeardByLog: what an audit heard holds until a later record settles it or takes it back, and a note that is older
// than the log takes that over. Half a sweep says no more than a whole one did.
func TestHeardByLog(t *testing.T) {
	for _, c := range []struct{ note, records, want string }{
		{"", "audit a deleted", "a deleted 1"},
		{"", "audit a deleted; verdicts a unknown", "a deleted 1"},
		{"", "audit a deleted; verdicts a live", ""},
		{"", "audit a deleted; verdicts a live; audit a removed", "a removed 3"},
		{"", "audit a deleted; tombstone a deleted", ""},
		{"", "audit a deleted; withheld a deleted", ""},
		{"", "audit a live gallery_item_deleted; withheld a live gallery_item_deleted", "a/0 1"},
		{"", "audit a live gallery_item_deleted; verdicts a live", ""},
		{"", "audit a deleted cut_off", "a deleted 1 cut off"},
		{"", "audit a deleted; audit a deleted cut_off", "a deleted 2"},
		{"", "audit a deleted cut_off; audit a deleted", "a deleted 2"},
		{"a 0", "audit a deleted; verdicts a live", ""},
		{"a 3", "audit a deleted; verdicts a live", "a deleted 3"},
		{"a 0", "audit a deleted; withheld a deleted; verdicts a live", ""},
		{"a 0", "audit a deleted; tombstone a deleted", ""},
		{"a 3", "audit a deleted; withheld a deleted", "a deleted 3"},
		{"a 0", "verdicts b live", "a deleted 0"},
	} {
		log := Heard{}
		for i, record := range strings.Split(c.records, "; ") {
			words := strings.Fields(record)
			e := Event{Kind: Kind(words[0]), Time: time.Unix(int64(i+1), 0),
				Posts: []Post{{ID: manifest.PostID(words[1]), State: manifest.PostState(words[2])}}}
			for _, more := range words[3:] {
				e.CutOff = more == "cut_off"
				if !e.CutOff {
					e.Posts[0].Reason = manifest.Reason(more)
				}
			}
			log.Add(e)
		}
		note := Heard{}
		if id, at, has := strings.Cut(c.note, " "); has {
			note[manifest.PostID(id)] = HeardPost{State: manifest.StateDeleted, At: time.Unix(int64(at[0]-'0'), 0)}
		}
		note.Update(log)
		got := ""
		for id, h := range note {
			got = fmt.Sprintf("%s %s %d", id, h.State, h.At.Unix())
			for image := range h.Images {
				got = fmt.Sprintf("%s/%d %d", id, image, h.At.Unix())
			}
			if h.CutOff {
				got += " cut off"
			}
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.note, c.records, got, c.want)
		}
	}
}
