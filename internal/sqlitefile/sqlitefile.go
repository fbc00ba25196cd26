// Package sqlitefile reads SQLite databases that anybody may have written, down to the pages that no table uses.
package sqlitefile

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"rehydrate/internal/scratch"
)

// MaxUnused is the number of bytes of unused pages, and behind the last page, that Unused returns at most of each.
const MaxUnused = 8 << 20

// Address returns the name by which the driver opens a database file, with parameters of SQLite.
func Address(path string, params url.Values) string {
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" { // of C:/a, too, the path of a URL begins with a slash
		path = "/" + strings.TrimLeft(path, "/")
	}
	at := url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}
	return at.String()
}

// Copy opens a private copy of a database file for reading, which use may do until it returns: SQLite opens files, not
// bytes, and would write next to the one that it finds.
func Copy(all *io.SectionReader, use func(*sql.DB) error) error {
	copied, err := os.CreateTemp("", "rehydrate-audit-")
	if err != nil {
		return err
	}
	defer os.Remove(copied.Name())
	_, err = io.Copy(copied, io.NewSectionReader(all, 0, all.Size()))
	at := Address(copied.Name(), url.Values{"mode": {"ro"}, "immutable": {"1"},
		"_pragma": {"trusted_schema(OFF)", "query_only(ON)", "temp_store(MEMORY)", "cell_size_check(ON)"}})
	db, wrong := sql.Open("sqlite", at)
	if err := errors.Join(err, copied.Close(), wrong); err != nil {
		return err
	}
	defer db.Close()
	// One connection, so that the pragmas of its address hold for every query.
	db.SetMaxOpenConns(1)
	// It may hold erased content: once it is open, it needs no name, and the disk frees it however this process ends.
	return cmp.Or(errors.Join(db.Ping(), scratch.Unname(copied.Name())), use(db))
}

// Unused returns the bytes in the pages that no table uses and behind the last page, at most MaxUnused of each, and a
// sentence about them, "" if all are zero. More bytes are an error.
func Unused(ctx context.Context, db *sql.DB, all *io.SectionReader) (unused []byte, what string, err error) {
	var size, pages int64
	if err := db.QueryRowContext(ctx, "SELECT page_size, page_count FROM pragma_page_size, pragma_page_count").Scan(&size, &pages); err != nil {
		return nil, "", err
	}
	rows, err := db.QueryContext(ctx, "SELECT data FROM sqlite_dbpage WHERE pgno NOT IN (SELECT pageno FROM dbstat)")
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	for rows.Next() && len(unused) < MaxUnused {
		var page []byte
		err = errors.Join(err, rows.Scan(&page))
		// The list of free pages, and what SQLite leaves behind its end, are numbers of pages.
		for at := 0; at+4 <= len(page); at += 4 {
			if int64(binary.BigEndian.Uint32(page[at:])) <= pages {
				clear(page[at : at+4])
			}
		}
		if len(bytes.Trim(page, "\x00")) > 0 {
			unused = append(unused, page...)
		}
	}
	tail := all.Size() - pages*size
	behind := make([]byte, max(0, min(tail, MaxUnused)))
	_, wrong := io.ReadFull(io.NewSectionReader(all, pages*size, int64(len(behind))), behind)
	if len(unused)+len(behind) > 0 {
		what = fmt.Sprintf("something that no table accounts for lies in %d of its free pages and in %d bytes behind its last", len(unused)/int(size), tail)
	}
	if len(unused) >= MaxUnused || tail > MaxUnused {
		wrong = errors.Join(wrong, fmt.Errorf("more than %d bytes lie in its free pages or behind its last: VACUUM a copy, for the others were not looked at", MaxUnused))
	}
	return append(unused, behind...), what, errors.Join(err, wrong, rows.Err())
}
