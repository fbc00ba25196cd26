package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
)

// TestKilledAtEveryStep ends each job at each step that changes the disk: once because the process is gone from there
// on, once because that step alone fails, as on a disk that is full for a moment. The same command then gives what an
// undisturbed one gives, to the byte, and nothing of what was removed is anywhere. Without REHYDRATE_TEST=full it
// takes some of the steps.
func TestKilledAtEveryStep(t *testing.T) {
	stride := testkit.Stride(29)
	if testing.Short() {
		stride = 97
	}
	ran := map[string]*world{"drop": newRan(t, "drop"), "flag": newRan(t, "flag")}
	for i, c := range []struct{ mode, job string }{
		{"drop", "run"}, {"drop", "recheck"}, {"drop", "purge"}, {"drop", "purge offline id=p01"},
		{"flag", "purge offline id=p01"},
		{"drop", "reread"}, {"drop", "split"}, {"drop", "split; work; merge"},
	} {
		for _, how := range []string{"die", "fault"} {
			t.Run(c.mode+" "+c.job+" "+how, func(t *testing.T) {
				t.Parallel()
				begin := func() *world { return changedFor(t, ran[c.mode], c.job) }
				undisturbed := begin().do(c.job).ok()
				want, last := undisturbed.checkSound(), 0
				for n := 1 + 5*i%stride; ; n += stride {
					w := begin()
					text := w.inspect().rows["p01"].Text
					w.do(fmt.Sprintf("%s %s=%d", c.job, how, n))
					reached := w.struck.Load()
					if how == "die" && reached && !errors.Is(w.err, errDead) {
						t.Errorf("killed at step %d, the job ended with %v", n, w.err)
					}
					w.do(c.job).ok()
					got := w.checkSound()
					testkit.Same(t, fmt.Sprintf("files after a disturbance at step %d", n), want.files, got.files)
					testkit.Same(t, "outcomes", want.outcomes, got.outcomes)
					testkit.Same(t, "rows of copies", want.copied, got.copied)
					if !want.imageOf("p01") {
						w.checkNowhere(text)
					}
					if t.Failed() || !reached {
						break
					}
					last = n
				}
				if last < 40 && !testing.Short() {
					t.Errorf("the job took %d steps", last)
				}
			})
		}
	}
}

// newRan is a world with a dataset.
func newRan(t testing.TB, mode string) *world {
	return newWorld(t, append(numbered(4), "g*2")...).do("policy " + mode + "; serve 1 p03; run").ok()
}

// changed is a copy of the world of newRan with a copy of its dataset and something to do for every phase of a job.
func changed(t testing.TB, ran *world) *world {
	w := ran.copied(t)
	return w.do("copy c; post moderator p01; image left g/1; names 40 p02; move 40 p02; engine B").ok()
}

// changedFor is changed for a job that is cut off. A split lets no row in. One whose image is refused while another is
// on its way, as of p02, only the merge has again, where the split was cut off in between: see TestBackOutcomes.
func changedFor(t testing.TB, ran *world, job string) *world {
	w := changed(t, ran)
	if job == "split" {
		w.do("names 2 p02; move 2 p02").ok()
	}
	return w
}

// TestKilledBeforeTheDataset: what a run decided that was killed before it wrote the dataset is no row that is there: a
// re-reading, which asks nobody, lets none in whose post was seen too long ago. Without REHYDRATE_TEST=full the run is
// killed at every fifth step.
func TestKilledBeforeTheDataset(t *testing.T) {
	decided, stride := 0, testkit.Stride(5)
	for n := 1; ; n += stride {
		w := newWorld(t, numbered(2)...).do(fmt.Sprintf("run die=%d", n))
		if !w.struck.Load() {
			break
		}
		files, err := filepath.Glob(filepath.Join(w.dir, "ws", "dataset", "data", "*.parquet"))
		testkit.OK(t, err)
		before := map[string]bool{}
		for _, name := range files {
			w.rowsOf(name, before)
		}
		w.do("clock 120h; reread")
		if w.err != nil { // nothing was loaded yet
			continue
		}
		s := w.checkSound()
		for row := range s.rows {
			if !before[row] {
				t.Errorf("killed at step %d: %s came in", n, row)
			}
		}
		if s.outcome("p00") == "failed/not_rechecked" {
			decided++
		}
		w.do("run").ok()
		testkit.Same(t, fmt.Sprint("rows once Reddit has answered, killed at step ", n), "p00 p01",
			namesOf(w.checkSound().rows))
	}
	if decided == 0 {
		t.Error("no step was between the outcomes and the dataset")
	}
}

// TestCardOfALostFile: while a file of the dataset is missing, no card says how many rows there are.
func TestCardOfALostFile(t *testing.T) {
	w := newWorld(t, append(numbered(3), "q1", "q2", "r1")...).do("run").ok()
	dir := filepath.Join(w.dir, "ws", state.DatasetDir)
	testkit.OK(t, os.Remove(filepath.Join(dir, dataset.FileName("train", 0, 1))))
	for _, job := range []string{"recheck", "post deleted q1; recheck"} {
		w.do(job)
		w.err = nil
		if _, err := os.Stat(filepath.Join(dir, "README.md")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("README.md after %s: %v", job, err)
		}
	}
	testkit.Same(t, "rows after a run", "p00 p01 p02 q2 r1", namesOf(w.do("run").ok().checkSound().rows))
}

// TestKilledWithOtherSettings: what a killed job wrote by other settings than those on the dataset's card is in no copy
// before a job has written all files by the same.
func TestKilledWithOtherSettings(t *testing.T) {
	w := newWorld(t, append(numbered(6), "q1", "r1")...).do("run; engine B").ok()
	renamed := false
	w.hook = func(step, name string) error {
		if renamed {
			return errDead
		}
		renamed = strings.HasSuffix(name, ".parquet") && step == "rename"
		return nil
	}
	w.do("run")
	w.hook = nil
	if !renamed {
		t.Fatal("no file was written")
	}
	w.do("post deleted p01; recheck").ok()
	w.do("copy parquet; copy folder folder")
	for i := range 6 {
		w.checkNotIn("copies", unique("B", i))
	}
	testkit.Same(t, "rows after a run", "p00 p02 p03 p04 p05 q1 r1", namesOf(w.do("run").ok().checkSound().rows))
}

// TestKilledBetweenTheFiles: a file of the dataset that a job had written when it was killed is on record. The next job
// counts its rows, describes the dataset as it is, and takes rows out of it.
func TestKilledBetweenTheFiles(t *testing.T) {
	ran := newWorld(t, append(numbered(6), "q1", "r1")...)
	ran.do("serve 503 p03 p04 p05; run; serve 3 p03; serve 4 p04; serve 5 p05").ok()
	testkit.Same(t, "rows before", "p00 p01 p02 q1 r1", namesOf(ran.checkSound().rows))
	for _, c := range []struct{ job, next, rows string }{
		{"run", "recheck", "p00 p01 p02 p03 p04 p05 q1 r1"},
		{"split; work; merge", "recheck", "p00 p01 p02 p03 p04 p05 q1 r1"},
		{"post deleted p00; recheck; run", "purge offline", "p01 p02 p03 p04 p05 q1 r1"},
		{"run", "post deleted p01; recheck", "p00 p02 p03 p04 p05 q1 r1"},
		{"run", "purge offline id=p00 id=p01", "p02 p03 p04 p05 q1 r1"},
	} {
		came := false
		for files := range 3 { // that have their names
			w, seen := ran.copied(t), 0
			job := c.job[strings.LastIndex(c.job, ";")+1:]
			w.do(strings.TrimSuffix(c.job, job))
			w.hook = func(step, name string) error {
				if seen == files {
					return errDead
				}
				if strings.HasSuffix(name, ".parquet") && step == "rename" {
					seen++
				}
				return nil
			}
			w.do(job)
			w.hook = nil
			lay := w.inspect().rows
			w.do(c.next).ok()
			s := w.checkSound()
			what := fmt.Sprintf("%s, killed after %d files; %s", c.job, files, c.next)
			maps.DeleteFunc(lay, func(row string, _ dataset.Row) bool { return !slices.Contains(strings.Fields(c.rows), row) })
			testkit.Same(t, "rows after "+what, namesOf(lay), namesOf(s.rows))
			came = came || s.rows["p05"].ID != ""
			w.checkLogged(s)
			w.do("run").ok()
			testkit.Same(t, "rows after a run after "+what, c.rows, namesOf(w.checkSound().rows))
		}
		testkit.Same(t, c.job+"; "+c.next+": a row of a file that was just written", true, came)
	}
}
