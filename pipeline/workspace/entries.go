package workspace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"rehydrate/manifest"
	"rehydrate/pipeline/auditlog"
)

// A Binding names the release that a workspace belongs to.
type Binding struct {
	Release        string // name of the release
	ReleaseDigest  string // sha256 hex of release.toml and manifest together
	ManifestDigest string // sha256 hex of the manifest's bytes
	Schema         manifest.Schema
	Splits         []string // in order of first appearance
}

// OtherRelease is the error of Load when the workspace belongs to another release.
type OtherRelease struct {
	Have string // the release that the workspace holds
	Want string // the one that was asked for
}

func (e *OtherRelease) Error() string {
	return fmt.Sprintf("the workspace holds release %q, not %q: name another folder with -w", e.Have, e.Want)
}

// Binding returns the release that the workspace belongs to; false when none was loaded.
func (w *Workspace) Binding(ctx context.Context) (Binding, bool, error) {
	var b Binding
	text, err := w.getMeta(ctx, metaBinding)
	if err != nil || text == "" {
		return b, false, err
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return b, false, fmt.Errorf("%s: the noted release cannot be read: %w", stateName, err)
	}
	return b, true, nil
}

// Load binds the workspace to a release and stores its entries, in one transaction. When b's
// digests are those of the present binding it does nothing and does not pull entries. For
// another manifest of the same release the entries are replaced: records of keys that stay are kept,
// records and image files of keys that left are erased. Another release is refused with
// *OtherRelease. After any error nothing has changed.
//
// When a changed manifest would erase stored images, lose is called first with the number of images to
// erase and of all images, and its error refuses the change. A nil lose allows everything.
//
// Entries must come in ascending Ordinal, each key once.
func (w *Workspace) Load(ctx context.Context, b Binding, entries iter.Seq2[manifest.Entry, error], lose func(images, of int) error) error {
	have, bound, err := w.Binding(ctx)
	if err != nil {
		return err
	}
	if bound && have.Release != b.Release {
		return &OtherRelease{Have: have.Release, Want: b.Release}
	}
	if bound && have.ReleaseDigest == b.ReleaseDigest && have.ManifestDigest == b.ManifestDigest {
		return nil
	}
	note, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("load release %s: %w", b.Release, err)
	}
	var left []string
	err = w.change(ctx, "load release "+b.Release, func(tx *sql.Tx) error {
		// Negative ordinals do not collide with the new entries; entries that are still negative
		// afterwards have left the manifest.
		if _, err := tx.ExecContext(ctx, "UPDATE entry SET ordinal = -1 - ordinal"); err != nil {
			return err
		}
		if err := putEntries(ctx, tx, entries); err != nil {
			return err
		}
		var of int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM image").Scan(&of); err != nil {
			return err
		}
		// The log names the posts before their rows go.
		err := w.recordLeft(ctx, tx)
		if err == nil {
			left, err = w.dropLeft(ctx, tx)
		}
		if err != nil {
			return err
		}
		if len(left) > 0 && lose != nil {
			if err := lose(len(left), of); err != nil {
				return err
			}
		}
		if bound {
			if err := markErased(ctx, tx); err != nil {
				return err
			}
		}
		return putMeta(ctx, tx, metaBinding, string(note))
	})
	if err != nil {
		return err
	}
	// The files go last, so that a failed load has changed nothing. A kill before this leaves files
	// without rows, which the next Sweep unlinks.
	return w.unlink(ctx, left...)
}

func putEntries(ctx context.Context, tx *sql.Tx, entries iter.Seq2[manifest.Entry, error]) error {
	put, err := tx.PrepareContext(ctx, `
		INSERT INTO entry (ordinal, id, image, line, split, labels, sha256, phash, subreddit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id, image) DO UPDATE SET ordinal = excluded.ordinal, line = excluded.line, split = excluded.split,
		  labels = excluded.labels, sha256 = excluded.sha256, phash = excluded.phash, subreddit = excluded.subreddit
		WHERE entry.ordinal < 0`)
	if err != nil {
		return err
	}
	defer put.Close()
	last := -1
	for e, err := range entries {
		if err != nil {
			return err
		}
		if e.Ordinal <= last {
			return fmt.Errorf("line %d: entry %s has ordinal %d after %d", e.Line, keyText(e.Key), e.Ordinal, last)
		}
		last = e.Ordinal
		if err := checkKey(e.Key); err != nil {
			return fmt.Errorf("line %d: %w", e.Line, err)
		}
		labels, err := json.Marshal(e.Labels)
		if err != nil {
			return fmt.Errorf("line %d: %w", e.Line, err)
		}
		done, err := put.ExecContext(ctx, e.Ordinal, string(e.ID), e.Image, e.Line, e.Split, string(labels), e.SHA256, e.PHash, e.Subreddit)
		if err != nil {
			return fmt.Errorf("line %d: entry %s: %w", e.Line, keyText(e.Key), err)
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return fmt.Errorf("line %d: entry %s stands twice in the manifest: remove one", e.Line, keyText(e.Key))
		}
	}
	return nil
}

// recordLeft adds to the log the posts that lose images because their entries left.
func (w *Workspace) recordLeft(ctx context.Context, tx *sql.Tx) error {
	posts, err := list(ctx, tx, func(rows *sql.Rows) (p auditlog.Post, err error) {
		err = rows.Scan(&p.ID)
		return p, err
	}, "SELECT DISTINCT id FROM image JOIN entry USING (id, image) WHERE ordinal < 0 ORDER BY id")
	if err != nil {
		return err
	}
	return w.recordPosts(ctx, tx, auditlog.Event{Kind: auditlog.Erased, Verdict: "left_manifest"}, posts)
}

// dropLeft deletes the rows of the keys that left the manifest and returns the names of their
// image files.
func (w *Workspace) dropLeft(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	names, err = list(ctx, tx, func(rows *sql.Rows) (string, error) {
		var k manifest.Key
		var format string
		err := rows.Scan(&k.ID, &k.Image, &format)
		return w.ImageName(k, format), err
	}, "SELECT i.id, i.image, i.format FROM image i JOIN entry e USING (id, image) WHERE e.ordinal < 0")
	if err != nil {
		return nil, err
	}
	const left = "(id, image) IN (SELECT id, image FROM entry WHERE ordinal < 0)"
	for _, stmt := range []string{
		"DELETE FROM reading WHERE " + left,
		"DELETE FROM earlier_reading WHERE " + left,
		"DELETE FROM earlier_result WHERE " + left,
		"DELETE FROM image WHERE " + left,
		"DELETE FROM trouble WHERE " + left,
		"DELETE FROM result_next",
		"DELETE FROM result WHERE " + left,
		"DELETE FROM entry WHERE ordinal < 0",
		"DELETE FROM post WHERE id NOT IN (SELECT id FROM entry)",
	} {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// SetResults replaces the results of the last completed run: readers see the old ones or the
// new ones, never a mixture. results may read the workspace; memory does not grow with their number.
// Result.Split is not stored: it is the entry's.
func (w *Workspace) SetResults(ctx context.Context, results iter.Seq2[manifest.Result, error]) error {
	const what = "store results"
	clear := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM result_next")
		return err
	}
	if err := w.change(ctx, what, clear); err != nil {
		return err
	}
	batch := make([]manifest.Result, 0, resultBatch)
	flush := func() error {
		err := w.change(ctx, what, func(tx *sql.Tx) error { return putResults(ctx, tx, batch) })
		batch = batch[:0]
		return err
	}
	for r, err := range results {
		if err != nil {
			return err
		}
		batch = append(batch, r)
		if len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	// A kill before this leaves the old results, and a part of the new ones that the next call deletes.
	return w.change(ctx, what, func(tx *sql.Tx) error {
		for _, statement := range []string{"DELETE FROM result", "INSERT INTO result SELECT * FROM result_next"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return clear(tx)
	})
}

// resultBatch is how many results SetResults holds in memory.
const resultBatch = 1000

func putResults(ctx context.Context, tx *sql.Tx, batch []manifest.Result) error {
	put, err := tx.PrepareContext(ctx, "INSERT INTO result_next (id, image, outcome, reason, detail, duplicate_id, duplicate_image) VALUES (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer put.Close()
	for _, r := range batch {
		if _, err := put.ExecContext(ctx, string(r.ID), r.Image, string(r.Outcome), string(r.Reason), r.Detail,
			string(r.DuplicateOf.ID), r.DuplicateOf.Image); err != nil {
			return fmt.Errorf("entry %s: %w", keyText(r.Key), err)
		}
	}
	return nil
}

// errNoEntry means that a key is not in the loaded manifest.
var errNoEntry = errors.New("the manifest has no such entry")

// checkKey refuses a key that could not have come from ParsePostID: its id becomes part of a
// file name.
func checkKey(k manifest.Key) error {
	if !validID(k.ID) {
		return fmt.Errorf("%q is not a post id", string(k.ID))
	}
	if k.Image < 0 {
		return fmt.Errorf("entry %s: image %d is below 0", k.ID, k.Image)
	}
	return nil
}

func validID(id manifest.PostID) bool {
	if len(id) < 1 || len(id) > 13 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// keyText names an entry as outcomes.csv does: the id, and "/n" for a later image.
func keyText(k manifest.Key) string {
	if k.Image == 0 {
		return string(k.ID)
	}
	return fmt.Sprintf("%s/%d", k.ID, k.Image)
}
