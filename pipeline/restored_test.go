package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
)

// putBack makes parts of the workspace what they are in that of a world of before.
func (w *world) putBack(before *world, names ...string) {
	w.Helper()
	for _, name := range names {
		kept, place := filepath.Join(before.dir, "ws", name), filepath.Join(w.dir, "ws", name)
		testkit.OK(w, os.RemoveAll(place))
		info, err := os.Stat(kept)
		testkit.OK(w, err)
		if info.IsDir() {
			testkit.OK(w, os.CopyFS(place, os.DirFS(kept)))
			continue
		}
		body, err := os.ReadFile(kept)
		testkit.OK(w, err)
		testkit.OK(w, os.WriteFile(place, body, 0o600))
	}
}

// TestRemovalsOutliveState: whatever was removed stays out when state.db is put back from before, with or without
// images and dataset, and when it is lost: posts, pictures out of a gallery, images whose crosspost lost its parent,
// and the same picture under another id. The log has all of them.
func TestRemovalsOutliveState(t *testing.T) {
	sick := newWorld(t, append(numbered(9), "p18", "g*3")...).do("policy flag; serve 1 p18; host 503 i.redd.it; run").ok()
	ran := sick.copied(t).do("host ok i.redd.it; run").ok()
	for i, c := range []struct{ name, removal, back, rows string }{
		{"a post", "post deleted p03", "post live p03", "g g/1 g/2 p00 p01 p02 p04 p05 p06 p07 p08 p18"},
		{"a picture out of a gallery", "image left g/1", "image ok g/1", "g g/2 p00 p01 p02 p03 p04 p05 p06 p07 p08 p18"},
		{"the first picture of a gallery", "image left g", "image ok g", "g/1 g/2 p00 p01 p02 p03 p04 p05 p06 p07 p08 p18"},
		{"the parent of a crosspost", "image parent p03", "image ok p03", "g g/1 g/2 p00 p01 p02 p04 p05 p06 p07 p08 p18"},
		{"the same picture", "post copyright p01", "post live p01", "g g/1 g/2 p00 p02 p03 p04 p05 p06 p07 p08"},
	} {
		for j, how := range [][2]string{
			{"restored", "run"},
			{"restored, rechecked", "recheck"},
			{"restored, purged offline", "purge offline"},
			{"restored, split", "split"},
			{"state alone", "run"},
			{"of before the images", "run"},
			{"lost", "run"},
			{"lost, and images restored", "run"},
		} {
			if leftOut(i+j, 4) {
				continue
			}
			t.Run(c.name+", "+how[0], func(t *testing.T) {
				t.Parallel()
				w := ran.copied(t).do(c.removal + "; recheck").ok()
				testkit.Same(t, "rows after the removal", c.rows, namesOf(w.checkSound().rows))
				state := filepath.Join(w.dir, "ws", "state.db")
				switch how[0] {
				case "state alone":
					w.putBack(ran, "state.db")
				case "of before the images":
					w.putBack(sick, "state.db")
				case "lost":
					testkit.OK(t, os.Remove(state))
				case "lost, and images restored":
					w.putBack(ran, "images")
					testkit.OK(t, os.Remove(state))
				default:
					w.putBack(ran, "state.db", "images", "dataset")
				}
				w.do(c.back + "; " + how[1]).ok()
				for row := range w.checkSound().rows {
					if !slices.Contains(strings.Fields(c.rows), row) {
						t.Errorf("%s is back", row)
					}
				}
				w.do("run; run").ok()
				testkit.Same(t, "rows in the end", c.rows, namesOf(w.checkSound().rows))
			})
		}
	}
}

// TestRequestOutlivesState: a request for a crosspost that its author had deleted is one, too, for a state.db that is
// lost or older: the picture that it took from another post stays away. So is a tombstone of the release.
func TestRequestOutlivesState(t *testing.T) {
	ran := newWorld(t, numbered(9)...).do("policy flag; serve 5 p03; run").ok()
	deleted := ran.copied(t).do("post crosspost p03; recheck; run").ok()
	testkit.Same(t, "rows without the crosspost", "p00 p01 p02 p04 p05 p06 p07 p08", namesOf(deleted.checkSound().rows))
	const rows = "p00 p01 p02 p04 p06 p07 p08"
	for _, request := range []string{"purge offline id=p03", "stones removed p03; recheck"} {
		for _, how := range []string{"lost", "of before", "of before, without checkpoint", "of before, and the checkpoint",
			"of the deletion"} {
			for _, job := range []string{"run", "recheck", "purge offline"} {
				t.Run(request+", "+how+", "+job, func(t *testing.T) {
					t.Parallel()
					w := deleted.copied(t).do(request).ok()
					testkit.Same(t, "rows after the request", rows, namesOf(w.checkSound().rows))
					w.stones = nil
					switch how {
					case "lost":
						testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
					case "of before":
						w.putBack(ran, "state.db")
					case "of before, without checkpoint":
						w.putBack(ran, "state.db")
						testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "audit", "checkpoint")))
					case "of before, and the checkpoint":
						w.putBack(ran, "state.db", "audit/checkpoint")
					default:
						w.putBack(deleted, "state.db")
					}
					records := filepath.Join(w.dir, "ws", "audit", "records.jsonl")
					said, err := os.ReadFile(records)
					testkit.OK(t, err)
					w.do(job + "; run; run").ok()
					testkit.Same(t, "rows in the end", rows, namesOf(w.checkSound().rows))
					now, err := os.ReadFile(records)
					testkit.Same(t, "the log goes on", true, bytes.HasPrefix(now, said), err)
				})
			}
		}
	}
}

// TestRemovalsOfALogThatBeganAgain: a removal holds where the log was lost, or is an older one, and later state.db comes
// back from before that, which knows more records of the lost log than the one that took its place has.
func TestRemovalsOfALogThatBeganAgain(t *testing.T) {
	ran := newWorld(t, append(numbered(8), "g*2")...).do("run").ok()
	before := ran.copied(t).do("recheck" + strings.Repeat("; recheck", 5)).ok()
	const rows = "g p00 p01 p02 p04 p05 p06 p07"
	for _, log := range []string{"lost", "older"} {
		for _, job := range []string{"run", "recheck", "purge offline"} {
			t.Run(log+", "+job, func(t *testing.T) {
				t.Parallel()
				w := before.copied(t).do("purge offline id=p03; image left g/1; recheck").ok()
				testkit.OK(t, os.RemoveAll(filepath.Join(w.dir, "ws", "audit")))
				if log == "older" {
					w.putBack(ran, "audit")
				}
				w.do("recheck; copy d; image ok g/1").ok()
				w.putBack(before, "state.db")
				w.stones = nil
				w.read(func(ctx context.Context, ws *workspace.Workspace) {
					testkit.Same(t, "a reader is told", true, errors.Is(ws.CheckCurrent(ctx), workspace.ErrBehind))
				})
				w.do(job + "; run; run").ok()
				testkit.Same(t, "rows in the end", rows, namesOf(w.checkSound().rows))
				w.read(func(ctx context.Context, ws *workspace.Workspace) {
					lost, err := ws.LostCopies(ctx)
					testkit.Same(t, "copies that only the log knows", 1, len(lost), err)
				})
			})
		}
	}
}

// TestOlderLogAfterALostOne: a log that comes back from a backup undoes nothing that came back since, also where one was
// lost, or came back, before that: state.db knows of it.
func TestOlderLogAfterALostOne(t *testing.T) {
	for _, c := range []struct{ name, gone, back string }{
		{"an image", "image left g/1", "image ok g/1; run retry=gallery_item_deleted"},
		{"a post", "post moderator p03", "post live p03; run; run"},
	} {
		for _, before := range []string{"no", "lost", "put back"} {
			t.Run(c.name+", "+before, func(t *testing.T) {
				t.Parallel()
				ran := newWorld(t, append(numbered(8), "g*2")...).do("policy readmit; run").ok()
				w := ran.copied(t).do("recheck" + strings.Repeat("; recheck", 11)).ok()
				switch before {
				case "lost":
					testkit.OK(t, os.RemoveAll(filepath.Join(w.dir, "ws", "audit")))
				case "put back":
					w.putBack(ran, "audit", "log.key")
				}
				w.do("recheck; " + c.gone + "; recheck").ok()
				backup := w.copied(t)
				w.do(c.back + "; host 404 i.redd.it").ok()
				w.putBack(backup, "audit", "log.key")
				w.read(func(ctx context.Context, ws *workspace.Workspace) {
					testkit.OK(t, ws.CheckCurrent(ctx))
				})
				w.do("recheck; run").ok()
				s := w.inspect()
				testkit.Same(t, "images", []bool{true, true}, []bool{s.imageOf("g/1"), s.imageOf("p03")})
			})
		}
	}
}

// TestReadersAreToldOfAnOlderCheckpoint: a reader shows nothing where state.db and checkpoint are older than the records.
func TestReadersAreToldOfAnOlderCheckpoint(t *testing.T) {
	ran := newWorld(t, numbered(9)...).do("run").ok()
	for _, missing := range []bool{false, true} {
		w := ran.copied(t).do("post deleted p03; recheck").ok()
		check := func(want bool) {
			t.Helper()
			w.read(func(ctx context.Context, ws *workspace.Workspace) {
				testkit.Same(t, "a reader is told", want, errors.Is(ws.CheckCurrent(ctx), workspace.ErrBehind))
			})
		}
		check(false)
		w.putBack(ran, "state.db", "dataset", "images", "audit/checkpoint")
		if missing {
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "audit", "checkpoint")))
		}
		check(true)
	}
}

// TestGoneWithoutATombstone: a post that was erased because it was missing, or that waits for a confirmation, is so
// again once state.db, images and dataset come back from before, also where no job may ask. What was erased is gone.
func TestGoneWithoutATombstone(t *testing.T) {
	ran := newWorld(t, numbered(14)...).do("run").ok()
	for _, c := range []struct {
		name, removal, back string
		rows, images        int
	}{
		{"missing, and purged offline", "post absent p03; recheck", "purge offline", 13, 13},
		{"missing, and an outage", "post absent p03; recheck", "recheck blocked=1", 13, 13},
		{"many were confirmed", "post absent p03 p04 p05; recheck; recheck confirm", "recheck", 11, 11},
		{"many wait", "post deleted p03 p04 p05; recheck", "purge offline", 11, 14},
		{"many wait, and are confirmed", "post deleted p03 p04 p05; recheck", "purge offline confirm", 11, 11},
		{"one waits beside half a sweep", "post deleted p03; recheck stop=1", "purge offline", 13, 14},
		{"one came back since", "post absent p03; recheck; post live p03; run", "purge offline", 14, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("clock 1h; " + c.removal)
			w.putBack(ran, "state.db", "images", "dataset")
			w.do(c.back + "; copy c")
			s := w.checkSound()
			testkit.Same(t, "rows", c.rows, len(s.rows))
			testkit.Same(t, "rows handed out", c.rows, len(s.copied))
			testkit.Same(t, "images", c.images, len(s.images))
		})
	}
}

// TestGoneSinceTheBackup: what became of posts that were held back when state.db was saved holds once it is put back.
func TestGoneSinceTheBackup(t *testing.T) {
	ran := newWorld(t, numbered(14)...).do("run").ok()
	held := ran.copied(t).do("clock 1h; post absent p03 p04 p05; recheck").ok()
	w := held.copied(t).do("recheck confirm").ok()
	w.putBack(held, "state.db", "images")
	w.do("purge offline; copy c").ok()
	s := w.checkSound()
	testkit.Same(t, "images once the confirmed ones are back", 11, len(s.images))

	half := ran.copied(t).do("clock 1h; post deleted p03 p04 p05; recheck stop=2")
	w = half.copied(t).do("recheck").ok()
	w.putBack(half, "state.db")
	w.do("purge offline confirm").ok()
	testkit.Same(t, "images once what was held back is confirmed", 11, len(w.checkSound().images))

	sick := newWorld(t, numbered(14)...).do("host 503 i.redd.it; run").ok()
	w = sick.copied(t).do("host ok i.redd.it; run; clock 1h; post deleted p03 p04 p05; recheck").ok()
	w.putBack(sick, "state.db")
	w.do("purge offline; run").ok()
	testkit.Same(t, "images that are held back, of a state.db that knew none", 14, len(w.checkSound().images))

	w = ran.copied(t).do("clock 1h; post deleted p03; recheck; clock 1h; recheck").ok()
	w.putBack(ran, "state.db", "images", "dataset")
	w.do("recheck blocked=1")
	testkit.Same(t, "posts with a tombstone that are held back", 0, w.inspect().status.Withheld)
}

// TestShownSinceTheBackup: no confirmation erases what was held back when state.db was saved and Reddit showed since.
// If it is gone again, a job that asks holds it back anew.
func TestShownSinceTheBackup(t *testing.T) {
	ran := newWorld(t, append(numbered(9), "g*3")...).do("run").ok()
	for _, c := range []struct{ gone, shown string }{
		{"post deleted p03 p04 p05", "post live p03 p04 p05"},
		{"post absent p03 p04 p05", "post live p03 p04 p05"},
		{"image left g g/1 g/2", "image ok g g/1 g/2"},
		{"image parent p03 p04; post moderator p05", "image ok p03 p04; post live p05"},
	} {
		held := ran.copied(t).do("clock 1h; " + c.gone + "; recheck").ok()
		w := held.copied(t).do("clock 1h; " + c.shown + "; run").ok()
		w.putBack(held, "state.db", "dataset")
		w.do("purge offline confirm; recheck confirm").ok()
		testkit.Same(t, "images after "+c.gone, 12, len(w.checkSound().images))
		w.do(c.gone + "; recheck").ok()
		testkit.Same(t, "images that are held back after "+c.gone, 12, len(w.checkSound().images))
		w.do("recheck confirm").ok()
		testkit.Same(t, "images confirmed after "+c.gone, 9, len(w.checkSound().images))
	}
}

// TestConfirmationCoversWhatWasAsked: a confirmation that fails half-way, at whatever step, confirms nothing that the
// same job has found and withheld.
func TestConfirmationCoversWhatWasAsked(t *testing.T) {
	held := newWorld(t, numbered(20)...).do("run; post deleted p03 p04 p05; recheck; post deleted p06 p07 p08 p09").ok()
	for n := 1; ; n += testkit.Stride(4) {
		w := held.copied(t).do(fmt.Sprintf("recheck confirm fault=%d", n))
		for _, id := range []string{"p06", "p07", "p08", "p09"} {
			if !w.inspect().imageOf(id) {
				t.Errorf("fault %d: the image of %s is gone", n, id)
			}
		}
		if !w.struck.Load() {
			break
		}
	}
}

// TestRemovalsFoundWithoutState: where state.db was lost, what the log says was fetched was live. A run that finds its
// post deleted erases it, and many at once are withheld.
func TestRemovalsFoundWithoutState(t *testing.T) {
	for _, c := range []struct {
		removals string
		images   int // then
	}{
		{"post deleted p03", 8},
		{"post deleted p03 p04 p05", 9},
	} {
		w := newWorld(t, numbered(9)...).do("run").ok()
		testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		w.do(c.removals + "; run").ok()
		testkit.Same(t, "images after "+c.removals, c.images, len(w.imagesOf()))
		w.checkSound()
		w.do("post live p03 p04 p05; run").ok()
		testkit.Same(t, "rows once they are live", c.images, len(w.checkSound().rows))
	}
}

// TestHeardWithoutState: what an audit heard is withheld as any removal where state.db was lost, or is older than the
// images: it waits for what Reddit says next.
func TestHeardWithoutState(t *testing.T) {
	sick := newWorld(t, append(numbered(20), "g*2")...).do("host 503 i.redd.it; run").ok()
	ran := sick.copied(t).do("host ok i.redd.it; run; clock 1h; audit p03 p04 p05 left:g/1").ok()
	for _, c := range []struct {
		jobs         string
		lost         bool
		rows, images int
	}{
		{"run", true, 22, 22},
		{"run", false, 22, 22},
		{"purge offline; run", false, 22, 22},
		{"post deleted p03 p04 p05; image left g/1; run", true, 18, 22},
		{"post deleted p03 p04 p05; image left g/1; run; run confirm", true, 18, 18},
	} {
		w := ran.copied(t)
		w.putBack(sick, "state.db")
		if c.lost {
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		}
		w.do(c.jobs).ok()
		s := w.checkSound()
		testkit.Same(t, fmt.Sprint("rows and images after ", c.jobs, ", state.db lost: ", c.lost),
			[]int{c.rows, c.images}, []int{len(s.rows), len(s.images)})
	}
}

// TestRestoredImagesAreNoVerdict: that images are taken back where state.db was lost is no answer of Reddit. What was
// held back is so from the start, also of a job that Reddit does not answer, and the log goes on saying since when.
func TestRestoredImagesAreNoVerdict(t *testing.T) {
	for _, c := range []struct {
		removal      string
		rows, images int // after jobs that Reddit answers again, as before
	}{
		{"post deleted p03 p04 p05; recheck", 9, 12},
		{"post absent p03 p04 p05; recheck", 9, 12},
		{"post deleted p03; recheck stop=1", 11, 11},
		{"post absent p03; recheck", 11, 11},
	} {
		w := newWorld(t, numbered(12)...).do("run; clock 1h; " + c.removal)
		before := w.inspect().status
		logged := w.verdicts()
		testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		w.do("clock 1h; run blocked=1")
		testkit.Same(t, "verdicts after "+c.removal, logged, w.verdicts())
		after := w.inspect().status
		testkit.Same(t, "held back after "+c.removal, before.Withheld, after.Withheld)
		testkit.Same(t, "since", before.WithheldSince, after.WithheldSince)
		testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		w.do("run").ok()
		s := w.checkSound()
		testkit.Same(t, "rows and images after "+c.removal, []int{c.rows, c.images}, []int{len(s.rows), len(s.images)})
		if c.images > c.rows {
			testkit.Same(t, "since, once Reddit has answered", before.WithheldSince, s.status.WithheldSince)
		}
	}
}

// verdicts counts the records of what Reddit answered.
func (w *world) verdicts() (n int) {
	w.Helper()
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		log, err := ws.LogReader(ctx)
		testkit.OK(w, err)
		for e, err := range log.Records(ctx, 0) {
			testkit.OK(w, err)
			if e.Kind == auditlog.Verdicts {
				n++
			}
		}
	})
	return n
}

// TestHeldBackKeepsItsTime: what was held back when state.db came from a backup, or was lost, is due when it was
// before. What was live again between is due from when it is gone again.
func TestHeldBackKeepsItsTime(t *testing.T) {
	ran := newWorld(t, append(numbered(9), "g*3")...).do("run").ok()
	for _, c := range []struct {
		removals string
		again    bool // the clock begins anew
	}{
		{"post deleted p03 p04 p05; recheck", false},
		{"image left g g/1 g/2; recheck", false},
		{"image parent p03 p04; post moderator p05; recheck", false},
		{"post deleted p03 p04 p05; recheck; post live p03 p04 p05; recheck; post deleted p03 p04 p05", true},
	} {
		for _, lost := range []bool{false, true} {
			if lost && strings.Contains(c.removals, "image") {
				continue // an image without a row is none that was held back
			}
			w := ran.copied(t).do("clock 1h; " + c.removals).ok()
			since := w.now
			w.do("clock 40h")
			if c.again {
				since = w.now
			}
			if lost {
				testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
			} else {
				w.putBack(ran, "state.db")
			}
			for range 2 {
				w.do("run").ok()
				s := w.checkSound().status
				if s.WithheldSince == nil || s.WithheldSince.Sub(since).Abs() > time.Minute {
					t.Errorf("%s, lost %v: held back since %v, want %v", c.removals, lost, s.WithheldSince, since)
				}
			}
			w.do("post live p03 p04 p05; image ok p03 p04 g g/1 g/2; run; clock 1h; " +
				strings.ReplaceAll(c.removals, "; recheck", "") + "; run").ok()
			if s := w.inspect().status; s.WithheldSince == nil || w.now.Sub(*s.WithheldSince) > time.Minute {
				t.Errorf("%s, lost %v: held back again since %v, want %v", c.removals, lost, s.WithheldSince, w.now)
			}
		}
	}
}

// TestRemovalsOutliveTheEnd: what was taken out of a live post stays out when its entry leaves the manifest and comes
// back, and when a workspace begins anew after its end.
func TestRemovalsOutliveTheEnd(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"the entry left": func(w *world) { w.do("manifest 4; run; manifest 5").ok() },
		"the end": func(w *world) {
			testkit.OK(t, w.inWorkspace(t.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
				_, err := End(ctx, ws, w.now)
				return err
			}))
		},
	} {
		w := newWorld(t, append(numbered(4), "g*2")...).do("run; image left g/1; recheck").ok()
		between(w)
		w.do("image ok g/1; run").ok()
		testkit.Same(t, "rows, "+name, "g p00 p01 p02 p03", namesOf(w.checkSound().rows))
		w.do("run retry=gallery_item_deleted").ok()
		testkit.Same(t, "rows once somebody asks, "+name, "g g/1 p00 p01 p02 p03", namesOf(w.checkSound().rows))
	}
}

// TestLogIsToldOfImages: a log that is older than state.db, or another one, is told which images there are and which
// were taken out of their posts. So a state.db that is lost after that costs no image, and brings none back.
func TestLogIsToldOfImages(t *testing.T) {
	older := newWorld(t, append(numbered(6), "g*2")...).do("serve 404 p04 p05; run; serve 4 p04; serve 5 p05").ok()
	ran := older.copied(t).do("run retry=http_404; image left g/1; post deleted p02; recheck; recheck confirm; " +
		"host 404 i.redd.it").ok()
	testkit.Same(t, "rows", "g p00 p01 p03 p04 p05", namesOf(ran.checkSound().rows))
	other := older.copied(t).do("post deleted p00; recheck; recheck; recheck; recheck; recheck; recheck; recheck").ok()
	for name, c := range map[string]struct {
		log  *world
		rows string
	}{
		"older":   {older, "g p00 p01 p03 p04 p05"},
		"another": {other, "g p01 p03 p04 p05"},
		"none":    {nil, "g p00 p01 p03 p04 p05"},
	} {
		for _, job := range []string{"recheck", "purge offline"} {
			w := ran.copied(t)
			if c.log != nil {
				w.putBack(c.log, "audit", "log.key")
			} else {
				testkit.OK(t, os.RemoveAll(filepath.Join(w.dir, "ws", "audit")))
			}
			w.do(job).ok()
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
			w.do("post live p02 p00; image ok g/1; run").ok()
			s := w.checkSound()
			testkit.Same(t, name+", "+job+": rows", c.rows, namesOf(s.rows))
			testkit.Same(t, name+", "+job+": g/1", "gone/gallery_item_deleted", s.outcome("g/1"))
			testkit.Same(t, name+", "+job+": p02", "deleted/tombstone", s.outcome("p02"))
		}
	}
}

// TestLogIsToldWhoIsBack: a log that is older than state.db, and in which a post is gone that Reddit shows again, is
// told so. A state.db that is lost after that costs no image.
func TestLogIsToldWhoIsBack(t *testing.T) {
	older := newWorld(t, numbered(14)...).do("run; clock 1h; post absent p03; recheck; clock 1h; recheck").ok()
	testkit.Same(t, "an image before", false, older.checkSound().imageOf("p03"))
	w := older.copied(t).do("clock 1h; post live p03; run; host 404 i.redd.it").ok()
	w.putBack(older, "audit", "log.key")
	w.do("recheck").ok()
	testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
	w.do("run").ok()
	testkit.Same(t, "p03", "kept/", w.checkSound().outcome("p03"))
}

// checkLogged: the log names each file of the dataset as it stands there, whatever was put back.
func (w *world) checkLogged(s inventory) {
	w.Helper()
	logged := map[string]string{}
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		log, err := ws.LogReader(ctx)
		testkit.OK(w, err)
		for e, err := range log.Records(ctx, 0) {
			testkit.OK(w, err)
			if e.Kind == auditlog.Export || e.Kind == auditlog.Purge {
				for _, f := range e.Files {
					logged[f.Name] = f.SHA256
				}
			}
		}
	})
	testkit.Same(w, "files as the log has them after "+strings.Join(w.done, "; "), s.files, logged)
}

// TestExportLoggedAgain: where a part of the workspace was put back, the dataset that stands there is on record again
// after the next run, also where that has nothing to write.
func TestExportLoggedAgain(t *testing.T) {
	ran := newWorld(t, numbered(12)...).do("run").ok()
	withheld := ran.copied(t).do("post deleted p03 p04 p05; recheck").ok()
	withheld.checkLogged(withheld.checkSound())
	for _, c := range []struct{ parts, jobs string }{
		{"state.db images dataset", "run"},
		{"state.db images dataset", "run; run"},
		{"state.db images dataset", "recheck; run"},
		{"state.db images dataset", "purge offline"},
		{"state.db", "run"},
		{"state.db", "purge offline; run"},
		{"audit log.key", "run"},
		{"audit log.key", "purge offline"},
		{"dataset", "run"},
	} {
		w := withheld.copied(t)
		w.putBack(ran, strings.Fields(c.parts)...)
		w.do("post live p03 p04 p05; " + c.jobs).ok()
		w.checkLogged(w.checkSound())
	}
	w := ran.copied(t).do("post deleted p03; run").ok()
	w.putBack(ran, "audit")
	w.do("run").ok()
	testkit.Same(t, "nothing to write", true, w.summary.Unchanged)
	w.checkLogged(w.checkSound())
}

// TestAwayByAnOlderState: what a state.db that was put back has as away, and the log shows live again since, keeps the
// image that its host does not have any more.
func TestAwayByAnOlderState(t *testing.T) {
	for _, before := range []string{"run; post absent p10; run; clock 49h; run; clock 49h; run",
		"post absent p10; run; clock 49h; run; clock 49h; run", "post quarantined p10; run"} {
		backup := newWorld(t, numbered(12)...).do(before).ok()
		ran := backup.copied(t).do("post live p10; run").ok()
		for _, jobs := range []string{"run", "recheck; run", "purge offline; run"} {
			w := ran.copied(t)
			w.putBack(backup, "state.db")
			s := w.do("serve 404 p10; " + jobs).checkSound()
			testkit.Same(t, before+"; then "+jobs, "kept/", s.outcome("p10"))
		}
		// What went away again since is gone.
		w := ran.copied(t).do("post moderator p10; run confirm").ok()
		w.putBack(backup, "state.db")
		s := w.do("serve 404 p10; run").ok().checkSound()
		testkit.Same(t, before+"; removed since", false, w.hasFile("p10"))
		testkit.Same(t, before+"; removed since", "removed", strings.SplitN(s.outcome("p10"), "/", 2)[0])
	}
}

// TestKilledTakeOverIsNoGoodEnd: a job that is killed while it takes over what an older state.db lacks leaves a status
// that says so, whatever it had done by then.
func TestKilledTakeOverIsNoGoodEnd(t *testing.T) {
	older := newWorld(t, numbered(8)...).do("manifest 5; run").ok()
	ran := older.copied(t).do("manifest 8; run").ok()
	for step := 1; ; step += testkit.Stride(4) {
		w := ran.copied(t)
		w.putBack(older, "state.db")
		w.do(fmt.Sprintf("recheck die=%d", step))
		if w.err == nil {
			testkit.Same(t, "steps", true, step > 10)
			break
		}
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			s, err := state.Status(ctx, ws, w.now)
			testkit.OK(t, err)
			testkit.Same(t, fmt.Sprint("killed at step ", step), true, s.Behind || s.Later == 3)
		})
		testkit.Same(t, "images", 8, len(w.imagesOf()))
		w.do("recheck")
		log, err := os.ReadFile(filepath.Join(w.dir, "ws", "audit", "records.jsonl"))
		testkit.OK(t, err)
		testkit.Same(t, fmt.Sprint("records that state.db was changed, of step ", step), 0,
			bytes.Count(log, []byte(`"kind":"restored","verdict":"`+auditlog.RestoredChanged)))
	}
}

// TestLaterImagesGoWithTheirPicture: files of entries that an older state.db does not have stay until the next run, but
// for those that are the image of a post which is taken down meanwhile.
func TestLaterImagesGoWithTheirPicture(t *testing.T) {
	older := newWorld(t, numbered(12)...).do("manifest 8; run").ok()
	ran := older.copied(t).do("manifest 12; serve 2 p09; run").ok()
	for _, jobs := range []string{"purge offline id=p02", "purge id=p02", "stones removed p02; recheck"} {
		w := ran.copied(t)
		w.putBack(older, "state.db")
		w.do(jobs)
		testkit.Same(t, jobs, []bool{false, false, true}, []bool{w.hasFile("p02"), w.hasFile("p09"), w.hasFile("p10")}, w.err)
	}
	w := ran.copied(t)
	w.putBack(older, "state.db")
	w.do("post deleted p01; post deleted p08; post deleted p09; recheck")
	testkit.Same(t, "held back", []int{3, 4}, []int{w.summary.Withheld, w.summary.Later}, w.err)
	w.do("post live p08; recheck confirm")
	testkit.Same(t, "confirmed", []int{0, 3}, []int{w.summary.Withheld, w.summary.Later}, w.err)
	for _, jobs := range []string{"post copyright p09; recheck", "post copyright p09; purge", "post deleted p09; recheck",
		"purge offline id=p09", "post absent p09; recheck"} {
		w := ran.copied(t)
		w.putBack(older, "state.db")
		w.do(jobs)
		testkit.Same(t, jobs+": removed", true, slices.ContainsFunc(slices.Concat(w.summary.Removed, w.purged.Erased),
			func(p state.RemovedPost) bool { return p.ID == "p09" }))
		testkit.Same(t, jobs+": images for the next run", 3, w.summary.Later+w.purged.Summary.Later, w.err)
		rows, away := "p00 p01 p03 p04 p05 p06 p07 p08 p10 p11", strings.Contains(jobs, "absent")
		if away { // it is not taken down: others may show its picture
			rows = "p00 p01 p02 p03 p04 p05 p06 p07 p08 p10 p11"
		}
		testkit.Same(t, jobs, []bool{away, false, true},
			[]bool{w.hasFile("p02"), w.hasFile("p09"), w.hasFile("p10")}, w.err)
		w.do("run").ok()
		testkit.Same(t, jobs+": rows", rows, namesOf(w.checkSound().rows))
		testkit.Same(t, jobs+": then images for the next run", 0, w.summary.Later)
	}
}
