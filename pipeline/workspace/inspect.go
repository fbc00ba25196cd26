package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// OpenFiles opens the folder of a workspace to read its files alone, without its lock and state.db, which may be
// damaged. Only Dir, Walk, OpenFile, Stat, StatState, ReadSeal and Close of the result may be called.
func OpenFiles(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{dir: dir}
	if err := w.openRoot(); err != nil {
		w.Close()
		return nil, fmt.Errorf("open workspace %s: %w", dir, err)
	}
	return w, nil
}

// A Found is anything in the workspace but a folder.
type Found struct {
	Name string // slash-separated, relative to the workspace
	Mode fs.FileMode
	Size int64 // bytes
}

// Walk yields everything in the workspace but folders, in byte order of the names: unfinished
// files, links and unknown files too. Links are not followed.
func (w *Workspace) Walk(ctx context.Context) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		err := w.walk(ctx, ".", func(name string, e fs.DirEntry) error {
			info, err := e.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // a run that is under way has taken it away
			case err != nil:
				return err
			case !yield(Found{Name: name, Mode: info.Mode(), Size: info.Size()}, nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Found{}, fmt.Errorf("look through the workspace: %w", err))
		}
	}
}

// OpenState opens the file state.db for reading its bytes.
func (w *Workspace) OpenState() (*os.File, error) {
	// Closing a second descriptor drops SQLite's locks of this process; between two calls it has none.
	return w.root.Open(stateName)
}

// ForeignSchema returns the tables, indices, triggers and views of state.db that this package does not make, each with
// its type before its name.
func (w *Workspace) ForeignSchema(ctx context.Context) ([]string, error) {
	const list = "SELECT type || ' ' || name FROM sqlite_schema"
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return nil, err
	}
	ours, err := texts(ctx, db, list)
	if err != nil {
		return nil, err
	}
	have, err := texts(ctx, w.db, list)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", stateName, w.explain(ctx, err))
	}
	return slices.DeleteFunc(have, func(name string) bool { return slices.Contains(ours, name) }), nil
}
