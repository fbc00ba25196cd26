package workspace

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"rehydrate/internal/durable"
	"rehydrate/internal/fileversion"
	"rehydrate/internal/scratch"
	"rehydrate/internal/sqlitefile"
)

// Layout numbers the layout of state.db. There is one: a workspace of another one is refused with *fileversion.Other.
const Layout = 6

// applicationID marks state.db in SQLite's own header ("rhyd"): another program may have a database of that name.
const applicationID = 0x72687964

// Keys of meta that this package owns.
const (
	metaSchema    = "schema_version"
	metaBinding   = "binding"
	metaReread    = "reread"    // set while a re-reading is under way
	metaScrub     = "scrub"     // set while state.db may hold copies of erased rows
	metaLogHead   = "log_head"  // an auditlog.Checkpoint
	metaNoCopy    = "no_copy"   // the LostCopies
	metaUnsure    = "log_lost"  // "1" once the last export of the log may not be that of the dataset
	metaTaken     = "removals"  // takenOver once all removals of the log were
	metaLeft      = "left"      // leftImages
	metaContinued = "continued" // the continuations of the log
	metaSince     = "since"     // sinceNote
)

// HeardKey is the key of meta under which an auditlog.Heard lies. Package state writes it, too.
const HeardKey = "audit_heard"

// LaterKey has the number of images whose entries state.db does not have, below zero where no job has counted them since
// state.db or the log came from a backup.
const LaterKey = "images_for_next_run"

// SuspectsKey is the key of the note with the pictures that may be stand-ins, which is auditlog.Suspects.
const SuspectsKey = "stand_ins"

// takenOver is the value of metaTaken. Earlier versions, which took over no image that was not erased, wrote 1 and 2.
const takenOver = "3"

// Times are unix seconds, 0 for never. Labels, words, and the files and rows of a copy are compact JSON. phash holds
// the 64 bits of the hash as a signed integer, wide the 256 bits as 64 hex digits. image.next is the row that takes the
// place of another one, while its file does. former_image has all pictures that an entry had and lost, in the order in
// which they went: nobody deletes them, as nobody deletes their record of the log. origin has from which items of
// galleries images came, in the order in which they did. instead has from where files came that took the place of no
// stored image. The earlier_ tables have what a re-reading compares with, and are empty while none is under way.
const schemaSQL = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entry (
  ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL, image INTEGER NOT NULL, line INTEGER NOT NULL, split TEXT NOT NULL,
  labels TEXT NOT NULL, sha256 TEXT NOT NULL, phash TEXT NOT NULL, sha256_stripped TEXT NOT NULL,
  sha256_pixels TEXT NOT NULL, subreddit TEXT NOT NULL DEFAULT '', UNIQUE (id, image));
CREATE TABLE post (
  id TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL,
  checked_at INTEGER NOT NULL, live_at INTEGER NOT NULL, absent_at INTEGER NOT NULL, withheld INTEGER NOT NULL,
  subreddit TEXT NOT NULL DEFAULT '', unseen INTEGER NOT NULL DEFAULT 0, gone_at INTEGER NOT NULL DEFAULT 0);
CREATE TABLE tombstone (id TEXT PRIMARY KEY, state TEXT NOT NULL, time INTEGER NOT NULL,
  reason TEXT NOT NULL DEFAULT '', readmitted INTEGER NOT NULL DEFAULT 0);
` + formerSQL + originSQL + insteadSQL + `
CREATE TABLE image (
  id TEXT NOT NULL, image INTEGER NOT NULL, source TEXT NOT NULL, original_sha256 TEXT NOT NULL, sha256 TEXT NOT NULL,
  format TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, bytes INTEGER NOT NULL,
  phash INTEGER NOT NULL, flat INTEGER NOT NULL, hash_kind TEXT NOT NULL,
  original_bytes INTEGER NOT NULL, limits TEXT NOT NULL, pixels_sha256 TEXT NOT NULL, redirected INTEGER NOT NULL, next TEXT,
  PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE trouble (
  id TEXT NOT NULL, image INTEGER NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  detail TEXT NOT NULL, beside TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE reading (
  id TEXT NOT NULL, image INTEGER NOT NULL, fingerprint TEXT NOT NULL, image_sha256 TEXT NOT NULL,
  failed TEXT, text TEXT NOT NULL, confidence REAL NOT NULL, words TEXT, wide TEXT, masked INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES image (id, image));
CREATE TABLE result (
  id TEXT NOT NULL, image INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL,
  duplicate_id TEXT NOT NULL, duplicate_image INTEGER NOT NULL,
  PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE earlier_reading (
  id TEXT NOT NULL, image INTEGER NOT NULL, image_sha256 TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE earlier_result (
  id TEXT NOT NULL, image INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (id, image), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE answer (
  id TEXT NOT NULL, image INTEGER NOT NULL, asked TEXT NOT NULL, image_sha256 TEXT NOT NULL, task TEXT NOT NULL, run INTEGER NOT NULL,
  outcome TEXT NOT NULL, text TEXT NOT NULL, detail TEXT NOT NULL, model TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (id, image, asked), FOREIGN KEY (id, image) REFERENCES entry (id, image));
CREATE TABLE log_queue (seq INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE copy (
  path TEXT PRIMARY KEY, note TEXT NOT NULL, format TEXT NOT NULL, made_at INTEGER NOT NULL,
  files TEXT NOT NULL, open INTEGER NOT NULL, told TEXT NOT NULL, rows TEXT NOT NULL);
`

// erased says whether the picture was removed, with its post or out of it.
const formerSQL = `CREATE TABLE former_image (
  id TEXT NOT NULL, image INTEGER NOT NULL,
  original_sha256 TEXT NOT NULL, sha256 TEXT NOT NULL, pixels_sha256 TEXT NOT NULL, erased INTEGER NOT NULL,
  PRIMARY KEY (id, image, sha256, original_sha256, pixels_sha256));`

const originSQL = `
CREATE TABLE origin (id TEXT NOT NULL, image INTEGER NOT NULL, sha256 TEXT NOT NULL, source TEXT NOT NULL,
  PRIMARY KEY (id, image, sha256));`

const insteadSQL = `
CREATE TABLE instead (original_sha256 TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (original_sha256, source));`

// erasedTable is the table of an earlier version, which kept the digests of erased images alone.
const erasedTable = "erased_image"

// openState opens state.db for the holder of the lock and makes its tables when it is new.
func (w *Workspace) openState(ctx context.Context) error {
	// SQLite would make the file with the umask's mode; its journal inherits the file's.
	f, err := w.root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, fileMode)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = w.files.Sync(ctx, ".")
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", stateName, err)
	}
	if err := w.connect(w.dir, writerParams()); err != nil {
		return err
	}
	fresh, err := w.recognizeState(ctx)
	if err != nil {
		return err
	}
	// Before the first change: a workspace that is being changed must not look sealed after a kill.
	if err := w.unseal(ctx); err != nil {
		return err
	}
	if !fresh {
		if err := w.upgrade(ctx); err != nil {
			return err
		}
		return w.scrub(ctx) // a killed writer may have left the mark of an erasure
	}
	w.unfinished.Store(false) // nothing was begun
	return w.change(ctx, "make the tables of "+stateName, func(ctx context.Context, t *tx) {
		t.exec(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
		t.exec(ctx, schemaSQL)
		t.setMeta(ctx, metaSchema, strconv.Itoa(Layout))
		t.setMeta(ctx, metaTaken, takenOver) // a log that is there is compared with it next
	})
}

// upgrade makes the tables that a state.db of an earlier version does not have. What it lacks of former images is in
// the log.
func (w *Workspace) upgrade(ctx context.Context) error {
	erased, err := w.hasErased(ctx)
	if err != nil {
		return err
	}
	origins, err := w.hasTable(ctx, "origin")
	if err != nil {
		return err
	}
	instead, err := w.hasTable(ctx, "instead")
	if err != nil || !erased && origins && instead {
		return err
	}
	return w.change(ctx, "make the tables of this version", func(ctx context.Context, t *tx) {
		if !origins {
			t.exec(ctx, originSQL)
		}
		if !instead {
			t.exec(ctx, insteadSQL)
		}
		if !erased {
			return
		}
		t.exec(ctx, formerSQL)
		t.exec(ctx, `INSERT INTO former_image SELECT id, image, original_sha256, sha256, pixels_sha256, 1
			FROM `+erasedTable+" ORDER BY rowid")
		t.exec(ctx, "DROP TABLE "+erasedTable)
	})
}

// hasErased reports whether an earlier version was the last to write state.db.
func (w *Workspace) hasErased(ctx context.Context) (bool, error) { return w.hasTable(ctx, erasedTable) }

// hasTable reports whether state.db has a table, which one of an earlier version may lack.
func (w *Workspace) hasTable(ctx context.Context, name string) (has bool, err error) {
	err = w.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)", name).Scan(&has)
	return has, w.explain(ctx, err)
}

func writerParams() url.Values {
	return url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "trusted_schema(OFF)", "foreign_keys(ON)", "temp_store(MEMORY)",
			"journal_mode(DELETE)", "synchronous(FULL)", "secure_delete(ON)"},
	}
}

// openStateReadOnly opens state.db without writing beside it.
func (w *Workspace) openStateReadOnly(ctx context.Context) error {
	params := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)", "trusted_schema(OFF)", "temp_store(MEMORY)",
		"query_only(ON)"}}
	// Beside a write-ahead log, which nothing here makes, SQLite would write an index of it: a copy is opened without
	// it.
	_, err := w.root.Lstat(stateName + "-wal")
	apart, fresh := err == nil, false
	if !apart {
		if err := w.connect(w.dir, params); err != nil {
			return err
		}
		// A killed run may have left a half-committed change. Rolling it back would write to the workspace.
		fresh, err = w.recognizeState(ctx)
		journal, _ := w.readJournal()
		apart = err != nil && journal != nil
	}
	if apart {
		fresh, err = w.openCopy(ctx, params)
		wrap(&err, "read a copy, in which an unfinished change is rolled back")
	}
	if err == nil && fresh {
		err = fmt.Errorf("%w: %s is empty: %w", ErrNoWorkspace, stateName, ErrEmpty)
	}
	return err
}

// openCopy opens a private copy of state.db, in which SQLite rolls back the journal.
func (w *Workspace) openCopy(ctx context.Context, params url.Values) (fresh bool, err error) {
	folder, err := scratch.NewFolder()
	if err != nil {
		return false, err
	}
	// The copy may hold erased content. Once it is open it needs no name, and before that a later process removes it if
	// this one is killed.
	defer folder.Remove()
	if w.db != nil {
		w.db.Close()
	}
	if err := w.copyState(ctx, folder.Path); err != nil {
		return false, err
	}
	params.Set("mode", "rw")
	if err := w.connect(folder.Path, params); err != nil {
		return false, err
	}
	return w.recognizeState(ctx)
}

// copyState copies state.db and its journal.
func (w *Workspace) copyState(ctx context.Context, dir string) error {
	// A run that starts meanwhile rolls back on disk and removes the journal; then the copy is made again.
	for range 10 {
		before, err := w.readJournal()
		if err == nil {
			err = w.copyTo(ctx, filepath.Join(dir, stateName))
		}
		if err != nil {
			return err
		}
		if after, err := w.readJournal(); err == nil && bytes.Equal(before, after) {
			return os.WriteFile(filepath.Join(dir, journalName), before, fileMode)
		}
	}
	return errors.New("the journal keeps changing: a run is at work, try again")
}

func (w *Workspace) copyTo(ctx context.Context, name string) error {
	from, err := w.OpenFile(stateName)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, durable.Reader(ctx, from))
	return errors.Join(err, to.Close())
}

// readJournal returns nothing where there is no journal.
func (w *Workspace) readJournal() ([]byte, error) {
	b, err := w.root.ReadFile(journalName)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return b, err
}

// connect opens the database in dir, which is that of the workspace or of a copy.
func (w *Workspace) connect(dir string, params url.Values) error {
	connector, err := sqlite.NewConnector(sqlitefile.Address(filepath.Join(dir, stateName), params))
	if err != nil {
		return fmt.Errorf("open %s: %w", stateName, err)
	}
	w.db = sql.OpenDB(connector)
	w.db.SetMaxOpenConns(1)
	w.compiled = &compiled{DB: w.db, by: map[string]*sql.Stmt{}}
	return nil
}

// recognizeState reports whether state.db is empty, and refuses one that is not ours or of another layout.
func (w *Workspace) recognizeState(ctx context.Context) (fresh bool, err error) {
	var id, tables int
	err = w.db.QueryRowContext(ctx,
		"SELECT count(*), (SELECT application_id FROM pragma_application_id) FROM sqlite_schema").Scan(&tables, &id)
	switch {
	case hasCode(err, sqlite3.SQLITE_NOTADB):
		return false, fmt.Errorf("%w: %s is not a SQLite database: %w", ErrNoWorkspace, stateName, err)
	case err != nil:
		return false, fmt.Errorf("read %s: %w", stateName, err)
	case tables == 0:
		return true, nil
	case id != applicationID:
		return false, fmt.Errorf("%w: %s belongs to another program", ErrNoWorkspace, stateName)
	}
	layout, err := readMeta(ctx, w.db, metaSchema)
	if err == nil {
		err = fileversion.Check(stateName, layout, strconv.Itoa(Layout), "start another workspace with -w DIR")
	}
	return false, err
}

// markErased notes, within the transaction that erases, that state.db has to be rewritten.
func (t *tx) markErased(ctx context.Context) {
	// secure_delete zeroes a deleted row where it lies, but SQLite leaves old copies of rows in pages that it splits
	// or merges (seen with 3.54.1: a text in 1 of 40 random histories).
	t.setMeta(ctx, metaScrub, "1")
}

// scrub rewrites state.db if something was erased since the last scrub. No other goroutine may use w.
func (w *Workspace) scrub(ctx context.Context) error {
	mark, err := readMeta(ctx, w.db, metaScrub)
	if err != nil || mark == "" {
		return err
	}
	if err := w.rewriteState(ctx); err != nil {
		return fmt.Errorf("rewrite %s without erased content: %w", stateName, w.explain(ctx, err))
	}
	// The mark goes last: a crash before this leaves it in the old database or the new one, and the work is redone.
	return w.change(ctx, "note that "+stateName+" is clean", func(ctx context.Context, t *tx) {
		t.exec(ctx, "DELETE FROM meta WHERE key = ?", metaScrub)
	})
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
	// Every transaction is committed, so no journal is left that could be taken for the new file's.
	if err := w.db.Close(); err != nil {
		return err
	}
	published := f.Publish()
	return errors.Join(published, w.connect(w.dir, writerParams())) // connected in any case: Close needs it
}
