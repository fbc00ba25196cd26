package workspace

import (
	"context"
	"fmt"
	"path"
	"strings"

	"rehydrate/manifest"
	"rehydrate/pipeline/durable"
)

// Swept counts the repairs of Sweep. All are zero after a run that ended by itself.
type Swept struct {
	Temporary int // unfinished files unlinked
	Orphans   int // image files without a row, unlinked
	Lost      int // image rows without their file, or with one of another length, dropped
	Erased    int // posts that must not stay and still had content: their Erase was finished
}

// Sweep repairs what a killed run left; call it at the start of a run. It checks names and
// lengths, not content.
func (w *Workspace) Sweep(ctx context.Context) (s Swept, err error) {
	defer wrap(&err, "sweep the workspace")
	if err := w.writable(ctx); err != nil {
		return s, err
	}
	// Erase comes before the images are compared, so that a row without a file is not taken for a lost image. It is
	// unfinished where a post must not stay and still has content.
	ids, err := texts(ctx, w.db, `
		SELECT id FROM post p WHERE (state IN ('removed', 'deleted', 'unavailable') AND NOT withheld OR id IN (SELECT id FROM tombstone WHERE NOT readmitted))
		AND (EXISTS (SELECT 1 FROM image WHERE id = p.id) OR EXISTS (SELECT 1 FROM reading WHERE id = p.id)
		  OR EXISTS (SELECT 1 FROM trouble WHERE id = p.id) OR EXISTS (SELECT 1 FROM earlier_reading WHERE id = p.id))
		ORDER BY id`)
	if err != nil {
		return s, err
	}
	for _, id := range ids {
		if err := w.Erase(ctx, manifest.PostID(id)); err != nil {
			return s, err
		}
		s.Erased++
	}
	if err := w.sweepFiles(ctx, &s); err != nil {
		return s, err
	}
	w.unfinished.Store(false) // files and rows agree: the workspace may be sealed
	return s, nil
}

// sweepFiles removes unfinished files, and compares the image files with their rows.
func (w *Workspace) sweepFiles(ctx context.Context, s *Swept) error {
	// A link in the place of the folder would make all images look lost.
	if info, err := w.root.Lstat(imagesName); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder: move it away", imagesName)
	}
	rows, err := storedImages(ctx, w.db, "")
	if err != nil {
		return err
	}
	missing := map[string]storedImage{} // the rows by file name, less those whose file was found
	for _, r := range rows {
		missing[w.ImageName(r.Key, r.format)] = r
	}
	var left []string
	for f, err := range w.Walk(ctx, ".") {
		if err != nil {
			return err
		}
		row, hasRow := missing[f.Name]
		switch {
		case durable.IsTemp(path.Base(f.Name)):
			s.Temporary++
		case !strings.HasPrefix(f.Name, imagesName+"/"):
			continue
		case !hasRow:
			s.Orphans++
		case f.Mode.IsRegular() && f.Size == row.bytes:
			delete(missing, f.Name)
			continue
		}
		left = append(left, f.Name)
	}
	// A file whose length is not its row's goes as well, and its row below: the next run fetches it again.
	if err := w.unlink(ctx, left...); err != nil {
		return err
	}
	s.Lost = len(missing)
	if s.Lost == 0 {
		return nil
	}
	return w.change(ctx, "drop rows without their file", func(t *tx) {
		for _, r := range missing {
			t.dropRows(r.Key)
		}
	})
}
