package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"rehydrate/pipeline/durable"
)

// secure_delete overwrites a deleted row with zeros where it lies. But when SQLite splits or
// merges pages it moves rows and leaves their old copies in the unused part of a page, out of
// secure_delete's reach (seen with SQLite 3.54.1: a text in 1 of 40 random histories). So a
// transaction that erases also sets a mark, and before the workspace is closed, or when it is
// opened after a kill, state.db is rewritten from its live rows and replaced.

// markErased notes, within the transaction that erases, that state.db has to be rewritten.
func (t *tx) markErased() { t.setMeta(metaScrub, "1") }

// scrub rewrites state.db if something was erased since the last scrub. No other goroutine may use the
// workspace meanwhile.
func (w *Workspace) scrub(ctx context.Context) error {
	mark, err := readMeta(ctx, w.db, metaScrub)
	if err != nil || mark == "" {
		return err
	}
	if err := w.rewriteState(ctx); err != nil {
		return fmt.Errorf("rewrite %s without erased content: %w", stateName, w.explain(ctx, err))
	}
	// The mark goes last: a crash before this leaves it in the old database or the new one, and the work is redone.
	return w.change(ctx, "note that "+stateName+" is clean", func(t *tx) { t.exec("DELETE FROM meta WHERE key = ?", metaScrub) })
}

func (w *Workspace) rewriteState(ctx context.Context) error {
	f, err := w.files.Create(ctx, stateName, durable.Options{Mode: fileMode})
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := w.db.ExecContext(ctx, "VACUUM INTO ?", filepath.Join(w.dir, f.Temp())); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	// Every transaction is committed, so no journal is left that could be taken for the new
	// file's.
	if err := w.db.Close(); err != nil {
		return err
	}
	return errors.Join(f.Publish(), w.connect(w.dir, writerParams()))
}
