package workspace

import (
	"context"

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
	return w.change(ctx, "begin a re-reading", func(t *tx) {
		// When the mark is there, a re-reading that was killed continues, with the outcomes from before it.
		if t.exec("INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key) DO NOTHING", metaReread) > 0 {
			t.exec("INSERT INTO earlier_result (id, image, outcome, reason) SELECT id, image, outcome, reason FROM result")
		}
	})
}

// Rereading reports whether a re-reading has begun and not ended.
func (w *Workspace) Rereading(ctx context.Context) (bool, error) {
	mark, err := readMeta(ctx, w.db, metaReread)
	return mark != "", err
}

// Reread is SetReading that keeps old, a text of the reading that it replaces, until EndReread. The
// first text that is kept stays.
func (w *Workspace) Reread(ctx context.Context, k manifest.Key, r Reading, old string) error {
	return w.putReading(ctx, k, r, func(t *tx) {
		t.exec(`INSERT INTO earlier_reading (id, image, image_sha256, text)
			SELECT id, image, image_sha256, ? FROM reading WHERE id = ? AND image = ? ON CONFLICT DO NOTHING`, old, k.ID, k.Image)
	})
}

// EndReread deletes the earlier outcomes and texts. They are gone when it returns, the last copies
// inside state.db when the workspace is closed.
func (w *Workspace) EndReread(ctx context.Context) error {
	return w.change(ctx, "end a re-reading", func(t *tx) {
		t.exec("DELETE FROM meta WHERE key = ?", metaReread)
		t.exec("DELETE FROM earlier_result")
		if t.exec("DELETE FROM earlier_reading") > 0 {
			t.markErased()
		}
	})
}
