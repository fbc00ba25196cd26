package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// TestPurgeTrouble: what is noted of a post that never had an image goes as well.
func TestPurgeTrouble(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	posts[1] = unavailable(posts[1])
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitRetry)
	s.offline(exitDone, "--id", "few001")
	db, err := sql.Open("sqlite", filepath.Join(s.workspace, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM trouble WHERE id = 'few001') + (SELECT count(*) FROM post WHERE id = 'few001' AND subreddit <> '')").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows still tell of the post's address or place (%v)", n, err)
	}
}

// TestLiftIsForWhatWasThere: a statement lifts no request that is newer than it, also where the post had an older tombstone.
func TestLiftIsForWhatWasThere(t *testing.T) {
	t.Parallel()
	s := figSIMSite(t, 3)
	s.signed(s.grantPath(), policy.GrantNamespace, grantText(t, s.release, nil))
	s.granted().want(t, exitDone)
	began := time.Now()
	at := func(h int) { s.now = func() time.Time { return began.Add(time.Duration(h) * time.Hour) } }
	s.becomes(redditemu.Removed, fewPosts(3)[0])
	s.granted().want(t, exitDone)
	s.offline(exitDone, "--id", "few001")
	at(2)
	s.offline(exitDone, "--id", "few000,few001")
	at(3)
	rel, err := manifest.Open(s.release, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"v": 1, "type": "rehydrate-lift", "release": map[string]any{"name": rel.Name, "digest": rel.Digest},
		"ids": []string{"few000", "few001"}, "why": "moderators took it back", "asserted": began.Add(time.Hour).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	statement := filepath.Join(t.TempDir(), "lift.json")
	s.signed(statement, policy.LiftNamespace, string(b))
	s.do(nil, "tombstones", "lift", s.release, "--statement", statement, "-w", s.workspace).want(t, exitDone, "lifted: 0 tombstones")
	for _, id := range []manifest.PostID{"few000", "few001"} {
		if got := s.status(id); got != state.TombstoneHolds {
			t.Errorf("%s: a request of later lies below a tombstone that is %q", id, got)
		}
	}
}
