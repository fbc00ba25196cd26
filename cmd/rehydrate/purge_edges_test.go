package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rehydrate/manifest"
	"rehydrate/pipeline"
	"rehydrate/pipeline/redditemu"
	"rehydrate/pipeline/state"
	"rehydrate/policy"
)

// shardOf is the only Parquet of a split, below a dataset folder.
func shardOf(split string) string {
	return filepath.Join("data", split+"-00000-of-00001.parquet")
}

// TestPurgeAfterManifest: rows leave the dataset also when no entry of the manifest that made it is left.
func TestPurgeAfterManifest(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts[:3]), fastPolicy, posts...)
	s.run(exitDone)
	text := readText(t, s, "few000")
	s.write(filepath.Join(s.release, "annotations.csv"), fewAnnotations(posts[3:]))
	s.offline(exitDone, "--confirm-removals", "--id", "few000")
	if rows := s.rows(); len(rows) != 0 {
		t.Errorf("rows %v are still in the dataset, and none is in the manifest", rows)
	}
	s.grep(text, "the text of a purged post")
}

// TestPurgeForGood: a request can't take a reason for which a policy lets posts come back.
func TestPurgeForGood(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), quick("readmit = \"moderator\""), posts...)
	s.run(exitDone)
	for _, reason := range []string{"moderator", "automod_filtered"} {
		s.do(nil, "purge", s.release, "-w", s.workspace, "--offline", "--id", "few001", "--reason", reason).want(t, exitUsage, "--reason")
	}
	s.offline(exitDone, "--id", "few001", "--reason", "legal")
	s.run(exitDone)
	if rows := s.rows(); slices.Contains(rows, "few001") || len(rows) != 2 {
		t.Errorf("rows %v after a run that saw the post live, want the two others", rows)
	}
}

// TestPurgeUnknownID: a request for a post that the release does not have is told, for it may be misspelt.
func TestPurgeUnknownID(t *testing.T) {
	t.Parallel()
	posts := fewPosts(3)
	s := newSite(t, fewAnnotations(posts), fastPolicy, posts...)
	s.run(exitDone)
	s.do(nil, "purge", s.release, "-w", s.workspace, "--offline", "--id", "few00l,few001").want(t, exitDone, "few00l", "not in the release")
	if got := s.status("few00l"); got != state.TombstoneHolds {
		t.Errorf("the tombstone of a post outside the manifest is %q, want it to hold", got)
	}
}

// TestPurgeKeepsTwin: a row that is not exported for its age takes no row out of the dataset that is near to it, and does not
// stand in the way of one that may take the place of a row that went.
func TestPurgeKeepsTwin(t *testing.T) {
	t.Parallel()
	s, posts := twinSite(t)
	// Nobody can tell what became of the first twin; the second is in the dataset instead.
	s.update(posts[0].ID, func(p *redditemu.Post) {
		p.Raw = json.RawMessage(`{"kind":"t3","data":{"id":"few000","name":"t3_few000"}}`)
	})
	s.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	s.run(exitRetry)
	if rows := s.rows(); slices.Contains(rows, "few000") || !slices.Contains(rows, "few001") {
		t.Fatalf("rows %v before the purge, want the second twin and not the first", rows)
	}
	s.offline(exitDone, "--id", "few005")
	if rows := s.rows(); len(rows) != 3 || !slices.Contains(rows, "few001") {
		t.Errorf("rows %v after the purge of another post, want few001 among them", rows)
	}
	report := s.offline(exitDone, "--id", "few001")
	if rows := s.rows(); len(rows) != 3 || !slices.Contains(rows, "few002") {
		t.Errorf("rows %v after the purge of the second twin, want the third in its place", rows)
	}
	if want := (pipeline.Successor{Gone: "few001", ID: "few002", Stored: true}); len(report.Successors) != 1 || report.Successors[0] != want {
		t.Errorf("successors %v, want %v", report.Successors, want)
	}
}

// TestPurgeForeignFile: what somebody put into the dataset's folder brings no row into the dataset, and a row in it that must go is
// not passed over.
func TestPurgeForeignFile(t *testing.T) {
	t.Parallel()
	posts := fewPosts(6)
	s := newSite(t, fewAnnotations(posts), quick("mass_removal_share = 1.0"), posts...)
	s.run(exitDone)
	dataset := filepath.Join(s.workspace, "dataset")
	foreign := filepath.Join(dataset, "mine.parquet")
	whole := read(t, filepath.Join(dataset, shardOf("train"))) // few000 and few003
	s.update(posts[3].ID, func(p *redditemu.Post) {
		p.Raw = json.RawMessage(`{"kind":"t3","data":{"id":"few003","name":"t3_few003"}}`)
	})
	s.now = func() time.Time { return time.Now().Add(49 * time.Hour) }
	s.run(exitRetry)
	s.write(foreign, whole)
	s.offline(exitDone, "--id", "few001")
	if rows := rowsOf(t, filepath.Join(dataset, "data")); rows["few003"] {
		t.Error("a row came into the dataset because a file of somebody's has it")
	}
	s.do(nil, "purge", s.release, "-w", s.workspace, "--offline", "--id", "few000").want(t, exitFailed, "mine.parquet", "few000")
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	s.offline(exitDone)
}

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
