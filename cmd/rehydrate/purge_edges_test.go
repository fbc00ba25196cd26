package main

import (
	"database/sql"
	"path/filepath"
	"testing"
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
