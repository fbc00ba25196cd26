package workspace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"rehydrate/internal/durable"
	"rehydrate/internal/safely"
	"rehydrate/pipeline/auditlog"
)

// A tx is one change of state.db. Its first error sticks: nothing more is run, and nothing of it is committed.
type tx struct {
	*sql.Tx
	prepared map[string]*sql.Stmt // by their text
	recorded int                  // records that were stored
	texts    []int                // textColumns of the release; nil before they are needed
	err      error
}

// change runs do in a durable transaction, which is stored whole or not at all. what names the work in the error.
func (w *Workspace) change(ctx context.Context, what string, do func(context.Context, *tx)) (err error) {
	defer wrap(&err, "%s", what)
	if w.lock == nil {
		return ErrReadOnly
	}
	recorded, err := w.transact(ctx, what, do)
	if err == nil {
		w.publishMany(ctx, recorded)
	}
	// Files may have changed without their rows.
	if err != nil && (ctx.Err() != nil || errors.As(err, new(*sqlite.Error))) {
		w.unfinished.Store(true)
	}
	return w.explain(ctx, err)
}

// transact runs do in a transaction. Changes of several goroutines follow each other.
func (w *Workspace) transact(ctx context.Context, what string,
	do func(context.Context, *tx)) (recorded int, err error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// The end of ctx stops the change before its next statement, and none in the middle: once all are done it is
	// stored.
	begun, err := w.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return 0, err
	}
	t := &tx{Tx: begun, prepared: map[string]*sql.Stmt{}}
	err = safely.Do(func() error { // a panic must not leave the transaction open
		do(ctx, t)
		if t.err == nil {
			t.err = durable.Step(ctx, "commit", what)
		}
		return t.err
	})
	if err != nil {
		_ = begun.Rollback() // what failed says more
		return 0, err
	}
	return t.recorded, begun.Commit()
}

// writable returns the reason why nothing may be changed now.
func (w *Workspace) writable(ctx context.Context) error {
	if w.lock == nil {
		return ErrReadOnly
	}
	return ctx.Err()
}

// fail makes the change fail, unless err is nil.
func (t *tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(ctx context.Context, statement string, args ...any) (rows int64) {
	t.fail(ctx.Err())
	if t.err != nil {
		return 0
	}
	s := t.prepare(ctx, statement)
	if t.err != nil {
		return 0
	}
	var done sql.Result
	done, t.err = s.ExecContext(context.WithoutCancel(ctx), args...)
	if t.err == nil {
		rows, t.err = done.RowsAffected()
	}
	return rows
}

// prepare compiles a statement once: it runs for thousands of rows.
func (t *tx) prepare(ctx context.Context, statement string) *sql.Stmt {
	s := t.prepared[statement]
	if s == nil {
		s, t.err = t.PrepareContext(context.WithoutCancel(ctx), statement)
		t.prepared[statement] = s
	}
	return s
}

// get reads the first row of a query; without one it leaves the targets alone.
func (t *tx) get(ctx context.Context, query string, args []any, targets ...any) {
	t.fail(ctx.Err())
	if t.err != nil {
		return
	}
	s := t.prepare(ctx, query)
	if t.err != nil {
		return
	}
	err := s.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(targets...)
	if !errors.Is(err, sql.ErrNoRows) {
		t.err = err
	}
}

// setMeta stores a value under a key of meta.
func (t *tx) setMeta(ctx context.Context, key string, value any) {
	t.exec(ctx, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		key, value)
}

// A querier is the database, or a transaction of it.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// A compiled is the database, whose queries are compiled once: those over entries take longer to compile than to find
// one post.
type compiled struct {
	*sql.DB
	mu sync.Mutex
	by map[string]*sql.Stmt // mu: by their text
}

// QueryContext is that of the database.
func (c *compiled) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (c *compiled) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.by[query]
	if known {
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err == nil {
		c.by[query] = s
	}
	return s, err
}

// scanned runs a query and returns the result of scan for each row.
func scanned[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error),
	query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, rows.Err()
}

// list runs a query and returns its rows; targets are the fields of an item, in the order of the columns.
func list[T any](ctx context.Context, q querier, targets func(*T) []any, query string, args ...any) ([]T, error) {
	return scanned(ctx, q, func(rows *sql.Rows) (item T, err error) {
		err = rows.Scan(targets(&item)...)
		return item, err
	}, query, args...)
}

// texts runs a query of one column.
func texts(ctx context.Context, q querier, query string, args ...any) ([]string, error) {
	return list(ctx, q, func(s *string) []any { return []any{s} }, query, args...)
}

// readMeta returns the value under a key of meta, or an empty string.
func readMeta(ctx context.Context, q querier, key string) (string, error) {
	var value string
	err := q.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&value)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read meta %s: %w", key, err)
	}
	return value, nil
}

// readNote reads a value of meta that is JSON, the zero value where there is none.
func readNote[T any](ctx context.Context, q querier, key string) (note T, err error) {
	text, err := readMeta(ctx, q, key)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &note)
		wrap(&err, "%s: the note %s cannot be read", stateName, key)
	}
	return note, err
}

// Meta returns the value that SetMeta stored under key, or an empty string.
func (w *Workspace) Meta(ctx context.Context, key string) (string, error) {
	return readMeta(ctx, w.db, key)
}

// SetMeta stores a small value under a key of the caller's, durably.
func (w *Workspace) SetMeta(ctx context.Context, key, value string) error {
	last, err := w.Meta(ctx, key) // one that is there already costs no write
	if err != nil || last == value {
		return err
	}
	return w.change(ctx, "set meta "+key, func(ctx context.Context, t *tx) { t.setMeta(ctx, key, value) })
}

// wrap says of an error what was being done.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// hasCode reports whether err is SQLite's error of that primary result code.
func hasCode(err error, code int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == code
}

// Unread reports whether err says that a file was not read, and nothing of what is in it: the rights forbid it, the
// disk or the memory failed, or another program held it. The file may be whole, so nothing is given up for such an
// error.
func Unread(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return slices.Contains([]int{sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED,
			sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_AUTH}, e.Code()&0xff)
	}
	e, ok := errors.AsType[syscall.Errno](err)
	return ok && !errors.Is(e, fs.ErrNotExist) && e != syscall.ENOTDIR
}

// NotWhole reports whether err says that state.db, the log or its key is not as a command left it.
func NotWhole(err error) bool {
	return hasCode(err, sqlite3.SQLITE_CORRUPT) || errors.As(err, new(*auditlog.Broken)) ||
		errors.Is(err, auditlog.ErrKey)
}

// NotOpened reports whether err says that state.db could not be opened.
func NotOpened(err error) bool { return hasCode(err, sqlite3.SQLITE_CANTOPEN) }

// explain names the cause of a database error that hides it, and the file.
func (w *Workspace) explain(ctx context.Context, err error) error {
	path := filepath.Join(w.dir, stateName)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // SQLite reports an interrupt or a finished transaction
		return ctx.Err()
	case !errors.As(err, new(*sqlite.Error)) || strings.Contains(err.Error(), path): // a nested call explained it
		return err
	case hasCode(err, sqlite3.SQLITE_FULL):
		return fmt.Errorf("%s: %w: free some space and run again, what was stored is whole", path, err)
	case hasCode(err, sqlite3.SQLITE_BUSY):
		return fmt.Errorf("%s: %w: close the program that uses it and run again, what was stored is whole", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
