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
	Open   bool      // it has rows that must go and could not be removed here: an open obligation
	Told   string    // what the operator said of it
	Rows   []string  // ids of its rows
	// Next has the digests of files that are about to be replaced, by name: a purge that was killed finds
	// either digest.
	Next map[string]string
	// Owed are rows of posts that were gone when a new manifest dropped them: Reddit is not asked about those any
	// more, and the rows still have to go.
	Owed []string
}

// copyRows are the rows that a copy has and owes, in its record.
type copyRows struct {
	Rows []string          `json:"rows"`
	Next map[string]string `json:"next,omitempty"`
	Owed []string          `json:"owed,omitempty"`
}

// SetCopy registers a copy, or replaces the record of the copy at its path, and stores events in the same
// transaction.
func (w *Workspace) SetCopy(ctx context.Context, c Copy, events ...auditlog.Event) error {
	if !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path {
		return fmt.Errorf("register a copy: %q is not an absolute path", c.Path)
	}
	files, err := json.Marshal(c.Files)
	rows, more := json.Marshal(copyRows{Rows: c.Rows, Next: c.Next, Owed: c.Owed})
	if err := errors.Join(err, more); err != nil {
		return fmt.Errorf("register the copy %s: %w", c.Path, err)
	}
	return w.change(ctx, "register the copy "+c.Path, func(t *tx) {
		t.exec("INSERT OR REPLACE INTO copy (path, note, format, made_at, files, open, told, rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			c.Path, c.Note, c.Format, seconds(c.Made), string(files), c.Open, c.Told, string(rows))
		w.record(t, events...)
	})
}

// Copies returns the registered copies by path.
func (w *Workspace) Copies(ctx context.Context) (copies []Copy, err error) {
	copies, err = list(ctx, w.db, func(rows *sql.Rows) (c Copy, err error) {
		var files, ids string
		var more copyRows
		err = rows.Scan(&c.Path, &c.Note, &c.Format, timestamp{&c.Made}, &files, &c.Open, &c.Told, &ids)
		err = errors.Join(err, json.Unmarshal([]byte(files), &c.Files), json.Unmarshal([]byte(ids), &more))
		c.Rows, c.Next, c.Owed = more.Rows, more.Next, more.Owed
		return c, err
	}, "SELECT path, note, format, made_at, files, open, told, rows FROM copy ORDER BY path")
	if err != nil {
		return nil, fmt.Errorf("read the registered copies: %w", err)
	}
	return copies, nil
}
