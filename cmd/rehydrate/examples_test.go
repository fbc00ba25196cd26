package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rehydrate/internal/testkit/duckdb"
	"rehydrate/manifest"
)

// TestExamples rehearses each release of releases/examples, over made-up rows in the shape of a dataset that people
// know: every row has an outcome, and the Parquet has every column that the release names, as DuckDB reads it.
func TestExamples(t *testing.T) {
	examples, err := filepath.Abs("../../releases/examples")
	check(t, err)
	for name, want := range map[string]struct {
		posts   int
		columns string // beside those that every dataset has
		first   string // the row of the lowest id
	}{
		"memecap": {4, "category BIGINT, img_captions VARCHAR[], meme_captions VARCHAR[], metaphors VARCHAR",
			`{"id":"1exa00","category":0,"img_captions":["a made-up picture of a box"],"meme_captions":["made-up meaning 0, first writer"],` +
				`"metaphors":"[{\"metaphor\":\"a box\",\"meaning\":\"an example\"}]"}`},
		"redcaps": {6, "caption VARCHAR, score BIGINT, created_utc TIMESTAMP WITH TIME ZONE",
			`{"id":"1exa0a","caption":"made-up caption 0","score":3,"created_utc":"2017-01-01 00:00:00+00"}`},
		"captions": {4, "caption VARCHAR", `{"id":"1exa14","caption":"made-up caption; it holds a semicolon, 0"}`},
		"fakeddit": {7,
			"two_way_label BIGINT, six_way_label BIGINT, score BIGINT, num_comments BIGINT, upvote_ratio DOUBLE, hasImage BOOLEAN, " +
				"created_utc TIMESTAMP WITH TIME ZONE",
			`{"id":"1exa18","two_way_label":0,"six_way_label":0,"score":0,"num_comments":0,"upvote_ratio":0.9,` +
				`"hasImage":true,"created_utc":"2019-09-02 14:48:12+00"}`},
		"psbattles": {3, "filesize BIGINT, score BIGINT, given_width BIGINT",
			`{"id":"1exa1f","filesize":123456,"score":20,"given_width":640}`},
		"dreaddit": {3, "label BIGINT[], sentence BIGINT[], confidence DOUBLE[]",
			`{"id":"1exa22","label":[0,1],"sentence":[33000,33003],"confidence":[0.8,0.5]}`},
		"goemotions": {2,
			"comment VARCHAR[], rater BIGINT[], admiration BOOLEAN[], amusement BOOLEAN[], anger BOOLEAN[], neutral BOOLEAN[]",
			`{"id":"2exb0","comment":["eexa0","eexa0","eexa1"],"rater":[0,1,2],"admiration":[true,false,false],"amusement":[true,true,false],` +
				`"anger":[false,false,true],"neutral":[false,false,false]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := filepath.Join(examples, name)
			s := newSite(t, "", quick(""))
			s.do(s.env(), "demo", "--release", release, "-w", s.workspace, "--ocr", s.reader).want(t, exitDone)
			kept := 0
			outcomes := s.outcomes()
			for _, o := range outcomes {
				if o.Outcome == manifest.Kept {
					kept++
				}
			}
			if len(outcomes) != want.posts || kept == 0 {
				t.Errorf("%d rows have an outcome, want %d: %v", len(outcomes), want.posts, outcomes)
			}
			files := duckdb.Quote(filepath.Join(s.workspace, "dataset", "data", "*.parquet"))
			var rows []struct{ Columns, First string }
			duckdb.Query(t, &rows, fmt.Sprintf(`SELECT
				(SELECT string_agg(column_name || ' ' || column_type, ', ') FROM (DESCRIBE SELECT * EXCLUDE (id, image, ocr_text, ocr_confidence, width, height, sha256, phash) FROM %[1]s)) AS Columns,
				(SELECT CAST(to_json(r) AS VARCHAR) FROM (SELECT * EXCLUDE (image, ocr_text, ocr_confidence, width, height, sha256, phash) FROM %[1]s ORDER BY id LIMIT 1) r) AS First`, files))
			if len(rows) != 1 {
				t.Fatalf("DuckDB gave %v", rows)
			}
			if diff := cmp.Diff([]string{want.columns, want.first}, []string{rows[0].Columns, rows[0].First}); diff != "" {
				t.Errorf("the dataset (-want +got):\n%s", diff)
			}
		})
	}
}
