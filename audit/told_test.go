package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/policy"
)

// TestTold: what became of a post is known by an answer that says so, and by none that Reddit failed to give.
func TestTold(t *testing.T) {
	live := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name  string
		state manifest.PostState
		live  *time.Time
		told  bool
	}{
		{"never asked", "", nil, false},
		{"asked in an outage, or absent once", manifest.StateUnknown, nil, false},
		{"live, and absent once since", manifest.StateUnknown, &live, true},
		{"live", manifest.StateLive, &live, true},
		{"gone before it was ever live here", manifest.StateDeleted, nil, true},
		{"held", manifest.StateHeld, nil, true},
	} {
		e := evidence{AuditedPost: AuditedPost{Standing: Standing{State: c.state}, LastLive: c.live}}
		testkit.Same(t, c.name, c.told, e.told())
	}
}

// TestOldAnswers: of a post that stands in a file, and in no row of the workspace, an answer of Reddit is not good for
// ever; files that no post of the release is in do not ask for it.
func TestOldAnswers(t *testing.T) {
	for _, c := range []struct {
		name, rows string
		age        time.Duration
		want       Verdict
	}{
		{"fresh", "id,tone\n" + live1 + ",1\n", time.Hour, Pass},
		{"old", "id,tone\n" + live1 + ",1\n", policy.Default().Reddit.RecheckWithin + time.Hour, Overdue},
		{"old, and not in the file", "word,tone\nlight,1\n", policy.Default().Reddit.RecheckWithin + time.Hour, Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, false, false)
			file := filepath.Join(t.TempDir(), "found.csv")
			testkit.OK(t, os.WriteFile(file, []byte(c.rows), 0o600))
			now := w.config.Now().Add(c.age)
			w.config.Now = func() time.Time { return now }
			r := w.audit(t, w.ws, file)
			if r.Verdict != c.want {
				t.Errorf("%s, want %s; open %+v, duties %+v", r.Verdict, c.want, r.Open, r.Duties)
			}
		})
	}
}
