package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

// TestImageThatIsCutOnItsWayIsAskedForAgain: a picture that does not decode is downloaded a second time; the same bytes
// are what the host has.
func TestImageThatIsCutOnItsWayIsAskedForAgain(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("serve flaky:1 p01; serve short:2 p02; run").ok()
	s := w.checkSound()
	testkit.Same(t, "cut once", "kept/", s.outcome("p01"))
	testkit.Same(t, "cut twice", "invalid/bad_container", s.outcome("p02"))
	testkit.Same(t, "downloads", 6, len(w.reddit.fetched))
}

// TestDamageFoundWhileWritingCostsOneRow: an image that is damaged on the disk, and that no dataset has, loses its row
// when the others are written, and the next run fetches it again.
func TestDamageFoundWhileWritingCostsOneRow(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run").ok()
	before := w.inspect()
	name := w.imagesOf()[1]
	body, err := os.ReadFile(name)
	testkit.OK(t, err)
	body[len(body)/2] ^= 1
	testkit.OK(t, os.WriteFile(name, body, 0o600), os.RemoveAll(filepath.Join(w.dir, "ws", "dataset")))
	w.do("run").ok()
	s := w.checkSound()
	testkit.Same(t, "rows", "p00 p02 p03", namesOf(s.rows))
	testkit.Same(t, "the damaged one", "failed/damaged_file", s.outcome("p01"))
	w.do("run").ok()
	s = w.checkSound()
	testkit.Same(t, "files", before.files, s.files)
}

// TestHeldBackOutlivesItsFile: that a removal waits is not forgotten where the file of the image is lost, or comes
// back: it goes with the others when it is confirmed, in the copies, too, with its digests on record, and never before.
func TestHeldBackOutlivesItsFile(t *testing.T) {
	held := []string{"g/1", "h/1", "p00", "p01", "p02"}
	ran := newWorld(t, append(numbered(6), "g*3", "h*3")...).do("run").ok()
	for i, c := range []struct {
		steps  string // DAMAGE takes a file away, and REPAIR brings it back
		waits  int
		copied int
	}{
		{"DAMAGE; recheck", 5, 12},
		{"DAMAGE; recheck; REPAIR; recheck", 5, 12},
		{"DAMAGE; purge offline confirm", 0, 7},
		{"DAMAGE; run confirm", 0, 7},
		{"DAMAGE; recheck; REPAIR; recheck confirm", 0, 7},
		{"DAMAGE; recheck; image ok g/1 h/1 p00 p01; post live p02; run", 0, 12},
	} {
		for j, lost := range held {
			if leftOut(i+j, 5) {
				continue
			}
			w := ran.copied(t).do("copy c; image left g/1 h/1; image parent p00 p01; post deleted p02; recheck").ok()
			rec := w.inspect().records[lost]
			name := ""
			testkit.OK(t, w.inWorkspace(t.Context(), func(_ context.Context, ws *workspace.Workspace) error {
				name = filepath.Join(w.dir, "ws", ws.ImageName(rec.Key, rec.Image.Format))
				return nil
			}))
			body, err := os.ReadFile(name)
			testkit.OK(t, err)
			for step := range strings.SplitSeq(c.steps, "; ") {
				switch step {
				case "DAMAGE":
					testkit.OK(t, os.Remove(name))
				case "REPAIR":
					testkit.OK(t, os.WriteFile(name, body, 0o600))
				default:
					w.do(step).ok()
				}
			}
			s, what := w.checkSound(), c.steps+" of "+lost
			testkit.Same(t, "what waits, "+what, c.waits, s.status.Withheld)
			testkit.Same(t, "rows of the copy, "+what, c.copied, len(s.copied))
			if strings.HasSuffix(c.steps, "; run") {
				testkit.Same(t, "rows, "+what, 12, len(s.rows))
			}
			if strings.Contains(c.steps, "REPAIR; recheck") && c.waits > 0 {
				testkit.Same(t, "the image, "+what, true, s.imageOf(lost))
			}
			if !strings.HasSuffix(c.steps, "confirm") {
				continue
			}
			w.read(func(ctx context.Context, ws *workspace.Workspace) {
				erased, err := ws.ErasedImages(ctx)
				testkit.OK(t, err)
				var rows []string
				for _, e := range erased {
					rows = append(rows, e.Key.String())
				}
				testkit.Same(t, "images of which there are digests, "+what, held, rows)
			})
		}
	}
}

// TestEndLeavesNothing: the end of a workspace takes images, texts, dataset and copies away, and names what no run
// wrote, with the files among that which hold rows.
func TestEndLeavesNothing(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run; copy c; answers").ok()
	text := w.inspect().rows["p01"].Text
	files, err := filepath.Glob(filepath.Join(w.dir, "ws", "dataset", "data", "*.parquet"))
	testkit.OK(t, err)
	body, err := os.ReadFile(files[0])
	testkit.OK(t, err, os.Mkdir(filepath.Join(w.dir, "ws", "dataset", "mine"), 0o700))
	mine := []string{"dataset/data/notes.txt", "dataset/mine/rows.parquet", "mine.parquet", "notes.txt"}
	for _, name := range mine {
		if filepath.Ext(name) == ".txt" {
			testkit.OK(t, os.WriteFile(filepath.Join(w.dir, "ws", name), []byte("mine"), 0o600))
		} else {
			testkit.OK(t, os.WriteFile(filepath.Join(w.dir, "ws", name), body, 0o600))
		}
	}
	var plan Ending
	w.read(func(ctx context.Context, ws *workspace.Workspace) { plan, err = PlanEnd(ctx, ws) })
	testkit.OK(t, err)
	var end Ending
	testkit.OK(t, w.inWorkspace(t.Context(), func(ctx context.Context, ws *workspace.Workspace) (err error) {
		end, err = End(ctx, ws, w.now)
		return err
	}))
	testkit.Same(t, "what was planned", []any{plan.Release, plan.Images, plan.Texts, plan.Files},
		[]any{end.Release, end.Images, end.Texts, end.Files})
	testkit.Same(t, "images and texts", []int{4, 4}, []int{end.Images, end.Texts})
	testkit.Same(t, "outcomes.csv among the files", true, slices.Contains(end.Files, manifest.OutcomesName))
	testkit.Same(t, "what no run wrote", mine, end.Strays)
	if len(end.Rows) != 2 || !strings.HasPrefix(end.Rows[0], mine[1]+": ") ||
		!strings.HasPrefix(end.Rows[1], mine[2]+": ") {
		t.Errorf("files with rows: %v", end.Rows)
	}
	for _, name := range end.Files {
		if _, err := os.Lstat(filepath.Join(w.dir, "ws", name)); err == nil || slices.Contains(mine, name) {
			t.Errorf("%s is said to be removed: %v", name, err)
		}
	}
	testkit.Same(t, "copies", 1, len(end.Copies))
	testkit.OK(t, os.Remove(filepath.Join(w.dir, "ws", mine[1])), os.Remove(filepath.Join(w.dir, "ws", mine[2])))
	w.checkNowhere(text)
	testkit.Same(t, "image files", 0, len(w.imagesOf()))
	empty, err := workspace.Open(t.Context(), t.TempDir(), workspace.Options{})
	testkit.OK(t, err)
	defer empty.Close()
	if _, err := PlanEnd(t.Context(), empty); !errors.Is(err, workspace.ErrNoWorkspace) {
		t.Errorf("the end of nothing: %v", err)
	}
}

// TestErrorsNameWhatIsWrong: errors say which word, how many images and which release.
func TestErrorsNameWhatIsWrong(t *testing.T) {
	w := newWorld(t, numbered(4)...).do("run retry=http_404")
	if w.err == nil || !strings.Contains(w.err.Error(), "no download has failed in this workspace") {
		t.Errorf("nothing to retry: %v", w.err)
	}
	w.do("serve 404 p01; serve 403 p02; run; clock 25h; run; run retry=http_40")
	if w.err == nil || !strings.Contains(w.err.Error(), "--retry http_40: no download ended so") ||
		!strings.Contains(w.err.Error(), "http_403, http_404") {
		t.Errorf("a misspelt word: %v", w.err)
	}
	w.do("run retry=gone").ok()
	for _, id := range []string{"p01", "p02"} { // and of a witness
		if !slices.Contains(w.reddit.fetched, w.post(id).url(manifest.PostID(id), 0)) {
			t.Errorf("%s is not asked for: %v", id, w.reddit.fetched)
		}
	}
	testkit.Same(t, "loss", "the manifest no longer names 3 of the 4 images in the workspace",
		(&LossError{3, 4}).Error())
	testkit.Same(t, "missing",
		"5 of the 9 stored images are not there, a first: is the disk mounted that holds them?",
		(&MissingError{5, 9, "a"}).Error())
}

// TestAnswersGoWithALostImage: an image whose file was lost and whose entry is removed since leaves no answers of
// models.
func TestAnswersGoWithALostImage(t *testing.T) {
	for _, tt := range []struct {
		row, steps string
		reason     manifest.Reason
	}{
		{"p00", "move 2 p00; purge offline id=p02; post live p00; run", policy.SameAsRemoved},
		{"g/1", "image left g/1; post live g; run", "gallery_item_deleted"},
	} {
		id, _ := splitRow(tt.row)
		w := newWorld(t, append(numbered(19), "g*2")...).do("run; answers; post quarantined " + id + "; recheck").ok()
		rec := w.inspect().records[tt.row]
		testkit.OK(t, w.inWorkspace(t.Context(), func(_ context.Context, ws *workspace.Workspace) error {
			return os.Remove(filepath.Join(w.dir, "ws", ws.ImageName(rec.Key, rec.Image.Format)))
		}))
		w.do(tt.steps).ok()
		s := w.checkSound()
		if tr := s.records[tt.row].Trouble; tr == nil || tr.Reason != tt.reason || s.answers[tt.row] {
			t.Errorf("%s: %+v, answers %v", tt.steps, tr, s.answers[tt.row])
		}
	}
}

// TestRemovedWhileItsFileWasLost: an image that its author took out of a gallery while its file was lost, or whose
// picture was taken down elsewhere, does not come back with the file.
func TestRemovedWhileItsFileWasLost(t *testing.T) {
	ran := newWorld(t, append(numbered(12), "g*2")...).do("serve 5 g/1; run").ok()
	testkit.Same(t, "the image without a row", "duplicate/flat", ran.inspect().outcome("g/1"))
	for _, c := range []struct {
		removal string
		reason  manifest.Reason
	}{
		{"image left g/1; recheck", policy.LeftGallery},
		{"post copyright p05; recheck; recheck confirm", policy.SameAsRemoved},
	} {
		for _, jobs := range []string{"recheck", "purge offline", "run", "image ok g/1; run"} {
			w := ran.copied(t)
			rec := w.inspect().records["g/1"]
			name := ""
			testkit.OK(t, w.inWorkspace(t.Context(), func(_ context.Context, ws *workspace.Workspace) error {
				name = filepath.Join(w.dir, "ws", ws.ImageName(rec.Key, rec.Image.Format))
				return nil
			}))
			body, err := os.ReadFile(name)
			testkit.OK(t, err, os.Remove(name))
			w.do("recheck; " + c.removal).ok()
			testkit.OK(t, os.WriteFile(name, body, 0o600))
			w.do(jobs).ok()
			s, what := w.checkSound(), c.removal+"; "+jobs
			testkit.Same(t, "the image after "+what, false, s.imageOf("g/1") || w.hasFile("g-1"))
			if tr := s.records["g/1"].Trouble; tr == nil || tr.Reason != c.reason {
				t.Errorf("%s: trouble %+v", what, tr)
			}
		}
	}
}
