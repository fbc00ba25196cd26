// Package sqlitefile reads SQLite databases that anybody may have written, down to the pages that no table uses. It
// evaluates no view, trigger or virtual table of a file, and computed columns within narrow bounds.
package sqlitefile

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"
)

const (
	// MaxValue is the length of the longest value that is read.
	MaxValue = 64 << 20
	// minValue is what a value may have in any file: what SQLite itself makes of a small one is longer than the file.
	minValue = 1 << 20
	// What computing may take: bytes of a value, and steps of a row, so that a row takes a millisecond or two.
	maxComputed = 4 << 10
	maxSteps    = 1000
)

// Address returns the name by which the driver opens a database file, with parameters of SQLite.
func Address(path string, params url.Values) string {
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" { // of C:/a, too, the path of a URL begins with a slash
		path = "/" + strings.TrimLeft(path, "/")
	}
	at := url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}
	return at.String()
}

// A Database is a database that is open for reading. It is for one goroutine.
type Database struct {
	conn  *sql.Conn
	trees *trees
}

// A Table is a table that keeps rows of its own.
type Table struct {
	Name     string
	Columns  []string // those that are stored
	Computed []string // the others: SQLite computes them from what is stored
	root     int64
	sql      string // that makes it
}

// SchemaTable is the table that names all others.
var SchemaTable = Table{Name: "sqlite_schema", Columns: []string{"type", "name", "tbl_name", "rootpage", "sql"},
	root: 1}

// Read opens a database for reading, which use may do until it returns. Nothing of it is copied to disk, and nothing is
// written beside it. What a file claims is checked before SQLite believes it: an error of the tree that lists the
// tables ends the reading, one of another tree is that of its table.
func Read(ctx context.Context, all *io.SectionReader, use func(*Database) error) error {
	d := &Database{trees: newTrees(all)}
	if d.trees != nil { // else SQLite says what is wrong with the header
		if err := d.trees.walk(1); err != nil {
			return err
		}
	}
	name, files, err := vfs.New(onlyFile{all})
	if err != nil {
		return err
	}
	// A file that is still in use, as it may be after an interrupt, stays registered, which costs a few bytes.
	defer files.Close()
	db, err := sql.Open("sqlite", "file:database?"+url.Values{"vfs": {name}, "mode": {"ro"}, "immutable": {"1"},
		"_pragma": {"trusted_schema(OFF)", "query_only(ON)", "temp_store(MEMORY)", "cell_size_check(ON)"}}.Encode())
	if err != nil {
		return err
	}
	defer db.Close()
	// One connection, so that its limits hold for every query.
	d.conn, err = db.Conn(ctx)
	if err != nil {
		return err
	}
	defer d.conn.Close()
	// A value that is stored is no longer than the file.
	_, err = sqlite.Limit(d.conn, sqlite3.SQLITE_LIMIT_LENGTH, int(min(MaxValue, max(minValue, all.Size()))))
	if err != nil {
		return err
	}
	return use(d)
}

// ApplicationID returns the number by which a program marks its databases.
func (d *Database) ApplicationID(ctx context.Context) (id int64, err error) {
	err = d.conn.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&id)
	return id, err
}

// Tables returns the tables, without SchemaTable. A virtual table keeps its rows in others.
func (d *Database) Tables(ctx context.Context) ([]Table, error) {
	// SQLite writes CREATE TABLE in this form. Anything else in its place could be a virtual table, which runs code.
	rows,
		err := d.conn.QueryContext(ctx,
		`SELECT m.name, m.rootpage, m.sql, x.name, x.hidden FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS x
		WHERE m.type = 'table' AND m.rootpage > 0 AND substr(m.sql, 1, 13) = 'CREATE TABLE '`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tables []Table
	for rows.Next() {
		var name, text, column string
		var root, hidden int64
		if err := rows.Scan(&name, &root, &text, &column, &hidden); err != nil {
			return tables, err
		}
		if n := len(tables); n == 0 || tables[n-1].Name != name {
			tables = append(tables, Table{Name: name, root: root, sql: text})
		}
		t := &tables[len(tables)-1]
		const virtual = 2 // of 3, a stored one, the values are in the rows
		if hidden == virtual {
			t.Computed = append(t.Computed, column)
		} else {
			t.Columns = append(t.Columns, column)
		}
	}
	return tables, rows.Err()
}

// Rows yields the stored values of a table, in the order of its Columns, which are the caller's until the next row:
// int64, float64, string, []byte, time.Time or nil. An error comes last.
func (d *Database) Rows(ctx context.Context, t Table) iter.Seq2[[]any, error] {
	return d.rows(ctx, t, t.Columns)
}

// slow are the words of functions that take longer than their arguments are long.
var slow = []string{"like", "glob", "match", "regexp", "replace", "instr", "trim"}

// RowsComputed is Rows for the Computed columns of a table, whose rows come in the same order. What takes too much is
// an error.
func (d *Database) RowsComputed(ctx context.Context, t Table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		if err := t.cheap(); err != nil {
			yield(nil, err)
			return
		}
		limits := map[int]int{sqlite3.SQLITE_LIMIT_LENGTH: maxComputed, sqlite3.SQLITE_LIMIT_VDBE_OP: maxSteps}
		for id, value := range limits {
			was, err := sqlite.Limit(d.conn, id, value)
			if err != nil {
				yield(nil, err)
				return
			}
			defer sqlite.Limit(d.conn, id, was)
		}
		d.rows(ctx, t, t.Computed)(yield)
	}
}

// cheap says what could make the computed columns take any time; nil for nothing.
func (t Table) cheap() error {
	text := strings.ToLower(t.sql)
	for _, word := range slow {
		if strings.Contains(text, word) {
			return fmt.Errorf("what computes it may use the function %s, which can take any time", word)
		}
	}
	// Each mention of such a column is computed anew, so a chain of them doubles at every step.
	between := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	mentions := map[string]int{}
	for word := range strings.FieldsFuncSeq(text, between) {
		mentions[word]++
	}
	for _, name := range t.Computed {
		if len(t.Computed) > 1 && mentions[strings.ToLower(name)] != 1 {
			return errors.New("columns that are computed may be computed from each other")
		}
	}
	return nil
}

func (d *Database) rows(ctx context.Context, t Table, columns []string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		if err := d.trees.of(t.root); err != nil {
			yield(nil, err)
			return
		}
		// An index could lack rows, and be computed from expressions.
		rows, err := d.conn.QueryContext(ctx, "SELECT "+quoted(columns...)+" FROM "+quoted(t.Name)+" NOT INDEXED")
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for err == nil && rows.Next() {
			err = rows.Scan(into...)
			if err == nil && !yield(values, nil) {
				return
			}
		}
		if err := errors.Join(err, rows.Err()); err != nil {
			yield(nil, err)
		}
	}
}

// quoted lists names as SQL has them.
func quoted(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`)
	}
	return strings.Join(list, ", ")
}

// Unused returns a sentence about what lies in the pages that no table uses and behind the last page, "" if that is
// nothing but zeros.
func (d *Database) Unused(ctx context.Context) (what string, err error) {
	if d.trees == nil {
		return "", errNoHeader
	}
	if err := d.walkAll(ctx); err != nil {
		return "", err
	}
	t := d.trees
	used := 0
	page := make([]byte, t.size)
	for n := int64(1); n <= t.pages; n++ {
		if n < int64(len(t.seen)) && t.seen[n] {
			continue
		}
		if err := errors.Join(t.read(n, page), ctx.Err()); err != nil {
			return "", err
		}
		// The list of free pages, and what SQLite leaves behind its end, are numbers of pages.
		for at := 0; at+4 <= len(page); at += 4 {
			if int64(binary.BigEndian.Uint32(page[at:])) <= t.pages {
				clear(page[at : at+4])
			}
		}
		if len(bytes.Trim(page, "\x00")) > 0 {
			used++
		}
	}
	if tail := t.all.Size() - t.pages*t.size; used > 0 || tail > 0 {
		what = fmt.Sprintf("something that no table accounts for lies in %d of its free pages and in %d bytes behind its last",
			used, tail)
	}
	return what, nil
}

// walkAll goes over every tree, so that the pages of all are known.
func (d *Database) walkAll(ctx context.Context) error {
	rows, err := d.conn.QueryContext(ctx, "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var root int64
		if err := rows.Scan(&root); err != nil {
			return err
		}
		if err := d.trees.of(root); err != nil {
			return err
		}
	}
	return rows.Err()
}

// onlyFile is a file system that has one file, whatever it is asked for but for a journal.
type onlyFile struct{ all *io.SectionReader }

func (f onlyFile) Open(name string) (fs.File, error) {
	if name != "database" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return openFile{io.NewSectionReader(f.all, 0, f.all.Size())}, nil
}

// An openFile is a file with what it says of itself.
type openFile struct{ *io.SectionReader }

func (f openFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f openFile) Close() error               { return nil }
func (f openFile) Name() string               { return "database" }
func (f openFile) Mode() fs.FileMode          { return 0o400 }
func (f openFile) ModTime() time.Time         { return time.Time{} }
func (f openFile) IsDir() bool                { return false }
func (f openFile) Sys() any                   { return nil }
