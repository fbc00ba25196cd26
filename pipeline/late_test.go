package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/state"
)

// TestWhatGoesDuringARunIsNotWritten: a run asks about the posts of which it stored an image once more before it
// writes. Here something happens in between. Question 1 is that about all posts, the next ones are for images.
func TestWhatGoesDuringARunIsNotWritten(t *testing.T) {
	for _, c := range []struct {
		name  string
		posts int
		steps string
		rows  string
		gone  string // a post without an image afterwards
	}{
		{"a post is removed", 3, "run on=2/post,moderator,p01", "p00 p02", "p01"},
		{"two of thirty are no mass removal", 30, "manifest 4; run; manifest 30; run on=2/post,moderator,p10,p11", "",
			"p10"},
		{"an outage", 3, "run on=2/post,unclear,p00,p01,p02", "none", ""},
		{"the only post is not there: no other stands beside it", 1, "run on=2/post,absent,p00", "none", ""},
		{"one new post is not there, and the old ones stand beside it", 6,
			"manifest 5; run; manifest 6; run on=2/post,absent,p05",
			"p00 p01 p02 p03 p04", "p05"},
		{"stopped at the last question, then an outage", 3, "run stop=5 on=5/post,unclear,p00,p01,p02; run", "none",
			""},
		{"stopped at the last question, rows leave and none comes in", 8,
			"manifest 6; run; manifest 8; post moderator p00; run stop=4",
			"p01 p02 p03 p04 p05", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, numbered(c.posts)...).do(c.steps)
			if w.err != nil && !errors.Is(w.err, state.ErrInterrupted) {
				t.Fatal(w.err)
			}
			s := w.checkSound()
			rows := namesOf(s.rows)
			if rows == "" {
				rows = "none"
			}
			if c.rows != "" {
				testkit.Same(t, "rows", c.rows, rows)
			}
			if c.gone != "" && (s.imageOf(c.gone) || s.rows[c.gone].ID != "") {
				t.Errorf("%s has an image or a row", c.gone)
			}
			testkit.Same(t, "a mass removal", false, s.status.MassRemoval)
		})
	}
}

// TestLastQuestionIsOnlyAboutNewImages: a run that stored no image asks nothing a second time.
func TestLastQuestionIsOnlyAboutNewImages(t *testing.T) {
	w := newWorld(t, numbered(3)...).do("run").ok()
	testkit.Same(t, "questions of a first run", state.Looks{Resolve: 1, Last: 1}, *w.summary.Looks)
	w.do("run").ok()
	testkit.Same(t, "questions of a second one", state.Looks{Resolve: 1, Last: 0}, *w.summary.Looks)
}

// TestForeignFileWithARemovedRowGoes: a file that stands where one of the dataset's would, and is not the one that was
// written, is removed with the first job that finds a row in it which must go; the next run writes it again.
func TestForeignFileWithARemovedRowGoes(t *testing.T) {
	for _, job := range []string{"purge offline id=ROW", "stones removed ROW; recheck", "post deleted ROW; purge"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "bb", "c", "dd", "e", "ff").do("run").ok()
			files, err := filepath.Glob(filepath.Join(w.dir, "ws", "dataset", "data", "*.parquet"))
			testkit.OK(t, err)
			if len(files) != 2 {
				t.Fatalf("the dataset has %v, want a file of each split", files)
			}
			before := map[string]bool{}
			w.rowsOf(files[1], before)
			body, err := os.ReadFile(files[1])
			testkit.OK(t, err, os.WriteFile(files[0], body, 0o600))
			w.do(strings.ReplaceAll(job, "ROW", strings.Fields(namesOf(before))[0])).ok()
			if _, err := os.Stat(files[0]); err == nil {
				t.Errorf("%s is still there", files[0])
			}
			w.checkSound()
			w.do("run").ok()
			testkit.Same(t, "rows after a run", 5, len(w.checkSound().rows))
		})
	}
}
