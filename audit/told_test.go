package audit

import (
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
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
