package pipeline

import (
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestAsksMore: what a list that was kept elsewhere says of a post, beside what the workspace has.
func TestAsksMore(t *testing.T) {
	stone := func(s manifest.PostState, reason manifest.Reason, hours int) workspace.Tombstone {
		at := time.Date(2026, 1, 10, 12+hours, 0, 0, 0, time.UTC)
		return workspace.Tombstone{Tombstone: manifest.Tombstone{ID: "p00", State: s, Time: at}, Reason: reason}
	}
	const removed, deleted, unavailable = manifest.StateRemoved, manifest.StateDeleted, manifest.StateUnavailable
	for _, c := range []struct {
		name           string
		has            workspace.Tombstone
		listed         workspace.Tombstone
		holds, settled bool // it is new beside one that holds; it is not, beside one that was suspended
	}{
		{"the same", stone(removed, "moderator", 0), stone(removed, "moderator", 0), false, true},
		{"the same, without a reason", stone(removed, "moderator", 0), stone(removed, "", 0), false, true},
		{"a later one", stone(removed, "moderator", 0), stone(removed, "moderator", 1), true, false},
		{"an earlier one", stone(removed, "moderator", 1), stone(removed, "moderator", 0), false, true},
		{"another one without a reason", stone(removed, "moderator", 1), stone(removed, "", 0), true, false},
		{"a request", stone(removed, "moderator", 0), stone(removed, "takedown", 1), true, false},
		{"a request in the same second", stone(removed, "moderator", 0), stone(removed, "takedown", 0), true, false},
		{"a request after a spam filter", stone(removed, "spam_filter", 0), stone(removed, "takedown", 1), true, false},
		{"a moderator after a request", stone(removed, "takedown", 0), stone(removed, "moderator", 1), false, true},
		{"a moderator after a release", stone(removed, "", 0), stone(removed, "moderator", 1), false, true},
		{"a spam filter after a moderator", stone(removed, "moderator", 0), stone(removed, "spam_filter", 1), true, false},
		{"its author", stone(removed, "moderator", 0), stone(deleted, "author", 1), true, false},
		{"its author, of a crosspost", stone(removed, "moderator", 0),
			stone(deleted, policy.CrosspostAuthor, 1), true, false},
		{"its author, of a crosspost after a request", stone(removed, "takedown", 0),
			stone(deleted, policy.CrosspostAuthor, 1), false, true},
		{"a crosspost by hearsay", stone(deleted, policy.CrosspostAuthor, 0), stone(deleted, "author", 1), false, true},
		{"a request after its author, of a crosspost", stone(deleted, policy.CrosspostAuthor, 0),
			stone(removed, "takedown", 1), true, false},
		{"a moderator after its author, of a crosspost", stone(deleted, policy.CrosspostAuthor, 0),
			stone(removed, "moderator", 1), false, true},
		{"a request after no answer", stone(unavailable, "", 0), stone(removed, "takedown", 1), true, false},
	} {
		testkit.Same(t, c.name, c.holds, asksMore(c.has, c.listed))
		was := state.TombstoneEntry{ID: "p00", State: c.has.State, Time: c.has.Time, Reason: c.has.Reason,
			Status: state.TombstoneSuspended}
		testkit.Same(t, c.name+", after it came back", c.settled, settles(was, c.listed))
		was.Status, was.Lifted = state.TombstoneLifted, &state.LiftNote{}
		lifts := map[policy.NamedTombstone]bool{policy.NameTombstone(was.ID, was.Time): true}
		testkit.Same(t, c.name+", after a lift", c.listed.Time.Equal(c.has.Time), isLifted(lifts, c.listed))
		was.Lifted.Refused = "the statement does not name this tombstone"
		testkit.Same(t, c.name+", after a void lift", false, isLifted(nil, c.listed) || settles(was, c.listed))
	}
}
