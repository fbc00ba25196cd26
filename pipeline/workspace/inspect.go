package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"

	"rehydrate/manifest"
)

// OpenFiles opens the folder of a workspace to read its files alone: without its lock, without
// writing, and without opening state.db, which may be damaged. Only Dir, Walk, OpenFile, Stat,
// StatState, ReadSeal and Close of the result may be called.
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

// A StoredPost is an entry in a copy of a state database.
type StoredPost struct {
	Key    manifest.Key
	Image  bool   // a row that describes its image
	SHA256 string // of that image, hex
	PHash  uint64
	Text   string // what OCR read
}

// copySQL reads a copy of state.db of any layout: it uses only tables that every layout has had.
const copySQL = `
SELECT i.id, i.image, 1, i.sha256, i.phash, coalesce(r.text, '') FROM image i LEFT JOIN reading r ON r.id = i.id AND r.image = i.image
UNION ALL
SELECT r.id, r.image, 0, '', 0, r.text FROM reading r WHERE NOT EXISTS (SELECT 1 FROM image i WHERE i.id = r.id AND i.image = r.image)
LIMIT 1000000`

// ReadCopy yields the posts in a copy of a state database, given as its bytes. The copy is opened in memory, so
// nothing is written and no journal beside it is read. The error, yielded last, says that it is not a state
// database or that it is damaged.
func ReadCopy(ctx context.Context, image []byte) iter.Seq2[StoredPost, error] {
	return func(yield func(StoredPost, error) bool) {
		err := readCopy(ctx, image, func(p StoredPost) bool { return yield(p, nil) })
		if err != nil {
			yield(StoredPost{}, fmt.Errorf("read the database: %w", err))
		}
	}
}

func readCopy(ctx context.Context, image []byte, yield func(StoredPost) bool) error {
	db, err := openInMemory(ctx, image)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, copySQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var p StoredPost
		var phash int64
		if err := rows.Scan(&p.Key.ID, &p.Key.Image, &p.Image, &p.SHA256, &phash, &p.Text); err != nil {
			return err
		}
		p.PHash = uint64(phash)
		if !yield(p) {
			return nil
		}
	}
	return rows.Err()
}

// openInMemory opens a database that exists as bytes.
func openInMemory(ctx context.Context, image []byte) (*sql.DB, error) {
	params := url.Values{"_pragma": {"trusted_schema(OFF)", "temp_store(MEMORY)", "query_only(ON)"}}
	connector, err := sqlite.NewConnector("file::memory:?" + params.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1) // the copy is the connection's own
	err = deserialize(ctx, db, image)
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func deserialize(ctx context.Context, db *sql.DB, image []byte) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		d, ok := c.(interface{ Deserialize([]byte) error })
		if !ok {
			return errors.New("the SQLite driver cannot open a database in memory")
		}
		return d.Deserialize(image)
	})
}
