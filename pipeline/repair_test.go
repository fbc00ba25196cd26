package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/pipeline/auditlog"
	"rehydrate/pipeline/dataset"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// imagesOf are the image files of a world's workspace.
func (w *world) imagesOf() []string {
	names, err := filepath.Glob(filepath.Join(w.dir, "ws", "images", "*", "*"))
	testkit.OK(w, err)
	return names
}

// TestNoRowGoesWhileTheImageDiskIsAway: while the disk with the images is away no job takes their rows, and all are
// there when it is back.
func TestNoRowGoesWhileTheImageDiskIsAway(t *testing.T) {
	ran := newWorld(t, numbered(12)...).do("run").ok()
	for _, job := range []string{"run", "recheck", "purge", "purge offline", "purge offline id=p01", "reread", "split"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t)
			before := w.inspect()
			images := filepath.Join(w.dir, "ws", "images")
			testkit.OK(t, os.Rename(images, images+"-away"), os.Mkdir(images, 0o700))
			w.do(job)
			if _, missing := errors.AsType[*MissingError](w.err); !missing {
				t.Errorf("error %v, want that images are missing", w.err)
			}
			testkit.OK(t, os.Remove(images), os.Rename(images+"-away", images))
			w.do("host 404 i.redd.it; run").ok()
			if len(w.imagesOf()) != len(before.rows) {
				t.Errorf("%d images, want %d", len(w.imagesOf()), len(before.rows))
			}
		})
	}
}

// TestLostImagesComeBackFromTheDataset: what is confirmed to be lost is taken from the dataset.
func TestLostImagesComeBackFromTheDataset(t *testing.T) {
	w := newWorld(t, numbered(12)...).do("run").ok()
	testkit.OK(t, os.RemoveAll(filepath.Join(w.dir, "ws", "images")))
	w.do("host 404 i.redd.it; run confirm").ok()
	testkit.Same(t, "rows", "p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10 p11", namesOf(w.checkSound().rows))
}

// TestConfirmationAnswersOneQuestion: who confirms that files are lost, or that entries left the manifest, has not
// confirmed the removals that are withheld. The next confirmation is about them.
func TestConfirmationAnswersOneQuestion(t *testing.T) {
	withheld := newWorld(t, numbered(12)...).do("run; post deleted p01 p02 p03; recheck").ok()
	for name, ask := range map[string]func(w *world){
		"files": func(w *world) {
			for _, name := range w.imagesOf()[5:10] {
				testkit.OK(t, os.Remove(name))
			}
		},
		"entries": func(w *world) { w.do("manifest 8") },
	} {
		for _, job := range []string{"run", "recheck"} {
			if name == "entries" && job == "recheck" {
				continue // it leaves the manifest to the next run
			}
			w := withheld.copied(t)
			ask(w)
			if w.do(job); w.err == nil {
				t.Errorf("%s, %s: no question", name, job)
			}
			w.do(job + " confirm").ok()
			if s := w.checkSound(); s.outcome("p01") != "deleted/author" || len(w.imagesOf()) < 8 {
				t.Errorf("%s, %s: %s, %d images", name, job, s.outcome("p01"), len(w.imagesOf()))
			}
			before := len(w.imagesOf())
			w.do(job + " confirm").ok()
			w.checkSound()
			testkit.Same(t, name+", "+job+": images that went", 3, before-len(w.imagesOf()))
		}
	}
}

// TestConfirmationOfAManifestIsNoneOfLostFiles: who confirms that entries left the manifest was not asked whether files
// are lost. The same command asks then.
func TestConfirmationOfAManifestIsNoneOfLostFiles(t *testing.T) {
	w := newWorld(t, numbered(20)...).do("run; manifest 15").ok()
	images := filepath.Join(w.dir, "ws", "images")
	testkit.OK(t, os.Rename(images, images+"-away"), os.Mkdir(images, 0o700))
	if w.do("run"); !isError[*LossError](w.err) {
		t.Fatalf("run: %v", w.err)
	}
	w.read(func(ctx context.Context, ws *workspace.Workspace) {
		c := w.config()
		c.Workspace, c.ConfirmRemovals = ws, true
		if err := CheckRun(ctx, c); !isError[*MissingError](err) {
			t.Errorf("a dry run that confirms: %v", err)
		}
	})
	for _, job := range []string{"run confirm", "run"} {
		if w.do(job); !isError[*MissingError](w.err) {
			t.Errorf("%s: %v", job, w.err)
		}
	}
	testkit.OK(t, os.Remove(images), os.Rename(images+"-away", images))
	w.do("host 404 i.redd.it; run").ok()
	testkit.Same(t, "rows once the disk is back", 15, len(w.checkSound().rows))
}

func isError[E error](err error) bool { _, is := errors.AsType[E](err); return is }

// TestOneLostFileIsRestored: a file that is gone, short or damaged is put back from the dataset, and what was read in
// it stays.
func TestOneLostFileIsRestored(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"gone":  os.Remove,
		"short": func(name string) error { return os.Truncate(name, 7) },
		"empty": func(name string) error { return os.Truncate(name, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, numbered(5)...).do("run; answers").ok()
			before := w.inspect()
			testkit.OK(t, harm(w.imagesOf()[2]))
			w.do("host 404 i.redd.it; run").ok()
			testkit.Same(t, "readings", 0, len(w.ocr.reads))
			w.checkSameBytes(before, w.checkSound())
		})
	}
}

// flipBit damages a file, and returns what was there.
func flipBit(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	flipped := bytes.Clone(body)
	flipped[len(body)/2] ^= 1
	testkit.OK(t, os.WriteFile(name, flipped, 0o600))
	return body
}

// TestFlippedBitIsRestored: a file with a flipped bit is put back when it is read, also where its host has it no more.
func TestFlippedBitIsRestored(t *testing.T) {
	w := newWorld(t, numbered(5)...).do("run").ok()
	name := w.imagesOf()[2]
	body := flipBit(t, name)
	w.do("host 404 i.redd.it; engine B; run").ok()
	testkit.Same(t, "rows", "p00 p01 p02 p03 p04", namesOf(w.checkSound().rows))
	after, err := os.ReadFile(name)
	testkit.Same(t, "the file", body, after, err)
}

// TestMovedRowIsRestored: a file with a flipped bit is put back from the dataset, too, where its row moves to another
// file of the dataset than the one that has it.
func TestMovedRowIsRestored(t *testing.T) {
	w := newWorld(t, "p0", "p01", "p02", "p03").do("without p0; run").ok()
	testkit.Same(t, "the split of p01", "train", w.inspect().records["p01"].Split)
	name := w.imagesOf()[0]
	flipBit(t, name)
	w.do("host 404 i.redd.it; without none; run").ok()
	s := w.checkSound()
	testkit.Same(t, "rows", "p01 p02 p03", namesOf(s.rows))
	testkit.Same(t, "the split of p01", "test", s.records["p01"].Split)
}

// TestLeavingRowIsRestored: a file with a flipped bit is put back from the dataset before its row leaves that for
// anything but a removal, so that it can come back.
func TestLeavingRowIsRestored(t *testing.T) {
	w := newWorld(t, numbered(5)...).do("run").ok()
	flipBit(t, w.imagesOf()[1])
	w.do("host 404 i.redd.it; names 40 p01; run").ok()
	testkit.Same(t, "rows without it", "p00 p02 p03 p04", namesOf(w.checkSound().rows))
	w.do("names 1 p01; run").ok()
	testkit.Same(t, "rows", "p00 p01 p02 p03 p04", namesOf(w.checkSound().rows))
}

// TestShardCostsNoImage: that a shard finds a file damaged or does not see it costs no image that is whole where the
// shards are merged, or that the dataset has.
func TestShardCostsNoImage(t *testing.T) {
	ran := newWorld(t, numbered(5)...).do("run; engine B; split").ok()
	for name, test := range map[string]struct {
		harm func(name string) error
		mend bool // before the merge
	}{
		"damaged":          {func(name string) error { return os.Truncate(name, 7) }, false},
		"gone":             {os.Remove, false},
		"away for a while": {os.Remove, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t)
			image := w.imagesOf()[2]
			body, err := os.ReadFile(image)
			testkit.OK(t, err, test.harm(image))
			w.do("host 404 i.redd.it; work").ok()
			if test.mend {
				testkit.OK(t, os.WriteFile(image, body, 0o600))
			}
			// Not by what another engine read before.
			s := w.do("merge").ok().checkSound()
			testkit.Same(t, "rows after the merge", "p00 p01 p03 p04", namesOf(s.rows))
			testkit.Same(t, "the image that no shard read", "pending/not_read", s.outcome("p02"))
			testkit.Same(t, "images for another run", 1, w.summary.Retry)
			testkit.Same(t, "rows after a run", "p00 p01 p02 p03 p04", namesOf(w.do("run").ok().checkSound().rows))
			after, err := os.ReadFile(image)
			testkit.Same(t, "the file", body, after, err)
		})
	}
}

// TestOlderStateLosesNoImage: images whose rows an older state.db lacks are taken back, though no host has them any
// more. What was erased since is not.
func TestOlderStateLosesNoImage(t *testing.T) {
	older := newWorld(t, numbered(12)...).do("serve 404 p04 p05 p06; run; serve 4 p04; serve 5 p05; serve 6 p06").ok()
	ran := older.copied(t).do("run retry=http_404; post deleted p03; run").ok()
	for _, job := range []string{"run", "run without one", "recheck; run", "purge offline; run"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t)
			w.putBack(older, "state.db")
			if job == "run without one" {
				testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
				job = "run"
			}
			w.do("serve 404 p04 p05 p06; " + job).ok()
			testkit.Same(t, "rows", "p00 p01 p02 p04 p05 p06 p07 p08 p09 p10 p11", namesOf(w.checkSound().rows))
		})
	}
}

// TestOlderStateLosesNoReplacement: an image that took the place of another one since state.db was saved is taken back.
func TestOlderStateLosesNoReplacement(t *testing.T) {
	older := newWorld(t, numbered(12)...).do("serve small:20 p03; serve small:21 p04; serve small:22 p05; " +
		"serve small:23 p06; run").ok()
	ran := older.copied(t).do("move 30 p03; move 31 p04; move 32 p05; move 33 p06; run; host 404 i.redd.it").ok()
	want := ran.inspect()
	for _, jobs := range []string{"run", "recheck; run", "purge offline; run", "post deleted p03; purge; run"} {
		w := ran.copied(t)
		w.putBack(older, "state.db")
		w.do(jobs).ok()
		s := w.checkSound()
		for _, row := range []string{"p03", "p04", "p05", "p06"} {
			gone := row == "p03" && strings.Contains(jobs, row)
			if img := s.records[row].Image; gone != (img == nil) ||
				!gone && img.SHA256 != want.records[row].Image.SHA256 {
				t.Errorf("%s: image of %s: %+v", jobs, row, img)
			}
		}
	}
}

// TestFaultLosesNoImageTakenBack: a job that fails while it takes images back costs none.
func TestFaultLosesNoImageTakenBack(t *testing.T) {
	ran := newWorld(t, numbered(3)...).do("run; host 404 i.redd.it").ok()
	for n := 1; ; n += testkit.Stride(4) {
		w := ran.copied(t)
		testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		w.do(fmt.Sprintf("run fault=%d", n))
		struck := w.struck.Load()
		testkit.Same(t, fmt.Sprintf("images after fault %d", n), 3, len(w.imagesOf()))
		if !struck {
			break
		}
	}
}

// TestPolicyCostsNoImageWithoutState: an image that the policy does not take stays, also where its row is lost, and is
// a row again once the policy takes it.
func TestPolicyCostsNoImageWithoutState(t *testing.T) {
	older := newWorld(t, numbered(6)...).do("serve 404 p04 p05; run; serve 4 p04; serve 5 p05").ok()
	ran := older.copied(t).do("run retry=http_404; host 404 i.redd.it").ok()
	for name, refuse := range map[string]func(i *policy.Images){
		"max_pixels": func(i *policy.Images) { i.MaxPixels = 1 },
		"max_side":   func(i *policy.Images) { i.MaxSide = 1 },
		"max_bytes":  func(i *policy.Images) { i.MaxBytes = 1 },
		"a placeholder": func(i *policy.Images) {
			i.Placeholders = []policy.Placeholder{{Name: "any", SHA256: state.SHA256(drawn("4"))}}
		},
	} {
		for _, job := range []string{"run", "run without one", "recheck", "purge offline"} {
			w := ran.copied(t)
			w.putBack(older, "state.db")
			if job == "run without one" {
				testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
				job = "run confirm"
			}
			refuse(&w.policy.Images)
			w.do(job).ok()
			testkit.Same(t, name+", "+job+": images", 6, len(w.imagesOf()))
			w.policy = ran.policy
			w.do("run").ok()
			testkit.Same(t, name+", "+job+": rows", "p00 p01 p02 p03 p04 p05", namesOf(w.checkSound().rows))
		}
	}
}

// TestOlderStateKeepsWhatALaterEditionAdded: an older state.db does not have the entries that a later edition of the
// release added. A job that does not load the manifest leaves their images to the next run, but for those that must go.
func TestOlderStateKeepsWhatALaterEditionAdded(t *testing.T) {
	older := newWorld(t, append(numbered(12), "g*2")...).do("without p08 p09 p10 p11 g/1; run").ok()
	ran := older.copied(t).do("without; run; without p11; run; post deleted p10; run").ok()
	for _, c := range []struct{ jobs, rows string }{
		{"recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"recheck; recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"purge offline", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"purge", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"purge offline id=p09 id=p01", "g g/1 p00 p02 p03 p04 p05 p06 p07 p08"},
		{"stones removed p08; recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p09"},
		{"post absent g; recheck", "p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"post deleted p08; recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p09"},
		{"post absent p09; purge", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08"},
		{"post deleted p01; post deleted p08; post deleted p09; recheck; post live p01; post live p08; recheck; " +
			"post live p09; recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"}, // too many at once
		{"post deleted p01; post deleted p08; post deleted p09; recheck; post live p08; recheck confirm",
			"g g/1 p00 p02 p03 p04 p05 p06 p07 p08"},
		{"without p08 p11; recheck; run", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p09"},
		{"recheck; audit p09; purge offline", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08"},
		{"audit p09; put back; purge offline", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08"},
		{"audit p09; audit live:p09; put back; purge offline", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"put back; recheck; audit p09; post live p09; recheck; purge offline",
			"g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"},
		{"audit left:g/1; put back; recheck", "g g/1 p00 p01 p02 p03 p04 p05 p06 p07 p08 p09"}, // it was odd
		{"audit p01 p08 p09; put back; purge offline; purge offline confirm", "g g/1 p00 p02 p03 p04 p05 p06 p07"},
	} {
		t.Run(c.jobs, func(t *testing.T) {
			t.Parallel()
			w := ran.copied(t).do("serve 404 p08 p09 p10 g/1")
			before, jobs, later := strings.Cut(c.jobs, "put back; ")
			if later {
				w.do(strings.TrimSuffix(before, "; ")).ok()
			} else {
				jobs = before
			}
			w.putBack(older, "state.db")
			w.do(jobs).ok()
			testkit.Same(t, "images", len(strings.Fields(c.rows)), len(w.imagesOf()))
			w.do("run").ok()
			testkit.Same(t, "rows", c.rows, namesOf(w.checkSound().rows))
		})
	}
	// Of an image that an audit heard was taken out of its gallery only a run knows the entry. Nothing shows it until
	// then.
	for _, jobs := range []string{"purge offline; list g 0; purge offline", "recheck; list g 0; recheck", "list g 0",
		"nothing heard; recheck; list g 0", "nothing heard; purge; list g 0; recheck"} {
		w := ran.copied(t).do("image left g/1; serve 404 g/1")
		jobs, heardNothing := strings.CutPrefix(jobs, "nothing heard; ")
		if !heardNothing {
			w.do("audit left:g/1")
		}
		w.putBack(older, "state.db")
		w.do(jobs)
		w.read(func(ctx context.Context, ws *workspace.Workspace) {
			hidden, err := state.MustHide(ctx, ws, nil, w.policy)
			if !errors.Is(err, workspace.ErrBehind) { // else nothing is shown
				testkit.Same(t, jobs+": hidden", true, hidden.HasRow("g/1") && !hidden.HasRow("g"), err)
			}
		})
		if strings.HasPrefix(jobs, "list") { // the image that was just taken back goes while it waits to be read
			w.do("post unclear g p00 p01 p02 p03 p04 p05 p06 p07 p08 p09; run")
			testkit.Same(t, jobs+": outcome", "gone/gallery_item_deleted", w.checkSound().outcome("g/1"))
			w.do("post live g p00 p01 p02 p03 p04 p05 p06 p07 p08 p09; list g 0 1; image ok g/1; serve 9 g/1")
		}
		w.do("run").ok()
		testkit.Same(t, jobs, "g p00 p01 p02 p03 p04 p05 p06 p07 p08 p09", namesOf(w.checkSound().rows))
		testkit.Same(t, jobs+": file", false, w.hasFile("g/1"))
	}
}

// TestDamagedLogKeepsLooseImages: while the log is damaged an image without a row, as of a run that was killed, stops
// no removal, and stays unless it is one of those. Once the log is whole again it is taken back.
func TestDamagedLogKeepsLooseImages(t *testing.T) {
	older := newWorld(t, numbered(12)...).do("serve 404 p04 p05; run; serve 4 p04; serve 5 p05").ok()
	ran := older.copied(t).do("run retry=http_404").ok()
	for name, harm := range map[string]func(audit string){
		"a record": func(audit string) {
			name := filepath.Join(audit, "records.jsonl")
			body, err := os.ReadFile(name)
			testkit.OK(t, err)
			body[bytes.Index(body, []byte("p00"))] ^= 1
			testkit.OK(t, os.WriteFile(name, body, 0o600))
		},
		"the checkpoint": func(audit string) {
			testkit.OK(t, os.WriteFile(filepath.Join(audit, "checkpoint"), []byte("no checkpoint"), 0o600))
		},
	} {
		for _, job := range []string{"purge offline id=p01 id=p04", "post deleted p01 p04; recheck; recheck confirm",
			"post deleted p01 p04; purge; purge confirm"} {
			w := ran.copied(t)
			w.putBack(older, "state.db")
			harm(filepath.Join(w.dir, "ws", "audit"))
			w.do(job)
			if !isError[*auditlog.Broken](w.err) {
				t.Errorf("%s, %s: %v", name, job, w.err)
			}
			testkit.Same(t, name+", "+job+": images", 10, len(w.imagesOf()))
			testkit.Same(t, "p01 and p04 are gone, p05 is there", []bool{false, false, true},
				[]bool{w.hasFile("p01"), w.hasFile("p04"), w.hasFile("p05")})
			w.putBack(ran, "audit")
			w.do("serve 404 p05; run").ok()
			testkit.Same(t, name+", "+job+": rows", "p00 p02 p03 p05 p06 p07 p08 p09 p10 p11",
				namesOf(w.checkSound().rows))
		}
	}
}

// hasFile reports whether an image file lies in the workspace that has a post's name.
func (w *world) hasFile(id string) bool {
	return slices.ContainsFunc(w.imagesOf(), func(name string) bool { return strings.Contains(filepath.Base(name), id) })
}

// TestOlderStateKeepsTheRestOfAGallery: that one image of a gallery left the manifest costs none of its others.
func TestOlderStateKeepsTheRestOfAGallery(t *testing.T) {
	older := newWorld(t, "p00", "p01", "g*3").do("serve 404 g g/1 g/2; run; serve 2 g; serve 3 g/1; serve 4 g/2").ok()
	ran := older.copied(t).do("run retry=http_404; without g/1; run").ok()
	// An earlier version did not record which image of the post it was.
	testkit.OK(t, ran.inWorkspace(t.Context(), func(ctx context.Context, ws *workspace.Workspace) error {
		return state.RecordAudit(ctx, ws, ran.now, []auditlog.Event{{Kind: auditlog.Erased, Verdict: auditlog.LeftManifest,
			Posts: []auditlog.Post{{ID: "g"}}}})
	}))
	for _, lost := range []bool{false, true} {
		w := ran.copied(t)
		w.putBack(older, "state.db")
		if lost {
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
		}
		w.do("serve 404 g g/1 g/2; run").ok()
		testkit.Same(t, fmt.Sprint("rows, state.db lost: ", lost), "g g/2 p00 p01", namesOf(w.checkSound().rows))
	}
}

// TestSummaryNamesWhatWasLost: what a job takes away beside removals stands in its summary.
func TestSummaryNamesWhatWasLost(t *testing.T) {
	w := newWorld(t, numbered(12)...).do("run; manifest 11; run").ok()
	testkit.Same(t, "images of entries that left the manifest", 1, w.summary.LeftManifest)
	for _, job := range []string{"recheck", "purge offline"} {
		w := newWorld(t, numbered(4)...).do("run").ok()
		files, err := filepath.Glob(filepath.Join(w.dir, "ws", "dataset", "data", "*.parquet"))
		testkit.OK(t, err, os.WriteFile(files[0], []byte("not what was written"), 0o600))
		w.do(job).ok()
		gone := slices.Concat(w.summary.FilesGone, w.purged.Summary.FilesGone)
		testkit.Same(t, job, []string{"dataset/data/" + filepath.Base(files[0])}, gone)
	}
}

// TestLostImageOfALostState: an image whose file is lost with state.db, or since an older one, comes back from the
// dataset, which has its last copy, whatever its host answers; but for one that was removed since.
func TestLostImageOfALostState(t *testing.T) {
	older := newWorld(t, append(numbered(9), "g*2")...).do("serve 404 p03 g/1 p05; run").ok()
	ran := older.copied(t).do("serve 3 p03; serve 10 g/1; serve 5 p05; run retry=http_404").ok()
	all := namesOf(ran.checkSound().rows)
	for _, c := range []struct{ state, jobs, rows string }{
		{"", "run", all},
		{"", "recheck; run", all},
		{"", "purge offline; recheck; run", all},
		{"", "post deleted p05; recheck; run", strings.Replace(all, " p05", "", 1)},
		{"older", "purge offline; run", all},
		{"older", "recheck; run", all},
		{"older", "post deleted p05; recheck; run", strings.Replace(all, " p05", "", 1)},
	} {
		for _, lost := range [][]string{{"p03"}, {"p03", "g/1", "p05", "p07"}} {
			t.Run(fmt.Sprint(c.state, " ", c.jobs, " ", lost), func(t *testing.T) {
				t.Parallel()
				w := ran.copied(t).do("serve 404 p03 g/1 p05 p07")
				testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
				if c.state != "" {
					w.putBack(older, "state.db")
				}
				for _, row := range lost {
					matches, err := filepath.Glob(filepath.Join(w.dir, "ws", "images", "*",
						strings.ReplaceAll(row, "/", "-")+".*"))
					testkit.OK(t, err)
					testkit.Same(t, "files of "+row, 1, len(matches))
					testkit.OK(t, os.Remove(matches[0]))
				}
				jobs := c.jobs
				if len(lost) > 1 { // so many of eleven: perhaps a disk is away
					w.do(jobs)
					if _, many := errors.AsType[*MissingError](w.err); !many {
						t.Errorf("%d missing images: %v", len(lost), w.err)
					}
					jobs = strings.Replace(jobs, "run", "run confirm", 1)
				}
				w.do(jobs).ok()
				testkit.Same(t, "rows", c.rows, namesOf(w.checkSound().rows))
			})
		}
	}
}

// flipLog damages the log of a workspace, or makes it whole again.
func (w *world) flipLog() {
	name := filepath.Join(w.dir, "ws", "audit", "records.jsonl")
	body, err := os.ReadFile(name)
	testkit.OK(w, err)
	body[len(body)/3] ^= 1
	testkit.OK(w, os.WriteFile(name, body, 0o600))
}

// TestDamagedLogKeepsTheLastCopy: while the log is damaged an image that has neither a file nor a row, and is a row of
// the dataset, stops no removal, and stays unless it is one of those, whatever its host sends now. Once the log is
// whole again it is taken back.
func TestDamagedLogKeepsTheLastCopy(t *testing.T) {
	older := newWorld(t, append(numbered(11), "g*2")...).do("serve 404 p03 p04 g/1; run").ok()
	ran := older.copied(t).do("serve 3 p03; serve 4 p04; serve 12 g/1; run retry=http_404").ok()
	images := func(rows map[string]dataset.Row) map[string]string {
		digests := map[string]string{}
		for id, row := range rows {
			digests[id] = state.SHA256(row.Image)
		}
		return digests
	}
	want := images(ran.inspect().rows)
	for _, c := range []struct {
		older bool
		jobs  string
		gone  string
	}{
		{false, "run", ""},
		{false, "serve 50 p03 p05; run", ""},
		{false, "serve 404 p03; serve html p05; run", ""},
		{false, "post deleted p03; run", "p03"},
		{false, "serve 50 p03; post deleted p03; run", "p03"},
		{true, "run", ""},
		{true, "serve 50 p03 p04; run retry=http_404; run retry=http_404", ""},
		{true, "recheck", ""},
		{true, "recheck; run; run", ""},
		{true, "purge offline", ""},
		{true, "purge offline id=p05", "p05"},
		{true, "purge offline id=p03", "p03"},
		{true, "post deleted p05; recheck", "p05"},
		{true, "post deleted p03; recheck", "p03"},
		{true, "recheck; post deleted p03; recheck", "p03"},
		{true, "image left g/1; recheck", "g/1"},
		{true, "recheck; image left g/1; recheck", "g/1"},
	} {
		for _, file := range []bool{false, true} {
			w := ran.copied(t).do("serve 404 p03 p04 g/1")
			testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", "state.db")))
			if c.older {
				w.putBack(older, "state.db")
			}
			if !file {
				w.lose("LOSE images/p0/p03.png")
				w.lose("LOSE images/g/g-1.png")
			}
			w.flipLog()
			w.do(c.jobs)
			what := fmt.Sprintf("state.db is older: %t, the files are there: %t, %s", c.older, file, c.jobs)
			if !isError[*auditlog.Broken](w.err) {
				t.Errorf("%s: %v", what, w.err)
			}
			if c.gone != "" {
				_, row := w.inspect().rows[c.gone]
				testkit.Same(t, "the removed one is there, "+what, []bool{false, false},
					[]bool{row, w.hasFile(strings.ReplaceAll(c.gone, "/", "-"))})
			}
			w.putBack(ran, "audit")
			w.do("run; run").ok()
			left := maps.Clone(want)
			delete(left, c.gone)
			testkit.Same(t, "rows, "+what, left, images(w.checkSound().rows))
		}
	}
}

// TestDamagedLogBringsNothingBack: while the log is damaged a removal takes place, and images stay erased whose entries
// left the manifest in a run that was killed before the dataset was written.
func TestDamagedLogBringsNothingBack(t *testing.T) {
	erased := 0
	for n := 18; n < 40; n += 2 {
		w := newWorld(t, numbered(14)...).do("run; manifest 8").ok()
		w.do(fmt.Sprintf("run confirm die=%d", n))
		if len(w.imagesOf()) == 8 && len(w.inspect().rows) == 14 {
			erased++
		}
		before := len(w.imagesOf())
		w.flipLog()
		w.do("post deleted p03; recheck")
		testkit.Same(t, "images after a recheck", before-1, len(w.imagesOf()))
		w.do("recheck confirm")
		testkit.Same(t, "images after a recheck with confirmation", before-1, len(w.imagesOf()))
	}
	if erased == 0 {
		t.Error("no run was killed after it erased images and before it wrote the dataset")
	}
}

// TestWhatTheLogSaysOfOthers: what an older log says of another image of the post, or of a time before the post was
// allowed back, keeps no image from being taken back, and neither does a stored one that it replaced.
func TestWhatTheLogSaysOfOthers(t *testing.T) {
	for _, c := range []struct{ before, after, row string }{
		{"serve 503 g/2; run; image left g/1; run", "serve 13 g/2; run", "g/2"},
		{"serve small:70 p00 p01 p02 p03; run", "serve 0 p00; serve 1 p01; run retry=placeholder", "p00"},
	} {
		backup := newWorld(t, append(numbered(11), "g*3")...).do(c.before).ok()
		ran := backup.copied(t).do(c.after).ok()
		want := ran.inspect().rows
		testkit.Same(t, "has "+c.row, true, len(want[c.row].Image) > 0)
		for _, first := range []string{"", "recheck; ", "purge offline; "} {
			what := c.before + "; " + c.after + "; " + first + "the image"
			w := ran.copied(t)
			w.putBack(backup, "state.db", "audit")
			s := w.do("serve 404 " + c.row).do(first + "run").ok().checkSound()
			testkit.Same(t, what, true, bytes.Equal(want[c.row].Image, s.rows[c.row].Image))
		}
	}
}

// TestStateAndLogOfOneBackup: where state.db and log are of one backup, older than images and dataset, images that are
// there stay, whatever the next job is and their hosts send, unless their posts are gone.
func TestStateAndLogOfOneBackup(t *testing.T) {
	for _, first := range []string{"manifest 10; run", "serve 503 p10 p11 p12 p13; run"} {
		backup := newWorld(t, numbered(14)...).do(first).ok()
		ran := backup.copied(t).do("manifest 14; serve 10 p10; serve 11 p11; serve 12 p12; serve 13 p13; run").ok()
		want := ran.inspect()
		testkit.Same(t, "rows", 14, len(want.rows))
		for _, c := range []struct{ jobs, gone string }{
			{"run", ""}, {"recheck; run", ""}, {"purge offline; run", ""}, {"purge; run", ""},
			{"recheck; recheck; run; run", ""}, {"LOSE run", ""}, {"LOSE recheck; run", ""}, {"LOSE purge offline; run", ""},
			{"post deleted p11; run", "p11"}, {"post deleted p11; recheck; run", "p11"}, {"purge offline id=p11; run", "p11"},
			{"recheck; stones removed p11; run", "p11"},
		} {
			for _, serve := range []string{"serve 404 p10 p11 p12 p13", "serve 50 p10; serve 51 p11; serve 404 p12",
				"serve 10 p10"} {
				w := ran.copied(t)
				w.putBack(backup, "state.db", "audit")
				if strings.HasPrefix(c.jobs, "LOSE") {
					w.lose("LOSE images/p1/p12.png")
				}
				w.do(serve + "; " + strings.TrimPrefix(c.jobs, "LOSE ")).ok()
				what := first + "; restored; " + serve + "; " + c.jobs
				s := w.checkSound()
				for row, was := range want.rows {
					now, there := s.rows[row]
					if there == (row == c.gone) || there && !bytes.Equal(now.Image, was.Image) {
						t.Errorf("%s: %s is there: %t", what, row, there)
					}
				}
				if c.gone != "" && w.hasFile(c.gone) {
					t.Errorf("%s: the image of %s is there", what, c.gone)
				}
			}
		}
	}
}

// TestOwnImagesSinceABackup: where images that took the place of stand-ins since, or of those that a digest did not
// name, are in the dataset alone, a backup of the rest brings none of the others back.
func TestOwnImagesSinceABackup(t *testing.T) {
	standIns := newWorld(t, numbered(24)...).do("serve small:70 p10 p11 p12 p13; run").ok()
	other := newWorld(t, numbered(24)...).do("serve 60 p10; run; names 10 p10; run").ok()
	for _, c := range []struct {
		what        string
		backup, ran *world
	}{
		{"stand-ins", standIns, standIns.copied(t).do("serve 10 p10; serve 11 p11; serve 12 p12; serve 13 p13; " +
			"run retry=placeholder").ok()},
		{"another image", other, other.copied(t).do("serve 10 p10; run retry=changed").ok()},
	} {
		want := c.ran.inspect()
		testkit.Same(t, c.what, 24, len(want.rows))
		for _, parts := range []string{"state.db images", "state.db audit images"} {
			for _, then := range []string{"serve 404 p10 p11 p12 p13; JOBS", "serve 50 p10; serve 404 p11; JOBS", "JOBS",
				"serve small:70 p10 p11 p12 p13; JOBS"} {
				for _, jobs := range []string{"run confirm", "recheck confirm; run", "purge offline confirm; run"} {
					w := c.ran.copied(t)
					w.putBack(c.backup, strings.Fields(parts)...)
					w.do(strings.Replace(then, "JOBS", jobs, 1))
					what := c.what + "; " + parts + "; " + then + "; " + jobs
					s := w.checkSound()
					for row, was := range want.rows {
						if now, there := s.rows[row]; !there || !bytes.Equal(now.Image, was.Image) {
							t.Errorf("%s: %s is there: %t, %s (%v)", what, row, there, s.outcome(row), w.err)
						}
					}
				}
			}
		}
	}
}
