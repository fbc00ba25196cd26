package state

import (
	"encoding/json"
	"testing"

	"rehydrate/internal/testkit"
)

// TestOlderMassRemovalNoteIsRead: a workspace that waits since an older version, whose note is a number, can be read.
func TestOlderMassRemovalNoteIsRead(t *testing.T) {
	for text, want := range map[string]MassRemovalNote{"3": {Posts: 3},
		`{"posts":3,"share":0.1}`: {Posts: 3, Share: .1}} {
		var n MassRemovalNote
		testkit.OK(t, json.Unmarshal([]byte(text), &n))
		testkit.Same(t, text, want, n)
	}
}
