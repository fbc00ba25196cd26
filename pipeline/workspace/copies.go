package workspace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"rehydrate/pipeline/auditlog"
)

// A Copy is a copy of the dataset outside the workspace that was registered.
type Copy struct {
	Path   string // absolute; what names the copy
	Note   string // who has it
	Format string
	Made   time.Time // UTC, to the second
	Files  []File    // of the copy, names relative to Path
	Open   bool      // it holds what must go, and that could not be done here: an open obligation
	Told   string    // what the operator said of it
}

// SetCopy registers a copy, or replaces what is known of the one at its path, and stores events in the
// same transaction.
func (w *Workspace) SetCopy(ctx context.Context, c Copy, events ...auditlog.Event) error {
	if !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path {
		return fmt.Errorf("register a copy: %q is not an absolute path", c.Path)
	}
	files, err := json.Marshal(c.Files)
	if err != nil {
		return fmt.Errorf("register the copy %s: %w", c.Path, err)
	}
	return w.change(ctx, "register the copy "+c.Path, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO copy (path, note, format, made_at, files, open, told) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (path) DO UPDATE SET note = excluded.note, format = excluded.format, made_at = excluded.made_at,
			  files = excluded.files, open = excluded.open, told = excluded.told`,
			c.Path, c.Note, c.Format, seconds(c.Made), string(files), c.Open, c.Told)
		if err != nil {
			return err
		}
		return w.record(ctx, tx, events...)
	})
}

// Copies returns the registered copies by path.
func (w *Workspace) Copies(ctx context.Context) (copies []Copy, err error) {
	rows, err := w.db.QueryContext(ctx, "SELECT path, note, format, made_at, files, open, told FROM copy ORDER BY path")
	if err != nil {
		return nil, fmt.Errorf("read the registered copies: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Copy
		var made int64
		var files string
		err := rows.Scan(&c.Path, &c.Note, &c.Format, &made, &files, &c.Open, &c.Told)
		if err = errors.Join(err, json.Unmarshal([]byte(files), &c.Files)); err != nil {
			return nil, fmt.Errorf("read the registered copies: %w", err)
		}
		c.Made = moment(made)
		copies = append(copies, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the registered copies: %w", err)
	}
	return copies, nil
}
