package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
)

// TestEveryFormerPictureIsKnown: a picture of a post that was taken down is refused to every other post, whatever
// became of its image before: its entry left the manifest, the tombstone was lifted, the workspace ended, the file was
// lost or damaged, or another picture took its place.
func TestEveryFormerPictureIsKnown(t *testing.T) {
	const all = "p00 p01 p02 p03 p04 p05 p06 p07"
	const without = "p00 p02 p03 p04 p05 p06 p07"
	ran := newWorld(t, numbered(9)...).do("serve 1 p08; run").ok() // p08 shows what p01 shows
	for _, c := range []struct{ name, steps, rows string }{
		{"nothing", "run", all},
		{"the edition that drops the entry publishes its tombstone", "manifest 8; stones removed p08; run", without},
		{"another edition has the tombstone", "manifest 8; run; stones removed p08; run", without},
		{"another edition has the tombstone, and it is rechecked", "manifest 8; run; stones removed p08; recheck", without},
		{"the edition drops the entry alone", "manifest 8; run", all},
		{"lifted, and deleted since", "purge id=p08; LIFT; post deleted p08; recheck; run", without},
		{"lifted", "purge id=p08; LIFT; run; run", all},
		{"a lift that does not count any more", "purge id=p08; VOID; run; run", without},
		{"the end, and deleted since", "END; post deleted p08; run", without},
		{"the end", "END; run", all},
		{"lost, and deleted since", "LOSE p08; serve 404 p08; run; post deleted p08; recheck", without},
		{"lost with the last answer", "LOSE p08; post deleted p08; recheck", without},
		{"damaged, and deleted since", "DAMAGE p08; serve 404 p08; engine B; run; post deleted p08; recheck", without},
		{"another one came, and both are gone", "names 40 p08; move 40 p08; run; post deleted p08; recheck", without},
		{"another one came, and state.db is lost",
			"names 40 p08; move 40 p08; run; LOSE state.db; run; post deleted p08; recheck", without},
		{"moderators removed it", "LOSE p08; post moderator p08; recheck; run", all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t)
			for step := range strings.SplitSeq(c.steps, "; ") {
				w.lose(step)
			}
			w.ok()
			testkit.Same(t, "rows", c.rows, namesOf(w.checkSound().rows))
		})
	}
}

// TestPicturesOfAnotherEdition: what the release that is given names of a post that was taken down counts for every job
// and its plan, also where no run has loaded that edition and the post was never here.
func TestPicturesOfAnotherEdition(t *testing.T) {
	ran := newWorld(t, numbered(9)...).do("manifest 8; run; names 1 p08").ok()
	for _, c := range []struct{ steps, rows string }{
		{"recheck", "p00 p01 p02 p03 p04 p05 p06 p07"},
		{"stones removed p08; recheck", "p00 p02 p03 p04 p05 p06 p07"},
		{"stones removed p08; purge", "p00 p02 p03 p04 p05 p06 p07"},
		{"purge offline id=p08", "p00 p02 p03 p04 p05 p06 p07"},
		{"stones removed p08; run", "p00 p02 p03 p04 p05 p06 p07"},
	} {
		w := ran.copied(t).do(c.steps).ok()
		testkit.Same(t, c.steps, c.rows, namesOf(w.checkSound().rows))
	}
	for step, request := range map[string]PurgeRequest{"stones removed p08": {},
		"stones unavailable p08": {IDs: []manifest.PostID{"p08"}}, "": {IDs: []manifest.PostID{"p08"}}} {
		w := ran.copied(t).do(step)
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			config := w.config()
			config.Workspace, config.Reddit = ws, nil
			plan, err := PlanPurge(ctx, config, request)
			testkit.Same(t, "planned after "+step, []string{"p01"}, plan.Same, err)
		})
	}
}

// TestImageStaysOutThoughItsPostWasAway: what left a post stays out when the post goes as a whole and comes back, or
// its entry leaves the manifest and comes back, until somebody asks for it by name and it is there again.
func TestImageStaysOutThoughItsPostWasAway(t *testing.T) {
	ran := newWorld(t, append(numbered(19), "g*2")...).do("policy readmit; run").ok()
	for _, c := range []struct{ steps, row, outcome string }{
		{"image parent p03; recheck; post absent p03; recheck; post live p03; image ok p03; run", "p03",
			"gone/crosspost_parent_removed"},
		{"image left g/1; recheck; post absent g; recheck; post live g; image ok g/1; move 40 g/1; run " +
			"retry=gallery_item_deleted", "g/1", "gone/gallery_item_deleted"},
		{"image left g/1; recheck; post moderator g; recheck; post live g; image ok g/1; run", "g/1",
			"gone/gallery_item_deleted"},
		{"image left g/1; recheck; post moderator g; recheck; post live g; image ok g/1; run retry=gallery_item_deleted",
			"g/1", "kept/"},
		{"image left g/1; post deleted p03 p04; recheck; post absent g; recheck confirm; recheck confirm; post live g; " +
			"image ok g/1; run", "g/1", "gone/gallery_item_deleted"},
		{"image left g/1; post deleted p03 p04; recheck; post absent g; recheck; recheck; post live g; image ok g/1; run",
			"g/1", "kept/"},
		{"image left g/1; recheck; manifest 19; run; manifest 20; run; image ok g/1; move 40 g/1; " +
			"run retry=gallery_item_deleted",
			"g/1", "gone/gallery_item_deleted"},
	} {
		w := ran.copied(t).do(c.steps).ok()
		testkit.Same(t, c.steps, c.outcome, w.checkSound().outcome(c.row))
	}
	w := ran.copied(t).do("copy c").ok()
	at, away := filepath.Join(w.dir, "copies", "c"), filepath.Join(w.dir, "away")
	testkit.OK(t, os.Rename(at, away))
	w.do("image left g/1; recheck; post absent g; recheck; post live g; image item_missing g/1; recheck")
	testkit.OK(t, os.Rename(away, at))
	w.do("purge offline").ok()
	testkit.Same(t, "the copy has the row", false, w.checkSound().copied["g/1"])
}

// TestCopyLosesWhatItsEntryLost: a copy loses the row of an entry that has no image any more, once the post that showed
// the same picture is taken down.
func TestCopyLosesWhatItsEntryLost(t *testing.T) {
	w := newWorld(t, numbered(9)...).do("serve 1 p08; run; copy c; serve 404 p01").ok()
	w.lose("LOSE dataset")
	w.lose("LOSE p01")
	w.do("run").ok()
	testkit.Same(t, "rows of the copy", 8, len(w.checkSound().copied))
	w.do("post deleted p08; recheck").ok()
	testkit.Same(t, "rows of the copy without it", "p00 p02 p03 p04 p05 p06 p07", namesOf(w.checkSound().copied))
}

// TestCopyKeepsWhatItsEntryShowedLast: a copy keeps the row of an entry that has no image any more, where it showed
// another picture last than one that was taken down.
func TestCopyKeepsWhatItsEntryShowedLast(t *testing.T) {
	w := newWorld(t, numbered(9)...).do("serve 1 p08; run; names 40 p01; move 40 p01; run; copy c; serve 404 p01").ok()
	w.lose("LOSE dataset")
	w.lose("LOSE p01")
	w.do("run; post deleted p08; recheck").ok()
	testkit.Same(t, "rows of the copy", "p00 p01 p02 p03 p04 p05 p06 p07", namesOf(w.checkSound().copied))
}

// lose does a step, or what loses an image: LIFT and VOID take the tombstone of p08 away, by a lift that counts or does
// not, END ends the workspace, LOSE removes the file of an image or another file, and DAMAGE changes one.
func (w *world) lose(step string) {
	w.Helper()
	what, of, _ := strings.Cut(step, " ")
	ws := filepath.Join(w.dir, "ws")
	name := filepath.Join(ws, of)
	if rec := w.inspect().records[of]; rec.Image != nil {
		name = filepath.Join(ws, "images", of[:min(2, len(of))], strings.ReplaceAll(of, "/", "-")+".png")
	}
	switch what {
	case "LIFT", "VOID":
		testkit.OK(w, w.inWorkspace(w.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
			return ws.LiftTombstones(ctx, strings.Repeat("0", 64), manifest.PostID("p08"))
		}))
		if what == "LIFT" { // else the list of the workspace puts it back
			testkit.OK(w, os.Remove(filepath.Join(ws, manifest.TombstonesName)))
		}
	case "END":
		testkit.OK(w, w.inWorkspace(w.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
			_, err := End(ctx, ws, w.now)
			return err
		}))
	case "LOSE":
		testkit.OK(w, os.RemoveAll(name))
	case "DAMAGE":
		body, err := os.ReadFile(name)
		testkit.OK(w, err)
		body[len(body)/2] ^= 1
		testkit.OK(w, os.WriteFile(name, body, 0o600))
	default:
		w.do(step).ok()
	}
}

// TestRemovedPictureStaysRemovedElsewhere: a picture that goes with that of another post is noted as removed, whatever
// comes from the place that Reddit names by now, but for another picture.
func TestRemovedPictureStaysRemovedElsewhere(t *testing.T) {
	for elsewhere, want := range map[string]string{"404": "refused/same_as_removed", "2": "refused/same_as_removed",
		"5000": "kept/"} {
		s := newWorld(t, numbered(20)...).do("serve 2 p00; policy flag; run; stones removed p02; move " + elsewhere +
			" p00; run").ok().checkSound()
		testkit.Same(t, elsewhere, want, s.outcome("p00"))
		rec := s.records["p00"]
		if removed := rec.Trouble != nil && rec.Trouble.Removed(); removed != (rec.Image == nil) {
			t.Errorf("%s: the picture is stored: %v, and noted as removed: %v", elsewhere, rec.Image != nil, removed)
		}
	}
}
