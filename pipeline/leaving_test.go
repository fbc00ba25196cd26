package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
)

// TestRemovalsOutliveTheirEntries: what is known of removals of posts that the next edition of a release leaves out is
// settled before, whoever knows it. Another post does not show the picture, and a later edition does not bring it back.
func TestRemovalsOutliveTheirEntries(t *testing.T) {
	ran := newWorld(t, append(numbered(20), "g*2", "x")...)
	ran.do("serve 1 p05; run").ok()
	for _, c := range []struct{ steps, stone string }{
		{"audit p01 p03; post deleted p01 p03; without p01 p03; run", "p01"},
		{"audit p01 p03; post deleted p01 p03; without p01 p03; reread", "p01"},
		{"audit p01 p03; post deleted p01 p03; without p01 p03; split; work; merge", "p01"},
		{"audit p01 p03; post deleted p01 p03; without p01 p03; purge offline", "p01"},
		{"post deleted p01 p03; recheck; without p01 p03; run", "p01"},
		{"post deleted p01 p03 p07; recheck; without p01 p03; run confirm", "p01"},
		{"stones deleted p01 p03; without p01 p03; run; post deleted p01 p03", "p01"},
		{"post deleted p01 p03 p07; recheck; stones deleted p01 p03; without p01 p03; run", "p01"},
		{"audit p01 p03 p07; stones deleted p01 p03 p07; post deleted p01 p03 p07; without p01 p03; run", "p01"},
		{"audit left:g/1; image left g/1; without g/1; run", ""},
		{"audit left:g/1; image left g/1; without g/1; reread", ""},
		{"audit p01 p03; post deleted p01 p03; end; without p01 p03; run", "p01"},
		{"audit left:g/1; image left g/1; end; without g/1; run", ""},
		{"audit p01 p03 p07; post deleted p01 p03 p07; end; without p01 p03; run", "p01"},
		{"post deleted p01 p03 p07; recheck; end; without p01 p03; run", "p01"},
	} {
		w := ran.copied(t).do(c.steps).ok()
		s := w.checkSound()
		testkit.Same(t, c.steps+": an image of another post", c.stone == "", s.imageOf("p05"))
		w.do("run").ok()
		w.do("post live p01 p03; image shown g/1; without; run").ok()
		s = w.checkSound()
		for _, row := range []string{"p01", "p03"} {
			testkit.Same(t, c.steps+": comes back: "+row, c.stone == "", s.imageOf(row))
		}
		testkit.Same(t, c.steps+": comes back: g/1", c.stone != "", s.imageOf("g/1"))
	}
}

// TestHeldBackPostsKeepTheirEntries: an edition that leaves out posts whose removal waits for a confirmation is not
// loaded before.
func TestHeldBackPostsKeepTheirEntries(t *testing.T) {
	ran := newWorld(t, numbered(20)...)
	ran.do("serve 1 p05; run; post deleted p01 p03 p07; recheck").ok()
	w := ran.copied(t).do("without p01 p03; run confirm").ok()
	var removed []string
	for _, p := range w.summary.Removed {
		removed = append(removed, string(p.ID))
	}
	testkit.Same(t, "removed", "p05 p07 p01 p03", strings.Join(removed, " "))
	testkit.Same(t, "left the manifest", 0, w.summary.LeftManifest)
	for _, job := range []string{"run", "reread", "split"} {
		w := ran.copied(t).do("without p01 p03; " + job)
		waits, ok := errors.AsType[*WaitingError](w.err)
		if !ok || waits.Posts != 2 {
			t.Fatalf("%s: %v", job, w.err)
		}
		testkit.Same(t, job+": images", 20, len(w.imagesOf()))
		w.do("recheck; recheck confirm; " + job).ok()
		testkit.Same(t, job+": images then", 16, len(w.imagesOf()))
	}
	w = ran.copied(t).do("post live p01 p03 p07; recheck; without p01 p03; run").ok()
	testkit.Same(t, "live again", 18, len(w.checkSound().rows))
	// Nothing would be forgotten of posts that are only unavailable.
	w = ran.copied(t).do("post live p01 p03 p07; recheck; post absent p01 p03 p07; recheck").ok()
	testkit.Same(t, "posts that wait", 3, w.checkSound().status.Withheld)
	w.do("without p01 p03; run").ok()
	testkit.Same(t, "unavailable", true, w.checkSound().imageOf("p05"))
}

// TestRefusedEditionKeepsNoRow: where an edition waits for what a killed recheck found, what an audit heard goes all
// the same, with its row.
func TestRefusedEditionKeepsNoRow(t *testing.T) {
	ran, waited := newWorld(t, numbered(20)...), 0
	ran.do("run; post deleted p01").ok()
	for n := 1; ; n += 3 {
		w := ran.copied(t).do(fmt.Sprintf("copy c; recheck die=%d", n))
		if w.err == nil {
			break
		}
		w.do("audit p09; without p01; run")
		if _, waits := errors.AsType[*WaitingError](w.err); !waits {
			continue
		}
		waited++
		s := w.inspect()
		testkit.Same(t, fmt.Sprint("rows that went, killed at ", n), 18, len(s.rows))
		testkit.Same(t, fmt.Sprint("image, killed at ", n), false, s.imageOf("p09"))
		w.do("recheck; run").ok()
		testkit.Same(t, fmt.Sprint("rows, killed at ", n), 18, len(w.checkSound().rows))
	}
	testkit.Same(t, "editions that waited", true, waited > 0)
}

// TestDigestsOfAnotherEdition: the row of an image goes with each job that loads an edition which names another one,
// and comes back with the next.
func TestDigestsOfAnotherEdition(t *testing.T) {
	ran := newWorld(t, numbered(12)...).do("run").ok()
	for _, job := range []string{"run", "run blocked=1", "reread", "split; work; merge"} {
		w := ran.copied(t).do("names 99 p03; " + job)
		s := w.inspect()
		testkit.Same(t, job, "changed/sha256", s.outcome("p03"))
		testkit.Same(t, job+": rows", 11, len(s.rows))
		testkit.Same(t, job+": the image", true, s.imageOf("p03"))
		w.do("names 3 p03; run").ok()
		testkit.Same(t, job+": rows again", 12, len(w.checkSound().rows))
	}
}

// TestLostStateForgetsNoRemoval: where state.db was lost, the log has what audits heard of posts that the next edition
// leaves out.
func TestLostStateForgetsNoRemoval(t *testing.T) {
	ran := newWorld(t, append(numbered(20), "g*2")...)
	ran.do("serve 1 p05; run").ok()
	for _, steps := range []string{
		"audit p01; post deleted p01; LOST; without p01; run",
		"post deleted p01 p03 p07; recheck; LOST; without p01; run",
	} {
		before, after, _ := strings.Cut(steps, "LOST; ")
		w := ran.copied(t).do(before)
		w.err = nil
		testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		w.do(after).ok()
		s := w.checkSound()
		testkit.Same(t, steps+": an image of another post", false, s.imageOf("p05"))
		w.do("post live p01; without; run").ok()
		testkit.Same(t, steps+": comes back", false, w.checkSound().imageOf("p01"))
	}
}
