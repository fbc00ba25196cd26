package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"rehydrate/pipeline/auditlog"
)

// A Copy is a copy of the dataset outside the workspace that was registered.
type Copy struct {
	Path   string    `json:"-"` // absolute; what names the copy
	Note   string    `json:"-"` // who has it
	Format string    `json:"-"`
	Made   time.Time `json:"-"` // UTC, to the second
	Files  []File    `json:"-"` // of the copy, names relative to Path
	Open   bool      `json:"-"` // it has rows that must go and could not be removed here: an open obligation
	Told   string    `json:"-"` // what the operator said of it

	// What follows is stored together, as JSON.

	Rows []string `json:"rows"` // ids of its rows
	// Next has the digests of files that are about to be replaced, by name: a purge that was killed finds
	// either digest.
	Next map[string]string `json:"next,omitempty"`
	// Owed are rows of posts that were gone when a new manifest dropped them: Reddit is not asked about those any
	// more, and the rows still have to go.
	Owed []string `json:"owed,omitempty"`
}

// SetCopy registers a copy, or replaces the record of the copy at its path, and stores events in the same
// transaction.
func (w *Workspace) SetCopy(ctx context.Context, c Copy, events ...auditlog.Event) error {
	if !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path {
		return fmt.Errorf("register a copy: %q is not an absolute path", c.Path)
	}
	return w.change(ctx, "register the copy "+c.Path, func(t *tx) {
		t.exec(`INSERT OR REPLACE INTO copy (path, note, format, made_at, files, open, told, rows)
			VALUES (?, ?, ?, ?, coalesce(?, 'null'), ?, ?, ?)`,
			c.Path, c.Note, c.Format, seconds(c.Made), jsonColumn{c.Files}, c.Open, c.Told, jsonColumn{c})
		w.record(t, events...)
	})
}

// Copies returns the registered copies by path.
func (w *Workspace) Copies(ctx context.Context) (copies []Copy, err error) {
	defer wrap(&err, "read the registered copies")
	return list(ctx, w.db, func(c *Copy) []any {
		return []any{&c.Path, &c.Note, &c.Format, timestamp{&c.Made}, jsonColumn{&c.Files}, &c.Open, &c.Told, jsonColumn{c}}
	}, "SELECT path, note, format, made_at, files, open, told, rows FROM copy ORDER BY path")
}
