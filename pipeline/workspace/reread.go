package workspace

import (
	"context"
	"database/sql"

	"rehydrate/manifest"
)

// An Earlier is the state of an entry before a re-reading that has not ended.
type Earlier struct {
	Read bool   // Reread has replaced the reading since
	Text string // of the replaced reading
	// Outcome and Reason are those of the last completed run before it began, empty when there
	// was none.
	Outcome manifest.Outcome
	Reason  manifest.Reason
}

// BeginReread keeps the outcomes of the last completed run for the comparison.
func (w *Workspace) BeginReread(ctx context.Context) error {
	return w.change(ctx, "begin a re-reading", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key) DO NOTHING", metaReread)
		if err != nil {
			return err
		}
		// The mark is there already: a re-reading that was killed continues, with the outcomes from before it.
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO earlier_result (id, image, outcome, reason) SELECT id, image, outcome, reason FROM result")
		return err
	})
}

// Rereading reports whether a re-reading has begun and not ended.
func (w *Workspace) Rereading(ctx context.Context) (bool, error) {
	mark, err := w.getMeta(ctx, metaReread)
	return mark != "", err
}

// Reread is SetReading that keeps old, a text of the reading that it replaces, until EndReread. The
// first text that is kept stays.
func (w *Workspace) Reread(ctx context.Context, k manifest.Key, r Reading, old string) error {
	return w.putReading(ctx, k, r, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO earlier_reading (id, image, image_sha256, text)
			SELECT id, image, image_sha256, ? FROM reading WHERE id = ? AND image = ? ON CONFLICT DO NOTHING`,
			old, string(k.ID), k.Image)
		return err
	})
}

// EndReread deletes the earlier outcomes and texts. They are gone when it returns, the last copies
// inside state.db when the workspace is closed.
func (w *Workspace) EndReread(ctx context.Context) error {
	return w.change(ctx, "end a re-reading", func(tx *sql.Tx) error {
		for _, stmt := range []string{"DELETE FROM meta WHERE key = '" + metaReread + "'", "DELETE FROM earlier_result"} {
			if _, err := tx.ExecContext(ctx, stmt); err != nil {
				return err
			}
		}
		done, err := tx.ExecContext(ctx, "DELETE FROM earlier_reading")
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return markErased(ctx, tx)
	})
}
