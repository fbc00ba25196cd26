package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestEachJobDoesItsLineOfTheTable does each job in a workspace where there is something to do for every phase: a post
// is gone, one has another place, one row is a duplicate of what is gone, one is new, and another engine reads.
func TestEachJobDoesItsLineOfTheTable(t *testing.T) {
	const all = "p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10"
	// p12 shows what p01 shows, and is its duplicate until that goes.
	ran := newWorld(t, numbered(13)...).do("policy drop; serve 1 p12; post unclear p11; run").ok()
	for _, c := range []struct {
		job                  string
		asks, fetches, reads bool
		rows                 string // of the dataset afterwards; "" for those before
		engine               string // whose texts the dataset has
		erased               bool   // p01, which is gone
	}{
		{job: "run", asks: true, fetches: true, reads: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10 p11 p12",
			engine: "B", erased: true},
		{job: "split; work; merge", asks: true, fetches: false, reads: false,
			rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10 p11 p12", engine: "B", erased: true},
		{job: "reread", reads: true, rows: all, engine: "B"},
		{job: "split", asks: true, fetches: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A",
			erased: true},
		{job: "recheck", asks: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A", erased: true},
		{job: "purge", asks: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A", erased: true},
		{job: "purge offline", rows: all, engine: "A"},
		{job: "purge offline id=p01", rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A", erased: true},
		{job: "run denied", rows: all, engine: "A"},
		{job: "run blocked=1", asks: false, rows: all, engine: "A"},
		{job: "run stop=1", asks: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A"},
		{job: "recheck denied", asks: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A", erased: true},
		{job: "recheck stop=1", asks: true, rows: "p00 p02 p03 p04 p05 p06 p07 p08 p09 p10", engine: "A"},
	} {
		t.Run(c.job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("post live p11; post moderator p01; move 40 p02; engine B")
			before := w.inspect()
			testkit.Same(t, "rows before", all, namesOf(before.rows))
			w.do(c.job)
			after := w.checkSound()
			testkit.Same(t, "asked", c.asks, len(w.reddit.asked) > 0)
			testkit.Same(t, "fetched", c.fetches, len(w.reddit.fetched) > 0)
			testkit.Same(t, "read", c.reads, len(w.ocr.reads) > 0)
			testkit.Same(t, "rows", c.rows, namesOf(after.rows))
			testkit.Same(t, "erased", c.erased, !after.imageOf("p01"))
			if text := after.rows["p05"].Text; !strings.Contains(text, unique(c.engine, 5)) {
				t.Errorf("the text of p05 is %q, want that of %s", text, c.engine)
			}
			if c.engine == "A" {
				w.checkSameBytes(before, after)
			}
		})
	}
}

// TestOnlyJobsThatLetRowsInNeedAccess holds what a job needs: run, split, merge and re-reading access, the others
// nothing.
func TestOnlyJobsThatLetRowsInNeedAccess(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; split; work").ok()
	for job, want := range map[string]error{"run": errAccess, "split": errAccess, "merge": errAccess, "reread": errAccess,
		"recheck": nil, "purge": nil, "purge offline": nil} {
		w.do(job + " denied")
		if !errors.Is(w.err, want) {
			t.Errorf("%s without access: error %v, want %v", job, w.err, want)
		}
	}
	// What never was loaded is a usage error of what only takes out.
	for _, job := range []string{"recheck", "purge", "purge offline"} {
		if w := newWorld(t, "a").do(job); !errors.Is(w.err, workspace.ErrNoWorkspace) {
			t.Errorf("%s of nothing: error %v", job, w.err)
		}
	}
}

// TestNothingIsWrittenWhenAccessEnds: when access ends while posts are asked about, what is gone has gone, and nothing
// is written.
func TestNothingIsWrittenWhenAccessEnds(t *testing.T) {
	w := newWorld(t, numbered(12)...).do("run; post deleted p03; move 50 p04").ok()
	before := w.inspect()
	c := w.config()
	access := errors.New("ended")
	asked := false
	w.reddit.before = func(call string) error { asked = asked || call == "ask"; return nil }
	w.err = w.inWorkspace(t.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
		c.Workspace, c.Stop = ws, nil
		c.Access = func(time.Time) error {
			if asked {
				return access
			}
			return nil
		}
		_, err := Run(ctx, c)
		return err
	})
	after := w.checkSound()
	if !errors.Is(w.err, access) || after.imageOf("p03") || len(after.rows) != 11 {
		t.Errorf("error %v, an image of p03: %v, rows %s", w.err, after.imageOf("p03"), namesOf(after.rows))
	}
	w.checkSameBytes(before, after)
}

// TestAgeTakesNoRowOutAndLetsNoneIn: no job takes a row out for its age, and only a run or a merge, which ask again,
// lets rows in.
func TestAgeTakesNoRowOutAndLetsNoneIn(t *testing.T) {
	ran := newWorld(t, numbered(5)...).do("post unclear p04; run; post live p04").ok()
	for _, job := range []string{"reread all", "purge offline", "run blocked=1", "run stop=1", "recheck blocked=1",
		"reread"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("clock 100h; " + job)
			testkit.Same(t, "rows", "p00 p01 p02 p03", namesOf(w.checkSound().rows))
			w.do("stones deleted p03; " + job)
			testkit.Same(t, "rows beside a new tombstone", "p00 p01 p02", namesOf(w.checkSound().rows))
			w.stones = nil
			w.do("run").ok()
			testkit.Same(t, "rows after a run", "p00 p01 p02 p04", namesOf(w.checkSound().rows))
		})
	}
}

// TestNoDatasetIsMade: what cannot finish a run makes no dataset.
func TestNoDatasetIsMade(t *testing.T) {
	for _, job := range []string{"run blocked=1", "run stop=1", "run unwritable=outcomes.csv; run blocked=1", "split",
		"split; recheck", "split; purge", "split; purge offline id=p01"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t, numbered(4)...).do(job).inspect()
			if len(s.files) > 0 || s.outcomes != nil {
				t.Errorf("there are %v, and outcomes %v", s.files, s.outcomes)
			}
		})
	}
}

// TestTombstonesWithoutADataset: tombstones.csv has what was removed before there was a dataset.
func TestTombstonesWithoutADataset(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("split; purge offline id=p01").ok()
	text, err := os.ReadFile(filepath.Join(w.dir, "ws", manifest.TombstonesName))
	testkit.OK(t, err)
	if !strings.Contains(string(text), "\np01,removed,") {
		t.Errorf("it has\n%s", text)
	}
}

// TestAbsentTwiceIsGoneWithoutATombstone: a post that two answers leave out is gone without a tombstone, and is fetched
// again when it is back.
func TestAbsentTwiceIsGoneWithoutATombstone(t *testing.T) {
	w := newWorld(t, numbered(12)...).do("run; post absent p03; recheck").ok()
	s := w.checkSound()
	testkit.Same(t, "outcome", "unavailable/subreddit_open", s.outcome("p03"))
	testkit.Same(t, "an image", false, s.imageOf("p03"))
	if w.do("post live p03; run").ok(); w.checkSound().outcome("p03") != "kept/" {
		t.Errorf("a post that is back: %s", w.inspect().outcome("p03"))
	}
}

// TestRowLeavesWithItsManifestLine: what left the manifest leaves the dataset with the job that loads it, whatever
// becomes of that.
func TestRowLeavesWithItsManifestLine(t *testing.T) {
	ran := newWorld(t, numbered(6)...).do("run").ok()
	for _, job := range []string{"run", "run blocked=1", "run stop=1", "split", "reread"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("copy c; manifest 5; " + job)
			s := w.checkSound()
			testkit.Same(t, "rows", "p00 p01 p02 p03 p04", namesOf(s.rows))
			testkit.Same(t, "images", 5, len(s.images))
		})
	}
	w := ran.copied(t).do("manifest 2; run")
	var loss *LossError
	if !errors.As(w.err, &loss) || len(w.checkSound().rows) != 6 {
		t.Errorf("a manifest without most posts: %v", w.err)
	}
	for _, job := range []string{"recheck", "purge"} { // they leave it to the next run
		w.do(job).ok()
		testkit.Same(t, "rows after "+job, 6, len(w.checkSound().rows))
	}
}

// TestStoppedAndRefusedJobsSaySo: the errors of a job that is stopped or refused say so.
func TestStoppedAndRefusedJobsSaySo(t *testing.T) {
	for _, job := range []string{"run", "recheck", "purge", "split"} {
		w := newWorld(t, numbered(3)...).do("run; " + job + " stop=1")
		if !errors.Is(w.err, state.ErrInterrupted) {
			t.Errorf("%s, stopped: %v", job, w.err)
		}
		w.do(job + " blocked=1")
		if _, ok := errors.AsType[*reddit.Denied](w.err); !ok {
			t.Errorf("%s, refused: %v", job, w.err)
		}
	}
}

// TestManyRowsLeaveOnlyWhenConfirmed: when many rows would leave for anything but a removal, they stay until that is
// confirmed, and removals go.
func TestManyRowsLeaveOnlyWhenConfirmed(t *testing.T) {
	ran := newWorld(t, numbered(10)...).do("run").ok()
	for _, job := range []string{"run", "recheck", "purge", "split"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("post quarantined p01 p02 p03; post deleted p04; " + job).ok()
			s := w.checkSound()
			testkit.Same(t, "rows", "p00 p01 p02 p03 p05 p06 p07 p08 p09", namesOf(s.rows))
			testkit.Same(t, "outcome", "kept/", s.outcome("p01"))
			testkit.Same(t, "rows that stay, by the status",
				[]state.Count{{Outcome: manifest.Refused, Reason: "quarantine", Entries: 3}}, s.status.Stay)
			w.do(job + " confirm").ok()
			s = w.checkSound()
			testkit.Same(t, "rows when it is confirmed", "p00 p05 p06 p07 p08 p09", namesOf(s.rows))
			testkit.Same(t, "an image", true, s.imageOf("p01"))
			w.do("post live p01 p02 p03; run").ok()
			testkit.Same(t, "rows when they are back", "p00 p01 p02 p03 p05 p06 p07 p08 p09", namesOf(w.checkSound().rows))
		})
	}
}

// TestTakingOutIgnoresTheFilterMode: what only takes out does so whatever the filter does with texts in another
// language.
func TestTakingOutIgnoresTheFilterMode(t *testing.T) {
	w := newWorld(t, numbered(6)...).do("serve 1 p02; policy flag; run; policy drop").ok()
	before := w.inspect()
	testkit.Same(t, "rows", 6, len(before.rows))
	for _, job := range []string{"recheck", "purge", "purge offline"} {
		w.do(job).ok()
		after := w.checkSound()
		testkit.Same(t, "rows after "+job, namesOf(before.rows), namesOf(after.rows))
		testkit.Same(t, "files after "+job, before.files, after.files)
	}
}

// TestTextsOfAnInterruptedRereadingAreInNoDataset: what an interrupted re-reading read is in no dataset that others
// make.
func TestTextsOfAnInterruptedRereadingAreInNoDataset(t *testing.T) {
	w := newWorld(t, numbered(6)...).do("run; engine B").ok()
	before := w.inspect()
	w.do("reread unwritable=" + manifest.OutcomesName)
	if !errors.Is(w.err, errFault) || !slices.Contains(w.ocr.reads, 3) {
		t.Fatalf("the re-reading: %v, it read %v", w.err, w.ocr.reads)
	}
	w.do("post deleted p01; recheck").ok()
	after := w.checkSound()
	testkit.Same(t, "rows", 5, len(after.rows))
	w.checkSameBytes(before, after)
	w.do("copy parquet; copy folder folder").ok()
	w.checkNotIn("copies", unique("B", 2))
	w.do("reread").ok()
	testkit.Same(t, "changed texts", 5, w.reread.Changed)
	if text := w.inspect().rows["p02"].Text; !strings.Contains(text, unique("B", 2)) {
		t.Errorf("text %q", text)
	}
}

// TestTextOfARemovedPostIsNowhere: what was read off the image of a post that is removed is nowhere afterwards, by
// whatever job.
func TestTextOfARemovedPostIsNowhere(t *testing.T) {
	ran := newWorld(t, numbered(6)...).do("run").ok()
	for _, job := range []string{"run", "recheck", "purge", "split", "run blocked=1; recheck"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("copy c").ok()
			text := w.checkSound().rows["p01"].Text
			if len(text) < 5 {
				t.Fatalf("the text of p01 is %q", text)
			}
			w.do("post deleted p01; " + job)
			w.checkSound()
			w.checkNowhere(text)
		})
	}
}
