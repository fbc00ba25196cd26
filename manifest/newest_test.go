package manifest

import (
	"strings"
	"testing"
	"time"
)

// TestTooNew: ids of comments from 2007 on are above those of posts, whatever the day.
func TestTooNew(t *testing.T) {
	day := func(year int) time.Time { return time.Date(year, time.November, 24, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		id   PostID
		day  time.Time
		want bool
	}{
		{"5734", time.Time{}, false}, {"zzzzzz", time.Time{}, false}, {"1tp51gf", time.Time{}, false},
		{"bzzzzzz", time.Time{}, false}, {"c000000", time.Time{}, true},
		{"eebbqej", time.Time{}, true}, {"1y2p0ij32e8e7", time.Time{}, true}, {"zzzzzzzzzzzzz", time.Time{}, true},
		{"1tp51gf", day(2026), false}, {"2r82c1s", day(2026), false}, {"3zzzzzz", day(2026), true},
		{"eebbqej", day(2026), true},
		{"3zzzzzz", day(2030), false}, {"eebbqej", day(2036), true}, {"c0299an", day(2043), true}, // a comment of 2007
		{"1tp51gf", day(1970), false}, {"9zzzzzz", day(1970), false}, {"eebbqej", day(1970), true}, // a wrong clock
		{"zzzzzzzzzzzzz", day(9999), true},
	} {
		if got := c.id.TooNew(c.day); got != c.want {
			t.Errorf("%s on %v: %v, want %v", c.id, c.day, got, c.want)
		}
	}
}

// TestCommentsInManifest: a manifest with ids that only comments have is refused at each of them, whatever the file.
func TestCommentsInManifest(t *testing.T) {
	const labels = ",train,F1,SS1,SR1,M1,C1\n"
	_, err := checked(t, "a.csv", figsimHeader+"eebbqej"+labels+"abc"+labels+"t3_eebbqek"+labels+"/r/x/comments/abd/t/eebbqel/"+labels)
	wantPlaces(t, "comments", err,
		`a.csv:2:1 "eebbqej" is not the id of a post: none has so high an id yet, and comments do`,
		`a.csv:4:1 "t3_eebbqek" is not the id of a post`,
		`a.csv:5:1 "/r/x/comments/abd/t/eebbqel/" is the permalink of a comment`)
	path := file(t, "b.csv", figsimHeader+"3zzzzzz"+labels)
	for year, want := range map[int]bool{2026: false, 2030: true} {
		r, err := Open(path, Options{Today: time.Date(year, time.December, 1, 0, 0, 0, 0, time.UTC)})
		if err == nil {
			_, err = r.Check(t.Context())
		}
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "set the date of this machine") {
			t.Errorf("an id of 2030 in %d: %v", year, err)
		}
	}
}
