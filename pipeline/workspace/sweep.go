package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"

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
func (w *Workspace) Sweep(ctx context.Context) (Swept, error) {
	var s Swept
	if err := w.writable(ctx); err != nil {
		return s, fmt.Errorf("sweep the workspace: %w", err)
	}
	// Erase comes before the images are compared, so that a row without a file is not taken for a lost image.
	for _, part := range []func(context.Context, *Swept) error{w.sweepTemporary, w.sweepErased, w.sweepImages} {
		if err := part(ctx, &s); err != nil {
			return s, fmt.Errorf("sweep the workspace: %w", err)
		}
	}
	w.unfinished.Store(false) // files and rows agree: the workspace may be sealed
	return s, nil
}

func (w *Workspace) sweepTemporary(ctx context.Context, s *Swept) error {
	return fs.WalkDir(w.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case name == imagesName && e.IsDir():
			return fs.SkipDir // sweepImages does these
		case !e.IsDir() && durable.IsTemp(e.Name()):
			s.Temporary++
			return errors.Join(w.unlink(ctx, name), ctx.Err())
		}
		return ctx.Err()
	})
}

// sweepErased finishes the Erase of posts that must not stay and still have content.
func (w *Workspace) sweepErased(ctx context.Context, s *Swept) error {
	ids, err := texts(ctx, w.db, `
		SELECT id FROM post p WHERE (state IN ('removed', 'deleted', 'unavailable') AND NOT withheld OR id IN (SELECT id FROM tombstone WHERE NOT readmitted))
		AND (EXISTS (SELECT 1 FROM image WHERE id = p.id) OR EXISTS (SELECT 1 FROM reading WHERE id = p.id)
		  OR EXISTS (SELECT 1 FROM trouble WHERE id = p.id) OR EXISTS (SELECT 1 FROM earlier_reading WHERE id = p.id))
		ORDER BY id`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := w.Erase(ctx, manifest.PostID(id)); err != nil {
			return err
		}
		s.Erased++
	}
	return nil
}

// sweepImages compares the folders below images with the rows, one folder at a time.
func (w *Workspace) sweepImages(ctx context.Context, s *Swept) error {
	folders := map[string]bool{}
	list, err := fs.ReadDir(w.root.FS(), imagesName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			folders[e.Name()] = true
			continue
		}
		s.Orphans++
		if err := w.unlink(ctx, path.Join(imagesName, e.Name())); err != nil {
			return err
		}
	}
	used, err := texts(ctx, w.db, "SELECT DISTINCT substr(id, 1, 2) FROM image")
	if err != nil {
		return err
	}
	for _, folder := range used {
		folders[folder] = true
	}
	for folder := range folders {
		if err := w.sweepFolder(ctx, folder, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) sweepFolder(ctx context.Context, folder string, s *Swept) error {
	dir := path.Join(imagesName, folder)
	rows, err := w.folderRows(ctx, folder)
	if err != nil {
		return err
	}
	list, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var orphans []string
	for _, e := range list {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		r, ok := rows[name]
		if ok && info.Mode().IsRegular() && info.Size() == r.bytes {
			delete(rows, name)
			continue
		}
		switch {
		case durable.IsTemp(e.Name()):
			s.Temporary++
		case !ok:
			s.Orphans++
		}
		orphans = append(orphans, name)
	}
	// A file whose length is not its row's goes as well, and its row below: the next run fetches it again.
	if err := w.unlink(ctx, orphans...); err != nil {
		return err
	}
	if len(rows) == 0 {
		return ctx.Err()
	}
	s.Lost += len(rows)
	return w.change(ctx, "drop rows without their file", func(tx *sql.Tx) error {
		for _, r := range rows {
			if err := dropRows(ctx, tx, r.key); err != nil {
				return err
			}
		}
		return nil
	})
}

type storedFile struct {
	key   manifest.Key
	bytes int64
}

// folderRows returns the image rows of one folder by file name.
func (w *Workspace) folderRows(ctx context.Context, folder string) (map[string]storedFile, error) {
	// Ids hold 0-9 and a-z only: "{" comes right after "z". A folder of one character is
	// that of the post of this one character.
	query, args := "SELECT id, image, format, bytes FROM image WHERE id >= ? AND id < ?", []any{folder, folder + "{"}
	if len(folder) < 2 {
		query, args = "SELECT id, image, format, bytes FROM image WHERE id = ?", args[:1]
	}
	files := map[string]storedFile{}
	_, err := list(ctx, w.db, func(rows *sql.Rows) (r storedFile, err error) {
		var format string
		err = rows.Scan(&r.key.ID, &r.key.Image, &format, &r.bytes)
		files[w.ImageName(r.key, format)] = r
		return r, err
	}, query, args...)
	return files, err
}
