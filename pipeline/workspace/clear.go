package workspace

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
	"rehydrate/policy"
)

// Clear takes the content of all posts out of the workspace: images, readings, answers of models, outcomes, and what
// Reddit said of where a post was made, and the texts that pass through. Entries, states of posts, tombstones, copies on
// record and the log stay, and which images were removed from posts that stay. Killed anywhere, the next Clear completes
// it.
func (w *Workspace) Clear(ctx context.Context) (err error) {
	defer wrap(&err, "clear the workspace")
	// The rows first: a row without its file would be damage. A file without a row is a stray, which the next Clear or
	// Sweep unlinks.
	if err := w.change(ctx, "delete the rows of all content", func(ctx context.Context, t *tx) {
		t.fail(w.recordContent(ctx, t))
		// What was removed from a post that stays is to stay out, as the tombstones say of posts.
		t.exec(ctx, "DELETE FROM trouble WHERE beside NOT IN ('', ?) OR reason NOT IN (?, ?)", Going,
			policy.LeftGallery,
			policy.CrosspostParent)
		t.exec(ctx, "UPDATE trouble SET beside = ''")
		for _, table := range []string{"reading", "earlier_reading", "earlier_result", "answer", "result"} {
			t.exec(ctx, "DELETE FROM "+table)
		}
		t.dropImages(ctx, "TRUE", `id IN (SELECT id FROM tombstone)
			OR id IN (SELECT id FROM post WHERE state IN ('removed', 'deleted', 'unavailable'))`)
		t.dropValues(ctx, "true")
		t.exec(ctx, "UPDATE post SET subreddit = '', gone_at = 0, withheld = 0, unseen = 0")
		t.exec(ctx, "DELETE FROM meta WHERE key = ?", metaReread)
		t.markErased(ctx)
	}); err != nil {
		return err
	}
	return w.RemoveFiles(ctx, imagesName, func(string) bool { return true })
}

// recordContent records the posts with an image or a text as erased.
func (w *Workspace) recordContent(ctx context.Context, t *tx) error {
	if t.err != nil {
		return t.err
	}
	ids, err := texts(ctx, t, "SELECT id FROM image UNION SELECT id FROM reading ORDER BY id")
	var posts []auditlog.Post
	for _, id := range ids {
		posts = append(posts, auditlog.Post{ID: manifest.PostID(id)})
	}
	w.recordPosts(ctx, t, auditlog.Event{Kind: auditlog.Erased, Verdict: "ended"}, posts)
	return err
}

// RemoveFiles unlinks the files and links in a folder of the workspace of which goes reports that they do, whoever put
// them there, and the folders that are empty then. One that does not exist is not an error.
func (w *Workspace) RemoveFiles(ctx context.Context, folder string, goes func(name string) bool) (err error) {
	defer wrap(&err, "remove %s", folder)
	if err := w.writable(ctx); err != nil {
		return err
	}
	var names []string
	for f, err := range w.Walk(ctx, folder) {
		if err != nil {
			return err
		}
		if !goes(f.Name) {
			continue
		}
		names = append(names, f.Name)
		w.digests.Delete(f.Name) // the seal must not list it
	}
	for some := range slices.Chunk(names, 1000) { // each folder is synced once for so many
		if err := w.unlink(ctx, some...); err != nil {
			return err
		}
	}
	var folders []string
	err = fs.WalkDir(w.root.FS(), folder, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			folders = append(folders, name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range slices.Backward(folders) {
		_ = w.root.Remove(name) // one that is not empty stays; no content depends on the others
	}
	return err
}
