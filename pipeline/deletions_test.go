package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/reddit"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// TestRemovedRowsGoWithEveryJob: what is removed goes with every job that asks, is withheld where it is many posts at
// once, and comes back only where the policy says so or Reddit lists an image again.
func TestRemovedRowsGoWithEveryJob(t *testing.T) {
	const most = "post deleted p00 p02; post moderator p01 p03 p04 p05 p06; image left g/1; image parent p07"
	// p18 shows what p01 shows
	ran := newWorld(t, append(numbered(19), "g*2")...).do("policy flag; serve 1 p18; run").ok()
	for i, c := range []struct {
		name, steps string // JOB in them is each job
		without     string // rows that are not there afterwards
		kept        string // and images that are there of these
	}{
		{"one post", "post deleted p03; JOB", "p03", ""},
		{"a picture out of a gallery", "image left g/1; JOB", "g/1", ""},
		{"the parent of a crosspost", "image parent p03; JOB", "p03", ""},
		{"a tenth", "post deleted p03; image left g/1; JOB", "p03 g/1", ""},
		{"more is withheld", "post deleted p03 p04; image left g/1; JOB", "p03 p04 g/1", "p03 p04 g/1"},
		{"most, withheld", most + "; JOB", "p00 p01 p02 p03 p04 p05 p06 p07 g/1", "p00 p01 p02 p03 p04 p05 p06 p07 g/1"},
		{"withheld for two jobs", most + "; JOB; JOB", "p00 p01 p02 p03 p04 p05 p06 p07 g/1",
			"p00 p01 p02 p03 p04 p05 p06 p07 g/1"},
		{"confirmed", most + "; JOB; JOB confirm", "p00 p01 p02 p03 p04 p05 p06 p07 g/1", ""},
		{"a confirmation is of what was withheld before", "post deleted p03; JOB confirm", "p03", ""},
		{"back before it is confirmed",
			most + "; JOB; post live p00 p01 p02 p03 p04 p05 p06; image ok g/1; image ok p07; JOB; run", "", ""},
		{"one of them stays gone", "post deleted p03 p04 p05; JOB; post live p04 p05; JOB; run", "p03", "p03"},
		{"one of them stays gone, and is deleted", "post moderator p03 p04 p05; JOB; post live p04 p05; " +
			"post deleted p03; JOB; JOB; run", "p03", "p03"},
		{"one of them stays gone, and then it is back",
			"post deleted p03 p04 p05; JOB; post live p04 p05; JOB; post live p03; run", "", ""},
		{"one of them stays gone, and is confirmed",
			"post deleted p03 p04 p05; JOB; post live p04 p05; JOB; JOB confirm; post live p03; run", "p03", ""},
		{"one of them stays gone, and another one goes",
			"post deleted p03 p04 p05; JOB; post live p04 p05; post deleted p06; JOB; run", "p03 p06", "p03"},
		{"an image of them stays gone",
			"image left g/1; image parent p03 p04; JOB; image ok p03 p04; JOB; run", "g/1", "g/1"},
		{"confirmed, and few more are found", "post deleted p03 p04 p05 p06 p07 p08 p09 p10; JOB; post deleted p11 p12; " +
			"JOB confirm", "p03 p04 p05 p06 p07 p08 p09 p10 p11 p12", "p11 p12"},
		{"confirmed, and one more is found", "post deleted p03 p04 p05 p06 p07 p08 p09 p10; JOB; post deleted p11; " +
			"JOB confirm", "p03 p04 p05 p06 p07 p08 p09 p10 p11", ""},
		{"seen by half a sweep, and confirmed", "post deleted p03 p04 p05; JOB stop=1; JOB confirm", "p03 p04 p05",
			"p03 p04 p05"},
		{"heard by an audit, and confirmed", "post deleted p03 p04 p05; audit p03 p04 p05; JOB confirm", "p03 p04 p05",
			"p03 p04 p05"},
		{"heard by an audit, and confirmed twice",
			"post deleted p03 p04 p05; audit p03 p04 p05; JOB confirm; JOB confirm", "p03 p04 p05", ""},
		{"seen by half a sweep, and then there are few",
			"post deleted p03 p04 p05; JOB stop=1; post live p04 p05; JOB; run", "p03", ""},
		{"deleted, and live again", "post deleted p03; JOB; post live p03; run", "p03", ""},
		{"a moderator's, and live again", "post moderator p03; JOB; post live p03; run", "p03", ""},
		{"a moderator's, readmitted by the policy", "policy readmit; post moderator p03; JOB; post live p03; run", "", ""},
		{"a copyright's is never readmitted", "policy readmit; post copyright p03; JOB; post live p03; run", "p03", ""},
		{"called deleted, and absent when it is confirmed",
			"post deleted p03 p04 p05; JOB; post absent p03 p04 p05; JOB confirm; post live p03 p04 p05; run",
			"p03 p04 p05", ""},
		{"held, and then removed", "post quarantined p03; JOB; post moderator p03; JOB", "p03", ""},
		{"readmitted, until the policy no longer does",
			"policy readmit; post moderator p03; JOB; post live p03; run; policy strict; JOB", "p03", ""},
		{"readmitted, until the release has a tombstone",
			"policy readmit; post moderator p03; JOB; post live p03; run; stones removed p03; JOB", "p03", ""},
		{"in the gallery again", "image left g/1; JOB; image ok g/1; run", "g/1", ""},
		{"the parent is live again", "image parent p03; JOB; image ok p03; run", "p03", ""},
		{"the parent is live again, and somebody asks",
			"image parent p03; JOB; image ok p03; run retry=crosspost_parent_removed", "", ""},
		{"the same picture under another id", "post copyright p01; JOB", "p01 p18", ""},
		{"the same picture as one that its author deleted", "post deleted p01; JOB", "p01 p18", ""},
		{"the same picture as one that a moderator removed from its place", "post moderator p01; JOB", "p01", ""},
		{"a tombstone of the release", "stones removed p03; JOB", "p03", ""},
	} {
		for j, job := range []string{"run", "recheck", "purge", "split"} {
			if leftOut(i+j, 4) {
				continue
			}
			t.Run(c.name+", "+job, func(t *testing.T) {
				t.Parallel()
				w := ran.copied(t).do("copy c").ok()
				w.do(strings.ReplaceAll(c.steps, "JOB", job)).ok()
				s := w.checkSound()
				var rows, images []string
				for _, row := range append(numbered(19), "g", "g/1") {
					if _, there := s.rows[row]; there {
						continue
					}
					rows = append(rows, row)
					if s.imageOf(row) {
						images = append(images, row)
					}
				}
				testkit.Same(t, "rows that are not there", c.without, strings.Join(rows, " "))
				testkit.Same(t, "images of these", c.kept, strings.Join(images, " "))
			})
		}
	}
}

// TestImagesAreKeptWithTheirPosts: what an answer says of an image counts, though Reddit refuses to say why another
// post is unavailable. Wherever a job is killed, no post is seen live that is not known to have lost the image.
func TestImagesAreKeptWithTheirPosts(t *testing.T) {
	ran := newWorld(t, append(numbered(19), "g*2")...).do("run").ok()
	for _, job := range []string{"recheck", "run", "purge", "split"} {
		w := ran.copied(t)
		abouts := 0
		w.reddit.before = func(call string) error {
			if call == "about" {
				abouts++
				return &reddit.Denied{Reason: "blocked"}
			}
			return nil
		}
		w.do("post absent p05; image left g/1; " + job).ok()
		s := w.checkSound()
		testkit.Same(t, "the image, "+job, "gone/gallery_item_deleted", s.outcome("g/1"))
		testkit.Same(t, "the post, "+job, "unavailable/absent_twice", s.outcome("p05"))
		testkit.Same(t, "questions about subreddits, "+job, 1, abouts)
	}
	for n := 1; ; n += testkit.Stride(4) {
		w := ran.copied(t).do(fmt.Sprintf("clock 1h; image left g/1; recheck die=%d", n))
		if !w.struck.Load() {
			return
		}
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			for rec, err := range ws.Records(ctx, workspace.Select{IDs: []manifest.PostID{"g"}}) {
				testkit.OK(t, err)
				if rec.Key.Image == 1 && rec.Post.LiveAt.Equal(w.now) && rec.Trouble == nil {
					t.Errorf("killed at step %d, %s is live and has its image", n, rec.Key)
				}
			}
		})
	}
}

// TestImagesLeftWhileAway: an image that was taken out of its post while that was away counts as removed from the first
// answer on, also for a workspace that no run was for since: in state.db and, for one that is older, in the log. Its
// digests stay.
func TestImagesLeftWhileAway(t *testing.T) {
	ran := newWorld(t, append(numbered(19), "g*3")...).do("run; post absent g p03; recheck").ok()
	for _, c := range []struct{ name, steps, row, outcome string }{
		{"out of a gallery", "image left g/1; post live g; JOB", "g/1", "gone/gallery_item_deleted"},
		{"with the parent of a crosspost", "image parent p03; post live p03; JOB", "p03", "gone/crosspost_parent_removed"},
		{"and the post goes by request", "image left g/1; post live g; JOB; stones removed g; JOB", "g/1", "removed/tombstone"},
		{"of a post that was live again before", "post live g; JOB; image left g/1; JOB", "g/1", "gone/gallery_item_deleted"},
		{"heard by an audit", "post live g; recheck; audit left:g/1; purge offline; JOB", "g/1", "gone/gallery_item_deleted"},
	} {
		for _, job := range []string{"recheck", "purge", "purge offline"} {
			if job == "purge offline" && !strings.Contains(c.steps, "audit") {
				continue // it asks nobody
			}
			w := ran.copied(t).do(strings.ReplaceAll(c.steps, "JOB", job) + "; " + job).ok() // again: it is said once
			testkit.Same(t, c.name+", "+job, c.outcome, w.checkSound().outcome(c.row))
			w.read(func(ctx context.Context, ws *workspace.Workspace) {
				erased, err := ws.ErasedImages(ctx)
				testkit.OK(t, err)
				if !slices.ContainsFunc(erased, func(e workspace.FormerImage) bool { return e.Key.String() == c.row }) {
					t.Errorf("%s, %s: the digests of %s are gone", c.name, job, c.row)
				}
				log, err := ws.LogReader(ctx)
				testkit.OK(t, err)
				said := 0
				for e, err := range log.Records(ctx, 0) {
					testkit.OK(t, err)
					said += strings.Count(e.Verdict, "gallery_item_deleted") + strings.Count(e.Verdict, "crosspost_parent_removed")
				}
				testkit.Same(t, "records of the log that say so, "+c.name+", "+job, 1, said)
			})
		}
	}
}

// TestWithheldGoesOffline: what a purge withheld stays, with its clock, until an offline purge is given the
// confirmation.
func TestWithheldGoesOffline(t *testing.T) {
	w := newWorld(t, numbered(8)...).do("run; copy c; post moderator p00 p01 p02 p03; purge").ok()
	s := w.checkSound()
	testkit.Same(t, "posts that wait", 4, s.status.Withheld)
	testkit.Same(t, "rows of the copy", 8, len(s.copied))
	since := *s.status.WithheldSince
	w.do("clock 1h; purge; purge offline").ok()
	s = w.checkSound()
	testkit.Same(t, "images", 8, len(s.images))
	testkit.Same(t, "since when", since, *s.status.WithheldSince)
	testkit.Same(t, "what was erased", 0, len(w.purged.Erased))
	w.do("purge offline confirm").ok()
	s = w.checkSound()
	testkit.Same(t, "images", 4, len(s.images))
	testkit.Same(t, "rows of the copy", 4, len(s.copied))
}

// TestTombstonesEndHolds: a post that was held back and has a tombstone is removed by the next job without a
// confirmation, whatever Reddit says of it, once, and nothing of it waits any longer.
func TestTombstonesEndHolds(t *testing.T) {
	ran := newWorld(t, numbered(8)...).do("policy readmit; run").ok()
	for i, steps := range []string{
		"post absent p00 p01 p02; recheck; stones removed p00 p01 p02; JOB",
		"post deleted p00 p01 p02; recheck; stones removed p00 p01 p02; post unclear p00 p01 p02; JOB",
		"post deleted p00 p01 p02; recheck; stones removed p00 p01 p02; post live p00 p01 p02; JOB",
		"post moderator p00 p01 p02; recheck; recheck confirm; post live p00 p01 p02; run; " +
			"post moderator p00 p01 p02; recheck; policy strict; JOB",
	} {
		for j, job := range []string{"recheck", "run", "purge", "recheck blocked=1"} {
			if leftOut(i+j, 4) {
				continue
			}
			removed := func(w *world) int { return max(len(w.summary.Removed), len(w.purged.Erased)) }
			w := ran.copied(t).do("copy c").ok().do(strings.ReplaceAll(steps, "JOB", job))
			s, name := w.checkSound(), steps+", "+job
			testkit.Same(t, "posts that wait, "+name, 0, s.status.Withheld)
			testkit.Same(t, "rows of the copy, "+name, 5, len(s.copied))
			if w.err == nil {
				testkit.Same(t, "posts that were removed, "+name, 3, removed(w))
			}
			w.do("recheck").ok()
			testkit.Same(t, "posts that were removed again, "+name, 0, removed(w))
			testkit.Same(t, "posts that wait later, "+name, 0, w.checkSound().status.Withheld)
		}
	}
}

// TestParentTaken: a crosspost loses its picture with every job that asks when its parent has a tombstone, whether the
// parent is an entry or not, and never gets it where it had none.
func TestParentTaken(t *testing.T) {
	for _, c := range []struct{ name, steps, rows string }{
		{"purged by request", "purge id=p00", "p01 p04"},
		{"purged by request offline, and rechecked", "purge offline id=p00; recheck", "p01 p04"},
		{"one that is no entry", "crosspost zzz p02; purge id=zzz", "p00 p01 p03 p04"},
		{"a tombstone of the release", "stones removed p00; run", "p01 p04"},
		{"more of them are withheld", "crosspost p00 p04; purge id=p00", "p01"},
		// Reddit's answers of the crossposts are those of before.
		{"removed, and rechecked", "crosspost zzz p03; post moderator p00; recheck", "p01 p03 p04"},
		{"removed, and run", "crosspost zzz p03; post moderator p00; run", "p01 p03 p04"},
		{"removed, and purged", "crosspost zzz p03; post moderator p00; purge", "p01 p03 p04"},
		{"removed, and split", "crosspost zzz p03; post moderator p00; split", "p01 p03 p04"},
		{"removed, with so many that they are withheld", "post moderator p00; recheck", "p01 p04"},
		{"removed, before the crosspost was fetched",
			"crosspost zzz p02 p03; crosspost p00 p04; manifest 4; run; manifest 5; post moderator p00; run", "p01 p02 p03"},
	} {
		w := newWorld(t, numbered(5)...).do("crosspost p00 p02 p03; policy flag; run").ok()
		w.policy.Reddit.MassRemovalShare = .5
		w.do(c.steps).ok()
		testkit.Same(t, c.name, c.rows, namesOf(w.checkSound().rows))
	}
	w := newWorld(t, numbered(3)...).do("crosspost zzz p02; stones removed zzz; run; run").ok()
	testkit.Same(t, "rows of what was never fetched", "p00 p01", namesOf(w.checkSound().rows))
	if slices.ContainsFunc(w.reddit.fetched, func(u string) bool { return strings.Contains(u, "p02") }) {
		t.Errorf("the picture was asked for: %q", w.reddit.fetched)
	}
}

// TestOrphanIsSettledOnce: the crosspost of a post that is removed goes with it as one removal, although the job asks
// about it more than once: it does not wait, and copies lose its row.
func TestOrphanIsSettledOnce(t *testing.T) {
	for _, steps := range []string{"purge offline id=p00; recheck", "purge id=p00; run", "stones removed p00; recheck",
		"stones removed p00; run"} {
		w := newWorld(t, numbered(12)...).do("crosspost p00 p02; run; copy c; " + steps).ok()
		s := w.checkSound()
		testkit.Same(t, steps+": rows", "p01 p03 p04 p05 p06 p07 p08 p09 p10 p11", namesOf(s.rows))
		testkit.Same(t, steps+": what waits", 0, s.status.Withheld)
		testkit.Same(t, steps+": rows of the copy", namesOf(s.rows), namesOf(s.copied))
	}
}

// TestImagesOfAPurgedPost: images that are marked in a post that the same job erased are nothing to ask about, and hold
// nothing else back.
func TestImagesOfAPurgedPost(t *testing.T) {
	ran := newWorld(t, append(numbered(6), "g*3")...).do("run; image left g/1 g/2; post deleted p03").ok()
	for _, job := range []string{"purge id=g", "stones removed g; recheck", "stones removed g; run"} {
		s := ran.copied(t).do(job).ok().checkSound()
		testkit.Same(t, job+": posts and images that wait", 0, s.status.Withheld)
		testkit.Same(t, job+": rows", "p00 p01 p02 p04 p05", namesOf(s.rows))
		testkit.Same(t, job+": images", 5, len(s.images))
		testkit.Same(t, job+": an image of the post", s.outcome("g"), s.outcome("g/1"))
	}
}

// TestWaitingImagesGoWithTheirPost: images that wait for a confirmation go with their post. Where the job settles
// again, as for a crosspost of it, they neither count any more, nor are erased twice.
func TestWaitingImagesGoWithTheirPost(t *testing.T) {
	ran := newWorld(t, append(numbered(24), "g*4")...).do("crosspost g p05; run; image left g/1 g/2 g/3; recheck").ok()
	s := ran.checkSound().status
	testkit.Same(t, "posts that wait, and those of them that lost images", []int{1, 1},
		[]int{s.Withheld, s.WithheldImages})
	for _, job := range []string{"recheck", "run", "recheck confirm"} {
		w := ran.copied(t).do("post deleted g; " + job).ok()
		s := w.checkSound()
		testkit.Same(t, job+": what waits", 0, s.status.Withheld)
		testkit.Same(t, job+": the crosspost", "gone/crosspost_parent_removed", s.outcome("p05"))
		testkit.Same(t, job+": an image of the post", "deleted/author", s.outcome("g/1"))
	}
}

// TestHeldOrphan: the image of a crosspost in quarantine goes with the post that it shows, in the same job.
func TestHeldOrphan(t *testing.T) {
	w := newWorld(t, numbered(24)...).do("crosspost p00 p02; run; post quarantined p02; recheck").ok()
	testkit.Same(t, "held: the image is here", true, w.checkSound().imageOf("p02"))
	w.do("post moderator p00; recheck").ok()
	testkit.Same(t, "after its parent was removed", false, w.checkSound().imageOf("p02"))
}

// TestHeard: what an audit heard of a post is not handed out, and leaves with the next job, whatever that asks; many at
// once are withheld.
func TestHeard(t *testing.T) {
	rows := append(numbered(18), "g", "g/1", "g/2")
	ran := newWorld(t, append(numbered(18), "g*3")...).do("run").ok()
	for _, c := range []struct{ name, steps, without, kept string }{
		{"purged offline", "post deleted p03; audit p03; purge offline", "p03", ""},
		{"purged offline, in two steps", "audit p03; purge offline die=12; purge offline", "p03", ""},
		{"many", "audit p03 p04 p05; purge offline", "p03 p04 p05", "p03 p04 p05"},
		{"many, confirmed", "audit p03 p04 p05; purge offline; purge offline confirm", "p03 p04 p05", ""},
		{"many, with a confirmation of nothing", "audit p03 p04 p05; purge offline confirm", "p03 p04 p05", "p03 p04 p05"},
		{"one more than those that wait",
			"post deleted p03 p04 p05; recheck; post deleted p06; audit p06; purge offline", "p03 p04 p05 p06",
			"p03 p04 p05 p06"},
		{"half a sweep beside it", "post deleted p04; recheck stop=1; post deleted p03; audit p03; purge offline",
			"p03 p04", "p04"},
		{"live to a later audit", "audit p03 p04; audit live:p03; purge offline", "p04", ""},
		{"read again", "post deleted p03; audit p03; reread", "p03", ""},
		{"half a sweep", "post deleted p03 p04; audit p03; recheck stop=1", "p03 p04", "p04"},
		{"many, and half a sweep", "post deleted p03 p04 p05; audit p03 p04 p05; recheck stop=1", "p03 p04 p05", "p03 p04 p05"},
		{"many, a confirmation, and refused",
			"post deleted p03 p04 p05; recheck; recheck blocked=1 confirm", "p03 p04 p05", ""},
		{"many, a confirmation, and stopped",
			"post deleted p03 p04 p05; recheck; recheck stop=1 confirm", "p03 p04 p05", "p03 p04 p05"},
		{"cut off, and refused", "audit cut p03; recheck blocked=1", "p03", "p03"},
		{"cut off, and purged offline", "audit cut p03; purge offline", "p03", "p03"},
		{"cut off, and a whole one", "audit cut p03; audit p03; purge offline", "p03", ""},
		{"a whole one, and one that was cut off", "audit p03; audit cut p03; purge offline", "p03", ""},
		{"cut off, of a post that had lost an image", "audit left:g/1; audit cut g; purge offline", "g g/1 g/2", "g g/1 g/2"},
		{"an image of a post that half a sweep finds gone",
			"audit left:g/1; post deleted g; recheck stop=1", "g g/1 g/2", "g g/2"},
		{"rechecked", "post deleted p03; audit p03; recheck", "p03", ""},
		{"in an outage", "audit p03; post unclear p03; run", "p03", ""},
		{"live again when a job asks", "audit p03; clock 1h; run; purge offline", "", ""},
		{"asked since", "post deleted p03; recheck; audit p03; post live p03; purge offline; run", "p03", ""},
		{"an image, purged offline", "image left g/1; audit left:g/1; purge offline", "g/1", ""},
		{"an image, purged offline, in two steps", "audit left:g/1; purge offline die=12; purge offline", "g/1", ""},
		{"images of one post", "audit left:g/1 left:g/2; audit left:g/1; purge offline", "g/1 g/2", "g/1 g/2"},
		{"an image and a post", "audit left:g/1 p03; purge offline", "p03 g/1", "p03 g/1"},
		{"images, confirmed", "audit left:g left:g/2; purge offline; purge offline confirm", "g g/2", ""},
		{"one image more than those that wait",
			"image left g g/1; recheck; image left g/2; audit left:g/2; purge offline", "g g/1 g/2", "g g/1 g/2"},
		{"half a sweep beside an image", "image left g g/2; recheck stop=1; audit left:g/1; purge offline",
			"g g/1 g/2", "g g/2"},
		{"an image, back to a later audit", "audit left:g/1 left:g/2; audit live:g left:g/2; purge offline", "g/2", ""},
		{"an image, read again", "audit left:g/1; reread", "g/1", ""},
		{"an image, half a sweep", "image left g/1; audit left:g/1; recheck stop=1", "g/1", ""},
		{"an image, rechecked", "image left g/1; audit left:g/1; recheck", "g/1", ""},
		{"an image, in an outage", "audit left:g/1; post unclear g; run", "g/1", ""},
		{"an image, back when a job asks", "audit left:g/1; clock 1h; run; purge offline; run", "", ""},
		{"an image, and then its post", "audit left:g/1; audit g; purge offline", "g g/1 g/2", ""},
		{"an image, asked since", "audit left:g/1; clock 1h; recheck stop=2; purge offline; run", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("copy c").ok().do(c.steps)
			s := w.checkSound()
			var without, kept []string
			for _, row := range rows {
				if _, there := s.rows[row]; !there {
					without = append(without, row)
					if s.imageOf(row) {
						kept = append(kept, row)
					}
				}
			}
			testkit.Same(t, "rows that are not there", c.without, strings.Join(without, " "))
			testkit.Same(t, "images of these", c.kept, strings.Join(kept, " "))
		})
	}
	for _, heard := range []string{"p03", "left:p03"} {
		w := newWorld(t, numbered(4)...).do("run; audit " + heard + "; copy c").ok()
		s := w.inspect()
		testkit.Same(t, "rows that are gone by an audit", 1, s.status.Heard)
		testkit.Same(t, "rows that were handed out", 0, len(s.copied))
		// The image of a duplicate is here, too.
		s = newWorld(t, numbered(4)...).do("serve 1 p03; run; audit " + heard).ok().inspect()
		testkit.Same(t, "rows without the duplicate", 3, len(s.rows))
		testkit.Same(t, "images that are gone by an audit", 1, s.status.Heard)
	}
}

// TestBackOutcomes: what was withheld, or held, and is live again is pending for every job that lets no row in, in
// outcomes.csv as in the status, until a run has the rows again.
func TestBackOutcomes(t *testing.T) {
	for _, steps := range []string{
		"post deleted p03 p04 p05; recheck; post live p03 p04 p05; recheck",
		"post deleted p03; recheck; post deleted p04 p05 p06; recheck; post live p04 p05 p06; purge",
		"post deleted p03 p04 p05; recheck; post live p04 p05; recheck confirm",
		"image left g/1; image parent p03 p04; recheck; image ok g/1; image ok p03 p04; recheck",
		"post quarantined p03; recheck; post live p03; recheck",
		"names 40 p03; move 40 p03; split fault=13; split", // another image is the right one now
	} {
		w := newWorld(t, append(numbered(19), "g*2")...).do("run; " + steps)
		w.ok()
		s := w.checkSound()
		counts := map[manifest.Outcome]int{}
		for _, res := range s.outcomes {
			counts[res.Outcome]++
		}
		testkit.Same(t, "outcomes after "+steps, s.status.Outcomes, counts)
		for row, res := range s.outcomes {
			if live := s.records[row].Post.State == manifest.StateLive; live && res.Outcome != manifest.Kept &&
				res.Outcome != manifest.Pending {
				t.Errorf("after %s outcomes.csv says of %s, which is live: %s, %s", steps, row, res.Outcome, res.Reason)
			}
		}
		w.do("run").ok()
		if w.checkSound(); w.summary.Outcomes[manifest.Pending] != 0 {
			t.Errorf("after %s and a run: %v", steps, w.summary.Outcomes)
		}
	}
}

// TestRemovedRowGoesThoughManyOthersAreHeld: an image was removed and its row could not be taken out. That its post and
// many others are quarantined afterwards, which the guard holds back, is no reason to keep the row.
func TestRemovedRowGoesThoughManyOthersAreHeld(t *testing.T) {
	ran := newWorld(t, append(numbered(9), "g*3")...).do("run; image parent p01; image left g/1").ok()
	for _, job := range []string{"run", "recheck", "purge", "split"} {
		w := ran.copied(t)
		const unwritable = "recheck confirm unwritable=" + state.DatasetDir
		w.do(unwritable + ";" + unwritable)
		if _, there := w.inspect().rows["p01"]; !errors.Is(w.err, errFault) || !there {
			t.Fatalf("the row was taken out: %v, %v", !there, w.err)
		}
		w.do("post quarantined p01 p02 p03 p04; " + job)
		testkit.Same(t, "rows after "+job, "g g/2 p00 p02 p03 p04 p05 p06 p07 p08", namesOf(w.checkSound().rows))
	}
}

// TestEndKeepsTombstones: the end of a workspace loses no tombstone that only its tombstones.csv has, as where state.db
// was put back from a backup: what begins there anew leaves the post out.
func TestEndKeepsTombstones(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run").ok()
	testkit.OK(t, os.WriteFile(filepath.Join(w.dir, "ws", manifest.TombstonesName),
		[]byte("id,state,time\np01,removed,2026-01-01T00:00:00Z\n"), 0o600))
	end := func(ctx context.Context, ws *workspace.Workspace) error {
		_, err := End(ctx, ws, w.now)
		return err
	}
	if err := w.inWorkspace(t.Context(), end); !errors.As(err, new(*workspace.Altered)) {
		t.Errorf("a list that somebody put there: %v", err)
	}
	testkit.Same(t, "images after the refusal", 4, len(w.imagesOf()))
	// Where nobody knows what the last command left, the list counts.
	testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", filepath.FromSlash(state.SealFile))),
		w.inWorkspace(t.Context(), end))
	w.do("run").ok()
	testkit.Same(t, "rows", "p00 p02 p03", namesOf(w.checkSound().rows))
}

// TestImageThatWentBeforeIsNotRemovedAgain: where a post is held back that lost an image before, no job says that it
// removes this one now.
func TestImageThatWentBeforeIsNotRemovedAgain(t *testing.T) {
	const steps = "run; image left g; recheck; post moderator g p00 p01; recheck"
	w := newWorld(t, append(numbered(9), "g*3")...).do(steps).ok()
	s := w.checkSound()
	testkit.Same(t, "posts that are held back", 3, s.status.Withheld)
	testkit.Same(t, "images of theirs that went before", 1, s.status.WithheldWent)
	for row, detail := range map[string]string{"g": "held back, and no image of it is here",
		"g/1": "held back, not erased yet"} {
		testkit.Same(t, "what is said of "+row, detail, s.records[row].Result.Detail)
	}
	w.do("purge offline").ok()
	testkit.Same(t, "posts that a purge says it removed", 0, len(w.purged.Erased))
	w.do("recheck").ok()
	testkit.Same(t, "posts that a recheck says it removed", 0, len(w.summary.Removed))
	w.do("purge offline confirm").ok()
	testkit.Same(t, "posts that the confirmation removes", 3, len(w.purged.Erased))

	w = newWorld(t, append(numbered(9), "g*1")...).do(steps).ok()
	w.do("recheck confirm").ok()
	testkit.Same(t, "posts, of which one had lost its only image", 3, len(w.summary.Removed))
}
