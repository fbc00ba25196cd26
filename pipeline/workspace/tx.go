package workspace

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"rehydrate/internal/durable"
	"rehydrate/internal/safely"
)

// A tx is one change of state.db. Its first error sticks: nothing more is run, and nothing of it is committed.
type tx struct {
	*commit
	ctx      context.Context // of its statements: it does not end, because SQLite would roll back all that is in the commit
	caller   context.Context // of the one call of change; its end stops the change before the next statement
	recorded int             // records that were stored
	err      error
}

// A commit is a transaction of state.db with the changes of one goroutine or of several.
type commit struct {
	*sql.Tx
	prepared map[string]*sql.Stmt // by their text
	shared   bool                 // a change is in it
	done     chan struct{}        // closed at its end
	failed   error                // why it ended with nothing stored; read it when it is done
}

// change runs do in a durable transaction, which it may share with changes of other goroutines: each is stored whole or
// not at all, and none fails by an error of another one's do. what names the work in the error.
func (w *Workspace) change(ctx context.Context, what string, do func(*tx)) (err error) {
	defer wrap(&err, "%s", what)
	if w.lock == nil {
		return ErrReadOnly
	}
	t, err := w.join(ctx, what, do)
	if err == nil {
		<-t.done
		err = t.failed
	}
	if err == nil {
		w.publishMany(ctx, t.recorded)
	}
	// Files may have changed without their rows.
	if err != nil && (ctx.Err() != nil || errors.As(err, new(*sqlite.Error))) {
		w.unfinished.Store(true)
	}
	return w.explain(ctx, err)
}

// join runs do as a part of the commit that is being filled. The last in line ends it.
func (w *Workspace) join(ctx context.Context, what string, do func(*tx)) (t *tx, err error) {
	// A commit costs four syncs, whatever is in it. Changes that come meanwhile stand in line and share the next one. A
	// change that comes alone waits for no other. The line ends, because whoever was in it waits for the commit.
	w.inLine.Add(1)
	w.turn.Lock()
	defer w.turn.Unlock()
	defer func() {
		if w.inLine.Add(-1) == 0 && w.filling != nil {
			w.endCommit(w.filling.Commit())
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.filling == nil {
		begun, err := w.db.BeginTx(context.WithoutCancel(ctx), nil) // it is not ctx's alone
		if err != nil {
			return nil, err
		}
		w.filling = &commit{Tx: begun, prepared: map[string]*sql.Stmt{}, done: make(chan struct{})}
	}
	c := w.filling
	t = &tx{commit: c, ctx: context.WithoutCancel(ctx), caller: ctx}
	// The first needs no savepoint, for which SQLite would copy every page that a large change touches into memory.
	undo := &tx{commit: c, ctx: t.ctx, caller: t.ctx} // the end of ctx does not keep it from the savepoint
	if c.shared {
		undo.exec("SAVEPOINT one")
		t.fail(undo.err)
	}
	err = safely.Do(func() error { // a panic must not leave the others waiting
		do(t)
		if t.err == nil {
			t.err = durable.Step(ctx, "commit", what)
		}
		return t.err
	})
	switch {
	case err != nil && !c.shared:
		w.endCommit(err)
	case err != nil:
		undo.exec("ROLLBACK TO one")
		undo.exec("RELEASE one")
	case c.shared:
		undo.exec("RELEASE one")
	}
	c.shared = true
	// SQLite has given up the whole transaction, as it does on a full disk: no part of it is stored.
	if undo.err != nil {
		err = cmp.Or(err, undo.err)
		w.endCommit(err)
	}
	return t, err
}

// endCommit lets those go on whose changes are in the commit that was filled.
func (w *Workspace) endCommit(failed error) {
	c := w.filling
	c.failed, w.filling = failed, nil
	if failed != nil {
		_ = c.Rollback() // what failed says more
	}
	close(c.done)
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
func (t *tx) exec(statement string, args ...any) (rows int64) {
	t.fail(t.caller.Err())
	if t.err != nil {
		return 0
	}
	s := t.prepare(statement)
	if t.err != nil {
		return 0
	}
	var done sql.Result
	done, t.err = s.ExecContext(t.ctx, args...)
	if t.err == nil {
		rows, t.err = done.RowsAffected()
	}
	return rows
}

// prepare compiles a statement once: it runs for thousands of rows.
func (t *tx) prepare(statement string) *sql.Stmt {
	s := t.prepared[statement]
	if s == nil {
		s, t.err = t.PrepareContext(t.ctx, statement)
		t.prepared[statement] = s
	}
	return s
}

// get reads the first row of a query; without one it leaves the targets alone.
func (t *tx) get(query string, args []any, targets ...any) {
	t.fail(t.caller.Err())
	if t.err != nil {
		return
	}
	s := t.prepare(query)
	if t.err != nil {
		return
	}
	err := s.QueryRowContext(t.ctx, args...).Scan(targets...)
	if !errors.Is(err, sql.ErrNoRows) {
		t.err = err
	}
}

// setMeta stores a value under a key of meta.
func (t *tx) setMeta(key string, value any) {
	t.exec("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		key, value)
}

// A querier is the database, or a transaction of it.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// A compiled is the database, whose queries are compiled once: those over entries take longer to compile than to find one post.
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
	return w.change(ctx, "set meta "+key, func(t *tx) { t.setMeta(key, value) })
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
		return fmt.Errorf("%s: %w: free some space and run again, nothing was lost", path, err)
	case hasCode(err, sqlite3.SQLITE_BUSY):
		return fmt.Errorf("%s: %w: close the program that uses it and run again, nothing was lost", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
